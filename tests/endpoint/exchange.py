"""One request and its answer, as the server and its script see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

Wire = Literal["whole", "chunked", "cut", "chunked-cut", "stalled", "drip", "silent", "closed", "reset"]


@dataclass(frozen=True)
class Asked:
    """A request.

    Attributes:
        number: of the requests for a completion before it.
        headers: by lower-case name, with the key that the client sent.
        at: seconds since the epoch.
    """

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float

    @cached_property
    def value(self) -> Any:
        """The body, read as JSON; an empty object where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return {}

    @property
    def key(self) -> str:
        """What stands behind "Bearer"."""
        kind, _, value = self.headers.get("authorization", "").partition(" ")
        return value if kind.lower() == "bearer" else ""

    @property
    def model(self) -> str:
        """The model that is asked."""
        return str(self.value.get("model", ""))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation."""
        return list(self.value.get("messages", ()))

    @property
    def form(self) -> dict[str, Any] | None:
        """JSON schema of the reply that is asked for."""
        form = self.value.get("response_format") or {}
        return form.get("json_schema", {}).get("schema") if form.get("type") == "json_schema" else None

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """Name of a tool that may be called -> JSON schema of its arguments."""
        functions = [tool["function"] for tool in self.value.get("tools") or ()]
        return {function["name"]: function.get("parameters", {}) for function in functions}


@dataclass(frozen=True)
class Answer:
    """What goes over the wire.

    Attributes:
        parts: of the body, each with how many times it is sent: a large one is never held.
        wire: "chunked" announces no length; "cut" and "chunked-cut" end in the middle of the body, "stalled" stops
            there for ever; "drip" sends blank lines for ever, "silent" nothing; "closed" ends the connection without
            an answer, "reset" breaks it.
    """

    status: int = 200
    parts: tuple[tuple[bytes, int], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    wire: Wire = "whole"

    @property
    def body(self) -> bytes:
        """All parts in one."""
        return b"".join(part * times for part, times in self.parts)

    @property
    def length(self) -> int:
        """Bytes of the body."""
        return sum(len(part) * times for part, times in self.parts)


Behaviour = Callable[[Asked], Answer]


def answer(value: Any, status: int = 200, wire: Wire = "whole", **headers: str) -> Answer:
    """Return an answer that holds a JSON value; `retry_after` is the header Retry-After."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    body = json.dumps(value, ensure_ascii=True).encode()
    return Answer(status, ((body, 1),), {"content-type": "application/json", **named}, wire)


def error(
    status: int, message: str, kind: str, *, code: str | None = None, param: str | None = None, **headers: str
) -> Answer:
    """Return an error as the documentation shapes it.

    https://platform.openai.com/docs/guides/error-codes
    """
    value = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return answer(value, status, "whole", **headers)
