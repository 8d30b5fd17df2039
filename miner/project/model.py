"""What a repository tree declares about itself: records only."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

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


class Job(Record):
    """What one job of a CI file installs and runs; a Dockerfile, a Makefile target or a nox session is one too.

    Attributes:
        source: file and job (".github/workflows/test.yml: test").
        pythons: "3.8", in the order in which they are named; those of a matrix all.
        system_packages: names of Debian packages that it installs.
        requirements: what it installs by pip and the like, requirements files read.
        constraints: what bounds versions without asking for anything.
        extras: of the project itself.
        groups: dependency groups (PEP 735, poetry, pdm) of the project.
        env: variables that it sets for its commands, without secrets and expressions.
        commands: shell commands in order, substitutions resolved as far as that is possible.
        services: containers that run beside it ("redis", "postgres:13").
        tests: whether it runs tests.
        notes: what was left out and why: other systems than Linux, what is too strange to follow.
    """

    source: str
    pythons: tuple[str, ...] = ()
    system_packages: tuple[str, ...] = ()
    requirements: tuple[Declared, ...] = ()
    constraints: tuple[Declared, ...] = ()
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    commands: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    tests: bool = False
    notes: tuple[str, ...] = ()


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
