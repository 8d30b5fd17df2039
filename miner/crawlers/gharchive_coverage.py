"""What the archive had of a month: its hours, and the share of the truly merged pull requests that it saw.

The truth comes from the forge's API, for the repositories that were crawled; so the share is one of these, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from pydantic import Field

from miner.core.records import Record
from miner.crawlers.gharchive import Hints, HourReport, HourState

Merges = Mapping[int, datetime]
"""Number of a merged pull request -> time of the merge."""
Truth = Mapping[int, Merges]
"""Repository id -> its merges, as the API says."""


class DayCoverage(Record):
    """One day, by the hours of the archive and by the true times of merges.

    Attributes:
        hours: those with events in them, whole or cut.
        events: events of a merge in these hours.
        merged: pull requests that the API says were merged on that day.
        seen: those of them that the archive had, in whatever hour.
    """

    day: str
    hours: int = 0
    events: int = 0
    merged: int = 0
    seen: int = 0

    @property
    def share(self) -> float | None:
        """Share of the day's merges that the archive had; None where there were none."""
        return self.seen / self.merged if self.merged else None


class Coverage(Record):
    """What the archive had of a month.

    Attributes:
        hours: state -> number of hours.
        not_whole: names of the hours that are not whole, by state.
        size: bytes after decompression.
        pulls: events of pull requests.
        events: events of a merge, repeated ones included.
        undecided: events of a pull request that was closed, without a word on whether it was merged.
        bad: lines that could not be read.
        repositories: those with a merge in the month.
        merges: distinct pull requests that the archive says were merged in the month.
        merged: pull requests that the API says were merged in the month; None where no truth was given.
        seen: those of them that the archive had.
        unconfirmed: pull requests of the same repositories that only the archive says were merged in the month.
    """

    month: str
    hours: dict[HourState, int]
    not_whole: dict[HourState, tuple[str, ...]] = Field(default_factory=dict)
    size: int
    pulls: int
    events: int
    undecided: int
    bad: int
    repositories: int
    merges: int
    merged: int | None = None
    seen: int | None = None
    unconfirmed: int | None = None
    days: tuple[DayCoverage, ...] = ()

    @property
    def share(self) -> float | None:
        """Share of the true merges that the archive had; None where there is nothing to compare with."""
        return None if not self.merged or self.seen is None else self.seen / self.merged

    def text(self) -> str:
        """Return the report for a terminal; `model_dump_json` has it for programs."""
        return "\n".join(
            [*self._head(), "", "day         hours  events  merged    seen   share", *map(_line, self.days)]
        )

    def line(self) -> str:
        """Return one line on how much the archive had."""
        whole = self.hours.get("read", 0)
        said = f"GH Archive, {self.month}: {whole} of {sum(self.hours.values())} hours are there and whole"
        if self.merged is None:
            return f"{said}, with {self.merges} merged pull requests"
        seen = f"{self.seen} of the {self.merged} merged pull requests that were crawled"
        return f"{said}, with {seen} ({_percent(self.share)})"

    def _head(self) -> list[str]:
        states = ", ".join(f"{count} {state}" for state, count in self.hours.items())
        lines = [
            f"GH Archive, {self.month}: {sum(self.hours.values())} hours: {states}",
            *(f"  {state}: {_short(hours)}" for state, hours in self.not_whole.items()),
            f"events: {self.pulls} of pull requests, {self.events} of merges, {self.undecided} undecided, "
            f"{self.bad} bad lines, {self.size} bytes",
            f"hints: {self.merges} merged pull requests in {self.repositories} repositories",
        ]
        if self.merged is None:
            return [*lines, "truth: none was given"]
        seen = f"truth: {self.seen} of {self.merged} merged pull requests were seen ({_percent(self.share)})"
        return [*lines, f"{seen}; {self.unconfirmed} more are in the archive only"]


def coverage_of(month: str, reports: Iterable[HourReport], hints: Hints, truth: Truth | None = None) -> Coverage:
    """Compute the coverage of a month.

    Args:
        month: "2025-05".
        reports: of its hours.
        hints: folded from the same hours.
        truth: merges by the API; those of other months are left out.
    """
    reports = tuple(reports)
    states: dict[HourState, list[str]] = {}
    for report in reports:
        states.setdefault(report.state, []).append(report.hour)
    sums = {key: sum(getattr(report, key) for report in reports) for key in ("size", "pulls", "undecided", "bad")}
    merged, seen = _compared(month, hints, truth or {})
    total, hit = merged.total(), seen.total()
    known = sum(len(hints.pulls(repository_id)) for repository_id in truth or {})
    return Coverage(
        month=month,
        hours={state: len(hours) for state, hours in sorted(states.items())},
        not_whole={state: tuple(hours) for state, hours in sorted(states.items()) if state != "read"},
        events=sum(report.merges for report in reports),
        repositories=len(hints),
        merges=sum(found.merges for found in hints),
        merged=None if truth is None else total,
        seen=None if truth is None else hit,
        unconfirmed=None if truth is None else known - hit,
        days=_days(reports, merged, seen),
        **sums,
    )


def _compared(month: str, hints: Hints, truth: Truth) -> tuple[Counter[str], Counter[str]]:
    """Count true merges, and those of them that were seen, by day."""
    merged: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for repository_id, pulls in truth.items():
        known = hints.pulls(repository_id)
        for number, at in pulls.items():
            day = f"{at.astimezone(UTC):%Y-%m-%d}"
            if day.startswith(f"{month}-"):
                merged[day] += 1
                seen[day] += number in known
    return merged, seen


def _days(reports: tuple[HourReport, ...], merged: Counter[str], seen: Counter[str]) -> tuple[DayCoverage, ...]:
    hours: Counter[str] = Counter()
    events: Counter[str] = Counter()
    for report in reports:
        day = report.hour.rpartition("-")[0]
        hours[day] += report.size > 0
        events[day] += report.merges
    return tuple(
        DayCoverage(day=day, hours=hours[day], events=events[day], merged=merged[day], seen=seen[day])
        for day in sorted({*hours, *merged})
    )


def _short(hours: tuple[str, ...], most: int = 12) -> str:
    rest = f" and {len(hours) - most} more" if len(hours) > most else ""
    return ", ".join(hours[:most]) + rest


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _line(day: DayCoverage) -> str:
    return f"{day.day}  {day.hours:>5}{day.events:>8}{day.merged:>8}{day.seen:>8}{_percent(day.share):>8}"
