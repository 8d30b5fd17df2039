"""What uv and pip say when there is no solution: who asks for what, and what there is.

uv explains a conflict in one sentence ("Because A depends on B and ... we can conclude that ..."), whose parts have few
forms, and adds hints (`crates/uv-resolver/src/pubgrub/report.rs`). pip names one requirement that nothing satisfies.
"""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from installers.repair.kinds import Kind

_SPACE = re.compile(r"\s+")
# All repetitions are bounded, and a name begins where a word does: a build may print anything, of any length.
_NAME = r"(?<![A-Za-z0-9._,=<>!~-])([A-Za-z0-9](?:[A-Za-z0-9._-]{0,200}[A-Za-z0-9])?)"
_EXTRAS = r"(?:\[[\w,.-]{0,200}\])?"
_SPEC = r"((?:[<>=!~]={0,2}(?:\d{1,9}!)?[\w.*+]{1,99}(?:, ?(?=[<>=!~]))?){0,32})"
_WHAT = _NAME + _EXTRAS + _SPEC

_SAID = re.compile(r"No solution found|No matching distribution|Could not find a version|not found in the")
_NOT_THERE = re.compile(_WHAT + r" was not found in the (?:package registry|cache|provided)")
_NO_VERSION = re.compile(r"there (?:is|are) no versions? of " + _WHAT)
_ONLY = re.compile(
    r"only (?:the following versions of )?"
    + _NAME
    + r"[^`]{0,300}? (?:is|are) available[^`]{0,80}? (?:require|depend on|depends on) \1"
    + _EXTRAS
    + _SPEC
)
_YANKED = re.compile(_WHAT + r" was yanked")
_FILTERED = re.compile(r"`" + _NAME + r"` was filtered by `exclude-newer`")
_PIP = re.compile(r"Could not find a version that satisfies the requirement " + _WHAT)
_PIP_NONE = re.compile(r"[^()]{0,80}\(from versions: none\)")
_PYTHON = re.compile(
    r"Python version \([\d.]+\) does not satisfy Python" + _SPEC + r" and " + _WHAT + r" depends on Python"
)
_PYTHON_OF = re.compile(_WHAT + r" depends on Python" + _SPEC)
_INVALID = re.compile(_WHAT + r" has invalid metadata")
_NO_WHEEL = re.compile(_WHAT + r" (?:has|have) no (?:wheels with a matching|usable wheels)")
_PLAYERS = re.compile(r"(?:[Yy]ou require|your project requires|and|Because|because|depends? on) " + _WHAT)
_WORDS = frozenset(
    {"all", "only", "there", "you", "your-project", "the", "python", "because", "any", "one", "we", "of"}
)
_MOST = 3


def resolution(text: str) -> list[tuple[Kind, str]]:
    """Return what a failed resolution says, the most exact first."""
    if not _SAID.search(text):
        return []
    said = _SPACE.sub(" ", text)
    found: list[tuple[Kind, str]] = []
    found += [(Kind.NOT_ON_INDEX, canonicalize_name(match[1])) for match in _NOT_THERE.finditer(said)]
    found += _without_version(said)
    found += [(Kind.PYTHON_MISMATCH, f"{canonicalize_name(name)}: {spec}") for name, spec in _refusing(said)]
    found += [(Kind.INVALID_METADATA, canonicalize_name(match[1])) for match in _INVALID.finditer(said)]
    found += [(Kind.NO_WHEEL, canonicalize_name(match[1])) for match in _NO_WHEEL.finditer(said)]
    players = _players(said)
    if players and not found:
        found.append((Kind.NO_SOLUTION, ", ".join(players)))
    return list(dict.fromkeys(found))


def _without_version(said: str) -> list[tuple[Kind, str]]:
    """Return the requirements for which there is no version; those that the date has filtered are another kind."""
    later = {canonicalize_name(name) for name in _FILTERED.findall(said)}
    found: list[tuple[Kind, str]] = []
    for match in (match for form in (_NO_VERSION, _ONLY, _YANKED) for match in form.finditer(said)):
        name = canonicalize_name(match[1])
        if match[2]:
            found.append((Kind.NEWER_THAN_DATE if name in later else Kind.NO_VERSION, f"{name}{_spec(match[2])}"))
    for match in _PIP.finditer(said):
        name = canonicalize_name(match[1])
        none = _PIP_NONE.match(said, match.end()) is not None
        said_of = (Kind.NOT_ON_INDEX, str(name)) if none else (Kind.NO_VERSION, f"{name}{_spec(match[2])}")
        found.append(said_of)
    return found


def _refusing(said: str) -> list[tuple[str, str]]:
    """Return the distributions that refuse this Python, and the Python that they ask for."""
    pairs = [(match[2], match[1]) for match in _PYTHON.finditer(said)]
    pairs += [(match[1], match[3]) for match in _PYTHON_OF.finditer(said)]
    return [(name, _spec(spec)) for name, spec in dict.fromkeys(pairs) if spec]


def _players(said: str) -> list[str]:
    """Return the distributions that a conflict is about, in the order in which they are named."""
    start = said.find("No solution found")
    if start < 0:
        return []
    names = (str(canonicalize_name(match[1])) for match in _PLAYERS.finditer(said, start))
    return [name for name in dict.fromkeys(names) if name not in _WORDS][:_MOST]


def _spec(spec: str) -> str:
    return spec.replace(" ", "").rstrip(",")
