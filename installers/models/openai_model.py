"""A language model behind any endpoint that speaks OpenAI's chat completions, by the openai SDK.

Endpoints differ in what they take: what one refuses by name is left out, or said otherwise, and remembered.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping
from typing import Any

from installers.models.complaints import Complaint, complaint_of, raised, yields
from installers.models.interface import Message, Reply, Request, ToolCall, Trouble
from installers.models.reading import Nonsense, parsed, reply_of
from installers.models.wire import Answer, Silence, Wire
from miner.core.hashing import canonical_json
from miner.core.reasons import Reason
from miner.core.settings import Endpoint

_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64


class OpenAIModel:
    """One endpoint with all its models; threads share it.

    Args:
        endpoint: its settings.
        environ: holds its address and its key, and names certificates.
        stopped: set when the run is to end: a request under way ends then.

    Raises:
        ConfigError: the address, the key or the file of certificates cannot be used.
    """

    def __init__(
        self, endpoint: Endpoint, environ: Mapping[str, str], *, stopped: threading.Event | None = None
    ) -> None:
        self._timeout_s = endpoint.timeout_s
        self._wire = Wire(endpoint, environ, stopped or threading.Event())
        self._left_out: dict[str, frozenset[str]] = {}

    def complete(self, request: Request) -> Reply:
        """Return the reply to a request, after one try, within `endpoint.timeout_s` altogether.

        Raises:
            Trouble: the endpoint was at fault.
            RequestRefused: it does not take this request.
            ToolsUnsupported: it knows no calls of tools.
            Interrupted: the run is to end.
        """
        end, left_out = time.monotonic() + self._timeout_s, self._left_out.get(request.model, frozenset())
        while True:
            answer = self._wire.post(payload_of(request, left_out), end - time.monotonic())
            if isinstance(answer, Silence):
                raise _silent(answer)
            if 200 <= answer.status < 300:
                self._left_out[request.model] = left_out
                return self._reply(answer)
            complaint = self._complaint(answer)
            refused = yields(request, answer, complaint)
            if not refused or refused in left_out:
                raise raised(answer, complaint, request.model, time.time())
            left_out |= {refused}

    def _complaint(self, answer: Answer) -> Complaint:
        try:
            return complaint_of(parsed(answer.body, self._wire.redact))
        except Nonsense:
            return Complaint()

    def _reply(self, answer: Answer) -> Reply:
        """Return the reply of an answer; one that holds none may have been charged."""
        try:
            value = parsed(answer.body, self._wire.redact)
            return reply_of(value)
        except Nonsense as error:
            said = self._complaint(answer).message or str(error)
        raise Trouble(f"status {answer.status}: {said}", reason=Reason.MODEL_ERROR)


def payload_of(request: Request, left_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return a request as chat completions want it.

    Args:
        request: what is asked.
        left_out: what the endpoint does not take: "form", "temperature", "max_tokens" (it wants the newer name).
    """
    limit = "max_completion_tokens" if "max_tokens" in left_out else "max_tokens"
    payload: dict[str, Any] = {"model": request.model, limit: request.max_tokens}
    payload["messages"] = [_message(one) for one in request.messages]
    if request.temperature is not None and "temperature" not in left_out:
        payload["temperature"] = request.temperature
    if request.tools:
        payload["tools"] = [{"type": "function", "function": one.model_dump()} for one in request.tools]
    if request.form is not None and "form" not in left_out:
        form = {"name": request.form.name, "schema": request.form.definition, "strict": True}
        payload["response_format"] = {"type": "json_schema", "json_schema": form}
    return payload


def _message(message: Message) -> dict[str, Any]:
    told: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        told["tool_call_id"] = message.answers
    if message.calls:
        told["content"] = message.content or None
        told["tool_calls"] = [
            {"id": one.id, "type": "function", "function": {"name": _name(one), "arguments": _arguments(one.arguments)}}
            for one in message.calls
        ]
    return told


def _name(call: ToolCall) -> str:
    """Return the name of a past call; what no tool can be called is refused even where a model has said it."""
    return _NO_NAME.sub("_", call.name)[:_LONGEST_NAME] or "_"


def _arguments(text: str) -> str:
    """Return the arguments of a past call; what is no JSON object is wrapped, since servers read it and fail."""
    try:
        fine = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        fine = False
    return text if fine else canonical_json({"not_json": text})


def _silent(silence: Silence) -> Trouble:
    if silence.begun:
        return Trouble(silence.detail, reason=Reason.MODEL_ERROR)
    return Trouble(f"no answer: {silence.detail}", reason=Reason.MODEL_UNREACHABLE, free=not silence.sent)
