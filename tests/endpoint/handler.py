"""HTTP/1.1 on a socket: what a client sent, and what goes over the wire for an answer, whole or broken on purpose."""

from __future__ import annotations

import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from endpoint.exchange import Answer

Handle = Callable[[str, str, Mapping[str, str], bytes], Answer]
BLANK_EVERY_S = 0.05
PIECE = 65536


class Http(ThreadingHTTPServer):
    """A server on loopback that answers every request in a thread of its own; those that never end, end with it."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, port: int, handle: Handle) -> None:
        self.stopped = threading.Event()
        super().__init__(("127.0.0.1", port), _handler_of(handle, self.stopped))

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self.stopped.set()
        self.shutdown()
        self.server_close()

    def server_bind(self) -> None:
        """Bind without asking for the name of the host, which may take long."""
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nothing to report."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def _handler_of(handle: Handle, stopped: threading.Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            made = handle(self.command, self.path, headers, body)
            with suppress(OSError):
                self._send(made)

        def _send(self, made: Answer) -> None:
            if made.wire == "silent":
                stopped.wait()
            if made.wire in ("silent", "reset", "closed"):
                self._end(at_once=made.wire == "reset")
                return
            self.wfile.write(_head(made))
            if made.wire == "drip":
                while not stopped.wait(BLANK_EVERY_S):
                    self.wfile.write(_chunk(b"\n"))
            chunked = made.wire in ("chunked", "chunked-cut")
            for piece in _pieces(made):
                self.wfile.write(_chunk(piece) if chunked else piece)
            if made.wire == "chunked":
                self.wfile.write(b"0\r\n\r\n")
            if made.wire == "stalled":
                stopped.wait()
            if made.wire not in ("whole", "chunked"):
                self._end()

        def _end(self, *, at_once: bool = False) -> None:
            """End the connection; `at_once` with a reset: a linger of zero makes the kernel send one."""
            self.close_connection = True
            if at_once:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                socket.close(self.connection.detach())
                return
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *args: Any) -> None:
            """Keep what is asked in the log of the server, and nothing on the screen."""

        def finish(self) -> None:
            with suppress(OSError, ValueError):
                super().finish()

    return Handler


def _head(made: Answer) -> bytes:
    phrase = HTTPStatus(made.status).phrase if made.status in HTTPStatus._value2member_map_ else "Unknown"
    lines = [f"HTTP/1.1 {made.status} {phrase}", *(f"{name.title()}: {value}" for name, value in made.headers.items())]
    if made.wire in ("chunked", "chunked-cut", "drip"):
        lines.append("Transfer-Encoding: chunked")
    else:
        lines.append(f"Content-Length: {made.length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _pieces(made: Answer) -> Iterator[bytes]:
    """The body as it is sent: half of it where it is to be cut."""
    left = made.length if made.wire in ("whole", "chunked") else made.length // 2
    for part, times in made.parts:
        together = max(1, PIECE // max(1, len(part)))
        for first in range(0, times, together):
            piece = part * min(together, times - first)
            if left <= 0:
                return
            if piece:
                yield piece[:left]
            left -= len(piece)


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)
