"""Which answers no other project should take over, however often they worked. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.utils import canonicalize_name

from installers.interface import Signature
from installers.repair.edits import name_of
from installers.repair.kinds import Kind
from installers.repair.portable import Change
from miner.jobs.learn_evidence import VAGUE

_UNSPECIFIC = VAGUE | {Kind.NO_SOLUTION.value, Kind.BUILD_FAILED.value}
_OF_PYTHON = frozenset(
    kind.value
    for kind in (Kind.PYTHON_MISMATCH, Kind.NO_WHEEL, Kind.PYTHON_2_SYNTAX, Kind.NEWER_SYNTAX, Kind.OLDER_SYNTAX)
)
_WORDS = re.compile(r"\w(?:[\w.-]*\w)?")


def unfit(signature: Signature, edit: Iterable[Change]) -> str:
    """Return why an edit for a failure is nothing for other projects, "" where nothing speaks against it."""
    if signature.kind in _UNSPECIFIC or not signature.subject.strip():
        return "the failure names no cause: what answers it for one project is none for another one"
    named = _names(signature.subject)
    for change in sorted(edit):
        if change.field == "python" and not (signature.kind in _OF_PYTHON or "python" in named):
            return "it changes Python, and the failure is not about Python"
        if change.how == "removed" and (name_of(change.item) or change.item) not in named:
            return f"it takes {change.item} away, which the failure does not name"
    return ""


def _names(subject: str) -> frozenset[str]:
    """Return the names that a subject may mean: its words, and what dotted ones are inside of."""
    words = _WORDS.findall(subject)
    return frozenset(canonicalize_name(name) for word in words for name in (word, word.partition(".")[0]))
