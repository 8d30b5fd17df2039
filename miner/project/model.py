"""What a repository tree declares about itself: records only."""

from __future__ import annotations

from enum import StrEnum

from miner.core.records import Record


class Declared(Record):
    """One requirement as it is declared, with the place where it stands ("pyproject.toml: project.dependencies")."""

    text: str
    source: str


class GroupKind(StrEnum):
    """Where a named group of requirements comes from."""

    EXTRA = "extra"
    DEPENDENCY_GROUP = "dependency-group"
    TESTS_REQUIRE = "tests_require"
    HATCH = "hatch-environment"
    TOX = "tox-environment"
    FILE = "requirements-file"


class Group(Record):
    """A named group of requirements; `extras` are extras of the project itself that the group asks for."""

    name: str
    kind: GroupKind
    requirements: tuple[Declared, ...] = ()
    extras: tuple[str, ...] = ()


class Declarations(Record):
    """What one file declares; None and empty mean "not said here".

    Attributes:
        requires_python: PEP 440 specifiers; alternatives are parted by " || ".
        modules: importable modules or packages that are installed, dotted.
        roots: folders that hold them, "" for the project's folder.
        package_dirs: package -> its folder, where a declaration maps one by name.
        runners: what runs the tests ("pytest", "unittest", ...), as tox says.
    """

    source: str
    name: str | None = None
    version: str | None = None
    requires_python: str | None = None
    classifiers: tuple[str, ...] = ()
    runtime: tuple[Declared, ...] | None = None
    groups: tuple[Group, ...] = ()
    build_requires: tuple[Declared, ...] | None = None
    build_backend: str | None = None
    backend_path: tuple[str, ...] = ()
    setup_requires: tuple[Declared, ...] = ()
    version_tools: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    package_dirs: tuple[tuple[str, str], ...] = ()
    runners: tuple[str, ...] = ()
    unreadable: str | None = None
    notes: tuple[str, ...] = ()


class Layout(Record):
    """Where the importable code is: `top_level` names lie in `root`, a folder below the project's."""

    top_level: tuple[str, ...] = ()
    root: str = ""

    @property
    def src(self) -> bool:
        """Whether the code is not importable from the project's folder itself."""
        return bool(self.root)


class ProjectFacts(Record):
    """What a tree declares, all files taken together.

    Attributes:
        installable: there is a project that a front end such as pip can build.
        unreadable: why the declaration of the build cannot be parsed, or None.
        built_version: the version in the PKG-INFO of a source distribution.
        version_tools: what computes the version from the version control system, by the name of the distribution.
    """

    name: str | None = None
    version: str | None = None
    built_version: str | None = None
    requires_python: str | None = None
    requires_python_source: str = ""
    classifiers: tuple[str, ...] = ()
    runtime: tuple[Declared, ...] = ()
    groups: tuple[Group, ...] = ()
    build_requires: tuple[Declared, ...] | None = None
    build_backend: str | None = None
    backend_path: tuple[str, ...] = ()
    setup_requires: tuple[Declared, ...] = ()
    version_tools: tuple[str, ...] = ()
    layout: Layout = Layout()
    runners: tuple[str, ...] = ()
    installable: bool = False
    unreadable: str | None = None
    notes: tuple[str, ...] = ()
