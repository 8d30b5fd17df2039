"""Caps of a run: where it stops by itself, cleanly, with what was completed."""

from __future__ import annotations

import time
from collections.abc import Callable

from miner.core.records import Record
from miner.core.settings import Run


class Spent(Record):
    """What a run has spent so far.

    Attributes:
        requests: of the forge.
        points: of the forge.
        waited_s: adds up the waits of all threads for the forge's limits.
        money: that language models cost, in US dollars, what is reserved for requests under way included.
    """

    requests: int = 0
    points: int = 0
    waited_s: float = 0.0
    money: float = 0.0


class Caps:
    """Says whether a run is to stop.

    Args:
        settings: with the caps.
        spent: returns what was spent so far.
        clock: seconds, from any beginning.

    Attributes:
        stopped: which cap has kept something from beginning, "" as long as none has.
    """

    def __init__(self, settings: Run, spent: Callable[[], Spent], clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._spent = spent
        self._clock = clock
        self._began = clock()
        self.stopped = ""

    def allow(self) -> bool:
        """Whether something may begin; once it may not, nothing may any more."""
        if not self.stopped:
            self.stopped = self._reached()
        return not self.stopped

    def hit(self, why: str) -> None:
        """Take note that a cap was met elsewhere."""
        self.stopped = self.stopped or why

    def _reached(self) -> str:
        hours, points = self._settings.max_hours, self._settings.max_points
        if hours is not None and self._clock() - self._began >= hours * 3600:
            return f"run.max_hours={hours:g} is over"
        if points is not None and (spent := self._spent().points) >= points:
            return f"run.max_points={points}: {spent} are spent"
        return ""
