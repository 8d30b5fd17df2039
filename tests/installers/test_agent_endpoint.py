"""A session by way of a real endpoint on loopback: whatever it answers, nothing is run that was not clearly called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agent_bench import BEGIN, FRAME, LIMITS, FakeHands, in_text, judge_all
from endpoint import Behaviour, Endpoint, faults, hostile, malformed, replies

from installers.agent.endings import Ending, GaveUp, LimitReached, Submitted, Unusable
from installers.agent.loop import Session
from installers.agent.protocol import Native, Speech
from installers.models.desk import Answer
from installers.models.interface import Request, ToolsUnsupported, Trouble
from installers.models.openai_model import OpenAIModel
from miner.core.settings import Endpoint as Settings

RUN = {"command": "ls"}
GIVE_UP = replies.tool_calls(("give_up", {"reason": "enough"}))
UNCLEAR: dict[str, Behaviour] = {
    "two calls": hostile.two_calls(("run", RUN), ("run", {"command": "rm -r /testbed"})),
    "two calls of one id": malformed.same_ids(),
    "an unknown tool": hostile.unknown_tool(),
    "wrong arguments": hostile.wrong_arguments("run"),
    "arguments that are no JSON": hostile.arguments_not_json("run"),
    "arguments without their end": hostile.arguments_unclosed("run"),
    "arguments encoded twice": hostile.arguments_twice_encoded("run", RUN),
    "no arguments": hostile.arguments_empty("run"),
    "quoted commands": hostile.quotes_commands(),
    "talk": hostile.talks(),
    "orders": hostile.instructs(),
    "a refusal": replies.refusal(),
    "a reply that is cut off": replies.length(),
    "thoughts only": replies.length_of_thought(),
    "a filter": replies.content_filter(),
    "nothing": replies.content_null(),
    "a recipe as text": replies.structured({"python": "3.11"}),
}


def held(endpoint: Endpoint, hands: FakeHands, speech: Speech | None = None) -> tuple[Session, Callable[[], Ending]]:
    model = OpenAIModel(Settings(timeout_s=5.0), {"OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "a-key"})

    def ask(request: Request) -> Answer:
        return Answer(model.complete(request), "fact", 10, 0.001, 0.1)

    def save(_: Any) -> None:
        return None

    session = Session(
        ask, hands, judge_all, save, speech=speech or Native(("3.11",)), frame=FRAME, limits=LIMITS, clock=lambda: 0.0
    )
    return session, lambda: session.run(BEGIN)


@pytest.mark.parametrize("behaviour", UNCLEAR.values(), ids=UNCLEAR)
def test_an_unclear_reply_runs_nothing_and_the_conversation_stays_valid(behaviour):
    hands = FakeHands()
    with Endpoint([behaviour, GIVE_UP]) as endpoint:
        session, run = held(endpoint, hands)
        assert isinstance(run(), GaveUp)
    assert hands.done == []
    assert endpoint.broken == []
    assert session.spent.steps == 2


def test_a_call_without_an_id_is_answered_or_a_fault_of_the_endpoint():
    with Endpoint([malformed.no_id(), GIVE_UP]) as endpoint:
        _, run = held(endpoint, FakeHands())
        try:
            assert isinstance(run(), GaveUp)
        except Trouble:
            assert len(endpoint.asked) == 1
    assert endpoint.broken == []


def test_a_call_with_words_about_it_is_a_call():
    hands = FakeHands()
    recipe = replies.tool_calls(("write_recipe", {"recipe": {"python": "3.11"}}))
    with Endpoint([hostile.call_and_text("run", RUN), recipe]) as endpoint:
        _, run = held(endpoint, hands)
        assert isinstance(run(), Submitted)
    assert hands.done == [("run", "ls")]
    assert endpoint.broken == []


def test_a_model_that_goes_round_in_circles_is_stopped():
    hands = FakeHands()
    with Endpoint([hostile.loops("run", RUN)] * 10) as endpoint:
        _, run = held(endpoint, hands)
        assert isinstance(run(), LimitReached)
    assert len(hands.done) == 3
    assert len(endpoint.asked) == 4


def test_a_model_that_only_talks_is_stopped():
    with Endpoint([hostile.talks()] * 10) as endpoint:
        _, run = held(endpoint, FakeHands())
        assert isinstance(run(), Unusable)
    assert endpoint.broken == []


def test_an_endpoint_without_tools_is_told_apart():
    with Endpoint([faults.tools_unsupported()] * 3) as endpoint:
        _, run = held(endpoint, FakeHands())
        with pytest.raises(ToolsUnsupported):
            run()


@pytest.mark.parametrize("behaviour", [hostile.quotes_commands(), hostile.talks(), hostile.two_values()])
def test_in_text_nothing_without_the_mark_is_a_call(behaviour):
    hands = FakeHands()
    with Endpoint([behaviour] * 10) as endpoint:
        _, run = held(endpoint, hands, in_text())
        assert isinstance(run(), Unusable)
    assert hands.done == []
    assert endpoint.broken == []
