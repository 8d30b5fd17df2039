"""The tokens of a run: which one asks next, which ones rest and until when, and what each has spent."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

import structlog

from miner.core.errors import CapReached, ForgeLimited, ForgeToken, Interrupted
from miner.core.memo import Clock
from miner.core.records import Record
from miner.crawlers.github.limits import Rate

_LEAST_REST_S = 60.0
_PAD_S = 1.0
_SAME_WINDOW_S = 5.0
_log = structlog.get_logger()


class TokenSpending(Record):
    """What was asked with one token, by its number in the order in which they were given."""

    number: int
    requests: int
    points: int


class Spending(Record):
    """What a client has asked and waited for so far; `waited_s` adds up the waits of all threads."""

    requests: int
    points: int
    waited_s: float
    by_token: tuple[TokenSpending, ...]


class Lease:
    """One request's hold on a token; the marks say which rests had begun when it was taken."""

    def __init__(self, token: _Token, resource: str, cost: int, marks: tuple[int, int]) -> None:
        self.number = token.number
        self.token = token
        self.resource = resource
        self.cost = cost
        self.marks = marks


class _Rest:
    """A pause that the forge asked for: longer each time that it is asked for again without an answer in between."""

    def __init__(self) -> None:
        self.until = -math.inf
        self.strikes = 0
        self.mark = 0

    def strike(self, now: float, stated_s: float | None, mark: int) -> None:
        """Begin a rest, or go on with one that had not begun when the request was sent."""
        if mark == self.mark:
            self.strikes += 1
            self.mark += 1
        grown_s = _LEAST_REST_S * 2 ** max(0, self.strikes - 1)
        if stated_s is None:
            stated_s = grown_s
        elif self.strikes > 1:
            stated_s = max(stated_s, grown_s)
        self.until = max(self.until, now + stated_s)

    def answered(self, mark: int) -> None:
        """Take note that the forge answers again."""
        if mark == self.mark:
            self.strikes = 0


class _Bucket:
    """What a token has left of one resource; None where it is not known."""

    def __init__(self) -> None:
        self.remaining: int | None = None
        self.resets_at = -math.inf
        self.reserved = 0
        self.rest = _Rest()

    def left(self, now: float) -> float:
        """Return how many points are left, those of requests under way taken off."""
        if self.remaining is None or self.resets_at <= now:
            return math.inf
        return self.remaining - self.reserved


class _Token:
    def __init__(self, number: int) -> None:
        self.number = number
        self.alive = True
        self.requests = 0
        self.points = 0
        self._buckets: dict[str, _Bucket] = {}

    def bucket(self, resource: str) -> _Bucket:
        return self._buckets.setdefault(resource, _Bucket())

    @property
    def buckets(self) -> list[_Bucket]:
        return list(self._buckets.values())


class TokenPool:
    """Hands out tokens, the one with most points left first; safe to share between threads.

    Args:
        count: how many tokens there are.
        max_wait_s: a longer rest of all of them is not waited for.
        cap_points: no request begins that could spend more than this in all; None: no cap.
        stopped: ends every wait.
        clock: the present time.
        sleep: waits for some seconds; None: until `stopped` is set, at most so long.
    """

    def __init__(
        self,
        count: int,
        *,
        max_wait_s: float,
        cap_points: int | None,
        stopped: threading.Event,
        clock: Clock,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self._tokens = [_Token(number) for number in range(1, count + 1)]
        self._max_wait_s = max_wait_s
        self._cap = cap_points
        self._stopped = stopped
        self._clock = clock
        self._sleep = sleep or stopped.wait
        self._all = _Rest()
        self._reserved = 0
        self._waited_s = 0.0
        self._lock = threading.Lock()

    @property
    def spent(self) -> Spending:
        """What was spent so far."""
        with self._lock:
            by_token = tuple(
                TokenSpending(number=token.number, requests=token.requests, points=token.points)
                for token in self._tokens
            )
            return Spending(
                requests=sum(token.requests for token in by_token),
                points=self._points(),
                waited_s=round(self._waited_s, 3),
                by_token=by_token,
            )

    def take(self, resource: str, cost: int, without: Iterable[int] = ()) -> Lease | None:
        """Return a token for a request that may cost so many points, waiting for one; None: only those `without` live.

        Raises:
            ForgeToken: the forge has refused every token, or there is none.
            ForgeLimited: all of them rest for too long.
            CapReached: the request could spend more than the cap.
            Interrupted: the run was stopped.
        """
        while True:
            if self._stopped.is_set():
                raise Interrupted("stopped")
            with self._lock:
                tokens = self._living(without)
                if not tokens:
                    return None
                self._check_cap(cost)
                now = self._now()
                free_at = {token.number: self._free_at(token, resource) for token in tokens}
                ready = [token for token in tokens if free_at[token.number] <= now]
                if ready:
                    return self._lease(max(ready, key=lambda one: one.bucket(resource).left(now)), resource, cost)
                until = min(free_at.values())
            self._rest_until(until, until - now, resource)

    def settle(self, lease: Lease, *, requests: int, points: int, rate: Rate | None, answered: bool) -> None:
        """Take a token back after a request: what it cost, and what the forge says is left."""
        with self._lock:
            lease.token.requests += requests
            lease.token.points += points
            self._reserved -= lease.cost
            bucket = lease.token.bucket(lease.resource)
            bucket.reserved -= lease.cost
            if answered:
                self._all.answered(lease.marks[0])
                bucket.rest.answered(lease.marks[1])
            if rate is not None:
                self._note(lease.token.bucket(rate.resource), rate)

    def rest(self, lease: Lease, rate: Rate | None, stated_s: float | None) -> None:
        """Let one token rest until its points are back (primary limit)."""
        if rate is not None and rate.reset_in_s > 0:
            stated_s = max(stated_s or 0.0, rate.reset_in_s + _PAD_S)
        with self._lock:
            lease.token.bucket(lease.resource).rest.strike(self._now(), stated_s, lease.marks[1])

    def rest_all(self, lease: Lease, stated_s: float | None) -> None:
        """Let all tokens rest (secondary limit): they may belong to one account, and come from one machine."""
        with self._lock:
            self._all.strike(self._now(), None if stated_s is None else stated_s + _PAD_S, lease.marks[0])

    def drop(self, lease: Lease, detail: str) -> None:
        """Never use a token again that the forge has refused."""
        with self._lock:
            was_alive, lease.token.alive = lease.token.alive, False
            left = sum(token.alive for token in self._tokens)
        if was_alive:
            _log.warning("the forge refuses a token", number=lease.number, left=left, seen=detail)

    def pause(self, seconds: float) -> None:
        """Wait, and count it; what comes next looks whether the run was stopped meanwhile."""
        self._sleep(seconds)
        with self._lock:
            self._waited_s += seconds

    def _now(self) -> float:
        return self._clock().timestamp()

    def _living(self, without: Iterable[int]) -> list[_Token]:
        living = [token for token in self._tokens if token.alive]
        if not self._tokens:
            raise ForgeToken("the forge is to be asked, and there is no token")
        if not living:
            raise ForgeToken(f"the forge refuses every token ({len(self._tokens)} of them)")
        return [token for token in living if token.number not in set(without)]

    def _points(self) -> int:
        return sum(token.points for token in self._tokens)

    def _check_cap(self, cost: int) -> None:
        spent = self._points() + self._reserved
        if self._cap is not None and spent + cost > self._cap:
            raise CapReached(
                f"our own cap of {self._cap} points: {spent} are spent or under way, the next request may cost {cost}"
            )

    def _free_at(self, token: _Token, resource: str) -> float:
        bucket = token.bucket(resource)
        return max(self._all.until, bucket.rest.until, bucket.resets_at if bucket.remaining == 0 else -math.inf)

    def _lease(self, token: _Token, resource: str, cost: int) -> Lease:
        bucket = token.bucket(resource)
        bucket.reserved += cost
        self._reserved += cost
        return Lease(token, resource, cost, (self._all.mark, bucket.rest.mark))

    def _note(self, bucket: _Bucket, rate: Rate) -> None:
        """Keep the newest word of the forge: answers of several threads may arrive out of order."""
        resets_at = self._now() + rate.reset_in_s + _PAD_S
        same_window = abs(resets_at - bucket.resets_at) < _SAME_WINDOW_S
        if bucket.remaining is None or not same_window:
            bucket.remaining = rate.remaining
        else:
            bucket.remaining = min(bucket.remaining, rate.remaining)
        bucket.resets_at = resets_at

    def _rest_until(self, until: float, seconds: float, resource: str) -> None:
        if seconds > self._max_wait_s:
            when = datetime.fromtimestamp(until, UTC).replace(microsecond=0)
            raise ForgeLimited(
                f"every token's limit for {resource} is used up until {when.isoformat()} "
                f"({timedelta(seconds=round(seconds))} from now), longer than github.max_wait_s={self._max_wait_s:g}"
            )
        _log.info("waiting for the forge's limit", resource=resource, seconds=round(seconds, 1))
        self.pause(seconds)
        self._end_rests(until)

    def _end_rests(self, until: float) -> None:
        """End what was waited for, whatever the clock of this machine says now."""
        with self._lock:
            rests = [self._all, *(bucket.rest for token in self._tokens for bucket in token.buckets)]
            for rest in rests:
                if rest.until <= until:
                    rest.until = -math.inf
            for token in self._tokens:
                for bucket in token.buckets:
                    if bucket.resets_at <= until:
                        bucket.remaining, bucket.resets_at = None, -math.inf
