"""A proxy in front of the container engine that fails on request: dies at a chosen moment, or says its disk is full.

It reads requests as HTTP/1.1 says (RFC 9112, section 6) and hands answers on as they come.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

_CHUNK = 65536
_KEPT_BODY = 65536


@dataclass
class Rule:
    """Acts on the nth request that matches: request line and body, where the body is a small JSON text."""

    pattern: re.Pattern[str]
    action: Callable[[socket.socket], bool]
    left: int
    before: bool

    def meets(self, request: str, *, before: bool) -> bool:
        if self.before is not before or not self.pattern.search(request):
            return False
        self.left -= 1
        return self.left == 0


class EngineProxy:
    """Listens on loopback and speaks to the engine of this machine; a context manager."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._guard = threading.Lock()
        self._open: set[socket.socket] = set()
        self._rules: list[Rule] = []
        self.requests: list[str] = []
        self.fired = threading.Event()
        self.url = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> EngineProxy:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.die()

    def dies_after(self, pattern: str, *, nth: int = 1, wait_s: float = 0.0) -> None:
        """Let the engine be gone, for everybody and for good, a moment after the nth matching request went to it."""

        def act(_client: socket.socket) -> bool:
            threading.Timer(wait_s, self.die).start()
            return False

        self._rules.append(Rule(re.compile(pattern), act, nth, before=False))

    def loses_connection_after(self, pattern: str, *, nth: int = 1, wait_s: float = 0.0) -> None:
        """Cut every connection that is open a moment after the nth matching request; new ones are served."""

        def act(_client: socket.socket) -> bool:
            threading.Timer(wait_s, self.cut).start()
            return False

        self._rules.append(Rule(re.compile(pattern), act, nth, before=False))

    def answers(self, pattern: str, status: str, body: bytes, *, nth: int = 1) -> None:
        """Answer the nth matching request in the engine's stead."""
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()

        def act(client: socket.socket) -> bool:
            client.sendall(head + body)
            self.fired.set()
            return True

        self._rules.append(Rule(re.compile(pattern), act, nth, before=True))

    def die(self) -> None:
        """Be gone: nothing listens, nothing is connected."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        with self._guard:
            gone, self._open = self._open, set()
        for end in gone:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self.fired.set()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                engine = _engine()
                with self._guard:
                    self._open |= {client, engine}
                threading.Thread(target=self._requests, args=(client, engine), daemon=True).start()
                threading.Thread(target=self._answers, args=(engine, client), daemon=True).start()

    def _answers(self, engine: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := engine.recv(_CHUNK):
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _requests(self, client: socket.socket, engine: socket.socket) -> None:
        with suppress(OSError, ValueError):
            reader = client.makefile("rb")
            while head := _head(reader):
                self._one(head, reader, client, engine)
        with suppress(OSError):
            engine.shutdown(socket.SHUT_WR)

    def _one(self, head: bytes, reader, client: socket.socket, engine: socket.socket) -> None:
        pieces = _body(head, reader)
        first = next(pieces, b"")
        text = head.splitlines()[0].decode("latin-1") + " "
        text += first[:_KEPT_BODY].decode("latin-1") if b"application/json" in head.lower() else ""
        with self._guard:
            self.requests.append(f"{time.monotonic():.2f} {text}")
            wanted = [rule for rule in self._rules if rule.meets(text, before=True)]
        if wanted:
            for _ in pieces:  # an engine reads what it is sent before it complains
                pass
            wanted[0].action(client)
            return
        engine.sendall(head + first)
        for piece in pieces:
            engine.sendall(piece)
        with self._guard:
            due = [rule for rule in self._rules if rule.meets(text, before=False)]
        for rule in due:
            rule.action(client)


def _engine() -> socket.socket:
    where = urlsplit(os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock")
    if where.scheme == "unix":
        made = socket.socket(socket.AF_UNIX)
        made.connect(where.path)
        return made
    return socket.create_connection((where.hostname, where.port))


def _head(reader) -> bytes:
    lines = []
    while line := reader.readline():
        lines.append(line)
        if line == b"\r\n":
            return b"".join(lines)
    return b""


def _body(head: bytes, reader):
    """Yield a request's body in pieces, in the form in which it travels."""
    lowered = head.lower()
    if b"transfer-encoding: chunked" in lowered:
        while True:
            size = reader.readline()
            yield size + reader.read(int(size.split(b";")[0], 16) + 2)
            if int(size.split(b";")[0], 16) == 0:
                return
    length = re.search(rb"content-length: *(\d+)", lowered)
    left = int(length.group(1)) if length else 0
    while left:
        piece = reader.read(min(left, _CHUNK))
        if not piece:
            raise ValueError("the client went away")
        left -= len(piece)
        yield piece
