"""The endpoint itself: keys, models, scripts, what is recorded; and each behaviour does on the wire what it says."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import requests

from endpoint import Endpoint, constructors, faults, hostile, last_again, load_script, malformed, repeated, replies
from endpoint.conftest import HELLO, Ask

TOOL = {
    "type": "function",
    "function": {
        "name": "run",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}


def test_usage_is_one_token_for_four_bytes(ask: Ask) -> None:
    with Endpoint([replies.text("12345678")]) as endpoint:
        usage = ask(endpoint).json()["usage"]
        read = json.dumps({"messages": HELLO}, separators=(",", ":"))
    assert usage["prompt_tokens"] == -(-len(read) // 4)
    assert usage["completion_tokens"] == -(-len('{"content":"12345678"}') // 4)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens"] < len(endpoint.asked[0].body)


def test_keys_and_models_are_checked_as_documented(ask: Ask, session: requests.Session) -> None:
    with Endpoint([replies.text("x")], keys=["right-key-1"], models=["a-model"]) as endpoint:
        assert ask(endpoint, key="").status_code == 401
        wrong = ask(endpoint, key="wrong-key-1").json()["error"]
        assert (wrong["code"], "wrong-key-1" in wrong["message"]) == ("invalid_api_key", False)
        unknown = ask(endpoint, key="right-key-1", model="another")
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
        assert ask(endpoint, key="right-key-1").status_code == 200
        assert session.get(f"{endpoint.url}/models", timeout=5).status_code == 401
        known = session.get(f"{endpoint.url}/models", headers={"Authorization": "Bearer right-key-1"}, timeout=5).json()
        assert [model["id"] for model in known["data"]] == ["a-model"]
        assert [asked.key for asked in endpoint.asked] == ["", "wrong-key-1", "right-key-1", "right-key-1"]
        assert session.get(f"{endpoint.url}/files", timeout=5).status_code == 404


def test_script_goes_on_from_request_to_request_and_its_end_is_a_mistake(ask: Ask) -> None:
    endpoint = Endpoint(repeated(faults.server_error(), 2, replies.text("at last")))
    endpoint.start()
    assert [ask(endpoint).status_code for _ in range(3)] == [500, 500, 200]
    assert ask(endpoint).status_code == 500
    with pytest.raises(IndexError, match="3 replies"):
        endpoint.__exit__(None, None, None)


def test_script_may_be_a_function_of_the_request(ask: Ask) -> None:
    with Endpoint(lambda asked: replies.text(asked.model) if asked.number else faults.overloaded()) as endpoint:
        assert ask(endpoint).status_code == 503
        assert ask(endpoint).json()["choices"][0]["message"]["content"] == "a-model"


def test_last_behaviour_may_be_repeated(ask: Ask) -> None:
    with Endpoint(last_again([faults.overloaded(), replies.text("x")])) as endpoint:
        assert [ask(endpoint).status_code for _ in range(4)] == [503, 200, 200, 200]


@pytest.mark.parametrize("name", constructors())
def test_behaviour_says_what_it_does_and_where_that_is_known_from(name: str) -> None:
    said = constructors()[name].__doc__ or ""
    assert said[:3].strip()
    assert "https://" in said


@pytest.mark.parametrize(
    ("behaviour", "status", "retry_after"),
    [
        (faults.rate_limited(), 429, None),
        (faults.rate_limited(2), 429, "2"),
        (faults.odd_retry_after("soon"), 429, "soon"),
        (faults.insufficient_quota(), 429, None),
        (faults.payment_required(), 402, None),
        (faults.server_error(), 500, None),
        (faults.bad_gateway(), 502, None),
        (faults.overloaded(), 503, None),
        (faults.error_in_200(), 200, None),
        (faults.login_refused(), 401, None),
        (faults.forbidden(), 403, None),
        (faults.model_not_found(), 404, None),
        (faults.context_exceeded(), 400, None),
        (malformed.html(), 200, None),
    ],
)
def test_status_and_wait(behaviour: Any, status: int, retry_after: str | None, ask: Ask) -> None:
    with Endpoint([behaviour]) as endpoint:
        reply = ask(endpoint)
    assert (reply.status_code, reply.headers.get("Retry-After")) == (status, retry_after)


def test_wait_as_a_date(ask: Ask) -> None:
    with Endpoint([faults.rate_limited(60, date=True)]) as endpoint:
        assert ask(endpoint).headers["Retry-After"].endswith("GMT")


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (faults.never_answers(), requests.ReadTimeout),
        (faults.stalls(), requests.ConnectionError),
        (faults.connection_closed(), requests.ConnectionError),
        (faults.connection_reset(), requests.ConnectionError),
        (faults.cut(), requests.exceptions.ChunkedEncodingError),
        (faults.cut_chunks(), requests.exceptions.ChunkedEncodingError),
        (malformed.not_gzip(), requests.exceptions.ContentDecodingError),
    ],
)
def test_broken_connection(behaviour: Any, error: type[Exception], ask: Ask) -> None:
    with Endpoint([behaviour]) as endpoint, pytest.raises(error):
        ask(endpoint, wait_s=0.3)


def test_reset_is_one(ask: Ask) -> None:
    with Endpoint([faults.connection_reset()]) as endpoint, pytest.raises(requests.ConnectionError, match="reset"):
        ask(endpoint)


def test_blank_lines_come_for_ever_each_in_time(session: requests.Session) -> None:
    with Endpoint([faults.drips()]) as endpoint:
        sent = {"model": "m", "messages": HELLO}
        url = f"{endpoint.url}/chat/completions"
        with session.post(url, json=sent, stream=True, timeout=0.5) as reply:
            started, lines = time.monotonic(), reply.iter_content(1)
            assert b"".join(next(lines) for _ in range(15)) == b"\n" * 15
            assert time.monotonic() - started > 0.6


@pytest.mark.parametrize("behaviour", [malformed.huge(3), malformed.huge_chunks(3), malformed.bomb(3)])
def test_large_answer_is_a_completion(behaviour: Any, ask: Ask) -> None:
    with Endpoint([behaviour]) as endpoint:
        assert len(ask(endpoint).json()["choices"][0]["message"]["content"]) == 3_000_000


@pytest.mark.parametrize(
    ("behaviour", "parameter"),
    [
        (faults.max_tokens_unsupported(), "max_tokens"),
        (faults.max_completion_tokens_unsupported(), "max_completion_tokens"),
        (faults.temperature_unsupported(), "temperature"),
    ],
)
def test_parameter_that_is_not_taken(behaviour: Any, parameter: str, ask: Ask) -> None:
    with Endpoint(behaviour) as endpoint:
        assert ask(endpoint, **{parameter: 1}).status_code == 400
        assert ask(endpoint).status_code == 200


def test_reply_fits_the_form_and_violations_do_not(ask: Ask) -> None:
    schema = {
        "type": "object",
        "properties": {
            "python": {"type": "string", "enum": ["3.11", "3.12"]},
            "names": {"type": "array", "items": {"type": "string"}},
            "why": {"type": ["string", "null"]},
        },
        "required": ["python", "names", "why"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "recipe", "strict": True, "schema": schema}}
    made = [
        replies.fitting(names=["a"]),
        hostile.missing_field(),
        hostile.wrong_type(),
        hostile.extra_field(),
        hostile.injected("command"),
    ]
    with Endpoint(made) as endpoint:
        found = [
            json.loads(ask(endpoint, response_format=form).json()["choices"][0]["message"]["content"]) for _ in made
        ]
    assert found[0] == {"python": "3.11", "names": ["a"], "why": None}
    assert set(found[1]) == {"names", "why"}
    assert isinstance(found[2]["python"], dict)
    assert set(found[3]) - set(schema["properties"]) == {"post_install"}
    assert found[4] == {"python": "3.11", "names": ["requests; rm -rf /"], "why": None}


def test_calls_of_tools(ask: Ask) -> None:
    made = [
        replies.tool_calls(("run", {"command": "ls"}), ("run", "{")),
        malformed.same_ids(),
        malformed.no_id(),
        hostile.injected_call("option", "run"),
    ]
    with Endpoint(made) as endpoint:
        found = [ask(endpoint, tools=[TOOL]).json()["choices"][0] for _ in made]
    assert {choice["finish_reason"] for choice in found} == {"tool_calls"}
    calls = [[(call["id"], call["function"]["arguments"]) for call in one["message"]["tool_calls"]] for one in found]
    assert calls[0] == [("call_0_0", '{"command": "ls"}'), ("call_0_1", "{")]
    assert [ident for ident, _ in calls[1]] == ["call_same", "call_same"]
    assert calls[2][0][0] == ""
    assert "--index-url" in calls[3][0][1]


def test_scripts_are_read_from_files(tmp_path: Path) -> None:
    file = tmp_path / "script.toml"
    file.write_text(
        '[[reply]]\nbehaviour = "rate_limited"\nretry_after = 1\ntimes = 2\n\n'
        '[[reply]]\nbehaviour = "tool_calls"\nwanted = [["run", {command = "ls"}]]\n',
        encoding="utf-8",
    )
    assert len(load_script(file)) == 3
    as_json = tmp_path / "script.json"
    as_json.write_text(json.dumps({"reply": [{"behaviour": "text", "content": "hello"}]}), encoding="utf-8")
    assert len(load_script(as_json)) == 1
    for row, said in (({"behaviour": "nothing"}, "no behaviour 'nothing'"), ({"behaviour": "text", "size": 1}, "size")):
        as_json.write_text(json.dumps({"reply": [row]}), encoding="utf-8")
        with pytest.raises(ValueError, match=said):
            load_script(as_json)


def test_script_is_served_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "script.toml"
    file.write_text('[[reply]]\nbehaviour = "text"\ncontent = "hello"\n', encoding="utf-8")
    command = [sys.executable, "-m", "endpoint", "--script", str(file), "--port", "0"]
    with subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().partition(" ")[0]
        try:
            sent = {"model": "m", "messages": HELLO}
            for _ in range(2):
                reply = requests.post(f"{url}/chat/completions", json=sent, timeout=5).json()
                assert reply["choices"][0]["message"]["content"] == "hello"
            assert server.stdout.readline().startswith("200 m: 1 messages, 0 tools;")
        finally:
            server.terminate()
