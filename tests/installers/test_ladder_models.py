"""Language models on the ladder: whose turn it is, what ends the asking, and what an attempt keeps of its cost."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench import PROJECT, Known, case_of, recipe_of

from installers.attempt import ATTEMPT, attempt, attempt_of, observation_of
from installers.interface import Attempt, Help, Memory, Proposal, Question, Refusal, Tree
from installers.ladder import install, refusal_of
from installers.models.desk import recorded_desk
from installers.models.interface import Message, Prompt, Request, Unasked
from installers.models.turns import Turn, turn
from installers.rungs import RUNGS
from miner.core.blobs import BlobStore
from miner.core.reasons import Reason
from miner.core.records import BuildMode, Environment, Fact, FactKey, Layer
from miner.core.settings import Budget, Settings

BLOBS = BlobStore("memory://ladder-models")
TESTS = {"tests/test_demo.py": "def test_it():\n    pass\n"}
DAY = datetime(2023, 1, 1, tzinfo=UTC)
_NO_RECIPE = ("model-reply-unusable", "model-gave-up")
ENVIRONMENT = Environment(
    image="sha256:" + "1" * 64,
    base_digest="sha256:" + "2" * 64,
    layers=(Layer(diff_id="sha256:" + "3" * 64, size=1),),
    lock_sha256="4" * 64,
    mode=BuildMode.NORMAL,
)


def made(rung: str, outcome: str = "lock-failed", number: int = 0, **fields) -> Attempt:
    environment = ENVIRONMENT if outcome == "ok" else None
    return Attempt(
        repository="octo/demo",
        rung=rung,
        number=number,
        recipe=recipe_of(),
        cutoff=DAY,
        outcome=outcome,
        environment=environment,
        **fields,
    )


def asked(settings: Settings, past: list[Attempt], models: tuple[str, ...] | None = ("small", "large"), **model):
    use = settings.measure.model.model_copy(update=model)
    ours = settings.model_copy(update={"measure": settings.measure.model_copy(update={"model": use})})
    question = Question(
        repository="octo/demo",
        tree=Tree({}, ()),
        declared=recipe_of(),
        created_at=DAY,
        test_files=(),
        past=past,
    )
    desk = None if models is None else SimpleNamespace(models=models)
    help_ = Help(workshop=SimpleNamespace(settings=ours), memo=Known().memo(), memory=Memory(), pythons=(), models=desk)
    return turn(question, help_, "structured", 2)


def test_each_model_has_all_of_its_turns_before_the_next_one(settings: Settings) -> None:
    past, turns = [made("declared")], []
    while (now := asked(settings, past)) is not None:
        turns.append(now)
        past.append(made("structured"))
    assert turns == [Turn("small", 0), Turn("small", 1), Turn("large", 0), Turn("large", 1)]


@pytest.mark.parametrize(
    ("past", "enough", "goes_on"),
    [
        pytest.param([made("declared", "ok", share=0.1)], 0.0, False, id="the first healthy environment ends it"),
        pytest.param([made("declared", "ok", share=0.1)], 0.5, True, id="one in which too few tests pass does not"),
        pytest.param([made("declared", "ok", share=None)], 0.5, False, id="one without tests of its own does"),
        pytest.param([made("ci", "ok", share=0.9, broken=1)], 0.0, True, id="one with a broken file does not"),
        pytest.param([made("structured", "model-cap-reached")], 0.0, False, id="a cap ends it"),
        pytest.param([made("structured", "model-gave-up")], 0.0, True, id="giving up is one try of several"),
    ],
)
def test_what_ends_the_asking(settings: Settings, past: list[Attempt], enough: float, goes_on: bool) -> None:
    assert (asked(settings, past, enough=enough) is not None) is goes_on


def test_without_models_it_is_nobodys_turn(settings: Settings) -> None:
    assert asked(settings, [made("declared")], models=None) is None
    assert asked(settings, [made("declared")], models=()) is None


def fact_of(one: Attempt) -> Fact:
    seen = observation_of(one, BLOBS)
    key = FactKey(kind=ATTEMPT, subject="x", input_hash=f"{one.number}", producer="p", epoch=1)
    return Fact(
        key=key, observed_at=DAY, outcome=seen.outcome, payload=seen.payload, measures=seen.measures, logs=seen.logs
    )


def test_a_cap_is_the_reason_where_it_kept_a_model_from_being_asked() -> None:
    refused = FactKey(kind="install.lock", subject="x", input_hash="1", producer="p", epoch=1)
    locked = Fact(key=refused, observed_at=DAY, outcome="lock-failed", payload={"detail": "no solution"})
    capped = fact_of(made("structured", "model-cap-reached", 1, detail="run.max_cost is $1"))
    assert refusal_of([locked, fact_of(made("declared"))]) == locked
    assert refusal_of([locked, fact_of(made("declared")), capped]) == capped
    assert refusal_of([locked, capped, fact_of(made("memory", "ok", 2))]) is None


def test_a_cap_of_a_climb_that_was_climbed_once_more_is_no_reason() -> None:
    """The second climb had the money: what it came to counts."""
    refused = FactKey(kind="install.lock", subject="x", input_hash="1", producer="p", epoch=1)
    locked = Fact(key=refused, observed_at=DAY, outcome="lock-failed", payload={"detail": "no solution"})
    first, capped = fact_of(made("declared")), fact_of(made("structured", "model-cap-reached", 1))
    again = [fact_of(made("declared", "build-failed")), fact_of(made("structured", "model-gave-up", 1))]
    assert refusal_of([locked, first, capped]) == capped
    assert refusal_of([locked, first, capped, *again]) == locked


def test_where_no_recipe_was_ever_tried_the_last_word_of_a_model_is_the_reason() -> None:
    first, last = (fact_of(made("structured", code, number)) for number, code in enumerate(_NO_RECIPE))
    assert refusal_of([first, last]) == last


def test_an_attempt_keeps_its_cost_apart_from_its_content() -> None:
    cheap, dear = (made("structured", asked=("f1",), tokens=n, money=n / 1000, seconds=n) for n in (10, 2000))
    assert observation_of(cheap, BLOBS).payload == observation_of(dear, BLOBS).payload
    assert attempt_of(fact_of(dear)) == dear
    assert "asked" not in observation_of(made("declared"), BLOBS).payload  # facts of before stay what they were


@pytest.mark.parametrize(
    ("proposal", "outcome", "said"),
    [
        pytest.param(
            Proposal(
                recipe=recipe_of(),
                asked=("f1",),
                tokens=7,
                money=0.5,
                refused=Refusal(reason=Reason.MODEL_GAVE_UP, detail="it needs a database"),
            ),
            "model-gave-up",
            "it needs a database",
            id="no recipe",
        ),
        pytest.param(
            Proposal(recipe=recipe_of(addopts=("-k", "not slow")), asked=("f1",), tokens=7, money=0.5),
            "model-weakens-tests",
            "-k",
            id="a recipe that selects tests",
        ),
        pytest.param(
            Proposal(recipe=recipe_of(env={"PYTEST_ADDOPTS": "--lf"}), asked=("f1",), tokens=7, money=0.5),
            "model-weakens-tests",
            "PYTEST_ADDOPTS",
            id="a variable that pytest reads",
        ),
        pytest.param(
            Proposal(recipe=recipe_of(addopts=("-m", "fast")), written=True, tokens=7, money=0.5),
            "model-weakens-tests",
            "-m",
            id="a recipe that was remembered, which a model wrote for another candidate",
        ),
    ],
)
def test_what_is_void_is_an_attempt_with_its_cost_and_builds_nothing(
    settings: Settings, tmp_path: Path, proposal: Proposal, outcome: str, said: str
) -> None:
    known = Known()
    shop = SimpleNamespace(settings=settings, blobs=BLOBS)  # nothing else of it is asked for
    help_ = Help(workshop=shop, memo=known.memo(), memory=Memory(), pythons=())
    found = attempt(help_, case_of(PROJECT, tmp_path, TESTS), proposal, rung="structured", past=[made("declared")])
    assert (found.outcome, found.tokens, found.money, found.number, found.steps) == (outcome, 7, 0.5, 1, ())
    assert said in found.detail
    assert attempt_of(known.facts[-1]) == found


def test_what_was_never_asked_ends_the_rung_where_no_endpoint_is_set(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = recorded_desk(["small"], BLOBS, settings.endpoint)
    prompt = Prompt(name="p", version="1", text="hello")
    request = Request(model="small", messages=(Message(role="user", content="hello"),), max_tokens=5)
    climbed = []

    def asks(question: Question, help_: Help) -> Proposal | None:
        climbed.append("structured")
        help_.models.ask(help_.memo, request, repository=question.repository, prompt=prompt)
        pytest.fail("nobody could have answered")

    def after(_question: Question, _help: Help) -> Proposal | None:
        climbed.append("agent")
        return None

    monkeypatch.setitem(RUNGS, "structured", asks)
    monkeypatch.setitem(RUNGS, "agent", after)
    order = ("structured", "agent")
    ladder = settings.measure.ladder.model_copy(
        update={"order": order, "budgets": dict.fromkeys(order, Budget(attempts=2, seconds=9.0))}
    )
    measure = settings.measure.model_copy(update={"ladder": ladder})
    shop = SimpleNamespace(settings=settings.model_copy(update={"measure": measure}), blobs=BLOBS)
    known = Known()
    found = install(shop, known.memo(), case_of(PROJECT, tmp_path, TESTS), models=desk)
    assert (found.attempts, known.facts, climbed[:2]) == ((), [], ["structured", "agent"])
    assert not desk.answers
    with pytest.raises(Unasked):
        desk.ask(known.memo(), request, repository="octo/demo", prompt=prompt)
