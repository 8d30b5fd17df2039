"""What an endpoint that works says: text, calls of tools, JSON of the form that was asked for; and how it may end."""

from __future__ import annotations

import json
from typing import Any

from endpoint.completion import call, completion
from endpoint.exchange import Answer, Asked, Behaviour, answer
from endpoint.instance import instance

CHAT = "https://platform.openai.com/docs/api-reference/chat/object"


def says(message: dict[str, Any], finish: str = "stop") -> Behaviour:
    """Say a message of any shape. https://platform.openai.com/docs/api-reference/chat/object"""
    return lambda asked: answer(completion(asked, message, finish))


def text(content: str) -> Behaviour:
    """Free text. https://platform.openai.com/docs/api-reference/chat/object"""
    return says({"content": content})


def structured(value: Any) -> Behaviour:
    """A JSON value as text. https://platform.openai.com/docs/guides/structured-outputs"""
    return text(json.dumps(value))


def fitting(**changes: Any) -> Behaviour:
    """The smallest value of the form that is asked for, with some members as they are given.

    https://platform.openai.com/docs/guides/structured-outputs
    """
    return lambda asked: structured({**smallest(asked), **changes})(asked)


def tool_calls(*wanted: tuple[str, Any], content: str | None = None) -> Behaviour:
    """Calls of tools, each a name and its arguments, as a value or as the very text.

    https://platform.openai.com/docs/guides/function-calling
    """

    def behave(asked: Asked) -> Answer:
        calls = [call(name, given, f"call_{asked.number}_{index}") for index, (name, given) in enumerate(wanted)]
        return says({"content": content, "tool_calls": calls}, "tool_calls")(asked)

    return behave


def refusal() -> Behaviour:
    """The model declines, in words. https://platform.openai.com/docs/guides/structured-outputs#refusals"""
    return says({"content": None, "refusal": "I'm sorry, I cannot assist with that request."})


def length() -> Behaviour:
    """The reply ends in the middle, at `max_tokens`.

    https://platform.openai.com/docs/guides/structured-outputs ("edge cases")
    """

    def behave(asked: Asked) -> Answer:
        whole = json.dumps(smallest(asked))
        return says({"content": whole[: len(whole) // 2]}, "length")(asked)

    return behave


def length_of_thought() -> Behaviour:
    """All tokens went into thinking: nothing is said. https://github.com/BerriAI/litellm-docs/pull/559"""
    return says({"content": "", "reasoning_content": "First, I should look at the files. " * 20}, "length")


def content_filter() -> Behaviour:
    """Content was left out by a filter. https://platform.openai.com/docs/api-reference/chat/object"""
    return says({"content": ""}, "content_filter")


def content_null() -> Behaviour:
    """Neither content nor calls. https://platform.openai.com/docs/api-reference/chat/object"""
    return says({"content": None})


def smallest(asked: Asked) -> dict[str, Any]:
    """Return the smallest object of the form that is asked for, or else of the arguments of a tool."""
    schema = asked.form or next(iter(asked.tools.values()), None)
    return dict(instance(schema)) if schema else {"answer": "x"}
