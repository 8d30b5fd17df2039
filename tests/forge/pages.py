"""Pages of lists: cursors as GitHub makes them, opaque to a client.

A cursor of an ordered list holds the key of an item, so that a list that changes while it is read goes on behind it;
a cursor of a list inside an item holds a position.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from forge.search import MOST
from forge.shelf import By, Key, Shelf

Item = TypeVar("Item")


class BadCursor(Exception):
    """The cursor is none of ours."""


@dataclass(slots=True)
class Page:
    """What a connection holds: its own fields and those of its `pageInfo`."""

    nodes: Sequence[Any] = ()
    total_count: int = 0
    has_next_page: bool = False
    has_previous_page: bool = False
    start_cursor: str | None = None
    end_cursor: str | None = None
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def page_info(self) -> Page:
        return self


def cursor_of(value: Any) -> str:
    """Write a cursor."""
    return base64.b64encode(b"cursor:v2:" + json.dumps(value).encode()).decode()


def read_cursor(cursor: str | None) -> Any:
    """Read a cursor that `cursor_of` wrote; None for none."""
    if not cursor:
        return None
    try:
        head, sep, value = base64.b64decode(cursor, validate=True).partition(b"v2:")
        if head != b"cursor:" or not sep:
            raise BadCursor(cursor)
        return json.loads(value)
    except ValueError as error:
        raise BadCursor(cursor) from error


def slice_of(
    items: Sequence[Any],
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    before: str | None = None,
) -> Page:
    """Return a page of a list inside an item."""
    start, end = 0, len(items)
    if (position := read_cursor(after)) is not None:
        start = int(position)
    if (position := read_cursor(before)) is not None:
        end = min(end, int(position) - 1)
    if first is not None:
        end = min(end, start + first)
    elif last is not None:
        start = max(start, end - last)
    start = min(start, end)
    found = items[start:end]
    return Page(
        found,
        len(items),
        has_next_page=end < len(items),
        has_previous_page=start > 0,
        start_cursor=cursor_of(start + 1) if found else None,
        end_cursor=cursor_of(end) if found else None,
    )


def shelf_page(
    shelf: Shelf[Any], by: By, states: frozenset[str], first: int, after: str | None, *, descending: bool
) -> Page:
    """Return a page of the issues or pull requests of a repository."""
    value = read_cursor(after)
    key: Key | None = None if value is None else (str(value[0]), int(value[1]))
    keys, more = shelf.after(by, states, key, first, descending=descending)
    return Page(
        [shelf[number] for _, number in keys],
        shelf.count(states),
        has_next_page=more,
        has_previous_page=key is not None,
        start_cursor=cursor_of(keys[0]) if keys else None,
        end_cursor=cursor_of(keys[-1]) if keys else None,
    )


def search_page(found: Sequence[Item], first: int, after: str | None, show: Callable[[Item], Any]) -> Page:
    """Return a page of search results, of which the first 1,000 can be seen.

    https://docs.github.com/en/graphql/reference/queries#search
    """
    page = slice_of(found[:MOST], first, after)
    page.nodes, page.total_count = [show(item) for item in page.nodes], len(found)
    return page
