"""The values that a setup.py is made of, and the few operations on them that are known. Nothing is executed.

Every operation is bounded, since the file may be hostile: no text or list grows without end, nothing is formatted
with a width, and only flat values are compared.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from miner.core.records import Record
from miner.project.model import Declared

_MAX_ITEMS = 10_000
_MAX_CHARS = 1_000_000

COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
KNOWN_NAMES: dict[str, Any] = {
    "sys.version_info": (3, 11, 0, "final", 0),
    "sys.version_info.major": 3,
    "sys.version_info.minor": 11,
    "sys.platform": "linux",
    "os.name": "posix",
    "six.PY2": False,
    "six.PY3": True,
}


class FindPackages(Record):
    """A call of `find_packages()`: the folder where it looks."""

    where: str = ""


class FileText(Record):
    """The text of a file of the tree that setup.py opens."""

    path: str


class Lines(Record):
    """The lines of such a file, read as a requirements file."""

    requirements: tuple[Declared, ...] = ()


class Unknown(Exception):
    """The value is computed in a way that is not understood."""


def dotted(node: ast.expr) -> str:
    """Return "a.b.c" for a chain of names, the attributes alone on top of anything else, and "" for no name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else node.attr
    return ""


def items(value: Any) -> list[Any]:
    """Return what iterating over a value gives."""
    if isinstance(value, Lines):
        return list(value.requirements)
    if isinstance(value, (list, tuple, dict)) and len(value) <= _MAX_ITEMS:
        return list(value)
    raise Unknown


def text(value: Any) -> str:
    """Return a value that is a text."""
    if isinstance(value, str) and len(value) <= _MAX_CHARS:
        return value
    raise Unknown


def add(left: Any, right: Any) -> Any:
    """Apply `+` to two texts or two lists."""
    if isinstance(left, str):
        return text(text(left) + text(right))
    return bounded([*items(left), *items(right)])


def bounded(value: list[Any]) -> list[Any]:
    """Return a list, unless it has grown beyond what a declaration needs."""
    if len(value) > _MAX_ITEMS:
        raise Unknown
    return value


def join(parts: list[Any]) -> str:
    """Join the parts of an f-string, texts and integers only."""
    if not all(isinstance(part, (str, int)) for part in parts):
        raise Unknown
    try:
        return text("".join(str(part) for part in parts))
    except ValueError as error:  # an integer of more digits than Python writes
        raise Unknown from error


def fill(template: Any, values: list[Any], field: str) -> str:
    """Fill `%s` or `{}` in a template; any other field of the template makes it unknown."""
    pieces = text(template).split(field)
    if len(pieces) != len(values) + 1 or re.search(r"[%{}]", "".join(pieces)):
        raise Unknown
    return join([part for pair in zip(pieces, [*values, ""], strict=True) for part in pair])


def compare(operation: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    """Compare flat values; a list stands for the tuple that was written."""
    sides = [tuple(side) if isinstance(side, list) else side for side in (left, right)]
    for side in sides:
        parts = side if isinstance(side, tuple) else (side,)
        if not all(part is None or isinstance(part, (str, int, float)) for part in parts):
            raise Unknown
    try:
        return operation(*sides)
    except TypeError as error:
        raise Unknown from error


def cleaned(value: Any) -> Any:
    """Return what a comprehension gives: one over the lines of a file, or over texts, is taken to clean them."""
    if isinstance(value, Lines):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [item.strip() for item in value if item.strip() and not item.strip().startswith("#")]
    raise Unknown
