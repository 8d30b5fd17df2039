"""The money that one run may spend on language models."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from miner.core.errors import Interrupted
from miner.core.spending import Caps, OverCap, Spending

_LOOK_S = 0.2


@dataclass(frozen=True)
class Purse:
    """Reservations of one run, within its caps; threads share it.

    Attributes:
        parts: ids of runs that this one goes on with.
    """

    spending: Spending
    run_id: str
    caps: Caps
    parts: tuple[str, ...] = ()

    def reserve(self, repository: str, model: str, bound: int, stopped: threading.Event) -> int:
        """Reserve the bound of a request and return the reservation.

        What others have reserved for requests under way is mostly given back: that is waited for, so that it does not
        depend on how many work at once whether there is money.

        Raises:
            OverCap: no cap may be exceeded, and one would be.
            Interrupted: the run is to end.
        """
        while True:
            if stopped.is_set():
                raise Interrupted("stopped before a language model was asked")
            try:
                return self.spending.reserve(self.run_id, repository, model, bound, self.caps, self.parts)
            except OverCap as over:
                if not over.later:
                    raise
            self.spending.wait(_LOOK_S)

    def settle(self, reservation: int, money: int) -> None:
        """Note what a reserved request has cost."""
        self.spending.settle(reservation, money)
