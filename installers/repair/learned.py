"""Repair rules as data: what `swe-miner recipes learn` exports, read again and checked before a run begins.

A file is TOML, one `[[rule]]` each; `configs/learned.toml` shows the form. A rule that could not be an honest repair
is an error of the configuration: an unknown key, what the built-in table says already, a change that weakens the tests.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Self

from packaging.requirements import InvalidRequirement, Requirement
from pydantic import BaseModel, Field, ValidationError, model_validator

from installers.distrust.weakening import weakenings
from installers.interface import Signature
from installers.pythons import load_pythons
from installers.repair.bounds import BOUNDS
from installers.repair.context import Context
from installers.repair.kinds import Kind
from installers.repair.portable import LISTS, Portable
from installers.repair.rule import Rule, rule
from installers.repair.rules import RULES, answers
from miner.core.errors import ConfigError
from miner.core.records import BuildMode, Legible, Recipe, Record
from miner.core.settings import learned_tables

PREFIX = "learned: "
"""How the names of rules begin that were exported."""

_BOUNDS = frozenset({"constraints", "build_constraints"})
_NEXT = (
    "compare with the head of configs/learned.toml, or export the file again with `swe-miner recipes learn --export`"
)


class Provenance(Record):
    """How a rule came about; it steers nothing.

    Attributes:
        worked: number of candidates for which a language model's edit worked.
        failed: number of those for which it was tried and did not.
        repositories: that the former are of; forks count as one.
        version: of swe-miner.
        exported: the day, "2026-05-01".
    """

    worked: int = Field(ge=0)
    failed: int = Field(ge=0)
    repositories: int = Field(ge=0)
    version: str
    exported: str


class LearnedRule(Record):
    """One rule: a kind of failure, what it is about, and the edit of a recipe that answers it.

    Attributes:
        name: what edits call it.
        subject: the whole subject of the signatures that it answers.
        pattern: a regular expression that has to match all of the subject instead.
        why: one sentence; `{subject}` stands for the signature's subject.
    """

    name: Legible = Field(min_length=1)
    kind: Kind
    subject: Legible | None = None
    pattern: re.Pattern[str] | None = None
    delta: Portable
    why: Legible = Field(min_length=1)
    provenance: Provenance | None = None

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        if (self.subject is None) == (self.pattern is None):
            raise ValueError("it needs either a subject or a pattern")
        if not self.delta.said:
            raise ValueError("its delta changes nothing")
        for field in LISTS[:-1]:
            for item in getattr(self.delta.added, field):
                _check_requirement(field, item)
        return self

    @property
    def identity(self) -> tuple[str, str, str]:
        """What two rules that are the same have in common."""
        about = f"= {self.subject}" if self.pattern is None else f"~ {self.pattern.pattern}"
        return self.kind.value, about, self.delta.model_dump_json()

    def rule(self) -> Rule:
        """Return it as a row of the table of rules."""

        def change(recipe: Recipe, subject: str, context: Context) -> Recipe | None:
            changed = self.delta.apply(recipe, context) if self._is_about(subject) else None
            if changed is None or weakenings(changed, recipe, paths=context.paths):
                return None  # what is harmless for one project may leave out tests of another one
            return changed

        return rule(self.name, change, self.why, self.kind)

    def _is_about(self, subject: str) -> bool:
        return subject == self.subject if self.pattern is None else self.pattern.fullmatch(subject) is not None


def _check_requirement(field: str, item: str) -> None:
    """Refuse what the edits of a recipe cannot read; whether it is an honest one is asked afterwards.

    Raises:
        ValueError: it is no requirement, or no bound.
    """
    try:
        wanted = Requirement(item)
    except InvalidRequirement as error:
        raise ValueError(f"{field}: {item!r} is no requirement") from error
    if field in _BOUNDS and not wanted.specifier:
        raise ValueError(f"{field}: {item!r} bounds nothing")


@cache
def learned_rules(own: Path | None) -> tuple[Rule, ...]:
    """Return the rules as data, checked, in their order; read once in a process, so that a run sees one state of them.

    Args:
        own: a user's own file (`measure.ladder.learned`), beside the shipped one.

    Raises:
        ConfigError: a file cannot be read, or one of its rules cannot be taken; says which one and why.
    """
    return tuple(one.rule() for one in entries(own))


def entries(own: Path | None) -> tuple[LearnedRule, ...]:
    """Return the rules as they stand in the files, checked.

    Raises:
        ConfigError: as for `learned_rules`.
    """
    found: list[LearnedRule] = []
    for file, table in learned_tables(own):
        found += read_rules(file, table, found)
    return tuple(found)


def read_rules(file: str, table: Mapping[str, Any], before: Iterable[LearnedRule] = ()) -> tuple[LearnedRule, ...]:
    """Return the rules of one file, checked.

    Args:
        file: its name, for messages.
        table: what it holds.
        before: rules that came before, which none may repeat.

    Raises:
        ConfigError: one of them cannot be taken.
    """
    if wrong := sorted(table.keys() - {"rule"}):
        raise _error(f"{file}: {wrong[0]}: unknown key; did you mean rule?")
    tables = table.get("rule", [])
    if not isinstance(tables, list):
        raise _error(f"{file}: rule: every rule begins with [[rule]]")
    known, found = list(before), []
    for number, one in enumerate(tables, start=1):
        try:
            made = LearnedRule.model_validate(one)
        except ValidationError as error:
            raise _error("\n".join(f"{file}: rule {number}: {_explain(item)}" for item in error.errors())) from error
        if said := refusal(made, known):
            raise _error(f"{file}: rule {number} ({made.name}): {said}")
        known.append(made)
        found.append(made)
    return tuple(found)


def refusal(made: LearnedRule, known: Iterable[LearnedRule] = ()) -> str:
    """Return why a rule is not taken beside the built-in ones and some others, "" where it is."""
    others = list(known)
    if made.name in {*(one.name for one in RULES), *(one.name for one in others)}:
        return "another rule has this name"
    if any(one.identity == made.identity for one in others):
        return "another rule says the same"
    bare = _bare(made)
    changed = made.delta.apply(bare, probe())
    if changed is None:
        return "its delta changes no recipe"
    found = weakenings(changed, bare)
    if found:
        return f"it would weaken the tests: {found[0].mechanism}: {found[0].detail}"
    if name := _built_in(made, bare, changed):
        return f"the built-in rule {name!r} says the same"
    return ""


@cache
def probe() -> Context:
    """Return what a rule is tried with where nothing can be looked up."""
    return Context(cutoff=datetime(2024, 1, 1, tzinfo=UTC), pythons=load_pythons())


def _bare(made: LearnedRule) -> Recipe:
    """Return a recipe that holds what a rule takes away, and little else."""
    gone = {field: getattr(made.delta.removed, field) for field in LISTS}
    wanted, plain = made.delta.changed, Recipe(python="3.5", build_backend="setuptools.build_meta")
    other = {"modes": (BuildMode.NORMAL,)} if wanted.modes == plain.modes else {}
    return plain.model_copy(update={**gone, **other, "compiled": wanted.compiled is False})


def _built_in(made: LearnedRule, bare: Recipe, changed: Recipe) -> str:
    """Return the name of a built-in rule that makes the same edit for the same signatures, "" where there is none."""
    if made.subject is not None:
        signature = Signature(kind=made.kind.value, subject=made.subject)
        return next((one.name for one, recipe in answers(bare, signature, probe()) if recipe == changed), "")
    wanted = made.pattern.pattern if made.pattern is not None else ""
    rows = [row for row in BOUNDS if row.subject.pattern == wanted and made.kind in row.kinds]
    return next((row.name for row in rows if made.delta.said == {"added": {"constraints": [row.bound]}}), "")


def _explain(item: Any) -> str:
    dotted = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"{dotted}: unknown key{_near(dotted, known_keys())}"
    if dotted == "kind":
        near = _near(str(item["input"]), [kind.value for kind in Kind])
        return f"kind: no such kind of failure: {item['input']!r}{near}"
    said = str(item["msg"]).removeprefix("Value error, ")
    return f"{dotted}: {said}" if dotted else said


def _near(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def known_keys(model: type[BaseModel] = LearnedRule, prefix: str = "") -> list[str]:
    """Return every dotted key that a rule may hold."""
    inner: dict[str, type[BaseModel]] = {"delta": Portable, "provenance": Provenance}
    keys: list[str] = []
    for name, field in model.model_fields.items():
        keys.append(prefix + name)
        kind = inner.get(name, field.annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys += known_keys(kind, f"{prefix}{name}.")
    return keys


def _error(message: str) -> ConfigError:
    return ConfigError(message, next_step=_NEXT)
