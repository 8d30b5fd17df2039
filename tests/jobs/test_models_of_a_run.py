"""Language models in a run: when they are asked, who is shown to them, and what is said of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from installers.attempt import ATTEMPT, PRODUCER, observation_of
from installers.interface import Attempt
from installers.memory import delta, fingerprint
from miner.core.blobs import BlobStore
from miner.core.hashing import hash_of
from miner.core.records import Fact, FactKey, Recipe, Visibility
from miner.core.settings import Settings, load_settings
from miner.core.spending import Caps, OverCap
from miner.jobs.canaries import Service, canaries
from miner.jobs.context import Context, open_context
from miner.jobs.models import models_line
from miner.jobs.render_status import status_text
from miner.jobs.status import status

URL = "http://127.0.0.1:9/v1"
ON = {"OPENAI_BASE_URL": URL, "OPENAI_API_KEY": "sk-planted-0000", "OPENAI_MODEL": "small,large"}
PRICED = ("run.max_cost=2", 'prices."small".input=1', 'prices."small".output=2', 'prices."large".input=1')
PAIR = "pypi__idna-3.4"


@dataclass(frozen=True)
class Pair:
    """A candidate as discovery hands it over."""

    visibility: Visibility | None
    name: str = "idna"

    @property
    def origin(self) -> dict[str, str]:
        return {"name": "idna", "old": "3.3", "new": "3.4"}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch):
    def set_to(values: dict[str, str]) -> None:
        for name in ON:
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    set_to({})
    return set_to


@pytest.fixture
def with_settings(tmp_path):
    def load(*more: str) -> Settings:
        return load_settings(None, [f"paths.work={json.dumps(str(tmp_path))}", "mine.source=pypi", *more], {})

    return load


def run(settings: Settings, look=lambda _context: None):
    with open_context(settings, "run") as context:
        return look(context)


ALL = (*PRICED, 'prices."large".output=2')


@pytest.mark.parametrize(
    ("values", "more", "because"),
    [
        pytest.param({}, ALL, "OPENAI_BASE_URL names no endpoint", id="no endpoint"),
        pytest.param({**ON, "OPENAI_MODEL": ""}, ALL, "names a model", id="no model"),
        pytest.param(ON, ALL[1:], "run.max_cost is not set", id="no cap"),
        pytest.param(ON, (*ALL, "run.max_cost=0"), "run.max_cost is 0", id="a cap of nothing"),
        pytest.param(ON, (*ALL, "run.max_cost_month=0"), "run.max_cost_month is 0", id="nothing left this month"),
    ],
)
def test_why_none_is_asked_is_one_sentence(environment, with_settings, values, more, because: str) -> None:
    environment(values)

    def look(context: Context) -> None:
        line = models_line(context)
        assert line.startswith("language models: none is asked (")
        assert because in line
        assert context.models is None
        assert Service.MODEL not in canaries(context.settings)

    run(with_settings(*more), look)


def test_where_all_is_set_they_are_asked_in_order_and_the_run_notes_which(environment, with_settings) -> None:
    environment(ON)

    def look(context: Context) -> None:
        assert models_line(context) == "language models: $0.0000 of $2.00 spent"
        assert context.models.models == ("small", "large")
        assert context.settings.measure.model.order == ("small", "large")
        noted = context.ledger.runs()[-1].settings
        assert json.loads(noted)["measure"]["model"]["order"] == ["small", "large"]
        assert "sk-planted" not in noted
        assert URL not in noted
        assert Service.MODEL in canaries(context.settings)

    run(with_settings(*ALL), look)


def test_a_model_without_a_price_is_said_before_anything_is_asked(environment, with_settings) -> None:
    environment({**ON, "OPENAI_MODEL": "unheard-of"})
    with pytest.raises(Exception, match="no price for the model unheard-of"):
        run(with_settings(*ALL), lambda _context: pytest.fail("it has begun"))


def test_a_run_that_is_repeated_without_an_endpoint_knows_the_replies_of_the_one_before(
    environment, with_settings
) -> None:
    environment(ON)
    run(with_settings(*ALL))
    environment({})

    def look(context: Context) -> None:
        assert "none is asked" in models_line(context)
        assert (context.models.models, context.models.answers) == (("small", "large"), False)

    run(with_settings(*ALL), look)


@pytest.mark.parametrize(
    ("visibility", "more", "shown"),
    [
        (Visibility.PUBLIC, (), True),
        (Visibility.PRIVATE, (), False),
        (Visibility.HOLD_OUT, (), False),
        (Visibility.HOLD_OUT, ("endpoint.private=true",), True),
    ],
)
def test_who_is_shown_to_an_endpoint(environment, with_settings, visibility, more, shown: bool) -> None:
    environment(ON)

    def look(context: Context) -> bool:
        context.source.subject = lambda _item: PAIR
        context.register([Pair(visibility)])
        return context.models_for(PAIR) is not None

    pairs = 'pairs=[{name="idna", old="3.3", new="3.4"}]'
    assert run(with_settings(*ALL, *more, pairs), look) is shown


def test_status_shows_the_money_of_a_run(environment, with_settings) -> None:
    settings = with_settings(*ALL)
    found = status(settings)
    assert "models" not in status_text(found)
    spent = found.spent.model_copy(update={"money": 0.125})
    shown = status_text(found.model_copy(update={"spent": spent, "max_cost": 2.0, "state": "running"}))
    assert "models    $0.1250 of $2.00" in shown


def test_a_month_is_repeated_with_the_models_that_were_asked_for_it_and_not_those_of_another_month(
    environment, with_settings
) -> None:
    month = "mine.month=2025-0"
    environment({**ON, "OPENAI_MODEL": "old"})
    run(with_settings(*ALL, 'prices."old".input=1', 'prices."old".output=1', f"{month}5"))
    environment(ON)
    run(with_settings(*ALL, f"{month}6"))
    environment({"OPENAI_MODEL": "left-in-the-shell"})
    hashes = set()

    def look(context: Context) -> None:
        assert context.models.models == ("old",)
        hashes.add(context.settings.hash)
        hashes.update(one.settings_hash for one in context.ledger.runs() if json.loads(one.settings)["mine"]["month"])

    run(with_settings(*ALL, f"{month}5"), look)
    assert len(hashes) == 2, "May has one hash of settings, with and without an endpoint; June has another one"


@pytest.mark.parametrize("visibility", [Visibility.PRIVATE, Visibility.HOLD_OUT])
def test_what_a_model_said_of_a_candidate_that_is_private_now_is_still_known(
    environment, with_settings, visibility: Visibility
) -> None:
    environment(ON)
    run(with_settings(*ALL))
    environment({})

    def look(context: Context) -> None:
        context.source.subject = lambda _item: PAIR
        context.register([Pair(visibility)])
        assert context.models_for(PAIR) is not None

    run(with_settings(*ALL), look)


def attempt_fact(candidate: str, number: int, *, asked: tuple[str, ...] = (), extra: str = "") -> Fact:
    declared = Recipe(python="3.11", requirements=("pytest",), build_backend="x")
    recipe = declared.model_copy(update={"requirements": ("pytest", extra)}) if extra else declared
    made = Attempt(
        repository="octo/demo",
        rung="structured" if asked else "declared",
        number=number,
        recipe=recipe,
        declared=fingerprint(declared),
        fingerprint=fingerprint(recipe),
        delta=delta(declared, recipe),
        cutoff=datetime(2023, 1, 1, tzinfo=UTC),
        outcome="ok" if extra else "lock-failed",
        good=bool(extra),
        asked=asked,
        written=bool(asked),
    )
    seen = observation_of(made, BlobStore("memory://models-of-a-run"))
    key = FactKey(kind=ATTEMPT, subject=candidate, input_hash=hash_of(made), producer=PRODUCER.name, epoch=1)
    return Fact(key=key, observed_at=datetime.now(UTC), **seen.model_dump())


def test_a_candidate_that_models_were_asked_about_remembers_what_there_was_then(environment, with_settings) -> None:
    """Else the memory that its siblings make would be tried first, and another question asked, and paid."""
    environment(ON)

    def first(context: Context) -> None:
        context.store(attempt_fact("a", 0, extra="pyyaml"))
        context.store(attempt_fact("b", 0, asked=("f1",), extra="attrs"))

    run(with_settings(*ALL), first)

    def again(context: Context) -> None:
        learned = {lesson.candidate for lesson in context.memory.lessons}
        assert learned == {"a", "b"}
        assert context.memory_for("c") == context.memory
        assert context.memory_for("b").lessons == ()
        assert [lesson.written for lesson in context.memory.lessons if lesson.candidate == "b"] == [True]

    run(with_settings(*ALL), again)


def test_parts_of_one_run_share_its_cap_and_the_next_run_has_its_own(environment, with_settings) -> None:
    environment(ON)
    settings = with_settings(*ALL)
    for _ in range(2):  # each ends before it is done

        def spend(context: Context) -> None:
            reserved = context.spending.reserve(context.run_id, "octo/demo", "small", 10**9, Caps())
            context.spending.settle(reserved, 9 * 10**8)
            context.ended = "faulted"

        run(settings, spend)

    def third(context: Context) -> None:
        assert models_line(context) == "language models: $1.8000 of $2.00 spent"
        with pytest.raises(OverCap, match=r"run.max_cost is \$2"):
            context.models._purse.reserve("octo/demo", "small", 3 * 10**8, context.stop)
        context.ended = "done"

    run(settings, third)
    run(settings, lambda context: context.models._purse.reserve("octo/demo", "small", 3 * 10**8, context.stop))
