"""Whether a request is one that the documentation allows, and the error where it is not.

https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator, SchemaError

from endpoint.exchange import Answer, Asked, error
from endpoint.strict import strict_error

ROLES = ("developer", "system", "user", "assistant", "tool", "function")
PARAMETERS = frozenset(
    [
        "audio",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "modalities",
        "model",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    ]
)
MAX_TOOLS = 128
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NUMBERS = {"temperature": (0, 2), "top_p": (0, 1), "frequency_penalty": (-2, 2), "presence_penalty": (-2, 2)}
_COUNTS = ("max_tokens", "max_completion_tokens", "n")


class Wrong(NamedTuple):
    """What is wrong with a request: the sentence, the parameter, the code."""

    message: str
    param: str | None = None
    code: str | None = None


def refusal_of(asked: Asked) -> Answer | None:
    """Return the answer 400 to a request that breaks a rule; None for a good one."""
    try:
        value = json.loads(asked.body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        message = "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your "
        return error(400, f"{message}HTTP library correctly.)", "invalid_request_error")
    wrong = next(_wrongs(value), None)
    if wrong is None:
        return None
    return error(400, wrong.message, "invalid_request_error", code=wrong.code, param=wrong.param)


def _wrongs(value: dict[str, Any]) -> Iterator[Wrong]:
    for name in value:
        if name not in PARAMETERS:
            yield Wrong(f"Unrecognized request argument supplied: {name}", name, "unknown_parameter")
    for name in ("model", "messages"):
        if name not in value:
            yield Wrong(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
            return
    if not isinstance(value["model"], str) or not value["model"]:
        yield Wrong("you must provide a model parameter", "model")
    yield from _of_numbers(value)
    yield from _of_messages(value["messages"])
    yield from _of_tools(value)
    yield from _of_format(value)


def _of_numbers(value: dict[str, Any]) -> Iterator[Wrong]:
    for name, (least, most) in _NUMBERS.items():
        number = value.get(name)
        if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
            yield _invalid(name, "a decimal", number)
        elif number is not None and not least <= number <= most:
            rule = f"Expected a value between {least} and {most}, but got {number} instead."
            yield Wrong(f"Invalid '{name}': decimal out of range. {rule}", name, "decimal_out_of_range")
    for name in _COUNTS:
        number = value.get(name)
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            yield _invalid(name, "an integer", number)
        elif number is not None and number < 1:
            rule = f"Expected a value >= 1, but got {number} instead."
            code = "integer_below_min_value"
            yield Wrong(f"Invalid '{name}': integer below minimum value. {rule}", name, code)
    if value.get("max_tokens") is not None and value.get("max_completion_tokens") is not None:
        yield Wrong("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", "max_tokens")


def _of_messages(messages: Any) -> Iterator[Wrong]:
    if not isinstance(messages, list) or not messages:
        yield _invalid("messages", "a non-empty array", messages)
        return
    waiting: list[str] = []  # ids of calls that the next messages have to answer
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            role = message.get("role") if isinstance(message, dict) else message
            listed = ", ".join(f"'{one}'" for one in ROLES)
            yield Wrong(f"Invalid value: '{role}'. Supported values are: {listed}.", f"{where}.role", "invalid_value")
            return
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                rule = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                yield Wrong(f"Invalid parameter: {rule}", f"{where}.role")
                return
            waiting.remove(message["tool_call_id"])
        elif waiting:
            yield _unanswered(waiting)
            return
        yield from _of_content(message, where)
        if message["role"] == "assistant":
            yield from _of_calls(message, where)
            waiting = [call.get("id", "") for call in message.get("tool_calls") or () if isinstance(call, dict)]
    if waiting:
        yield _unanswered(waiting)


def _of_content(message: dict[str, Any], where: str) -> Iterator[Wrong]:
    content = message.get("content")
    if isinstance(content, str):
        return
    if isinstance(content, list) and content and all(isinstance(part, dict) and "type" in part for part in content):
        return
    if content is None and message["role"] == "assistant" and (message.get("tool_calls") or message.get("refusal")):
        return
    yield Wrong(f"Invalid value for 'content': expected a string, got {json.dumps(content)}.", f"{where}.content")


def _of_calls(message: dict[str, Any], where: str) -> Iterator[Wrong]:
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list) or not calls:
        rule = "Expected an array with minimum length 1"
        yield Wrong(f"Invalid '{where}.tool_calls': empty array. {rule}.", f"{where}.tool_calls", "empty_array")
        return
    ids = [call.get("id") if isinstance(call, dict) else None for call in calls]
    for index, call in enumerate(calls):
        at = f"{where}.tool_calls[{index}]"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(ids[index], str) or not ids[index] or call.get("type") != "function":
            yield Wrong(f"Missing required parameter: '{at}.id'.", f"{at}.id", "missing_required_parameter")
        elif ids.count(ids[index]) > 1:
            yield Wrong(f"Duplicate value for 'tool_call_id' of '{ids[index]}' in message", f"{at}.id")
        elif not isinstance(function, dict) or not _NAME.fullmatch(str(function.get("name", ""))):
            rule = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            name = f"{at}.function.name"
            yield Wrong(f"Invalid '{name}': string does not match pattern. {rule}", name, "invalid_value")
        elif not isinstance(function.get("arguments"), str):
            yield _invalid(f"{at}.function.arguments", "a string", function.get("arguments"))


def _of_tools(value: dict[str, Any]) -> Iterator[Wrong]:
    tools = value.get("tools")
    if tools is None:
        if value.get("tool_choice") is not None:
            yield Wrong("'tool_choice' is only allowed when 'tools' are specified.", "tool_choice")
        if value.get("parallel_tool_calls") is not None:
            yield Wrong("'parallel_tool_calls' is only allowed when 'tools' are specified.", "parallel_tool_calls")
        return
    if not isinstance(tools, list) or not 1 <= len(tools) <= MAX_TOOLS:
        rule = f"Expected an array of 1 to {MAX_TOOLS} items."
        yield Wrong(f"Invalid 'tools': wrong length. {rule}", "tools", "invalid_value")
        return
    for index, tool in enumerate(tools):
        where = f"tools[{index}].function"
        function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
        if not isinstance(function, dict):
            yield Wrong(f"Missing required parameter: '{where}'.", where, "missing_required_parameter")
        elif not _NAME.fullmatch(str(function.get("name", ""))):
            yield Wrong(f"Invalid '{where}.name': string does not match pattern.", f"{where}.name", "invalid_value")
        else:
            yield from _of_parameters(function, f"{where}.parameters")


def _of_parameters(function: dict[str, Any], where: str) -> Iterator[Wrong]:
    parameters = function.get("parameters", {"type": "object", "properties": {}})
    name = f"Invalid schema for function '{function['name']}': "
    problem = _schema_error(parameters)
    if problem is None and parameters.get("type") != "object":
        problem = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{parameters.get('type')}\"'."
    if problem is None and function.get("strict"):
        problem = strict_error(parameters)
    if problem is not None:
        yield Wrong(f"{name}{problem}", where, "invalid_function_parameters")


def _of_format(value: dict[str, Any]) -> Iterator[Wrong]:
    form = value.get("response_format")
    if form is None:
        return
    kind = form.get("type") if isinstance(form, dict) else None
    if kind not in ("text", "json_object", "json_schema"):
        rule = "Supported values are: 'json_object', 'json_schema', and 'text'."
        yield Wrong(f"Invalid value: '{kind}'. {rule}", "response_format.type", "invalid_value")
    elif kind == "json_object" and "json" not in json.dumps(value["messages"]).lower():
        rule = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        yield Wrong(rule, "messages")
    elif kind == "json_schema":
        yield from _of_json_schema(form.get("json_schema"))


def _of_json_schema(given: Any) -> Iterator[Wrong]:
    where = "response_format.json_schema"
    if not isinstance(given, dict) or not _NAME.fullmatch(str(given.get("name", ""))):
        yield Wrong(f"Missing required parameter: '{where}.name'.", f"{where}.name", "missing_required_parameter")
        return
    schema = given.get("schema")
    problem = _schema_error(schema) or (strict_error(schema) if given.get("strict") else None)
    if problem is not None:
        yield Wrong(f"Invalid schema for response_format '{given['name']}': {problem}", "response_format")


def _schema_error(schema: Any) -> str | None:
    if not isinstance(schema, dict):
        return f"{json.dumps(schema)} is not of type 'object'."
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as found:
        return f"{found.message}."
    return None


def _unanswered(waiting: list[str]) -> Wrong:
    rule = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    missing = ", ".join(waiting)
    return Wrong(f"{rule} The following tool_call_ids did not have response messages: {missing}", "messages")


def _invalid(name: str, wanted: str, value: Any) -> Wrong:
    got = type(value).__name__
    return Wrong(f"Invalid type for '{name}': expected {wanted}, but got {got} instead.", name, "invalid_type")
