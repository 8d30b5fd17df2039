"""The client of the forge: GraphQL and REST with many tokens, bounded retries, and every point accounted for.

An answer that says something about its subject is a value: gone (404, 410, 451), not modified (304), or NOT_FOUND
beside data. Everything else is waited for or tried again, with a bound, and then raised.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

import structlog
from pydantic import Field
from tenacity import RetryCallState, Retrying, retry_if_result, wait_random_exponential

from miner.core.errors import ForgeToken, ForgeUnreachable
from miner.core.memo import Clock, utc_now
from miner.core.records import Record
from miner.core.settings import Github
from miner.crawlers.github.client_verdict import Kind, Verdict, judge_graphql, judge_rest
from miner.crawlers.github.client_wire import Answer, Silence, Wire, same_origin
from miner.crawlers.github.limits import GRAPHQL, cost_of, rate_of, resource_of
from miner.crawlers.github.tokens import Secret
from miner.crawlers.github.tokens_pool import Lease, Spending, TokenPool

_HEAVY_TRIES = 2
_LONGEST_BACKOFF_S = 60.0
_NOT_MODIFIED = 304
_FREE = "/rate_limit"
_RETRIED = frozenset({Kind.PASSING, Kind.HEAVY})
_NEXT = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next\b')
_log = structlog.get_logger()


class HeavyPage(ForgeUnreachable):
    """One page of a query is too much for the forge: ask for a smaller one. What it cost counts as spent."""


class GraphReply(Record):
    """The answer to a query.

    Attributes:
        errors: what the forge says about parts of the data that it does not give: NOT_FOUND, FORBIDDEN.
        raw: the body as it came.
        points: what it cost, with all tries.
        requests: how many requests it took, tries and redirects included.
    """

    data: dict[str, Any] = Field(repr=False)
    errors: tuple[dict[str, Any], ...]
    raw: bytes = Field(repr=False)
    points: int
    requests: int


class RestReply(Record):
    """The answer to a GET; a status other than 200 and 304 says that the forge does not give the subject out.

    Attributes:
        status: 200, 304, 404, 410, 451, or 403 for a repository that GitHub itself has blocked.
        headers: by lower-case name.
        next_path: what `get` takes for the next page, None after the last one.
    """

    status: int
    data: Any = Field(repr=False)
    raw: bytes = Field(repr=False)
    headers: dict[str, str] = Field(repr=False)
    etag: str | None
    next_path: str | None
    points: int
    requests: int


class _Call:
    """One question, until it is answered: how to ask it and to judge the answer, and what it has cost so far."""

    def __init__(
        self,
        resource: str,
        cost: int,
        send: Callable[[int], Answer | Silence],
        judge: Callable[[Answer | Silence], Verdict],
    ) -> None:
        self.resource = resource
        self.cost = cost
        self.send = send
        self.judge = judge
        self.points = 0
        self.requests = 0
        self.lacking: dict[int, str] = {}
        self.answer: Answer | Silence = Silence(detail="not asked")


class ForgeClient:
    """Asks the forge; safe to share between threads.

    Args:
        settings: where the forge is and how patient to be.
        tokens: used in turn, the one with most points left first.
        cap_points: never begin a request that could spend more than this in all.
        stopped: no further request or wait once it is set.
        clock: the present time.
        sleep: waits for some seconds; by default until `stopped` is set, at most so long.
    """

    def __init__(
        self,
        settings: Github,
        *,
        tokens: Sequence[str],
        cap_points: int | None = None,
        stopped: threading.Event | None = None,
        clock: Clock = utc_now,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._wire = Wire(settings, tuple(Secret(token) for token in tokens))
        self._pool = TokenPool(
            len(tokens),
            max_wait_s=settings.max_wait_s,
            cap_points=cap_points,
            stopped=stopped or threading.Event(),
            clock=clock,
            sleep=sleep,
        )
        self._backoff = wait_random_exponential(multiplier=1, max=_LONGEST_BACKOFF_S)

    @property
    def spent(self) -> Spending:
        """What was asked, spent and waited for so far."""
        return self._pool.spent

    def graphql(self, document: str, variables: Mapping[str, Any]) -> GraphReply:
        """Ask a query.

        Raises:
            HeavyPage: the query is too much for the forge.
            ForgeUnreachable: no answer, after all tries, or the forge refuses the query.
            ForgeLimited: the limits or our own cap are reached for too long.
            ForgeToken: no token is left, or none may see this.
            Interrupted: the run was stopped.
        """
        question = {"query": document, "variables": dict(variables)}
        call = _Call(
            GRAPHQL,
            cost_of(document, variables),
            lambda token: self._wire.post(token, question),
            judge_graphql,
        )
        verdict, answer = self._ask(call)
        return GraphReply(
            data=verdict.data, errors=verdict.errors, raw=answer.raw, points=call.points, requests=call.requests
        )

    def get(self, path: str, params: Mapping[str, str] | None = None, *, etag: str | None = None) -> RestReply:
        """Ask for a path below the REST root, `/repos/owner/name`; with an `etag`, only whether it has changed.

        Raises:
            ForgeUnreachable, ForgeLimited, ForgeToken, Interrupted: as for `graphql`.
        """
        headers = {} if etag is None else {"If-None-Match": etag}
        call = _Call(
            resource_of(path),
            0 if path == _FREE else 1,
            lambda token: self._wire.get(token, path, params or {}, headers),
            judge_rest,
        )
        verdict, answer = self._ask(call)
        return RestReply(
            status=answer.status,
            data=verdict.data,
            raw=answer.raw,
            headers=answer.headers,
            etag=answer.headers.get("etag", etag if answer.status == _NOT_MODIFIED else None),
            next_path=self._next_path(answer.headers.get("link", "")),
            points=call.points,
            requests=call.requests,
        )

    def _ask(self, call: _Call) -> tuple[Verdict, Answer]:
        """Ask until there is a value, or raise what stands in its way."""
        tries = Retrying(
            retry=retry_if_result(lambda verdict: verdict.kind in _RETRIED),
            stop=self._is_enough,
            wait=self._wait_s,
            sleep=self._pool.pause,
            before_sleep=_tell,
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        )
        verdict: Verdict = tries(self._attempt, call)
        if verdict.kind is Kind.VALUE and isinstance(call.answer, Answer):
            return verdict, call.answer
        seen = f"{verdict.detail} (after {call.requests} requests)"
        if verdict.kind in (Kind.HEAVY, Kind.TOO_LARGE):
            raise HeavyPage(f"the forge cannot answer a query: {seen}")
        if verdict.kind is Kind.REFUSED:
            raise ForgeUnreachable(
                f"the forge refuses a request: {seen}",
                next_step="check github.api_url and github.graphql_url; `swe-miner doctor --github` compares the forge"
                " with what is assumed of it",
            )
        raise ForgeUnreachable(f"the forge does not answer: {seen}")

    def _attempt(self, call: _Call) -> Verdict:
        """Ask once with each token that it takes to find one that may ask, and whose limit is not reached."""
        while True:
            lease = self._pool.take(call.resource, call.cost, call.lacking)
            if lease is None:
                number, detail = max(call.lacking.items())
                raise ForgeToken(f"token {number} lacks a permission: {detail}")
            verdict = self._request(call, lease)
            if verdict.kind is Kind.LOGIN:
                self._pool.drop(lease, verdict.detail)
            elif verdict.kind is Kind.SCOPE:
                call.lacking[lease.number] = verdict.detail
            elif verdict.kind not in (Kind.PRIMARY, Kind.SECONDARY):
                return verdict

    def _request(self, call: _Call, lease: Lease) -> Verdict:
        """Send one request, and keep account of it whatever comes back."""
        sent = points = 0
        rate, answered = None, False
        verdict = Verdict(kind=Kind.PASSING)
        try:
            call.answer = call.send(lease.number - 1)
            verdict, sent = call.judge(call.answer), call.answer.sent
            points = _points(call, verdict)
            if isinstance(call.answer, Answer):
                rate = rate_of(call.answer.headers, call.resource, self._clock())
                answered = verdict.kind not in (Kind.PRIMARY, Kind.SECONDARY)
        finally:
            call.requests += sent
            call.points += points
            self._pool.settle(lease, requests=sent, points=points, rate=rate, answered=answered)
        if verdict.kind is Kind.PRIMARY:
            self._pool.rest(lease, rate, verdict.wait_s)
        elif verdict.kind is Kind.SECONDARY:
            self._pool.rest_all(lease, verdict.wait_s)
        elif verdict.kind is Kind.VALUE and isinstance(call.answer, Answer) and call.answer.echoed:
            return Verdict(kind=Kind.PASSING, detail="the answer holds one of our tokens")
        return verdict

    def _is_enough(self, state: RetryCallState) -> bool:
        verdict = _verdict(state)
        heavy = verdict.kind is Kind.HEAVY and state.attempt_number >= _HEAVY_TRIES
        too_long = (verdict.wait_s or 0.0) > self._settings.max_wait_s
        return heavy or too_long or state.attempt_number >= self._settings.tries

    def _wait_s(self, state: RetryCallState) -> float:
        """Wait exponentially longer, with jitter, and at least as long as the forge asks for."""
        return max(self._backoff(state), (_verdict(state).wait_s or 0.0) + random.random())  # noqa: S311 - no secret

    def _next_path(self, link: str) -> str | None:
        """Return the path of a `Link` header's next page (RFC 8288), below the REST root.

        Raises:
            ForgeUnreachable: it leads elsewhere.
        """
        found = _NEXT.search(link)
        if found is None:
            return None
        url, root = urljoin(self._settings.api_url, found[1]), self._settings.api_url.rstrip("/")
        parts, prefix = urlsplit(url), urlsplit(root).path
        if not same_origin(url, root) or not parts.path.startswith(f"{prefix}/"):
            raise ForgeUnreachable(f"the next page of an answer is said to be elsewhere: {parts.hostname}{parts.path}")
        path = parts.path.removeprefix(prefix)
        return f"{path}?{parts.query}" if parts.query else path


def _points(call: _Call, verdict: Verdict) -> int:
    """Return what a request cost: GraphQL says it itself, a REST answer costs one, or nothing where nothing changed."""
    if isinstance(call.answer, Silence) or verdict.kind in (Kind.PRIMARY, Kind.SECONDARY, Kind.LOGIN):
        return 1 if verdict.kind is Kind.HEAVY else 0
    if call.resource != GRAPHQL:
        return 0 if call.answer.status == _NOT_MODIFIED else call.cost * call.answer.sent
    body = call.answer.body
    rate = body.get("data") if isinstance(body, dict) else None
    cost = rate.get("rateLimit") if isinstance(rate, dict) else None
    stated = cost.get("cost") if isinstance(cost, dict) else None
    if isinstance(stated, int):
        return stated
    return call.cost if verdict.kind is Kind.VALUE else 1


def _verdict(state: RetryCallState) -> Verdict:
    """Return what the last attempt came to; tenacity asks only after one that came to something."""
    if state.outcome is None:
        raise ValueError("no attempt was made")
    verdict: Verdict = state.outcome.result()
    return verdict


def _tell(state: RetryCallState) -> None:
    verdict = _verdict(state)
    _log.warning("asking the forge again", kind=verdict.kind.value, attempt=state.attempt_number, seen=verdict.detail)
