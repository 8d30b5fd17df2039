"""Versions of Python as CI files write them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_VERSION = re.compile(r"(?:c?python-?|py)?([23])\.(\d{1,2})(?![\dt])(?:[.\w+-]*)?\Z", re.I)
_SHORT = re.compile(r"(?:py|python|cp)?([23])(\d{1,2})\Z", re.I)
_RANGE = re.compile(r"[<>=~^! ,]|\s-\s")
NO_CPYTHON = re.compile(r"pypy|graalpy|jython|stackless|micropython|nightly|\bhead\b|\d\.\d+t\b", re.I)
"""What names no release of CPython with its usual ABI."""


def python_versions(text: str) -> tuple[tuple[str, ...], str]:
    """Return the versions that a text names ("3.8" of "3.8.x", "3.12-dev" or "cpython@3.8"), and a note ("").

    A version that was written without quotes has lost its last digit for those who read YAML as numbers: there is no
    Python 3.1 in any CI, so that it is 3.10.
    """
    found: list[str] = []
    notes: list[str] = []
    for part in re.split(r"[\n]+", text):
        part = part.strip().strip("'\"").replace("@", "-")
        if not part:
            continue
        version = _one(part)
        if version:
            found.append(version)
        elif NO_CPYTHON.search(part):
            notes.append(f"{part} is left out")
        else:
            notes.append(f"Python {part!r} is no one version")
    return tuple(dict.fromkeys(found)), "; ".join(notes)


def _one(text: str) -> str | None:
    if NO_CPYTHON.search(text):
        return None
    if _RANGE.search(text):
        named = re.findall(r"(?:>=|==|~=|\^|~)\s*([23]\.\d{1,2})", text) or re.findall(r"\A\s*([23]\.\d{1,2})", text)
        return named[0] if named and "," not in text and "<" not in text else None
    match = _VERSION.match(text) or _SHORT.match(text)
    if not match:
        return None
    return "3.10" if match.group(1, 2) == ("3", "1") else f"{match[1]}.{match[2]}"


def newest(versions: Iterable[str]) -> str | None:
    """Return the newest of some versions, None where there is none."""
    return max(versions, key=number, default=None)


def number(version: str) -> tuple[int, ...]:
    """Return what a version is compared by."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())
