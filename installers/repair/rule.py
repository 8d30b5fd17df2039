"""What a rule is: one way to answer a kind of failure with an edit of the recipe. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from installers.interface import Signature
from installers.repair.bounds import Bound
from installers.repair.context import Context
from installers.repair.edits import bounded
from installers.repair.kinds import Kind
from miner.core.records import Recipe

Change = Callable[[Recipe, str, Context], Recipe | None]
"""Takes a recipe, the subject of a signature and what else is known; returns the changed recipe."""


@dataclass(frozen=True)
class Rule:
    """One row of the table.

    Attributes:
        change: returns None where the rule has no answer, or would change nothing.
        why: one sentence; `{subject}` stands for the signature's subject.
    """

    name: str
    kinds: frozenset[Kind]
    change: Change
    why: str

    def edit(self, recipe: Recipe, signature: Signature, context: Context) -> Recipe | None:
        """Answer a signature with a changed recipe, None where this rule has no answer."""
        if signature.kind not in self.kinds:
            return None
        changed = self.change(recipe, signature.subject, context)
        return None if changed == recipe else changed

    def reason(self, signature: Signature) -> str:
        """Return why the edit is made."""
        return self.why.replace("{subject}", signature.subject)


def rule(name: str, change: Change, why: str, *kinds: Kind) -> Rule:
    """Return a rule for some kinds."""
    return Rule(name, frozenset(kinds), change, why)


def rule_of(row: Bound) -> Rule:
    """Return the rule that a row of a table of bounds stands for."""

    def change(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
        return bounded(recipe, row.bound) if row.subject.fullmatch(subject) else None

    return Rule(row.name, frozenset(row.kinds), change, row.why)
