"""Which requests the endpoint takes, and how it refuses others: as the documentation of chat completions says."""

from __future__ import annotations

from typing import Any

import pytest

from endpoint import Endpoint, replies
from endpoint.conftest import HELLO, Ask
from endpoint.strict import strict_error

CALL = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ANSWERED = {"role": "tool", "tool_call_id": "call_1", "content": "done"}
TOOL = {"type": "function", "function": {"name": "run", "parameters": {"type": "object", "properties": {}}}}
NAME = {"name": {"type": "string"}}
STRICT = {"type": "object", "properties": NAME, "required": ["name"], "additionalProperties": False}


def form(schema: Any, **members: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "recipe", "strict": True, "schema": schema, **members}}


GOOD: dict[str, dict[str, Any]] = {
    "plain": {},
    "a conversation with tools": {"messages": [*HELLO, CALLED, ANSWERED], "tools": [TOOL]},
    "words beside a call": {"messages": [*HELLO, {**CALLED, "content": "I look."}, ANSWERED], "tools": [TOOL]},
    "content in parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]},
    "a strict form": {"response_format": form(STRICT)},
    "a loose form": {"response_format": form({"type": "object"}, strict=False)},
    "any JSON": {"messages": [{"role": "user", "content": "as JSON"}], "response_format": {"type": "json_object"}},
    "numbers": {"temperature": 0, "max_tokens": 1, "top_p": 0.5, "seed": 7},
}
BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"model": ""}, "you must provide a model"),
    "no messages": ({"messages": []}, "messages"),
    "an unknown role": ({"messages": [{"role": "robot", "content": "x"}]}, "Invalid value: 'robot'"),
    "no content": ({"messages": [{"role": "user"}]}, "Invalid value for 'content'"),
    "an empty assistant": ({"messages": [*HELLO, {"role": "assistant", "content": None}]}, "'content'"),
    "an answer to no call": ({"messages": [*HELLO, ANSWERED]}, "must be a response to a preceding message"),
    "a call without an answer": ({"messages": [*HELLO, CALLED, *HELLO]}, "did not have response messages: call_1"),
    "a call at the end": ({"messages": [*HELLO, CALLED]}, "did not have response messages: call_1"),
    "an answer given twice": ({"messages": [*HELLO, CALLED, ANSWERED, ANSWERED]}, "must be a response"),
    "an empty list of calls": (
        {"messages": [*HELLO, {"role": "assistant", "content": "x", "tool_calls": []}]},
        "empty array",
    ),
    "a call without an id": (
        {"messages": [*HELLO, {**CALLED, "tool_calls": [{**CALL, "id": ""}]}]},
        "Missing required parameter: 'messages[1].tool_calls[0].id'",
    ),
    "arguments as an object": (
        {"messages": [*HELLO, {**CALLED, "tool_calls": [{**CALL, "function": {"name": "run", "arguments": {}}}]}]},
        "expected a string",
    ),
    "no tools": ({"tools": []}, "Invalid 'tools'"),
    "a tool with a name of two words": (
        {"tools": [{"type": "function", "function": {"name": "run it"}}]},
        "does not match pattern",
    ),
    "a tool whose schema is none": (
        {"tools": [{"type": "function", "function": {"name": "run", "parameters": {"type": "thing"}}}]},
        "Invalid schema for function 'run'",
    ),
    "a strict tool that allows more": (
        {"tools": [{"type": "function", "function": {**TOOL["function"], "strict": True}}]},
        "'additionalProperties' is required",
    ),
    "a choice of a tool without tools": ({"tool_choice": "auto"}, "only allowed when 'tools' are specified"),
    "an unknown form": ({"response_format": {"type": "xml"}}, "Supported values are"),
    "any JSON without the word": ({"response_format": {"type": "json_object"}}, "must contain the word 'json'"),
    "a form without a name": ({"response_format": form(STRICT, name="")}, "json_schema.name"),
    "a form that allows more": (
        {"response_format": form({**STRICT, "additionalProperties": True})},
        "In context=(), 'additionalProperties' is required to be supplied and to be false",
    ),
    "a form with an optional field": ({"response_format": form({**STRICT, "required": []})}, "Missing 'name'"),
    "too hot": ({"temperature": 2.5}, "decimal out of range"),
    "a number as text": ({"temperature": "1"}, "expected a decimal"),
    "no tokens": ({"max_tokens": 0}, "integer below minimum value"),
    "both limits": ({"max_tokens": 5, "max_completion_tokens": 5}, "at the same time"),
    "an unknown parameter": ({"max_length": 5}, "Unrecognized request argument supplied: max_length"),
}


@pytest.mark.parametrize("members", GOOD.values(), ids=GOOD)
def test_request_of_the_documentation_is_answered(members: dict[str, Any], ask: Ask) -> None:
    with Endpoint([replies.text("hello")]) as endpoint:
        reply = ask(endpoint, **members)
        assert (reply.status_code, endpoint.broken) == (200, [])
        assert reply.json()["choices"][0]["message"]["content"] == "hello"


@pytest.mark.parametrize(("members", "said"), BROKEN.values(), ids=BROKEN)
def test_request_that_breaks_a_rule_is_refused(members: dict[str, Any], said: str, ask: Ask) -> None:
    with Endpoint([]) as endpoint:
        reply = ask(endpoint, **members)
        error = reply.json()["error"]
        assert (reply.status_code, error["type"]) == (400, "invalid_request_error")
        assert set(error) == {"message", "type", "param", "code"}
        assert said in error["message"]
        assert len(endpoint.broken) == len(endpoint.asked) == 1


REFUSED_SCHEMAS: dict[str, tuple[Any, str]] = {
    "no object": ({"type": "array", "items": {"type": "string"}}, 'type: "object"\''),
    "a choice at the root": ({"type": "object", "anyOf": [STRICT]}, 'type: "object"\''),
    "inside a list": ({**STRICT, "properties": {"name": {"type": "array", "items": {"type": "object"}}}}, "items"),
    "inside a choice": ({**STRICT, "properties": {"name": {"anyOf": [{"type": "object"}]}}}, "anyOf[0]"),
    "inside a definition": ({**STRICT, "$defs": {"a": {"type": "object"}}}, "'$defs', 'a'"),
    "a default": ({**STRICT, "properties": {"name": {"type": "string", "default": "x"}}}, "'default' is not permitted"),
    "oneOf": ({**STRICT, "properties": {"name": {"oneOf": [{"type": "string"}]}}}, "'oneOf' is not permitted"),
    "a list of anything": ({**STRICT, "properties": {"name": {"type": "array"}}}, "missing items"),
    "anything": ({**STRICT, "properties": {"name": {}}}, "must have a 'type'"),
    "a reference with words": (
        {**STRICT, "properties": {"name": {"$ref": "#/$defs/a", "description": "x"}}},
        "$ref cannot have keywords",
    ),
    "a required field that there is not": ({**STRICT, "required": ["name", "age"]}, "Extra required key 'age'"),
    "too many fields": (
        {
            "type": "object",
            "properties": {f"f{number}": {"type": "null"} for number in range(5001)},
            "required": [f"f{number}" for number in range(5001)],
            "additionalProperties": False,
        },
        "5001 properties",
    ),
}


@pytest.mark.parametrize(("schema", "said"), REFUSED_SCHEMAS.values(), ids=REFUSED_SCHEMAS)
def test_schema_that_is_not_strict(schema: Any, said: str) -> None:
    assert said in (strict_error(schema) or "")


def test_schema_with_all_that_strict_allows() -> None:
    inner = {"type": ["string", "null"], "enum": ["a", None], "description": "x"}
    item = {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1}
    schema = {**STRICT, "properties": {"name": item}, "$defs": {"a": {"anyOf": [STRICT, inner]}}}
    assert strict_error(schema) is None


def test_nesting_is_bounded() -> None:
    schema: dict[str, Any] = STRICT
    for _ in range(10):
        schema = {**STRICT, "properties": {"name": schema}}
    assert "levels of nesting" in (strict_error(schema) or "")


def test_body_that_is_no_json(session: Any) -> None:
    with Endpoint([]) as endpoint:
        reply = session.post(f"{endpoint.url}/chat/completions", data=b"{", timeout=5)
    assert (reply.status_code, "could not parse" in reply.json()["error"]["message"]) == (400, True)
