"""Measure once: the memo between measuring functions and the ledger.

A stage asks for a fact by what it depends on; the memo answers with the known fact or measures and emits a new one.
The ledger has one writer, so the memo never writes: it hands new facts to `emit`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from miner.core.hashing import hash_of
from miner.core.records import Fact, FactKey, Observation, Producer

Find = Callable[[FactKey], list[Fact]]
Emit = Callable[[Fact], None]
Clock = Callable[[], datetime]
_ALL = -1


class KeyedLocks:
    """One lock a name: workers that need the same thing wait for the first of them."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}

    def of(self, name: str) -> threading.Lock:
        """Return the lock of a name."""
        with self._guard:
            return self._locks.setdefault(name, threading.Lock())


class Facts(list[Fact]):
    """Facts, each once, in the order in which they were noted."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: set[FactKey] = set()

    def note(self, fact: Fact) -> None:
        """Add a fact unless it is there."""
        if fact.key not in self._keys:
            self._keys.add(fact.key)
            self.append(fact)

    def cut(self, length: int) -> None:
        """Forget all facts but the first ones: what follows is used anew."""
        self._keys -= {fact.key for fact in self[length:]}
        del self[length:]


def utc_now() -> datetime:
    """Return the present time, aware, in UTC."""
    return datetime.now(UTC)


class Memo:
    """Answers from known facts where it can, measures where it must.

    Args:
        find: all standing facts of a key without regard to its ordinal, by ordinal; tombstoned ones are not standing.
        emit: takes a new fact; returns when it is safe.
        recheck_after: a negative answer of a network service is asked for once more when it is older than this.
        clock: gives the time of observation.
        locks: shared by the memos of all workers of a run, so that two that need the same fact measure it once.
        whole: whether everything that a fact names is still there, also what is evicted from the disk; see `strict`.

    Attributes:
        used: every fact that it has answered with, each once, in order.
    """

    def __init__(
        self,
        find: Find,
        emit: Emit,
        *,
        recheck_after: timedelta = timedelta(hours=6),
        clock: Clock = utc_now,
        locks: KeyedLocks | None = None,
        whole: Callable[[Fact], bool] = lambda _: True,
    ) -> None:
        self._find = find
        self._whole = whole
        self._emit = emit
        self._recheck_after = recheck_after
        self._clock = clock
        self._locks = locks or KeyedLocks()
        self.used = Facts()

    def measure(
        self, producer: Producer, kind: str, subject: str, inputs: Mapping[str, Any], run: Callable[[], Observation]
    ) -> Fact:
        """Return the newest standing fact for these inputs, measuring it if there is none.

        Args:
            producer: the measuring function's name and epoch, part of the key.
            kind: what kind of fact, "install.lock".
            subject: what it is about: an instance id, or "env-HASH" for what several candidates share.
            inputs: everything that the result depends on, settings of `measure` included; JSON values and records.
            run: measures; an infrastructure fault is raised by it, never returned.
        """
        key = _key(producer, kind, subject, hash_of(inputs))
        with self._locks.of(f"{key.kind}/{key.subject}/{key.input_hash}"):
            known = self._find(key)
            if known and not self._wants_second_attempt(known):
                fact = known[-1]
            else:
                fact = self._measure(key.model_copy(update={"ordinal": self._next_ordinal(key, known)}), run)
        self.used.note(fact)
        return fact

    def record(self, producer: Producer, kind: str, subject: str, inputs: Mapping[str, Any], seen: Observation) -> Fact:
        """Note one more observation for these inputs, whatever is known; it does not count as used.

        For what may differ each time that it happens: a try, not an answer.
        """
        key = _key(producer, kind, subject, hash_of(inputs))
        with self._locks.of(f"{key.kind}/{key.subject}/{key.input_hash}"):
            made = self._made(key.model_copy(update={"ordinal": self._next_ordinal(key, [])}), seen, seen.measures)
            self._emit(made)
        return made

    def peek(self, producer: Producer, kind: str, subject: str, inputs: Mapping[str, Any]) -> Fact | None:
        """Return the fact that `measure` would answer with, None where it would measure; it does not count as used."""
        known = self._find(_key(producer, kind, subject, hash_of(inputs)))
        return known[-1] if known and not self._wants_second_attempt(known) else None

    def known(self, producer: Producer, kind: str, subject: str) -> list[Fact]:
        """Return a subject's standing facts of a kind, whatever their inputs, oldest first; none counts as used."""
        return self._find(_key(producer, kind, subject, ""))

    def patient(self) -> Memo:
        """Return a memo that takes every known answer as it stands; what it answers with counts as used by this one."""
        return self._like(self._find, timedelta.max)

    def apart(self) -> Memo:
        """Return a memo that knows the same; what it answers with counts as used by it alone.

        For what one fact sums up: that fact is what an answer rests on, whether or not it is known already.
        """
        other = self._like(self._find, self._recheck_after)
        other.used = Facts()
        return other

    def strict(self) -> Memo:
        """Return a memo to which a fact is not known that names something which is gone: it is measured again.

        Most answers need no more than the fact itself; this is for when it turns out that one does.
        """

        def find(key: FactKey) -> list[Fact]:
            found = self._find(key)
            return found if key.ordinal == _ALL else [fact for fact in found if self._whole(fact)]

        return self._like(find, self._recheck_after)

    def _like(self, find: Find, recheck_after: timedelta) -> Memo:
        other = Memo(
            find,
            self._emit,
            recheck_after=recheck_after,
            clock=self._clock,
            locks=self._locks,
            whole=self._whole,
        )
        other.used = self.used
        return other

    def _measure(self, key: FactKey, run: Callable[[], Observation]) -> Fact:
        started = time.monotonic()
        seen = run()
        fact = self._made(key, seen, {**seen.measures, "wall_s": round(time.monotonic() - started, 3)})
        self._emit(fact)
        return fact

    def _made(self, key: FactKey, seen: Observation, measures: dict[str, float]) -> Fact:
        return Fact(
            key=key,
            observed_at=self._clock(),
            outcome=seen.outcome,
            payload=seen.payload,
            blobs=seen.blobs,
            measures=measures,
            logs=seen.logs,
            network=seen.network,
        )

    def _next_ordinal(self, key: FactKey, known: list[Fact]) -> int:
        """Ordinals count on over tombstoned facts too: `find` with ordinal -1 asks for all of them."""
        everything = self._find(key.model_copy(update={"ordinal": _ALL}))
        return max((fact.key.ordinal for fact in (*known, *everything)), default=-1) + 1

    def _wants_second_attempt(self, known: list[Fact]) -> bool:
        last = known[-1]
        return not is_final(known) and self._clock() - last.observed_at >= self._recheck_after


def _key(producer: Producer, kind: str, subject: str, input_hash: str) -> FactKey:
    return FactKey(kind=kind, subject=subject, input_hash=input_hash, producer=producer.name, epoch=producer.epoch)


def is_final(attempts: list[Fact]) -> bool:
    """Whether the last of these attempts stands: positive, independent of the network, or confirmed (law 2)."""
    last = attempts[-1]
    return last.ok or not last.network or len([fact for fact in attempts if not fact.ok]) > 1
