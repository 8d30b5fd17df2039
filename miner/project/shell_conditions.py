"""Conditions of shell scripts, `[ ... ]`, `[[ ... ]]` and `test ...`, in three values: yes, no and not known."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from miner.project.shell_tokens import ShellSyntaxError
from miner.project.shell_words import Variables, Word, fields, value

Exists = Callable[[str], bool | None]
"""Whether a path is there; None where that is not known."""

_UNARY = frozenset({"-z", "-n", "-f", "-d", "-e", "-s", "-x", "-r", "-w", "-v", "-L", "-h", "-t"})
_BINARY = frozenset({"=", "==", "!=", "=~", "-eq", "-ne", "-lt", "-gt", "-le", "-ge", "<", ">"})
_MAX_PATTERN = 100
_MAX_VALUE = 5_000
_DEEPEST = 20
_PLAIN_PATTERN = re.compile(r"[\w .:/=+-]*\Z")


def test(raw: tuple[str, ...], variables: Variables, exists: Exists) -> bool | None:
    """Return whether `[ ... ]`, `[[ ... ]]` or `test ...` holds, None where that is not known."""
    double = raw[0] == "[["
    inner = list(raw[1:-1] if raw[0] in ("[", "[[") else raw[1:])
    if double:
        words = [_operand(item, before, variables) for before, item in zip(["", *inner], inner, strict=False)]
    else:
        words = [word for item in inner for word in fields(item, variables)]
    try:
        return _Test(words, variables, exists).result()
    except (IndexError, ShellSyntaxError):
        return None


def _operand(item: str, before: str, variables: Variables) -> Word:
    """Expand a word of `[[ ... ]]`; an operator and a pattern without variables stay as they are."""
    plain = item in ("&&", "||", "(", ")", "<", ">") or (before == "=~" and not re.search(r"\$[\w{(]", item))
    return Word(item) if plain else value(item, variables)


class _Test:
    """A recursive reading of the words of a condition; answers are True, False, or None for unknown."""

    def __init__(self, words: list[Word], variables: Variables, exists: Exists) -> None:
        self._words = words
        self._variables = variables
        self._exists = exists
        self._at = 0

    def result(self) -> bool | None:
        if not self._words:
            return False
        answer = self._or(0)
        return answer if self._at == len(self._words) else None

    def _next_is(self, *texts: str) -> bool:
        return self._at < len(self._words) and self._words[self._at].text in texts

    def _or(self, depth: int) -> bool | None:
        answer = self._and(depth)
        while self._next_is("||", "-o"):
            self._at += 1
            other = self._and(depth)
            answer = True if True in (answer, other) else None if None in (answer, other) else False
        return answer

    def _and(self, depth: int) -> bool | None:
        answer = self._not(depth)
        while self._next_is("&&", "-a"):
            self._at += 1
            other = self._not(depth)
            answer = False if False in (answer, other) else None if None in (answer, other) else True
        return answer

    def _not(self, depth: int) -> bool | None:
        if depth > _DEEPEST:
            raise ShellSyntaxError("it is nested too deeply")
        if self._next_is("!"):
            self._at += 1
            answer = self._not(depth + 1)
            return None if answer is None else not answer
        if self._next_is("("):
            self._at += 1
            answer = self._or(depth + 1)
            self._at += 1
            return answer
        return self._primary()

    def _primary(self) -> bool | None:
        word = self._words[self._at]
        following = self._words[self._at + 1].text if self._at + 1 < len(self._words) else ""
        if following in _BINARY:
            right = self._words[self._at + 2]
            self._at += 3
            return _compare(word, following, right)
        if word.text in _UNARY and self._at + 1 < len(self._words):
            operand = self._words[self._at + 1]
            self._at += 2
            return self._unary(word.text, operand)
        self._at += 1
        return bool(word.text) if word.known else None

    def _unary(self, operator: str, operand: Word) -> bool | None:
        if operator == "-v":
            return operand.text in self._variables if operand.known else None
        if not operand.known:
            return None
        if operator in ("-z", "-n"):
            return bool(operand.text) == (operator == "-n")
        return None if operator == "-t" else self._exists(operand.text)


def _compare(left: Word, operator: str, right: Word) -> bool | None:
    if not (left.known and right.known):
        return None
    if operator == "=~":
        return _matches(left.text, right.text)
    if operator in ("=", "==", "!="):
        same = matches_glob(left.text, right.text)
        return None if same is None else same == (operator != "!=")
    if operator in ("<", ">"):
        return left.text < right.text if operator == "<" else left.text > right.text
    if not (re.fullmatch(r"-?\d{1,18}", left.text) and re.fullmatch(r"-?\d{1,18}", right.text)):
        return None
    one, two = int(left.text), int(right.text)
    return {
        "-eq": one == two,
        "-ne": one != two,
        "-lt": one < two,
        "-gt": one > two,
        "-le": one <= two,
        "-ge": one >= two,
    }[operator]


def matches_glob(text: str, pattern: str) -> bool | None:
    """Return whether a text matches a shell pattern; None where either is too long to try."""
    if len(pattern) > _MAX_PATTERN or len(text) > _MAX_VALUE:
        return None
    return fnmatchcase(text, pattern)


def _matches(text: str, pattern: str) -> bool | None:
    """Match a pattern that is plain alternatives with anchors at most: others are not tried, they may never end."""
    first, last = pattern.startswith("^"), pattern.endswith("$")
    inner = pattern.removeprefix("^").removesuffix("$")
    grouped = inner.startswith("(") and inner.endswith(")")
    inner = inner[1:-1] if grouped else inner
    plain = [part.replace("\\.", ".").removesuffix(".*") for part in inner.split("|")]
    loose = len(plain) > 1 and (first or last) and not grouped
    if loose or not all(_PLAIN_PATTERN.match(part) for part in plain):
        return None
    if first and last:
        return text in plain
    if first:
        return text.startswith(tuple(plain))
    return text.endswith(tuple(plain)) if last else any(part in text for part in plain)
