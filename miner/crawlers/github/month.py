"""A month of merges, in UTC, and the windows of time that the forge's search takes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from miner.core.records import Record

SECOND = timedelta(seconds=1)


class Window(Record):
    """A window of merge times; both ends are in it, as in the search's `merged:A..B`.

    https://docs.github.com/en/search-github/getting-started-with-searching-on-github/understanding-the-search-syntax
    """

    first: datetime
    last: datetime

    def __str__(self) -> str:
        return f"{stamp(self.first)}..{stamp(self.last)}"

    def parts(self, count: int) -> tuple[Window, ...]:
        """Return windows of about the same length that make up this one, fewer where a second cannot be cut."""
        seconds = int((self.last - self.first) / SECOND) + 1
        cuts = sorted({seconds * part // count for part in range(1, count)} - {0})
        starts = [self.first, *(self.first + cut * SECOND for cut in cuts)]
        ends = [*(start - SECOND for start in starts[1:]), self.last]
        return tuple(Window(first=first, last=last) for first, last in zip(starts, ends, strict=True))


class Month(Record):
    """A month: `end` is the first moment that is not in it."""

    name: str
    start: datetime
    end: datetime

    @classmethod
    def of(cls, name: str) -> Month:
        """Return the month that is written 2025-05."""
        year, month = map(int, name.split("-"))
        following = (year + 1, 1) if month == 12 else (year, month + 1)
        return cls(name=name, start=datetime(year, month, 1, tzinfo=UTC), end=datetime(*following, 1, tzinfo=UTC))

    @property
    def window(self) -> Window:
        """Its seconds."""
        return Window(first=self.start, last=self.end - SECOND)

    def holds(self, at: datetime) -> bool:
        """Whether a time is in it."""
        return self.start <= at < self.end


def merged_in(full_name: str, window: Window) -> str:
    """Return the search query for the pull requests of a repository that were merged in a window."""
    return f"repo:{full_name} is:pr is:merged merged:{window}"


def touched_since(full_name: str, at: datetime) -> str:
    """Return the search query for the merged pull requests of a repository that were touched since then."""
    return f"repo:{full_name} is:pr is:merged updated:>={stamp(at)}"


def stamp(at: datetime) -> str:
    """Return a time as the forge writes it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str) -> datetime:
    """Return the time that the forge writes so."""
    return datetime.fromisoformat(text).astimezone(UTC)
