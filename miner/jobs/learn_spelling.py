"""How changes of a recipe are spelt: those that say the same in other words are one. Pure.

What a recipe asks for anew is about a distribution, whatever versions it allows; a bound is about its direction, too
(`<2` and `<=1.9`, but not `>=1`), and a pin about nothing but itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from installers.repair.edits import name_of
from installers.repair.portable import Change

Changes = frozenset[Change]

_ASKED = frozenset({"requirements", "build_requirements"})
_REQUIREMENTS = _ASKED | {"constraints", "overrides", "build_constraints"}
_PINS = frozenset({"=", "~"})
_LOOSE = {">": 1, "!": 1, "<": 2, "=": 3, "~": 3}
"""By the first sign of an operator: how much it rules out that is still to come."""


def names(changes: Iterable[Change]) -> frozenset[str]:
    """Return the normalised names of the distributions that changes are about."""
    return frozenset(name_of(one.item) for one in changes if one.field in _REQUIREMENTS) - {""}


def abouts(changes: Changes) -> dict[Change, Change]:
    """Return of each of some changes what it is about: it is equal for those that only are spelt differently."""
    bounded = {(one.field, name_of(one.item)) for one in changes if one.how == "removed"}
    return {one: _about(one, bounded) for one in changes}


def _about(change: Change, respelt: set[tuple[str, str]]) -> Change:
    wanted = _requirement(change) if change.how == "added" else None
    if wanted is None:
        return change
    name = canonicalize_name(wanted.name)
    signs = {one.operator[0] for one in wanted.specifier}
    if change.field in _ASKED and (change.field, name) not in respelt:
        signs = set()
    elif signs & _PINS:
        return change
    said = f"{name} {sorted(wanted.extras)} {''.join(sorted(signs))} {wanted.marker or ''}"
    return change._replace(item=said)


def _requirement(change: Change) -> Requirement | None:
    try:
        return Requirement(change.item) if change.field in _REQUIREMENTS else None
    except InvalidRequirement:
        return None


def spellings(found: Iterable[tuple[str, Changes]]) -> dict[Change, Change]:
    """Return for each thing that changes are about the spelling that most projects have; of equal ones the loosest.

    Args:
        found: the changes of each project.
    """
    projects: dict[Change, dict[Change, set[str]]] = defaultdict(lambda: defaultdict(set))
    for project, changes in found:
        for change, about in abouts(changes).items():
            projects[about][change].add(project)
    return {
        about: min(known, key=lambda one: (-len(known[one]), _tightness(one), one)) for about, known in projects.items()
    }


def _tightness(change: Change) -> tuple[int, int]:
    wanted = _requirement(change)
    signs = [one.operator[0] for one in wanted.specifier] if wanted is not None else []
    return max((_LOOSE[sign] for sign in signs), default=0), len(signs)


def spelt(changes: Changes, known: Mapping[Change, Change]) -> Changes:
    """Return changes in known spellings."""
    return frozenset(known.get(about, change) for change, about in abouts(changes).items())
