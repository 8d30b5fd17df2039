"""From the logs of an attempt to signatures: what kind of failure it is, without what changes from run to run. Pure.

A signature is the same for the same failure of different projects: it holds no path, address, time or test id.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from packaging.utils import canonicalize_name

from installers.interface import Signature
from installers.repair.kinds import RANK, Kind
from installers.repair.patterns import PATTERNS
from installers.repair.resolution import resolution
from installers.repair.services import connections
from installers.repair.syntax import syntax_errors
from miner.core.records import RunOutcome, TestStatus

MOST = 12
"""Signatures of one log or run, at most."""
BUILD_STEPS = frozenset({"lock", "build-lock", "environment", "project", "rebuild"})
"""Steps in which distributions are resolved and built; in all others tests run."""

_LONGEST = 120
_MOST_READ = 2000
_PART = 256 * 1024
_FILE_WEIGHT = 5
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
_MARGIN = re.compile(r"^ {9}", re.MULTILINE)
_LONG_LINE = re.compile(r"([^\n]{4000})[^\n]+")
"""No message needs as much, and what an expression costs grows with the square of a line."""
_PLACES = re.compile(
    r"\b\w+://\S+|(?:[A-Za-z]:)?(?:[\w.~+-]*/){2,}([\w.+-]*)|\b0x[0-9a-fA-F]+|\b\d+(?:\.\d+)?m?s\b|\b\d{4,}\b"
)
_UNRECOGNISED = re.compile(r"error: (?:unrecognized arguments|no such option|ambiguous option): (.*)")
_WARNING = re.compile(r"^E +(?:[\w.]+\.)?(\w*Warning): (.*)$", re.MULTILINE)
_FAILED_BUILD = re.compile(
    r"(?:Failed to (?:download and )?build|Failed building wheel for|Failed to build installable wheels for) "
    r"`?([A-Za-z0-9][\w.-]*)(==[\w.+!-]+| @ )?"
)
_PIP_COLLECTED = re.compile(r"Collecting ([A-Za-z0-9][\w.-]*)(==[\w.+!-]+)?")
_PROJECT = (" @ ", "file:")
_BUILD_KINDS = {
    Kind.MISSING_MODULE: Kind.BUILD_NEEDS_MODULE,
    Kind.MISSING_NAME: Kind.BUILD_NEEDS_NAME,
    Kind.MISSING_ATTRIBUTE: Kind.BUILD_NEEDS_NAME,
}
_OF_BUILDS = frozenset(
    {
        Kind.USE_2TO3,
        Kind.CYTHON_LANGUAGE,
        Kind.OLD_WHEEL,
        Kind.STRICT_METADATA,
        Kind.FLAT_LAYOUT,
        Kind.NO_VERSION_FROM_VCS,
    }
)
_BUILTIN = frozenset({"NoneType", "bytes", "dict", "float", "function", "int", "list", "module", "object", "tuple"})
"""Of these, attributes are missing by mistake: they say nothing about an environment (`str` lost and gained some)."""
_LIMITS = (
    (re.compile(r"exceeded its time limit"), Kind.TIME_OUT, ""),
    (re.compile(r"exceeded its limit of memory|^Killed$", re.MULTILINE), Kind.MEMORY_LIMIT, ""),
    (re.compile(r"exceeded its limit of (\w+)"), Kind.LIMIT, r"\1"),
)
_Found = tuple[Kind, str]


def signatures_of_log(step: str, text: str) -> tuple[Signature, ...]:
    """Return the signatures of what a step of an attempt printed, the most telling first.

    Args:
        step: "lock", "build-lock", "environment", "project"; "health" or "suite" for what pytest printed.
        text: the log; of a long one the head and the tail are read. The detail of a step that reached a bound counts
            as a log, too.
    """
    text = _plain(text)
    found = _of_builds(text) if step in BUILD_STEPS else _of_text(text)
    return _ranked(Counter(dict.fromkeys(found, 1)))


def signatures_of_run(outcome: RunOutcome, log: str) -> tuple[Signature, ...]:
    """Return the signatures of a collection or a run of tests: those that most tests show first.

    Args:
        outcome: what the run says; a file that cannot be collected counts as several tests.
        log: what pytest printed: read where it did not even start, and for what stands in no report.
    """
    counted: Counter[_Found] = Counter()
    for text in outcome.collect_errors.values():
        counted.update(dict.fromkeys(_of_text(_plain(text)), _FILE_WEIGHT))
    for result in outcome.results:
        if result.status in (TestStatus.FAILED, TestStatus.ERROR):
            counted.update(dict.fromkeys(_of_text(_plain(f"{result.text}\nE   {result.message}")), 1))
    if not outcome.started or outcome.stopped:
        counted.update(dict.fromkeys(_of_text(_plain(f"{outcome.stopped}\n{log}")), _FILE_WEIGHT))
    elif not outcome.finished:
        counted.update(dict.fromkeys(_of_text(_plain(log)), 1))
    for kind, subject, reached in (
        (Kind.TIME_OUT, "", outcome.timed_out),
        (Kind.MEMORY_LIMIT, "", outcome.out_of_memory),
        (Kind.LIMIT, outcome.limit, bool(outcome.limit)),
    ):
        if reached:
            counted[(kind, subject)] += _FILE_WEIGHT
    return _ranked(counted)


def _plain(text: str) -> str:
    """Return a log without colours, uv's margin, the ends of very long lines, and the middle of a long log."""
    if len(text) > 2 * _PART:
        text = f"{text[:_PART]}\n{text[-_PART:]}"
    return _LONG_LINE.sub(r"\1", _MARGIN.sub("", _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))))


def _of_text(text: str) -> list[_Found]:
    """Return what a text says, whatever step it is of."""
    found: list[_Found] = []
    for pattern in PATTERNS:
        found += [(pattern.kind, match.expand(pattern.subject)) for match in pattern.regex.finditer(text)]
    found += [(Kind.UNKNOWN_OPTION, option) for option in _options(text)]
    found += [(Kind.WARNING_AS_ERROR, f"{kind}: {said}") for kind, said in _WARNING.findall(text)]
    found += syntax_errors(text)
    found += connections(text)
    return [one for kind, subject in found for one in _split(kind, subject)]


def _of_builds(text: str) -> list[_Found]:
    """Return what a step that resolves and builds says; what a build lacks is told with the distribution it is of."""
    found = [(kind, regex.search(text), subject) for regex, kind, subject in _LIMITS]
    limits = [(kind, match.expand(subject)) for kind, match, subject in found if match is not None]
    built = _failed_builds(text)
    name = canonicalize_name(built[0].partition("==")[0]) if built and built[0] else ""
    said: list[_Found] = []
    for kind, subject in _of_text(text):
        if kind in _BUILD_KINDS:
            said.append((_BUILD_KINDS[kind], f"{name}: {subject}"))
        elif kind in _OF_BUILDS:
            said.append((kind, f"{name}: {subject}" if subject else name))
        else:
            said.append((kind, subject))
    return [*limits, *resolution(text), *said, *((Kind.BUILD_FAILED, one) for one in built)]


def _failed_builds(text: str) -> list[str]:
    """Return the distributions that did not build, as `name==version`; "" for the project itself."""
    found = []
    for match in _FAILED_BUILD.finditer(text):
        name, version = match[1], match[2] or ""
        found.append("" if version in _PROJECT else f"{canonicalize_name(name)}{version}")
    return list(dict.fromkeys(found))


def _options(text: str) -> list[str]:
    """Return the options that pytest refuses, without their values."""
    words = [word for line in _UNRECOGNISED.findall(text) for word in line.split()]
    return list(dict.fromkeys(word.partition("=")[0] for word in words if word.startswith("-") and len(word) > 1))


def _split(kind: Kind, subject: str) -> Iterable[_Found]:
    """Part a list of plug-ins; leave out what names nothing."""
    if kind is Kind.MISSING_PLUGIN:
        for name in subject.split(","):
            if name.strip():
                yield kind, name.strip()
    elif kind is not Kind.MISSING_ATTRIBUTE or subject.partition(":")[0] not in _BUILTIN:
        yield kind, subject


def _ranked(counted: Counter[_Found]) -> tuple[Signature, ...]:
    """Return signatures, bounded: of equally many the more telling kind first; one that a better one says goes."""
    steady: Counter[_Found] = Counter()
    for (kind, subject), count in counted.items():
        steady[(kind, _steady(subject))] += count
    known = {subject.rpartition(":")[2] for _, subject in steady if ":" in subject and "?:" not in subject}
    named = {
        one: count for one, count in steady.items() if "?:" not in one[1] or one[1].rpartition(":")[2] not in known
    }
    order = sorted(named, key=lambda one: (-named[one], RANK[one[0]], one[1]))
    return tuple(Signature(kind=kind.value, subject=subject) for kind, subject in order[:MOST])


def _steady(subject: str) -> str:
    """Take out places, addresses, times and large numbers, and the end of what is too long."""
    said = " ".join(_PLACES.sub(lambda match: match[1] or "", subject[:_MOST_READ]).split())
    return said[:_LONGEST].strip()
