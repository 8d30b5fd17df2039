"""What is learned from attempts that worked: lessons for the same repository, and for the same failure elsewhere.

A run sees only what earlier runs learned (law 4): its memory is frozen when it starts, so that results do not depend on
the order in which candidates are worked on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from installers.interface import Attempt, Delta, Lesson, Memory
from miner.core.hashing import hash_of
from miner.core.ledger import fact_id
from miner.core.records import Fact, Recipe

_SETS = ("requirements", "build_requirements", "constraints", "overrides", "build_constraints", "exempt")
_MORE_SETS = ("system_packages", "addopts")
_VALUES = ("python", "modes", "fallback", "compiled", "build_backend")
_MAPPINGS = ("env", "build_env")
_KEPT = 4  # lessons of one repository: more are of older eras


def fingerprint(recipe: Recipe) -> str:
    """Return the hash of everything that a recipe's environment is made from, dates aside.

    Two commits with one fingerprint and one cut-off share their environment; only the project is installed anew.
    """
    fields = (*_SETS, "system_packages", "python", "fallback", "compiled", "env")
    return hash_of({name: getattr(recipe, name) for name in fields})[:32]


def identity(recipe: Recipe) -> str:
    """Return what tells a recipe from another one: all that an environment and its tests depend on."""
    return hash_of([fingerprint(recipe), recipe.modes, recipe.addopts, recipe.build_env, recipe.build_requirements])


def delta(before: Recipe, after: Recipe) -> Delta:
    """Return how a recipe differs from another in what an environment is made from."""
    added: dict[str, tuple[str, ...]] = {}
    removed: dict[str, tuple[str, ...]] = {}
    for name in (*_SETS, *_MORE_SETS):
        old, new = getattr(before, name), getattr(after, name)
        if came := tuple(item for item in new if item not in old):
            added[name] = came
        if went := tuple(item for item in old if item not in new):
            removed[name] = went
    changed: dict[str, Any] = {name: _plain(getattr(after, name)) for name in _VALUES if _differs(name, before, after)}
    changed |= {name: getattr(after, name) for name in _MAPPINGS if _differs(name, before, after)}
    return Delta(added=added, removed=removed, changed=changed)


def apply(change: Delta, recipe: Recipe) -> Recipe:
    """Make the same change to another recipe; what it removes and is not there is no matter."""
    update: dict[str, Any] = {}
    for name in (*_SETS, *_MORE_SETS):
        gone, more = change.removed.get(name, ()), change.added.get(name, ())
        items = tuple(item for item in getattr(recipe, name) if item not in gone)
        update[name] = (*items, *(item for item in more if item not in items))
    for name, value in change.changed.items():
        update[name] = {**getattr(recipe, name), **value} if name in _MAPPINGS else value
    return Recipe.model_validate({**recipe.model_dump(), **update})


def _differs(name: str, before: Recipe, after: Recipe) -> bool:
    return bool(getattr(before, name) != getattr(after, name))


def _plain(value: Any) -> Any:
    return [str(item) for item in value] if isinstance(value, tuple) else value


def lesson_of(fact: Fact) -> Lesson | None:
    """Return what an attempt teaches; None where it was not good, or needed no change of what is declared."""
    made = Attempt.model_validate(fact.payload)
    if not made.ok or not fact.measures.get("good") or made.delta == Delta():
        return None
    signatures = {edit.signature for edit in made.edits}
    return Lesson(
        repository=made.repository,
        candidate=fact.key.subject,
        fingerprint=made.declared,
        cutoff=made.cutoff,
        delta=made.delta,
        answers=made.edits[0].signature if len(made.edits) == len(signatures) == 1 else None,
        share=fact.measures.get("share"),
        fact=fact_id(fact.key),
        written=made.written,
    )


def memory_of(lessons: Iterable[Lesson]) -> Memory:
    """Return the memory that lessons make: of each repository the latest few, of one date those that did best.

    It is the same in whatever order they come.
    """
    by_repository: dict[str, list[Lesson]] = {}
    for lesson in sorted(lessons, key=lambda one: (one.cutoff, one.share or 0.0, one.fact), reverse=True):
        known = by_repository.setdefault(lesson.repository, [])
        if len(known) < _KEPT and all(
            (one.fingerprint, one.delta) != (lesson.fingerprint, lesson.delta) for one in known
        ):
            known.append(lesson)
    return Memory(lessons=tuple(lesson for name in sorted(by_repository) for lesson in by_repository[name]))
