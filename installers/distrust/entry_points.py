"""Entry points of a distribution, as each of the programs that read them does.

Readers: `importlib.metadata` (Python 3.9 and later: a line from `[` to `]` is a header), `configparser` (before that,
https://docs.python.org/3/library/configparser.html), and setuptools' `pkg_resources`, which old versions of
pytest ask. A file that they read differently hides something from one of them.
"""

from __future__ import annotations

import configparser
import re

Group = dict[str, tuple[str, ...]]
"""Name of a group -> its lines, sorted, blanks taken out."""


def groups(text: str) -> Group:
    """Return what any of the readers finds, by group."""
    found: dict[str, set[str]] = {}
    for reading in (_by_metadata(text), _by_config_parser(text) or {}, _by_pkg_resources(text) or {}):
        for name, lines in reading.items():
            found.setdefault(name, set()).update(lines)
    return {name: tuple(sorted(lines)) for name, lines in found.items()}


def is_clear(text: str) -> bool:
    """Whether all readers find the same."""
    return _by_metadata(text) == _by_config_parser(text) == _by_pkg_resources(text)


def module_of_line(line: str) -> str:
    """Return the module that an entry point names: `name = package.module:attribute [extra]`."""
    value = line.partition("=")[2].partition("[")[0].partition(":")[0].strip()
    return value if re.fullmatch(r"\w+(?:\.\w+)*", value) else ""


def _sorted(found: dict[str, set[str]]) -> Group:
    return {name: tuple(sorted(lines)) for name, lines in found.items() if lines}


def _line(name: str, value: str) -> str:
    return f"{name.strip()} = {value.strip()}"


def _by_metadata(text: str) -> Group:
    found: dict[str, set[str]] = {}
    group: str | None = None
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[]")
        elif group is not None:
            name, _, value = line.partition("=")
            found.setdefault(group, set()).add(_line(name, value))
    return _sorted(found)


def _by_config_parser(text: str) -> Group | None:
    parser = configparser.ConfigParser(delimiters="=", interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # as importlib.metadata sets it
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    return _sorted({group: {_line(*item) for item in parser.items(group)} for group in parser.sections()})


def _by_pkg_resources(text: str) -> Group | None:
    found: dict[str, set[str]] = {}
    group: str | None = None
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("#"):
            continue
        if line.startswith("["):
            if not line.endswith("]"):
                return None
            group = line[1:-1].strip()
        elif group is None:
            return None
        else:
            name, _, value = line.partition("=")
            found.setdefault(group, set()).add(_line(name, value))
    return _sorted(found)
