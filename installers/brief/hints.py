"""Hints by which first tries differ: each a way that a person would take, with the reason why it may work. Pure.

Several cheap tries that differ are worth more than one long one. What the failures so far point to comes first, then
what the tree has something for, then what fits any project.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from packaging.version import Version

from installers.interface import Attempt, Question
from installers.python_hints import hints_of
from installers.pythons import Hints
from installers.repair.kinds import Kind
from miner.core.reasons import Reason
from miner.project.ci import is_ci
from miner.project.declaration_files import is_conda, is_requirements
from miner.project.facts import read_project
from miner.project.model import GroupKind, ProjectFacts

_POINTED, _FOUND, _ANY = 2, 1, 0
_VERSIONS = frozenset(
    {
        *(Kind.MISSING_NAME, Kind.MISSING_ATTRIBUTE, Kind.UNEXPECTED_ARGUMENT, Kind.BINARY_MISMATCH, Kind.TEXT),
        *(Kind.UNKNOWN_HOOK, Kind.STRICT_METADATA, Kind.OLD_WHEEL, Kind.CYTHON_LANGUAGE, Kind.WARNING_AS_ERROR),
        *(Kind.BUILD_NEEDS_NAME, Kind.USE_2TO3, Kind.FLAT_LAYOUT),
    }
)
_MODULES = frozenset(
    {
        *(Kind.MISSING_MODULE, Kind.MISSING_PLUGIN, Kind.MISSING_FIXTURE, Kind.UNKNOWN_OPTION, Kind.ASYNC_PLUGIN),
        *(Kind.UNKNOWN_MARK, Kind.UNKNOWN_INI),
    }
)
_SYSTEM = frozenset({Kind.MISSING_HEADER, Kind.MISSING_LIBRARY, Kind.MISSING_TOOL, Kind.LOCALE})
_TOO_MUCH = frozenset(
    {
        *(Kind.NO_SOLUTION, Kind.NOT_ON_INDEX, Kind.NO_WHEEL, Kind.NO_VERSION, Kind.BUILD_FAILED, Kind.TIME_OUT),
        *(Kind.NEWER_THAN_DATE, Kind.INVALID_METADATA),
    }
)
_PYTHON = frozenset({Kind.PYTHON_MISMATCH, Kind.OLDER_SYNTAX, Kind.NEWER_SYNTAX, Kind.NO_WHEEL, Kind.PYTHON_2_SYNTAX})


@dataclass(frozen=True)
class Look:
    """What hints are chosen by.

    Attributes:
        question: with the tree.
        best: the attempt that came furthest; None where nothing was tried.
    """

    question: Question
    best: Attempt | None

    @cached_property
    def facts(self) -> ProjectFacts:
        """What the tree declares."""
        tree = self.question.tree
        return read_project(tree.files, tree.paths, self.question.declared.project_dir)

    @cached_property
    def pythons(self) -> Hints:
        """What the tree says of Pythons."""
        tree = self.question.tree
        return hints_of(self.facts, tree.files, tree.paths, self.question.declared.project_dir)

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of the failures of the attempt that came furthest."""
        return frozenset(one.kind for one in self.best.signatures) if self.best is not None else frozenset()

    @property
    def files(self) -> Sequence[str]:
        """Paths of the declaration files."""
        return tuple(self.question.tree.files)


@dataclass(frozen=True)
class Hint:
    """One way to go about a recipe.

    Attributes:
        name: for people.
        text: what the model is told.
        why: why it may work.
        fits: 2 where the failures so far point to it, 1 where the tree has something for it, 0 where neither is so.
        needs: it makes no sense where this does not hold.
    """

    name: str
    text: str
    why: str
    fits: Callable[[Look], int]
    needs: Callable[[Look], bool] = lambda _: True


def _pointed(*kinds: frozenset[Kind]) -> Callable[[Look], int]:
    wanted = frozenset(kind.value for group in kinds for kind in group)
    return lambda look: _POINTED if wanted & look.kinds else _ANY


def _either(pointed: Callable[[Look], int], found: Callable[[Look], bool]) -> Callable[[Look], int]:
    return lambda look: pointed(look) or (_FOUND if found(look) else _ANY)


def _has(test: Callable[[str], bool]) -> Callable[[Look], bool]:
    return lambda look: any(test(path) for path in look.files)


def _older(look: Look) -> bool:
    """Whether the project names an older Python than the declared recipe takes."""
    taken = Version(look.question.declared.python)
    return any(version.major == taken.major and version < taken for version in look.pythons.named)


def _other_groups(look: Look) -> bool:
    kinds = (GroupKind.EXTRA, GroupKind.DEPENDENCY_GROUP, GroupKind.TOX, GroupKind.FILE, GroupKind.HATCH)
    return any(group.kind in kinds for group in look.facts.groups)


def _too_much(look: Look) -> int:
    refused = look.best is not None and look.best.outcome in (Reason.LOCK_FAILED, Reason.BUILD_FAILED)
    return _POINTED if refused else _pointed(_TOO_MUCH)(look)


HINTS: tuple[Hint, ...] = (
    Hint(
        "continuous integration",
        "Do what the project's own CI does to run its tests: its Python, its system packages, its variables, and what"
        " it installs beside the project.",
        "what CI does is known to have worked on the day",
        _either(_pointed(_SYSTEM, _MODULES), _has(is_ci)),
        _has(is_ci),
    ),
    Hint(
        "conda environment",
        "Take the conda environment files as the source: Python packages under their names on the package index, and"
        " what is no Python package (compilers, C libraries, programs) as Debian packages.",
        "a project with conda files is often not complete without the libraries that conda brings",
        _either(_pointed(_SYSTEM), _has(is_conda)),
        _has(is_conda),
    ),
    Hint(
        "system packages",
        "Look for what is missing outside of Python: headers, shared libraries, programs. Name the Debian packages that"
        " hold them, and the variables that builds or tests need to find them.",
        "a failed build or import often lacks a library that the author's machine had",
        _pointed(_SYSTEM),
    ),
    Hint(
        "versions of the day",
        "Think of which versions the authors had on the day of the change. Bound what has changed since its interface"
        " as constraints, what contradicts a declaration as overrides, what builds as build_constraints.",
        "open bounds let in a version that the code does not know",
        _pointed(_VERSIONS),
    ),
    Hint(
        "test dependencies",
        "Find everything that the tests and their conftest files import or ask pytest for: test extras, dependency"
        " groups, tox and nox environments, development requirements, plug-ins, lists in words.",
        "test dependencies are often declared where no tool looks for them",
        _either(_pointed(_MODULES), _other_groups),
    ),
    Hint(
        "oldest Python",
        "Take the oldest Python that CI, tox or the classifiers name and that was still supported on the day, and"
        " requirements that fit it.",
        "an older Python has wheels for older pins, and takes code that newer ones refuse",
        _either(_pointed(_PYTHON), _older),
        _older,
    ),
    Hint(
        "minimal",
        "Ask for as little as possible: what the project imports when it runs, what its tests import, and the plug-ins"
        " of pytest that it declares. Leave out linters, documentation, optional extras, and pins that nothing needs.",
        "each requirement less is one that cannot fail",
        _too_much,
    ),
    Hint(
        "requirements files",
        "Take the pinned or frozen requirements files as they stand, also as constraints, rather than the open bounds"
        " of the project's metadata.",
        "a pinned file is a set of versions that worked together once",
        _either(_pointed(_VERSIONS), _has(is_requirements)),
        _has(is_requirements),
    ),
)
"""All hints; of equally fitting ones the first is taken first."""


def hint(question: Question, best: Attempt | None, candidate: int) -> Hint:
    """Return the hint of a candidate: the best fitting for the first one, then the next, over and over."""
    found = hints(question, best)
    return found[candidate % len(found)]


def hints(question: Question, best: Attempt | None) -> tuple[Hint, ...]:
    """Return the hints that make sense for a tree, the best fitting first.

    Args:
        question: with the tree.
        best: the attempt that came furthest; None where nothing was tried.
    """
    look = Look(question, best)
    sensible = [one for one in HINTS if one.needs(look)]
    return tuple(sorted(sensible, key=lambda one: -one.fits(look)))
