"""Repositories by the forge's search, which returns at most 1,000 for a query: larger ones are cut into windows.

https://docs.github.com/en/search-github/searching-on-github/searching-for-repositories
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from miner.core.blobs import BlobStore
from miner.core.errors import ConfigError
from miner.core.hashing import hash_of
from miner.core.memo import Memo
from miner.core.records import Fact, Observation, Producer
from miner.crawlers.github.client import ForgeClient
from miner.crawlers.github.month import Month, Window
from miner.crawlers.github.pages import nodes, nonsense
from miner.crawlers.github.plans import SEARCH_MOST
from miner.crawlers.github.queries import SEARCH_REPOSITORIES

SEARCH = Producer(name="github.search")
_FIRST_DAY = datetime(2007, 10, 1, tzinfo=UTC)
_MOST_STARS = 1 << 24
_PAGE = 100


def search_repositories(
    query: str, month: Month, forge: ForgeClient, memo: Memo, blobs: BlobStore
) -> tuple[dict[int, str], tuple[str, ...]]:
    """Return the repositories that a query finds, by the forge's id, and notes on what it may have kept back.

    A query that finds too many is cut by the day of creation, or by stars where it names such days itself; what was
    created after the month is of no use to it.

    Raises:
        ConfigError: it finds too many, and names both.
    """
    found: dict[int, str] = {}
    notes: list[str] = []
    waiting: list[_Created | _Stars | None] = [None]
    while waiting:
        cut = waiting.pop()
        text = query if cut is None else f"{query} {cut}"
        count, seen, parts = 0, set[int](), []
        for fact in _pages(text, month, forge, memo, blobs):
            count = int(fact.payload["count"])
            parts = _halves(cut, query, month) if count > SEARCH_MOST else []
            if parts:
                waiting.extend(reversed(parts))
                break
            found.update((int(number), str(name)) for number, name in fact.payload["repositories"])
            seen.update(int(number) for number, _ in fact.payload["repositories"])
        if not parts and len(seen) < count:
            notes.append(f"the search {text!r} counts {count} repositories and shows {len(seen)}")
    return found, tuple(notes)


class _Created(Window):
    def __str__(self) -> str:
        return f"created:{super().__str__()}"

    def halves(self) -> list[_Created]:
        return [_Created(first=part.first, last=part.last) for part in self.parts(2)]


class _Stars(tuple[int, int]):
    __slots__ = ()

    def __str__(self) -> str:
        return f"stars:{self[0]}..{self[1]}"

    def halves(self) -> list[_Stars]:
        middle = (self[0] + self[1]) // 2
        if self[0] == self[1]:
            return [self]
        return [_Stars((self[0], middle)), _Stars((middle + 1, self[1]))]


def _halves(cut: _Created | _Stars | None, query: str, month: Month) -> list[_Created | _Stars]:
    """Return smaller windows that make up a window, none where it cannot be cut any more."""
    if cut is None:
        if not re.search(r"\bcreated:", query):
            return [_Created(first=_FIRST_DAY, last=month.window.last)]
        if not re.search(r"\bstars:", query):
            return [_Stars((0, _MOST_STARS))]
        raise ConfigError(
            f"mine.repository_search: {query!r} finds more than {SEARCH_MOST} repositories, and cannot be cut by the"
            " day of creation or by stars, since it names both",
            next_step="leave out `created:` or `stars:`, or write several queries",
        )
    parts = [*cut.halves()]
    return [*parts] if len(parts) > 1 else []


def _pages(query: str, month: Month, forge: ForgeClient, memo: Memo, blobs: BlobStore) -> Iterator[Fact]:
    subject, after = f"search-{hash_of(query)[:16]}", None
    while True:
        inputs = {"query": query, "month": month.name, "after": after}
        run = partial(_page, query, after, forge, blobs)
        yield (fact := memo.measure(SEARCH, "crawl.search", subject, inputs, run))
        after = fact.payload["next"]
        if after is None:
            return


def _page(query: str, after: str | None, forge: ForgeClient, blobs: BlobStore) -> Observation:
    reply = forge.graphql(SEARCH_REPOSITORIES, {"query": query, "first": _PAGE, "after": after})
    found: dict[str, Any] = reply.data.get("search") or {}
    if not isinstance(found.get("repositoryCount"), int):
        raise nonsense("a search for repositories counts none")
    info = found.get("pageInfo") or {}
    named = [node for node in nodes(found) if node.get("databaseId") is not None]
    return Observation(
        payload={
            "query": query,
            "count": found["repositoryCount"],
            "repositories": [[node["databaseId"], node["nameWithOwner"]] for node in named],
            "next": info.get("endCursor") if info.get("hasNextPage") else None,
        },
        blobs={"search": blobs.put(reply.raw)},
        measures={"points": reply.points, "requests": reply.requests},
        network=True,
    )
