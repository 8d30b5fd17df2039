"""Which job of CI says best what the tests need, and what it needs beside the declared recipe. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from installers.elsewhere import from_index
from installers.interface import Tree
from installers.requirements import expand, name_of
from installers.selection import without_plugins, without_tools
from installers.siblings import Siblings
from miner.project.ci import read_ci
from miner.project.facts import read_project
from miner.project.model import Declared, Group, GroupKind, Job, ProjectFacts

# Words in the name of a job, or of a row of its matrix, that say that it is no ordinary run of the tests.
_UNUSUAL = re.compile(
    r"(?:min|minimum|minimal|oldest|lowest|old|dev|devel|development|nightly|pre|prerelease|alpha|beta|rc|upstream|main|master|trunk"
    r"|integration|e2e|functional|smoke|docs?|documentation|doctests?|examples?|lint|linting|style|typing|types|typecheck"
    r"|mypy|pyright|pylint|flake8|bench|benchmarks?|asv|perf|slow|gpu|cuda|pypy\d*|nodeps|downstream|release|publish|deploy"
    r"|wheels?|emscripten|pyodide|wasm|arm|aarch64|remote|nogil|freethreaded|debug|pure|minver|mindeps)\Z"
)
_LOCAL = re.compile(
    r"(?:.*/)?(?:tox\.ini|tox\.toml|pyproject\.toml|setup\.cfg|noxfile\.py|(?:GNUm|m|M)akefile|[^/]*[Dd]ockerfile[^/]*)(?::|\Z)"
)
# What installs, and what every CI installs beside it.
_INSTALLERS = {
    "pip": "installs packages",
    "wheel": "builds packages",
    "virtualenv": "makes environments",
    "uv": "installs packages",
    "pipenv": "installs packages",
    "pipx": "installs tools",
    "conda": "installs packages",
    "awscli": "talks to a cloud",
    "codecov": "uploads coverage",
    "certifi-win32": "is for Windows",
}
_SETUPTOOLS = frozenset({"setuptools", "distribute"})
_BUILDS = frozenset({"setuptools", "cython"})


@dataclass(frozen=True)
class Needs:
    """What one job needs.

    Attributes:
        requirements: without tools that no test imports, the project's own extras and groups resolved.
        build_constraints: pins of what builds.
        python_path: folders of other projects of the tree, for PYTHONPATH.
        notes: what was left out and why.
    """

    job: Job
    requirements: tuple[Declared, ...]
    build_constraints: tuple[str, ...]
    python_path: str
    notes: tuple[str, ...]


class Project:
    """A tree as the jobs of its CI see it."""

    def __init__(self, tree: Tree, folder: str) -> None:
        """Read the declarations and the CI files of the project in a folder."""
        self.tree, self.folder = tree, folder
        self.facts: ProjectFacts = read_project(tree.files, tree.paths, folder)
        kinds = (GroupKind.DEPENDENCY_GROUP, GroupKind.PIPFILE, GroupKind.EXTRA)
        groups = [(kind, group) for kind in kinds for group in self.facts.groups if group.kind is kind]
        self._named: dict[str, Group] = {canonicalize_name(group.name): group for _, group in groups}
        self._groups = {
            canonicalize_name(group.name): group for kind, group in reversed(groups) if kind is not GroupKind.EXTRA
        }

    def jobs(self, python: str) -> list[Job]:
        """Return the jobs that run tests, the one that says most about an ordinary run first."""
        found = [job for job in read_ci(self.tree.files, self.tree.paths, self.folder) if job.tests]
        return sorted(found, key=lambda job: _rank(job, python))

    def needs(self, job: Job) -> Needs:
        """Return what a job needs for the tests."""
        notes: list[str] = []
        extras = [Declared(text=f".[{extra}]", source=job.source) for extra in job.extras]
        groups = [item for name in job.groups for item in self._group(name, job, notes)]
        kept, build = self._parted([*extras, *groups, *job.requirements], notes)
        resolved, path = self.resolved(kept, notes)
        needed = without_tools(Group(name=job.source, kind=GroupKind.FILE, requirements=resolved), notes)
        wanted = without_plugins(needed.requirements, notes)
        return Needs(job, wanted, build, path, tuple(dict.fromkeys(notes)))

    def runtime(self) -> tuple[Declared, ...]:
        """Return what the project needs to run."""
        return self.resolved(self.facts.runtime, [])[0]

    def resolved(self, declared: Iterable[Declared], notes: list[str]) -> tuple[tuple[Declared, ...], str]:
        """Replace what is about the project itself, its siblings, what the index lacks; say where siblings lie."""
        siblings = Siblings(self.tree.files, self.tree.paths, self.folder, self.facts.local)
        own = list(expand(declared, self._named, self.facts.name, notes))
        found = from_index(siblings.expand(own, notes), notes)
        name = canonicalize_name(self.facts.name or "")
        return tuple(item for item in found if not name or name_of(item.text) != name), siblings.python_path

    def _group(self, name: str, job: Job, notes: list[str]) -> Sequence[Declared]:
        group = self._groups.get(canonicalize_name(name))
        if group is None:
            notes.append(f"{job.source}: the project has no group {name!r}")
            return ()
        return group.requirements

    def _parted(self, declared: Iterable[Declared], notes: list[str]) -> tuple[list[Declared], tuple[str, ...]]:
        """Take installers out; a pinned version of what builds packages bounds builds, and is wanted beside them."""
        kept: list[Declared] = []
        build: list[str] = []
        for item in declared:
            name = name_of(item.text)
            requirement = Requirement(item.text) if name else None
            if name in _INSTALLERS:
                notes.append(f"{item.source}: {name} is left out: it {_INSTALLERS[name]}")
            elif requirement is None or requirement.specifier or name not in _SETUPTOOLS:
                kept.append(item)
            if requirement is not None and requirement.specifier and name in _BUILDS and requirement.marker is None:
                build.append(item.text)
        return kept, tuple(dict.fromkeys(build))


def _rank(job: Job, python: str) -> tuple[bool, int, bool, int]:
    """Services of CI first, then jobs with ordinary names, those on this Python, those that install the most."""
    size = len(job.requirements) + 3 * (len(job.extras) + len(job.groups)) + len(job.system_packages)
    return bool(_LOCAL.match(job.source)), unusual(job), bool(job.pythons) and python not in job.pythons, -size


def unusual(job: Job) -> int:
    """Return how many words in the name of a job say that it is no ordinary run of the tests."""
    name = re.sub(r"\A\S+", "", job.source).lower()
    return sum(1 for word in re.split(r"[^a-z0-9]+", name) if _UNUSUAL.match(word))
