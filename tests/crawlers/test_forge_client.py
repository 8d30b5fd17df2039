"""The forge's client against scripted answers: what is a value, what is tried again, what is raised."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from forge import Forge, World
from hypothesis import given
from hypothesis import strategies as st
from scripted_forge import Asked, Say, ScriptedForge

from miner.core.errors import ConfigError, ForgeLimited, ForgeToken, ForgeUnreachable, Interrupted
from miner.core.settings import Github
from miner.crawlers.github.client import ForgeClient, HeavyPage
from miner.crawlers.github.client_verdict import Verdict, judge_graphql, judge_rest
from miner.crawlers.github.client_wire import Answer
from miner.crawlers.github.limits import cost_of, rate_of, retry_after_s
from miner.crawlers.github.queries import PULLS, SEARCH_REPOSITORIES, issues

QUERY = "query one($name: String!) { repository(owner: $name, name: $name) { id } rateLimit { cost } }"
GOOD = {"data": {"repository": {"id": "R_1"}, "rateLimit": {"cost": 3}}}
NOW = datetime(2025, 6, 1, 12, 0, 0, tzinfo=UTC)
HTML = "<!DOCTYPE html><title>Unicorn! &middot; GitHub</title>"
SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}
EXCEEDED = {"message": "API rate limit exceeded for user ID 1."}


class Time:
    """A clock that only sleeping moves."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> datetime:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def forge() -> Iterator[ScriptedForge]:
    with ScriptedForge() as forge:
        yield forge


@pytest.fixture
def clock() -> Time:
    return Time()


def client(forge: ScriptedForge, clock: Time, *tokens: str, **more: Any) -> ForgeClient:
    chosen = {name: more.pop(name) for name in ("tries", "max_wait_s", "timeout_s", "graphql_url") if name in more}
    settings = Github(**{"api_url": f"{forge.url}/api/v3", "tries": 3, "timeout_s": 2.0, **chosen})
    return ForgeClient(settings, tokens=tokens or ("ghp_first",), clock=clock, sleep=clock.sleep, **more)


def limit(remaining: int, *, reset_in_s: float = 600, resource: str = "core", there: datetime = NOW) -> dict[str, str]:
    return {
        "Date": format_datetime(there, usegmt=True),
        "X-RateLimit-Limit": "5000",
        "X-RateLimit-Remaining": str(remaining),
        "X-RateLimit-Reset": str(int(there.timestamp() + reset_in_s)),
        "X-RateLimit-Resource": resource,
    }


# Values


def test_a_query_gives_its_data_its_bytes_and_its_cost(forge: ScriptedForge, clock: Time) -> None:
    body = '{ "data": {"repository": {"id": "Ré"}, "rateLimit": {"cost": 7}} }'.encode()
    forge.say(Say(200, body))
    reply = client(forge, clock).graphql(QUERY, {"name": "o"})
    assert (reply.data["repository"], reply.errors, reply.raw) == ({"id": "Ré"}, (), body)
    assert (reply.points, reply.requests) == (7, 1)
    (asked,) = forge.asked
    assert (asked.verb, asked.path, asked.body) == (
        "POST",
        "/api/graphql",
        {"query": QUERY, "variables": {"name": "o"}},
    )
    assert asked.token == "ghp_first"
    assert asked.headers["user-agent"].startswith("swe-miner/")


@pytest.mark.parametrize(
    "error",
    [
        {"type": "NOT_FOUND", "path": ["repository"], "message": "Could not resolve to a Repository"},
        {
            "type": "FORBIDDEN",
            "path": ["repository"],
            "extensions": {"saml_failure": True},
            "message": "SAML enforcement",
        },
    ],
    ids=["not found", "single sign-on"],
)
def test_errors_about_a_part_of_the_data_are_values(forge: ScriptedForge, clock: Time, error: dict[str, Any]) -> None:
    forge.say(Say(200, {"data": {"repository": None, "rateLimit": {"cost": 1}}, "errors": [error]}))
    reply = client(forge, clock).graphql(QUERY, {"name": "o"})
    assert reply.errors == (error,)
    assert reply.data["repository"] is None
    assert clock.slept == []


@pytest.mark.parametrize("status", [404, 410, 451])
def test_a_subject_that_is_gone_is_a_value(forge: ScriptedForge, clock: Time, status: int) -> None:
    forge.say(Say(status, {"message": "Not Found"}))
    reply = client(forge, clock).get("/repos/o/r")
    assert (reply.status, reply.data, reply.points, reply.requests) == (status, {"message": "Not Found"}, 1, 1)


def test_a_repository_that_the_forge_has_blocked_is_a_value(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(403, {"message": "Repository access blocked", "block": {"reason": "tos"}}))
    assert client(forge, clock).get("/repos/o/r").status == 403


def test_what_has_not_changed_costs_no_point(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(200, {"id": 1}, {"ETag": 'W/"abc"'}), Say(304, None, {"ETag": 'W/"abc"'}))
    ours = client(forge, clock)
    first = ours.get("/repos/o/r")
    again = ours.get("/repos/o/r", etag=first.etag)
    assert (first.etag, first.points) == ('W/"abc"', 1)
    assert (again.status, again.data, again.etag, again.points, again.requests) == (304, None, 'W/"abc"', 0, 1)
    assert forge.asked[1].headers["if-none-match"] == 'W/"abc"'
    assert (ours.spent.requests, ours.spent.points) == (2, 1)


def test_pages_are_followed_by_the_link_header(forge: ScriptedForge, clock: Time) -> None:
    link = f'<{forge.url}/api/v3/repositories/1/issues?page=1>; rel="prev", <{forge.url}/api/v3/repositories/1/issues'
    forge.say(Say(200, [1], {"Link": f'{link}?per_page=2&page=3>; rel="next"'}), Say(200, [2]))
    ours = client(forge, clock)
    first = ours.get("/repos/o/r/issues", {"per_page": "2", "page": "2"})
    assert first.next_path == "/repositories/1/issues?per_page=2&page=3"
    assert ours.get(first.next_path).next_path is None
    assert forge.asked[1].path == "/api/v3/repositories/1/issues?page=3&per_page=2"


@pytest.mark.parametrize("there", ["http://127.0.0.2:1/api/v3/x?page=2", "/elsewhere?page=2", "ftp://x/"])
def test_a_next_page_elsewhere_is_refused(forge: ScriptedForge, clock: Time, there: str) -> None:
    forge.say(Say(200, [1], {"Link": f'<{there}>; rel="next"'}))
    with pytest.raises(ForgeUnreachable, match="elsewhere"):
        client(forge, clock).get("/x")


def test_graphql_may_be_on_another_server(forge: ScriptedForge, clock: Time) -> None:
    with ScriptedForge() as other:
        other.say(Say(200, GOOD))
        forge.say(Say(200, {}))
        ours = client(forge, clock, graphql_url=f"{other.url}/graph")
        ours.graphql(QUERY, {"name": "o"})
        ours.get("/meta")
        assert [asked.path for asked in other.asked] == ["/graph"]
        assert [asked.path for asked in forge.asked] == ["/api/v3/meta"]


# Redirects


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_renamed_repository_is_followed_with_query_and_token(forge: ScriptedForge, clock: Time, status: int) -> None:
    forge.say(Say(status, {}, {"Location": f"{forge.url}/api/v3/repositories/1/issues?page=2"}), Say(200, [1]))
    reply = client(forge, clock).get("/repos/o/old/issues", {"page": "2"})
    assert (reply.data, reply.requests, reply.points) == ([1], 2, 2)
    assert [(asked.path, asked.token) for asked in forge.asked] == [
        ("/api/v3/repos/o/old/issues?page=2", "ghp_first"),
        ("/api/v3/repositories/1/issues?page=2", "ghp_first"),
    ]


def test_a_redirected_query_keeps_its_body(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(307, {}, {"Location": "/api/graphql/"}), Say(200, GOOD))
    client(forge, clock).graphql(QUERY, {"name": "o"})
    assert [(asked.verb, asked.path, asked.body["variables"]) for asked in forge.asked] == [
        ("POST", "/api/graphql", {"name": "o"}),
        ("POST", "/api/graphql/", {"name": "o"}),
    ]


def test_a_token_is_never_sent_to_another_server(forge: ScriptedForge, clock: Time) -> None:
    with ScriptedForge() as other:
        other.say(Say(200, {}))
        forge.say(Say(301, {}, {"Location": f"{other.url}/api/v3/repos/o/r"}))
        with pytest.raises(ForgeUnreachable, match="no token is sent to another server"):
            client(forge, clock).get("/repos/o/r")
        assert other.asked == []


@pytest.mark.parametrize("path", ["@127.0.0.2/", ".example.org/x"])
def test_no_path_changes_the_server(forge: ScriptedForge, clock: Time, path: str) -> None:
    forge.say(Say(200, {}))
    with pytest.raises(ForgeUnreachable):
        client(forge, clock).get(path)
    assert all(asked.path.startswith("/") for asked in forge.asked)


def test_redirects_end(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(301, {}, {"Location": f"{forge.url}/api/v3/repos/o/r"}))
    with pytest.raises(ForgeUnreachable, match="more than 5 redirects"):
        client(forge, clock, tries=1).get("/repos/o/r")
    assert len(forge.asked) == 5


@pytest.mark.parametrize("url", ["ftp://x/", "https://user:ghp_secret@host/api", "nothing", "http://h:99999/"])
def test_an_address_that_cannot_be_asked_is_refused_at_once(url: str, clock: Time) -> None:
    with pytest.raises(ConfigError) as caught:
        ForgeClient(Github(api_url=url), tokens=("ghp_first",), clock=clock, sleep=clock.sleep)
    assert "ghp_secret" not in str(caught.value)


# What is tried again

PASSING = {
    "a page of HTML with status 200": Say(200, HTML, {"Content-Type": "text/html"}),
    "half a JSON text": Say(200, '{"data": {"repo'),
    "a body that is cut": Say(200, GOOD, how="cut"),
    "a body with a wrong encoding": Say(200, GOOD, how="garbled"),
    "a broken connection": Say(how="reset"),
    "bytes that are no UTF-8": Say(200, b'{"data": {"x": "\xff"}}'),
    "a server error": Say(500, {"message": "Server Error"}),
    "an answer that is still being made": Say(202, {}),
    "a 404 of something else than the API": Say(404, HTML),
    "a 401 of something else than the API": Say(401, HTML),
    "a 403 of something else than the API": Say(403, HTML),
    "a number": Say(200, 3),
    "nothing": Say(200),
    "nonsense in a limit header": Say(200, GOOD, {"X-RateLimit-Remaining": "inf", "X-RateLimit-Limit": "nan"}),
}


@pytest.mark.parametrize("say", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize("how", ["graphql", "get"])
def test_what_says_nothing_about_the_subject_is_asked_again(
    forge: ScriptedForge, clock: Time, say: Say, how: str
) -> None:
    forge.say(say, say, Say(200, GOOD))
    ours = client(forge, clock)
    reply = ours.graphql(QUERY, {"name": "o"}) if how == "graphql" else ours.get("/repos/o/r")
    assert (reply.data, reply.requests) == (GOOD["data"] if how == "graphql" else GOOD, 3)
    assert len(clock.slept) == 2
    assert all(0 <= seconds <= 60 for seconds in clock.slept)


@pytest.mark.parametrize("say", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize("how", ["graphql", "get"])
def test_tries_are_bounded(forge: ScriptedForge, clock: Time, say: Say, how: str) -> None:
    forge.say(say)
    ours = client(forge, clock)
    with pytest.raises(ForgeUnreachable) as caught:
        ours.graphql(QUERY, {"name": "o"}) if how == "graphql" else ours.get("/repos/o/r")
    assert not isinstance(caught.value, HeavyPage)
    assert "after 3 requests" in str(caught.value)
    assert ours.spent.requests == len(forge.asked) == 3


@pytest.mark.parametrize(
    "say",
    [
        Say(200, {"data": None, "errors": []}),
        Say(200, {"errors": "no list"}),
        Say(200, {"data": None, "errors": [{"message": "Unexpected end"}]}),
        Say(200, {"data": {}, "errors": [{"type": "NOT_FOUND", "message": "of nothing"}, {"message": "loose"}]}),
    ],
)
def test_a_query_without_an_answer_is_asked_again(forge: ScriptedForge, clock: Time, say: Say) -> None:
    forge.say(say, Say(200, GOOD))
    if say.body["errors"] and isinstance(say.body["errors"], list) and "type" in say.body["errors"][0]:
        with pytest.raises(ForgeUnreachable, match="NOT_FOUND: of nothing"):
            client(forge, clock).graphql(QUERY, {"name": "o"})
        return
    assert client(forge, clock).graphql(QUERY, {"name": "o"}).requests == 2


def test_a_slow_answer_to_a_get_is_asked_again(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(how="slow"), Say(200, {"id": 1}))
    assert client(forge, clock, timeout_s=0.05).get("/repos/o/r").data == {"id": 1}


def test_nobody_there_is_unreachable(clock: Time) -> None:
    with ScriptedForge() as gone:
        url = gone.url
    ours = ForgeClient(Github(api_url=url, tries=2), tokens=("ghp_first",), clock=clock, sleep=clock.sleep)
    with pytest.raises(ForgeUnreachable, match="refused"):
        ours.get("/meta")


def test_the_error_says_what_was_seen(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(200, HTML, {"Content-Type": "text/html; charset=utf-8"}))
    with pytest.raises(ForgeUnreachable, match="status 200, text/html: <!DOCTYPE html><title>Unicorn!"):
        client(forge, clock).get("/repos/o/r")


def test_the_forge_may_ask_for_a_longer_wait(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(503, {"message": "maintenance"}, {"Retry-After": "300"}), Say(200, {}))
    client(forge, clock).get("/meta")
    assert 300 <= sum(clock.slept) <= 301


def test_a_request_that_the_forge_refuses_is_not_repeated(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(422, {"message": "Validation Failed"}))
    with pytest.raises(ForgeUnreachable, match=r"refuses a request.*Validation Failed"):
        client(forge, clock).get("/search/issues", {"q": ""})
    assert len(forge.asked) == 1


def test_a_query_that_the_forge_does_not_understand_is_not_repeated(forge: ScriptedForge, clock: Time) -> None:
    error = {"message": "Field 'x' doesn't exist", "path": ["query"], "extensions": {"code": "undefinedField"}}
    forge.say(Say(200, {"errors": [error]}))
    with pytest.raises(ForgeUnreachable, match="Field 'x' doesn't exist"):
        client(forge, clock).graphql(QUERY, {"name": "o"})
    assert len(forge.asked) == 1


# Pages that are too heavy

WRONG = "Something went wrong while executing your query. This may be the result of a timeout."
HEAVY = {
    "502": (Say(502, HTML, {"Content-Type": "text/html"}), 2),
    "503": (Say(503, {"message": "Service unavailable"}), 2),
    "504": (Say(504, {"message": "We couldn't respond to your request in time."}), 2),
    "no answer in time": (Say(how="slow"), 2),
    "something went wrong, with status 200": (Say(200, {"data": None, "errors": [{"message": WRONG}]}), 2),
    "something went wrong, beside data": (
        Say(200, {"data": {"repository": None}, "errors": [{"message": WRONG, "path": ["repository"]}]}),
        2,
    ),
    "resource limits": (
        Say(
            200,
            {"data": {"repository": None}, "errors": [{"type": "RESOURCE_LIMITS_EXCEEDED", "path": ["repository"]}]},
        ),
        1,
    ),
    "node limit": (Say(200, {"errors": [{"type": "MAX_NODE_LIMIT_EXCEEDED", "message": "600,000 nodes"}]}), 1),
}


@pytest.mark.parametrize(("say", "requests"), HEAVY.values(), ids=HEAVY)
def test_a_heavy_page_is_left_to_the_caller(forge: ScriptedForge, clock: Time, say: Say, requests: int) -> None:
    forge.say(say)
    ours = client(forge, clock, tries=6, timeout_s=0.05 if say.how == "slow" else 2.0)
    with pytest.raises(HeavyPage):
        ours.graphql(QUERY, {"name": "o"})
    assert len(forge.asked) == ours.spent.requests == requests
    assert ours.spent.points == requests


def test_a_page_that_was_heavy_once_is_an_answer(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(502, HTML), Say(200, GOOD))
    reply = client(forge, clock).graphql(QUERY, {"name": "o"})
    assert (reply.requests, reply.points) == (2, 4)


# Limits


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("off_by", [timedelta(0), timedelta(hours=3), timedelta(hours=-3)], ids=str)
def test_a_token_rests_until_its_points_are_back_by_the_clock_of_the_forge(
    forge: ScriptedForge, status: int, off_by: timedelta
) -> None:
    clock = Time(NOW + off_by)
    forge.say(Say(status, EXCEEDED, limit(0, reset_in_s=600)), Say(200, {"id": 1}))
    ours = client(forge, clock)
    reply = ours.get("/repos/o/r")
    assert clock.slept == [601]
    assert (reply.points, reply.requests, ours.spent.waited_s) == (1, 2, 601)


@pytest.mark.parametrize(
    "error",
    [
        {"type": "RATE_LIMITED", "message": "API rate limit exceeded for user ID 1."},
        {
            "type": "RATE_LIMIT",
            "code": "graphql_rate_limit",
            "message": "API rate limit already exceeded for user ID 1.",
        },
        {"message": "API rate limit exceeded for installation ID 1."},
    ],
    ids=["RATE_LIMITED", "RATE_LIMIT", "words only"],
)
@pytest.mark.parametrize("remaining", [0, 12])
def test_a_limit_inside_a_200_is_waited_for(
    forge: ScriptedForge, clock: Time, error: dict[str, Any], remaining: int
) -> None:
    forge.say(Say(200, {"errors": [error]}, limit(remaining, resource="graphql")), Say(200, GOOD))
    reply = client(forge, clock).graphql(QUERY, {"name": "o"})
    assert clock.slept == [601]
    assert (reply.points, reply.requests) == (3, 2)


def test_points_that_are_used_up_are_not_asked_for(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(200, {"id": 1}, limit(0, reset_in_s=100)), Say(200, {"id": 2}))
    ours = client(forge, clock)
    ours.get("/a")
    assert clock.slept == []
    ours.get("/b")
    assert clock.slept == [101]
    assert len(forge.asked) == 2


def test_resources_have_limits_of_their_own(forge: ScriptedForge, clock: Time) -> None:
    forge.say(
        Say(200, {}, limit(0)),
        Say(200, GOOD, limit(9, resource="graphql")),
        Say(200, {}, limit(0, reset_in_s=60, resource="search")),
        Say(200, GOOD, limit(8, resource="graphql")),
    )
    ours = client(forge, clock)
    ours.get("/repos/o/r")
    ours.graphql(QUERY, {"name": "o"})
    ours.get("/search/issues", {"q": "x"})
    ours.graphql(QUERY, {"name": "o"})
    assert clock.slept == []


def test_the_token_with_most_points_left_asks(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(200, {}, limit(10)), Say(200, {}, limit(8)), token="ghp_first")
    forge.say(Say(200, {}, limit(30)), Say(200, {}, limit(9)), token="ghp_second")
    ours = client(forge, clock, "ghp_first", "ghp_second")
    for _ in range(5):
        ours.get("/meta")
    assert [asked.token[4:] for asked in forge.asked] == ["first", "second", "second", "first", "second"]
    assert [(one.number, one.requests, one.points) for one in ours.spent.by_token] == [(1, 2, 2), (2, 3, 3)]


def test_another_token_asks_while_one_rests(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(403, EXCEEDED, limit(0)), token="ghp_first")
    forge.say(Say(200, {"id": 1}, limit(7)), token="ghp_second")
    ours = client(forge, clock, "ghp_first", "ghp_second")
    assert ours.get("/a").requests == 2
    assert ours.get("/b").requests == 1
    assert clock.slept == []


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("header", ["45", format_datetime(NOW + timedelta(seconds=45), usegmt=True)])
def test_a_secondary_limit_says_how_long_to_wait(forge: ScriptedForge, clock: Time, status: int, header: str) -> None:
    forge.say(Say(status, SECONDARY, {**limit(4000), "Retry-After": header}), Say(200, {}))
    client(forge, clock).get("/a")
    assert clock.slept == [46]


def test_a_secondary_limit_makes_all_tokens_rest(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(403, SECONDARY, {"Retry-After": "45"}), Say(200, {}))
    client(forge, clock, "ghp_first", "ghp_second").get("/a")
    assert clock.slept == [46]


@pytest.mark.parametrize(
    "say",
    [
        Say(403, SECONDARY),
        Say(429, {"message": "Too many requests"}),
        Say(429, HTML),
        Say(200, {"errors": [SECONDARY]}),
    ],
    ids=["403", "429", "429 of HTML", "200"],
)
def test_without_a_time_the_waits_begin_with_a_minute_and_double(forge: ScriptedForge, clock: Time, say: Say) -> None:
    forge.say(say, say, say, Say(200, GOOD), say, Say(200, GOOD))
    ours = client(forge, clock)
    ours.graphql(QUERY, {"name": "o"})
    assert clock.slept == [60, 120, 240]
    ours.graphql(QUERY, {"name": "o"})
    assert clock.slept == [60, 120, 240, 60]


def test_a_limit_that_does_not_end_is_raised(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(429, SECONDARY, {"Retry-After": "1"}))
    with pytest.raises(ForgeLimited):
        client(forge, clock, max_wait_s=1000).get("/a")
    assert clock.slept == [2, 120, 240, 480, 960]


def test_a_reset_that_is_long_past_is_no_time(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(403, EXCEEDED, limit(0, reset_in_s=-50)), Say(200, {}))
    client(forge, clock).get("/a")
    assert clock.slept == [60]


def test_too_long_a_rest_is_raised_with_the_time_of_its_end(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(403, EXCEEDED, limit(0, reset_in_s=3500)))
    with pytest.raises(ForgeLimited, match=r"until 2025-06-01T12:58:21\+00:00 \(0:58:21 from now\).*max_wait_s=3000"):
        client(forge, clock, max_wait_s=3000).get("/a")
    assert clock.slept == []


@pytest.mark.parametrize("reset", ["1e300", "99999999999999999999", "-5"])
def test_a_reset_beyond_all_time_is_no_crash(forge: ScriptedForge, clock: Time, reset: str) -> None:
    forge.say(Say(403, EXCEEDED, {**limit(0), "X-RateLimit-Reset": reset}), Say(200, {}))
    with pytest.raises(ForgeLimited):
        client(forge, clock, max_wait_s=30).get("/a")


def test_a_clock_that_stands_still_does_not_make_it_wait_for_ever(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(403, EXCEEDED, limit(0)), Say(200, {"id": 1}))
    slept: list[float] = []
    ours = ForgeClient(Github(api_url=forge.url), tokens=("ghp_first",), clock=clock, sleep=slept.append)
    assert ours.get("/a").data == {"id": 1}
    assert slept == [601]


def test_no_request_begins_that_would_exceed_our_cap(forge: ScriptedForge, clock: Time) -> None:
    document = "query big($first: Int!) { search(first: $first) { nodes { a(first: 100) { b } c(first: 50) { b } } } }"
    forge.say(Say(200, {"data": {"rateLimit": {"cost": 2}}}))
    ours = client(forge, clock, cap_points=5)
    assert cost_of(document, {"first": 100}) == 3
    assert cost_of(document, {"first": 10}) == 1
    ours.graphql(document, {"first": 100})
    ours.graphql(document, {"first": 100})
    with pytest.raises(
        ForgeLimited, match="our own cap of 5 points: 4 are spent or under way, the next request may cost 3"
    ) as caught:
        ours.graphql(document, {"first": 100})
    assert "run.max_points" in caught.value.next_step
    ours.graphql(document, {"first": 10})
    assert (len(forge.asked), ours.spent.points) == (3, 6)


# Tokens


def test_a_token_that_is_refused_is_not_used_again(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(401, {"message": "Bad credentials"}), token="ghp_first")
    forge.say(Say(200, {"id": 1}), token="ghp_second")
    ours = client(forge, clock, "ghp_first", "ghp_second")
    assert [ours.get("/a").requests, ours.get("/a").requests] == [2, 1]
    assert clock.slept == []


def test_without_a_token_that_works_there_is_no_crawl(forge: ScriptedForge, clock: Time) -> None:
    forge.say(Say(401, {"message": "Bad credentials"}))
    ours = client(forge, clock, "ghp_first", "ghp_second")
    for _ in range(2):
        with pytest.raises(ForgeToken, match="refuses every token"):
            ours.get("/a")
    assert len(forge.asked) == 2


def test_no_token_is_needed_before_something_is_asked(forge: ScriptedForge, clock: Time) -> None:
    ours = ForgeClient(Github(api_url=forge.url), tokens=(), clock=clock, sleep=clock.sleep)
    assert ours.spent.requests == 0
    with pytest.raises(ForgeToken, match="there is no token"):
        ours.get("/a")
    assert forge.asked == []


LACKING = {
    "classic": (
        Say(403, {"message": "Must have admin rights"}, {"X-Accepted-OAuth-Scopes": "repo", "X-OAuth-Scopes": "gist"}),
        "scopes that would do: repo; scopes of the token: gist",
    ),
    "fine-grained": (
        Say(
            403,
            {"message": "Resource not accessible by personal access token"},
            {"X-Accepted-GitHub-Permissions": "issues=read"},
        ),
        "Resource not accessible by personal access token; permissions that would do: issues=read",
    ),
    "single sign-on": (
        Say(403, {"message": "Resource protected by organization SAML enforcement."}, {"X-GitHub-SSO": "required"}),
        "SAML enforcement.; single sign-on: required",
    ),
}


@pytest.mark.parametrize(("say", "words"), LACKING.values(), ids=LACKING)
def test_a_missing_permission_is_named(forge: ScriptedForge, clock: Time, say: Say, words: str) -> None:
    forge.say(say)
    with pytest.raises(ForgeToken) as caught:
        client(forge, clock).get("/a")
    assert "token 1 lacks a permission" in str(caught.value)
    assert words in str(caught.value)
    assert len(forge.asked) == 1


def test_a_query_that_needs_another_scope_is_asked_with_another_token(forge: ScriptedForge, clock: Time) -> None:
    error = {"type": "INSUFFICIENT_SCOPES", "message": "Your token has not been granted the required scopes"}
    forge.say(Say(200, {"errors": [error]}, {"X-OAuth-Scopes": "gist"}), token="ghp_first")
    forge.say(Say(200, GOOD), token="ghp_second")
    assert client(forge, clock, "ghp_first", "ghp_second").graphql(QUERY, {"name": "o"}).requests == 2
    with pytest.raises(ForgeToken, match="required scopes; scopes of the token: gist"):
        client(forge, clock, "ghp_first").graphql(QUERY, {"name": "o"})


# Stopping, and many threads


def test_a_stopped_run_asks_nothing(forge: ScriptedForge, clock: Time) -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(Interrupted):
        client(forge, clock, stopped=stopped).get("/a")
    assert forge.asked == []


@pytest.mark.parametrize("say", [Say(403, EXCEEDED, limit(0)), Say(500, {}, {"Retry-After": "100"})])
def test_a_wait_ends_when_the_run_is_stopped(forge: ScriptedForge, say: Say) -> None:
    forge.say(say)
    stopped = threading.Event()
    ours = ForgeClient(Github(api_url=forge.url), tokens=("ghp_first",), stopped=stopped)
    threading.Timer(0.1, stopped.set).start()
    began = time.monotonic()
    with pytest.raises(Interrupted):
        ours.get("/a")
    assert time.monotonic() - began < 5


def test_threads_get_their_own_answers_and_the_sums_are_right(forge: ScriptedForge, clock: Time) -> None:
    def echo(asked: Asked) -> Any:
        if asked.verb == "POST":
            return {"data": {"asked": asked.body["variables"]["name"], "rateLimit": {"cost": 2}}}
        return {"asked": asked.path.rsplit("/", 1)[1]}

    forge.say(Say(200, echo))
    ours = client(forge, clock, "ghp_first", "ghp_second")

    def ask(number: int) -> bool:
        if number % 2:
            return ours.graphql(QUERY, {"name": str(number)}).data["asked"] == str(number)
        return bool(ours.get(f"/x/{number}").data["asked"] == str(number))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(120)))
    assert (ours.spent.requests, ours.spent.points) == (120, 180)
    assert sum(one.points for one in ours.spent.by_token) == 180


def test_threads_that_hit_one_limit_count_it_once(forge: ScriptedForge) -> None:
    together = threading.Barrier(4)

    def limited(asked: Asked) -> Any:
        together.wait(5)
        return SECONDARY

    forge.say(*[Say(403, limited)] * 4, Say(200, {}))
    stopped = threading.Event()
    waits: list[float] = []
    ours = ForgeClient(
        Github(api_url=forge.url), tokens=("ghp_first",), stopped=stopped, clock=lambda: NOW, sleep=waits.append
    )
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: ours.get("/a"), range(4)))
    assert set(waits) == {60.0}


# The same against the forge of all tests


@pytest.fixture
def whole_forge() -> Iterator[Forge]:
    world = World()
    repo = world.bare("octo/lib")
    repo.issue("It breaks", "...")
    with Forge(world) as forge:
        yield forge


def of_forge(forge: Forge, clock: Time) -> ForgeClient:
    settings = Github(api_url=forge.api_url, graphql_url=forge.graphql_url, tries=3)
    return ForgeClient(settings, tokens=("ghp_first",), clock=clock, sleep=clock.sleep)


VARIABLES = {"owner": "octo", "name": "lib", "first": 50, "after": None}
RETRIED = [
    ("primary", {"reset_s": 60}),
    ("rate-limited", {"reset_s": 60}),
    ("secondary", {}),
    ("secondary", {"retry_after": 3}),
    ("server-error", {"status": 500}),
    ("server-error", {"status": 502}),
    ("server-error", {"status": 504}),
    ("went-wrong", {}),
    ("html", {}),
    ("truncated", {}),
    ("half", {}),
    ("closed", {}),
    ("reset", {}),
]
RAISED = {
    "heavy": HeavyPage,
    "went-wrong": HeavyPage,
    "resource-limits": HeavyPage,
    "bad-credentials": ForgeToken,
    "under-scoped": ForgeToken,
    "not-found": ForgeUnreachable,
    "html": ForgeUnreachable,
}


@pytest.mark.parametrize(("fault", "options"), RETRIED, ids=str)
def test_a_fault_of_the_forge_passes(whole_forge: Forge, fault: str, options: dict[str, Any]) -> None:
    whole_forge.fail("pulls", fault, times=1, **options)
    clock = Time(datetime.now(UTC))
    ours = of_forge(whole_forge, clock)
    reply = ours.graphql(PULLS, VARIABLES)
    assert reply.data["repository"]["nameWithOwner"] == "octo/lib"
    assert (reply.requests, ours.spent.requests) == (2, len(whole_forge.log.entries))
    assert len(clock.slept) == 1


@pytest.mark.parametrize(("fault", "error"), RAISED.items(), ids=RAISED)
def test_a_fault_of_the_forge_is_raised(whole_forge: Forge, clock: Time, fault: str, error: type[Exception]) -> None:
    whole_forge.fail("pulls", fault)
    with pytest.raises(error):
        of_forge(whole_forge, clock).graphql(PULLS, VARIABLES)


def test_a_repository_that_asks_for_single_sign_on_is_a_value(whole_forge: Forge, clock: Time) -> None:
    whole_forge.fail("pulls", "sso")
    reply = of_forge(whole_forge, clock).graphql(PULLS, VARIABLES)
    assert reply.data["repository"] is None
    assert [error["type"] for error in reply.errors] == ["FORBIDDEN"]


def test_the_forge_charges_what_was_predicted_at_most(whole_forge: Forge, clock: Time) -> None:
    ours = of_forge(whole_forge, clock)
    for document, variables in (
        (PULLS, VARIABLES),
        (PULLS, {**VARIABLES, "first": 1}),
        (issues(range(1, 41)), {"owner": "octo", "name": "lib"}),
        (SEARCH_REPOSITORIES, {"query": "language:python", "first": 100}),
    ):
        charged, predicted = ours.graphql(document, variables).points, cost_of(document, variables)
        assert predicted - 1 <= charged <= predicted
    assert ours.spent.points == sum(entry.points for entry in whole_forge.log.entries)


# Costs and headers


def test_the_cost_of_the_documented_example() -> None:
    document = """query { viewer { login repositories(first: 100) { edges { node { id issues(first: 50) { edges { node {
        id labels(first: 60) { edges { node { id name } } } } } } } } } } }"""
    assert cost_of(document, {}) == 52  # 5,101 requests: documented as 51, and never less than what is charged


def test_the_cost_counts_fragments_and_variables() -> None:
    document = """query q($n: Int!) { search(first: $n) { nodes { ... on Issue { ...i } ...i } } }
        fragment i on Issue { labels(last: 10) { nodes { id } } }"""
    assert cost_of(document, {"n": 100}) == 3
    assert cost_of("{ viewer { login } }", {}) == 1


@given(
    st.dictionaries(st.sampled_from(["x-ratelimit-remaining", "x-ratelimit-reset", "retry-after", "date"]), st.text())
)
def test_headers_of_any_form_are_read_or_left_out(headers: dict[str, str]) -> None:
    rate_of(headers, "core", NOW)
    retry_after_s(headers)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["data", "errors", "message", "type", "path"]), inner)
    ),
)


@given(st.integers(200, 599), _json)
def test_any_answer_has_a_verdict(status: int, body: Any) -> None:
    answer = Answer(status=status, headers={}, text=json.dumps(body))
    assert isinstance(judge_rest(answer), Verdict)
    assert isinstance(judge_graphql(answer), Verdict)
