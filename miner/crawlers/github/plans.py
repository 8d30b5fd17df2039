"""What a repository's crawl has to ask for, and by which way: pure.

A walk reads all that were touched since a time; it leaves knowledge that the next month goes on from, and rests on no
search index. A search reads only what was merged in the month. The walk is taken where it costs not much more.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field

from miner.core.records import Record
from miner.crawlers.github.coverage import OVERLAP, Coverage, Glimpse, Known
from miner.crawlers.github.month import Month, stamp

SEARCH_MOST = 1000
"""https://docs.github.com/en/rest/search/search#about-search"""
SEARCH_PARTS = 800
"""Windows are cut so that each holds about so many, since merges are not spread evenly."""
_SEARCH_LATE = timedelta(hours=1)
_LISTS_OF_A_PULL = 14
_WALK_MAY_COST = 1.5
_JOINED = timedelta(days=31)
_TOUCHED_AGAIN = 0.25
"""Share of known pull requests that may have been touched again: a few rows more cost less than one more page."""


class Plan(Record):
    """One walk, or one search.

    Attributes:
        floor: a walk goes down to what was touched then.
        to: what is known after it, at least, by the forge's time.
        merged: how many were merged in the month, by the forge's search; None where it does not say.
        touched: how many are expected to be read.
        points: what each way is estimated to cost.
        nothing: it is known without asking that there is nothing to read.
    """

    way: Literal["walk", "search"]
    month: str
    floor: datetime | None = None
    to: datetime | None = None
    merged: int | None = None
    touched: int | None = None
    points: dict[str, int] = Field(default_factory=dict)
    why: str
    nothing: bool = False

    def serves(self, other: Plan) -> bool:
        """Whether what this plan reads is all that another one would read."""
        if self.way == "search":
            return other.way == "search" and other.month == self.month
        return other.floor is not None and self.floor is not None and self.floor <= other.floor


class Counts(Record):
    """What the fact `crawl.repository` counts.

    Attributes:
        glimpse: when the newest of all merged pull requests was touched; None where the forge does not say.
        merged: in the month, by the forge's search.
        touched: since the beginning of the month, by the forge's search.
    """

    glimpse: Glimpse
    merged: int | None = None
    touched: int | None = None


Wanted = Plan | Literal["check"] | None


def wanted(known: Coverage, month: Month, counts: Counts, *, since: datetime, page: int) -> Wanted:
    """Return what a month needs: nothing, a look whether anything changed ("check"), or a plan.

    Args:
        known: what earlier crawls know.
        month: that is asked for.
        counts: of the repository, as its fact says.
        since: what was seen then or later, by our time, is taken as it is.
        page: pull requests in a page, at most.
    """
    held = known.of(month)
    if held is None:
        return first_plan(known, month, counts, page=page)
    if known.fresh_at(held, [counts.glimpse]) >= since:
        return None
    last = max((*known.glimpses, counts.glimpse), key=lambda one: one.at)
    if last.at >= held.at and not last.nothing_after(held.to):
        touched = _touched(known, held, month, counts) if last == counts.glimpse else None
        return refreshing(held, month, last, counts.merged, touched)
    return "check"


def first_plan(known: Coverage, month: Month, counts: Counts, *, page: int) -> Plan:
    """Return the plan for a month of which nothing is known, or only what an earlier month's walk left open."""
    floor, newest = _floor(known, month), counts.glimpse.newest
    if newest is None or newest < month.start:
        last = "there is none" if newest is None else f"the newest was touched on {stamp(newest)}"
        return Plan(
            way="walk",
            month=month.name,
            floor=month.start if newest is not None and newest >= floor else floor,
            to=month.start,
            merged=0,
            touched=0,
            why=f"nothing to read: of the merged pull requests, {last}",
            nothing=True,
        )
    merged, touched = counts.merged, counts.touched
    if touched is not None:  # what is known at where an earlier walk ended is read once more
        touched += sum(floor <= sight.updated_at < month.start for sight in known.sights.values())
    points = {"walk": _points(touched or 0, page), "search": _search_points(merged or 0, page)}
    said = (
        f"walk: about {points['walk']} points for {touched} touched since {stamp(floor)}; "
        f"search: about {points['search']} for {merged} merged in the month"
    )
    search = merged is not None and touched is not None and points["walk"] > _WALK_MAY_COST * points["search"] + 1
    if search:
        to = counts.glimpse.at - _SEARCH_LATE
        return Plan(
            way="search",
            month=month.name,
            to=to,
            merged=merged,
            touched=merged,
            points=points,
            why=said,
            nothing=merged == 0,
        )
    return Plan(
        way="walk", month=month.name, floor=floor, to=newest, merged=merged, touched=touched, points=points, why=said
    )


def refreshing(held: Known, month: Month, glimpse: Glimpse, merged: int | None, touched: int | None = None) -> Plan:
    """Return the walk that brings what is known up to date."""
    floor = held.to - OVERLAP
    why = f"changed since {stamp(held.to)}: down to there"
    to = glimpse.newest or held.to
    return Plan(way="walk", month=month.name, floor=floor, to=to, merged=merged, touched=touched, why=why)


def _touched(known: Coverage, held: Known, month: Month, counts: Counts) -> int | None:
    """Return about how many were touched after what is known, by the count since the month's start; None: unknown."""
    if held.since is None or counts.touched is None:
        return None
    older = sum(month.start <= sight.updated_at < held.to - OVERLAP for sight in known.sights.values())
    return max(1, counts.touched - older + round(older * _TOUCHED_AGAIN))


def estimate(count: int, size: int) -> int:
    """Return how many to ask for, so that one page may do: points are counted by what a page could hold.

    One more than there are shows that what follows is older.
    """
    return min(size, count + 1)


def _floor(known: Coverage, month: Month) -> datetime:
    """Return how far down a walk goes: to the month's start, or to where an earlier walk ended not long before it."""
    ends = [one.to for one in known.known if one.since is not None and one.to < month.start]
    last = max(ends, default=None)
    return last - OVERLAP if last is not None and month.start - last <= _JOINED else month.start


def _points(count: int, page: int) -> int:
    """Return about what pages cost: see `miner.crawlers.github.queries`."""
    full, rest = divmod(count, page)
    return full * _page_points(page) + (_page_points(rest) if rest or not full else 0)


def _page_points(size: int) -> int:
    return max(1, round((1 + _LISTS_OF_A_PULL * size) / 100))


def _search_points(count: int, page: int) -> int:
    if count <= SEARCH_MOST:
        return _points(count, page) if count else 0
    windows = math.ceil(count / SEARCH_PARTS)
    return windows * _points(math.ceil(count / windows), page)
