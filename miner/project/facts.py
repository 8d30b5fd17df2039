"""One reading of a tree: every declaration file taken together, the standard ones first."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from email.parser import HeaderParser
from typing import TypeVar

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from miner.project.backends import read_hatch
from miner.project.layout import find_layout
from miner.project.model import Declarations, Declared, Group, GroupKind, ProjectFacts
from miner.project.pyproject import read_pyproject
from miner.project.requirements import read_requirements
from miner.project.setup_cfg import read_setup_cfg
from miner.project.setup_py import read_setup_py
from miner.project.text import decode, read_toml, table
from miner.project.tox_ini import read_tox, read_tox_toml
from miner.project.versions import requirement_of

_NAMES = frozenset(
    {
        "pyproject.toml",
        "setup.cfg",
        "setup.py",
        "tox.ini",
        "hatch.toml",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "PKG-INFO",
    }
)
_REQUIREMENTS = re.compile(
    r"(?:^|/)(?:[^/]*(?:require|constraint|deps|pip)[^/]*\.(?:txt|in|pip)|requirements/[^/]+\.(?:txt|in))$", re.I
)
_TEST_FILE = re.compile(
    r"(?:^|/)(?:(?:tests?|testing)[-_]?require[^/]*|require[^/]*?[-_.](?:tests?|testing|unit)|(?:tests?|testing)/require[^/]*"
    r"|requirements/(?:[^/]*[-_])?(?:tests?|testing|pytest|unit)|tests?[-_]deps)\.(?:txt|in|pip)$",
    re.I,
)
_DEV_FILE = re.compile(
    r"(?:^|/)(?:dev(?:el(?:opment)?)?[-_]?require[^/]*|require[^/]*?[-_.]?dev(?:el(?:opment|oper)?)?"
    r"|requirements/(?:[^/]*[-_])?(?:dev(?:el(?:opment)?)?|ci))\.(?:txt|in|pip)$",
    re.I,
)
_VERSION_TOOLS = (
    "setuptools-scm",
    "hatch-vcs",
    "pbr",
    "versioneer",
    "poetry-dynamic-versioning",
    "setuptools-git-versioning",
    "versioningit",
)
_T = TypeVar("_T")


def is_declaration(path: str) -> bool:
    """Whether `read_project` reads this file: what a caller has to hand over in `files`."""
    return posixpath.basename(path) in _NAMES or bool(_REQUIREMENTS.search(path))


def read_project(files: Mapping[str, bytes], paths: Sequence[str], folder: str = "") -> ProjectFacts:
    """Return what the files of a tree declare. Nothing is executed, and nothing that is wrong in them raises.

    Args:
        files: path -> content of the declaration files (`is_declaration`).
        paths: every path of the tree.
        folder: the project's folder, "" for the root.
    """
    found = _declarations(files, folder)
    built = _built(files, folder)
    name = _first(item.name for item in found) or built.get("Name")
    notes = tuple(dict.fromkeys(note for item in found for note in item.notes))
    build_requires = _first(item.build_requires for item in found)
    setup_requires = tuple(requirement for item in found for requirement in item.setup_requires)
    python = next((item for item in found if item.requires_python), None)
    return ProjectFacts(
        name=name,
        version=_first(item.version for item in found),
        built_version=built.get("Version"),
        requires_python=python.requires_python if python else None,
        requires_python_source=python.source if python else "",
        classifiers=tuple(text for item in found for text in item.classifiers),
        runtime=_first(item.runtime for item in found) or (),
        groups=(*(group for item in found for group in item.groups), *_requirement_files(files, folder)),
        build_requires=build_requires,
        build_backend=_first(item.build_backend for item in found),
        backend_path=_first(item.backend_path or None for item in found) or (),
        setup_requires=setup_requires,
        version_tools=_version_tools(found, (*(build_requires or ()), *setup_requires)),
        layout=find_layout(name, found, paths, folder),
        runners=tuple(dict.fromkeys(runner for item in found for runner in item.runners)),
        installable=_installable(files, folder),
        unreadable=_unreadable(found, _first(item.build_backend for item in found) or "setuptools"),
        notes=notes,
    )


def project_folder(paths: Sequence[str]) -> str:
    """Return the folder of the project: the root, or the only folder right below it that holds one."""
    declared = {posixpath.dirname(path) for path in paths if posixpath.basename(path) in ("pyproject.toml", "setup.py")}
    below = [folder for folder in declared if folder and "/" not in folder and folder.isprintable()]
    return below[0] if "" not in declared and len(below) == 1 else ""


def _declarations(files: Mapping[str, bytes], folder: str) -> list[Declarations]:
    """Read all files, the one that wins first: pyproject.toml, arguments of setup(), setup.cfg, the others."""
    readers: list[tuple[str, Callable[[Mapping[str, bytes], str], Declarations]]] = [
        ("setup.py", read_setup_py),
        ("setup.cfg", read_setup_cfg),
        ("tox.ini", read_tox),
        ("pyproject.toml", read_tox_toml),
        ("hatch.toml", _read_hatch_toml),
    ]
    found = read_pyproject(files, posixpath.join(folder, "pyproject.toml"))
    for name, read in readers:
        path = posixpath.join(folder, name)
        if path in files:
            found.append(read(files, path))
    return [*found, *_pbr(files, folder, found)]


def _read_hatch_toml(files: Mapping[str, bytes], path: str) -> Declarations:
    notes: list[str] = []
    return read_hatch(read_toml(files, path, notes), path, notes).model_copy(update={"notes": tuple(notes)})


def _pbr(files: Mapping[str, bytes], folder: str, found: Iterable[Declarations]) -> list[Declarations]:
    """With pbr the run-time dependencies are the lines of requirements.txt."""
    path = posixpath.join(folder, "requirements.txt")
    if path not in files or not any("pbr" in item.version_tools for item in found):
        return []
    notes: list[str] = []
    return [Declarations(source=path, runtime=read_requirements(files, path, notes), notes=tuple(notes))]


def _requirement_files(files: Mapping[str, bytes], folder: str) -> list[Group]:
    """Take the requirements files whose name or folder says that they are for tests or for development."""
    prefix = f"{folder}/" if folder else ""
    groups = []
    for path in sorted(files):
        inner = path.removeprefix(prefix)
        name = "tests" if _TEST_FILE.search(inner) else "dev" if _DEV_FILE.search(inner) else None
        if path.startswith(prefix) and name and inner.count("/") <= 2:
            requirements = read_requirements(files, path, [])
            groups.append(Group(name=name, kind=GroupKind.FILE, requirements=requirements))
    return groups


def _built(files: Mapping[str, bytes], folder: str) -> dict[str, str]:
    """Return the metadata that a source distribution carries in its PKG-INFO."""
    path = posixpath.join(folder, "PKG-INFO")
    text = decode(files[path], path, []) if path in files else None
    headers = HeaderParser().parsestr(text or "", headersonly=True)
    return {key: str(value).strip() for key, value in headers.items() if str(value).strip()}


def _version_tools(found: Iterable[Declarations], build: Iterable[Declared]) -> tuple[str, ...]:
    tools = dict.fromkeys(tool for item in found for tool in item.version_tools)
    for requirement in build:
        try:
            name = canonicalize_name(requirement_of(requirement.text).name)
        except InvalidRequirement:
            continue
        if name in _VERSION_TOOLS:
            tools[name] = None
    return tuple(tools)


def _installable(files: Mapping[str, bytes], folder: str) -> bool:
    """Whether a front end finds a project: a setup.py, or a pyproject.toml that is more than settings of tools."""
    if posixpath.join(folder, "setup.py") in files:
        return True
    path = posixpath.join(folder, "pyproject.toml")
    content = read_toml(files, path, [])
    tools = table(content, "tool", path, [])
    if any(key in content for key in ("build-system", "project")) or "poetry" in tools or "flit" in tools:
        return True
    return path in files and read_setup_cfg(files, posixpath.join(folder, "setup.cfg")).name is not None


def _unreadable(found: Iterable[Declarations], backend: str) -> str | None:
    """A pyproject.toml that is no TOML stops every front end; a setup.py that is no Python 3 stops setuptools."""
    stops = ("pyproject.toml", "setup.py") if backend.startswith(("setuptools", "pbr")) else ("pyproject.toml",)
    return _first(item.unreadable for item in found if item.source.endswith(stops))


def _first(values: Iterable[_T | None]) -> _T | None:
    return next((value for value in values if value is not None), None)
