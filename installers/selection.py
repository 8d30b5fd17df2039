"""Which declared groups of requirements the tests need: those named like tests, else those named like development."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from packaging.utils import canonicalize_name

from installers.requirements import name_of
from miner.project.model import Declared, Group, GroupKind
from miner.project.requirement_files import RUN
from miner.project.tox_factors import expand_braces, is_ordinary, other_factors

_TEST_WORDS = frozenset({"test", "tests", "testing", "pytest", "unittest", "unittests", "unit"})
_DEV_NAMES = frozenset({"dev", "devel", "develop", "development", "developer", "ci", "local", "default"}) | {
    "dev-packages"
}
_ALL_NAMES = frozenset({"all", "complete", "full", "everything"})
_BESIDE = frozenset({RUN, "packages"})
_OTHER_WORDS = frozenset(
    {"doc", "docs", "lint", "linting", "mypy", "typing", "types", "typecheck", "style", "format", "bench", "benchmark"}
    | {"benchmarks", "cov", "coverage", "release", "gpu", "cuda", "windows", "win", "macos"}
)

_LINTER = "checks style"
_TYPES = "checks types"
_DOCS = "builds documentation"
_COVERAGE = "measures coverage"
_RELEASE = "builds and publishes releases"
_WORKFLOW = "runs other tools"
_CONSOLE = "is for a person at a terminal"

# Tools that come with development groups and that no test imports; a test group that lists one of them keeps it.
TOOLS: Mapping[str, str] = {
    **dict.fromkeys(
        ("black", "flake8", "pylint", "ruff", "isort", "autopep8", "yapf", "pycodestyle", "pydocstyle"), _LINTER
    ),
    **dict.fromkeys(
        ("bandit", "codespell", "interrogate", "pyupgrade", "vulture", "autoflake", "blacken-docs"), _LINTER
    ),
    **dict.fromkeys(("darglint", "docformatter", "check-manifest", "pyroma", "safety", "pip-audit", "doc8"), _LINTER),
    **dict.fromkeys(("mypy", "pyright", "basedpyright", "pytype", "pyre-check", "typeguard-stubs"), _TYPES),
    **dict.fromkeys(
        ("sphinx", "furo", "mkdocs", "mkdocs-material", "mkdocstrings", "pdoc", "pdoc3", "myst-parser"), _DOCS
    ),
    **dict.fromkeys(("numpydoc", "towncrier", "rstcheck", "recommonmark", "nbsphinx", "mdformat"), _DOCS),
    **dict.fromkeys(("coverage", "pytest-cov", "codecov", "coveralls", "codacy-coverage", "diff-cover"), _COVERAGE),
    **dict.fromkeys(("build", "twine", "bump2version", "bumpversion", "bump-my-version", "zest-releaser"), _RELEASE),
    **dict.fromkeys(
        ("commitizen", "python-semantic-release", "git-changelog", "hatch", "flit", "poetry", "pdm"), _RELEASE
    ),
    **dict.fromkeys(
        ("tox", "tox-gh-actions", "tox-uv", "nox", "pre-commit", "invoke", "duty", "poethepoet"), _WORKFLOW
    ),
    **dict.fromkeys(("pip-tools", "pip-compile-multi", "pyinstaller", "pyperf", "asv"), _WORKFLOW),
    **dict.fromkeys(
        ("ipython", "ipdb", "jupyter", "jupyterlab", "notebook", "bpython", "pudb", "pytest-sugar"), _CONSOLE
    ),
}
# Plug-ins that change what pytest collects or in which order, wherever they are asked for.
_LINT_PLUGIN = "adds checks of style to the tests"
PLUGINS: Mapping[str, str] = {
    **dict.fromkeys(("pytest-enabler", "pytest-ruff", "pytest-mypy", "pytest-checkdocs", "pytest-black"), _LINT_PLUGIN),
    **dict.fromkeys(("pytest-black-multipy", "pytest-flake8", "pytest-pylint", "pytest-isort"), _LINT_PLUGIN),
    **dict.fromkeys(("pytest-pycodestyle", "pytest-codestyle", "pytest-pydocstyle", "pytest-flakes"), _LINT_PLUGIN),
    **dict.fromkeys(("pytest-perf", "pytest-pep8"), _LINT_PLUGIN),
    **dict.fromkeys(("pytest-randomly", "pytest-random-order", "pytest-reverse"), "changes the order of the tests"),
}
_TOOL_PREFIXES = (
    ("sphinx-", _DOCS),
    ("sphinxcontrib-", _DOCS),
    ("mkdocs-", _DOCS),
    ("flake8-", _LINTER),
    ("types-", _TYPES),
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
    Where there are none, what is listed beside the run-time dependencies: a requirements file, a Pipfile, an extra with
    everything, a conda file.

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
    if _says_something(chosen):
        return (*chosen, *_with_pytest(_development(others), chosen, notes))
    for fallback in (_development(others), _beside(others), _everything(others), _conda(groups)):
        chosen += [_without(TOOLS, group, notes) for group in fallback]
        if _says_something(chosen, known):
            break
    return tuple(chosen)


def _says_something(groups: Iterable[Group], known: frozenset[str] = frozenset()) -> bool:
    """Whether there is more in some groups than tools and what is known without them."""
    return any(
        group.extras
        or group.groups
        or any(name_of(item.text) not in known for item in _without(TOOLS, group, []).requirements)
        for group in groups
    )


def _with_pytest(development: Iterable[Group], chosen: Iterable[Group], notes: list[str]) -> list[Group]:
    """Return the development groups that ask for pytest where the chosen ones do not: they hold its plug-ins too."""
    if any(_asks_for_pytest(group) for group in chosen):
        return []
    return [_without(TOOLS, group, notes) for group in development if _asks_for_pytest(group)]


def _asks_for_pytest(group: Group) -> bool:
    return bool(group.extras or group.groups) or any(name_of(item.text) == "pytest" for item in group.requirements)


def _development(groups: Iterable[Group]) -> list[Group]:
    return [group for group in groups if canonicalize_name(group.name) in _DEV_NAMES]


def _beside(groups: Iterable[Group]) -> list[Group]:
    return [group for group in groups if group.kind in (GroupKind.FILE, GroupKind.PIPFILE) and group.name in _BESIDE]


def _everything(groups: Iterable[Group]) -> list[Group]:
    return [group for group in groups if group.kind is GroupKind.EXTRA and group.name in _ALL_NAMES][:1]


def _conda(groups: Iterable[Group]) -> list[Group]:
    """Take the one conda environment that is likeliest for the tests: by its name, else the first, the nearest."""
    found = [group for group in groups if group.kind is GroupKind.CONDA]
    named = [group for group in found if _TEST_WORDS.intersection(re.split(r"[-_.]", group.name.lower()))]
    developing = [group for group in found if _DEV_NAMES.intersection(re.split(r"[-_.]", group.name.lower()))]
    return (named or developing or found)[:1]


def without_plugins(declared: Iterable[Declared], notes: list[str]) -> tuple[Declared, ...]:
    """Take out the plug-ins that change what is collected or in which order."""
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
        prefixes = _TOOL_PREFIXES if unwanted is TOOLS else ()
        reason = unwanted.get(name) or next((why for prefix, why in prefixes if name.startswith(prefix)), None)
        if reason is None:
            kept.append(item)
        else:
            notes.append(f"{item.source}: {name} is left out: it {reason}")
    return group.model_copy(update={"requirements": tuple(kept)})
