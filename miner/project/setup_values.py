"""A small evaluator of the expressions in a setup.py: literals and usual idioms, nothing is executed."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable, Mapping
from typing import Any

from miner.project.requirements import read_requirements, relative
from miner.project.setup_idioms import (
    COMPARISONS,
    KNOWN_NAMES,
    FileText,
    FindPackages,
    Lines,
    Unknown,
    add,
    bounded,
    cleaned,
    compare,
    dotted,
    fill,
    items,
    join,
    text,
)
from miner.project.text import decode

_MAX_DEPTH = 60
_VARIABLES = ("os.environ", "environ")
_COMMANDS_OF_BUILDS = ("bdist_wheel", "egg_info", "dist_info", "editable_wheel", "develop", "install", "build", "sdist")
_Sub = Callable[[ast.expr], Any]


class Evaluator:
    """Values of expressions in one setup.py.

    Attributes:
        names: what the assignments seen so far bind.
    """

    def __init__(self, files: Mapping[str, bytes], path: str, notes: list[str]) -> None:
        self.names: dict[str, Any] = {"__file__": path, "__name__": "__main__", "PY2": False, "PY3": True}
        self._files, self._path, self._notes = files, path, notes

    def value(self, node: ast.expr, depth: int = 0) -> Any:
        """Return the value of an expression.

        Raises:
            Unknown: it is not one of the idioms.
        """
        if depth > _MAX_DEPTH:
            raise Unknown

        def sub(inner: ast.expr) -> Any:
            return self.value(inner, depth + 1)

        match node:
            case ast.Constant(value=value):
                return value
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                return self._elements(elements, sub)
            case ast.Dict(keys=keys, values=values):
                return self._dict(keys, values, sub)
            case ast.Call():
                return self._call(node, sub)
            case ast.ListComp(generators=[generator]) | ast.GeneratorExp(generators=[generator]):
                return cleaned(sub(generator.iter))
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.Name() | ast.Attribute() if dotted(node) in KNOWN_NAMES:
                return KNOWN_NAMES[dotted(node)]
        return _operation(node, sub)

    def _elements(self, elements: list[ast.expr], sub: _Sub) -> list[Any]:
        """Return the items of a display; an item that is not understood is left out and noted."""
        found: list[Any] = []
        for element in elements:
            try:
                found += items(sub(element.value)) if isinstance(element, ast.Starred) else [sub(element)]
            except Unknown:
                self._notes.append(f"{self._path}: line {element.lineno}: an item of a list is computed and not read")
        return bounded(found)

    def _dict(self, keys: list[ast.expr | None], values: list[ast.expr], sub: _Sub) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, node in zip(keys, values, strict=True):
            try:
                value = sub(node)
                if key is not None:
                    found[sub(key)] = value
                elif isinstance(value, dict):
                    found.update(value)
            except (Unknown, TypeError):
                self._notes.append(f"{self._path}: line {node.lineno}: an entry of a dict is computed and not read")
        return found

    def _keywords(self, call: ast.Call, sub: _Sub) -> dict[str, Any]:
        """Return what `dict(a=1, **other)` makes."""
        keys: list[ast.expr | None] = [ast.Constant(word.arg) if word.arg else None for word in call.keywords]
        return self._dict(keys, [word.value for word in call.keywords], sub)

    def _call(self, call: ast.Call, sub: _Sub) -> Any:
        name = dotted(call.func)
        last = name.split(".")[-1]
        if last in ("find_packages", "find_namespace_packages"):
            return _find_packages(call, sub)
        if name in ("list", "tuple", "set", "sorted") and len(call.args) == 1:
            value = sub(call.args[0])
            return value if isinstance(value, Lines) else items(value)
        if name == "dict" and not call.args:
            return self._keywords(call, sub)
        if last in ("dirname", "abspath", "realpath") or name in ("Path", "pathlib.Path"):
            return self._path_call(last, text(sub(call.args[0])) if call.args else "")
        if last == "join" and (name.endswith("path.join") or name == "join"):
            return posixpath.join("", *(text(sub(argument)) for argument in call.args))
        if name in ("os.environ.get", "environ.get", "os.getenv", "getenv") and call.args:
            return sub(call.args[1]) if len(call.args) > 1 else None  # a build of ours sets no variables that it asks
        if name in ("open", "io.open", "codecs.open") and call.args:
            return FileText(path=relative(self._path, text(sub(call.args[0]))))
        if isinstance(call.func, ast.Attribute):
            return self._method(call.func, call, sub)
        return self._reader(call, sub)

    def _path_call(self, name: str, path: str) -> str:
        """Paths stay relative to the folder of setup.py, whatever the idiom."""
        own = self._path.rpartition("/")[2]
        return posixpath.dirname(path.replace(self._path, own)) if name == "dirname" else path

    def _method(self, func: ast.Attribute, call: ast.Call, sub: _Sub) -> Any:
        try:
            owner = sub(func.value)
        except Unknown:
            return self._reader(call, sub)
        match owner, func.attr:
            case FileText(), "read" | "strip" | "rstrip" | "decode":
                return owner
            case FileText(), "readlines" | "splitlines" | "split":
                return self._lines(owner.path)
            case str(), "read_text":
                return FileText(path=relative(self._path, owner))
            case str(), "strip":
                return owner.strip()
            case str(), "splitlines" | "split":
                return bounded(owner.splitlines() if "\n" in owner else owner.split())
            case str(), "format" if not call.keywords:
                return fill(owner, [sub(argument) for argument in call.args], "{}")
            case dict(), "values" | "keys":
                return list(owner.values() if func.attr == "values" else owner)
        return self._reader(call, sub)

    def _reader(self, call: ast.Call, sub: _Sub) -> Lines:
        """A function that is given the name of a requirements file of the tree is taken to read it."""
        for argument in call.args:
            name = text(sub(argument))
            for target in (relative(self._path, name), relative(self._path, f"requirements/{name}")):
                if target.endswith((".txt", ".in", ".pip")) and target in self._files:
                    return self._lines(target)
        raise Unknown

    def _lines(self, path: str) -> Lines:
        if path not in self._files or decode(self._files[path], path, []) is None:
            raise Unknown
        return Lines(requirements=read_requirements(self._files, path, self._notes))


def _operation(node: ast.expr, sub: _Sub) -> Any:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return add(sub(left), sub(right))
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            values = sub(right)
            return fill(sub(left), values if isinstance(values, list) else [values], "%s")
        case ast.JoinedStr(values=values):
            return join([sub(item.value if isinstance(item, ast.FormattedValue) else item) for item in values])
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
            return compare(COMPARISONS[type(op)], sub(left), sub(right))
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[right]) if _is_absent(left, right):
            return isinstance(op, ast.NotIn)
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
            return (sub(left) is None) == isinstance(op, ast.Is)
        case ast.BoolOp(op=op, values=values):
            return _either(values, sub) if isinstance(op, ast.Or) else _every(values, sub)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not sub(operand)
        case ast.Subscript(value=owner, slice=key):
            return _subscript(sub(owner), key, sub)
    raise Unknown


def _is_absent(left: ast.expr, right: ast.expr) -> bool:
    """Whether something is asked for that no build of ours has: a variable, or a command such as `test` or `upload`."""
    if dotted(right) == "sys.argv":
        return isinstance(left, ast.Constant) and left.value not in _COMMANDS_OF_BUILDS
    return dotted(right) in _VARIABLES


def _either(values: list[ast.expr], sub: _Sub) -> Any:
    """Apply `or`: a known true operand decides, whatever the others are."""
    return _decided(values, sub, by=True)


def _every(values: list[ast.expr], sub: _Sub) -> Any:
    """Apply `and`: a known false operand decides, whatever the others are."""
    return _decided(values, sub, by=False)


def _decided(values: list[ast.expr], sub: _Sub, *, by: bool) -> Any:
    found: list[Any] = []
    for node in values:
        try:
            found.append(sub(node))
        except Unknown:
            continue
        if bool(found[-1]) is by:
            return found[-1]
    if len(found) < len(values):
        raise Unknown
    return found[-1]


def _subscript(owner: Any, key: ast.expr, sub: _Sub) -> Any:
    """Index a known dict or list, or take the first parts, as in `sys.version_info[:2]`."""
    try:
        if isinstance(key, ast.Slice):
            return owner[: sub(key.upper)] if key.upper and not key.lower else owner[:]
        return owner[sub(key)]
    except (TypeError, KeyError, IndexError) as error:
        raise Unknown from error


def _find_packages(call: ast.Call, sub: _Sub) -> FindPackages:
    given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "where")]
    try:
        return FindPackages(where=text(sub(given[0])) if given else "")
    except Unknown:
        return FindPackages()
