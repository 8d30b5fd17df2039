"""An endpoint on loopback that answers with what a test hands it: bytes, a status, headers, or something of its own."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

KEY = "sk-planted-0123456789abcdef"


class Said(NamedTuple):
    """An answer; a body that is no bytes is sent as JSON."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = {}


Script = Callable[[dict[str, Any]], "Said | Callable[[BaseHTTPRequestHandler], None]"]


def completion(message: Any = None, **changes: Any) -> dict[str, Any]:
    """A chat completion of one choice."""
    choice = {"index": 0, "finish_reason": "stop", "message": message or {"role": "assistant", "content": "hello"}}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage, **changes}


def error(message: str, **more: Any) -> dict[str, Any]:
    """The body of an error."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}}


class TinyEndpoint:
    """The server; a context manager. `script` says what is answered; `shown`: its certificate, for TLS.

    `listed` is what it answers when its models are asked for.
    """

    def __init__(self, shown: ssl.SSLContext | None = None) -> None:
        self._scheme = "http" if shown is None else "https"
        self.script: Script = lambda _: Said(completion())
        self.listed = Said({"object": "list", "data": [{"id": "small", "object": "model"}]})
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        if shown is not None:
            self._http.socket = shown.wrap_socket(self._http.socket, server_side=True)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "OPENAI_BASE_URL": f"{self._scheme}://127.0.0.1:{self._http.server_address[1]}/v1",
            "OPENAI_API_KEY": KEY,
        }

    def __enter__(self) -> TinyEndpoint:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def _handler(endpoint: TinyEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
            self._answer(endpoint.listed if self.path == "/v1/models" else Said(b"", 404))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            endpoint.bodies.append(body)
            endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
            said = endpoint.script(body)
            with suppress(OSError):
                if isinstance(said, Said):
                    self._answer(said)
                else:
                    said(self)

        def _answer(self, said: Said) -> None:
            data = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
            self.send_response(said.status)
            self.send_header("Content-Length", str(len(data)))
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    return Handler
