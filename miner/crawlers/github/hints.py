"""Repositories by the hours of GH Archive: hints of where to look, never truth.

Every hour of a month is a fact `crawl.archive` about that month: a reading that was cut goes on, and an hour that comes
later is all that is read then. An hour is known by its name and the size of its file, wherever that lies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial

import msgspec

from miner.core.blobs import BlobStore
from miner.core.errors import InfrastructureFault
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, Observation, Producer
from miner.core.text import some
from miner.crawlers.gharchive import Hints, HourArchive, HourReport, MergeHint, hours_of, read_hour
from miner.crawlers.github.month import Month

ARCHIVE = Producer(name="github.archive")
KIND = "crawl.archive"
_decode = msgspec.json.Decoder(list[MergeHint]).decode


def measure_hours(archive: HourArchive, month: Month, memo: Memo, blobs: BlobStore) -> tuple[Fact, ...]:
    """Return what the hours of a month hold, of those that are there; known ones are not read again.

    Raises:
        InfrastructureFault: the archive does not answer as an archive does; the hours that were read are kept.
    """
    sizes = archive.sizes(hours_of(month.name))
    return tuple(
        memo.measure(ARCHIVE, KIND, month.name, {"hour": hour, "size": size}, partial(_hour, archive, hour, blobs))
        for hour, size in sizes.items()
    )


def _hour(archive: HourArchive, hour: str, blobs: BlobStore) -> Observation:
    reading = read_hour(archive, hour)
    found = list(reading)
    report = reading.report
    if report.state == "missing":
        raise InfrastructureFault(f"hour {hour} was there, and is not any more", reason=Reason.HOURS_UNREACHABLE)
    return Observation(
        payload={"report": report.model_dump(mode="json")}, blobs={"hints": blobs.put(msgspec.json.encode(found))}
    )


def fullest(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return the facts of a month's hours, each hour once: of several copies of it that which held most."""
    best: dict[str, Fact] = {}
    for fact in facts:
        report = fact.payload["report"]
        other = best.get(report["hour"])
        if other is None or report["size"] >= other.payload["report"]["size"]:
            best[report["hour"]] = fact
    return tuple(best[hour] for hour in sorted(best, key=_when))


def _when(hour: str) -> tuple[str, int]:
    day, _, number = hour.rpartition("-")
    return day, int(number)


def reports_of(month: str, facts: Iterable[Fact]) -> tuple[HourReport, ...]:
    """Return what was seen of each hour of a month, those included that are missing."""
    seen = (HourReport.model_validate(fact.payload["report"]) for fact in facts)
    known = {report.hour: report for report in seen}
    return tuple(known.get(hour) or HourReport(hour=hour, state="missing") for hour in hours_of(month))


def hints_of(month: str, facts: Iterable[Fact], blobs: BlobStore) -> Hints:
    """Return the hints of a month that its hours hold."""
    hints = Hints(month)
    for fact in facts:
        for hint in _decode(blobs.get(fact.blobs["hints"])):
            hints.add(hint)
    return hints


def doubts_of(month: str, reports: Iterable[HourReport]) -> tuple[str, ...]:
    """Return sentences on the hours that are not whole."""
    hours: dict[str, list[str]] = {}
    for report in reports:
        hours.setdefault(report.state, []).append(report.hour)
    total = sum(map(len, hours.values()))
    return tuple(
        f"GH Archive, {month}: {len(found)} of {total} hours are {state}: {some(found)}"
        for state, found in sorted(hours.items())
        if state != "read"
    )


def others(hinted: Mapping[str, Collection[int]], found: Mapping[str, int]) -> dict[str, int]:
    """Return the names that lead to a repository now that the archive does not mean by them, and to which.

    Args:
        hinted: name -> ids of the repositories that the archive means by it.
        found: name -> id of the repository that it leads to now.
    """
    return {name: found[name] for name, meant in hinted.items() if name in found and found[name] not in meant}
