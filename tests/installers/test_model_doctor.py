"""What `doctor` says of an endpoint: variables, prices, its list, a reply of a form, a call of a tool, what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from endpoint import Endpoint, faults, malformed, replies
from endpoint.completion import call, completion
from endpoint.exchange import Behaviour, answer
from typer.testing import CliRunner

from installers.models.doctor import checks
from miner.cli import app
from miner.core.settings import Settings, load_settings
from miner.sandbox.doctor import Check

MODEL, KEY = "a-model", "sk-planted-0123456789"
FORM = replies.structured({"word": "ready", "number": 7})
TOOL = replies.tool_calls(("report", {"word": "ready"}))
TEXT = replies.text("```call d0c70a read\nready\n```")


def settings(*overrides: str) -> Settings:
    price = f'prices."{MODEL}"={{input=1.0, output=4.0}}'
    return load_settings(overrides=[price, "endpoint.timeout_s=2.0", *overrides], environ={})


def environ(url: str, **more: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY, "OPENAI_MODEL": MODEL, **more}


def looked(script: Sequence[Behaviour], *overrides: str, cap: float = 0.01, models=None, keys=None) -> dict[str, Check]:
    with Endpoint(script, models=models, keys=keys) as endpoint:
        found = checks(settings(*overrides), environ(endpoint.url), cap=cap)
    assert KEY not in repr(found)
    assert all(check.ok or check.next_step for check in found)
    return {check.name: check for check in found}


def test_an_endpoint_that_does_everything_is_well() -> None:
    found = looked([FORM, TOOL], models=[MODEL, "another"], keys=[KEY])
    assert list(found) == [
        "endpoint",
        "models",
        "endpoint answers",
        f"{MODEL}: reply of a form",
        f"{MODEL}: call of a tool",
        "usage",
        "latency",
        "cost of this check",
    ]
    assert all(check.ok for check in found.values())
    assert found["endpoint"].detail.endswith("; OPENAI_API_KEY is set")
    assert found["endpoint answers"].detail == "yes; its list has 2 models"
    assert "$0.000000" not in found["cost of this check"].detail
    assert found["usage"].detail == "reported"


def test_without_an_endpoint_it_says_how_to_set_one() -> None:
    (check,) = checks(settings(), {})
    assert (check.ok, check.detail) == (False, "OPENAI_BASE_URL is not set")
    assert "export OPENAI_BASE_URL=" in check.next_step


@pytest.mark.parametrize(
    "url",
    [
        "host/v1",
        "ftp://host/v1",
        "http://",
        "http://host:port/v1",
        "http://me:planted@127.0.0.1:1/v1",
        "http://127.0.0.1:1/v1?api-key=planted",
        "http://127.0.0.1:1/v1#planted",
    ],
)
def test_an_address_that_is_none_is_said_and_not_shown(url: str) -> None:
    (check,) = checks(settings(), environ(url))
    assert (check.ok, check.detail.partition(" is no plain")[0]) == (False, "OPENAI_BASE_URL")
    assert "planted" not in repr(check)


def test_of_an_address_scheme_and_host_are_shown_alone() -> None:
    found = checks(settings(), environ("http://127.0.0.1:1/planted/v1"))
    assert found[0].detail == "http://127.0.0.1:1; OPENAI_API_KEY is set"
    assert "planted" not in repr(found)


def test_a_model_without_a_price_is_not_asked() -> None:
    with Endpoint([]) as endpoint:
        found = checks(settings(), environ(endpoint.url, OPENAI_MODEL="unknown"))
    assert [check.ok for check in found] == [True, False, True]
    assert "no price for the model unknown" in found[1].detail
    assert '[prices."unknown"]' in found[1].next_step


def test_without_a_model_it_says_how_to_name_one() -> None:
    with Endpoint([]) as endpoint:
        found = checks(settings(), environ(endpoint.url, OPENAI_MODEL=""))
    assert [check.ok for check in found] == [True, False, True]
    assert "OPENAI_MODEL" in found[1].next_step


def test_nobody_at_the_address_ends_it() -> None:
    found = checks(settings(), environ("http://127.0.0.1:1/v1"))
    assert [check.ok for check in found] == [True, True, False]
    assert "OPENAI_BASE_URL" in found[2].next_step


def test_a_wrong_key_ends_it() -> None:
    found = looked([], keys=["another"])
    assert found["endpoint answers"].detail.endswith("refuses the key (401)")
    assert "OPENAI_API_KEY" in found["endpoint answers"].next_step


def test_a_model_that_is_not_in_the_list_ends_it() -> None:
    found = looked([], models=["another"])
    assert found["endpoint answers"].detail == f"yes; its list has 1 models, and no {MODEL}"
    assert found["endpoint answers"].next_step == "name one of another"


FAULTS = {
    "prose": ([replies.text("sure, ready and 7"), TOOL], "reply of a form", "no JSON: 'sure, ready and 7'"),
    "another form": ([replies.structured({"word": 7}), TOOL], "reply of a form", "not of the form"),
    "a declined reply": ([replies.refusal(), TOOL], "reply of a form", "it declines"),
    "a cut reply": ([replies.length(), TOOL], "reply of a form", "the reply was cut (length, 256 tokens)"),
    "no form": ([faults.form_unsupported(), replies.text("ready, 7"), TOOL], "reply of a form", "no JSON: 'ready, 7'"),
    "a refusal": ([faults.context_exceeded(), TOOL], "reply of a form", "refused"),
    "text for a call": ([FORM, replies.text("report(ready)")], "call of a tool", "it made none: 'report(ready)'"),
    "another tool": ([FORM, replies.tool_calls(("other", {}))], "call of a tool", "it made other"),
    "two calls": ([FORM, replies.tool_calls(*[("report", {"word": "x"})] * 2)], "call of a tool", "report, report"),
    "other arguments": (
        [FORM, replies.tool_calls(("report", '{"word": 7}'))],
        "call of a tool",
        "the arguments are not",
    ),
    "an error": ([faults.server_error(), faults.server_error(), TOOL], "reply of a form", "500"),
    "a wait": ([faults.rate_limited(600), TOOL], "reply of a form", "429"),
    "a reply that is none": ([malformed.not_json(), malformed.not_json(), TOOL], "reply of a form", ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_is_said_and_the_rest_is_looked_at(name: str) -> None:
    script, check, detail = FAULTS[name]
    found = looked(script)
    wrong = found.pop(f"{MODEL}: {check}")
    assert not wrong.ok
    assert detail in wrong.detail
    assert all(one.ok for one in found.values())


def test_an_endpoint_without_tools_is_asked_in_text() -> None:
    found = looked([FORM, faults.tools_unsupported(), TEXT])
    assert found[f"{MODEL}: no tools, call in text"].ok
    spoken = looked([FORM, TEXT], f'measure.model.agent.text=["{MODEL}"]')
    assert spoken[f"{MODEL}: call of a tool, in text"].ok


def test_usage_that_is_not_reported_is_told_and_counts_at_the_bound() -> None:
    def silent(message: dict[str, object]) -> Behaviour:
        return lambda asked: answer({k: v for k, v in completion(asked, message).items() if k != "usage"})

    said = {"tool_calls": [call("report", {"word": "ready"}, "c")]}
    found = looked([silent({"content": '{"word": "ready", "number": 7}'}), silent(said)])
    assert all(check.ok for check in found.values())
    assert f"not reported by {MODEL}" in found["usage"].detail


def test_it_costs_no_more_than_its_cap() -> None:
    found = looked([], cap=0.000001)
    assert not found[f"{MODEL}: reply of a form"].ok
    assert found[f"{MODEL}: reply of a form"].next_step == "give the check more with --max-cost"
    assert found["cost of this check"].detail.startswith("0 tokens, $0.000000")


def test_recorded_replies_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text('{"request": "x", "ordinal": 0, "reply": {"text": "hi"}}\n')
    (check,) = checks(settings(f"endpoint.replay={file}"), {})
    assert (check.ok, check.detail) == (True, "1 recorded replies of replies.jsonl stand for one")
    file.write_text("nonsense\n")
    (check,) = checks(settings(f"endpoint.replay={file}"), {})
    assert not check.ok


def test_the_command_ends_with_its_own_code_where_something_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    shown = CliRunner().invoke(app, ["doctor", "--model"])
    assert shown.exit_code == 11
    assert "NOT OK endpoint: OPENAI_BASE_URL is not set" in shown.output
