"""A server on loopback that speaks chat completions and answers from a script.

    with Endpoint([faults.server_error(), replies.text("hello")]) as endpoint:
        client(base_url=endpoint.url, api_key="any text")
        assert [asked.model for asked in endpoint.asked] == ["a-model", "a-model"]

https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from endpoint.exchange import Answer, Asked, Behaviour, answer, error
from endpoint.handler import Http
from endpoint.protocol import refusal_of

Script = Sequence[Behaviour] | Callable[[Asked], Answer | Behaviour]


class Endpoint:
    """The server; a context manager.

    Args:
        script: behaviours, one for each request in turn; or one that answers every request; or a function that
            chooses one by the request. A request after the last one of a list is a mistake of the test.
        models: that are known; None: any.
        keys: that are accepted; None: any, and none.
        port: 0 for any free one.

    Attributes:
        asked: every request for a completion, in order.
        answered: their answers, in order.
        broken: what was wrong with requests that the documentation does not allow.
        mistakes: errors of the script; the first of them is raised when the server is left.
    """

    def __init__(
        self,
        script: Script,
        *,
        models: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
        port: int = 0,
    ) -> None:
        self.asked: list[Asked] = []
        self.answered: list[Answer] = []
        self.broken: list[str] = []
        self.mistakes: list[Exception] = []
        self._script = script
        self._taken = 0
        self._models = models
        self._keys = keys
        self._lock = threading.Lock()
        self._http = Http(port, self._handle)

    @property
    def url(self) -> str:
        """The base URL, as OPENAI_BASE_URL takes it."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def start(self) -> Endpoint:
        self._http.start()
        return self

    def stop(self) -> None:
        self._http.stop()

    def __enter__(self) -> Endpoint:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self.mistakes and raised is None:
            raise self.mistakes[0]

    def _handle(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        path = path.partition("?")[0]
        if (method, path) == ("POST", "/v1/chat/completions"):
            return self._complete(method, path, headers, body)
        asked = Asked(-1, method, path, headers, body, time.time())
        if (method, path) == ("GET", "/v1/models"):
            return self._unknown_key(asked) or answer({"object": "list", "data": self._listed()})
        return error(404, f"Invalid URL ({method} {path})", "invalid_request_error")

    def _complete(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        with self._lock:
            asked = Asked(len(self.asked), method, path, headers, body, time.time())
            self.asked.append(asked)
        refused = self._unknown_key(asked) or self._broken(asked) or self._unknown_model(asked)
        try:
            made = refused or self._scripted(asked)
        except Exception as mistake:  # noqa: BLE001 - a test shall see it, wherever it comes from
            self.mistakes.append(mistake)
            made = error(500, "the script has a mistake", "server_error")
        self.answered.append(made)
        return made

    def _scripted(self, asked: Asked) -> Answer:
        if callable(self._script):
            chosen = self._script(asked)
            return chosen if isinstance(chosen, Answer) else chosen(asked)
        with self._lock:
            number, self._taken = self._taken, self._taken + 1
        if number >= len(self._script):
            raise IndexError(f"the script has {len(self._script)} replies, and one more request came")
        return self._script[number](asked)

    def _broken(self, asked: Asked) -> Answer | None:
        refused = refusal_of(asked)
        if refused is not None:
            self.broken.append(refused.body.decode())
        return refused

    def _unknown_key(self, asked: Asked) -> Answer | None:
        """https://platform.openai.com/docs/api-reference/authentication"""
        if self._keys is None or asked.key in self._keys:
            return None
        if not asked.key:
            message = "You didn't provide an API key. You need to provide your API key in an Authorization header."
            return error(401, message, "invalid_request_error")
        shown = f"{asked.key[:3]}{'*' * 8}{asked.key[-4:]}"
        return error(401, f"Incorrect API key provided: {shown}.", "invalid_request_error", code="invalid_api_key")

    def _unknown_model(self, asked: Asked) -> Answer | None:
        if self._models is None or asked.model in self._models:
            return None
        message = f"The model `{asked.model}` does not exist or you do not have access to it."
        return error(404, message, "invalid_request_error", code="model_not_found")

    def _listed(self) -> list[dict[str, Any]]:
        """https://platform.openai.com/docs/api-reference/models/list"""
        shared = {"object": "model", "created": 1_700_000_000, "owned_by": "tests"}
        return [{"id": name, **shared} for name in self._models or ()]
