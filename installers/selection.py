"""Which declared groups of requirements the tests need: those named like tests, else those named like development."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from miner.project.model import Declared, Group, GroupKind
from miner.project.tox_ini import expand_braces
from miner.project.versions import requirement_of

_TEST_WORDS = frozenset({"test", "tests", "testing", "pytest", "unittest", "unittests", "unit"})
_DEV_NAMES = frozenset({"dev", "devel", "develop", "development", "developer", "ci", "local", "default"})
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


def choose(groups: Sequence[Group], python: str, folders: Iterable[str], notes: list[str]) -> tuple[Group, ...]:
    """Return the groups that the tests need, tools that no test needs taken out of development groups.

    Args:
        groups: everything that is declared.
        python: "3.11", for the sections of tox.ini.
        folders: the folders of the tests that are going to run; a requirements file in one of them is theirs.
        notes: what was left out and why.
    """
    tox = _tox(groups, python)
    others = [group for group in groups if group.kind is not GroupKind.TOX]
    tests = [group for group in others if is_test_group(group.name) or group.kind is GroupKind.TESTS_REQUIRE]
    tests += [group for group in others if _lies_in(group, folders) and group not in tests]
    chosen = [*tests, *tox]
    if not any(group.extras or _without(TOOLS, group, []).requirements for group in chosen):
        development = [group for group in others if canonicalize_name(group.name) in _DEV_NAMES]
        chosen += [_without(TOOLS, group, notes) for group in development]
    return tuple(chosen)


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
    """Take the one tox environment that fits: of this Python, else the general one, else one named like tests."""
    found = {group.name: group for group in groups if group.kind is GroupKind.TOX}
    short = f"py{python.replace('.', '')}"
    for name, group in found.items():
        if any(short == part for env in expand_braces(name.partition(":")[2]) for part in env.split("-")):
            return [group]
    if "testenv" in found:
        return [found["testenv"]]
    return [group for name, group in found.items() if is_test_group(name.partition(":")[2])][:1]


def _without(unwanted: Mapping[str, str], group: Group, notes: list[str]) -> Group:
    kept: list[Declared] = []
    for item in group.requirements:
        name = _name(item.text)
        prefixes = _TOOL_PREFIXES if unwanted is TOOLS else ()
        reason = unwanted.get(name) or next((why for prefix, why in prefixes if name.startswith(prefix)), None)
        if reason is None:
            kept.append(item)
        else:
            notes.append(f"{item.source}: {name} is left out: it {reason}")
    return group.model_copy(update={"requirements": tuple(kept)})


def _name(text: str) -> str:
    try:
        return canonicalize_name(requirement_of(text).name)
    except InvalidRequirement:
        return ""
