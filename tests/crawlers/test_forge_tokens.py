"""Tokens: where they come from, and that none gets out, whatever goes wrong."""

from __future__ import annotations

import io
import json
import logging
import pickle
import threading
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.traceback import Traceback
from scripted_forge import Asked, Say, ScriptedForge

from miner.core.errors import ForgeLimited, ForgeToken, ForgeUnreachable, SweMinerError
from miner.core.settings import Github
from miner.crawlers.github.client import ForgeClient
from miner.crawlers.github.limits import Rate
from miner.crawlers.github.tokens import Secret, redact, tokens_from
from miner.crawlers.github.tokens_pool import TokenPool

PLANTED = ("ghp_Planted0000000000000000000000000001", "github_pat_Planted_0000000000000000002")
QUERY = "query one($name: String!) { repository(owner: $name, name: $name) { id } }"


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({}, ()),
        ({"GITHUB_TOKEN": ""}, ()),
        ({"GITHUB_TOKEN": " ghp_a "}, ("ghp_a",)),
        ({"GITHUB_TOKEN": "ghp_a,ghp_b, ghs_c\nghp_d"}, ("ghp_a", "ghp_b", "ghs_c", "ghp_d")),
        ({"GITHUB_TOKEN": "ghp_a,,ghp_a", "GH_TOKEN": "github_pat_b ghp_a"}, ("ghp_a", "github_pat_b")),
        ({"OTHER_TOKEN": "ghp_a"}, ()),
    ],
)
def test_tokens_come_from_the_variables_that_the_settings_name(environ: dict[str, str], found: tuple[str, ...]) -> None:
    assert tokens_from(Github(), environ) == found


def test_the_variables_can_be_chosen() -> None:
    assert tokens_from(Github(token_env=("MINE",)), {"MINE": "ghp_a", "GITHUB_TOKEN": "ghp_b"}) == ("ghp_a",)


@pytest.mark.parametrize("text", ["ghp_\u2026secret", "ghp_sec\x00ret", "ghp_sécret"])
def test_a_token_that_no_header_takes_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ForgeToken, match="GITHUB_TOKEN: token 2 of 2") as caught:
        tokens_from(Github(), {"GITHUB_TOKEN": f"ghp_fine {text}"})
    assert text not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_no_representation_shows_a_token() -> None:
    tokens = tokens_from(Github(), {"GITHUB_TOKEN": " ".join(PLANTED)})
    shown = io.StringIO()
    Console(file=shown, width=200).print(tokens)
    for text in (repr(tokens), f"{tokens}", f"{tokens[0]!r}", shown.getvalue()):
        assert not any(token in text for token in PLANTED)
    assert "".join(tokens) == "".join(PLANTED)
    assert pickle.loads(pickle.dumps(tokens[0])) == PLANTED[0]


def test_redacted_text_names_the_number() -> None:
    assert redact(f"token {PLANTED[1]} and {PLANTED[0]}", PLANTED) == "token [token 2] and [token 1]"


def test_a_token_that_is_part_of_another_leaves_nothing_of_it() -> None:
    assert redact("ghp_abcdefgh", ("ghp_abcd", "ghp_abcdefgh")) == "[token 2]"


def test_a_word_is_no_token() -> None:
    assert redact("a token is a word", ("token", "a")) == "a token is a word"


# Every way in which it goes wrong, with a server that sends back what it was asked

HTML = {"Content-Type": "text/html"}


def _headers(asked: Asked) -> str:
    return f"<pre>{asked.headers['authorization']}</pre> {json.dumps(asked.headers)}"


def _message(asked: Asked) -> Any:
    return {"message": f"because of {asked.headers['authorization']}"}


def _late(asked: Asked) -> str:
    return "x" * (300 - len("token ") - 20) + asked.headers["authorization"]


def _errors(kind: str) -> Any:
    return lambda asked: {"errors": [{"type": kind, "message": asked.headers["authorization"]}]}


WRONG = {
    "an echo with status 200": Say(200, lambda asked: {"data": {"seen": asked.headers["authorization"]}}),
    "a page of HTML": Say(200, _headers, HTML),
    "a token where an excerpt ends": Say(200, _late, HTML),
    "half a body": Say(200, _headers, how="cut"),
    "a body that is no gzip": Say(200, _headers, how="garbled"),
    "a broken connection": Say(how="reset"),
    "no answer in time": Say(how="slow"),
    "401": Say(401, _message),
    "403": Say(403, _message, {"X-Accepted-OAuth-Scopes": PLANTED[0]}),
    "422": Say(422, _message),
    "429": Say(429, _message, {"Retry-After": "100000"}),
    "500": Say(500, _message),
    "502": Say(502, _headers, HTML),
    "a limit in a 200": Say(200, _errors("RATE_LIMITED"), {"Retry-After": "100000"}),
    "a missing scope in a 200": Say(200, _errors("INSUFFICIENT_SCOPES")),
    "a refused query": Say(200, _errors("EXCESSIVE_PAGINATION")),
    "too many nodes": Say(200, _errors("MAX_NODE_LIMIT_EXCEEDED")),
    "a redirect that holds it": Say(301, {}, {"Location": f"http://127.0.0.2:1/?access_token={PLANTED[0]}"}),
    "a redirect to a host of its name": Say(301, {}, {"Location": f"http://{PLANTED[0]}/"}),
    "redirects without end": Say(301, {}, {"Location": f"/?access_token={PLANTED[0]}"}),
    "a next page that holds it": Say(200, {"data": {}}, {"Link": f'<http://127.0.0.2:1/{PLANTED[0]}>; rel="next"'}),
    "nonsense in a limit header": Say(
        200, {}, {"X-RateLimit-Remaining": PLANTED[0], "X-RateLimit-Limit": "1", "X-RateLimit-Reset": "1"}
    ),
}


@pytest.fixture
def forge() -> Iterator[ScriptedForge]:
    with ScriptedForge() as forge:
        yield forge


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Everything that is logged, by us with all local variables, and by libraries at their most talkative."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    structlog.configure(
        processors=[structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(out),
    )
    yield out
    structlog.reset_defaults()
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.mark.parametrize("say", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("how", ["graphql", "get"])
def test_no_token_gets_out(forge: ScriptedForge, written: io.StringIO, say: Say, how: str) -> None:
    forge.say(say)
    settings = Github(api_url=forge.url, timeout_s=0.05 if say.how == "slow" else 2.0, tries=2)
    tokens = tuple(Secret(token) for token in PLANTED)
    ours = ForgeClient(settings, tokens=tokens, sleep=lambda seconds: None)
    outcome = _asked(ours, how)
    if isinstance(outcome, SweMinerError):
        shown = _everything_of(outcome, written)
    else:
        shown = f"{outcome!r} {outcome.raw!r} {outcome.model_dump()!r}"
    shown += written.getvalue() + repr(ours) + repr(ours.spent)
    assert forge.asked, "nothing was asked: the test proves nothing"
    assert all(PLANTED[0] not in asked.path.split("?")[0] for asked in forge.asked)
    assert all(asked.token in PLANTED for asked in forge.asked)
    for token in PLANTED:
        assert token not in shown
        assert token[:24] not in shown


def test_an_answer_with_a_token_in_it_is_no_fact(forge: ScriptedForge) -> None:
    forge.say(WRONG["an echo with status 200"])
    ours = ForgeClient(Github(api_url=forge.url, tries=2), tokens=PLANTED, sleep=lambda seconds: None)
    with pytest.raises(ForgeUnreachable, match="holds one of our tokens"):
        ours.get("/repos/o/r")
    assert len(forge.asked) == 2


def _asked(ours: ForgeClient, how: str) -> Any:
    """Return the reply or the error, whose traceback begins here: with no local variables that the test planted."""
    try:
        return ours.graphql(QUERY, {"name": "o"}) if how == "graphql" else ours.get("/repos/o/r")
    except SweMinerError as error:
        return error


def _everything_of(error: BaseException, written: io.StringIO) -> str:
    """Return all that any handler could write about an error, local variables of every frame included."""
    structlog.get_logger().exception("failed", exc_info=error)
    console = Console(file=(out := io.StringIO()), width=400)
    console.print(
        Traceback.from_exception(
            type(error), error, error.__traceback__, show_locals=True, locals_max_string=None, locals_max_length=None
        )
    )
    frames, trace = "", error.__traceback__
    while trace is not None:
        frames += repr({name: value for name, value in trace.tb_frame.f_locals.items() if name != "tokens"})
        trace = trace.tb_next
    assert error.__cause__ is None
    assert error.__context__ is None
    plain = "".join(traceback.format_exception(error))
    return f"{error} {error!r} {error.args!r} {vars(error)!r} {plain} {out.getvalue()} {written.getvalue()} {frames}"


def test_the_requesters_own_debugging_is_off(forge: ScriptedForge, written: io.StringIO) -> None:
    forge.say(Say(200, {"id": 1}))
    logging.getLogger("github.Requester").setLevel(logging.DEBUG)
    ForgeClient(Github(api_url=forge.url), tokens=PLANTED).get("/repos/o/r")
    assert written.getvalue(), "nothing was logged: the test proves nothing"
    assert "Authorization" not in written.getvalue()
    assert "oauth token removed" not in written.getvalue()


# The pool, whatever the forge answers

_answers = st.lists(
    st.tuples(
        st.sampled_from(["value", "spent", "primary", "secondary", "refused"]),
        st.integers(1, 5),
        st.floats(1, 2000),
        st.sampled_from(["core", "graphql"]),
    ),
    max_size=40,
)


class _Clock:
    def __init__(self) -> None:
        self.now = datetime(2025, 6, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def _pool(clock: _Clock, count: int = 1, cap: int | None = None) -> TokenPool:
    return TokenPool(count, max_wait_s=1e9, cap_points=cap, stopped=threading.Event(), clock=clock, sleep=clock.sleep)


def test_the_cap_counts_what_requests_under_way_may_cost() -> None:
    pool = _pool(_Clock(), cap=10)
    under_way = pool.take("graphql", 6)
    with pytest.raises(ForgeLimited, match="6 are spent or under way, the next request may cost 5"):
        pool.take("graphql", 5)
    assert under_way is not None
    pool.settle(under_way, requests=1, points=2, rate=None, answered=True)
    assert pool.take("graphql", 5) is not None


def test_an_answer_that_arrives_late_does_not_give_points_back() -> None:
    clock = _Clock()
    pool = _pool(clock)
    first, second = pool.take("core", 1), pool.take("core", 1)
    assert first is not None
    assert second is not None
    pool.settle(second, requests=1, points=1, rate=Rate(resource="core", remaining=0, reset_in_s=60), answered=True)
    pool.settle(first, requests=1, points=1, rate=Rate(resource="core", remaining=1, reset_in_s=60), answered=True)
    pool.take("core", 1)
    assert pool.spent.waited_s == 61


def test_the_next_window_begins_with_all_points() -> None:
    clock = _Clock()
    pool = _pool(clock)
    for remaining, reset_in_s in ((1, 60), (30, 120)):
        lease = pool.take("search", 1)
        assert lease is not None
        rate = Rate(resource="search", remaining=remaining, reset_in_s=reset_in_s)
        pool.settle(lease, requests=1, points=1, rate=rate, answered=True)
    assert pool.spent.waited_s == 0


@given(_answers, st.integers(1, 3), st.none() | st.integers(0, 60))
def test_a_resting_token_never_asks_and_the_cap_holds(
    answers: list[tuple[str, int, float, str]], count: int, cap: int | None
) -> None:
    clock = _Clock()
    pool = TokenPool(count, max_wait_s=1e9, cap_points=cap, stopped=threading.Event(), clock=clock, sleep=clock.sleep)
    free_at: dict[tuple[int, str], datetime] = {}
    everyone, dead, spent = clock.now, set(), 0
    for kind, cost, seconds, resource in answers:
        try:
            lease = pool.take(resource, cost)
        except ForgeToken:
            assert len(dead) == count
            return
        except ForgeLimited:
            assert cap is not None
            assert spent + cost > cap
            continue
        assert lease is not None
        assert lease.number not in dead
        assert clock.now >= max(everyone, free_at.get((lease.number, resource), everyone))
        until = clock.now + timedelta(seconds=seconds)
        rate = Rate(resource=resource, remaining=0 if kind in ("spent", "primary") else 9, reset_in_s=seconds)
        paid = cost if kind in ("value", "spent") else 0
        pool.settle(lease, requests=1, points=paid, rate=rate, answered=kind in ("value", "spent"))
        spent += paid
        if kind == "primary":
            pool.rest(lease, rate, None)
        elif kind == "secondary":
            pool.rest_all(lease, seconds)
            everyone = max(everyone, until)
        elif kind == "refused":
            pool.drop(lease, "Bad credentials")
            dead.add(lease.number)
        if kind in ("spent", "primary"):
            free_at[lease.number, resource] = until
    assert pool.spent.points == spent
    assert cap is None or spent <= cap
