"""Limits: primary and secondary ones, for each token, with the headers that tell of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import requests

from forge import Forge, Limits, Repo, World
from forge.conftest import Ask

RATE = "{ rateLimit { cost limit remaining used } }"


@dataclass
class Clock:
    now: float = 1_750_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limits() -> Limits:
    return Limits(core=3, graphql=4, window_s=100, rest_per_minute=20, graphql_per_minute=20)


@pytest.fixture
def forge(world: World, clock: Clock, limits: Limits) -> Iterator[Forge]:
    with Forge(world, limits=limits, clock=clock) as forge:
        yield forge


def test_the_defaults_are_githubs() -> None:
    assert Limits() == Limits(5000, 5000, 30, 3600, 60, 900, 2000, 100, 60)


def test_points_are_told_and_used_up_with_status_200(ask: Ask) -> None:
    told = [ask(RATE).json()["data"]["rateLimit"] for _ in range(4)]
    assert [(rate["cost"], rate["used"], rate["remaining"]) for rate in told] == [
        (1, 1, 3),
        (1, 2, 2),
        (1, 3, 1),
        (1, 4, 0),
    ]
    over = ask(RATE)
    assert (over.status_code, over.json()["errors"][0]["type"]) == (200, "RATE_LIMITED")
    assert (over.headers["X-RateLimit-Remaining"], over.headers["X-RateLimit-Resource"]) == ("0", "graphql")


def test_requests_are_used_up_with_status_403_until_the_window_ends(get: Ask, repo: Repo, clock: Clock) -> None:
    assert [get("/repos/octo/lib").status_code for _ in range(4)] == [200, 200, 200, 403]
    over = get("/repos/octo/lib")
    assert over.headers["X-RateLimit-Remaining"] == "0"
    assert int(over.headers["X-RateLimit-Reset"]) == clock.now + 100
    assert get("/rate_limit").json()["resources"]["core"]["remaining"] == 0
    clock.now += 100
    assert get("/repos/octo/lib").headers["X-RateLimit-Remaining"] == "2"


def test_tokens_have_limits_of_their_own(ask: Ask, forge: Forge) -> None:
    for _ in range(5):
        last = ask(RATE)
    other = ask(RATE, headers={"Authorization": "Bearer another"})
    assert ("errors" in last.json(), "errors" in other.json()) == (True, False)
    assert [entry.token for entry in forge.log] == [1] * 5 + [2]


def test_who_says_not_who_it_is_may_ask_little(world: World, repo: Repo) -> None:
    with Forge(world, limits=Limits(anonymous=2)) as forge:
        statuses = [requests.get(f"{forge.api_url}/repos/octo/lib", timeout=5).status_code for _ in range(3)]
    assert statuses == [200, 200, 403]


def test_a_limit_can_be_used_up_by_hand(ask: Ask, forge: Forge, clock: Clock) -> None:
    forge.exhaust("graphql", token=1, reset_s=5)
    assert ask(RATE).json()["errors"][0]["type"] == "RATE_LIMITED"
    clock.now += 5
    assert "errors" not in ask(RATE).json()


@pytest.mark.parametrize("limits", [Limits(rest_per_minute=3, graphql_per_minute=3)])
def test_too_many_a_minute_reach_the_secondary_limit(get: Ask, ask: Ask, repo: Repo, clock: Clock) -> None:
    answers = [get("/repos/octo/lib") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 403]
    assert answers[3].headers["Retry-After"] == "60"
    assert "secondary rate limit" in answers[3].json()["message"]
    assert int(answers[3].headers["X-RateLimit-Remaining"]) > 0
    assert ask(RATE).status_code == 200  # counted apart
    clock.now += 60
    assert get("/repos/octo/lib").status_code == 200


@pytest.mark.parametrize("limits", [Limits(concurrent=1)])
def test_too_many_at_once_reach_the_secondary_limit(forge: Forge, repo: Repo) -> None:
    statuses: list[int] = []

    def send() -> None:
        headers = {"Authorization": "Bearer x"}
        statuses.append(requests.get(f"{forge.api_url}/repos/octo/lib", headers=headers, timeout=5).status_code)

    with forge.world.lock:  # no answer is made while a test holds it
        first = threading.Thread(target=send)
        first.start()
        while forge.budgets.busy(1) == 0:
            pass
        send()
    first.join()
    assert sorted(statuses) == [200, 403]


def test_limits_can_be_counted_only(world: World, repo: Repo) -> None:
    with Forge(world, limits=Limits.none()) as forge:
        statuses = {requests.get(f"{forge.api_url}/repos/octo/lib", timeout=5).status_code for _ in range(40)}
        assert (statuses, forge.log.requests) == ({200}, 40)


def test_tokens_are_asked_for_and_kept_nowhere(world: World, repo: Repo, session: requests.Session) -> None:
    with Forge(world, tokens=("good-token",)) as forge:

        def status(**headers: str) -> int:
            return session.post(forge.graphql_url, json={"query": RATE}, headers=headers, timeout=5).status_code

        assert status() == 401
        assert status(Authorization="Bearer bad-token") == 401
        assert status(Authorization="Bearer good-token") == 200
        assert status(Authorization="token good-token") == 200
        assert [entry.token for entry in forge.log] == [0, 1, 2, 2]
        assert "good-token" not in repr([vars(forge), list(forge.log)])
