"""The leanest reading of what tests need: one group for tests, nothing beside it, versions of tools left open."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from installers.requirements import name_of
from installers.selection import is_test_group, without_tools
from installers.tools import is_for_testing
from miner.project.model import Declared, Group, GroupKind

_KINDS = (
    GroupKind.DEPENDENCY_GROUP,
    GroupKind.EXTRA,
    GroupKind.TESTS_REQUIRE,
    GroupKind.HATCH,
    GroupKind.TOX,
    GroupKind.FILE,
    GroupKind.PIPFILE,
)


def lean_groups(chosen: Sequence[Group], notes: list[str]) -> tuple[Group, ...]:
    """Return the first group that is for tests, else what in the others is known to be imported by tests."""
    tests = [group for group in chosen if _is_for_tests(group) and (group.requirements or group.extras or group.groups)]
    if tests:
        first = min(tests, key=lambda group: _KINDS.index(group.kind) if group.kind in _KINDS else len(_KINDS))
        left = [group.name for group in chosen if group is not first]
        notes.extend(f"{name}: left out, {first.name} of {first.kind} is taken alone" for name in left)
        return (_open(first, without_tools(first, notes).requirements),)
    kept = [
        _open(group, [item for item in group.requirements if is_for_testing(name_of(item.text))]) for group in chosen
    ]
    return tuple(group for group in kept if group.requirements)


def _is_for_tests(group: Group) -> bool:
    return is_test_group(group.name) or group.kind in (GroupKind.TESTS_REQUIRE, GroupKind.TOX)


def _open(group: Group, requirements: Sequence[Declared]) -> Group:
    """Return a group with exact versions left open, and without constraints and system packages."""
    found = tuple(item.model_copy(update={"text": _loose(item.text)}) for item in requirements)
    return group.model_copy(update={"requirements": found, "constraints": (), "system_packages": ()})


def _loose(text: str) -> str:
    if not name_of(text):
        return text
    requirement = Requirement(text)
    if requirement.url is None and any(one.operator in ("==", "===") for one in requirement.specifier):
        requirement.specifier = SpecifierSet()
    return str(requirement)
