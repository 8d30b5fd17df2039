"""A Pipfile: its two groups of requirements, and the Python that it asks for.

Format: https://pipenv.pypa.io/en/latest/pipfile.html.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from miner.project.model import Declarations, Declared, Group, GroupKind, PythonHint
from miner.project.text import both, read_toml, string, strings, table

_NOT_SAID = ("*", "")
_MARKER_KEYS = ("sys_platform", "os_name", "platform_machine", "platform_system", "python_version")
_ELSEWHERE = ("git", "hg", "svn", "path", "file", "url")


def read_pipfile(files: Mapping[str, bytes], path: str) -> Declarations:
    """Return what a Pipfile declares: `packages` and `dev-packages` as groups of these names."""
    notes: list[str] = []
    content = read_toml(files, path, notes)
    requires = table(content, "requires", path, notes)
    version = requires.get("python_version") or requires.get("python_full_version")
    groups = tuple(
        Group(name=name, kind=GroupKind.PIPFILE, requirements=_requirements(content, name, path, notes))
        for name in ("packages", "dev-packages")
    )
    return Declarations(
        source=path,
        groups=tuple(group for group in groups if group.requirements),
        pythons=(PythonHint(kind="pinned", version=".".join(version.split(".")[:2]), source=f"{path}: requires"),)
        if isinstance(version, str)
        else (),
        notes=tuple(notes),
    )


def _requirements(content: Mapping[str, Any], group: str, path: str, notes: list[str]) -> tuple[Declared, ...]:
    where = f"{path}: {group}"
    texts = (_requirement(name, spec, where, notes) for name, spec in table(content, group, path, notes).items())
    return tuple(Declared(text=text, source=where) for text in texts if text is not None)


def _requirement(name: str, spec: Any, where: str, notes: list[str]) -> str | None:
    if isinstance(spec, str):
        return name if spec.strip() in _NOT_SAID else f"{name}{spec.strip()}"
    if not isinstance(spec, dict):
        notes.append(f"{where}: {name} is a value of type {type(spec).__name__}, expected a constraint")
        return None
    elsewhere = next((spec[key] for key in _ELSEWHERE if isinstance(spec.get(key), str)), None)
    if elsewhere is not None:
        return f"{name} @ {elsewhere}"
    version = (string(spec.get("version"), where, notes) or "").strip()
    extras = strings(spec.get("extras"), where, notes)
    markers = [f"{key} {spec[key]}" for key in _MARKER_KEYS if isinstance(spec.get(key), str)]
    condition = both(string(spec.get("markers"), where, notes) or "", *markers)
    listed = f"[{','.join(extras)}]" if extras else ""
    return f"{name}{listed}{'' if version in _NOT_SAID else version}" + (f"; {condition}" if condition else "")
