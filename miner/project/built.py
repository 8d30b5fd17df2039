"""The metadata that a source distribution carries: what its build back end made of the declarations.

Formats: https://packaging.python.org/en/latest/specifications/core-metadata/, and `requires.txt` of an egg-info folder
(https://setuptools.pypa.io/en/latest/deprecated/python_eggs.html). A repository has none, and is not asked for any.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from email.message import Message
from email.parser import HeaderParser

from miner.project.model import Declarations, Declared, Group, GroupKind
from miner.project.text import both, decode, lines

_EXTRA = re.compile(r"\s*extra\s*==\s*['\"]([^'\"]+)['\"]\s*")
_SECTION = re.compile(r"\[([^\]:]*)(?::([^\]]*))?\]")


def read_built(files: Mapping[str, bytes], folder: str) -> Declarations:
    """Return what the PKG-INFO of a folder says, and where it lists no requirements what its egg-info does."""
    path = posixpath.join(folder, "PKG-INFO")
    if path not in files:
        return Declarations(source=path)
    headers = HeaderParser().parsestr(decode(files[path], path, []) or "", headersonly=True)
    egg_info = [one for one in sorted(files) if one.endswith(".egg-info/requires.txt") and _is_below(one, folder)]
    listed = headers.get_all("Requires-Dist") or []
    if listed:
        runtime, extras = _from_headers([str(item) for item in listed], path)
    elif egg_info:
        runtime, extras = _from_sections(decode(files[egg_info[0]], egg_info[0], []) or "", egg_info[0])
    else:
        runtime, extras = (), {}
    return Declarations(
        source=path,
        name=_value(headers, "Name"),
        version=_value(headers, "Version"),
        requires_python=_value(headers, "Requires-Python"),
        classifiers=tuple(str(item).strip() for item in headers.get_all("Classifier") or []),
        runtime=runtime if listed or egg_info else None,
        groups=tuple(Group(name=name, kind=GroupKind.EXTRA, requirements=tuple(extras[name])) for name in extras),
    )


def _is_below(path: str, folder: str) -> bool:
    """Whether an egg-info folder lies in a project's folder or in its `src`."""
    place = posixpath.dirname(posixpath.dirname(path))
    return place in (folder, posixpath.join(folder, "src"), posixpath.join(folder, "lib"))


def _value(headers: Message, name: str) -> str | None:
    return str(headers.get(name, "")).strip() or None


def _from_headers(listed: list[str], source: str) -> tuple[tuple[Declared, ...], dict[str, list[Declared]]]:
    """Part requirements by the `extra == "x"` that stands alone or at the end of their marker."""
    runtime: list[Declared] = []
    extras: dict[str, list[Declared]] = {}
    for item in listed:
        text, _, marker = item.partition(";")
        named = _EXTRA.search(marker)
        rest = re.sub(r"^\s*and\s+|\s+and\s*$", "", _EXTRA.sub("", marker)).strip() if named else marker.strip()
        if rest.startswith("(") and rest.endswith(")") and "(" not in rest[1:]:
            rest = rest[1:-1]
        declared = Declared(text=text.strip() + (f"; {rest}" if rest else ""), source=source)
        (extras.setdefault(named.group(1), []) if named else runtime).append(declared)
    return tuple(runtime), extras


def _from_sections(text: str, source: str) -> tuple[tuple[Declared, ...], dict[str, list[Declared]]]:
    """Read sections `[extra]`, `[:marker]` and `[extra:marker]`, the first lines without one."""
    runtime: list[Declared] = []
    extras: dict[str, list[Declared]] = {}
    extra, marker = "", ""
    for line in lines(text):
        if section := _SECTION.fullmatch(line):
            extra, marker = section.group(1), section.group(2) or ""
            if extra:
                extras.setdefault(extra, [])
            continue
        bare, _, own = line.partition(";")
        condition = both(own, marker)
        declared = Declared(text=bare.strip() + (f"; {condition}" if condition else ""), source=source)
        (extras[extra] if extra else runtime).append(declared)
    return tuple(runtime), extras
