"""The groups that uv, poetry and pdm install when nobody names one, and all groups and extras of a project."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping

from miner.project.text import read_toml, strings, table


def default_groups(files: Mapping[str, bytes], folder: str, tool: str, without: Collection[str]) -> tuple[str, ...]:
    """Return the groups of the project in a folder that a tool installs unasked, those in `without` left out."""
    content, path = _pyproject(files, folder)
    tools = table(content, "tool", path, [])
    own = table(tools, tool, path, [])
    named = tuple(table(content, "dependency-groups", path, []))
    if tool == "uv":
        found = _uv(own, named)
    elif tool == "poetry":
        found = _poetry(own)
    else:
        found = () if "dev" in without else (*table(own, "dev-dependencies", path, []), *named)
    return tuple(dict.fromkeys(name for name in found if name not in without))


def all_of(files: Mapping[str, bytes], folder: str, kind: str) -> tuple[str, ...]:
    """Return the names of all extras or of all groups that the pyproject.toml in a folder declares."""
    content, path = _pyproject(files, folder)
    tools = table(content, "tool", path, [])
    poetry = table(tools, "poetry", path, [])
    if kind == "extras":
        places = (
            table(table(content, "project", path, []), "optional-dependencies", path, []),
            table(poetry, "extras", path, []),
        )
        return tuple(dict.fromkeys(name for place in places for name in place))
    pdm = table(tools, "pdm", path, [])
    listed = (
        table(content, "dependency-groups", path, []),
        table(pdm, "dev-dependencies", path, []),
        table(poetry, "group", path, []),
    )
    found = [name for place in listed for name in place]
    return tuple(dict.fromkeys((*found, *(("dev",) if "dev-dependencies" in poetry else ()))))


def _pyproject(files: Mapping[str, bytes], folder: str) -> tuple[Mapping[str, object], str]:
    path = posixpath.join(folder, "pyproject.toml")
    return read_toml(files, path, []), path


def _uv(own: Mapping[str, object], named: Collection[str]) -> tuple[str, ...]:
    if own.get("default-groups") == "all":
        return tuple(named)
    if "default-groups" in own:
        return strings(own["default-groups"], "", [])
    return ("dev",) if "dev" in named or "dev-dependencies" in own else ()


def _poetry(own: Mapping[str, object]) -> tuple[str, ...]:
    groups = table(own, "group", "", [])
    found = [name for name, group in groups.items() if not (isinstance(group, dict) and group.get("optional") is True)]
    return tuple(found) if "dev-dependencies" not in own else ("dev", *found)
