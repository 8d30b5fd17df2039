"""Real packages that their declared files do not install: the rungs of language models bring each to an environment.

The whole job, in real containers, with replies that a person wrote (`model_cases/README.md`). The ladder is restricted
by configuration to the declared files and one rung of models: rules that get better change nothing here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from endpoint import Endpoint
from model_case import Case, cases
from whole_run import Place, pairs_option

from installers.attempt import ATTEMPT, attempt_of
from installers.interface import Attempt
from miner.core.blobs import BlobStore
from miner.core.records import Fact
from miner.core.settings import load_settings
from miner.jobs import monthly
from miner.jobs.summary import Summary

MODEL = "a-person"
CAP = 0.50
CASES = cases()
RUNGS = ("structured", "agent")
_LOG = re.compile(r"^      (request|reply|transcript|log): (\w+)$", re.M)
_OPTIONS = (
    'release.sources=["pypi"]',
    "policy.min_statement_chars=0",
    f'prices."{MODEL}".input=1.0',
    f'prices."{MODEL}".output=4.0',
    f'measure.model.order=["{MODEL}"]',
    f"run.max_cost={CAP}",
    "run.workers=1",
    "run.pause_max_s=0",
    "endpoint.tries=1",
)


def test_there_are_cases_of_many_causes() -> None:
    assert len(CASES) >= 8
    assert len({case.cause for case in CASES}) >= 8


@dataclass(frozen=True)
class Came:
    """What the runs of one case came to.

    Attributes:
        first: summary of the run with each rung.
        again: of the same runs once more, with no endpoint that answers.
        whys: what `why` said after each of the first ones.
        logs: what `why --log` printed then, of each digest that it named for an attempt, by name.
    """

    case: Case
    place: Place
    endpoint: Endpoint
    first: dict[str, Summary]
    again: dict[str, Summary]
    whys: dict[str, str]
    logs: dict[str, dict[str, list[str]]]

    def facts(self, kind: str) -> list[Fact]:
        ledger = self.place.ledger()
        found = list(ledger.standing(kind, outcome=None))
        ledger.close()
        return found

    def attempts(self, rung: str) -> list[Attempt]:
        """All attempts of a rung, in order."""
        blobs = BlobStore(str(self.place.work / "blobs"))
        made = [attempt_of(fact, blobs) for fact in self.facts(ATTEMPT)]
        return sorted((one for one in made if one.rung == rung), key=lambda one: one.number)


def params() -> list[Any]:
    """Every case; but for a few of the cheapest, they run in the slow tier only."""
    slow = (pytest.mark.slow,)
    return [pytest.param(case, id=case.name, marks=slow if case.slow else ()) for case in CASES]


@pytest.fixture(scope="module", params=params())
def came(request: pytest.FixtureRequest, new_place: Callable[..., Place]) -> Came:
    """One case, mined with each rung of models, and again."""
    case: Case = request.param
    options = [part for option in _OPTIONS for part in ("-c", option)]
    place = new_place(f"case-{case.name}", *options, *pairs_option([case.pair.model_dump(mode="json")]))
    with pytest.MonkeyPatch.context() as patch, Endpoint([*case.drafts, *case.session], models=[MODEL]) as endpoint:
        patch.setenv("OPENAI_BASE_URL", endpoint.url)
        first, whys, logs = {}, {}, {}
        for rung in RUNGS:
            first[rung] = mine(place, rung)
            whys[rung] = place.ask("why", case.instance_id)
            if endpoint.mistakes:
                raise AssertionError(whys[rung]) from endpoint.mistakes[0]
            logs[rung] = opened(place, case.instance_id, whys[rung])
        endpoint.stop()
        again = {rung: mine(place, rung) for rung in RUNGS}
    return Came(case, place, endpoint, first, again, whys, logs)


def opened(place: Place, name: str, why: str) -> dict[str, list[str]]:
    """Open every log that `why` names for an attempt."""
    found: dict[str, list[str]] = {}
    for kind, digest in dict.fromkeys(_LOG.findall(why)):
        found.setdefault(kind, []).append(place.ask("why", name, "--log", digest))
    return found


def mine(place: Place, rung: str) -> Summary:
    """Run the whole job with a ladder of the declared files and one rung of models."""
    command = [*place.command(), "-c", f'measure.ladder.order=["declared", "{rung}"]']
    return monthly.run(load_settings(overrides=command[2::2]), quiet=True)


@pytest.mark.docker
@pytest.mark.index
class TestCase:
    """Everything here looks at the runs of one case, and changes nothing of them."""

    def test_declared_files_still_fail_as_they_did(self, came: Came) -> None:
        """Where this fails because they succeed, or fail otherwise, the case shows nothing any more: replace it."""
        last = came.attempts("declared")[-1]
        assert (last.outcome, last.environment) == (came.case.declared.outcome, None), last.detail
        assert came.case.declared.signature in ("", *map(str, last.signatures))

    def test_structured_replies_come_to_what_a_person_expects_of_them(self, came: Came) -> None:
        made = came.attempts("structured")
        assert [one.outcome for one in made] == [reply.outcome for reply in came.case.structured], made[-1].detail
        assert made[-1].environment is not None
        assert all(one.edits and one.asked and one.money > 0 for one in made)

    def test_a_session_ends_in_a_recipe_that_is_healthy(self, came: Came) -> None:
        (made,) = came.attempts("agent")
        assert made.ok, made.detail
        (session,) = came.facts("install.agent")
        assert session.outcome == "ok"
        assert session.payload["steps"] == len(came.case.agent)

    def test_both_rungs_share_one_environment(self, came: Came) -> None:
        one, other = came.attempts("structured")[-1], came.attempts("agent")[-1]
        assert one.environment == other.environment

    def test_every_request_was_one_that_the_documentation_allows(self, came: Came) -> None:
        assert came.endpoint.broken == []
        assert len(came.endpoint.asked) == len(came.case.structured) + len(came.case.agent)

    @pytest.mark.parametrize("rung", RUNGS)
    def test_why_shows_every_attempt_with_its_cost_and_its_log(self, rung: str, came: Came) -> None:
        text = came.whys[rung]
        for made in (*came.attempts("declared"), *came.attempts(rung)):
            outcome = "healthy" if made.ok else made.outcome
            assert re.search(
                rf"^  {made.number} {rung if made.asked else 'declared'} +Python 3.11: {outcome}", text, re.M
            )
            if made.asked:
                assert f"{made.tokens} tokens, ${made.money:.4f}" in text

    def test_what_was_asked_and_said_can_be_opened(self, came: Came) -> None:
        structured, agent = (came.logs[rung] for rung in RUNGS)
        assert len(structured["request"]) == len(structured["reply"]) == len(came.case.structured)
        for reply, request, said in zip(came.case.structured, structured["request"], structured["reply"], strict=True):
            last = json.loads(request)["messages"][-1]["content"]
            assert all(text in last for text in reply.sees)
            assert json.loads(json.loads(said)["text"]) == reply.draft.value
        events = [json.loads(line) for line in agent["transcript"][0].splitlines()]
        assert [event["tool"] for event in events if event["event"] == "call"] == [one.tool for one in came.case.agent]

    def test_the_log_of_every_attempt_that_failed_can_be_opened(self, came: Came) -> None:
        assert any(came.case.declared.telling in log for log in came.logs["structured"]["log"])

    def test_money_is_what_the_tokens_cost_and_within_the_cap(self, came: Came) -> None:
        tries = came.facts("model.try")
        assert len(tries) == len(came.endpoint.asked)
        cost = sum(one.measures["input_tokens"] + 4 * one.measures["output_tokens"] for one in tries) / 1e6
        spent = sum(summary.spent.money for summary in came.first.values())
        assert spent == pytest.approx(cost, abs=1e-6)
        assert 0 < spent < CAP

    def test_nothing_is_measured_or_paid_again_without_an_endpoint(self, came: Came) -> None:
        for rung, summary in came.again.items():
            assert (summary.measured, summary.faulted, summary.spent.money) == (0, 0, 0), rung
            assert [(one.state, one.sentence) for one in summary.decisions] == [
                (one.state, one.sentence) for one in came.first[rung].decisions
            ]
