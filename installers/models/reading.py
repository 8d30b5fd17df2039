"""What an endpoint's answer says: a reply, or nonsense. Pure.

The shapes are those of https://platform.openai.com/docs/api-reference/chat/object, as far as endpoints keep to them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from installers.models.interface import Reply, ToolCall, Usage

_ABSURD = 10**8
"""No context holds so many tokens."""


class Nonsense(Exception):
    """An answer that is no chat completion; the message says where it is none."""


def parsed(body: bytes, clean: Callable[[str], str] = str) -> Any:
    """Return the JSON value of a body.

    Args:
        body: of an answer.
        clean: takes out of a text what nobody may see: before anything of it is cut, and once escapes are resolved.

    Raises:
        Nonsense: it is none.
    """
    try:
        text = clean(body.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise Nonsense("the answer is not UTF-8") from None
    try:
        return _cleaned(json.loads(text), clean)
    except (ValueError, RecursionError):
        kind = "HTML" if text.lstrip().startswith("<") else "no JSON"
        raise Nonsense(f"the answer is {kind}: {text[:80]!r}" if text.strip() else "the answer is empty") from None


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(one, clean) for one in value]
    if isinstance(value, dict):
        return {clean(name): _cleaned(one, clean) for name, one in value.items()}
    return value


def reply_of(value: Any) -> Reply:
    """Return the reply that a chat completion holds: that of its first choice.

    Raises:
        Nonsense: it holds none.
    """
    choice = _first(_mapping(value, "the answer").get("choices"))
    message = _mapping(choice.get("message"), "the message")
    text, refusal = _parts(message.get("content"))
    calls = [_call(number, one) for number, one in enumerate(_list(message.get("tool_calls"), "tool_calls"))]
    return Reply(
        text=text,
        calls=tuple(_told_apart(calls)),
        finish=_word(choice.get("finish_reason")),
        refusal=_word(message.get("refusal")) or refusal,
        usage=usage_of(value.get("usage")),
    )


def usage_of(value: Any) -> Usage | None:
    """Return the reported tokens; None where there are none, or where they cannot be true.

    Some endpoints count what a model thinks in the total only: whatever was not read was written.
    """
    if not isinstance(value, Mapping):
        return None
    read, written, total = (value.get(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    if not _is_count(read) or not _is_count(written) or read == 0:
        return None
    if _is_count(total):
        written = max(written, total - read)
    return Usage(input_tokens=read, output_tokens=written)


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _ABSURD


def _first(choices: Any) -> Mapping[str, Any]:
    listed = _list(choices, "choices")
    if not listed:
        raise Nonsense("the answer holds no choice")
    return _mapping(listed[0], "the choice")


def _parts(content: Any) -> tuple[str, str]:
    """Return text and refusal of a message's content: a text, nothing, or a list of parts."""
    if content is None or isinstance(content, str):
        return _clean(content or ""), ""
    parts = [_mapping(part, "a part of the content") for part in _list(content, "the content")]
    text, refusal = ("".join(_word(part.get(name)) for part in parts) for name in ("text", "refusal"))
    return text, refusal


def _call(number: int, value: Any) -> ToolCall:
    call = _mapping(value, "a call")
    function = _mapping(call.get("function"), "the function of a call")
    arguments = function.get("arguments")
    return ToolCall(
        id=_word(call.get("id")) or f"call_{number}",
        name=_word(function.get("name")),
        arguments=_clean(arguments) if isinstance(arguments, str) else _as_json(arguments),
    )


def _told_apart(calls: Sequence[ToolCall]) -> Iterator[ToolCall]:
    """Yield calls with an id of their own each: a tool's answer names the call that it answers."""
    seen: set[str] = set()
    for number, call in enumerate(calls):
        name = f"{call.id}_{number}" if call.id in seen else call.id
        seen.add(name)
        yield call.model_copy(update={"id": name})


def _as_json(value: Any) -> str:
    return "" if value is None else json.dumps(value, sort_keys=True)


def _word(value: Any) -> str:
    return _clean(value) if isinstance(value, str) else ""


def _clean(text: str) -> str:
    """Return a text with lone surrogates, which stand for no character, as their escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _list(value: Any, name: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Nonsense(f"{name} is {type(value).__name__}, not a list")
    return value


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Nonsense(f"{name} is {type(value).__name__}, not an object")
    return value
