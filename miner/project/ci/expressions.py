"""Expressions of GitHub Actions (`${{ ... }}`), as far as their values are known without running anything.

Language: https://docs.github.com/en/actions/reference/workflows-and-actions/expressions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
"""A value that only a run knows."""


class Open(dict[str, Any]):
    """A context of which only a part is known."""


Contexts = Mapping[str, Any]
"""Name of a context -> its content, a mapping; a context that is missing is not known."""

_EXPRESSION = re.compile(r"\$\{\{((?:[^'}]|'[^']*'|\}(?!\})){0,400})\}\}")
_TOKEN = re.compile(
    r"\s*(?:('(?:[^']|'')*')|(-?\d+(?:\.\d+)?(?![\w.-]))|([A-Za-z_][\w-]*)|(&&|\|\||==|!=|<=|>=|[!<>()\[\].,*]))"
)
_DEEPEST = 30
_MAX_LENGTH = 60_000


def substitute(text: str, contexts: Contexts) -> str:
    """Replace the expressions in a text; one that is not known stays as it is."""

    def replaced(found: re.Match[str]) -> str:
        value = evaluate(found[1], contexts)
        return _text(value) if isinstance(value, (str, bool, float)) else found[0]

    return _EXPRESSION.sub(replaced, text)[:_MAX_LENGTH] if "${{" in text else text


def value_of(text: Any, contexts: Contexts) -> Any:
    """Return what a value of a workflow stands for: a text that is one expression may be a list or a mapping."""
    if not isinstance(text, str):
        return text
    whole = _EXPRESSION.fullmatch(text.strip())
    return evaluate(whole[1], contexts) if whole else substitute(text, contexts)


def condition(text: str, contexts: Contexts) -> bool | None:
    """Return whether an `if` holds, None where that is not known."""
    whole = _EXPRESSION.fullmatch(text.strip())
    value = evaluate(whole[1] if whole else substitute(text, contexts), contexts)
    return None if value is UNKNOWN else _truth(value)


def evaluate(text: str, contexts: Contexts) -> Any:
    """Return the value of an expression; `UNKNOWN` where it is not known, or no expression."""
    tokens: list[str] = []
    at = 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            return UNKNOWN
        tokens.append(match[0].strip())
        at = match.end()
    parser = _Parser(tokens, contexts)
    try:
        value = parser.either(0)
    except (IndexError, _SyntaxError):
        return UNKNOWN
    return value if parser.done else UNKNOWN


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _truth(value: Any) -> bool:
    return value not in ("", False, 0.0, None)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, str) and isinstance(two, str):
        return one.casefold() == two.casefold()
    if isinstance(one, bool) or isinstance(two, bool):
        return _text(one).casefold() == _text(two).casefold()
    first, second = _number(one), _number(two)
    return first is not None and first == second


class _SyntaxError(Exception):
    """The text is no expression."""


class _Parser:
    def __init__(self, tokens: Sequence[str], contexts: Contexts) -> None:
        self._tokens = tokens
        self._contexts = contexts
        self._at = 0

    @property
    def done(self) -> bool:
        return self._at == len(self._tokens)

    def _take(self, *texts: str) -> str | None:
        if self._at < len(self._tokens) and self._tokens[self._at] in texts:
            self._at += 1
            return self._tokens[self._at - 1]
        return None

    def either(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise _SyntaxError
        value = self._both(depth)
        while self._take("||"):
            other = self._both(depth)
            value = other if value is not UNKNOWN and not _truth(value) else value
            if value is UNKNOWN and other is True:
                value = True
        return value

    def _both(self, depth: int) -> Any:
        value = self._compared(depth)
        while self._take("&&"):
            other = self._compared(depth)
            if value is UNKNOWN:
                value = other if other is not UNKNOWN and not _truth(other) else UNKNOWN
            elif _truth(value):
                value = other
        return value

    def _compared(self, depth: int) -> Any:
        value = self._negated(depth)
        while operator := self._take("==", "!=", "<", ">", "<=", ">="):
            other = self._negated(depth)
            if value is UNKNOWN or other is UNKNOWN:
                value = UNKNOWN
            elif operator in ("==", "!="):
                value = _same(value, other) == (operator == "==")
            else:
                one, two = _number(value), _number(other)
                value = one is not None and two is not None and _ordered(one, operator, two)
        return value

    def _negated(self, depth: int) -> Any:
        negations = 0
        while self._take("!"):
            negations += 1
        value = self._primary(depth + 1)
        if not negations or value is UNKNOWN:
            return value
        return _truth(value) == (negations % 2 == 0)

    def _primary(self, depth: int) -> Any:
        word = self._tokens[self._at]
        self._at += 1
        if word == "(":
            value = self.either(depth)
            self._expect(")")
            return value
        if word.startswith("'"):
            return word[1:-1].replace("''", "'")
        if (number := _number(word)) is not None and not word[0].isalpha():
            return number
        if not re.match(r"[A-Za-z_]", word):
            raise _SyntaxError
        if word in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[word]
        if self._take("("):
            return self._called(word, depth)
        return self._member(self._contexts.get(word, UNKNOWN), word, depth)

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise _SyntaxError

    def _called(self, name: str, depth: int) -> Any:
        arguments = []
        while not self._take(")"):
            arguments.append(self.either(depth))
            self._take(",")
        value = _call(name.casefold(), arguments)
        return self._member(value, "", depth) if isinstance(value, (dict, list)) else value

    def _member(self, value: Any, path: str, depth: int) -> Any:
        while True:
            if self._take("."):
                name: Any = self._tokens[self._at]
                self._at += 1
            elif self._take("["):
                name = self.either(depth)
                self._expect("]")
            else:
                return value
            path = f"{path}.{name}"
            value = _step(value, name)
            if path.startswith("steps.") and path.endswith(".cache-hit"):
                value = ""  # nothing is cached where nothing ran before


def _step(value: Any, name: Any) -> Any:
    if isinstance(value, Mapping) and isinstance(name, str):
        if isinstance(value, Open) and name not in value:
            return UNKNOWN
        return value.get(
            name, next((held for key, held in value.items() if str(key).casefold() == name.casefold()), "")
        )
    if isinstance(value, list) and isinstance(name, float) and 0 <= name < len(value):
        return value[int(name)]
    return UNKNOWN if value is UNKNOWN or name == "*" else ""


def _ordered(one: float, operator: str, two: float) -> bool:
    return {"<": one < two, ">": one > two, "<=": one <= two, ">=": one >= two}[operator]


def _call(name: str, arguments: Sequence[Any]) -> Any:
    if name in ("always", "success"):
        return True
    if name in ("failure", "cancelled"):
        return False
    if any(argument is UNKNOWN for argument in arguments):
        return UNKNOWN
    if name in ("contains", "startswith", "endswith") and len(arguments) == 2:
        return _search(name, *arguments)
    if name == "format" and arguments:
        texts = [_text(argument) for argument in arguments[1:]]
        return re.sub(
            r"\{(\d)\}", lambda found: texts[int(found[1])] if int(found[1]) < len(texts) else "", _text(arguments[0])
        )
    if name == "join" and isinstance(arguments[0], list):
        return (_text(arguments[1]) if len(arguments) > 1 else ",").join(map(_text, arguments[0]))
    if name == "fromjson" and len(arguments) == 1 and isinstance(arguments[0], str):
        return _json(arguments[0])
    return UNKNOWN


def _search(name: str, where: Any, what: Any) -> Any:
    if name == "contains" and isinstance(where, list):
        return any(_same(item, what) for item in where)
    if isinstance(where, (dict, list)) or isinstance(what, (dict, list)):
        return UNKNOWN
    one, two = _text(where).casefold(), _text(what).casefold()
    return {"contains": two in one, "startswith": one.startswith(two), "endswith": one.endswith(two)}[name]


def _json(text: str) -> Any:
    """Parse JSON with its numbers as texts, so that 3.10 stays 3.10."""
    try:
        return json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return UNKNOWN
