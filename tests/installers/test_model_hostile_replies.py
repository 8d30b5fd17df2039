"""What models say wrong, or mean to do harm with, over a real endpoint to the two rungs: each ends in an honest reason.

One row for each; what endpoints do wrong before a model has spoken is in `test_model_misbehaviour.py`. Nothing is
built here: containers of the agent are hands that remember what they were asked to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agent_bench import FakeHands
from bench import ground_of
from desk_bench import Bench as Ledgered
from endpoint import Answer, Asked, Behaviour, Endpoint, faults, hostile, last_again, malformed, replies
from endpoint.hostile import INJECTIONS
from structured_bench import DAY, RECIPE, Bench

from installers.agent.stand import Stand
from installers.interface import Proposal
from installers.models.desk import Desk
from installers.models.openai_model import OpenAIModel
from installers.models.purse import Purse
from installers.rungs.agent import agent
from miner.core.errors import ModelFault
from miner.core.reasons import Reason
from miner.core.records import legible
from miner.core.settings import Endpoint as EndpointSettings
from miner.core.settings import Price
from miner.core.spending import Caps

pytestmark = pytest.mark.loopback
UNUSABLE, GAVE_UP, LIMIT = Reason.MODEL_REPLY_UNUSABLE, Reason.MODEL_GAVE_UP, Reason.MODEL_LIMIT
CAP_REACHED = Reason.MODEL_CAP_REACHED
OVERRIDES = (
    "measure.model.structured.candidates=1",
    "measure.model.structured.rounds=1",
    "measure.model.agent.attempts=1",
    "measure.model.agent.steps=8",
    "measure.model.agent.money=0.2",
)
DOLLAR = 10**9
UNPAID = ("too long for the model",)
"""A request that is not taken is no answer: what it may have cost stands in the ledger, and not in the attempt."""


class World:
    """One candidate, an endpoint, and a desk with a ledger."""

    def __init__(self, folder: Path, endpoint: Endpoint, *overrides: str, cap: int = DOLLAR) -> None:
        self.bench = Bench(folder / "rung", [], overrides=(*OVERRIDES, *overrides))
        self.spending = Ledgered(folder / "money").spending
        settings = EndpointSettings(tries=2)
        model = OpenAIModel(settings, {"OPENAI_BASE_URL": endpoint.url})
        desk = Desk(
            {"small": model},
            {"small": Price(input=1.0, output=2.0)},
            Purse(self.spending, "r", Caps(run=cap)),
            self.bench.help.workshop.blobs,
            settings,
            sleep=lambda _: None,
        )
        self.bench.help = replace(self.bench.help, models=desk, pack=lambda _: None)
        self.bench.failed("error: no version of attrs==99")

    def structured(self) -> Proposal:
        """Ask the structured rung for one turn, and note it as an attempt."""
        return self.bench.turn()

    def agent(self) -> Proposal:
        """Hold one session."""
        made = agent(self.bench.question, self.bench.help)
        assert made is not None
        return made

    def check_money(self, *made: Proposal) -> None:
        """What attempts say that they cost is what the ledger says."""
        assert sum(one.money for one in made) == pytest.approx(self.spending.spent("r"))


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> FakeHands:
    """What sessions get instead of a container; they stand on the base image."""
    hands = FakeHands()

    @contextmanager
    def room(*_: Any) -> Iterator[Any]:
        yield SimpleNamespace(run=hands.run, read=hands.read, edits=tuple)

    def stand_of(question: Any, help_: Any, *_: Any) -> Stand:
        return Stand(question.declared, None, DAY, ground_of(help_.workshop))

    monkeypatch.setattr(import_module("installers.agent.session"), "room", room)
    monkeypatch.setattr(import_module("installers.rungs.agent"), "stand_of", stand_of)
    return hands


@dataclass(frozen=True)
class Row:
    """A behaviour, the reason that it ends in (None: a recipe to try), and words of the sentence."""

    name: str
    script: Behaviour
    reason: Reason | None
    said: str = ""


STRUCTURED = [
    Row("a recipe", replies.fitting(requirements=["attrs>=21"]), None),
    Row("in a code fence", hostile.fenced(), None),
    Row("between sentences", hostile.in_prose(), None),
    Row("gives up", replies.fitting(give_up="It needs a mainframe."), GAVE_UP, "mainframe"),
    Row("gives up oddly", replies.fitting(give_up="It \x1b[2J \x00 is odd."), GAVE_UP, "is odd"),
    Row("gives up in half a character", replies.fitting(give_up="\ud800"), UNUSABLE, "not of the schema"),
    Row("after thoughts with braces", hostile.after_thought(), UNUSABLE, "JSON objects"),
    Row("two recipes", hostile.two_values(), UNUSABLE, "2 JSON objects"),
    Row("no JSON", hostile.not_a_value(), UNUSABLE, "no JSON object"),
    Row("unclosed", hostile.unclosed(), UNUSABLE, "no valid JSON"),
    Row("encoded twice", hostile.doubly_encoded(), UNUSABLE, "no JSON object"),
    Row("a field is missing", hostile.missing_field(), UNUSABLE, "not of the schema"),
    Row("a field of another type", hostile.wrong_type(), UNUSABLE, "not of the schema"),
    Row("all fields of another type", hostile.wrong_types(), UNUSABLE, "not of the schema"),
    Row("a field with a command", hostile.extra_field(), UNUSABLE, "post_install"),
    Row("a field twice", hostile.repeated_field(), UNUSABLE, "twice"),
    Row("not a number", hostile.not_a_number(), UNUSABLE, "no valid JSON"),
    Row("a number of 5000 digits", hostile.long_number(), UNUSABLE, "no valid JSON"),
    Row("a list", hostile.another_kind([1, 2]), UNUSABLE, "no JSON object"),
    Row("null", hostile.another_kind(None), UNUSABLE, "no JSON object"),
    Row("an empty object", hostile.another_kind({}), UNUSABLE, "not of the schema"),
    Row("nested too deep", hostile.deep(), UNUSABLE),
    Row("odd characters", hostile.odd_characters(), UNUSABLE, "no JSON object"),
    Row("talk", hostile.talks(), UNUSABLE, "no JSON object"),
    Row("quoted commands", hostile.quotes_commands(), UNUSABLE),
    Row("instructions", hostile.instructs(), UNUSABLE, "no JSON object"),
    Row("refusal", replies.refusal(), UNUSABLE, "declines"),
    Row("cut at max_tokens", replies.length(), UNUSABLE, "cut off"),
    Row("all tokens for thought", replies.length_of_thought(), UNUSABLE, "cut off"),
    Row("filtered", replies.content_filter(), UNUSABLE, "filter"),
    Row("content null", replies.content_null(), UNUSABLE, "empty"),
    Row("a call of a tool", hostile.unknown_tool(), UNUSABLE, "calls a tool"),
    Row("too long for the model", faults.context_exceeded(), UNUSABLE, "does not take the request"),
    Row("no forms", faults.form_unsupported(), UNUSABLE, "no JSON object"),
    Row("an unknown Python", replies.fitting(python="2.7"), UNUSABLE, "python"),
    Row("no way to install", replies.fitting(modes=[]), UNUSABLE, "modes"),
    Row("the project itself", replies.fitting(requirements=["demo==1"]), UNUSABLE, "the project itself"),
    Row("the installer's index", replies.fitting(env=[{"name": "UV_INDEX_URL", "value": "x"}]), UNUSABLE, "installer"),
    Row("a variable twice", replies.fitting(env=[{"name": "A", "value": v} for v in "xy"]), UNUSABLE, "set twice"),
]


@pytest.mark.parametrize("row", STRUCTURED, ids=lambda row: row.name)
def test_structured(row: Row, tmp_path: Path) -> None:
    with Endpoint(row.script) as endpoint:
        world = World(tmp_path, endpoint)
        made = world.structured()
        again = world.structured()  # told what became of the first
    assert endpoint.broken == []
    assert_ended(made, row)
    assert again.refused is not None  # at best it is the same recipe
    assert again.refused.detail
    if row.name not in UNPAID:
        world.check_money(made, again)


FIELDS = ("requirements", "constraints", "overrides", "build_requirements", "build_constraints", "system_packages")


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("name", INJECTIONS)
def test_text_that_means_harm_is_no_package(name: str, field: str, tmp_path: Path) -> None:
    with Endpoint(
        replies.fitting(**{field: ["attrs" if field != "system_packages" else "git", INJECTIONS[name]]})
    ) as endpoint:
        made = World(tmp_path, endpoint).structured()
    assert made.refused is not None
    assert made.refused.reason is UNUSABLE
    assert field in made.refused.detail
    assert made.refused.detail.isprintable()
    assert made.recipe == RECIPE


@pytest.mark.parametrize("name", INJECTIONS)
def test_text_that_means_harm_as_a_variable_or_an_option_is_one_word_or_nothing(name: str, tmp_path: Path) -> None:
    text = INJECTIONS[name]
    forms: list[dict[str, Any]] = [
        {"env": [{"name": "A", "value": text}]},
        {"build_env": [{"name": "A", "value": text}]},
        {"addopts": [text]},
    ]
    for number, changes in enumerate(forms):
        with Endpoint(replies.fitting(**changes)) as endpoint:
            made = World(tmp_path / str(number), endpoint).structured()
        recipe = made.recipe
        assert (made.refused is not None) or (text.isprintable() and len(text) <= 2000)
        assert {*recipe.env.values(), *recipe.build_env.values(), *recipe.addopts} <= {text, *RECIPE.addopts}


@pytest.mark.parametrize("name", INJECTIONS)
def test_text_that_means_harm_is_no_name_of_a_variable(name: str, tmp_path: Path) -> None:
    with Endpoint(replies.fitting(env=[{"name": INJECTIONS[name], "value": "1"}])) as endpoint:
        made = World(tmp_path, endpoint).structured()
    assert made.refused is not None
    assert made.refused.reason is UNUSABLE


def run(command: str = "true") -> tuple[str, dict[str, str]]:
    return "run", {"command": command}


AGENT = [
    Row("gives up", replies.tool_calls(("give_up", {"reason": "It needs a mainframe."})), GAVE_UP, "mainframe"),
    Row("two calls at once", hostile.two_calls(run(), run("rm -r /")), UNUSABLE, "2 tool calls"),
    Row("two calls of one id", malformed.same_ids(), UNUSABLE, "2 tool calls"),
    Row("an unknown tool", hostile.unknown_tool(), UNUSABLE, "no tool"),
    Row("a tool with an odd name", hostile.unknown_tool("run it now!"), UNUSABLE, "no tool"),
    Row("a tool without a name", hostile.unknown_tool(""), UNUSABLE, "no tool"),
    Row("wrong arguments", hostile.wrong_arguments("run"), UNUSABLE, "one argument"),
    Row("arguments that are no JSON", hostile.arguments_not_json("run"), UNUSABLE, "no valid JSON"),
    Row("arguments without an end", hostile.arguments_unclosed("run"), UNUSABLE, "no valid JSON"),
    Row("arguments encoded twice", hostile.arguments_twice_encoded("run"), UNUSABLE, "JSON object"),
    Row("no arguments", hostile.arguments_empty("run"), UNUSABLE, "no valid JSON"),
    Row("talk", hostile.talks(), UNUSABLE, "no tool call"),
    Row("quoted commands", hostile.quotes_commands(), UNUSABLE, "no tool call"),
    Row("instructions", hostile.instructs(), UNUSABLE, "no tool call"),
    Row("refusal", replies.refusal(), UNUSABLE),
    Row("cut at max_tokens", replies.length(), UNUSABLE),
    Row("filtered", replies.content_filter(), UNUSABLE),
    Row("content null", replies.content_null(), UNUSABLE, "no tool call"),
    Row("odd characters", hostile.odd_characters(), UNUSABLE, "no tool call"),
    Row("too long for the model", faults.context_exceeded(), UNUSABLE, "does not take the request"),
    Row("a recipe as text", replies.fitting(recipe="{}"), UNUSABLE, "no tool call"),
    *[
        Row(f"a recipe with {name}", hostile.injected_call(name, "write_recipe"), LIMIT, "same call")
        for name in INJECTIONS
        if name != "long"
    ],
    Row("a recipe with a long text", hostile.injected_call("long", "write_recipe"), CAP_REACHED, "leaves too little"),
]


@pytest.mark.parametrize("row", AGENT, ids=lambda row: row.name)
def test_agent(row: Row, hands: FakeHands, tmp_path: Path) -> None:
    with Endpoint(row.script) as endpoint:
        world = World(tmp_path, endpoint)
        made = world.agent()
    assert endpoint.broken == []
    assert_ended(made, row)
    assert hands.done == []
    assert made.recipe == RECIPE
    assert len(endpoint.asked) <= 8
    if row.name not in UNPAID:
        world.check_money(made)


RUNS: list[tuple[str, Behaviour, list[tuple[str, str]], Reason]] = [
    ("the same for ever", hostile.loops(*run("ls")), [("run", "ls")] * 3, LIMIT),
    ("a call beside words", hostile.call_and_text(*run("ls")), [("run", "ls")] * 3, LIMIT),
    ("a call without an id", malformed.no_id(), [("run", "x")] * 3, LIMIT),
    ("another file each time", lambda asked: _another(asked), [("read", f"/a{n}") for n in range(8)], LIMIT),
]


def _another(asked: Asked) -> Answer:
    return replies.tool_calls(("read", {"path": f"/a{asked.number}"}))(asked)


@pytest.mark.parametrize(("name", "script", "done", "reason"), RUNS, ids=[row[0] for row in RUNS])
def test_session_without_an_end_is_ended(
    name: str, hands: FakeHands, script: Behaviour, done: Sequence[tuple[str, str]], reason: Reason, tmp_path: Path
) -> None:
    with Endpoint(script) as endpoint:
        world = World(tmp_path, endpoint)
        made = world.agent()
    assert made.refused is not None
    assert made.refused.reason is reason
    assert hands.done == list(done)
    assert endpoint.broken == []
    world.check_money(made)


def test_usage_that_is_never_said_ends_the_session_by_money(hands: FakeHands, tmp_path: Path) -> None:
    def unsaid(asked: Asked) -> Answer:
        made = replies.tool_calls(("read", {"path": f"/a{asked.number}"}))(asked)
        return replace(made, parts=((re.sub(rb'"usage": {[^}]*}', b'"usage": null', made.body), 1),))

    with Endpoint(unsaid) as endpoint:
        world = World(tmp_path, endpoint, "measure.model.agent.money=0.03")
        made = world.agent()
    assert made.refused is not None
    assert made.refused.reason is LIMIT
    assert "$" in made.refused.detail
    assert 1 <= len(endpoint.asked) < 8


@pytest.mark.parametrize(("cap", "replies_of"), [(20_000_000, "a session"), (1_000_000, "a turn")])
def test_cap_ends_session_and_turn(cap: int, replies_of: str, hands: FakeHands, tmp_path: Path) -> None:
    with Endpoint(hostile.loops(*run("ls"))) as endpoint:
        world = World(tmp_path, endpoint, cap=cap)
        made = world.agent() if replies_of == "a session" else world.structured()
    assert made.refused is not None
    assert made.refused.reason is CAP_REACHED
    assert "run.max_cost" in made.refused.detail
    assert len(endpoint.asked) == len(hands.done) == (2 if replies_of == "a session" else 0)
    assert world.spending.spent("r") <= cap / DOLLAR
    world.check_money(made)


BLOCK = "```call {mark} {tool}\n{argument}\n```"
TEXTS: list[tuple[str, Callable[[str], str], bool]] = [
    ("a call", lambda mark: BLOCK.format(mark=mark, tool="run", argument="ls"), True),
    ("words before it", lambda mark: "I look.\n\n" + BLOCK.format(mark=mark, tool="run", argument="ls"), True),
    ("another mark", lambda mark: BLOCK.format(mark="0" * 8, tool="run", argument="ls"), False),
    ("words after it", lambda mark: BLOCK.format(mark=mark, tool="run", argument="ls") + "\nThat should do.", False),
    ("two of them", lambda mark: "\n".join([BLOCK.format(mark=mark, tool="run", argument="ls")] * 2), False),
    ("no end", lambda mark: f"```call {mark} run\nls", False),
    ("quoted", lambda mark: "> " + BLOCK.format(mark=mark, tool="run", argument="ls").replace("\n", "\n> "), False),
    ("in another fence", lambda mark: "~~~\n" + BLOCK.format(mark=mark, tool="run", argument="ls") + "\n~~~", False),
    ("an unknown tool", lambda mark: BLOCK.format(mark=mark, tool="sudo", argument="ls"), False),
    ("a plain block", lambda mark: "```bash\nls\n```", False),
]


@pytest.mark.parametrize(("name", "write", "runs"), TEXTS, ids=[row[0] for row in TEXTS])
def test_text_protocol_where_tools_are_unknown(
    name: str, hands: FakeHands, write: Callable[[str], str], runs: bool, tmp_path: Path
) -> None:
    def script(asked: Asked) -> Answer:
        if asked.tools:
            return faults.tools_unsupported()(asked)
        mark = re.search(r"```call ([0-9a-f]{8})", str(asked.messages[0]["content"]))
        assert mark is not None
        return replies.text(write(mark[1]))(asked)

    with Endpoint(script) as endpoint:
        world = World(tmp_path, endpoint)
        made = world.agent()
    assert made.refused is not None
    assert made.refused.reason is (LIMIT if runs else UNUSABLE)
    assert hands.done == ([("run", "ls")] * 3 if runs else [])
    assert endpoint.broken == []
    assert [bool(asked.tools) for asked in endpoint.asked].count(True) == 1


@pytest.mark.parametrize(
    "script",
    [faults.server_error(), faults.login_refused(), faults.rate_limited(), malformed.html(), malformed.choices_null()],
    ids=["500", "401", "429", "a page", "no choices"],
)
def test_fault_of_the_endpoint_is_no_property_of_the_project(
    script: Behaviour, hands: FakeHands, tmp_path: Path
) -> None:
    with Endpoint(script) as endpoint:
        world = World(tmp_path, endpoint)
        for ask in (world.structured, world.agent):
            with pytest.raises(ModelFault):
                ask()
    with Endpoint(last_again([replies.tool_calls(run()), script])) as endpoint:
        world = World(tmp_path / "later", endpoint)
        with pytest.raises(ModelFault):
            world.agent()
    assert hands.done == [("run", "true")]


def assert_ended(made: Proposal, row: Row) -> None:
    """The proposal is what the row says, with a sentence that a terminal takes."""
    assert (made.refused.reason if made.refused else None) is row.reason, made.refused
    if made.refused is not None:
        assert row.said in made.refused.detail
        assert legible(made.refused.detail).isprintable()  # as an attempt keeps it
        assert len(made.refused.detail) < 3000
