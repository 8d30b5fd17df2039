"""A server on loopback that gives the answers it was told, one after another, and keeps what it was asked.

with ScriptedForge() as forge:
    forge.say(Say(502), Say(200, {"data": {}}))
    Github(api_url=f"{forge.url}/api/v3")
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

JSON = "application/json; charset=utf-8"


@dataclass(frozen=True)
class Say:
    """One answer: a JSON value, text or bytes as they are, or a function of what was asked.

    `how` is one of "cut" (half a body), "reset" (the connection breaks), "slow" (no answer), "garbled" (no gzip).
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    how: str = ""

    def content(self, asked: Asked) -> bytes:
        body = self.body(asked) if callable(self.body) else self.body
        if isinstance(body, bytes):
            return body
        if isinstance(body, str):
            return body.encode()
        return b"" if body is None else json.dumps(body).encode()


@dataclass(frozen=True)
class Asked:
    verb: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").partition(" ")[2]


class ScriptedForge:
    """The server; the last answer that it was told is given again and again."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.by_token: dict[str, deque[Say]] = {}
        self._script: deque[Say] = deque()
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def say(self, *answers: Say, token: str | None = None) -> None:
        script = self._script if token is None else self.by_token.setdefault(token, deque())
        script.extend(answers)

    def next(self, asked: Asked) -> Say:
        with self._lock:
            self.asked.append(asked)
            script = self.by_token.get(asked.token, self._script)
            return script.popleft() if len(script) > 1 else script[0]

    def __enter__(self) -> ScriptedForge:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()


def _handler(forge: ScriptedForge) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, body)
            say = forge.next(asked)
            with suppress(OSError):
                self._give(say, say.content(asked))

        def _give(self, say: Say, data: bytes) -> None:
            if say.how == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
                return
            if say.how == "slow":
                forge.released.wait(5)
                self.close_connection = True
                return
            headers = {"Content-Type": JSON, "Content-Length": str(len(data)), **say.headers}
            if say.how == "garbled":
                headers["Content-Encoding"] = "gzip"
            if "Date" in headers:
                self.send_response_only(say.status)
            else:
                self.send_response(say.status)
            for name, value in headers.items():
                if say.status != 304 or name != "Content-Length":
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if say.how == "cut" else data)
            if say.how == "cut":
                self.close_connection = True

    return Handler
