"""Changes of a recipe that another recipe can take over: single ones to compare, and all of an edit to apply. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from packaging.requirements import Requirement
from pydantic import Field

from installers.memory import delta
from installers.repair import edits
from installers.repair.context import Context
from miner.core.hashing import canonical_json
from miner.core.records import BuildMode, Recipe, Record

LISTS = ("requirements", "constraints", "overrides", "build_requirements", "build_constraints", "system_packages")
VALUES = ("python", "modes", "compiled")
MAPPINGS = ("env", "build_env")


class Change(NamedTuple):
    """One single change of a recipe.

    Attributes:
        item: what came in or went away; of a value its canonical JSON; of a variable `{"name":"value"}`.
    """

    field: str
    how: Literal["added", "removed", "changed"]
    item: str

    @property
    def is_portable(self) -> bool:
        """Whether another recipe can take it over: neither dates nor options of pytest, nor what a project declares."""
        return self.field in (LISTS if self.how != "changed" else (*VALUES, *MAPPINGS))

    def __str__(self) -> str:
        sign = {"added": "+", "removed": "-", "changed": "="}[self.how]
        return f"{self.field} {sign} {self.item}"


def changes(before: Recipe, after: Recipe) -> frozenset[Change]:
    """Return every single change from one recipe to another, in all that an environment and its tests depend on."""
    found = delta(before, after)
    made = {Change(field, "added", item) for field, items in found.added.items() for item in items}
    made |= {Change(field, "removed", item) for field, items in found.removed.items() for item in items}
    for field, value in found.changed.items():
        made |= set(_variables(before, after, field)) if field in MAPPINGS else {_changed(field, value)}
    return frozenset(made)


def _variables(before: Recipe, after: Recipe, field: str) -> Iterable[Change]:
    old: Mapping[str, str] = getattr(before, field)
    new: Mapping[str, str] = getattr(after, field)
    yield from (_changed(field, {name: value}) for name, value in new.items() if old.get(name) != value)
    yield from (Change(field, "removed", name) for name in old if name not in new)


def _changed(field: str, value: Any) -> Change:
    return Change(field, "changed", canonical_json(value))


class Items(Record):
    """Items of the lists of a recipe."""

    requirements: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    build_requirements: tuple[str, ...] = ()
    build_constraints: tuple[str, ...] = ()
    system_packages: tuple[str, ...] = ()


class Values(Record):
    """Values of a recipe; None where they stay as they are. Variables come in beside those that are there."""

    python: str | None = None
    modes: tuple[BuildMode, ...] | None = Field(default=None, min_length=1)
    compiled: bool | None = None
    env: dict[str, str] = Field(default_factory=dict)
    build_env: dict[str, str] = Field(default_factory=dict)


class Portable(Record):
    """An edit that any recipe can take."""

    added: Items = Items()
    removed: Items = Items()
    changed: Values = Values()

    @classmethod
    def of(cls, made: Iterable[Change]) -> Portable:
        """Return the edit that some portable changes amount to."""
        listed: dict[str, dict[str, list[str]]] = {"added": {}, "removed": {}}
        values: dict[str, Any] = {}
        for change in sorted(made):
            if change.how != "changed":
                listed[change.how].setdefault(change.field, []).append(change.item)
            elif change.field in MAPPINGS:
                values[change.field] = values.get(change.field, {}) | json.loads(change.item)
            else:
                values[change.field] = json.loads(change.item)
        return cls.model_validate({**listed, "changed": values})

    @property
    def said(self) -> dict[str, Any]:
        """What it changes, without what it does not: JSON values."""
        whole = self.model_dump(mode="json")
        kept = {part: {field: value for field, value in said.items() if value} for part, said in whole.items()}
        if self.changed.compiled is False:
            kept["changed"]["compiled"] = False
        return {part: said for part, said in kept.items() if said}

    def __str__(self) -> str:
        parts = [
            f"{field} {sign} {', '.join(items)}"
            for part, sign in (("added", "+"), ("removed", "-"))
            for field, items in self.said.get(part, {}).items()
        ]
        parts += [f"{field} = {json.dumps(value)}" for field, value in self.said.get("changed", {}).items()]
        return "; ".join(parts)

    def apply(self, recipe: Recipe, context: Context) -> Recipe | None:
        """Return the changed recipe; None where the edit does not suit it, or would change nothing.

        A bound that contradicts what a recipe asks for wins as an override, as those of the built-in rules do.
        """
        made = self._with_values(recipe, context)
        if made is None:
            return None
        made = self._without(made)
        for field, add in _ADDED.items():
            for item in getattr(self.added, field):
                made = add(made, item) or made
        return None if made == recipe else made

    def _without(self, recipe: Recipe) -> Recipe:
        gone = {field: set(getattr(self.removed, field)) for field in LISTS}
        return recipe.model_copy(
            update={
                field: tuple(item for item in getattr(recipe, field) if item not in items)
                for field, items in gone.items()
                if items
            }
        )

    def _with_values(self, recipe: Recipe, context: Context) -> Recipe | None:
        wanted = self.changed
        if wanted.python not in (None, recipe.python, *(one.version for one in context.pythons)):
            return None
        if BuildMode.NONE in recipe.modes and (wanted.modes or wanted.compiled):
            return None  # it is not installed at all
        update: dict[str, Any] = {name: value for name in VALUES if (value := getattr(wanted, name)) is not None}
        update |= {name: {**getattr(recipe, name), **getattr(wanted, name)} for name in MAPPINGS}
        return recipe.model_copy(update=update)


def _requirement(recipe: Recipe, text: str) -> Recipe | None:
    wanted = Requirement(text)
    if edits.asked(recipe, wanted.name) and not wanted.extras and wanted.marker is None:
        return edits.bounded(recipe, text) if wanted.specifier else None
    if text in recipe.requirements:
        return None
    return recipe.model_copy(update={"requirements": (*recipe.requirements, text)})


def _build_requirement(recipe: Recipe, text: str) -> Recipe | None:
    more = edits.build_required(recipe, text)
    return more or (edits.build_bounded(recipe, text) if Requirement(text).specifier else None)


_ADDED: dict[str, Callable[[Recipe, str], Recipe | None]] = {
    "requirements": _requirement,
    "constraints": edits.bounded,
    "overrides": edits.overridden,
    "build_requirements": _build_requirement,
    "build_constraints": edits.build_bounded,
    "system_packages": edits.with_packages,
}
