"""Which page of a walk or search is asked for next, by the pages read so far: pure, so that a cut crawl goes on.

A walk reads the pull requests that were touched last first. One that is touched meanwhile jumps to the front and is
missed, so that after more than one page the front is read again, down to what was newest when the walk began, until
one page was enough for that (a page is read in one moment), or nothing was touched since then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Literal

from miner.core.records import Record
from miner.crawlers.github.month import Month, Window, moment, stamp
from miner.crawlers.github.pages import nonsense
from miner.crawlers.github.plans import SEARCH_MOST, SEARCH_PARTS, Plan, estimate

FRONT = 10
"""So many are asked for where it is not known how many there are."""
MOST_PASSES = 10
_SMALLEST = timedelta(hours=1)


class Ask(Record):
    """One page to ask for."""

    way: Literal["walk", "search"]
    after: str | None = None
    window: Window | None = None
    size: int


class Page(Record):
    """What a page says.

    Attributes:
        count: how many the whole list holds.
        rows: how many this page held, those included that the forge does not show.
        next: cursor of the next page, None at the end.
        pulls: (number, time of update, time of merge).
        window: of a search.
    """

    after: str | None
    count: int
    rows: int
    next: str | None
    pulls: tuple[tuple[int, str, str], ...]
    window: Window | None = None

    @property
    def updates(self) -> list[datetime]:
        """When its pull requests were touched."""
        return [moment(updated) for _, updated, _ in self.pulls]


class Walk:
    """A walk, after the pages that it was fed with.

    Attributes:
        to: time of the forge as of which everything above the floor is known at least.
        passes: how often the front was read.
        missing: what the forge counts and does not show.
        bounded: it was given up reading the front again, since something was new each time.
    """

    def __init__(self, plan: Plan) -> None:
        if plan.floor is None:
            raise ValueError("a walk without a floor")
        self.to = plan.to
        self.passes = 0
        self.missing = 0
        self.bounded = False
        self._floor = plan.floor
        self._touched = plan.touched
        self._after: str | None = None
        self._front: datetime | None = None
        self._pages = 0
        self._read = 0
        self._surprises = 0
        self._done = plan.nothing

    def ask(self, most: int) -> Ask | None:
        """Return the next page to ask for, of at most so many; None at the end."""
        return None if self._done else Ask(way="walk", after=self._after, size=self._size(most))

    @property
    def _left(self) -> int:
        """How many more are expected, 0 where that is not known."""
        return max(0, (self._touched or 0) - self._read) if self.passes == 0 else 0

    def _size(self, most: int) -> int:
        """Ask for what is expected; where there is more than that, for little at first, since points are for room."""
        if self._left > 0:
            return estimate(self._left, most)
        return min(most, FRONT) if self._surprises == 0 else most

    def feed(self, page: Page) -> None:
        """Take note of a page."""
        if self._pages == 0:
            self._front = max(page.updates, default=None)
            self.to = max((at for at in (self.to, self._front) if at is not None), default=None)
        self._pages += 1
        self._surprises += self._left == 0
        self._read += page.rows
        self.missing += (page.rows - len(page.pulls)) if self.passes == 0 else 0
        if page.next is not None and page.next == self._after:
            raise nonsense("a page leads to itself")
        self._after = page.next
        if page.next is None or min(page.updates, default=self._floor) < self._floor:
            self._end_pass()

    def _end_pass(self) -> None:
        """Read the front again, unless one page did for it, or the first one showed nothing newer than the last time.

        The latter is how it ends where a page holds too little to show what is older, too.
        """
        self.passes += 1
        self._done = self._pages <= 1 or self._front is None or self._front <= self._floor
        if not self._done and self.passes >= MOST_PASSES:
            self._done = self.bounded = True
        if self._front is not None:
            self._floor = self._front
        self._after, self._pages, self._surprises = None, 0, 0


class Search:
    """A search of a month's merges, after the pages that it was fed with; attributes as of `Walk`."""

    def __init__(self, plan: Plan) -> None:
        self.to = plan.to
        self.passes = 1
        self.missing = 0
        self.bounded = False
        merged = plan.merged or 0
        parts = math.ceil(merged / SEARCH_PARTS) if merged > SEARCH_MOST else 1
        windows = () if plan.nothing else Month.of(plan.month).window.parts(parts)
        self._left = [(window, True) for window in reversed(windows)]
        self._count: int | None = merged if parts == 1 else None
        self._after: str | None = None
        self._got = 0

    def ask(self, most: int) -> Ask | None:
        """Return the next page to ask for, of at most so many; None at the end."""
        if not self._left:
            return None
        size = most if self._count is None else max(1, min(most, self._count - self._got))
        return Ask(way="search", after=self._after, window=self._left[-1][0], size=size)

    def feed(self, page: Page) -> None:
        """Take note of a page: a window that holds too many, or shows fewer than it counts, is cut."""
        window, may_cut = self._left[-1]
        first, self._count = self._after is None, page.count
        if page.next is not None and page.next == self._after:
            raise nonsense("a page leads to itself")
        parts = window.parts(max(2, math.ceil(page.count / SEARCH_PARTS)))
        if first and page.count > SEARCH_MOST and len(parts) > 1:
            self._next_window([(part, True) for part in parts])
            return
        self._got += page.rows
        self.missing += page.rows - len(page.pulls)
        self._after = page.next
        if page.next is not None:
            return
        lacking = page.count - self._got
        if lacking > 0 and may_cut and window.last - window.first >= _SMALLEST:
            self._next_window([(part, False) for part in window.parts(2)])
            return
        self.missing += max(0, lacking)
        self._next_window([])

    def _next_window(self, instead: Iterable[tuple[Window, bool]]) -> None:
        self._left.pop()
        self._left.extend(reversed([*instead]))
        self._after, self._got, self._count = None, 0, None


Reading = Walk | Search


def reading(plan: Plan, pages: Iterable[Page] = ()) -> Reading:
    """Return where a plan stands after some pages."""
    state: Reading = Walk(plan) if plan.way == "walk" else Search(plan)
    for page in pages:
        state.feed(page)
    return state


class PageSize:
    """How many to ask for: halves where a page was too heavy, and recovers after some that were not.

    Args:
        most: that a page may hold.
        now: what earlier pages have come to.
    """

    _GOOD = 4

    def __init__(self, most: int, now: int | None = None) -> None:
        self._most = most
        self._good = 0
        self.now = min(most, now or most)

    def halve(self, asked: int) -> bool:
        """Note that a page of this size was too heavy; false where it cannot be smaller."""
        self._good = 0
        self.now = max(1, min(self.now, asked) // 2)
        return asked > 1

    def note(self, asked: int) -> None:
        """Note that a page of this size was fine."""
        self._good += asked >= self.now
        if self._good >= self._GOOD:
            self.now, self._good = min(self._most, self.now * 2), 0


def page_of(payload: dict[str, Any]) -> Page:
    """Return what the payload of a page's fact says."""
    window = payload.get("window")
    return Page(
        after=payload["after"],
        count=payload["count"],
        rows=payload["rows"],
        next=payload["next"],
        pulls=tuple((int(number), str(updated), str(merged)) for number, updated, merged in payload["pulls"]),
        window=None if window is None else Window(first=moment(window[0]), last=moment(window[1])),
    )


def payload_of(page: Page) -> dict[str, Any]:
    """Return a page as it stands in the payload of its fact."""
    window = page.window and [stamp(page.window.first), stamp(page.window.last)]
    return {**page.model_dump(mode="json", exclude={"window"}), "window": window}
