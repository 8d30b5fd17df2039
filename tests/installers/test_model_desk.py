"""The desk asks each question once, stays within the caps, and keeps every try as a fact."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from desk_bench import MODEL, PRICE, PROMPT, Bench, asking, saying, trouble

from installers.models.billing import upper_bound
from installers.models.desk import Desk, desk_of, model_names, off_because, recorded_desk
from installers.models.interface import (
    Message,
    OverCap,
    Reply,
    Request,
    RequestRefused,
    ToolCall,
    ToolsUnsupported,
    Trouble,
    Unasked,
)
from installers.models.kept import REPLY, TRY
from installers.models.scripted import ScriptedModel
from miner.core.errors import ConfigError, Interrupted
from miner.core.ledger import fact_id
from miner.core.memo import utc_now
from miner.core.reasons import Reason
from miner.core.settings import Endpoint, Price, load_settings
from miner.core.spending import NANO, Caps, Spending, dollars

COST = 50 * 1000 + 10 * 10_000
"""Of `saying()`, in nano-dollars."""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_reply_comes_with_its_fact_and_what_it_cost(bench: Bench) -> None:
    ticks = iter([0.0, 2.5, *([9.0] * 9)])
    model = ScriptedModel([saying(calls=(ToolCall(id="1", name="run", arguments="{}"),))])
    answer = bench.ask(bench.desk(model, clock=lambda: next(ticks)))
    [fact] = bench.facts(REPLY)
    assert (answer.reply.text, answer.fact, answer.tokens, answer.money) == (
        "libpq-dev", fact_id(fact.key), 60, dollars(COST),
    )  # fmt: skip
    assert answer.seconds == 2.5
    assert bench.charged() == [COST]
    assert fact.payload == {
        "model": MODEL, "prompt": "test.j2", "version": PROMPT.version, "ordinal": 0,
        "finish": "stop", "calls": ["run"], "declined": False,
    }  # fmt: skip
    assert Request.model_validate_json(bench.blobs.get_text(fact.blobs["request"])) == asking()
    assert Reply.model_validate_json(bench.blobs.get_text(fact.blobs["reply"])) == answer.reply


def test_a_known_reply_needs_no_model_and_no_money_and_shows_what_it_cost(bench: Bench) -> None:
    first = bench.ask(bench.desk(ScriptedModel([saying()])))
    deaf = ScriptedModel([])
    again = bench.ask(bench.desk(deaf, caps=Caps(run=0)))
    assert again == first
    assert deaf.requests == []
    assert bench.charged() == [COST]


def test_ten_tries_of_one_request_are_ten(bench: Bench) -> None:
    model = ScriptedModel(lambda request: saying(f"reply {len(model.requests)}"))
    desk = bench.desk(model)
    said = [bench.ask(desk, ordinal=number).reply.text for number in range(10)]
    assert said == [f"reply {number}" for number in range(1, 11)]
    assert [bench.ask(desk, ordinal=number).reply.text for number in range(10)] == said
    assert len(bench.charged()) == 10


def test_a_reply_counts_as_used_and_a_try_does_not(bench: Bench) -> None:
    memo = bench.memo()
    bench.desk(ScriptedModel([trouble(), saying()])).ask(memo, asking(), repository="o/a", prompt=PROMPT)
    assert [fact.key.kind for fact in memo.used] == [REPLY]


# Tries


def test_every_try_is_a_fact_with_its_cost_and_what_was_said(bench: Bench) -> None:
    limited = trouble(Reason.MODEL_LIMITED, wait_s=7.0, free=True)
    answer = bench.ask(bench.desk(ScriptedModel([limited, trouble(), saying()])))
    bound = upper_bound(asking(), PRICE)
    assert [fact.outcome for fact in bench.facts(TRY)] == ["model-limited", "model-error", "ok"]
    assert [fact.key.ordinal for fact in bench.facts(TRY)] == [0, 1, 2]
    assert [fact.measures["money"] for fact in bench.facts(TRY)] == list(map(dollars, (0, bound, COST)))
    assert bench.charged() == [0, bound, COST]
    assert bench.waits[0] == 7.0
    assert answer.money == dollars(bound + COST), "of all its tries"
    logs = [fact.logs for fact in bench.facts(TRY)]
    assert "it is not well" in bench.blobs.get_text(logs[0]["error"])
    assert json.loads(bench.blobs.get_text(logs[2]["reply"]))["text"] == "libpq-dev"
    assert bench.facts(REPLY)[0].measures["tries"] == 3


def test_waits_grow_up_to_the_longest_one_where_the_endpoint_does_not_say(bench: Bench) -> None:
    model = ScriptedModel([trouble() for _ in range(9)])
    with pytest.raises(Trouble, match="not well"):
        bench.ask(bench.desk(model, tries=9, max_wait_s=3.0))
    assert len(model.requests) == 9
    assert len(bench.waits) == 8
    assert all(0 <= wait <= 3.0 for wait in bench.waits)


def test_a_fault_that_trying_again_does_not_help_is_raised_at_once(bench: Bench) -> None:
    model = ScriptedModel([trouble(Reason.MODEL_LOGIN, again=False, free=True), saying()])
    with pytest.raises(Trouble) as fault:
        bench.ask(bench.desk(model))
    assert (fault.value.reason, bench.waits, bench.charged()) == (Reason.MODEL_LOGIN, [], [0])
    assert bench.facts(REPLY) == [], "a fault of the infrastructure is no reply"
    assert bench.ask(bench.desk(model)).reply.text == "libpq-dev"


def test_a_limit_that_resets_too_late_is_not_waited_for(bench: Bench) -> None:
    model = ScriptedModel([trouble(Reason.MODEL_LIMITED, wait_s=121.0, free=True), saying()])
    with pytest.raises(Trouble) as fault:
        bench.ask(bench.desk(model, max_wait_s=120.0))
    assert (fault.value.reason, bench.waits) == (Reason.MODEL_LIMITED, [])


def test_tries_of_the_next_run_count_on(bench: Bench) -> None:
    for _ in range(2):
        with pytest.raises(Trouble):
            bench.ask(bench.desk(ScriptedModel([trouble(), trouble()]), tries=2))
    assert [fact.key.ordinal for fact in bench.facts(TRY)] == [0, 1, 2, 3]


# What a try is charged with


@pytest.mark.parametrize(
    ("line", "charged"),
    [
        (Reply(text="x"), "bound"),
        (saying(read=10**6, written=0), 10**9),
        (trouble(Reason.MODEL_UNREACHABLE, again=False), "bound"),
        (trouble(Reason.MODEL_UNREACHABLE, again=False, free=True), 0),
        (RequestRefused("an unknown parameter"), 0),
        (RequestRefused("a content filter", free=False), "bound"),
        (ValueError("a bug of an adapter"), "bound"),
    ],
    ids=["no-usage", "more-than-the-bound", "unknown-outcome", "free", "refused", "refused-and-charged", "bug"],
)
def test_what_is_not_surely_cheaper_costs_its_bound(bench: Bench, line: Reply | Exception, charged: object) -> None:
    with pytest.raises(type(line)) if isinstance(line, Exception) else nullcontext():
        bench.ask(bench.desk(ScriptedModel([line])))
    assert bench.charged() == [upper_bound(asking(), PRICE) if charged == "bound" else charged]


# Refusals


def test_a_refusal_is_remembered_so_that_a_run_can_be_repeated_without_an_endpoint(bench: Bench) -> None:
    with pytest.raises(RequestRefused, match="too long"):
        bench.ask(bench.desk(ScriptedModel([RequestRefused("too long")])))
    deaf = ScriptedModel([])
    with pytest.raises(RequestRefused, match="too long") as refused:
        bench.ask(bench.desk(deaf))
    assert deaf.requests == []
    [fact] = bench.facts(REPLY)
    assert refused.value.fact == fact_id(fact.key)
    assert (fact.outcome, fact.payload["detail"]) == ("model-reply-unusable", "too long")


def test_that_tools_are_not_taken_is_remembered_as_such(bench: Bench) -> None:
    for model in (ScriptedModel([ToolsUnsupported("no tools")]), ScriptedModel([])):
        with pytest.raises(ToolsUnsupported):
            bench.ask(bench.desk(model))


def test_a_refusal_is_asked_for_once_more_hours_later_and_stands_where_nobody_answers(bench: Bench) -> None:
    with pytest.raises(RequestRefused):
        bench.ask(bench.desk(ScriptedModel([RequestRefused("no")])))
    bench.now = lambda: utc_now() + timedelta(hours=7)
    with pytest.raises(RequestRefused):
        bench.ask(bench.desk(ScriptedModel([trouble(again=False)])))
    with pytest.raises(RequestRefused):
        bench.ask(bench.desk(ScriptedModel([]), caps=Caps(run=0)))
    with pytest.raises(RequestRefused):
        bench.ask(recorded_desk([MODEL], bench.blobs, Endpoint()))
    assert bench.ask(bench.desk(ScriptedModel([saying()]))).reply.text == "libpq-dev"


def test_a_desk_without_an_endpoint_knows_what_was_asked_before_and_nothing_else(bench: Bench) -> None:
    first = bench.ask(bench.desk(ScriptedModel([saying()])))
    desk = recorded_desk([MODEL], bench.blobs, Endpoint())
    assert bench.ask(desk) == first
    with pytest.raises(Unasked):
        bench.ask(desk, ordinal=1)
    assert bench.charged() == [COST]
    assert (desk.answers, bench.desk(ScriptedModel([])).answers) == (False, True)


def test_what_cannot_fit_into_the_context_is_not_sent(bench: Bench) -> None:
    model = ScriptedModel([saying(), saying()])
    desk = bench.desk(model, prices={MODEL: Price(input=1, output=1, context=2000)})
    with pytest.raises(RequestRefused, match=r"2000 tokens of small: lower measure\.model\.prompt_tokens"):
        bench.ask(desk, asking("x" * 8000))
    assert (model.requests, bench.charged()) == ([], [])
    assert bench.ask(desk, asking("x" * 7000)).reply.text == "libpq-dev"


def test_a_model_of_another_desk_is_refused(bench: Bench) -> None:
    with pytest.raises(RequestRefused, match="no model large here"):
        bench.ask(bench.desk(ScriptedModel([])), asking().model_copy(update={"model": "large"}))


# Caps


def test_what_could_exceed_a_cap_is_not_sent(bench: Bench) -> None:
    model, bound = ScriptedModel([saying(), saying()]), upper_bound(asking(), PRICE)
    desk = bench.desk(model, caps=Caps(run=bound + COST - 1))
    bench.ask(desk)
    with pytest.raises(OverCap, match=r"run\.max_cost"):
        bench.ask(desk, ordinal=1)
    assert len(model.requests) == 1
    assert [fact.key.kind for fact in bench.facts(REPLY)] == [REPLY], "a cap is no answer: a later run may ask"


def test_a_repository_that_has_used_up_its_share_leaves_that_of_others(bench: Bench) -> None:
    bound = upper_bound(asking(), PRICE)
    desk = bench.desk(ScriptedModel(lambda _: saying()), caps=Caps(repository=bound))
    bench.ask(desk)
    with pytest.raises(OverCap, match="max_cost_repository"):
        bench.ask(desk, ordinal=1)
    bench.ask(desk, ordinal=1, repository="o/b")


def test_each_try_reserves_for_itself(bench: Bench) -> None:
    bound = upper_bound(asking(), PRICE)
    with pytest.raises(OverCap):
        bench.ask(bench.desk(ScriptedModel([trouble(), saying()]), caps=Caps(run=bound)))
    assert bench.charged() == [bound]


def test_parallel_workers_stay_within_a_cap_that_allows_only_some(bench: Bench) -> None:
    bound, inside = upper_bound(asking(), PRICE), threading.Semaphore(0)

    def slow(request: Request) -> Reply:
        inside.release()
        time.sleep(0.002)
        return Reply(text="x") if len(request.messages[0].content) % 2 else saying()

    cap = 6 * bound
    desk = bench.desk(ScriptedModel(slow), caps=Caps(run=cap))

    def work(number: int) -> bool:
        try:
            bench.ask(desk, ordinal=number)
        except OverCap:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        answered = sum(pool.map(work, range(60)))
    charged = [money for money in bench.charged() if money is not None]
    assert len(charged) == len(bench.charged()) == answered
    assert sum(charged) <= cap
    assert sum(charged) + bound > cap, "it stopped although there was money left"


def test_a_worker_waits_for_money_that_others_have_only_reserved(bench: Bench) -> None:
    bound, began, go_on = upper_bound(asking(), PRICE), threading.Event(), threading.Event()

    def first(_: Request) -> Reply:
        began.set()
        assert go_on.wait(10)
        return saying(read=1, written=0)

    caps = Caps(run=bound + 5000)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(bench.ask, bench.desk(ScriptedModel(first), caps=caps))
        assert began.wait(10)
        two = pool.submit(bench.ask, bench.desk(ScriptedModel([saying()]), caps=caps), ordinal=1)
        time.sleep(0.05)
        assert not two.done()
        go_on.set()
        assert (one.result(10).reply.text, two.result(10).reply.text) == ("libpq-dev", "libpq-dev")


# The end of a run


def test_a_stop_ends_waits_and_begins_nothing(bench: Bench) -> None:
    model = ScriptedModel([trouble(wait_s=60.0), saying()])
    desk = Desk(
        {MODEL: model}, {MODEL: PRICE}, None, bench.blobs, load_settings(environ={}).endpoint, stopped=bench.stopped
    )
    threading.Timer(0.05, bench.stopped.set).start()
    began = time.monotonic()
    with pytest.raises(Interrupted):
        bench.ask(desk)
    assert time.monotonic() - began < 5
    with pytest.raises(Interrupted):
        bench.ask(desk, ordinal=1)
    assert len(model.requests) == 1


def test_a_stop_ends_waiting_for_money(bench: Bench) -> None:
    held = bench.spending.reserve("r", "o/b", MODEL, 10**9, Caps())
    threading.Timer(0.05, bench.stopped.set).start()
    with pytest.raises(Interrupted):
        bench.ask(bench.desk(ScriptedModel([saying()]), caps=Caps(run=10**9)))
    bench.spending.settle(held, 0)


# Whether models are asked at all

ON = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_MODEL": "gpt-5-nano, gpt-5.4-nano,gpt-5-nano,"}


@pytest.mark.parametrize(
    ("overrides", "environ", "because"),
    [
        ([], {}, "OPENAI_BASE_URL names no endpoint"),
        ([], {"OPENAI_BASE_URL": " "}, "OPENAI_BASE_URL names no endpoint"),
        (["endpoint.url_env=MY_URL"], ON, "MY_URL names no endpoint"),
        ([], {"OPENAI_BASE_URL": "x"}, "neither measure.model.order nor OPENAI_MODEL names a model"),
        ([], ON, "run.max_cost is not set: what they may cost has to be said"),
        (["run.max_cost=0"], ON, "run.max_cost is 0"),
        (["run.max_cost=1", "run.max_cost_month=0"], ON, "run.max_cost_month is 0"),
        (["run.max_cost=1"], ON, ""),
        (["run.max_cost=1", "endpoint.replay=x.jsonl"], {"OPENAI_MODEL": "m"}, ""),
    ],
)
def test_why_models_are_off_is_one_sentence(overrides: list[str], environ: dict[str, str], because: str) -> None:
    assert off_because(load_settings(overrides=overrides, environ={}), environ) == because


def test_a_desk_of_a_run_has_the_models_in_their_order(bench: Bench) -> None:
    off, on = load_settings(environ={}), load_settings(overrides=["run.max_cost=1"], environ={})
    assert desk_of(off, bench.spending, "r", blobs=bench.blobs, environ=ON) is None
    desk = desk_of(on, bench.spending, "r", blobs=bench.blobs, environ=ON)
    assert desk is not None
    assert desk.models == ("gpt-5-nano", "gpt-5.4-nano")
    named = load_settings(overrides=['measure.model.order=["gpt-5.4-nano"]'], environ={})
    assert model_names(named, ON) == ("gpt-5.4-nano",)


def test_a_model_without_a_price_ends_a_run_before_it_begins(bench: Bench) -> None:
    on = load_settings(overrides=["run.max_cost=1"], environ={})
    with pytest.raises(ConfigError, match=r"no price for the model nobody/knows-1\.5") as error:
        desk_of(on, bench.spending, "r", blobs=bench.blobs, environ={**ON, "OPENAI_MODEL": "nobody/knows-1.5"})
    assert '[prices."nobody/knows-1.5"]' in error.value.next_step


def test_a_price_of_a_name_with_dots_can_be_set_on_the_command_line() -> None:
    overrides = ['prices."nobody/knows-1.5".input=0.25', 'prices."nobody/knows-1.5".output=2']
    prices = load_settings(overrides=overrides, environ={}).prices
    assert prices["nobody/knows-1.5"] == Price(input=0.25, output=2)


def test_shipped_prices_say_since_when_and_by_whom() -> None:
    for name, price in load_settings(environ={}).prices.items():
        if price.input or price.output:
            month, _, page = price.as_of.partition(", ")
            assert month[:2] == "20", name
            assert "/" in page, name
            assert price.context > 8000, name
            assert price.input <= price.output, name


def test_the_money_of_a_run_is_read_from_the_ledger(bench: Bench) -> None:
    bench.ask(bench.desk(ScriptedModel([saying()])))
    assert Spending(bench.ledger).spent("r") == COST / NANO
    assert Spending(bench.ledger).spent_by_model("r") == {MODEL: COST / NANO}


def test_messages_of_all_roles_are_kept_whole(bench: Bench) -> None:
    call = ToolCall(id="c1", name="run", arguments='{"command": "ls"}')
    messages = (
        Message(role="system", content="s"), Message(role="assistant", content="", calls=(call,)),
        Message(role="tool", content="out", answers="c1"),
    )  # fmt: skip
    request = asking().model_copy(update={"messages": messages})
    bench.ask(bench.desk(ScriptedModel([saying()])), request)
    [fact] = bench.facts(REPLY)
    assert Request.model_validate_json(bench.blobs.get_text(fact.blobs["request"])) == request
