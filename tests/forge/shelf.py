"""The issues or the pull requests of one repository, with the orders that lists need, made when they are asked for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Literal, TypeVar

from forge.records import Head, Issue, Pull

Item = TypeVar("Item", Issue, Pull)
By = Literal["created", "updated"]
Key = tuple[str, int]


class Shelf(Generic[Item]):
    """What can be kept whole, or made when it is asked for (`lazy`): then only a head of each is kept."""

    def __init__(self) -> None:
        self._kept: dict[int, Item] = {}
        self._heads: dict[int, Head] = {}
        self._make: Callable[[int], Item] | None = None
        self._orders: dict[tuple[By, frozenset[str]], list[Key]] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def __contains__(self, number: int) -> bool:
        return number in self._heads

    def __iter__(self) -> Iterator[Item]:
        return (self[number] for number in sorted(self._heads))

    def __getitem__(self, number: int) -> Item:
        """Return an item: a kept one, or one made now.

        Raises:
            KeyError: there is none.
        """
        if number in self._kept:
            return self._kept[number]
        if number not in self._heads or self._make is None:
            raise KeyError(number)
        return self._make(number)

    def get(self, number: int) -> Item | None:
        return self[number] if number in self._heads else None

    def put(self, item: Item) -> None:
        """Keep an item, or what became of it."""
        self._kept[item.number] = item
        self._heads[item.number] = item.head
        self._orders.clear()

    def lazy(self, heads: Iterable[Head], make: Callable[[int], Item]) -> None:
        """Add items that `make` makes, always the same for the same number and as their heads say."""
        self._heads.update((head.number, head) for head in heads)
        self._make = make
        self._orders.clear()

    def head_of(self, number: int) -> Head:
        return self._heads[number]

    @property
    def heads(self) -> Iterable[Head]:
        return self._heads.values()

    @property
    def newest(self) -> int:
        return max(self._heads, default=0)

    def count(self, states: frozenset[str]) -> int:
        return len(self._order("updated", states))

    def after(
        self, by: By, states: frozenset[str], cursor: Key | None, first: int, *, descending: bool
    ) -> tuple[list[Key], bool]:
        """Return the next keys after a cursor, and whether more follow: an item that moved is seen at its new place."""
        keys = self._order(by, states)
        if descending:
            end = len(keys) if cursor is None else bisect_left(keys, cursor)
            start = max(0, end - first)
            return keys[start:end][::-1], start > 0
        start = 0 if cursor is None else bisect_right(keys, cursor)
        return keys[start : start + first], start + first < len(keys)

    def page(
        self, by: By, states: frozenset[str], offset: int, first: int, *, descending: bool
    ) -> tuple[list[Key], int]:
        """Return the keys of a numbered page, and how many there are in all."""
        keys = self._order(by, states)
        if not descending:
            return keys[offset : offset + first], len(keys)
        end = max(0, len(keys) - offset)
        return keys[max(0, end - first) : end][::-1], len(keys)

    def _order(self, by: By, states: frozenset[str]) -> list[Key]:
        """Return (time, number) of all in these states, ascending; an empty set stands for every state."""
        found = self._orders.get((by, states))
        if found is None:
            found = sorted(
                (head.created_at if by == "created" else head.updated_at, head.number)
                for head in self._heads.values()
                if not states or head.state in states
            )
            self._orders[by, states] = found
        return found
