"""What an engine is: it maps work over units and hands every new fact to the coordinator."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeVar

from miner.core.memo import Emit

Unit = TypeVar("Unit")
Result = TypeVar("Result")
Work = Callable[[Unit, Emit], Result]


class Engine(Protocol[Unit, Result]):
    """Maps work over units."""

    def map(self, work: Work[Unit, Result], units: Sequence[Unit], on_fact: Emit) -> Generator[Result]:
        """Yield results as they come, in any order.

        Args:
            work: runs in a worker; gives each new fact to the `emit` that it is called with, which returns when the
                coordinator has stored the fact.
            units: what to work on.
            on_fact: called in the caller's own thread, one fact at a time.
        """
        ...
