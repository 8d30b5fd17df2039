"""A package index on loopback, shaped as PEP 503, 691 and 700 say, that can misbehave on purpose.

    with IndexServer() as server:
        server.release("pkg", "1.0", {"setup.py": b"..."})
        server.fail("/simple/pkg/", "500", times=2)
        Index(url=server.url)

Faults: "404", "429", "500", "503", "html" (a page with status 200), "garbage" (half a JSON text), "cut" (a body that is
shorter than announced), "shortened" (a shorter body, announced as such), "wrong" (other bytes of the same length),
"slow" (no answer for a while), "reset" (the connection breaks).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import socket
import struct
import tarfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from packaging.utils import canonicalize_name

JSON = "application/vnd.pypi.simple.v1+json"
UPLOADED = "2024-01-01T00:00:00.000000Z"


def make_sdist(top: str, files: Mapping[str, bytes]) -> bytes:
    """Return a tar.gz with one top-level folder."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for path, data in files.items():
            info = tarfile.TarInfo(f"{top}/{path}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(plain.getvalue(), mtime=0)


class IndexServer:
    """The index; a context manager."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.logins: list[str] = []
        self.slow_s = 5.0
        self._projects: dict[str, list[dict[str, Any]]] = {}
        self._files: dict[str, bytes] = {}
        self._faults: list[list[Any]] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def url(self) -> str:
        """What `index.url` must be."""
        return f"{self.root}/simple/"

    def __enter__(self) -> IndexServer:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()

    def release(
        self,
        name: str,
        version: str,
        files: Mapping[str, bytes] | None = None,
        *,
        uploaded: str | None = UPLOADED,
        filename: str | None = None,
        archive: bytes | None = None,
        **entry: Any,
    ) -> str:
        """Publish one file and return its name; `entry` replaces or (with None) removes keys of its PEP 691 entry."""
        filename = filename or f"{name}-{version}.tar.gz"
        data = archive if archive is not None else make_sdist(f"{name}-{version}", files or {})
        self._files[filename] = data
        stated: dict[str, Any] = {
            "filename": filename,
            "url": f"../../files/{filename}",
            "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
            "size": len(data),
            "upload-time": uploaded,
            "yanked": False,
            **entry,
        }
        kept = {key: value for key, value in stated.items() if value is not None}
        self._projects.setdefault(canonicalize_name(name), []).append(kept)
        return filename

    def project(self, name: str) -> None:
        """Publish a project without files."""
        self._projects.setdefault(canonicalize_name(name), [])

    def fail(self, path: str, fault: str, *, times: int = 1_000_000, after: int = 0) -> None:
        """Misbehave for the next requests whose path holds `path`; the first `after` of them are answered well."""
        self._faults.append([path, fault, times, after])

    def heal(self) -> None:
        self._faults.clear()

    def fault_of(self, path: str) -> str | None:
        for fault in self._faults:
            if fault[0] in path and fault[3] > 0:
                fault[3] -= 1
            elif fault[0] in path and fault[2] > 0:
                fault[2] -= 1
                return str(fault[1])
        return None

    def answer(self, path: str) -> tuple[str, bytes] | None:
        if path.startswith("/files/"):
            data = self._files.get(path.removeprefix("/files/"))
            return None if data is None else ("application/octet-stream", data)
        name = path.removeprefix("/simple/").rstrip("/")
        files = self._projects.get(name)
        if files is None:
            return None
        page = {"meta": {"api-version": "1.1"}, "name": name, "versions": [], "files": files}
        return JSON, json.dumps(page).encode()


def _handler(server: IndexServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.requests.append(self.path)
            if login := self.headers.get("Authorization"):
                server.logins.append(base64.b64decode(login.removeprefix("Basic ")).decode())
            fault = server.fault_of(self.path)
            if fault == "reset":
                # a linger of zero makes the kernel send a reset instead of an end
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                return
            if fault == "slow":
                time.sleep(server.slow_s)
            found = server.answer(self.path)
            if fault is not None and fault.isdigit():
                self._send(int(fault), "text/plain", b"on purpose")
            elif fault == "html":
                self._send(200, "text/html", b"<html><body>You have exceeded a rate limit</body></html>")
            elif found is None:
                self._send(404, "text/plain", b"not found")
            else:
                self._send_spoilt(fault, *found)

        def _send_spoilt(self, fault: str | None, kind: str, data: bytes) -> None:
            if fault == "cut":
                self._send(200, kind, data[: len(data) // 2], announced=len(data))
            elif fault in ("garbage", "shortened"):
                self._send(200, kind, data[: len(data) // 2])
            elif fault == "wrong":
                self._send(200, kind, bytes(byte ^ 1 for byte in data))
            else:
                self._send(200, kind, data)

        def _send(self, status: int, kind: str, data: bytes, announced: int | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data) if announced is None else announced))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

        def finish(self) -> None:
            with suppress(OSError, ValueError):
                super().finish()

    return Handler
