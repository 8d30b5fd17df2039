"""Everything that an endpoint may do wrong, against the real adapter and desk: its end, its tries, its cost.

One row for each misbehaviour. An endpoint's fault is a `Trouble`, a request that is not taken is `RequestRefused`; what
a *model* says, however wrong, is a reply, and for the rungs to judge (`test_model_hostile_replies.py`).
"""

from __future__ import annotations

import dataclasses
import logging
import socket
import time
import traceback
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from desk_bench import PRICE, Bench, asking
from endpoint import Behaviour, Endpoint, faults, hostile, last_again, malformed, repeated, replies

from installers.agent.protocol import Native
from installers.models.billing import cost, upper_bound
from installers.models.desk import Answer
from installers.models.interface import Form, Request, RequestRefused, Tool, ToolsUnsupported, Trouble, Usage
from installers.models.openai_model import OpenAIModel
from miner.core.reasons import Reason
from miner.core.settings import Endpoint as EndpointSettings
from miner.core.spending import NANO, Caps, OverCap

pytestmark = pytest.mark.loopback
KEY = "sk-planted-0123456789abcdef"
TRIES = 3
MAX_WAIT_S = 5.0
LIMITED, ERROR = Reason.MODEL_LIMITED, Reason.MODEL_ERROR
LOGIN, UNREACHABLE = Reason.MODEL_LOGIN, Reason.MODEL_UNREACHABLE
FORM = Form(
    name="answer",
    definition={
        "type": "object",
        "properties": {"python": {"type": "string"}, "names": {"type": "array", "items": {"type": "string"}}},
        "required": ["python", "names"],
        "additionalProperties": False,
    },
)
RUN = Tool(
    name="run",
    description="run a command",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)
PLAIN = asking(temperature=0.7)
FORMED = asking("as JSON", form=FORM, temperature=0.7)
TOOLED = asking("with a tool", tools=(RUN,), temperature=0.7)

Ends = Literal["reply", "trouble", "refused", "no tools"]
Charge = Literal["nothing", "bound", "usage"]


@dataclasses.dataclass(frozen=True)
class Row:
    """What is to be expected.

    Attributes:
        script: one behaviour for ever, or several of which the last one is repeated.
        charged: for each try.
        posts: requests that the endpoint sees, where these are more than the tries.
        waits: seconds between tries, at least and at most.
    """

    name: str
    script: Behaviour | Sequence[Behaviour]
    ends: Ends
    reason: Reason | None = None
    charged: tuple[Charge, ...] = ("usage",)
    posts: int | None = None
    waits: tuple[float, float] = (0.0, MAX_WAIT_S)
    text: str | None = None
    request: Request = PLAIN
    timeout_s: float = 20.0


def trouble(name: str, script: Any, reason: Reason, *charged: Charge, **more: Any) -> Row:
    return Row(name, script, "trouble", reason, charged, **more)


def reply(name: str, script: Any, *charged: Charge, **more: Any) -> Row:
    return Row(name, script, "reply", None, charged or ("usage",), **more)


THREE_FREE: tuple[Charge, ...] = ("nothing",) * TRIES
THREE_AT_BOUND: tuple[Charge, ...] = ("bound",) * TRIES

ROWS = [
    # limits: refused before a model saw it, so nothing is charged
    trouble("429 with seconds", faults.rate_limited(2), LIMITED, *THREE_FREE, waits=(2, 2)),
    trouble("429 with a date", faults.rate_limited(3, date=True), LIMITED, *THREE_FREE, waits=(1, 3)),
    trouble("429 with a date that is past", faults.rate_limited(-9, date=True), LIMITED, *THREE_FREE, waits=(0, 0)),
    trouble("429 without a time", faults.rate_limited(), LIMITED, *THREE_FREE),
    trouble("429 for longer than is waited", faults.rate_limited(600), LIMITED, "nothing"),
    trouble("429 that says a word", faults.odd_retry_after("soon"), LIMITED, *THREE_FREE),
    trouble("429 that says less than nothing", faults.odd_retry_after("-5"), LIMITED, *THREE_FREE),
    trouble("429 that says nan", faults.odd_retry_after("nan"), LIMITED, *THREE_FREE),
    trouble("429 that says for ever", faults.odd_retry_after("inf"), LIMITED, *THREE_FREE),
    trouble("429 that says a century", faults.odd_retry_after("3155760000"), LIMITED, "nothing"),
    trouble("429 with a date of no calendar", faults.odd_retry_after("Thu, 99 Foo 9999"), LIMITED, *THREE_FREE),
    reply("429 and then a reply", [faults.rate_limited(1), replies.text("hello")], "nothing", "usage", waits=(1, 1)),
    trouble("429 insufficient_quota", faults.insufficient_quota(), LIMITED, "nothing"),
    trouble("402", faults.payment_required(), LIMITED, "nothing"),
    # a gateway, or a server without time, has done no work
    trouble("502 with a page", faults.bad_gateway(), ERROR, *THREE_FREE),
    trouble("503", faults.overloaded(), ERROR, *THREE_FREE),
    trouble("529", faults.fails(529, "Overloaded", "overloaded_error"), ERROR, *THREE_FREE),
    # errors of the server: what they have cost is not known
    trouble("500", faults.server_error(), ERROR, *THREE_AT_BOUND),
    reply("500 twice", repeated(faults.server_error(), 2, replies.text("hello")), "bound", "bound", "usage"),
    trouble("an error with status 200", faults.error_in_200(), ERROR, *THREE_AT_BOUND),
    trouble("an error that is a list", faults.error_body([{"a": 1}, "x"]), ERROR, *THREE_AT_BOUND),
    trouble("an error that is a number", faults.error_body(7), ERROR, *THREE_AT_BOUND),
    trouble("an error that is null", faults.error_body(None), ERROR, *THREE_AT_BOUND),
    trouble("an error of text", faults.error_body({"error": "out of memory"}), ERROR, *THREE_AT_BOUND),
    # the key, the model
    trouble("401", faults.login_refused(), LOGIN, "nothing"),
    trouble("403", faults.forbidden(), ERROR, "nothing"),
    trouble("403 of a firewall", faults.firewalled(), ERROR, "nothing"),
    Row("403 of a moderation", faults.moderated(), "refused", charged=("bound",)),
    trouble("404 model_not_found", faults.model_not_found(), LOGIN, "nothing"),
    trouble("401 that echoes the key", faults.key_echoed(), LOGIN, "nothing"),
    trouble("500 that echoes the key", faults.key_echoed(500), ERROR, *THREE_AT_BOUND),
    Row("400 that echoes the key", faults.key_echoed(400), "refused", charged=("bound",)),
    reply("a reply that echoes the key", faults.key_in_reply(), text="Received Authorization: Bearer [key]"),
    # requests that are not taken
    Row("400 context_length_exceeded", faults.context_exceeded(), "refused", charged=("bound",)),
    Row("400 for tools", faults.tools_unsupported(), "no tools", charged=("nothing",), request=TOOLED),
    reply("400 for max_tokens", faults.max_tokens_unsupported(), posts=2),
    reply("400 for max_completion_tokens", faults.max_completion_tokens_unsupported()),
    reply("400 for a temperature", faults.temperature_unsupported(), posts=2),
    reply("400 for a form", faults.form_unsupported(), posts=2, request=FORMED),
    # the network
    trouble("no answer", faults.never_answers(), UNREACHABLE, *THREE_AT_BOUND, timeout_s=0.4),
    trouble("blank lines for ever", faults.drips(), UNREACHABLE, *THREE_AT_BOUND, timeout_s=0.4),
    trouble("half an answer, then nothing", faults.stalls(), UNREACHABLE, *THREE_AT_BOUND, timeout_s=0.4),
    trouble("connection closed", faults.connection_closed(), UNREACHABLE, *THREE_AT_BOUND),
    trouble("connection reset", faults.connection_reset(), UNREACHABLE, *THREE_AT_BOUND),
    trouble("shorter than its length", faults.cut(), ERROR, *THREE_AT_BOUND),
    trouble("chunks without an end", faults.cut_chunks(), ERROR, *THREE_AT_BOUND),
    reply(
        "reset, cut, then a reply",
        [faults.connection_reset(), faults.cut(), replies.text("a")],
        "bound",
        "bound",
        "usage",
    ),
    # answers that are no completion
    trouble("a page with 200", malformed.html(), ERROR, *THREE_AT_BOUND),
    trouble("half of the JSON", malformed.not_json(), ERROR, *THREE_AT_BOUND),
    trouble("no body", malformed.no_body(), ERROR, *THREE_AT_BOUND),
    trouble("a list", malformed.body([]), ERROR, *THREE_AT_BOUND),
    trouble("a text", malformed.body("hello"), ERROR, *THREE_AT_BOUND),
    trouble("null", malformed.body(None), ERROR, *THREE_AT_BOUND),
    trouble("an empty object", malformed.body({}), ERROR, *THREE_AT_BOUND),
    trouble("no choices", malformed.no_choices(), ERROR, *THREE_AT_BOUND),
    trouble("choices null", malformed.choices_null(), ERROR, *THREE_AT_BOUND),
    trouble("choices of text", malformed.changed(choices="hello"), ERROR, *THREE_AT_BOUND),
    trouble("a choice without a message", malformed.message_missing(), ERROR, *THREE_AT_BOUND),
    trouble("a stream of events", malformed.event_stream(), ERROR, *THREE_AT_BOUND),
    trouble("not what its encoding says", malformed.not_gzip(), ERROR, *THREE_AT_BOUND),
    trouble("not UTF-8", malformed.not_utf8(), ERROR, *THREE_AT_BOUND),
    trouble("JSON nested too deep", malformed.deep_body(), ERROR, *THREE_AT_BOUND),
    trouble("calls of text", malformed.changed(choices=[{"message": {"tool_calls": "run"}}]), ERROR, *THREE_AT_BOUND),
    trouble("a call that is null", malformed.odd_calls(None), ERROR, *THREE_AT_BOUND),
    trouble("a call of no function", malformed.odd_calls({"id": "a", "function": None}), ERROR, *THREE_AT_BOUND),
    # completions that say little, or say it oddly
    reply("content null", replies.content_null(), text=""),
    reply("content in parts", malformed.content_parts(), text="hello"),
    reply("a refusal", replies.refusal(), text=""),
    reply("cut at max_tokens", replies.length(), request=FORMED),
    reply("all tokens for thought", replies.length_of_thought(), text=""),
    reply("filtered", replies.content_filter(), text=""),
    reply("an unknown end", malformed.finish_unknown(), text="hello"),
    reply("another model", malformed.other_model(), text="hello"),
    reply("odd characters", hostile.odd_characters()),
    reply("two calls of one id", malformed.same_ids(), request=TOOLED),
    reply("a call without an id", malformed.no_id(), request=TOOLED),
    reply("a call with a name of a number", malformed.odd_calls({"function": {"name": 7, "arguments": {"a": 1}}})),
    reply("an unknown tool", hostile.unknown_tool(), request=TOOLED),
    reply("arguments that are no JSON", hostile.arguments_not_json("run"), request=TOOLED),
    reply("arguments encoded twice", hostile.arguments_twice_encoded("run"), request=TOOLED),
    reply("content nested too deep", hostile.deep(), request=FORMED),
    # usage: what is not said, or cannot be, costs the bound
    reply("usage missing", malformed.usage_missing(), "bound"),
    reply("usage null", malformed.usage_shape(None), "bound"),
    reply("usage of text", malformed.usage_shape("many"), "bound"),
    reply("usage of nulls", malformed.usage(None, None), "bound"),
    reply("usage of zeros", malformed.usage(0, 0), "bound"),
    reply("usage below zero", malformed.usage(-5, -1000), "bound"),
    reply("usage as text", malformed.usage("12", "3"), "bound"),
    reply("usage of fractions", malformed.usage(1.5, 2.5), "bound"),
    reply("usage of truth", malformed.usage(True, True), "bound"),
    reply("usage not a number", malformed.usage(float("nan"), 3), "bound"),
    reply("usage without an end", malformed.usage(float("inf"), 3), "bound"),
    reply("usage beyond anything", malformed.usage(10**30, 10**30), "bound"),
    reply("usage half said", malformed.changed(usage={"prompt_tokens": 12}), "bound"),
]


@pytest.fixture(autouse=True)
def _all_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Every logger writes all that it can, those of the SDK too."""
    with caplog.at_level(logging.DEBUG):
        yield


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_misbehaviour(row: Row, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    bench = Bench(tmp_path)
    script = last_again(list(row.script)) if isinstance(row.script, Sequence) else row.script
    with Endpoint(script) as endpoint:
        started = time.monotonic()
        ended = asked(bench, endpoint.url, row.request, timeout_s=row.timeout_s)
        assert time.monotonic() - started < 10
    tries = bench.facts("model.try")
    assert (ends_of(ended), reason_of(ended)) == (row.ends, row.reason), ended
    assert len(tries) == len(row.charged)
    assert len(endpoint.asked) == (row.posts or len(row.charged))
    assert endpoint.broken == [], "the adapter sent what the documentation does not allow"
    assert bench.charged() == [charge(bench, one, row) for one in zip(row.charged, tries, strict=True)]
    assert all(row.waits[0] <= wait <= row.waits[1] for wait in bench.waits), bench.waits
    assert len(bench.waits) == len(row.charged) - 1
    if isinstance(ended, Answer):
        assert row.text is None or ended.reply.text == row.text
    assert_no_key(bench, ended, caplog.text, *capfd.readouterr())


def asked(bench: Bench, url: str, request: Request = PLAIN, **named: Any) -> Answer | Exception:
    """Ask the endpoint by the real adapter and desk; return the answer, or what was raised."""
    timeout_s = named.pop("timeout_s", 20.0)
    settings = EndpointSettings(timeout_s=timeout_s)
    model = OpenAIModel(settings, {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY})
    desk = bench.desk(model, tries=TRIES, max_wait_s=MAX_WAIT_S, timeout_s=timeout_s, **named)
    try:
        return bench.ask(desk, request)
    except (Trouble, RequestRefused, OverCap) as error:
        return error


def ends_of(ended: Answer | Exception) -> str:
    if isinstance(ended, ToolsUnsupported):
        return "no tools"
    names = {Answer: "reply", Trouble: "trouble", RequestRefused: "refused"}
    return names.get(type(ended), type(ended).__name__)


def reason_of(ended: Answer | Exception) -> Reason | None:
    return ended.reason if isinstance(ended, Trouble) else None


def charge(bench: Bench, one: tuple[Charge, Any], row: Row) -> int:
    """Return what a try has to cost, in nano-dollars."""
    kind, tried = one
    bound = upper_bound(row.request, PRICE)
    if kind == "usage":
        written = {name: int(tried.measures[name]) for name in ("input_tokens", "output_tokens")}
        spent = cost(Usage(**written), PRICE)
        assert 0 < spent <= bound
        return spent
    return bound if kind == "bound" else 0


def assert_no_key(bench: Bench, ended: Answer | Exception, *texts: str) -> None:
    """The key stands nowhere: not in what was raised, printed, logged, nor in facts and blobs."""
    if isinstance(ended, Exception):
        texts = (*texts, "".join(traceback.format_exception(ended)), repr(vars(ended)))
    else:
        texts = (*texts, ended.reply.model_dump_json())
    kept = [fact.model_dump_json() for kind in ("model.try", "model.reply") for fact in bench.facts(kind)]
    blobs = [
        bench.blobs.get_text(name)
        for kind in ("model.try", "model.reply")
        for fact in bench.facts(kind)
        for name in (*fact.blobs.values(), *fact.logs.values())
    ]
    assert not [text for text in (*texts, *kept, *blobs) if KEY in text]


def test_key_goes_where_it_belongs_and_to_no_other_host(tmp_path: Path) -> None:
    with Endpoint(replies.text("never")) as other:
        for status in (301, 302, 303, 307, 308):
            to = f"{other.url}/chat/completions".replace("127.0.0.1", "localhost")
            with Endpoint(faults.redirected(to, status)) as endpoint:
                ended = asked(Bench(tmp_path / str(status)), endpoint.url)
            assert reason_of(ended) is ERROR
            assert [one.key for one in endpoint.asked] == [KEY]
        assert other.asked == []


def test_nobody_there_costs_nothing(tmp_path: Path) -> None:
    with socket.socket() as held:  # bound, and not listening
        held.bind(("127.0.0.1", 0))
        bench = Bench(tmp_path)
        ended = asked(bench, f"http://127.0.0.1:{held.getsockname()[1]}/v1")
    assert reason_of(ended) is UNREACHABLE
    assert bench.charged() == [0, 0, 0]


@pytest.mark.parametrize(
    "behaviour",
    [malformed.huge(), malformed.huge_chunks(), malformed.huge_error(), malformed.bomb()],
    ids=["with a length", "in chunks", "as an error", "packed"],
)
def test_answer_of_a_hundred_megabytes_is_not_held(behaviour: Behaviour, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with Endpoint(behaviour) as endpoint:
        tracemalloc.start()
        try:
            ended = asked(bench, endpoint.url)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert reason_of(ended) is ERROR
    assert "more than" in str(ended)
    assert peak < 40_000_000
    assert bench.charged() == bench.bounds()


def test_what_an_endpoint_does_not_take_is_asked_for_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with Endpoint(faults.max_tokens_unsupported()) as endpoint:
        model = OpenAIModel(EndpointSettings(), {"OPENAI_BASE_URL": endpoint.url})
        desk = bench.desk(model)
        for number in range(3):
            bench.ask(desk, ordinal=number)
    assert len(endpoint.asked) == 4
    assert {one.key for one in endpoint.asked} == {""}


def test_more_than_can_be_is_charged_as_it_is_said_and_ends_the_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with Endpoint(malformed.usage(50_000_000, 10)) as endpoint:
        caps = Caps(run=NANO)
        assert isinstance(asked(bench, endpoint.url, caps=caps), Answer)
        ended = asked(bench, endpoint.url, asking("another"), caps=caps)
    assert bench.charged() == [50 * NANO + 100_000]
    assert isinstance(ended, OverCap)
    assert len(endpoint.asked) == 1


def test_tries_stop_at_the_cap(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bound = upper_bound(PLAIN, PRICE)
    with Endpoint(faults.server_error()) as endpoint:
        ended = asked(bench, endpoint.url, caps=Caps(run=2 * bound))
    assert isinstance(ended, OverCap)
    assert len(endpoint.asked) == 2
    assert bench.charged() == [bound, bound]


@pytest.mark.parametrize(
    "behaviour",
    [
        malformed.same_ids(),
        malformed.no_id(),
        malformed.odd_calls({"function": {"name": None, "arguments": None}}),
        hostile.unknown_tool("install everything!"),
        hostile.unknown_tool(""),
        hostile.unknown_tool("x" * 100),
        hostile.arguments_not_json("run"),
        hostile.arguments_empty("run"),
        hostile.odd_characters(),
        replies.content_null(),
        replies.refusal(),
    ],
    ids=[
        "same ids",
        "no id",
        "nulls",
        "odd name",
        "no name",
        "long name",
        "no JSON",
        "empty",
        "odd",
        "null",
        "refusal",
    ],
)
def test_what_a_model_did_wrong_does_not_make_the_next_request_wrong(behaviour: Behaviour, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with Endpoint([behaviour, replies.text("fine")]) as endpoint:
        first = asked(bench, endpoint.url, TOOLED)
        assert isinstance(first, Answer)
        ended = asked(bench, endpoint.url, answered(first))
        assert endpoint.broken == []
        assert isinstance(ended, Answer)


def answered(first: Answer) -> Request:
    """Return the next request of a session: what the model said, and an answer to each of its calls."""
    told = Native(("3.11",)).answered(first.reply, "no such thing")
    return TOOLED.model_copy(update={"messages": (*TOOLED.messages, *told)})
