"""Exact versions that locks in a tree name: hints for a repair, never a lock of ours, since they can be stale.

Formats: poetry.lock, pdm.lock and uv.lock hold `[[package]]` tables, pylock.toml `[[packages]]`
(https://packaging.python.org/en/latest/specifications/pylock-toml/), Pipfile.lock is JSON; the output of pip-compile is
a requirements file.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from packaging.utils import canonicalize_name

from miner.project.declaration_files import is_lock, is_requirements
from miner.project.model import Declared
from miner.project.requirements import is_compiled, read_requirements_file
from miner.project.text import decode, read_toml
from miner.project.versions import version_of

_LOCAL = ("editable", "virtual", "directory", "git", "url", "path", "vcs", "archive")
_LOCAL_TYPES = ("git", "directory", "url", "file")


def read_pins(files: Mapping[str, bytes], folder: str = "") -> tuple[Declared, ...]:
    """Return what the locks of a folder, or of those above it, pin: "name==1.2", with a marker where the lock has one.

    Where several locks pin a name, the first one wins: locks of tools before requirements files, in order of path.
    """
    near = [path for path in sorted(files) if _is_near(path, folder)]
    locks = [path for path in near if is_lock(path)]
    compiled = [path for path in near if is_requirements(path) and is_compiled(files[path])]
    found: dict[str, list[Declared]] = {}
    for path in (*locks, *compiled):
        own: dict[str, list[Declared]] = {}
        for name, item in _read(files, path):
            own.setdefault(name, []).append(item)
        found = {**own, **found}
    return tuple(item for name in sorted(found) for item in dict.fromkeys(found[name]))


def _is_near(path: str, folder: str) -> bool:
    place = posixpath.dirname(path)
    return place in ("", folder) or place.startswith(f"{folder}/" if folder else "req")


def _read(files: Mapping[str, bytes], path: str) -> Iterator[tuple[str, Declared]]:
    if path.endswith("Pipfile.lock"):
        yield from _pipfile_lock(files, path)
    elif path.endswith((".lock", ".toml")):
        yield from _packages(read_toml(files, path, []), path)
    else:
        for item in read_requirements_file(files, path, [], exact=True).requirements:
            name, exact, _ = item.text.partition("==")
            if exact and not set(name) & set(" <>=!~;@[("):
                yield canonicalize_name(name), item


def _packages(content: Mapping[str, Any], path: str) -> Iterator[tuple[str, Declared]]:
    listed = content.get("packages", content.get("package"))
    for entry in listed if isinstance(listed, list) else []:
        if not isinstance(entry, dict) or _is_local(entry):
            continue
        yield from _pinned(entry.get("name"), entry.get("version"), _marker(entry), path)


def _is_local(entry: Mapping[str, Any]) -> bool:
    source = entry.get("source")
    if isinstance(source, dict) and (source.get("type") in _LOCAL_TYPES or not {*_LOCAL}.isdisjoint(source)):
        return True
    return any(key in entry for key in ("directory", "vcs", "archive", "path", "git"))


def _marker(entry: Mapping[str, Any]) -> str:
    """Return the marker of a package; uv gives several where it forks a resolution."""
    several = entry.get("resolution-markers")
    if isinstance(several, list):
        return " or ".join(f"({text})" for text in several if isinstance(text, str))
    single = entry.get("marker", entry.get("markers"))
    return single if isinstance(single, str) else ""


def _pipfile_lock(files: Mapping[str, bytes], path: str) -> Iterator[tuple[str, Declared]]:
    text = decode(files[path], path, [])
    try:
        content = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return
    for section in ("default", "develop"):
        entries = content.get(section) if isinstance(content, dict) else None
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            version = entry.get("version") if isinstance(entry, dict) else None
            if isinstance(version, str):
                yield from _pinned(name, version.removeprefix("=="), _marker(entry), path)


def _pinned(name: Any, version: Any, marker: str, path: str) -> Iterator[tuple[str, Declared]]:
    known = version_of(version) if isinstance(version, str) else None
    if isinstance(name, str) and known is not None:
        text = f"{name}=={known}" + (f"; {marker}" if marker else "")
        yield canonicalize_name(name), Declared(text=text, source=path)
