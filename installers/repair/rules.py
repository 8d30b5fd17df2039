"""The table of repair rules: signature -> edit of the recipe -> why. Pure; what is looked up is in the context.

Of the rules that answer one signature, the first that changes something is tried first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from installers.interface import Signature
from installers.repair.bounds import BOUNDS, Bound
from installers.repair.context import Context
from installers.repair.edits import bounded, build_bounded
from installers.repair.kinds import Kind
from installers.repair.rules_build import BUILD_BOUNDS, BuildBound
from installers.repair import rules_build as build
from installers.repair import rules_python as python
from installers.repair import rules_resolve as resolve
from installers.repair import rules_tests as tests
from miner.core.records import Recipe

Change = Callable[[Recipe, Signature, Context], Recipe | None]


@dataclass(frozen=True)
class Rule:
    """One way to answer a kind of failure.

    Attributes:
        edit: returns the changed recipe, None where the rule has no answer or would change nothing.
        why: one sentence; `{subject}` stands for the signature's subject.
    """

    name: str
    kinds: frozenset[Kind]
    edit: Change
    why: str

    def reason(self, signature: Signature) -> str:
        """Return why the edit is made."""
        return self.why.replace("{subject}", signature.subject)


def _rule(name: str, edit: Change, why: str, *kinds: Kind) -> Rule:
    return Rule(name, frozenset(kinds), edit, why)


def _of_bound(row: Bound) -> Rule:
    def edit(recipe: Recipe, signature: Signature, _context: Context) -> Recipe | None:
        return bounded(recipe, row.bound) if row.subject.fullmatch(signature.subject) else None

    return Rule(row.name, frozenset(row.kinds), edit, row.why)
