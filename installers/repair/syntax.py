"""Syntax errors: which Python a source was written for, told by the line that the parser refuses.

Source: "What's New in Python" 3.5-3.14, the language reference's change notes.
"""

from __future__ import annotations

import re

from installers.repair.kinds import Kind

_ERROR = re.compile(
    r"^E?[ >]*File \"[^\"\n]*\", line \d+[^\n]*\n(?P<line>E?[^\n]*)\n(?:E?[ \t]*[\^~]+[^\n]*\n)?"
    r"E?\s*(?:SyntaxError|IndentationError): (?P<what>[^\n]*)",
    re.MULTILINE,
)
_FUTURE = re.compile(r"SyntaxError: future feature (\w+) is not defined")
_LONGEST = 1000  # of a line: nobody writes more of one
_FEATURES = {"annotations": "3.7", "generator_stop": "3.5"}

_OLDER = ((re.compile(r"\basync\s*(?:=|\()|\.async\b|\bimport async\b|[(,]\s*async\s*[,)=]"), "3.6"),)
"""`async` is a keyword since 3.7."""

_NEWER = (
    (re.compile(r"^\s*type \w+(?:\[.*\])? ?=|^\s*(?:class|def) \w+\["), "3.12"),
    (re.compile(r"^\s*except\*|\[\*\w+\]"), "3.11"),
    (re.compile(r"^\s*(?:match\b.*:|case\b.*:)\s*$|^\s*with \($"), "3.10"),
    (re.compile(r":=|\bf?['\"][^'\"]*\{\w+=\}|[(,]\s*/\s*[,)]"), "3.8"),
    (re.compile(r"\bawait\b|\basync (?:def|with|for)\b"), "3.7"),
    (re.compile(r"\bf['\"]|^\s*\w+\s*:\s*[\w\[\]., ]+(?:=|$)|\d_\d"), "3.6"),
)
"""What a line holds that older ones refuse, the youngest first."""

_PYTHON_2 = re.compile(
    r"^\s*print\s+[^(=\s]|^\s*print\s*$|^\s*exec\s+[^(=\s]|\bexcept\s+[\w., ]+,\s*\w+\s*:|^\s*raise\s+\w+\s*,"
    r"|<>|`[^`]+`|\b0\d+\b|\bur['\"]|^\s*def \w+\([^)]*\([^)]*\)[^)]*\):"
)


def syntax_errors(text: str) -> list[tuple[Kind, str]]:
    """Return what the syntax errors of a text say; one whose line says nothing is left out."""
    found = [(Kind.NEWER_SYNTAX, _FEATURES[name]) for name in _FUTURE.findall(text) if name in _FEATURES]
    for error in _ERROR.finditer(text):
        kind = _kind_of(error["line"].removeprefix("E")[:_LONGEST], error["what"])
        if kind is not None:
            found.append(kind)
    return list(dict.fromkeys(found))


def _kind_of(line: str, what: str) -> tuple[Kind, str] | None:
    if what.startswith("f-string: "):
        return Kind.NEWER_SYNTAX, "3.12"
    if _PYTHON_2.search(line):
        return Kind.PYTHON_2_SYNTAX, ""
    older = next((version for regex, version in _OLDER if regex.search(line)), None)
    if older is not None:
        return Kind.OLDER_SYNTAX, older
    newer = next((version for regex, version in _NEWER if regex.search(line)), None)
    return None if newer is None else (Kind.NEWER_SYNTAX, newer)
