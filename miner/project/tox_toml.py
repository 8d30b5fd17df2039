"""tox 4's own tables: tox.toml, and `[tool.tox]` of pyproject.toml; `legacy_tox_ini` there is a tox.ini as a text.

Format: https://tox.wiki/en/latest/config.html#toml.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from miner.project.model import Declarations, Declared, Group, GroupKind, PythonHint
from miner.project.requirements import read_constraints, read_requirements_file, relative
from miner.project.text import read_toml, string, strings, table
from miner.project.tox_factors import pythons_of
from miner.project.tox_ini import read_tox_text, runner

_Table = Mapping[str, Any]
_DEPTH = 20


def read_tox_toml(files: Mapping[str, bytes], path: str) -> Declarations:
    """Return the dependencies, extras and test runners of the test environments of a tox.toml or pyproject.toml."""
    notes: list[str] = []
    tox: _Table = read_toml(files, path, notes)
    if posixpath.basename(path) == "pyproject.toml":
        tox = table(table(tox, "tool", path, []), "tox", path, notes)
    legacy = string(tox.get("legacy_tox_ini"), f"{path}: tool.tox.legacy_tox_ini", notes)
    if legacy is not None:
        return read_tox_text(files, legacy, path)
    base = table(tox, "env_run_base", path, notes)
    named = {
        name: table(table(tox, "env", path, []), name, f"{path}: env", notes) for name in table(tox, "env", path, notes)
    }
    found = {"testenv": base, **{f"testenv:{name}": {**base, **env} for name, env in named.items()}}
    groups = (_group(files, tox, name, env, path, notes) for name, env in found.items() if env)
    names = tuple(name for name in _names(tox.get("env_list")) if name)
    commands = [*_commands(base.get("commands")), *(line for env in named.values() for line in _commands(env))]
    return Declarations(
        source=path,
        groups=tuple(group for group in groups if group.requirements or group.extras or group.groups),
        runners=tuple(dict.fromkeys(name for line in commands if (name := runner(line)))),
        pythons=tuple(
            PythonHint(kind="tox", version=version, source=f"{path}: env_list") for version in pythons_of(names)
        ),
        notes=tuple(dict.fromkeys(notes)),
    )


def _group(files: Mapping[str, bytes], tox: _Table, name: str, env: _Table, path: str, notes: list[str]) -> Group:
    where = f"{path}: {name}"
    deps: list[Declared] = []
    constraints: list[Declared] = []
    for text in _strings(tox, env.get("deps"), f"{where}.deps", notes):
        option, _, target = text.strip().partition(" ")
        if option == "-r" or text.startswith("-r"):
            read = read_requirements_file(files, relative(path, target or text[2:]), notes)
            deps += read.requirements
            constraints += read.constraints
        elif option == "-c":
            constraints += read_constraints(files, relative(path, target), notes)
        else:
            deps.append(Declared(text=text, source=where))
    for target in _strings(tox, env.get("constraints"), f"{where}.constraints", notes):
        constraints += read_constraints(files, relative(path, target.removeprefix("-c").strip()), notes)
    return Group(
        name=name,
        kind=GroupKind.TOX,
        requirements=tuple(dict.fromkeys(deps)),
        extras=tuple(_strings(tox, env.get("extras"), f"{where}.extras", notes)),
        groups=tuple(_strings(tox, env.get("dependency_groups"), f"{where}.dependency_groups", notes)),
        constraints=tuple(dict.fromkeys(constraints)),
    )


def _strings(tox: _Table, value: Any, where: str, notes: list[str], depth: int = 0) -> Iterator[str]:
    """Yield the texts of a list, `{ replace = "ref", of = [...] }` in it followed."""
    if isinstance(value, str):
        yield from (line.strip() for line in value.splitlines() if line.strip())
        return
    for item in value if isinstance(value, list) else []:
        target = item.get("of") if isinstance(item, dict) and item.get("replace") == "ref" else None
        if isinstance(item, str):
            yield item
        elif isinstance(target, list) and depth < _DEPTH:
            yield from _strings(tox, _at(tox, strings(target, where, notes)), where, notes, depth + 1)
        else:
            notes.append(f"{where}: {item!r} is not read")


def _at(tox: _Table, keys: tuple[str, ...]) -> Any:
    found: Any = tox
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _names(value: Any) -> Iterator[str]:
    for item in value if isinstance(value, list) else []:
        if isinstance(item, str):
            yield item


def _commands(value: Any) -> Iterator[str]:
    """Yield the commands, a list of words each, as lines."""
    listed = value.get("commands") if isinstance(value, Mapping) else value
    for command in listed if isinstance(listed, list) else []:
        if isinstance(command, list):
            yield " ".join(word for word in command if isinstance(word, str))
