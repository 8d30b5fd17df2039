"""The structured rung: whose turn it is, what is asked, what is refused and why, and how a candidate is refined."""

from __future__ import annotations

import json
import threading

import pytest
from structured_bench import RECIPE, Bench, drafted, said

from installers.brief.draft import form
from installers.brief.evidence import tokens_of
from installers.interface import Attempt, Signature
from installers.models.interface import OverCap, Reply, RequestRefused, ToolCall, Trouble
from miner.core.errors import ModelFault
from miner.core.reasons import Reason

NO_YAML = Signature(kind="missing-module", subject="yaml")
LOG = "tests/test_x.py:1: in <module>\n    import yaml\nE   ModuleNotFoundError: No module named 'yaml'\n"
YAML = drafted(
    requirements=["attrs>=20", "pytest", "pyyaml"], reasons=[{"field": "requirements", "reason": "tests import yaml"}]
)
YAML_6 = drafted(
    requirements=["attrs>=20", "pytest", "pyyaml"],
    constraints=["pyyaml<6"],
    reasons=[{"field": "constraints", "reason": "yaml.load needs a loader since 6"}],
)


def bench(tmp_path, *script, **more):
    made = Bench(tmp_path, list(script), **more)
    made.failed(LOG, NO_YAML, kind="install.project", outcome="project-install-failed")
    return made


def texts(bench, number=-1):
    return [message.content for message in bench.model.requests[number].messages]


def test_a_draft_becomes_a_proposal_with_its_reasons_and_its_cost(tmp_path):
    asked = bench(tmp_path, said(YAML))
    proposal = asked.ask()
    assert proposal.refused is None
    assert proposal.recipe.requirements == ("attrs>=20", "pytest", "pyyaml")
    (edit,) = proposal.edits
    assert (edit.rule, edit.signature, edit.why) == ("structured", NO_YAML, "requirements: tests import yaml")
    assert proposal.tokens == 20
    assert proposal.money == pytest.approx(30e-6)
    assert len(proposal.asked) == 1


def test_the_request_asks_for_the_schema_of_the_pythons_that_the_project_admits(tmp_path):
    asked = bench(tmp_path, said(YAML))
    asked.ask()
    request = asked.model.requests[0]
    pythons = tuple(one.version for one in asked.help.pythons if one.version not in ("3.6", "3.7"))
    assert request.form == form(pythons)
    assert (request.max_tokens, request.temperature, request.model) == (4000, 0.7, "small")
    assert [message.role for message in request.messages] == ["system", "user"]


def test_nothing_is_asked_where_there_are_no_models_or_no_turns(tmp_path):
    asked = bench(tmp_path, overrides=["measure.model.structured.candidates=0"])
    assert asked.ask() is None
    asked.help = asked.help.__class__(**{**asked.help.__dict__, "models": None})
    assert asked.ask() is None


def test_a_healthy_environment_ends_the_asking(tmp_path):
    asked = bench(tmp_path, said(YAML))
    made = asked.ask()
    asked.note("structured", made, outcome="ok", kind="install.suite", change=_healthy)
    assert asked.ask() is None


def _healthy(made: Attempt) -> Attempt:
    return made.model_copy(update={"share": 0.9})


# --- turns


def test_the_first_round_refines_the_last_attempt_from_its_log(tmp_path):
    asked = bench(tmp_path, said(YAML), said(YAML_6))
    asked.turn(
        "E   TypeError: load() missing 1 required positional argument: 'Loader'", Signature(kind="known-message")
    )
    proposal = asked.ask()
    request = asked.model.requests[1]
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "user"]
    first = asked.model.requests[0].messages
    assert request.messages[:2] == first
    assert json.loads(request.messages[2].content) == YAML
    assert "missing 1 required positional argument: 'Loader'" in request.messages[3].content
    assert [edit.why for edit in proposal.edits] == [
        "requirements: tests import yaml",
        "constraints: yaml.load needs a loader since 6",
    ]
    assert proposal.edits[1].signature == Signature(kind="known-message")


def test_the_second_round_refines_the_first_ones_reply(tmp_path):
    other = drafted(python="3.8")
    asked = bench(tmp_path, said(YAML), said(YAML_6), said(other))
    asked.turn("error: one")
    asked.turn("error: two")
    assert asked.ask().recipe.python == "3.8"
    shown = texts(asked)
    assert len(shown) == 4
    assert json.loads(shown[2]) == YAML_6
    assert "error: two" in shown[3]
    assert "error: one" not in shown[3]


def test_the_next_candidate_begins_anew_with_another_hint_and_knows_what_was_tried(tmp_path):
    drafts = [drafted(requirements=["pytest", f"a{number}"]) for number in range(4)]
    asked = bench(tmp_path, *map(said, drafts))
    for _ in range(3):
        asked.turn("error: no")
    asked.ask()
    first, fourth = texts(asked, 0), texts(asked, 3)
    assert len(fourth) == 2
    way = [text[1].split("Go about it this way: ")[1].split("(Why")[0] for text in (first, fourth)]
    assert way[0] != way[1]
    assert "#0 declared" in fourth[1]
    assert "#3 structured" in fourth[1]


def test_a_candidate_starts_from_the_attempt_that_came_furthest(tmp_path):
    asked = bench(tmp_path, said(YAML), overrides=["measure.model.structured.rounds=0"])
    better = RECIPE.model_copy(update={"python": "3.10", "fallback": 1})
    asked.note(
        "repair",
        asked.ask().model_copy(update={"recipe": better, "edits": (), "asked": ()}),
        "E   fixture 'mocker' not found",
        Signature(kind="missing-fixture", subject="mocker"),
        kind="install.health",
        outcome="collection-broken",
        change=lambda made: made.model_copy(update={"steps": asked.past[0].steps}),
    )
    asked.script.append(said(drafted(better, better, system_packages=["libpq-dev"])))
    proposal = asked.ask()
    assert (proposal.recipe.python, proposal.recipe.fallback) == ("3.10", 1)
    assert proposal.edits[-1].signature == Signature(kind="missing-fixture", subject="mocker")
    assert "Attempt 1 came furthest" in texts(asked)[1]


EVIL = drafted(requirements=["attrs>=20", "pytest", "evil-plugin"])


def void(tmp_path, *script, rounds):
    """A draft that is built, and then found to weaken the tests."""
    asked = Bench(tmp_path, [said(EVIL), *script], overrides=[f"measure.model.structured.rounds={rounds}"])
    asked.failed(LOG, NO_YAML)
    proposal = asked.ask()
    why = {"detail": "the environment would weaken the tests: steering-plugin"}
    asked.note(
        "structured",
        proposal,
        kind="install.env",
        outcome="model-weakens-tests",
        change=lambda made: made.model_copy(update=why),
    )
    return asked


def test_a_candidate_does_not_start_from_an_attempt_that_is_void(tmp_path):
    asked = void(tmp_path, said(YAML), rounds=0)
    proposal = asked.ask()
    assert "+evil-plugin" in texts(asked)[1], "it was tried"
    assert '"evil-plugin"' not in texts(asked)[1], "but is not what the next recipe starts from"
    assert "Attempt 0 came furthest" in texts(asked)[1]
    assert [edit.why for edit in proposal.edits] == ["requirements: tests import yaml"]


def test_a_refinement_of_a_void_attempt_starts_from_what_came_furthest_before_it(tmp_path):
    asked = void(tmp_path, said(YAML), rounds=1)
    proposal = asked.ask()
    said_to_it = texts(asked)[-1]
    assert "Your reply could not be tried" in said_to_it
    assert "would weaken the tests: steering-plugin" in said_to_it
    assert [edit.why for edit in proposal.edits] == ["requirements: tests import yaml"]
    assert proposal.edits[0].signature == NO_YAML


def test_models_are_asked_one_after_the_other_each_with_all_of_its_turns(tmp_path):
    drafts = [said(drafted(requirements=["pytest", f"a{number}"])) for number in range(4)]
    use = ["measure.model.structured.candidates=2", "measure.model.structured.rounds=0"]
    asked = bench(tmp_path, *drafts, models=("small", "large"), overrides=use)
    for _ in range(4):
        asked.turn("error: no")
    assert [request.model for request in asked.model.requests] == ["small", "small", "large", "large"]
    assert asked.ask() is None


def test_equal_requests_are_different_tries(tmp_path):
    use = ["measure.model.structured.candidates=1", "measure.model.structured.rounds=3"]
    asked = bench(tmp_path, said(""), said(""), said(YAML), overrides=use)
    asked.turn()
    asked.turn()
    assert asked.ask().refused is None
    assert asked.model.requests[0] == asked.model.requests[1] == asked.model.requests[2]


def test_what_is_known_is_not_asked_again(tmp_path):
    asked = bench(tmp_path, said(YAML), said("nothing"), said(YAML_6))
    first = [asked.turn("error: one"), asked.turn("error: two"), asked.turn("error: three")]
    again = asked.again()
    again.failed(LOG, NO_YAML, kind="install.project", outcome="project-install-failed")
    second = [again.turn("error: one"), again.turn("error: two"), again.turn("error: three")]
    assert second == first
    assert len(asked.model.requests) == 3


# --- replies that come to nothing

REPLIES = {
    "refusal": (Reply(refusal="I cannot help with that", finish="stop"), "the model declines", "I cannot help"),
    "content filter": (said("", finish="content_filter"), "a filter of the endpoint ended the reply", ""),
    "cut off": (said(json.dumps(YAML)[:99], finish="length"), "cut off at its limit of tokens", "python"),
    "cut off when it was whole": (said(YAML, finish="length"), "cut off at its limit of tokens", ""),
    "cut off for a reason that nobody knows": (said(YAML, finish="abort"), "it ended with 'abort'", ""),
    "empty": (said("  \n"), "the reply is empty", ""),
    "a tool": (Reply(calls=(ToolCall(id="1", name="run", arguments="{}"),)), "calls a tool, 'run'", ""),
    "prose": (said("Use Python 3.9."), "holds no JSON object", "Use Python 3.9."),
    "invalid JSON": (said(json.dumps(YAML)[:-9]), "no valid JSON", "python"),
    "not of the schema": (said({**YAML, "commands": ["make"]}), "commands", ""),
    "two recipes": (said(f"{json.dumps(YAML)} or {json.dumps(YAML_6)}"), "2 JSON objects", ""),
    "shell in a recipe": (said(drafted(requirements=["a; rm -rf /"])), "no PEP 508 requirement", "rm -rf"),
    "the project itself": (said(drafted(requirements=["demo"])), "the project itself", ""),
    "tried before": (said(drafted()), "was tried before: attempt 0 (declared), project-install-failed", ""),
}


@pytest.mark.parametrize("case", REPLIES)
def test_what_cannot_be_used_is_refused_by_name(tmp_path, case):
    reply, says, quotes = REPLIES[case]
    proposal = bench(tmp_path, reply).ask()
    assert proposal.refused.reason is Reason.MODEL_REPLY_UNUSABLE
    assert says in proposal.refused.detail
    assert quotes in proposal.refused.detail
    assert len(proposal.refused.detail) < 1500
    assert proposal.asked
    assert proposal.recipe == RECIPE


def test_giving_up_is_a_reason_of_its_own(tmp_path):
    proposal = bench(tmp_path, said(drafted(give_up="it needs a graphics processor"))).ask()
    assert proposal.refused.reason is Reason.MODEL_GAVE_UP
    assert "graphics processor" in proposal.refused.detail


def test_a_long_reply_is_quoted_in_part(tmp_path):
    proposal = bench(tmp_path, said("blah " * 20_000)).ask()
    assert len(proposal.refused.detail) < 500


def test_an_unusable_reply_is_told_what_is_wrong_with_it(tmp_path):
    asked = bench(tmp_path, said(drafted(requirements=["demo"])), said(YAML))
    asked.turn()
    assert asked.ask().refused is None
    shown = texts(asked)
    assert json.loads(shown[2])["requirements"] == ["demo"]
    assert "Your reply could not be tried" in shown[3]
    assert "is the project itself" in shown[3]


def test_a_reply_that_says_nothing_is_asked_for_anew(tmp_path):
    asked = bench(tmp_path, said(""), said(YAML))
    asked.turn()
    assert asked.ask().refused is None
    assert len(texts(asked)) == 2


def test_a_request_that_is_not_taken_is_an_attempt_and_the_next_one_is_shorter_and_simpler(tmp_path):
    files = {"setup.py": b"x = 'install this or that'\n" * 3000}
    asked = bench(tmp_path, RequestRefused("maximum context length is 8192 tokens"), said(YAML), files=files)
    proposal = asked.turn()
    assert proposal.refused.reason is Reason.MODEL_REPLY_UNUSABLE
    assert "maximum context length" in proposal.refused.detail
    assert len(proposal.asked) == 1  # it may have been charged
    assert asked.ask().refused is None
    before, after = asked.model.requests
    assert len(after.messages[1].content) < 0.7 * len(before.messages[1].content)
    assert (before.form is None, after.form) == (False, None)


class Empty:
    """A purse with nothing in it; others have spent another amount each time."""

    asked = 0

    def reserve(self, *_):
        self.asked += 1
        raise OverCap(f"run.max_cost is $1.00: $0.9{self.asked} are spent or reserved", cap="run.max_cost")

    def settle(self, *_):
        return None


def test_a_cap_is_a_reason_with_what_was_there_before_and_ends_the_asking(tmp_path):
    asked = bench(tmp_path, said(YAML), purse=Empty())
    assert asked.ask() == asked.ask(), "amounts differ from run to run, and are no content"
    proposal = asked.turn()
    assert proposal.refused.reason is Reason.MODEL_CAP_REACHED
    first, rest = proposal.refused.detail.split("; ", 1)
    assert first == "run.max_cost leaves too little for another request"
    assert rest.startswith("attempt 0 (declared) came furthest: project-install-failed: ")
    assert asked.ask() is None
    assert asked.model.requests == []


def test_a_fault_of_the_endpoint_is_no_property_of_the_project(tmp_path):
    asked = bench(tmp_path, Trouble("the endpoint is gone", reason=Reason.MODEL_UNREACHABLE, again=False))
    with pytest.raises(ModelFault):
        asked.ask()


# --- budgets


@pytest.mark.parametrize("tokens", [3000, 6000, 16000])
def test_a_prompt_costs_no_more_than_it_may(tmp_path, tokens):
    files = {
        "setup.py": b"x = 'install this or that'\n" * 3000,
        "tox.ini": b"[testenv]\ndeps = pytest\n" * 2000,
        **{f".github/workflows/test{number}.yml": b"run: pytest\n" * 900 for number in range(9)},
    }
    asked = Bench(
        tmp_path, [said(YAML), said(YAML_6)], files=files, overrides=[f"measure.model.prompt_tokens={tokens}"]
    )
    asked.failed(LOG + "pytest says a lot\n" * 9000, NO_YAML)
    asked.turn("E   error: no\n" * 9000)
    asked.ask()
    assert sum(tokens_of(text) for text in texts(asked, 0)) <= 0.7 * tokens + 50
    assert sum(tokens_of(text) for text in texts(asked, 1)) <= tokens + 400
    assert "No module named 'yaml'" in texts(asked, 0)[1]


def test_threads_of_different_candidates_do_not_meet(tmp_path):
    asked = [bench(tmp_path / str(number), said(YAML)) for number in range(4)]
    found = []
    threads = [threading.Thread(target=lambda one=one: found.append(one.ask())) for one in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {proposal.recipe.requirements for proposal in found} == {("attrs>=20", "pytest", "pyyaml")}
