"""Language models in a run: when they are asked, who is shown to them, and what is said of them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from miner.core.records import Visibility
from miner.core.settings import Settings, load_settings
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
