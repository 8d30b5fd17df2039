"""setup.py, read through its syntax tree: literals and the usual idioms, nothing is executed.

What is computed in another way is named in the notes and otherwise treated as not declared.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from miner.project.model import Declarations, Declared, Group, GroupKind, Traps
from miner.project.setup_cfg import requirement_list
from miner.project.setup_idioms import FindPackages, Lines
from miner.project.setup_walk import Walk
from miner.project.text import both, decode, string

_LISTS = ("install_requires", "tests_require", "setup_requires")


def read_setup_py(files: Mapping[str, bytes], path: str) -> Declarations:
    """Return what the `setup()` call of a setup.py declares."""
    notes: list[str] = []
    text = decode(files[path], path, notes)
    if text is None:
        return Declarations(source=path, unreadable=notes[-1], notes=tuple(notes))
    try:
        module = ast.parse(text)
        values = Walk(module, files, path, notes)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        message = f"{path}: is not readable as Python 3 ({error})"
        return Declarations(source=path, unreadable=message, notes=(message,))
    if values.arguments is None:
        notes.append(f"{path}: no call of setup() was found")
        return Declarations(
            source=path,
            version_tools=values.version_tools,
            traps=_traps(module, {}),
            notes=tuple(notes),
        )
    return _declarations(values, path, notes).model_copy(update={"traps": _traps(module, values.arguments)})


def _declarations(values: Walk, path: str, notes: list[str]) -> Declarations:
    arguments = values.arguments or {}
    lists = {key: _requirements(arguments.get(key), f"{path}: {key}", notes) for key in _LISTS}
    conditional, extras = _extras(arguments.get("extras_require"), path, notes)
    runtime = lists["install_requires"]
    if conditional:
        runtime = (*(runtime or ()), *conditional)
    if lists["tests_require"]:
        extras.append(Group(name="tests_require", kind=GroupKind.TESTS_REQUIRE, requirements=lists["tests_require"]))
    packages, folders = arguments.get("packages"), arguments.get("package_dir")
    folders = (
        {name: item for name, item in folders.items() if isinstance(item, str)} if isinstance(folders, dict) else {}
    )
    roots = [packages.where] if isinstance(packages, FindPackages) else []
    roots += [folders[""]] if isinstance(folders.get(""), str) else []
    return Declarations(
        source=path,
        name=string(arguments.get("name"), f"{path}: name", notes),
        version=string(arguments.get("version"), f"{path}: version", notes),
        requires_python=string(arguments.get("python_requires"), f"{path}: python_requires", notes),
        classifiers=_names(arguments.get("classifiers")),
        runtime=runtime,
        groups=tuple(extras),
        setup_requires=lists["setup_requires"] or (),
        version_tools=values.version_tools,
        modules=tuple(name.replace("/", ".") for name in (*_names(packages), *_names(arguments.get("py_modules")))),
        roots=tuple(_folder(item) for item in roots),
        package_dirs=tuple((name, _folder(item)) for name, item in folders.items() if name),
        notes=tuple(notes),
    )


def _traps(module: ast.Module, arguments: Mapping[str, Any]) -> Traps:
    """Return what the file itself imports, wherever that stands, and what it gives to setup()."""
    imported: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            imported.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    return Traps(
        use_2to3=arguments.get("use_2to3") is True,
        pkg_resources="pkg_resources" in imported,
        namespace_packages=bool(arguments.get("namespace_packages")),
    )


def _requirements(value: Any, where: str, notes: list[str]) -> tuple[Declared, ...] | None:
    """A list of requirements, one text of lines, or the lines of a file that setup.py reads."""
    if value is None:
        return None
    if isinstance(value, Lines):
        return value.requirements
    if isinstance(value, str):
        return tuple(Declared(text=text, source=where) for text in requirement_list(value))
    if not isinstance(value, (list, tuple, set)):
        notes.append(f"{where}: is a value of type {type(value).__name__}, expected a list of requirements")
        return None
    return tuple(
        item if isinstance(item, Declared) else Declared(text=item, source=where)
        for item in value
        if isinstance(item, (str, Declared)) and (isinstance(item, Declared) or item.strip())
    )


def _extras(value: Any, path: str, notes: list[str]) -> tuple[list[Declared], list[Group]]:
    """Return what holds without naming an extra (keys such as ":python_version<'3'") and the extras proper."""
    plain: list[Declared] = []
    groups: dict[str, list[Declared]] = {}
    if value is not None and not isinstance(value, dict):
        notes.append(f"{path}: extras_require is a value of type {type(value).__name__}, expected a dict")
    for key, items in value.items() if isinstance(value, dict) else ():
        if not isinstance(key, str):
            continue
        extra, _, marker = key.partition(":")
        found = _requirements(items, f"{path}: extras_require.{extra}", notes) or ()
        marked = [_marked(item, marker) if marker else item for item in found]
        (groups.setdefault(extra, []) if extra else plain).extend(marked)
    return plain, [Group(name=name, kind=GroupKind.EXTRA, requirements=tuple(items)) for name, items in groups.items()]


def _marked(item: Declared, marker: str) -> Declared:
    text, _, own = item.text.partition(";")
    return item.model_copy(update={"text": f"{text.strip()}; {both(own, marker)}"})


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(line.strip() for line in value.splitlines() if line.strip())
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, (list, tuple, set)) else ()


def _folder(text: str) -> str:
    return "" if text in (".", "./") else text.strip("/").removeprefix("./")
