"""Genuine tokens of a small model, which is as bad as one can be: desk and rungs survive it, and spend within caps.

Opt-in: `make test-model` installs it (see tests/smollm).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench import Known, case_of
from desk_bench import PROMPT
from desk_bench import Bench as Ledgered
from smollm.server import CONTEXT, NAME, Small, serving
from smollm.set_up import NotToBeHad, folder_of
from structured_bench import Bench

from installers.attempt import InstallCase
from installers.brief.draft import form, read_draft
from installers.ladder import install
from installers.models.desk import Desk
from installers.models.interface import Message, Request, RequestRefused
from installers.models.openai_model import OpenAIModel
from installers.models.purse import Purse
from installers.workshop import Workshop
from miner.core.blobs import BlobStore
from miner.core.reasons import MEANINGS, Reason
from miner.core.settings import Budget, Endpoint, Price, Settings
from miner.core.spending import NANO, Caps

pytestmark = pytest.mark.model
PRICE = Price(input=1.0, output=2.0, context=CONTEXT)
CAP = 0.05
MAX_TOKENS = 160
STEPS = 3
TURNS = {"declared": 1, "structured": 2, "agent": 1}
FILES = {  # its back end is missing: there is no way to install it
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    "demo.py": "answer = 41\n",
}
TESTS = {"tests/test_demo.py": "import demo\n\ndef test_answer():\n    assert demo.answer == 41\n"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    try:
        with serving(folder_of(), tmp_path_factory.mktemp("smollm") / "log") as small:
            yield small
            print(f"\n{summary(small)}")
    except NotToBeHad as reason:
        pytest.skip(str(reason))


def summary(small: Small) -> str:
    served = small.served
    seconds = sum(one.seconds for one in served) or 1.0
    read, written = (sum(getattr(one, name) for one in served) for name in ("prompt_tokens", "completion_tokens"))
    speed = f"{written / seconds:.1f} tokens written a second"
    return f"{len(served)} requests, {read} tokens read and {written} written in {seconds:.1f} s: {speed}"


def desk_of(small: Small, ledgered: Ledgered, blobs: BlobStore, cap: float = CAP, **endpoint: Any) -> Desk:
    settings = Endpoint(timeout_s=90.0, tries=2, **endpoint)
    model = OpenAIModel(settings, {"OPENAI_BASE_URL": small.url})
    purse = Purse(ledgered.spending, "r", Caps(run=int(cap * NANO)))
    return Desk({NAME: model}, {NAME: PRICE}, purse, blobs, settings)


def request(text: str, **changes: Any) -> Request:
    plain = Request(model=NAME, messages=(Message(role="user", content=text),), max_tokens=40, temperature=0.0)
    return plain.model_copy(update=changes)


def test_a_reply_is_real_and_costs_what_its_tokens_cost(small: Small, tmp_path: Path) -> None:
    ledgered = Ledgered(tmp_path)
    desk = desk_of(small, ledgered, ledgered.blobs)
    answer = desk.ask(ledgered.memo(), request("Say hello."), repository="o/a", prompt=PROMPT)
    usage = answer.reply.usage
    assert usage is not None
    assert 5 < usage.input_tokens < 100
    assert 0 < usage.output_tokens <= 40
    assert answer.reply.text.strip()
    assert answer.tokens == usage.input_tokens + usage.output_tokens == small.served[-1].total_tokens
    assert ledgered.charged() == [round((usage.input_tokens + 2 * usage.output_tokens) * 1000)]
    again = desk.ask(ledgered.memo(), request("Say hello."), repository="o/a", prompt=PROMPT)
    assert (again, len(small.served)) == (answer, len(small.served))


def test_a_form_is_kept_to_although_what_it_says_is_nonsense(small: Small, tmp_path: Path) -> None:
    ledgered = Ledgered(tmp_path)
    desk = desk_of(small, ledgered, ledgered.blobs)
    asked = request("A recipe for a package that needs attrs, as JSON.", form=form(("3.11",)), max_tokens=300)
    reply = desk.ask(ledgered.memo(), asked, repository="o/a", prompt=PROMPT).reply
    assert reply.text.lstrip().startswith("{")
    read = read_draft(reply.text)
    assert reply.finish in ("stop", "length")
    assert (reply.finish == "length") or read.__class__.__name__ == "Draft"


def test_a_conversation_that_is_too_long_is_refused_by_the_endpoint(small: Small, tmp_path: Path) -> None:
    ledgered = Ledgered(tmp_path)
    desk = desk_of(small, ledgered, ledgered.blobs)
    with pytest.raises(RequestRefused, match="context length is 4096"):
        desk.ask(ledgered.memo(), request("{}[]()" * 1500), repository="o/a", prompt=PROMPT)


def test_structured_rung_survives_it(small: Small, tmp_path: Path) -> None:
    """Without containers: each turn is a recipe to try, or says why it is none."""
    ledgered = Ledgered(tmp_path / "money")
    overrides = [
        "measure.model.prompt_tokens=1200",
        f"measure.model.max_tokens={MAX_TOKENS}",
        "measure.model.structured.candidates=1",
        "measure.model.structured.rounds=1",
    ]
    bench = Bench(tmp_path / "rung", [], overrides=overrides, models=(NAME,))
    shop = bench.help.workshop
    bench.help = replace(bench.help, models=desk_of(small, ledgered, shop.blobs))
    bench.failed("error: no version of attrs==99")
    proposals = []
    while (proposal := bench.ask()) is not None:
        proposals.append(proposal)
        bench.note("structured", proposal, "error: no version of what the model says")
    assert len(proposals) == 2
    for proposal in proposals:
        assert proposal.asked
        assert 0 < proposal.tokens <= CONTEXT
        assert proposal.refused is None or proposal.refused.reason in UNUSABLE
        assert proposal.refused is None or proposal.refused.detail
    assert sum(one.money for one in proposals) == pytest.approx(ledgered.spending.spent("r"))
    assert ledgered.spending.spent("r") <= CAP


UNUSABLE = (Reason.MODEL_REPLY_UNUSABLE, Reason.MODEL_GAVE_UP, Reason.MODEL_LIMIT, Reason.MODEL_WEAKENS_TESTS)


@pytest.fixture
def climbing(workshop: Workshop) -> Workshop:
    """A workshop whose ladder has what is declared and the two rungs of models, with few turns."""
    return replace(workshop, settings=few_turns(workshop.settings))


def few_turns(settings: Settings) -> Settings:
    measure = settings.measure
    budgets = {name: Budget(attempts=turns, seconds=600.0) for name, turns in TURNS.items()}
    ladder = measure.ladder.model_copy(update={"order": tuple(TURNS), "budgets": budgets})
    structured = measure.model.structured.model_copy(update={"candidates": 1, "rounds": 1})
    agent = measure.model.agent.model_copy(update={"attempts": 1, "steps": STEPS, "seconds": 90.0, "command_s": 20.0})
    use = measure.model.model_copy(
        update={"prompt_tokens": 1200, "max_tokens": MAX_TOKENS, "structured": structured, "agent": agent}
    )
    return settings.model_copy(update={"measure": measure.model_copy(update={"ladder": ladder, "model": use})})


def hopeless(folder: Path) -> InstallCase:
    """A project that asks for what there is not, and whose back end is missing."""
    return case_of(FILES, folder, TESTS, requirements=("pytest==99",), source_root="")


@pytest.mark.docker
@pytest.mark.index
def test_climb_with_a_bad_model_ends_in_an_honest_reason(small: Small, climbing: Workshop, tmp_path: Path) -> None:
    ledgered = Ledgered(tmp_path / "money")
    known = Known()
    found = install(climbing, known.memo(), hopeless(tmp_path), models=desk_of(small, ledgered, climbing.blobs))
    assert Counter(one.rung for one in found.attempts) == TURNS
    assert found.environment is None
    assert found.refusal is not None
    for one in found.attempts:
        assert Reason(one.outcome) in MEANINGS
        assert one.detail
        assert bool(one.asked) == bool(one.tokens) == (one.rung != "declared")
    assert sum(one.money for one in found.attempts) == pytest.approx(ledgered.spending.spent("r"))
    assert ledgered.spending.spent("r") <= CAP
    session = next(fact for fact in found.facts if fact.key.kind == "install.agent")
    events = [json.loads(line)["event"] for line in climbing.blobs.get_text(session.logs["transcript"]).splitlines()]
    assert events.count("reply") == STEPS
    assert events[-1] == "end"
    again = install(climbing, known.memo(), hopeless(tmp_path / "again"), models=nobody(climbing))
    assert [one.model_dump() for one in again.attempts] == [one.model_dump() for one in found.attempts]


@pytest.mark.docker
@pytest.mark.index
def test_cap_ends_the_climb(small: Small, climbing: Workshop, tmp_path: Path) -> None:
    ledgered = Ledgered(tmp_path / "money")
    cap = 0.0005
    found = install(climbing, Known().memo(), hopeless(tmp_path), models=desk_of(small, ledgered, climbing.blobs, cap))
    assert found.attempts[-1].outcome == Reason.MODEL_CAP_REACHED.value
    assert found.refusal is not None
    assert found.refusal.outcome == Reason.MODEL_CAP_REACHED.value
    assert ledgered.spending.spent("r") <= cap


def nobody(workshop: Workshop) -> Desk:
    """A desk at which nobody can be asked: what is known is enough."""
    settings = Endpoint(tries=1, timeout_s=1.0)
    model = OpenAIModel(settings, {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    return Desk({NAME: model}, {NAME: PRICE}, None, workshop.blobs, settings)
