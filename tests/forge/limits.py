"""The limits of GitHub, counted for each token as it says.

https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Resource = Literal["core", "search", "graphql"]
_NEVER = 1_000_000_000


@dataclass(frozen=True)
class Limits:
    """What a token may do; the defaults are GitHub's own.

    Attributes:
        window_s: after which the primary limits of REST and GraphQL begin anew; search has one minute.
        anonymous: REST requests without a token.
        rest_per_minute: secondary limit: points of REST requests, one each.
        graphql_per_minute: secondary limit: points of GraphQL requests, one each whatever they cost.
        concurrent: secondary limit: requests at once.
    """

    core: int = 5000
    graphql: int = 5000
    search: int = 30
    window_s: float = 3600
    search_window_s: float = 60
    rest_per_minute: int = 900
    graphql_per_minute: int = 2000
    concurrent: int = 100
    anonymous: int = 60

    @classmethod
    def none(cls) -> Limits:
        """Return limits that nothing reaches; what is spent is counted all the same."""
        return cls(_NEVER, _NEVER, _NEVER, 3600, 60, _NEVER, _NEVER, _NEVER, _NEVER)


@dataclass
class Window:
    """What a token has used of one resource, since when."""

    limit: int
    used: int = 0
    reset: float = 0.0

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)


@dataclass
class _Token:
    windows: dict[Resource, Window] = field(default_factory=dict)
    recent: dict[str, deque[float]] = field(default_factory=dict)
    busy: int = 0


class Budgets:
    """What every token has used.

    Args:
        limits: of each of them.
        clock: seconds since the epoch.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens: dict[int, _Token] = {}

    def window(self, token: int, resource: Resource) -> Window:
        """Return the present window of a token; it begins with the first request after the last one ended."""
        with self._lock:
            return self._window(token, resource)

    def spend(self, token: int, resource: Resource, cost: int) -> Window:
        """Count a request and return its window."""
        with self._lock:
            window = self._window(token, resource)
            window.used = min(window.limit, window.used + cost)
            return window

    def exhaust(self, token: int, resource: Resource, reset_s: float) -> None:
        """Use up all that a token has until so many seconds from now."""
        with self._lock:
            window = self._window(token, resource)
            window.used, window.reset = window.limit, self._clock() + reset_s

    def enter(self, token: int, resource: Resource) -> bool:
        """Begin a request; return whether the secondary limits let it pass. `leave` ends it."""
        most = self.limits.graphql_per_minute if resource == "graphql" else self.limits.rest_per_minute
        with self._lock:
            state = self._tokens.setdefault(token, _Token())
            state.busy += 1
            recent = state.recent.setdefault("graphql" if resource == "graphql" else "rest", deque(maxlen=most + 1))
            now = self._clock()
            while recent and recent[0] <= now - 60:
                recent.popleft()
            recent.append(now)
            return len(recent) <= most and state.busy <= self.limits.concurrent

    def leave(self, token: int) -> None:
        with self._lock:
            self._tokens[token].busy -= 1

    def busy(self, token: int) -> int:
        """Return how many requests of a token are being answered."""
        with self._lock:
            return self._tokens[token].busy if token in self._tokens else 0

    def _window(self, token: int, resource: Resource) -> Window:
        state = self._tokens.setdefault(token, _Token())
        now = self._clock()
        window = state.windows.get(resource)
        if window is None or now >= window.reset:
            length = self.limits.search_window_s if resource == "search" else self.limits.window_s
            limit = self.limits.anonymous if token == 0 and resource == "core" else getattr(self.limits, resource)
            window = Window(limit, 0, now + length)
            state.windows[resource] = window
        return window
