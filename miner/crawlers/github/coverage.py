"""What is known of a repository's merged pull requests, computed from its crawl facts: pure.

Knowledge comes from walks ("all that were touched since `since`, as of `to`") and from searches ("all that were merged
in a month, as of `to`"). A later walk that goes down to what was known brings that up to date.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pydantic import Field

from miner.core.records import Fact, Record
from miner.crawlers.github.month import Month, moment

OVERLAP = timedelta(minutes=5)
"""A walk goes down so far below what is known: updates have whole seconds, and answers may come from a replica."""


class Sight(NamedTuple):
    """One version of a pull request, and the page that holds it.

    Attributes:
        at: walk and page, in the order in which they were read.
        page: digest of the page.
        seen_at: our time of that.
    """

    number: int
    updated_at: datetime
    merged_at: datetime
    at: tuple[int, int]
    page: str
    seen_at: datetime


class Known(Record):
    """What one walk or search has made known, and what keeps it up to date.

    Attributes:
        month: of a search, None for a walk.
        since: the time of update down to which a walk went, None for a search.
        to: time of the forge: every pull request is known as it was then.
        at: our time of that.
    """

    month: str | None = None
    since: datetime | None = None
    to: datetime
    at: datetime

    def covers(self, month: Month) -> bool:
        """Whether all pull requests that were merged in a month, up to `to`, are among those that are known."""
        if self.since is None:
            return self.month == month.name
        return self.since <= month.start <= self.to


class Glimpse(Record):
    """At a time of ours, no merged pull request of a repository had been touched after `newest`, a time of the forge.

    Attributes:
        etag: of the answer that said so.
    """

    at: datetime
    newest: datetime | None
    etag: str | None = None

    def nothing_after(self, to: datetime) -> bool:
        """Whether nothing was touched since then."""
        return self.newest is None or self.newest <= to


class Coverage(Record):
    """All that crawl facts say.

    Attributes:
        known: by walks and searches that came to their end.
        glimpses: of conditional requests, oldest first.
        sights: the newest version of each pull request, by number.
        begun: pages of the newest walk, if it was cut.
        next_walk: number of the next walk.
    """

    known: tuple[Known, ...] = ()
    glimpses: tuple[Glimpse, ...] = ()
    sights: dict[int, Sight] = Field(default_factory=dict)
    begun: tuple[Fact, ...] = ()
    next_walk: int = 0

    def of(self, month: Month) -> Known | None:
        """Return the most recent knowledge that covers a month."""
        return max((one for one in self.known if one.covers(month)), key=lambda one: one.to, default=None)

    def merged_in(self, month: Month) -> tuple[Sight, ...]:
        """Return the pull requests that were merged in a month, by number."""
        return tuple(
            self.sights[number] for number in sorted(self.sights) if month.holds(self.sights[number].merged_at)
        )

    def fresh_at(self, known: Known, others: Iterable[Glimpse] = ()) -> datetime:
        """Return when this knowledge was last seen to be up to date, by our time."""
        glimpses = (*self.glimpses, *others)
        return max([known.at, *(one.at for one in glimpses if one.nothing_after(known.to))])


def coverage(pages: Sequence[Fact], walks: Sequence[Fact]) -> Coverage:
    """Compute what a repository's facts of the kinds `crawl.page` and `crawl.walk` say together."""
    known: tuple[Known, ...] = ()
    glimpses: list[Glimpse] = []
    standing = Counter(_place(fact)[0] for fact in pages if fact.ok)
    for fact in sorted((fact for fact in walks if fact.ok), key=lambda fact: int(fact.payload["walk"])):
        if fact.payload["way"] == "check":
            newest = fact.payload["newest"]
            glimpses.append(
                Glimpse(at=fact.observed_at, newest=newest and moment(newest), etag=fact.payload.get("etag"))
            )
        elif standing[int(fact.payload["walk"])] == fact.payload["pages"]:  # none of them was lost or invalidated
            known = _learn(known, fact.payload)
    ended = {int(fact.payload["walk"]) for fact in walks}
    seen = [fact for fact in pages if fact.ok]
    last = max((_place(fact)[0] for fact in pages), default=-1)
    begun = sorted((fact for fact in seen if _place(fact)[0] == last), key=_place) if last not in ended else []
    if [_place(fact)[1] for fact in begun] != list(range(len(begun))):
        begun = []  # one was lost: it begins anew
    return Coverage(
        known=known,
        glimpses=tuple(glimpses),
        sights=newest_sights(seen),
        begun=tuple(begun),
        next_walk=max([last, *ended], default=-1) + 1,
    )


def newest_sights(pages: Iterable[Fact]) -> dict[int, Sight]:
    """Return the newest version of each pull request that stands on pages."""
    newest: dict[int, Sight] = {}
    for fact in pages:
        for sight in sights_of(fact):
            other = newest.get(sight.number)
            if other is None or (sight.updated_at, sight.at) > (other.updated_at, other.at):
                newest[sight.number] = sight
    return newest


def sights_of(page: Fact) -> Iterable[Sight]:
    """Yield the pull requests of a page."""
    for number, updated, merged in page.payload["pulls"]:
        yield Sight(number, moment(updated), moment(merged), _place(page), page.blobs["page"], page.observed_at)


def _place(page: Fact) -> tuple[int, int]:
    return int(page.payload["walk"]), int(page.payload["page"])


def _learn(known: tuple[Known, ...], walk: dict[str, Any]) -> tuple[Known, ...]:
    """Add what a walk or search has made known; a walk extends what it came down to."""
    to, at = moment(walk["to"]), moment(walk["began"])
    if walk["way"] == "search":
        others = tuple(one for one in known if one.month != walk["month"] or one.to > to)
        return (*others, Known(month=walk["month"], to=to, at=at))
    floor = moment(walk["floor"])
    extended = tuple(
        one.model_copy(update={"to": max(one.to, to), "at": max(one.at, at)}) if one.to >= floor else one
        for one in known
    )
    if any(one.since is not None and one.since <= floor <= one.to for one in known):
        return extended
    return (*extended, Known(since=floor, to=to, at=at))
