"""The canary of language models: it is well where the endpoint is, whatever names it lists, and ill where it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tiny_endpoint import KEY, Said, TinyEndpoint

from miner.core.errors import ModelFault
from miner.core.hashing import hash_of
from miner.core.memo import utc_now
from miner.core.reasons import Reason
from miner.core.records import Fact, FactKey
from miner.core.settings import load_settings
from miner.jobs.canaries import Service, canaries, service_of_fact

pytestmark = pytest.mark.loopback
Ask = Callable[[], None]


@pytest.fixture
def server() -> Iterator[TinyEndpoint]:
    with TinyEndpoint() as server:
        yield server


@pytest.fixture
def ask(server: TinyEndpoint, monkeypatch: pytest.MonkeyPatch) -> Ask:
    for name, value in {**server.environ, "OPENAI_MODEL": "an-alias"}.items():
        monkeypatch.setenv(name, value)
    return canaries(load_settings(overrides=["run.max_cost=1", "endpoint.timeout_s=2"], environ={}))[Service.MODEL]


@pytest.mark.parametrize(
    "listed",
    [
        Said({"object": "list", "data": [{"id": "vendor/an-alias"}]}),
        Said({"object": "list", "data": []}),
        Said({"models": ["a"]}),
        Said([]),
        Said({"error": "no such page"}, 404),
        Said(b"<html>not here</html>", 404),
        Said(b"", 405),
        Said({"error": "this key may not list models"}, 403),
    ],
    ids=["other names", "no names", "another shape", "a list", "404", "404 with a page", "405", "403"],
)
def test_an_endpoint_that_answers_is_well(server: TinyEndpoint, ask: Ask, listed: Said) -> None:
    server.listed = listed
    ask()
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (500, b"", Reason.MODEL_ERROR),
        (501, b"", Reason.MODEL_ERROR),
        (502, b"<html>", Reason.MODEL_ERROR),
        (503, {}, Reason.MODEL_ERROR),
        (529, {}, Reason.MODEL_ERROR),
        (302, b"", Reason.MODEL_ERROR),
        (400, {}, Reason.MODEL_ERROR),
        (204, b"", Reason.MODEL_ERROR),
        (200, b"<html>log in to this network</html>", Reason.MODEL_ERROR),
        (200, b"", Reason.MODEL_ERROR),
        (200, f"<html>{KEY}".encode(), Reason.MODEL_ERROR),
        (429, {}, Reason.MODEL_LIMITED),
        (402, {}, Reason.MODEL_LIMITED),
        (401, {}, Reason.MODEL_LOGIN),
    ],
)
def test_an_endpoint_that_is_ill_says_how(
    server: TinyEndpoint, ask: Ask, status: int, body: Any, reason: Reason
) -> None:
    server.listed = Said(body, status)
    with pytest.raises(ModelFault) as fault:
        ask()
    assert (fault.value.reason, KEY in str(fault.value)) == (reason, False)
    assert len(server.headers) == 1


def test_nobody_there_is_unreachable(monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with pytest.raises(ModelFault, match="no answer") as fault:
        ask()
    assert fault.value.reason is Reason.MODEL_UNREACHABLE


@pytest.mark.parametrize(
    ("producer", "service"),
    [
        ("installers.models", Service.MODEL),
        ("installers.agent", Service.MODEL),
        ("installers.lock", Service.INDEX),
        ("installers", Service.INDEX),
        ("pypi.discover", Service.INDEX),
        ("github", Service.FORGE),
    ],
)
def test_a_fact_puts_the_service_in_doubt_that_it_rests_on(producer: str, service: Service) -> None:
    key = FactKey(kind="x", subject="a", input_hash=hash_of({}), producer=producer, epoch=1)
    assert service_of_fact(Fact(key=key, observed_at=utc_now(), outcome="no")) is service
