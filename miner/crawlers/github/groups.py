"""Repositories that are asked for by one document: pure."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 10
"""Repositories in a document: each is a list, or a search, of its own for the forge."""
NEIGHBOURS = 25
"""Repositories whose issues are looked after together: what one of them has is little of what a document takes."""


def groups_of(sizes: Iterable[tuple[str, int]], page: int) -> dict[str, tuple[str, ...]]:
    """Return for each repository that shares a document those that it shares it with, itself included.

    The largest are placed first, each where it still fits: that fills documents best.

    Args:
        sizes: (name, pull requests that its first page has to hold); 0: nothing is asked.
        page: pull requests in a document, at most.
    """
    full: list[list[str]] = []
    open_: list[tuple[int, list[str]]] = []
    for name, size in sorted(sizes, key=lambda one: -one[1]):
        if not 0 < size < page:
            continue
        fits = (at for at, (left, _) in enumerate(open_) if left >= size)
        at = next(fits, None)
        left, group = (page, []) if at is None else open_.pop(at)
        group.append(name)
        if len(group) == MOST or left == size:
            full.append(group)
        else:
            open_.append((left - size, group))
    groups = [*full, *(group for _, group in open_)]
    return {name: tuple(group) for group in groups if len(group) > 1 for name in group}


def neighbours(names: Iterable[str], most: int = NEIGHBOURS) -> dict[str, tuple[str, ...]]:
    """Return for each repository those whose issues are looked after by the same document, itself included."""
    listed = tuple(names)
    groups = (listed[start : start + most] for start in range(0, len(listed), most))
    return {name: group for group in groups for name in group}
