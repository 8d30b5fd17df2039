"""Constraints and overrides of a recipe, from what is declared as such: only texts that an installer takes."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from installers.requirements import Line, holds, satisfiable
from miner.project.model import Declared
from miner.project.versions import requirement_of

_MOST = 2000


def bounds(
    declared: Iterable[Declared], lines: Iterable[Line], python: str, project: str | None, notes: list[str]
) -> tuple[str, ...]:
    """Return bounds on versions, those left out that bound nothing, contradict what is asked for, or each other.

    Args:
        declared: what constraints files and tables hold.
        lines: what is asked for; it wins.
        python: "3.11"; what does not hold there is left out.
        project: the project itself, whose version nothing bounds.
        notes: what was left out and why.
    """
    asked: dict[str, list[Requirement]] = {}
    for line in lines:
        requirement = Requirement(line.requirement)
        if holds(requirement, python):
            asked.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    found: dict[str, Requirement] = {}
    for item in declared:
        bound = _bound(item, python, notes)
        if bound is None or canonicalize_name(bound.name) == canonicalize_name(project or ""):
            continue
        name = canonicalize_name(bound.name)
        others = [*asked.get(name, []), *([found[name]] if name in found else [])]
        if all(satisfiable(bound.specifier & other.specifier) for other in others):
            known = found.setdefault(name, bound)
            known.specifier &= bound.specifier
        else:
            notes.append(f"{item.source}: the constraint {bound} contradicts {others[0]} and is left out")
    return tuple(str(bound) for bound in list(found.values())[:_MOST])


def _bound(item: Declared, python: str, notes: list[str]) -> Requirement | None:
    try:
        requirement = requirement_of(item.text)
    except InvalidRequirement:
        notes.append(f"{item.source}: {item.text!r} is no constraint")
        return None
    if requirement.url is not None or not requirement.specifier or not holds(requirement, python):
        return None
    requirement.extras = set()
    requirement.marker = None
    return requirement
