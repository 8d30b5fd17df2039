"""Breakers: what spreads over many repositories says something about a service, not about what met it (law 2).

What is odd about a piece of work is a fault that it met, or a no that rests on a network service. Whoever is odd puts a
service in doubt, and its canary is asked. Where the canary fails, or one error signature spreads, the stage pauses and
the odd ones become suspects: what they say is taken out of use, and they are worked on again.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, Self, TypeVar

from miner.core.errors import InfrastructureFault, Interrupted
from miner.core.memo import utc_now
from miner.core.records import Fact, FactKey, Legible, Record
from miner.jobs.canaries import Canary, Service, service_of_fact, service_of_fault
from miner.jobs.spread import RECENT, signature, spreads

TRUSTED_S = 30.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 60.0


class Outcome(Protocol):
    """What became of a piece of work, as breakers look at it."""

    @property
    def name(self) -> str:
        """What was worked on."""
        ...

    @property
    def group(self) -> str:
        """The repository that it belongs to."""
        ...

    @property
    def error(self) -> InfrastructureFault | None:
        """The fault of the infrastructure that it met."""
        ...

    @property
    def negatives(self) -> Sequence[Fact]:
        """The facts of this run that it was rejected by, and that depended on a network service."""
        ...

    def in_doubt(self) -> Self:
        """Return it as it stands as long as a service may have been at fault: nothing of it is final."""
        ...

    def suspected(self, fault: InfrastructureFault) -> Self:
        """Return it as it stands when it was not worked on again: it met that fault, and says nothing else."""
        ...


Made = TypeVar("Made", bound=Outcome)


class OpenBreaker(Record):
    """A breaker that keeps a stage from going on.

    Attributes:
        name: of the service, or the error signature.
        suspects: pieces of work that are going to be done again.
    """

    name: Legible
    since: datetime
    message: Legible
    suspects: int


class Told(Protocol):
    """Is told of breakers."""

    def paused(self, breaker: OpenBreaker) -> None:
        """A breaker opened."""
        ...

    def resumed(self, breaker: OpenBreaker) -> None:
        """It closed again."""
        ...


@dataclass(frozen=True)
class _Odd(Generic[Made]):
    outcome: Made
    signature: str
    service: Service | None
    noted: float


class Breakers(Generic[Made]):
    """The breakers of one stage. Workers `enter` and `note`; the coordinator `attend`s, which is where a stage pauses.

    Args:
        canaries: of the services that there are.
        stop: set when the run is to end.
        patience_s: how long a service is waited for.
        told: is told of what opens and closes.
        take_out: takes facts out of use, with the reason why.

    Attributes:
        suspects: what is to be worked on again, by name.
    """

    def __init__(
        self,
        canaries: Mapping[Service, Canary],
        stop: threading.Event,
        patience_s: float,
        told: Told,
        take_out: Callable[[Iterable[Fact], str], None],
    ) -> None:
        self._canaries = canaries
        self._stop = stop
        self._patience_s = patience_s
        self._told = told
        self._take_out = take_out
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        self._recent: deque[tuple[str, str | None]] = deque(maxlen=RECENT)
        self._doubts: list[_Odd[Made]] = []
        self._seen: dict[str, list[_Odd[Made]]] = {}
        self._well_at: dict[Service, float] = {}
        self._strained: dict[str, tuple[float, int]] = {}
        self._spread: set[str] = set()
        self._answered: set[str] = set()
        self._taken_out: set[FactKey] = set()
        self._recovered: dict[Service, datetime] = {}
        self._fault: InfrastructureFault | None = None
        self.suspects: dict[str, Made] = {}

    def enter(self) -> None:
        """Let a piece of work begin; wait while the stage is paused.

        Raises:
            Interrupted: the run is to end.
        """
        while not self._flows.wait(0.1):
            if self._stop.is_set():
                raise Interrupted("stopped while the stage was paused")

    def note(self, outcome: Made) -> None:
        """Take note of how a piece of work ended; what is odd lets nothing more begin until it is attended to."""
        odd = _odd(outcome)
        with self._lock:
            self._recent.append((outcome.group, None if odd is None else odd.signature))
            if odd is None:
                self._strained.clear()
                return
            self._doubts.append(odd)
            self._seen.setdefault(odd.signature, []).append(odd)
            if self._is_due(odd.service) or self._has_spread(odd):
                self._flows.clear()

    def attend(self, *, at_the_end: bool = False) -> None:
        """Look into what is odd: ask canaries, and pause the stage until they answer well.

        Args:
            at_the_end: of a stage nothing stays in doubt, however short ago its service was well.

        Raises:
            InfrastructureFault: that of a service that did not recover; `suspects` holds whom it concerns.
            Interrupted: the run is to end.
        """
        with self._lock:
            doubts = list(self._doubts)
            spread = {odd.signature: odd for odd in doubts if self._has_spread(odd)}
        self._suspect([odd for odd in doubts if self._is_tainted(odd)], "it rests on what was suspect already")
        services = {odd.service for odd in doubts if odd.service is not None}
        for service in sorted(services & self._canaries.keys()):
            if at_the_end or self._is_due(service) or any(odd.service is service for odd in spread.values()):
                self._check(service)
        for odd in spread.values():
            self._look_into(odd)
        for found in self._spread - self._answered:
            self._suspect(self._seen_with(found), f"the same answer to many: {found}")
        with self._lock:
            self._doubts = [odd for odd in self._doubts if odd.service in self._canaries or odd not in doubts]
        self._flows.set()

    def again(self) -> dict[str, Made]:
        """Hand over the suspects; an answer that spread, and spreads again while its canary is well, is an answer."""
        found, self.suspects = self.suspects, {}
        self._answered |= self._spread
        with self._lock:
            self._recent.clear()
            self._seen.clear()
        return found

    def unsettled(self) -> list[Made]:
        """Return the suspects that are not worked on again, with the fault that made them so."""
        fault = self._fault
        return [] if fault is None else [one.suspected(fault) for one in self.suspects.values()]

    def _is_due(self, service: Service | None) -> bool:
        """Whether a service's canary is to be asked: it was not well a moment ago."""
        if service is None or service not in self._canaries:
            return False
        return time.monotonic() - self._well_at.get(service, -math.inf) >= TRUSTED_S

    def _is_tainted(self, odd: _Odd[Made]) -> bool:
        """Whether it rests on a suspect answer, or on one that was observed before its service had recovered."""
        well = None if odd.service is None else self._recovered.get(odd.service)
        return any(
            fact.key in self._taken_out or (well is not None and fact.observed_at <= well)
            for fact in odd.outcome.negatives
        )

    def _has_spread(self, odd: _Odd[Made]) -> bool:
        if odd.signature in self._spread:
            return False
        return spreads(self._recent, odd.signature, fault=odd.outcome.error is not None)

    def _check(self, service: Service) -> None:
        """Ask a canary; where it fails, all that is in doubt since it was well is suspect."""
        asked = time.monotonic()
        fault = self._ask(service)
        if fault is None:
            self._well_at[service] = asked
            with self._lock:
                self._doubts = [odd for odd in self._doubts if odd.service is not service or odd.noted > asked]
            return
        self._suspect(self._doubted(service), str(fault))
        self._pause(service, fault, lambda: self._ask(service), time.monotonic(), 0)
        self._recovered[service] = utc_now()
        self._suspect(self._doubted(service), str(fault))  # what ended meanwhile

    def _look_into(self, odd: _Odd[Made]) -> None:
        """Deal with a signature that spreads although the canary of its service is well, or has none."""
        error = odd.outcome.error
        if error is None:
            self._spread.add(odd.signature)
            why = f"the same answer to many: {odd.signature}"
            self._suspect(self._seen_with(odd.signature), why)
            self._told.resumed(self._opened(odd.signature, why))
            return
        if odd.service not in self._canaries:
            raise error
        self._suspect(self._seen_with(odd.signature), str(error))
        since, tries = self._strained.get(odd.signature, (time.monotonic(), 0))
        self._pause(odd.signature, error, lambda: self._ask(odd.service), since, tries)
        self._strained[odd.signature] = (since, tries + 1)
        self._recent.clear()

    def _pause(
        self,
        name: str,
        fault: InfrastructureFault,
        ask: Callable[[], InfrastructureFault | None],
        since: float,
        tries: int,
    ) -> None:
        """Wait, longer each time, until there is no fault any more."""
        self._fault = fault
        breaker = self._opened(name, str(fault))
        found: InfrastructureFault | None = fault
        while found is not None:
            left = self._patience_s - (time.monotonic() - since)
            if left <= 0:
                raise found
            if self._stop.wait(min(left, _LONGEST_WAIT_S, _FIRST_WAIT_S * 2**tries)):
                raise Interrupted("stopped while the stage was paused")
            tries += 1
            found = ask()
        self._told.resumed(breaker)

    def _opened(self, name: str, message: str) -> OpenBreaker:
        breaker = OpenBreaker(name=name, since=utc_now(), message=message, suspects=len(self.suspects))
        self._told.paused(breaker)
        return breaker

    def _ask(self, service: Service | None) -> InfrastructureFault | None:
        if service is None:
            return None
        try:
            self._canaries[service]()
        except InfrastructureFault as fault:
            return fault
        return None

    def _doubted(self, service: Service) -> list[_Odd[Made]]:
        """Take out what puts a service in doubt."""
        with self._lock:
            found = [odd for odd in self._doubts if odd.service is service]
            self._doubts = [odd for odd in self._doubts if odd.service is not service]
        return found

    def _seen_with(self, found: str) -> list[_Odd[Made]]:
        """Take out what has a signature."""
        with self._lock:
            return self._seen.pop(found, [])

    def _suspect(self, odds: Iterable[_Odd[Made]], why: str) -> None:
        """Do these again, and take what they say out of use at once: it never counts, even if the run is killed now."""
        outcomes = [odd.outcome for odd in odds]
        self.suspects |= {outcome.name: outcome for outcome in outcomes}
        if facts := [fact for outcome in outcomes for fact in outcome.negatives]:
            self._take_out(facts, f"suspect: {why}")
            self._taken_out |= {fact.key for fact in facts}


def _odd(outcome: Made) -> _Odd[Made] | None:
    """Return what is odd about an outcome, None where nothing is."""
    error, noted = outcome.error, time.monotonic()
    if error is not None:
        found = signature(error.reason, str(error), outcome.group)
        return _Odd(outcome, found, service_of_fault(error), noted)
    if outcome.negatives:
        fact = outcome.negatives[-1]
        found = signature(fact.outcome, str(fact.payload.get("detail", "")), outcome.group)
        return _Odd(outcome, found, service_of_fact(fact), noted)
    return None
