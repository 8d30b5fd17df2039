"""pyproject.toml: the standard tables (PEP 517, 518, 621, 735) and, by `backends` and `poetry`, the tools' own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from packaging.utils import canonicalize_name

from miner.project.backends import (
    read_dynamic,
    read_flit,
    read_hatch,
    read_maturin,
    read_pdm,
    read_scikit_build,
    read_setuptools,
    read_uv,
)
from miner.project.model import Declarations, Declared, Group, GroupKind
from miner.project.poetry import read_poetry
from miner.project.text import read_toml, string, strings, table

_TOOL_READERS = {
    "poetry": read_poetry,
    "flit": read_flit,
    "pdm": read_pdm,
    "hatch": read_hatch,
    "setuptools": read_setuptools,
    "uv": read_uv,
    "maturin": read_maturin,
    "scikit-build": read_scikit_build,
}


def read_pyproject(files: Mapping[str, bytes], path: str) -> list[Declarations]:
    """Return what a pyproject.toml declares: the standard tables first, then one item for each known tool."""
    notes: list[str] = []
    content = read_toml(files, path, notes)
    if path in files and notes:
        return [Declarations(source=path, unreadable=notes[-1], notes=tuple(notes))]
    standard = _standard(content, path, notes)
    found = [standard]
    tools = table(content, "tool", path, notes)
    for name, reader in _TOOL_READERS.items():
        own = table(tools, name, f"{path}: tool", notes)
        if own:
            found.append(reader(own, path, notes))
    found.append(read_dynamic(files, tools, path, notes))
    found[0] = standard.model_copy(update={"version_tools": _version_tools(tools), "notes": tuple(notes)})
    return found


def _standard(content: Mapping[str, Any], path: str, notes: list[str]) -> Declarations:
    project = table(content, "project", path, notes)
    build = table(content, "build-system", path, notes)
    where = f"{path}: project"
    dynamic = strings(project.get("dynamic"), f"{where}.dynamic", notes)
    runtime = _declared(project.get("dependencies"), f"{where}.dependencies", notes)
    return Declarations(
        source=path,
        name=string(project.get("name"), f"{where}.name", notes),
        version=string(project.get("version"), f"{where}.version", notes),
        requires_python=string(project.get("requires-python"), f"{where}.requires-python", notes),
        classifiers=strings(project.get("classifiers"), f"{where}.classifiers", notes),
        runtime=runtime if project and (runtime or "dependencies" not in dynamic) else None,
        groups=(*_extras(project, where, notes), *_dependency_groups(content, path, notes)),
        build_requires=_build_requires(content, build, path, notes),
        build_backend=string(build.get("build-backend"), f"{path}: build-system.build-backend", notes),
        backend_path=strings(build.get("backend-path"), f"{path}: build-system.backend-path", notes),
    )


def _build_requires(
    content: Mapping[str, Any], build: Mapping[str, Any], path: str, notes: list[str]
) -> tuple[Declared, ...] | None:
    """None where there is no `[build-system]`: then the legacy default of PEP 517 holds."""
    if "build-system" not in content:
        return None
    if "requires" not in build:
        notes.append(f"{path}: build-system has no `requires`, which PEP 518 demands")
        return None
    return _declared(build["requires"], f"{path}: build-system.requires", notes)


def _extras(project: Mapping[str, Any], where: str, notes: list[str]) -> list[Group]:
    return [
        Group(
            name=name,
            kind=GroupKind.EXTRA,
            requirements=_declared(items, f"{where}.optional-dependencies.{name}", notes),
        )
        for name, items in table(project, "optional-dependencies", where, notes).items()
    ]


def _dependency_groups(content: Mapping[str, Any], path: str, notes: list[str]) -> list[Group]:
    """PEP 735: names are compared normalised, a group may include others, and a cycle is an error (here: a note)."""
    raw = table(content, "dependency-groups", path, notes)
    groups: dict[str, Any] = {canonicalize_name(name): items for name, items in raw.items()}
    return [
        Group(
            name=name,
            kind=GroupKind.DEPENDENCY_GROUP,
            requirements=tuple(dict.fromkeys(_expand(groups, name, path, notes, ()))),
        )
        for name in groups
    ]


def _expand(
    groups: Mapping[str, Any], name: str, path: str, notes: list[str], stack: tuple[str, ...]
) -> Iterator[Declared]:
    where = f"{path}: dependency-groups.{name}"
    if name in stack or name not in groups:
        notes.append(
            f"{where}: " + ("includes itself" if name in stack else f"is included by {stack[-1]}, but missing")
        )
        return
    items = groups[name]
    for item in items if isinstance(items, list) else []:
        if isinstance(item, str):
            yield Declared(text=item, source=where)
        elif isinstance(item, dict) and isinstance(item.get("include-group"), str):
            yield from _expand(groups, canonicalize_name(item["include-group"]), path, notes, (*stack, name))
        else:
            notes.append(f"{where}: {item!r} is neither a requirement nor an include-group")
    if not isinstance(items, list):
        notes.append(f"{where}: is a value of type {type(items).__name__}, expected a list")


def _version_tools(tools: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the tools that take the version from the version control system, as their own tables say."""
    named = [name for name in ("setuptools_scm", "versioneer", "poetry-dynamic-versioning") if name in tools]
    pdm = tools.get("pdm")
    version = pdm.get("version") if isinstance(pdm, dict) else None
    if isinstance(version, dict) and (version.get("source") == "scm" or version.get("use_scm") is True):
        named.append("pdm-backend")
    return tuple(name.replace("_", "-") for name in named)


def _declared(value: Any, where: str, notes: list[str]) -> tuple[Declared, ...]:
    return tuple(Declared(text=text, source=where) for text in strings(value, where, notes))
