"""The adapter against a real server: what it sends, what it reads, and what each way to fail means."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from desk_bench import asking
from tiny_endpoint import KEY, Said, TinyEndpoint, completion, error

from installers.models import wire
from installers.models.interface import (
    Form,
    Message,
    Reply,
    RequestRefused,
    Tool,
    ToolCall,
    Trouble,
    Usage,
)
from installers.models.openai_model import OpenAIModel
from miner.core.errors import Interrupted
from miner.core.reasons import Reason
from miner.core.settings import Endpoint

FORM = Form(name="recipe", definition={"type": "object", "additionalProperties": False})
TOOL = Tool(name="run", description="Run a command.", parameters={"type": "object"})


@pytest.fixture
def server() -> Iterator[TinyEndpoint]:
    with TinyEndpoint() as server:
        yield server


def model_of(server: TinyEndpoint, **changes: Any) -> OpenAIModel:
    return OpenAIModel(Endpoint(**{"timeout_s": 20.0, **changes}), server.environ)


def reply_to(server: TinyEndpoint, body: Any, **more: Any) -> Reply:
    server.script = lambda _: Said(body)
    return model_of(server).complete(asking(**more))


def fault_of(server: TinyEndpoint, said: Any, **changes: Any) -> Trouble:
    server.script = lambda _: said
    with pytest.raises(Trouble) as fault:
        model_of(server, **changes).complete(asking())
    return fault.value


# What is sent


def test_a_request_is_sent_as_chat_completions_want_it(server: TinyEndpoint) -> None:
    call = ToolCall(id="c1", name="run", arguments='{"command": "ls"}')
    odd = ToolCall(id="c2", name="install it!" + "x" * 99, arguments="ls -l")
    nameless = ToolCall(id="c3", name="", arguments="")
    messages = (
        Message(role="system", content="s"),
        Message(role="user", content="ü"),
        Message(role="assistant", content="", calls=(call, odd, nameless)),
        Message(role="tool", content="out", answers="c1"),
    )
    request = asking(tools=(TOOL,), form=FORM, temperature=0.7).model_copy(update={"messages": messages})
    assert model_of(server).complete(request).text == "hello"
    function = {"name": "run", "description": "Run a command.", "parameters": {"type": "object"}}
    assert server.bodies == [
        {
            "model": "small",
            "max_tokens": 100,
            "temperature": 0.7,
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "ü"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": name, "type": "function", "function": {"name": tool, "arguments": arguments}}
                        for name, tool, arguments in (
                            ("c1", "run", '{"command": "ls"}'),
                            ("c2", "install_it_" + "x" * 53, '{"not_json":"ls -l"}'),
                            ("c3", "_", '{"not_json":""}'),
                        )
                    ],
                },
                {"role": "tool", "content": "out", "tool_call_id": "c1"},
            ],
            "tools": [{"type": "function", "function": function}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "recipe", "schema": FORM.definition, "strict": True},
            },
        }
    ]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_an_endpoint_that_asks_for_no_key_gets_none(server: TinyEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    environ = {**server.environ, "OPENAI_API_KEY": ""}
    OpenAIModel(Endpoint(), environ).complete(asking())
    assert "authorization" not in server.headers[0]


def test_nothing_is_asked_again_by_itself(server: TinyEndpoint) -> None:
    fault_of(server, Said(error("later"), 500, {"Retry-After": "0"}))
    assert len(server.bodies) == 1


def test_a_redirect_is_not_followed_with_the_key(server: TinyEndpoint) -> None:
    with TinyEndpoint() as other:
        fault = fault_of(server, Said(b"", 307, {"Location": other.environ["OPENAI_BASE_URL"]}))
        assert other.bodies == []
    assert "status 307 to http://127.0.0.1" in str(fault)
    assert "/v1" not in str(fault), "what an address holds beyond its host may be secret"
    assert (fault.again, fault.free) == (False, True)


# What is read


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": "x"}, Reply(text="x")),
        ({"content": None}, Reply()),
        ({}, Reply()),
        ({"content": ""}, Reply()),
        ({"content": [{"text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}, Reply(text="ab")),
        ({"content": None, "refusal": "I will not"}, Reply(refusal="I will not")),
        ({"content": [{"type": "refusal", "refusal": "no"}]}, Reply(refusal="no")),
        ({"content": "\ud800 \u0000 ü"}, Reply(text="\\ud800 \u0000 ü")),
        ({"content": "x", "tool_calls": []}, Reply(text="x")),
        ({"content": "x", "tool_calls": None, "refusal": 5, "audio": {}}, Reply(text="x")),
    ],
    ids=["text", "null", "absent", "empty", "parts", "refusal", "refusal-part", "surrogate", "no-calls", "odd-extras"],
)  # fmt: skip
def test_contents_of_all_shapes_are_read(server: TinyEndpoint, message: Any, expected: Reply) -> None:
    usage = Usage(input_tokens=7, output_tokens=3)
    body = completion({"role": "assistant", **message})
    assert reply_to(server, body) == expected.model_copy(update={"finish": "stop", "usage": usage})


def test_calls_are_read_as_the_model_wrote_them(server: TinyEndpoint) -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "run", "arguments": '{"command": "ls"}'}},
        {"id": "b", "type": "function", "function": {"name": "read", "arguments": {"path": "x", "a": [1]}}},
        {"id": "", "function": {"name": "read", "arguments": "{not json"}},
        {"function": {"name": None, "arguments": None}},
        {"function": {"arguments": 7}},
        {"id": "a", "function": {"name": "run", "arguments": "{}"}},
    ]
    found = reply_to(server, completion({"content": None, "tool_calls": calls}), tools=(TOOL,)).calls
    assert found == (
        ToolCall(id="a", name="run", arguments='{"command": "ls"}'),
        ToolCall(id="b", name="read", arguments='{"a": [1], "path": "x"}'),
        ToolCall(id="call_2", name="read", arguments="{not json"),
        ToolCall(id="call_3", name="", arguments=""),
        ToolCall(id="call_4", name="", arguments="7"),
        ToolCall(id="a_5", name="run", arguments="{}"),
    )


@pytest.mark.parametrize("finish", ["length", "tool_calls", "content_filter", "something-new"])
def test_how_it_ended_is_kept(server: TinyEndpoint, finish: str) -> None:
    choice = {"finish_reason": finish, "message": {"content": "x"}}
    assert reply_to(server, completion(choices=[choice])).finish == finish


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 3}, (7, 3)),
        ({"prompt_tokens": 7, "completion_tokens": 0, "total_tokens": 7}, (7, 0)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 500}, (7, 493)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": "many"}, (7, 3)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 2}, (7, 3)),
        (None, None),
        ([], None),
        ({}, None),
        ({"prompt_tokens": -7, "completion_tokens": 3}, None),
        ({"prompt_tokens": 7, "completion_tokens": -1}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
        ({"prompt_tokens": True, "completion_tokens": 3}, None),
        ({"prompt_tokens": 7.5, "completion_tokens": 3}, None),
        ({"prompt_tokens": "7", "completion_tokens": 3}, None),
        ({"prompt_tokens": 7, "completion_tokens": 10**12}, None),
    ],
    ids=str,
)
def test_usage_that_cannot_be_true_is_none(server: TinyEndpoint, usage: Any, expected: tuple[int, int] | None) -> None:
    found = reply_to(server, completion(usage=usage)).usage
    assert (found and (found.input_tokens, found.output_tokens)) == expected


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the answer is empty"),
        (b"<html><body>busy</body></html>", "the answer is HTML"),
        (b'{"choices": [{"mess', "the answer is no JSON"),
        (b"\xff\xfe\x00", "the answer is not UTF-8"),
        (b"[" * 100_000, "the answer is no JSON"),
        (b"data: {}\n\ndata: [DONE]\n", "the answer is no JSON"),
        ([], "the answer is list, not an object"),
        (None, "the answer is NoneType, not an object"),
        ({}, "the answer holds no choice"),
        (completion(choices=[]), "the answer holds no choice"),
        (completion(choices=None), "the answer holds no choice"),
        (completion(choices={"0": {}}), "choices is dict, not a list"),
        (completion(choices=[None]), "the choice is NoneType, not an object"),
        (completion(choices=[{"message": None}]), "the message is NoneType, not an object"),
        (completion({"content": 5}), "the content is int, not a list"),
        (completion({"content": ["x"]}), "a part of the content is str, not an object"),
        (completion({"content": None, "tool_calls": {}}), "tool_calls is dict, not a list"),
        (completion({"content": None, "tool_calls": ["run"]}), "a call is str, not an object"),
        (completion({"content": None, "tool_calls": [{"id": "1"}]}), "the function of a call is NoneType"),
        (error("upstream is overloaded", code=502), "upstream is overloaded"),
    ],
)
def test_nonsense_with_status_200_is_a_fault_that_may_have_cost_something(
    server: TinyEndpoint, body: Any, said: str
) -> None:
    fault = fault_of(server, Said(body))
    assert (fault.reason, fault.again, fault.free) == (Reason.MODEL_ERROR, True, False)
    assert said in str(fault)


# Faults


@pytest.mark.parametrize(
    ("status", "body", "reason", "again", "free"),
    [
        (401, error(f"Incorrect API key provided: {KEY}"), Reason.MODEL_LOGIN, False, True),
        (403, b"", Reason.MODEL_ERROR, False, True),
        (403, error("Country, region, or territory not supported"), Reason.MODEL_ERROR, False, True),
        (404, error("The model `small` does not exist", code="model_not_found"), Reason.MODEL_LOGIN, False, True),
        (404, b"<html>not here</html>", Reason.MODEL_LOGIN, False, True),
        (402, {"message": "Insufficient Balance"}, Reason.MODEL_LIMITED, False, True),
        (429, error("Rate limit reached"), Reason.MODEL_LIMITED, True, True),
        (429, error("You exceeded your current quota", code="insufficient_quota"), Reason.MODEL_LIMITED, False, True),
        (408, b"", Reason.MODEL_ERROR, True, False),
        (409, b"", Reason.MODEL_ERROR, True, False),
        (500, error("The server had an error"), Reason.MODEL_ERROR, True, False),
        (504, b"<html>too late</html>", Reason.MODEL_ERROR, True, False),
        (502, b"<html>nobody</html>", Reason.MODEL_ERROR, True, True),
        (503, b"<html>busy</html>", Reason.MODEL_ERROR, True, True),
        (529, {"error": "overloaded"}, Reason.MODEL_ERROR, True, True),
        (501, b"", Reason.MODEL_ERROR, False, False),
        (405, b"", Reason.MODEL_ERROR, False, True),
    ],
)
def test_a_status_says_whose_fault_it_is(
    server: TinyEndpoint, status: int, body: Any, reason: Reason, again: bool, free: bool
) -> None:
    fault = fault_of(server, Said(body, status))
    assert (fault.reason, fault.again, fault.free) == (reason, again, free)
    assert f"status {status}" in str(fault)


def test_a_limit_says_how_long_to_wait(server: TinyEndpoint) -> None:
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"}
    assert fault_of(server, Said(b"", 429, {"Retry-After": "7"})).wait_s == 7
    assert fault_of(server, Said(b"", 429, headers)).wait_s == 90
    assert fault_of(server, Said(b"", 503, {"Retry-After": "3"})).wait_s == 3
    assert fault_of(server, Said(b"", 429)).wait_s is None


@pytest.mark.parametrize(
    ("status", "body", "free"),
    [
        (400, error("maximum context length is 4097 tokens, max_tokens", code="context_length_exceeded"), False),
        (400, error("flagged by a content filter", code="content_filter"), False),
        (400, error("Invalid role", param="messages[0].role"), False),
        (400, error("Unknown parameter: 'foo'", param="foo"), True),
        (403, error("Input was flagged by moderation: violence/graphic"), False),
        (403, error("no", code="content_policy_violation"), False),
        (403, {"detail": "blocked by a safety filter"}, False),
        (413, b"<html>too large</html>", True),
        (422, {"detail": [{"loc": ["body", "messages"], "msg": "field required", "input": {"tools": "x"}}]}, True),
    ],
)
def test_a_request_that_is_not_taken_is_no_fault(server: TinyEndpoint, status: int, body: Any, free: bool) -> None:
    server.script = lambda _: Said(body, status)
    with pytest.raises(RequestRefused, match=f"status {status}") as refused:
        model_of(server).complete(asking(tools=(TOOL,), form=FORM))
    assert refused.value.free is free
    assert type(refused.value) is RequestRefused
    assert len(server.bodies) == 1


def test_nobody_there_is_a_fault_that_costs_nothing() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        environ = {"OPENAI_BASE_URL": f"http://127.0.0.1:{taken.getsockname()[1]}/v1"}
    with pytest.raises(Trouble, match="no answer") as fault:
        OpenAIModel(Endpoint(), environ).complete(asking())
    assert (fault.value.reason, fault.value.again, fault.value.free) == (Reason.MODEL_UNREACHABLE, True, True)


def _closes(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)


def _cuts(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"choices": [')
    handler.connection.shutdown(socket.SHUT_RDWR)


def _lies(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Encoding: gzip\r\n\r\nnot gzip!")


def _drips(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n")
    for _ in range(600):
        handler.wfile.write(b" ")
        time.sleep(0.05)


def _drips_headers(handler: BaseHTTPRequestHandler) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 600:
        handler.wfile.write(bytes([byte]))
        time.sleep(0.05)


def _is_silent(_: BaseHTTPRequestHandler) -> None:
    time.sleep(5)


def _floods(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n")
    while True:
        handler.wfile.write(b" " * 65536)


def test_a_connection_that_closes_without_an_answer_may_have_cost_something(server: TinyEndpoint) -> None:
    fault = fault_of(server, _closes)
    assert (fault.reason, fault.again, fault.free) == (Reason.MODEL_UNREACHABLE, True, False)


@pytest.mark.parametrize(
    ("script", "said"), [(_cuts, "broke off after 13 bytes"), (_lies, "broke off"), (_floods, "more than 65536 bytes")]
)
def test_a_body_that_is_cut_or_without_end_is_a_fault(
    server: TinyEndpoint, monkeypatch: pytest.MonkeyPatch, script: Any, said: str
) -> None:
    monkeypatch.setattr(wire, "LARGEST", 65536)
    fault = fault_of(server, script)
    assert (fault.reason, fault.again, fault.free) == (Reason.MODEL_ERROR, True, False)
    assert said in str(fault)


def test_the_body_of_an_error_is_bounded_as_well(server: TinyEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LARGEST", 65536)
    bomb = gzip.compress(b" " * 10**7)
    assert "more than 65536 bytes" in str(fault_of(server, Said(bomb, 500, {"Content-Encoding": "gzip"})))


@pytest.mark.parametrize("script", [_drips, _drips_headers, _is_silent])
def test_a_deadline_holds_for_all_of_a_request(server: TinyEndpoint, script: Any) -> None:
    began = time.monotonic()
    fault = fault_of(server, script, timeout_s=0.4)
    assert time.monotonic() - began < 3
    assert (fault.reason, fault.again, fault.free) == (Reason.MODEL_UNREACHABLE, True, False)
    assert "within 0.4 s" in str(fault)


def test_a_stop_ends_a_request_under_way(server: TinyEndpoint) -> None:
    stopped = threading.Event()
    server.script = lambda _: _is_silent
    threading.Timer(0.1, stopped.set).start()
    began = time.monotonic()
    with pytest.raises(Interrupted):
        OpenAIModel(Endpoint(), server.environ, stopped=stopped).complete(asking())
    assert time.monotonic() - began < 3
