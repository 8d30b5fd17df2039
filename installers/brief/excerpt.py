"""The part of a log that tells why: around the evidence of each signature, within a budget.

What a signature rests on is looked for by the patterns that found it; what no single pattern finds, by the words that
it names. Then come the lines that any tool marks as an error, the head that names what ran, and the end. Left-out lines
are marked; what changes from run to run is taken out, so that the same failure gives the same text. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from installers.interface import Signature
from installers.repair.kinds import Kind
from installers.repair.patterns import PATTERNS, Pattern
from miner.core.excerpt import error_excerpt
from miner.core.records import legible

_PART = 256 * 1024
_WIDTH = 300
_HEAD = 3
_TAIL = 4
_BEFORE, _AFTER = 9, 4
_MOST_PLACES = 2
_WORD = re.compile(r"[\w./+-]{3,}")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]")
_MARGIN = re.compile(r"^ {9}", re.MULTILINE)
_LONG_LINE = re.compile(r"([^\n]{4000})[^\n]+")
"""No message needs as much, and what an expression costs may grow with the square of a line."""
_OF_HOOK = re.compile(r"^ {9}\[std(?:out|err)\]$", re.MULTILINE)
_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n")
_ERROR = re.compile(r"error|cause|because|not found|no such|cannot|fail|missing|invalid|unrecognized|timed? ?out", re.I)
_VOLATILE = (
    # what it is, what it becomes
    (re.compile(r"\.tmp\w{6}"), ".tmp"),
    (re.compile(r"/tmp/[\w.-]+"), "/tmp/tmp"),  # noqa: S108 - a pattern, not a path of ours
    (re.compile(r"\bpytest-of-\w+/pytest-\d+"), "pytest"),
    (re.compile(r"\b0x[0-9a-fA-F]{4,}\b"), "0x"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r" The latest version satisfying the requirement is v\S+ published at [\dT:.-]+Z\."), ""),
    (re.compile(r" Consider using `exclude-newer-package` to override[^\n]*"), ""),
    (
        re.compile(
            r"(?<!published at )\b\d{4}-\d\d-\d\d[T ](?!00:00:00Z)\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
        ),
        "TIME",
    ),
    (re.compile(r"(?<![T\d:])\d\d:\d\d:\d\d(?:[.,]\d+)?\b(?!Z)"), "TIME"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:m?s| seconds)\b"), "some time"),
    (re.compile(r"\b(pid|PID|port|thread)([ =:]+)\d+"), r"\1\2N"),
    (re.compile(r"\b(localhost|127\.0\.0\.1|\[::1\]):\d{2,5}\b"), r"\1:N"),
)
_NOISE = re.compile(
    r"\s*(?:(?:creating|writing|copying|adding|reading|removing|hard linking|byte-compiling|running) [\w./'-]"
    r"|(?:Collecting|Downloading|Using cached|Requirement already satisfied)\b"
    r"|<(?:Module|Package|Dir|Class|Function|Coroutine|UnitTestCase|TestCaseFunction|Instance|Session|Doctest\w*) "
    r"|\S+::\S.* (?:PASSED|SKIPPED|XFAIL)\b|[.sx]+ *\[ *\d+%\]"
    r"|(?:warning: )?no (?:previously-included )?(?:files|directories) (?:found )?matching)"
)
"""Lines that tell no cause, of which there are often very many."""
_BUILD_KINDS = {
    Kind.BUILD_NEEDS_MODULE: (Kind.MISSING_MODULE,),
    Kind.BUILD_NEEDS_NAME: (Kind.MISSING_NAME, Kind.MISSING_ATTRIBUTE),
}
"""What a build lacks is found by the patterns of what anything lacks."""


def steady(log: str) -> str:
    """Return a log without colours, margins, runs of blank lines, and what changes from run to run.

    Of a very long one the head and the tail.
    """
    if len(log) > 2 * _PART:
        log = f"{log[:_PART]}\n{log[-_PART:]}"
    text = _LONG_LINE.sub(r"\1", _ANSI.sub("", log.replace("\r\n", "\n").replace("\r", "\n")))
    if _OF_HOOK.search(text):
        text = _MARGIN.sub("", text)
    for pattern, said in _VOLATILE:
        text = pattern.sub(said, text)
    return legible(_BLANK.sub("\n\n", text).strip("\n"))


def relevant(log: str, signatures: Sequence[Signature], budget_chars: int) -> str:
    """Return what of a log tells why it failed.

    Args:
        log: what a step printed.
        signatures: of the failure, the most telling first.
        budget_chars: the result is never longer.
    """
    text = steady(log)
    if len(text) <= budget_chars and all(len(line) <= _WIDTH and not _is_noise(line) for line in text.split("\n")):
        return text
    return _Excerpt(text, min(_WIDTH, budget_chars)).within(signatures, budget_chars)


class _Excerpt:
    """A log by its lines, and which of them are wanted how much."""

    def __init__(self, text: str, width: int) -> None:
        self._text = text
        self._width = width
        self._lines = text.split("\n")
        self._starts = _starts(self._lines)
        self._focus: dict[int, int] = {}  # line -> the column that must be seen

    def within(self, signatures: Sequence[Signature], budget: int) -> str:
        wanted = list(dict.fromkeys(self._wanted(signatures)))
        chosen, left = [], budget
        for index in wanted:
            left -= len(self._shown(index)) + 1
            if left < -1:
                break
            chosen.append(index)
        while chosen and len(text := self._rendered(chosen)) > budget:
            chosen.pop()
        return text if chosen else ""

    def _wanted(self, signatures: Sequence[Signature]) -> Iterator[int]:
        """Give the lines, the most wanted first; some of them more than once."""
        places = [self._places(signature) for signature in signatures]
        named = [self._named(signature) for signature, found in zip(signatures, places, strict=True) if not found]
        told = [place[0] for place in (*places, *named) if place]
        errors = self._errors()
        yield from told[:1] or self._last_of_pytest() or errors[-1:]
        yield from self._head()
        for index in told:
            yield from self._around(index)
        yield from errors
        for index in (*(one for place in places for one in place[1:]), *errors):
            yield from self._around(index)
        yield from self._told(range(max(0, len(self._lines) - _TAIL), len(self._lines)))
        yield from self._told(range(len(self._lines)))

    def _last_of_pytest(self) -> list[int]:
        """Return the last line that pytest marks as an error, which names the exception that came out."""
        return [index for index, line in enumerate(self._lines) if line.startswith("E   ")][-1:]

    def _told(self, indexes: Iterable[int]) -> Iterator[int]:
        return (index for index in indexes if not _is_noise(self._lines[index]))

    def _head(self) -> list[int]:
        return [index for index, line in enumerate(self._lines[: 4 * _HEAD]) if line.strip()][:_HEAD]

    def _around(self, index: int) -> Iterator[int]:
        """Give a line and its neighbours, the nearest first: more before it than after it, where a traceback is."""
        yield index
        steps = [offset for step in range(1, _BEFORE + 1) for offset in (-step, step) if offset <= _AFTER]
        yield from self._told(index + offset for offset in steps if 0 <= index + offset < len(self._lines))

    def _places(self, signature: Signature) -> list[int]:
        """Return the first few lines on which a signature rests."""
        found = dict.fromkeys(self._line(place) for place in self._matches(signature))
        return list(found)[:_MOST_PLACES]

    def _matches(self, signature: Signature) -> Iterator[int]:
        """Give where the patterns of a kind meet its subject: the end of each match, which is the message."""
        for pattern in _patterns(signature.kind):
            for match in pattern.regex.finditer(self._text):
                if _is_about(signature.subject, match.expand(pattern.subject)):
                    yield max(match.start(), match.end() - 1)

    def _named(self, signature: Signature) -> list[int]:
        """Return the first lines that hold a word of the subject: those that speak of an error before all others."""
        words = sorted(_WORD.findall(signature.subject), key=len, reverse=True)
        for word in words[:2]:
            holds = [index for index, line in enumerate(self._lines) if word in line]
            holds.sort(key=lambda index: _ERROR.search(self._lines[index]) is None)
            for index in holds[:_MOST_PLACES]:
                self._focus.setdefault(index, self._lines[index].find(word))
            if holds:
                return holds[:_MOST_PLACES]
        return []

    def _errors(self) -> list[int]:
        """Return the lines by which `error_excerpt` tells an error."""
        found, place = [], 0
        for line in error_excerpt(self._text).split("\n"):
            index = next((at for at in range(place, len(self._lines)) if self._lines[at].startswith(line)), None)
            if index is not None and line.strip():
                place = index + 1
                found += [] if _is_noise(line) else [index]
        return found

    def _line(self, place: int) -> int:
        """Return the line of a place in the text, and remember its column."""
        low, high = 0, len(self._starts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._starts[middle] <= place else (low, middle)
        self._focus.setdefault(low, place - self._starts[low])
        return low

    def _shown(self, index: int) -> str:
        """Return a line, cut around what must be seen of it."""
        line = self._lines[index].rstrip()
        if len(line) <= self._width:
            return line
        start = max(0, min(self._focus.get(index, 0) - self._width // 2, len(line) - self._width))
        return line[start : start + self._width]

    def _rendered(self, chosen: Iterable[int]) -> str:
        parts, last = [], -1
        for index in sorted(chosen):
            if index > last + 1:
                parts.append(_gap(index - last - 1))
            parts.append(self._shown(index))
            last = index
        if last < len(self._lines) - 1:
            parts.append(_gap(len(self._lines) - 1 - last))
        return "\n".join(parts)


def _is_noise(line: str) -> bool:
    return _NOISE.match(line[:_WIDTH]) is not None


def _gap(count: int) -> str:
    return f"[{count} line{'s' if count > 1 else ''} left out]"


def _starts(lines: Sequence[str]) -> list[int]:
    starts, place = [], 0
    for line in lines:
        starts.append(place)
        place += len(line) + 1
    return starts


def _patterns(kind: str) -> list[Pattern]:
    kinds = _BUILD_KINDS.get(Kind(kind), (kind,)) if kind in set(Kind) else ()
    return [pattern for pattern in PATTERNS if pattern.kind in kinds]


def _is_about(subject: str, found: str) -> bool:
    """Whether what a pattern found is a signature's subject, which may name the distribution before it."""
    found = " ".join(found.split())
    return not found or subject.endswith(found[:80]) or found.rpartition("/")[2] in subject
