"""Hints from GH Archive: which repositories had pull requests merged in a month, as far as the archive saw them.

A hint narrows where to look and is never truth: since May 2025 the archive reads one page of GitHub's events out of
three (its issues 310, 312 and 317), and samples of hours from then to 2026 held 2 to 52 % of the merges of busy
repositories. `miner.crawlers.gharchive_coverage` measures that share for a month.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from miner.core.records import Legible, Record
from miner.crawlers.gharchive_events import MergeHint, merges
from miner.crawlers.gharchive_hours import HourArchive, hours_of
from miner.crawlers.gharchive_lines import Tally, inflate, whole_lines

__all__ = ["Hints", "HourArchive", "HourReport", "MergeHint", "hours_of", "read_hour"]

HourState = Literal["read", "truncated", "empty", "unreadable", "missing"]


class HourReport(Record):
    """What was seen while an hour was read: see `Tally`.

    Attributes:
        state: truncated: what came before a cut or damage was used; unreadable: it is no gzip file.
    """

    hour: str
    state: HourState
    size: int = 0
    pulls: int = 0
    merges: int = 0
    undecided: int = 0
    bad: int = 0
    detail: Legible = ""


class HourReading:
    """One pass over an hour: iterate over its hints, then ask for the report.

    Args:
        archive: where the hour is.
        hour: its name.
    """

    def __init__(self, archive: HourArchive, hour: str) -> None:
        self._archive = archive
        self._hour = hour
        self._tally = Tally()
        self._found = True

    def __iter__(self) -> Iterator[MergeHint]:
        self._tally, self._found = Tally(), True
        with self._archive.open(self._hour) as chunks:
            if chunks is None:
                self._found = False
                return
            yield from merges(whole_lines(inflate(chunks, self._tally), self._tally), self._tally)

    @property
    def report(self) -> HourReport:
        """What was seen, once all hints were taken."""
        tally = self._tally
        counts = {key: getattr(tally, key) for key in ("size", "pulls", "merges", "undecided", "bad")}
        return HourReport(hour=self._hour, state=self._state(), detail=tally.damage, **counts)

    def _state(self) -> HourState:
        if not self._found:
            return "missing"
        if self._tally.damage:
            return "unreadable" if self._tally.foreign else "truncated"
        return "read" if self._tally.size else "empty"


def read_hour(archive: HourArchive, hour: str) -> HourReading:
    """Return an hour, to iterate over; an event that stands in it twice comes twice."""
    return HourReading(archive, hour)


class RepositoryHint(NamedTuple):
    """A repository in which pull requests were merged, as far as the archive saw them.

    Attributes:
        repository: the last name that an event called it by.
        names: all of them, in the order in which they came up.
        language: the last main language that an event gave; None where none did.
        merges: distinct pull requests.
    """

    repository_id: int
    repository: str
    names: tuple[str, ...]
    language: str | None
    merges: int


class _Seen:
    """What is kept of a repository: eight bytes a pull request, so that a month of all of GitHub fits into memory.

    A pull request and the second of its merge are one number, and duplicates go whenever the list has doubled.
    """

    __slots__ = ("language", "names", "packed", "settled")

    def __init__(self) -> None:
        self.language: str | None = None
        self.names: tuple[str, ...] = ()
        self.packed = array("Q")
        self.settled = 0

    def add(self, hint: MergeHint) -> None:
        if not self.names or self.names[-1] != hint.repository:
            self.names = (*(name for name in self.names if name != hint.repository), hint.repository)
        self.language = hint.language or self.language
        self.packed.append(hint.number << 32 | int(hint.merged_at.timestamp()))
        if len(self.packed) > 2 * self.settled + 8:
            self.settle()

    def settle(self) -> None:
        first: dict[int, int] = {}
        for item in sorted(self.packed):
            first.setdefault(item >> 32, item)
        self.packed = array("Q", first.values())
        self.settled = len(self.packed)


class Hints:
    """A month's merges by repository, folded from hints; what is seen twice counts once, at its earliest time.

    Args:
        month: "2025-05"; merges of other months are left out, whichever hour they stand in.
    """

    def __init__(self, month: str) -> None:
        self.month = month
        self._first = datetime.fromisoformat(f"{month}-01T00:00:00+00:00")
        self._next = (self._first + timedelta(days=31)).replace(day=1)
        self._seen: dict[int, _Seen] = {}

    def add(self, hint: MergeHint) -> bool:
        """Take a hint in; return whether it is of this month."""
        if not self._first <= hint.merged_at < self._next:
            return False
        seen = self._seen.get(hint.repository_id)
        if seen is None:
            seen = self._seen[hint.repository_id] = _Seen()
        seen.add(hint)
        return True

    def __iter__(self) -> Iterator[RepositoryHint]:
        for repository_id, seen in self._seen.items():
            seen.settle()
            yield RepositoryHint(repository_id, seen.names[-1], seen.names, seen.language, len(seen.packed))

    def __len__(self) -> int:
        return len(self._seen)

    def pulls(self, repository_id: int) -> dict[int, datetime]:
        """Return the pull requests of a repository by number, with the time of their merge."""
        seen = self._seen.get(repository_id)
        if seen is None:
            return {}
        seen.settle()
        return {item >> 32: datetime.fromtimestamp(item & 0xFFFFFFFF, UTC) for item in seen.packed}


def repositories_with_hints(hints: Hints, *, language: str | None = None) -> tuple[RepositoryHint, ...]:
    """Return the repositories with most merges first.

    Args:
        hints: of a month.
        language: leave out those whose main language is known to be another one; the slim shape never says it.
    """
    kept = (found for found in hints if language is None or found.language in (None, language))
    return tuple(sorted(kept, key=lambda found: (-found.merges, found.repository_id)))
