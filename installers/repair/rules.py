"""The table of repair rules: signature -> edit of the recipe -> why. Pure; what is looked up is in the context.

Of several rules for one signature, the first that changes something is tried first: knowledge before search, the
surroundings of the project before its declarations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from installers.interface import Signature
from installers.repair import rules_build, rules_imports, rules_pytest, rules_python, rules_resolve, rules_system
from installers.repair.context import Context
from installers.repair.kinds import Kind
from installers.repair.rule import Rule
from miner.core.reasons import Reason
from miner.core.records import Recipe

RULES: tuple[Rule, ...] = (
    *rules_pytest.RULES,
    *rules_python.RULES,
    *rules_imports.RULES,
    *rules_system.RULES,
    *rules_build.RULES,
    *rules_resolve.RULES,
)

_REASONS = {
    Kind.NEEDS_SERVICE: Reason.NEEDS_SERVICE,
    Kind.NEEDS_DISPLAY: Reason.NEEDS_DEVICE,
    Kind.NEEDS_GPU: Reason.NEEDS_DEVICE,
}


def answers(
    recipe: Recipe, signature: Signature, context: Context, rules: Sequence[Rule] = RULES
) -> Iterator[tuple[Rule, Recipe]]:
    """Return the rules that answer a signature, and the changed recipe of each; what is looked up is looked up late."""
    for rule in rules:
        changed = rule.edit(recipe, signature, context)
        if changed is not None:
            yield rule, changed


def final_reason(signatures: tuple[Signature, ...]) -> Reason | None:
    """Return the reason that the most telling signature amounts to where no rule answers it, None for any other."""
    return _REASONS.get(Kind(signatures[0].kind)) if signatures and signatures[0].kind in set(Kind) else None
