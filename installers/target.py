"""What a change itself adds to the dependencies: its tests and its gold patch may need it, and runs have no network."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from installers.interface import Refusal
from miner.core.records import Recipe

_SOURCE = " <- the change itself"


def with_target(base: Recipe, target: Recipe | Refusal) -> Recipe:
    """Return the base's recipe with the requirements that only the target declares.

    Whatever the base declares itself stays as it is there, so that the environment is the one of the base commit.

    Args:
        base: recipe of the base tree.
        target: recipe of the target tree; a refusal adds nothing.
    """
    return base if isinstance(target, Refusal) else with_added(base, target.requirements)


def with_added(base: Recipe, requirements: Sequence[str]) -> Recipe:
    """Return a recipe with those requirements whose names it does not know."""
    known = {_name(line) for line in base.requirements} | {canonicalize_name(base.distribution)}
    added = tuple(line for line in requirements if _name(line) not in known)
    if not added:
        return base
    sources = tuple(f"{line}{_SOURCE}" for line in added)
    return base.model_copy(update={"requirements": (*base.requirements, *added), "sources": (*base.sources, *sources)})


def added_by_change(recipe: Recipe) -> tuple[str, ...]:
    """Return the requirements that came into a recipe by `with_target`."""
    return tuple(line for line in recipe.requirements if f"{line}{_SOURCE}" in recipe.sources)


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)
