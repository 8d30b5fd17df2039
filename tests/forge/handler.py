"""HTTP/1.1 on a socket: what a client sent, and what goes over the wire for an answer, whole or broken on purpose."""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import unquote

from forge.exchange import Reply

Handle = Callable[[str, str, str, Mapping[str, str], bytes], Reply]


class Http(ThreadingHTTPServer):
    """A server on loopback that answers every request in a thread of its own."""

    daemon_threads = True
    request_queue_size = 128

    @classmethod
    @contextmanager
    def started(cls, handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[Http]:
        """Serve until the context is left."""
        server = cls(("127.0.0.1", port), handler)
        server.start()
        try:
            yield server
        finally:
            server.stop()

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def server_bind(self) -> None:
        """Bind without asking for the name of the host, which may take long."""
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nothing to report."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def handler_of(handle: Handle) -> type[BaseHTTPRequestHandler]:
    """Return a handler class that lets `handle` answer."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def do_HEAD(self) -> None:
            self._answer()

        def _answer(self) -> None:
            path, _, query = self.path.partition("?")
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = handle(self.command, unquote(path), query, headers, self._body())
            if reply.delay_s:
                time.sleep(reply.delay_s)
            with suppress(ConnectionError):
                self._send(reply)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts: list[bytes] = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _send(self, reply: Reply) -> None:
            if reply.wire == "reset":
                # a linger of zero makes the kernel send a reset instead of an end
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if reply.wire in ("reset", "closed"):
                self._end()
                return
            lines = [f"HTTP/1.1 {reply.status} {_phrase(reply.status)}", "Server: github.com"]
            lines += [f"{_spelt(name)}: {value}" for name, value in reply.headers.items() if name != "content-length"]
            if reply.status != HTTPStatus.NOT_MODIFIED:
                lines.append(f"Content-Length: {len(reply.body)}")
            body = b"" if self.command == "HEAD" else reply.body
            if reply.wire == "cut":
                body = body[: len(body) // 2]
            self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body)
            if reply.wire == "cut":
                self._end()

        def _end(self) -> None:
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR) if self.command != "reset" else None
            self.connection.close()

        def log_message(self, *args: Any) -> None:
            pass

        def finish(self) -> None:
            with suppress(OSError, ValueError):
                super().finish()

    return Handler


def _spelt(name: str) -> str:
    """Return the name of a header as GitHub spells it in HTTP/1.1, which some clients rely on."""
    name = name.title()
    for usual, spelt in (("Github", "GitHub"), ("Ratelimit", "RateLimit"), ("Oauth", "OAuth"), ("Etag", "ETag")):
        name = name.replace(usual, spelt)
    return name.replace("-Sso", "-SSO")


def _phrase(status: int) -> str:
    with suppress(ValueError):
        return HTTPStatus(status).phrase
    return "Unknown"
