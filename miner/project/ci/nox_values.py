"""Constants of a noxfile: the values that an expression surely has, and whether a condition surely holds."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final


class _Unknown:
    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = _Unknown()
"""A value that is only known when the session runs."""

_MAX_LENGTH = 2_000
_DEEPEST = 30


@dataclass
class Scope:
    """The names of one function.

    Attributes:
        values: name -> value.
        session: name of the session's parameter, "" where there is none.
        python: version that runs the session.
    """

    values: dict[str, object]
    session: str = ""
    python: str | None = None

    def add(self, one: object, two: object) -> object:
        """Return the sum of two texts or lists."""
        if isinstance(one, str) and isinstance(two, str):
            return one + two if len(one) + len(two) <= _MAX_LENGTH else UNKNOWN
        if isinstance(one, list) and isinstance(two, list):
            return [*one, *two] if len(one) + len(two) <= _MAX_LENGTH else UNKNOWN
        return UNKNOWN


def evaluate(node: ast.expr, scope: Scope, depth: int = 0) -> object:
    """Return a text, a number, a list or a dictionary; `UNKNOWN` where it is none that is constant."""
    if depth > _DEEPEST:
        return UNKNOWN
    match node:
        case ast.Constant(value=value):
            return value if isinstance(value, (str, int, float, bool, type(None))) else UNKNOWN
        case ast.Name(id=name):
            return scope.values.get(name, UNKNOWN)
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return _list(items, scope, depth)
        case ast.Dict(keys=keys, values=values):
            return _dict(keys, values, scope, depth)
        case ast.JoinedStr(values=parts):
            return _joined(parts, scope, depth)
        case ast.BinOp(left=left, op=operator, right=right):
            return _binary(evaluate(left, scope, depth + 1), operator, evaluate(right, scope, depth + 1), scope)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == scope.session:
            return {"posargs": [], "python": scope.python or UNKNOWN, "interactive": False}.get(attribute, UNKNOWN)
        case ast.BoolOp() | ast.IfExp():
            return _chosen(node, scope, depth)
        case ast.Call():
            return _call(node, scope, depth)
        case ast.Subscript(value=value, slice=index):
            return _subscript(evaluate(value, scope, depth + 1), evaluate(index, scope, depth + 1))
        case _:
            return UNKNOWN


def _binary(one: object, operator: ast.operator, two: object, scope: Scope) -> object:
    """Add two values, or join two parts of a path."""
    if isinstance(operator, ast.Add):
        return scope.add(one, two)
    joins = isinstance(operator, ast.Div) and isinstance(one, str) and isinstance(two, str)
    return f"{one}/{two}" if joins else UNKNOWN


def _chosen(node: ast.BoolOp | ast.IfExp, scope: Scope, depth: int) -> object:
    """Return the value of `a or b` and of `a if b else c`."""
    if isinstance(node, ast.IfExp):
        holds = truth(node.test, scope)
        return UNKNOWN if holds is None else evaluate(node.body if holds else node.orelse, scope, depth + 1)
    held = [evaluate(item, scope, depth + 1) for item in node.values]
    if isinstance(node.op, ast.And):
        return next((item for item in held if not item), held[-1])
    return next((item for item in held if item or item is UNKNOWN), held[-1])


def truth(node: ast.expr, scope: Scope) -> bool | None:
    """Return whether a condition holds, None where that is not known."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            held = truth(operand, scope)
            return None if held is None else not held
        case ast.BoolOp(op=operator, values=values):
            answers = [truth(item, scope) for item in values]
            decided = isinstance(operator, ast.Or)
            return decided if decided in answers else None if None in answers else not decided
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return _compare(evaluate(left, scope), operator, evaluate(right, scope))
        case _:
            value = evaluate(node, scope)
            return None if value is UNKNOWN else bool(value)


def _compare(one: object, operator: ast.cmpop, two: object) -> bool | None:
    if one is UNKNOWN or two is UNKNOWN:
        return None
    if isinstance(operator, (ast.Eq, ast.Is)):
        return one == two
    if isinstance(operator, (ast.NotEq, ast.IsNot)):
        return one != two
    if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(two, (str, list, dict)):
        if UNKNOWN in two if not isinstance(two, str) else not isinstance(one, str):
            return None
        return (one in two) == isinstance(operator, ast.In)
    return None


def _list(items: list[ast.expr], scope: Scope, depth: int) -> object:
    found: list[object] = []
    for item in items:
        if isinstance(item, ast.Starred):
            held = evaluate(item.value, scope, depth + 1)
            if not isinstance(held, list):
                return UNKNOWN
            found += held
        else:
            found.append(evaluate(item, scope, depth + 1))
    return found if len(found) <= _MAX_LENGTH else UNKNOWN


def _dict(keys: list[ast.expr | None], values: list[ast.expr], scope: Scope, depth: int) -> object:
    found: dict[object, object] = {}
    for key, value in zip(keys, values, strict=True):
        name = evaluate(key, scope, depth + 1) if key is not None else UNKNOWN
        if isinstance(name, str):
            found[name] = evaluate(value, scope, depth + 1)
    return found


def _joined(parts: list[ast.expr], scope: Scope, depth: int) -> object:
    found = ""
    for part in parts:
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        held = evaluate(inner, scope, depth + 1)
        if not isinstance(held, (str, int, float)):
            return UNKNOWN
        found += str(held)
    return found if len(found) <= _MAX_LENGTH else UNKNOWN


def _call(node: ast.Call, scope: Scope, depth: int) -> object:
    """`str(x)`, `Path(x)`, `list(x)`, `os.path.join(...)`, `"a b".split()`."""
    held = [evaluate(item, scope, depth + 1) for item in node.args if not isinstance(item, ast.Starred)]
    name = (
        ast.unparse(node.func)
        if not isinstance(node.func, ast.Attribute) or isinstance(node.func.value, ast.Name)
        else ""
    )
    texts = [item for item in held if isinstance(item, str)]
    if name in ("str", "Path", "pathlib.Path", "os.fspath") and len(texts) == len(held) == 1:
        return texts[0]
    if name in ("list", "tuple", "sorted") and len(held) == 1 and isinstance(held[0], list):
        return held[0]
    if isinstance(node.func, ast.Attribute) and node.func.attr == "split" and not held:
        text = evaluate(node.func.value, scope, depth + 1)
        return text.split() if isinstance(text, str) else UNKNOWN
    if ast.unparse(node.func) in ("os.path.join", "posixpath.join") and texts and len(texts) == len(held):
        return "/".join(texts)
    return UNKNOWN


def _subscript(held: object, index: object) -> object:
    if isinstance(held, list) and isinstance(index, int) and -len(held) <= index < len(held):
        return held[index]
    if isinstance(held, dict) and isinstance(index, str):
        return held.get(index, UNKNOWN)
    return UNKNOWN
