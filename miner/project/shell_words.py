"""Expansion of shell words as far as that is static: variables, defaults, quotes and splitting; never a command.

What cannot be known keeps its source text and says so. A variable that nothing sets is empty, as in a shell, unless it
is one that a runner of CI sets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from miner.project.shell_tokens import ShellSyntaxError, skip_brackets, skip_unit

Variables = Mapping[str, str | None]
"""Name -> value; None where a variable is set to something unknown."""

_RUNNER = re.compile(
    r"(?:HOME|PATH|USER|LOGNAME|SHELL|HOSTNAME|TMPDIR|TEMP|TMP|LANG|LC_ALL|CONDA|CONDA_PREFIX|VIRTUAL_ENV|JAVA_HOME|RANDOM"
    r"|OSTYPE|MACHTYPE|PYTHON|PY|PIP|HOSTTYPE|UID|EUID|SECONDS|IFS|CXX|CC|MAKE|SUDO_USER|DISPLAY|[?$!#-]"
    r"|(?:GITHUB|RUNNER|TRAVIS|CIRCLE|CI|APPVEYOR|AGENT|SYSTEM|GITLAB|READTHEDOCS)_\w*"
    r"|BUILD_(?:SOURCE|ARTIFACT|BUILD|REPOSITORY|REASON|NUMBER|ID|TAG|URL)\w*)\Z"
)
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*?$!#-]")
_BRACED = re.compile(r"([A-Za-z_]\w*|[0-9@*?$!-])(\[[@*]\])?(.*)\Z", re.DOTALL)
_PRESENT_DIRECTORY = re.compile(r"(?:\$\(|`)\s*pwd\s*(?:-P\s*)?(?:\)|`)\Z")
_ARRAY = re.compile(r"\((.*)\)\Z", re.DOTALL)
_MAX_VALUE = 5_000
_MAX_PATTERN = 100
_DEEPEST = 20


class Word(NamedTuple):
    """A word after expansion; where it is not `known`, some of it is still source text."""

    text: str
    known: bool = True


class _Piece(NamedTuple):
    text: str
    known: bool
    quoted: bool


def fields(raw: str, variables: Variables) -> list[Word]:
    """Expand a raw word to the words that a command gets: none, one or several; a broken one is not known."""
    try:
        pieces = _pieces(raw, variables, 0)
    except ShellSyntaxError:
        return [Word(raw, known=False)]
    found: list[Word] = []
    current: list[_Piece] = []
    for piece in pieces:
        if piece.quoted or not piece.known:
            current.append(piece)
            continue
        parts = re.split(r"[ \t\n]+", piece.text)
        for index, part in enumerate(parts):
            if index and current:
                found.append(_join(current))
                current = []
            if part:
                current.append(_Piece(part, known=True, quoted=False))
    return [*found, _join(current)] if current else found


def value(raw: str, variables: Variables, depth: int = 0) -> Word:
    """Expand a raw word without splitting it: what an assignment gives to a variable, an array joined by spaces."""
    try:
        if array := _ARRAY.match(raw):
            items = [word for item in _words(array.group(1)) for word in fields(item, variables)]
            return Word(" ".join(item.text for item in items), all(item.known for item in items))
        return _join(_pieces(raw, variables, depth))
    except ShellSyntaxError:
        return Word(raw, known=False)


def _join(pieces: list[_Piece]) -> Word:
    return Word("".join(piece.text for piece in pieces), all(piece.known for piece in pieces))


def _words(text: str) -> list[str]:
    """Split the inside of an array; the brackets around it were matched before."""
    found, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        start = at
        while at < len(text) and not text[at].isspace():
            at = skip_unit(text, at)
        found.append(text[start:at])
    return found


def _pieces(raw: str, variables: Variables, depth: int) -> list[_Piece]:
    """Take a word apart; an unquoted piece is subject to splitting."""
    found: list[_Piece] = []
    at = 0
    if raw.startswith("~") and (len(raw) == 1 or raw[1] == "/"):
        found, at = [_Piece("~", known=False, quoted=True)], 1
    while at < len(raw):
        end = skip_unit(raw, at)
        unit = raw[at:end]
        if unit[0] == '"' and len(unit) > 1:
            found += _quoted(unit[1:-1], variables, depth)
        elif unit[0] == "'" and len(unit) > 1:
            found.append(_Piece(unit[1:-1], known=True, quoted=True))
        elif unit[0] == "\\":
            found.append(_Piece(unit[1:], known=True, quoted=True))
        elif unit[0] == "$":
            name = _NAME.match(raw, end) if len(unit) == 1 else None
            end = name.end() if name else end
            found.append(_dollar(raw[at:end], variables, depth, quoted=False))
        elif unit[0] == "`":
            found.append(_command(unit, variables))
        elif unit == "(" or (unit in "<>" and raw.startswith("(", end)):
            end = skip_brackets(raw, raw.index("(", at), "(", ")")
            found.append(_Piece(raw[at:end], known=False, quoted=True))
        else:
            found.append(_Piece(unit, known=True, quoted=True))
        at = end
    return found


def _quoted(text: str, variables: Variables, depth: int) -> list[_Piece]:
    """Expand the inside of double quotes."""
    found = [_Piece("", known=True, quoted=True)]
    at = 0
    while at < len(text):
        char = text[at]
        end = at + 1 if char in "'\"" else skip_unit(text, at)
        unit = text[at:end]
        if char == "\\" and len(unit) > 1:
            found.append(_Piece(unit[1:] if unit[1] in '$`"\\\n' else unit, known=True, quoted=True))
        elif char == "$":
            name = _NAME.match(text, end) if len(unit) == 1 else None
            end = name.end() if name else end
            found.append(_dollar(text[at:end], variables, depth, quoted=True))
        elif char == "`":
            found.append(_command(unit, variables))
        else:
            found.append(_Piece(unit, known=True, quoted=True))
        at = end
    return found


def _command(unit: str, variables: Variables) -> _Piece:
    """The output of a command is not known, but for `pwd`."""
    present = variables.get("PWD")
    if _PRESENT_DIRECTORY.match(unit) and present is not None:
        return _Piece(present, known=True, quoted=True)
    return _Piece(unit, known=False, quoted=True)


def _dollar(unit: str, variables: Variables, depth: int, *, quoted: bool) -> _Piece:
    if unit == "$":
        return _Piece("$", known=True, quoted=True)
    if unit.startswith("$'"):
        return _Piece(unit[2:-1], known="\\" not in unit, quoted=True)
    if unit.startswith("$("):
        return _command(unit, variables)
    body = unit[2:-1] if unit.startswith("${") else unit[1:]
    braced = _BRACED.match(body)
    if not braced or depth > _DEEPEST:
        return _Piece(unit, known=False, quoted=True)
    name, array, operation = braced.groups()
    held = _lookup(name, variables)
    result = _operate(held, operation, variables, depth) if operation else held
    if result is None or len(result) > _MAX_VALUE:
        return _Piece(unit, known=False, quoted=True)
    return _Piece(result, known=True, quoted=quoted and not array and name != "@")


def _lookup(name: str, variables: Variables) -> str | None:
    if name in variables:
        return variables[name]
    return None if _RUNNER.match(name) else ""


def _operate(held: str | None, operation: str, variables: Variables, depth: int) -> str | None:
    """Apply what stands behind a name in braces; None where that is not known."""
    if match := re.match(r":?([-=+?])", operation):
        word = value(operation[match.end() :], variables, depth + 1)
        other = word.text if word.known else None
        if match[1] == "+":
            return None if held is None else other if held else ""
        return held if held is None or held else other
    if held is None:
        return None
    if operation in ("^^", ",,"):
        return held.upper() if operation == "^^" else held.lower()
    if match := re.match(r":(\d{1,3})(?::(\d{1,3}))?\Z", operation):
        start = int(match[1])
        return held[start : start + int(match[2])] if match[2] else held[start:]
    if operation.startswith("/"):
        return _replace(held, operation)
    if operation.startswith(("%", "#")):
        return _cut(held, operation)
    return None


def _replace(held: str, operation: str) -> str | None:
    """`/old/new` and `//old/new` with a plain text to look for."""
    every = operation.startswith("//")
    old, _, new = operation[2 if every else 1 :].partition("/")
    old = old.replace("\\", "").strip("'\"")
    if not old or re.search(r"[*?\[\]$`]", old + new):
        return None
    return held.replace(old, new.strip("'\""), -1 if every else 1)


def _cut(held: str, operation: str) -> str | None:
    """`%pattern`, `%%`, `#` and `##`: the shortest or the longest end or beginning that matches goes away."""
    sign = operation[0]
    longest = operation.startswith(sign * 2)
    pattern = operation.lstrip(sign)
    if len(pattern) > _MAX_PATTERN or len(held) > _MAX_PATTERN or "$" in pattern:
        return None
    places = range(len(held) + 1)
    if sign == "%":
        order = places if longest else reversed(places)
        return next((held[:at] for at in order if fnmatchcase(held[at:], pattern)), held)
    order = reversed(places) if longest else places
    return next((held[at:] for at in order if fnmatchcase(held[:at], pattern)), held)
