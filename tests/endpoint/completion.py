"""A completion as the documentation shapes it, and the rule by which its tokens are counted.

https://platform.openai.com/docs/api-reference/chat/object
"""

from __future__ import annotations

import json
from typing import Any

from endpoint.exchange import Asked

BYTES_PER_TOKEN = 4
_COUNTED = ("messages", "tools", "response_format")
_LIMITS = ("max_tokens", "max_completion_tokens")
_MOST = 128_000


def completion(asked: Asked, message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    """Return the completion of a request with one choice."""
    message = {"role": "assistant", "content": None, "refusal": None, **message}
    return {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": int(asked.at),
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": usage(asked, message),
    }


def usage(asked: Asked, message: dict[str, Any]) -> dict[str, int]:
    """Count one token for four bytes, or begun four, of what is read and of what is written, as JSON.

    So it is never more than a client expects that takes every byte for a token; nor is more written than it allows.
    """
    read = {name: asked.value[name] for name in _COUNTED if name in asked.value}
    written = {name: value for name, value in message.items() if name != "role" and value is not None}
    limits = [asked.value[name] for name in _LIMITS if isinstance(asked.value.get(name), int)]
    prompt, reply = tokens(read), min(tokens(written), *limits, _MOST)
    return {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}


def tokens(value: Any) -> int:
    """Return how many tokens a JSON value counts as."""
    return -(-len(json.dumps(value, separators=(",", ":")).encode()) // BYTES_PER_TOKEN)


def call(name: str, arguments: Any, call_id: str) -> dict[str, Any]:
    """Return one call of a tool; `arguments` is a value, or the very text."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
