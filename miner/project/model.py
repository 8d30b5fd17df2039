"""What a repository tree declares about itself: records only."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

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
    PIPFILE = "pipfile"
    CONDA = "conda-environment"


class Group(Record):
    """A named group of requirements.

    Attributes:
        extras: of the project itself that the group asks for.
        groups: dependency groups of the project that it asks for.
        constraints: bounds on versions, which ask for nothing themselves.
        system_packages: Debian packages, where a conda environment lists something that is no Python package.
    """

    name: str
    kind: GroupKind
    requirements: tuple[Declared, ...] = ()
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    constraints: tuple[Declared, ...] = ()
    system_packages: tuple[str, ...] = ()


class Traps(Record):
    """What in a declaration is known to break with later tools.

    Attributes:
        use_2to3: setuptools 58 and later refuse it.
        pkg_resources: the build imports pkg_resources.
        namespace_packages: the packages themselves import pkg_resources when they are imported.
    """

    use_2to3: bool = False
    pkg_resources: bool = False
    namespace_packages: bool = False

    def __or__(self, other: Traps) -> Traps:
        """Return what either holds."""
        return Traps(
            use_2to3=self.use_2to3 or other.use_2to3,
            pkg_resources=self.pkg_resources or other.pkg_resources,
            namespace_packages=self.namespace_packages or other.namespace_packages,
        )


class PythonHint(Record):
    """A Python that a file names, which binds nobody: "3.8", and where it stands."""

    kind: Literal["tox", "pinned"]
    version: str
    source: str


class Native(Record):
    """What is compiled when the project is built, as far as that is static.

    Attributes:
        languages: of the sources in the project's folder ("c", "cython", "rust", ...), whether or not they are built.
        builds: the build makes extension modules.
        optional: it goes on without them where they cannot be built.
        sources: where that is said.
    """

    languages: tuple[str, ...] = ()
    builds: bool = False
    optional: bool = False
    sources: tuple[str, ...] = ()


class Declarations(Record):
    """What one file declares; None and empty mean "not said here".

    Attributes:
        constraints: bounds on versions of what the run-time dependencies lead to.
        overrides: requirements that win over what anything asks for.
        build_constraints: bounds on versions of what is used to build.
        local: name of a distribution -> folder of the repository where it lies.
        pythons: versions of Python that are named beside `requires_python`.
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
    constraints: tuple[Declared, ...] = ()
    overrides: tuple[Declared, ...] = ()
    build_constraints: tuple[Declared, ...] = ()
    local: tuple[tuple[str, str], ...] = ()
    pythons: tuple[PythonHint, ...] = ()
    traps: Traps = Traps()
    native: Native = Native()
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
        constraints, overrides, build_constraints, pythons: as in `Declarations`, of all files together.
        local: name of a distribution -> its folder in the repository: paths that the project itself asks for.
        submodules: folders that are git submodules.
        lfs: patterns of the files that git LFS keeps elsewhere.
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
    constraints: tuple[Declared, ...] = ()
    overrides: tuple[Declared, ...] = ()
    build_constraints: tuple[Declared, ...] = ()
    local: tuple[tuple[str, str], ...] = ()
    pythons: tuple[PythonHint, ...] = ()
    traps: Traps = Traps()
    native: Native = Native()
    submodules: tuple[str, ...] = ()
    lfs: tuple[str, ...] = ()
    installable: bool = False
    unreadable: str | None = None
    notes: tuple[str, ...] = ()
