"""A session: what ends it, what only sends the model back, and that its transcript is saved whatever happens."""

from __future__ import annotations

import pytest
from agent_bench import LIMITS, MARK, FakeHands, FakeTime, Held, block, called, gave_up, in_text, ran, said

from installers.agent.endings import Capped, GaveUp, LimitReached, Submitted, Unusable
from installers.agent.loop import SAME_IN_A_ROW, UNCLEAR_IN_A_ROW, Done
from installers.models.interface import OverCap, Reply, RequestRefused, ToolCall, ToolsUnsupported, Trouble
from miner.core.errors import DockerUnavailable
from miner.core.reasons import Reason

RECIPE = {"recipe": {"python": "3.11"}}


def limited(**changes):
    return LIMITS.model_copy(update=changes)


def test_a_session_runs_reads_and_ends_with_a_recipe():
    held = Held([ran("ls"), called("read", {"path": "setup.py"}), called("write_recipe", RECIPE)])
    ending = held.run()
    assert isinstance(ending, Submitted)
    assert ending.written == {"python": "3.11"}
    assert held.hands.done == [("run", "ls"), ("read", "setup.py")]
    assert held.told(1).startswith("ran ls\n[step 1 of 10]")


def test_every_message_reply_call_result_and_cost_is_in_the_transcript():
    held = Held([ran("ls"), called("write_recipe", RECIPE)])
    held.run()
    names = [event["event"] for event in held.events]
    assert names == ["message", "message", "reply", "call", "result", "message", "reply", "call", "end"]
    reply, result = held.events[2], held.events[4]
    assert (reply["fact"], reply["tokens"], reply["money"]) == ("fact-1", 10, 0.001)
    assert (result["exit_code"], result["output"]) == (0, "ran ls")
    assert held.events[-1] == {"event": "end", "outcome": "ok", "detail": "the model wrote a recipe"}


def test_the_answer_to_a_native_call_names_the_call():
    held = Held([ran("ls", number=7), gave_up()])
    held.run()
    assistant, tool = held.model.requests[1].messages[-2:]
    assert (assistant.role, assistant.calls[0].id) == ("assistant", "call-7")
    assert (tool.role, tool.answers) == ("tool", "call-7")


def test_a_model_gives_up_with_its_reason():
    ending = Held([gave_up("it needs an Oracle database")]).run()
    assert isinstance(ending, GaveUp)
    assert ending.reason is Reason.MODEL_GAVE_UP
    assert "Oracle" in str(ending)


def test_a_recipe_that_cannot_be_tried_goes_back_with_the_reason():
    held = Held([called("write_recipe", {"recipe": {"python": "bad"}}), called("write_recipe", RECIPE)])
    assert isinstance(held.run(), Submitted)
    assert "it is bad" in held.told(1)


TWO = Reply(
    calls=(
        ToolCall(id="a", name="run", arguments='{"command": "one"}'),
        ToolCall(id="b", name="run", arguments='{"command": "two"}'),
    ),
    finish="tool_calls",
)
DEEP = '{"a": ' + "[" * 60 + "]" * 60 + "}"
AMBIGUOUS = {
    "two calls at once": (TWO, "2 tool calls"),
    "a call and a block": (ran("ls", text=f"```call {MARK} run\nrm -r /\n```"), "second one"),
    "no call": (said("I would run `rm -r src` now."), "no tool call"),
    "a quoted command": (said("```bash\nrm -r src\n```"), "no tool call"),
    "nothing at all": (Reply(), "no tool call"),
    "an unknown tool": (called("execute", {"command": "ls"}), "no tool 'execute'"),
    "a number for a command": (called("run", {"command": 5}), "has to be text, not int"),
    "a list for a command": (called("run", {"command": ["ls", "-l"]}), "has to be text, not list"),
    "null for a command": (called("run", {"command": None}), "has to be text, not NoneType"),
    "a recipe as text": (called("write_recipe", {"recipe": "{}"}), "has to be an object, not str"),
    "an argument too many": (called("run", {"command": "ls", "cwd": "/"}), "'cwd'"),
    "the wrong argument": (called("run", {"cmd": "ls"}), "takes one argument, 'command'"),
    "no argument": (called("run", {}), "it was given none"),
    "arguments that are no object": (called("run", ["ls"]), "have to be a JSON object"),
    "arguments that are no JSON": (called("run", '{"command": "ls"'), "no valid JSON"),
    "a name that stands twice": (called("run", '{"command": "ls", "command": "rm -r /"}'), "stands twice"),
    "an empty command": (called("run", {"command": "  \n"}), "is empty"),
    "a command with a zero": (called("run", {"command": "ls\0"}), "characters that no text has"),
    "a command with half a character": (called("run", '{"command": "\\ud800"}'), "characters that no text has"),
    "an endless command": (called("run", {"command": "x" * 20_001}), "longer than 20000"),
    "two paths": (called("read", {"path": "/etc/passwd\n/etc/hosts"}), "takes one path"),
    "a reply that was cut off": (ran("rm -r /tmp/x", finish="length"), "cut off"),
    "a reply that ended in a way that is not known": (ran("rm -r /tmp/x", finish="abort"), "ended with 'abort'"),
    "a recipe that is nested very deep": (called("write_recipe", f'{{"recipe": {DEEP}}}'), "nested more than 50"),
    "a reply that was filtered": (ran("ls", finish="content_filter"), "filter"),
    "a model that declines": (said("", refusal="I cannot help with that"), "declines"),
}


@pytest.mark.parametrize(("reply", "why"), AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_an_ambiguous_reply_is_never_executed_and_the_model_is_told_why(reply, why):
    held = Held([reply, gave_up()])
    held.run()
    assert held.hands.done == []
    assert why in held.told(1)
    assert "[step 1 of 10]" in held.told(1)
    assert [event["event"] for event in held.events].count("refused") == 1
    assert held.session.spent.steps == 2


@pytest.mark.parametrize("finish", ["", "stop", "tool_calls", "STOP", "end_turn", "eos_token", "tool_use"])
def test_a_reply_that_came_to_its_end_is_executed(finish):
    held = Held([ran("ls", finish=finish), gave_up()])
    held.run()
    assert held.hands.done == [("run", "ls")]


def test_each_of_two_calls_at_once_is_answered():
    held = Held([TWO, gave_up()])
    held.run()
    assert [message.answers for message in held.model.requests[1].messages[-2:]] == ["a", "b"]


def test_a_model_that_never_makes_a_call_is_stopped():
    held = Held([said(f"thinking {number}") for number in range(20)])
    ending = held.run()
    assert isinstance(ending, Unusable)
    assert ending.reason is Reason.MODEL_REPLY_UNUSABLE
    assert held.session.spent.steps == UNCLEAR_IN_A_ROW


def test_a_clear_call_between_unclear_ones_begins_the_count_anew():
    script = [said(f"hm {number}") if number % 3 else ran(f"ls {number}") for number in range(20)]
    assert isinstance(Held(script).run(), LimitReached)


def test_the_limit_of_steps_counts_unclear_replies():
    held = Held([said("hm"), ran("a"), said("hm"), ran("b"), ran("c")], limits=limited(steps=4))
    ending = held.run()
    assert isinstance(ending, LimitReached)
    assert str(ending) == "no recipe after 4 steps"
    assert len(held.model.requests) == 4


def test_the_model_is_told_when_few_steps_are_left():
    held = Held([ran("a"), ran("b"), gave_up()], limits=limited(steps=5))
    held.run()
    assert "write the recipe now" not in held.told(1)
    assert held.told(2).endswith("[step 2 of 5: write the recipe now, or give up]")


def test_the_limit_of_seconds_ends_a_session_and_bounds_its_commands():
    clock = FakeTime(each=40.0)
    held = Held([ran("a"), ran("b"), ran("c"), ran("d")], limits=limited(command_s=70.0), clock=clock)
    assert str(held.run()) == "no recipe after 100 seconds"
    assert held.hands.timeouts == [60.0, 20.0, 1.0]


def test_the_limit_of_tokens():
    held = Held([ran(str(number)) for number in range(9)], limits=limited(tokens=25))
    assert str(held.run()) == "no recipe after 30 tokens (the limit is 25)"
    assert len(held.model.requests) == 3


def test_the_limit_of_money():
    held = Held([ran(str(number)) for number in range(9)], limits=limited(money=0.002))
    assert str(held.run()) == "no recipe for $0.0020 (the limit is $0.002)"
    assert len(held.model.requests) == 2


def test_a_model_that_costs_nothing_meets_no_limit_of_money():
    held = Held([ran("a"), gave_up()], limits=limited(money=0.0), money=0.0)
    assert isinstance(held.run(), GaveUp)


def test_the_same_call_again_and_again_ends_a_session_before_it_is_run_once_more():
    held = Held([ran("pytest")] * 10)
    ending = held.run()
    assert isinstance(ending, LimitReached)
    assert "same call" in str(ending)
    assert len(held.hands.done) == SAME_IN_A_ROW - 1


def test_the_same_call_after_another_one_is_no_circle():
    held = Held([ran("pytest"), ran("uv pip install x")] * 4 + [gave_up()])
    assert isinstance(held.run(), GaveUp)


def test_a_cap_of_the_run_is_an_ending_of_its_own():
    held = Held([ran("a"), OverCap("run.max_cost: $0.01 is left", cap="run.max_cost")])
    ending = held.run()
    assert isinstance(ending, Capped)
    assert ending.reason is Reason.MODEL_CAP_REACHED
    assert held.session.spent.money == 0.001
    sentence = "run.max_cost leaves too little for another request"
    assert str(ending) == sentence
    assert held.events[-2:] == [
        {"event": "capped", "why": "run.max_cost: $0.01 is left"},
        {"event": "end", "outcome": "model-cap-reached", "detail": sentence},
    ]


def test_a_request_that_the_endpoint_does_not_take_ends_a_session():
    ending = Held([ran("a"), RequestRefused("too long")]).run()
    assert isinstance(ending, Unusable)
    assert "too long" in str(ending)


def test_an_endpoint_without_tools_is_told_apart_at_the_first_question_only():
    first = Held([ToolsUnsupported("no tools")])
    with pytest.raises(ToolsUnsupported):
        first.run()
    assert isinstance(Held([ran("a"), ToolsUnsupported("no tools")]).run(), Unusable)


@pytest.mark.parametrize(
    "error",
    [
        DockerUnavailable("the engine is gone"),
        Trouble("down", reason=Reason.MODEL_UNREACHABLE),
        KeyboardInterrupt(),
        SystemExit(1),
        RuntimeError("a mistake of ours"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("where", ["the model", "the container"])
def test_the_transcript_is_saved_whatever_happens(error, where):
    def fail(command: str) -> Done:
        raise error

    held = Held([ran("ls"), ran("ls -l")], hands=FakeHands(fail if where == "the container" else FakeHands().does))
    if where == "the model":
        held.model._script = lambda _: _raised(error, held)
    with pytest.raises(type(error)):
        held.run()
    assert held.events[-1]["outcome"] == type(error).__name__
    assert [event for event in held.events if event["event"] == "reply"]


def _raised(error: BaseException, held: Held) -> Reply:
    if len(held.model.requests) > 1:
        raise error
    return ran("ls")


def test_a_session_in_text():
    script = [said(block("run", "ls -l\necho 'a'", before="First I look.\n\n")), said(block("give_up", "no way"))]
    held = Held(script, speech=in_text())
    assert isinstance(held.run(), GaveUp)
    assert held.hands.done == [("run", "ls -l\necho 'a'")]
    assert held.model.requests[0].tools == ()
    assert [message.role for message in held.model.requests[1].messages] == ["system", "user", "assistant", "user"]


def test_output_that_is_no_text_is_kept():
    held = Held([ran("x"), gave_up()], hands=FakeHands(lambda _: Done("\udcff\x00", exit_code=0)))
    held.run()
    assert next(event for event in held.events if event["event"] == "result")["output"] == "\udcff\x00"
