"""One reading of a tree: every declaration file taken together, the standard ones first."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TypeVar

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from miner.project.backends import read_hatch
from miner.project.built import read_built
from miner.project.conda import read_conda
from miner.project.declaration_files import is_conda, is_declaration
from miner.project.git_files import read_lfs, read_submodules
from miner.project.layout import find_layout
from miner.project.model import Declarations, Declared, Group, GroupKind, ProjectFacts, Traps
from miner.project.native import read_native
from miner.project.pipfile import read_pipfile
from miner.project.pyproject import read_pyproject
from miner.project.python_files import read_python_files
from miner.project.requirement_files import RUN, requirement_files
from miner.project.requirements import read_requirements_file
from miner.project.setup_cfg import read_setup_cfg
from miner.project.setup_py import read_setup_py
from miner.project.text import read_toml
from miner.project.tox_ini import read_tox
from miner.project.tox_toml import read_tox_toml
from miner.project.versions import requirement_of
from miner.project.workspace import is_project, project_folder

__all__ = ["is_declaration", "project_folder", "read_project"]

_NEAREST = 2  # folders between a project and its conda files
_MOST_CONDA = 20
_ASIDE = frozenset({"docs", "doc", ".binder", "binder"})
_VERSION_TOOLS = (
    "setuptools-scm",
    "hatch-vcs",
    "pbr",
    "versioneer",
    "poetry-dynamic-versioning",
    "setuptools-git-versioning",
    "versioningit",
    "flit-scm",
    "uv-dynamic-versioning",
)
# What source distributions that were built with Python 2 ask for without a marker.
_BACKPORT = re.compile(
    r"(?:futures|enum34|functools32|subprocess32|unittest2|pathlib2?|ipaddress|configparser|argparse|ordereddict|typing"
    r"|trollius|singledispatch|contextlib2|backports[.-][\w.-]+)(?![\w.-])",
    re.IGNORECASE,
)
_T = TypeVar("_T")


def read_project(files: Mapping[str, bytes], paths: Sequence[str], folder: str = "") -> ProjectFacts:
    """Return what the files of a tree declare. Nothing is executed, and nothing that is wrong in them raises.

    Args:
        files: path -> content of the declaration files (`is_declaration`).
        paths: every path of the tree.
        folder: the project's folder, "" for the root.
    """
    found = _declarations(files, folder)
    built = read_built(files, folder)
    everything = [*found, built]
    own = requirement_files(files, folder)
    name = _first(item.name for item in everything)
    python = next((item for item in everything if item.requires_python), None)
    backend = _first(item.build_backend for item in found)
    build_requires = _first(item.build_requires for item in found)
    setup_requires = tuple(requirement for item in found for requirement in item.setup_requires)
    asked = (*(build_requires or ()), *setup_requires)
    runtime, constraints = _runtime(found, built, own)
    return ProjectFacts(
        name=name,
        version=_first(item.version for item in found),
        built_version=built.version,
        requires_python=python.requires_python if python else None,
        requires_python_source=python.source if python else "",
        classifiers=tuple(dict.fromkeys(text for item in everything for text in item.classifiers)),
        runtime=runtime,
        groups=_groups(found, built, own),
        build_requires=build_requires,
        build_backend=backend,
        backend_path=_first(item.backend_path or None for item in found) or (),
        setup_requires=setup_requires,
        version_tools=_version_tools(found, asked),
        layout=find_layout(name, found, paths, folder),
        runners=tuple(dict.fromkeys(runner for item in found for runner in item.runners)),
        constraints=(*(one for item in found for one in item.constraints), *constraints),
        overrides=tuple(one for item in found for one in item.overrides),
        build_constraints=tuple(one for item in found for one in item.build_constraints),
        local=tuple(pair for item in found for pair in item.local),
        pythons=(*(hint for item in found for hint in item.pythons), *read_python_files(files, folder)),
        traps=reduce(or_, (item.traps for item in found), Traps()),
        native=read_native(files, paths, folder, backend, asked),
        submodules=read_submodules(files),
        lfs=read_lfs(files),
        installable=is_project(files, folder),
        unreadable=_unreadable(found, backend or "setuptools"),
        notes=tuple(dict.fromkeys(note for item in found for note in item.notes)),
    )


def _runtime(
    found: Sequence[Declarations], built: Declarations, own: Iterable[Group]
) -> tuple[tuple[Declared, ...], tuple[Declared, ...]]:
    """Return what the project needs to run, and the constraints that stand with it.

    What no declaration says is taken from the metadata of a source distribution, else from a requirements file that is
    not for tests or development, else from a Pipfile.
    """
    said = _first(item.runtime for item in found)
    if not said and built.runtime is not None:
        said = tuple(item for item in built.runtime if not _BACKPORT.match(item.text))
    if said is not None:
        return said, ()
    pipfiles = [group for item in found for group in item.groups if group.kind is GroupKind.PIPFILE]
    candidates = [group for group in own if group.name == RUN] + [one for one in pipfiles if one.name == "packages"]
    chosen = candidates[0] if candidates else Group(name="", kind=GroupKind.FILE)
    return chosen.requirements, chosen.constraints


def _groups(found: Iterable[Declarations], built: Declarations, own: tuple[Group, ...]) -> tuple[Group, ...]:
    """Return all groups; of the metadata those extras that no declaration names."""
    declared = [group for item in found for group in item.groups]
    known = {group.name for group in declared if group.kind is GroupKind.EXTRA}
    return (*declared, *(group for group in built.groups if group.name not in known), *own)


def _declarations(files: Mapping[str, bytes], folder: str) -> list[Declarations]:
    """Read all files, the one that wins first: pyproject.toml, arguments of setup(), setup.cfg, the others."""
    readers: list[tuple[str, Callable[[Mapping[str, bytes], str], Declarations]]] = [
        ("setup.py", read_setup_py),
        ("setup.cfg", read_setup_cfg),
        ("tox.ini", read_tox),
        ("tox.toml", read_tox_toml),
        ("pyproject.toml", read_tox_toml),
        ("hatch.toml", _read_hatch_toml),
        ("Pipfile", read_pipfile),
    ]
    found = read_pyproject(files, posixpath.join(folder, "pyproject.toml"))
    for name, read in readers:
        path = posixpath.join(folder, name)
        if path in files:
            found.append(read(files, path))
    found += [read_conda(files, path) for path in _conda_files(files, folder)]
    return [*found, *_pbr(files, folder, found)]


def _conda_files(files: Mapping[str, bytes], folder: str) -> list[str]:
    """Return the conda files of a project's folder and of those right below it, the nearest first."""
    prefix = f"{folder}/" if folder else ""
    inner = {path: path.removeprefix(prefix) for path in files if path.startswith(prefix) and is_conda(path)}
    near = [path for path, name in inner.items() if name.count("/") <= _NEAREST and not _ASIDE & {*name.split("/")}]
    return sorted(near, key=lambda path: (inner[path].count("/"), path))[:_MOST_CONDA]


def _read_hatch_toml(files: Mapping[str, bytes], path: str) -> Declarations:
    notes: list[str] = []
    return read_hatch(read_toml(files, path, notes), path, notes).model_copy(update={"notes": tuple(notes)})


def _pbr(files: Mapping[str, bytes], folder: str, found: Iterable[Declarations]) -> list[Declarations]:
    """With pbr the run-time dependencies are the lines of requirements.txt."""
    path = posixpath.join(folder, "requirements.txt")
    if path not in files or not any("pbr" in item.version_tools for item in found):
        return []
    notes: list[str] = []
    read = read_requirements_file(files, path, notes)
    return [
        Declarations(source=path, runtime=read.requirements, constraints=read.constraints, notes=tuple(notes)),
    ]


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


def _unreadable(found: Iterable[Declarations], backend: str) -> str | None:
    """A pyproject.toml that is no TOML stops every front end; a setup.py that is no Python 3 stops setuptools."""
    stops = ("pyproject.toml", "setup.py") if backend.startswith(("setuptools", "pbr")) else ("pyproject.toml",)
    return _first(item.unreadable for item in found if item.source.endswith(stops))


def _first(values: Iterable[_T | None]) -> _T | None:
    return next((value for value in values if value is not None), None)
