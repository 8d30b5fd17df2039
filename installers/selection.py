"""Which declared groups of requirements the tests need: those named like tests, else those named like development."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from packaging.utils import canonicalize_name

from installers.requirements import asks_for_own_extras, name_of
from installers.tools import PLUGINS, TOOL_PREFIXES, TOOLS, is_for_testing
from miner.project.model import Declared, Group, GroupKind
from miner.project.requirement_files import RUN
from miner.project.text import words
from miner.project.tox_factors import expand_braces, is_ordinary, other_factors

_TEST_WORDS = words("test tests testing pytest unittest unittests unit")
_DEV_NAMES = words("dev devel develop development developer ci local default dev-packages")
_ALL_NAMES = words("all complete full everything")
_BESIDE = frozenset({RUN, "packages"})
_OTHER_WORDS = words(
    """
    doc docs lint linting mypy typing types typecheck style format bench benchmark benchmarks cov coverage release gpu
    cuda windows win macos binder upstream asv
    """
)


def choose(
    groups: Sequence[Group],
    python: str,
    folders: Iterable[str],
    notes: list[str],
    known: frozenset[str] = frozenset(),
) -> tuple[Group, ...]:
    """Return the groups that the tests need, tools that no test needs taken out of development groups.

    Those for tests, and one tox environment. Where these hold nothing but tools, or no pytest, those for development.
    Where these ask for no extra of the project, the extras that those for development ask for.
    Where there are none, or where they hold nothing but what runs tests, what is listed beside the run-time
    dependencies: a requirements file, a Pipfile, an extra with everything, at last a conda file.

    Args:
        groups: everything that is declared.
        python: "3.11", for the sections of tox.ini.
        folders: the folders of the tests that are going to run; a requirements file in one of them is theirs.
        notes: what was left out and why.
        known: names of the run-time dependencies: a list of these alone says nothing about tests.
    """
    tox = _tox(groups, python)
    others = [group for group in groups if group.kind not in (GroupKind.TOX, GroupKind.CONDA)]
    tests = [group for group in others if is_test_group(group.name) or group.kind is GroupKind.TESTS_REQUIRE]
    tests += [group for group in others if _lies_in(group, folders) and group not in tests]
    chosen = [*tests, *tox]
    if _say_something(chosen):
        chosen += _with_pytest(_development(others), chosen, notes)
        chosen += _own_extras(_development(others)) if not any(_has_own_extras(group) for group in chosen) else []
        if not _say_something(chosen, is_for_testing):
            beside = (_beside(others), _everything(others))
            more = next((some for some in beside if _say_something(some, known.__contains__)), [])
            chosen += [without_tools(group, notes) for group in more]
        return tuple(chosen)
    for fallback in (_development(others), _beside(others), _everything(others), _conda(groups, python)):
        chosen += [without_tools(group, notes) for group in fallback]
        if _say_something(chosen, known.__contains__):
            break
    return tuple(chosen)


def _say_something(groups: Iterable[Group], is_known: Callable[[str], bool] = lambda _: False) -> bool:
    """Whether groups ask for more than tools and what is known without them.

    Args:
        groups: some groups.
        is_known: whether a distribution of this name says nothing.
    """
    return any(
        group.extras
        or group.groups
        or not all(is_known(name_of(item.text)) for item in without_tools(group, []).requirements)
        for group in groups
    )


def without_tools(group: Group, notes: list[str]) -> Group:
    """Take out what no test imports."""
    return _without(TOOLS, group, notes)


def _with_pytest(development: Iterable[Group], chosen: Iterable[Group], notes: list[str]) -> list[Group]:
    """Return the development groups that ask for pytest where the chosen ones do not: they hold its plug-ins too."""
    if any(_asks_for_pytest(group) for group in chosen):
        return []
    return [without_tools(group, notes) for group in development if _asks_for_pytest(group)]


def _own_extras(development: Iterable[Group]) -> list[Group]:
    """Return the development groups with nothing but the extras of the project that they ask for (`-e .[all]`)."""
    found = []
    for group in development:
        own = tuple(item for item in group.requirements if asks_for_own_extras(item.text))
        if own:
            found.append(Group(name=group.name, kind=group.kind, requirements=own))
    return found


def _has_own_extras(group: Group) -> bool:
    return bool(group.extras) or any(asks_for_own_extras(item.text) for item in group.requirements)


def _asks_for_pytest(group: Group) -> bool:
    return bool(group.extras or group.groups) or any(name_of(item.text) == "pytest" for item in group.requirements)


def _development(groups: Iterable[Group]) -> list[Group]:
    return [group for group in groups if canonicalize_name(group.name) in _DEV_NAMES]


def _beside(groups: Iterable[Group]) -> list[Group]:
    return [group for group in groups if group.kind in (GroupKind.FILE, GroupKind.PIPFILE) and group.name in _BESIDE]


def _everything(groups: Iterable[Group]) -> list[Group]:
    return [group for group in groups if group.kind is GroupKind.EXTRA and group.name in _ALL_NAMES][:1]


def _conda(groups: Iterable[Group], python: str) -> list[Group]:
    """Take the one conda environment that is likeliest for the tests, by its path; the nearest one where none is."""
    found = [group for group in groups if group.kind is GroupKind.CONDA]
    return sorted(found, key=lambda group: _conda_rank(group.name, python))[:1]


def _conda_rank(path: str, python: str) -> tuple[bool, bool, bool, bool]:
    parts = frozenset(re.split(r"[-_./]", path.lower()))
    pythons = {python.replace(".", ""), f"py{python.replace('.', '')}"}
    return (
        bool(parts & _OTHER_WORDS),
        not (parts & pythons or python in path),
        not parts & _TEST_WORDS,
        not parts & _DEV_NAMES,
    )


def without_plugins(declared: Iterable[Declared], notes: list[str]) -> tuple[Declared, ...]:
    """Take out what is left out wherever it is asked for."""
    return _without(PLUGINS, Group(name="", kind=GroupKind.EXTRA, requirements=tuple(declared)), notes).requirements


def is_test_group(name: str) -> bool:
    """Whether a group's name says that it is for tests ("test", "tests-unit"), and not for something beside them."""
    words = re.split(r"[-_.]", name.lower())
    return bool(_TEST_WORDS.intersection((words[0], words[-1]))) and not _OTHER_WORDS.intersection(words)


def _lies_in(group: Group, folders: Iterable[str]) -> bool:
    """Whether a requirements file lies in a folder of the tests."""
    places = {item.source.rpartition("/")[0] for item in group.requirements}
    return group.kind is GroupKind.FILE and bool(places - {""} & {folder for folder in folders if folder})


def _tox(groups: Iterable[Group], python: str) -> list[Group]:
    """Take the one tox environment that fits: of this Python, else the general one, else one named like tests.

    Of several for one Python the last one is taken, the newest by custom, unless its factors say that it is unusual.
    """
    found = {group.name: group for group in groups if group.kind is GroupKind.TOX}
    short = (f"py{python.replace('.', '')}", python)
    fitting = [
        group
        for name, group in found.items()
        if any(part in short for env in expand_braces(name.partition(":")[2]) for part in env.split("-"))
    ]
    if fitting:
        return (_ordinary(fitting) or fitting)[-1:]
    if "testenv" in found:
        return [found["testenv"]]
    return [group for name, group in found.items() if is_test_group(name.partition(":")[2])][:1]


def _ordinary(groups: Iterable[Group]) -> list[Group]:
    names = ((group, expand_braces(group.name.partition(":")[2])) for group in groups)
    return [group for group, envs in names if all(is_ordinary(other_factors(env)) for env in envs)]


def _without(unwanted: Mapping[str, str], group: Group, notes: list[str]) -> Group:
    kept: list[Declared] = []
    for item in group.requirements:
        name = name_of(item.text)
        prefixes = TOOL_PREFIXES if unwanted is TOOLS else ()
        reason = unwanted.get(name) or next((why for prefix, why in prefixes if name.startswith(prefix)), None)
        if reason is None:
            kept.append(item)
        else:
            notes.append(f"{item.source}: {name} is left out: it {reason}")
    return group.model_copy(update={"requirements": tuple(kept)})
