"""Shell text to words and operators. Words keep their quotes, so that `miner.project.shell_words` can expand them."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

_DEEPEST = 40
_OPERATOR = re.compile(r";;&|;;|;&|&&|\|\||\|&|&>>|&>|<<<|<<-|<<|>>|>&|<&|>\||<>|[;&|()<>\n]")
_ENDS_WORD = frozenset(" \t\n;&|()<>")
_ARRAY = re.compile(r"[A-Za-z_]\w*\+?=\Z")


class ShellSyntaxError(Exception):
    """A text is no shell script, or too deep to be followed."""


class Token(NamedTuple):
    """A piece of a script."""

    kind: Literal["word", "operator", "end"]
    text: str


def tokens(text: str) -> list[Token]:
    """Split a text into words and operators; bodies of here-documents are dropped.

    Raises:
        ShellSyntaxError: a quote or a bracket has no end.
    """
    text = re.sub(r"\\\r?\n", "", text).replace("\r\n", "\n")
    found: list[Token] = []
    documents: list[tuple[str, bool]] = []
    at = 0
    in_test = False
    while at < len(text):
        char = text[at]
        if char in " \t":
            at += 1
        elif char == "#":
            at = _line_end(text, at)
        elif in_test and found[-1].text == "=~":
            end = _pattern_end(text, at)
            found.append(Token("word", text[at:end]))
            at = end
        elif not in_test and text.startswith("((", at):
            end = skip_brackets(text, at, "(", ")")
            found.append(Token("word", text[at:end]))
            at = end
        elif (match := _OPERATOR.match(text, at)) and not text.startswith(("<(", ">("), at):
            at = match.end()
            found.append(Token("word" if in_test and match[0] != "\n" else "operator", match[0]))
            if match[0] == "\n" and documents:
                at = _skip_documents(text, at, documents)
                documents = []
        else:
            end = _word_end(text, at)
            word = text[at:end]
            if found and found[-1] in (Token("operator", "<<"), Token("operator", "<<-")):
                documents.append((re.sub(r"[\\\"']", "", word), found[-1].text == "<<-"))
            in_test = word != "]]" and (in_test or word == "[[")
            found.append(Token("word", word))
            at = end
    return [*found, Token("end", "")]


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _skip_documents(text: str, at: int, documents: list[tuple[str, bool]]) -> int:
    for delimiter, tabs in documents:
        while at < len(text):
            end = _line_end(text, at)
            line = text[at:end].lstrip("\t") if tabs else text[at:end]
            at = end + 1
            if line == delimiter:
                break
    return min(at, len(text))


def _pattern_end(text: str, at: int) -> int:
    """Return the end of a regular expression, in which brackets and bars are no operators."""
    while at < len(text) and not text[at].isspace():
        at = skip_unit(text, at)
    return at


def _word_end(text: str, at: int) -> int:
    start = at
    while at < len(text):
        char = text[at]
        if char in "<>" and text.startswith("(", at + 1):
            at = skip_brackets(text, at + 1, "(", ")")
        elif char == "(" and _ARRAY.match(text[start:at]):
            at = skip_brackets(text, at, "(", ")")
        elif char in _ENDS_WORD:
            break
        else:
            at = skip_unit(text, at)
    if at == start:
        raise ShellSyntaxError(f"{text[at]!r} is out of place")
    return at


def skip_unit(text: str, at: int, depth: int = 0) -> int:
    """Return the place after a quoted text, an expansion, an escaped or a plain character that begins at a place.

    Raises:
        ShellSyntaxError: it has no end, or is too deep.
    """
    if depth > _DEEPEST:
        raise ShellSyntaxError("it is nested too deeply")
    char = text[at]
    if char == "\\":
        return min(at + 2, len(text))
    if char == "'" or text.startswith("$'", at):
        return _closing(text, text.index("'", at) + 1, "'", escapes=char == "$")
    if char == "`":
        return _closing(text, at + 1, "`", escapes=True)
    if char == '"':
        return _double(text, at, depth)
    if text.startswith("$(", at):
        return skip_brackets(text, at + 1, "(", ")", depth + 1)
    if text.startswith("${", at):
        return skip_brackets(text, at + 1, "{", "}", depth + 1)
    return at + 1


def _closing(text: str, at: int, quote: str, *, escapes: bool) -> int:
    while at < len(text) and text[at] != quote:
        at += 2 if escapes and text[at] == "\\" else 1
    if at >= len(text):
        raise ShellSyntaxError(f"a {quote} has no end")
    return at + 1


def _double(text: str, at: int, depth: int) -> int:
    at += 1
    while at < len(text) and text[at] != '"':
        at = at + 1 if text[at] == "'" else skip_unit(text, at, depth + 1)
    if at >= len(text):
        raise ShellSyntaxError('a " has no end')
    return at + 1


def skip_brackets(text: str, at: int, opening: str, closing: str, depth: int = 0) -> int:
    """Return the place after the bracket that closes the one at a place.

    Raises:
        ShellSyntaxError: there is none.
    """
    level = 0
    while at < len(text):
        if text[at] == opening:
            level += 1
            at += 1
        elif text[at] == closing:
            level -= 1
            at += 1
            if not level:
                return at
        else:
            at = skip_unit(text, at, depth + 1)
    raise ShellSyntaxError(f"a {opening} has no end")
