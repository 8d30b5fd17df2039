"""Repositories of a folder over smart HTTP on loopback, with misbehaviour on demand."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Trouble = Callable[["Handler", Asked], bool]


@dataclass
class GitServer:
    """`git http-backend` behind a server that notes what it is asked.

    `trouble` sees each request first and says whether it answered it; `certificate` is that of `make_certificate`.
    """

    folder: Path
    trouble: Trouble = lambda _handler, _asked: False
    certificate: Path | None = None
    asked: list[Asked] = field(default_factory=list)

    def __enter__(self) -> GitServer:
        owner = self

        class Bound(Handler):
            server_of = owner

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
        self._http.daemon_threads = True
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    @property
    def url(self) -> str:
        scheme = "http" if self.certificate is None else "https"
        return f"{scheme}://127.0.0.1:{self._http.server_address[1]}"

    def fetches(self) -> list[Asked]:
        """Requests that asked for objects."""
        return [one for one in self.asked if one.method == "POST" and b"command=fetch" in one.body]


class Handler(BaseHTTPRequestHandler):
    server_of: GitServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self._chunks()
        asked = Asked(self.command, self.path, dict(self.headers.items()), body)
        self.server_of.asked.append(asked)
        if not self.server_of.trouble(self, asked):
            self.answer(*self.backend(asked))

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self, status: int, headers: dict[str, str], body: bytes, *, cut: int | None = None) -> None:
        """Send an answer; `cut` keeps back all but so many bytes of what was announced."""
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])
        self.close_connection = cut is not None

    def backend(self, asked: Asked) -> tuple[int, dict[str, str], bytes]:
        """Ask `git http-backend` (https://git-scm.com/docs/git-http-backend)."""
        url = urlsplit(asked.path)
        env = {
            **os.environ,
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PROJECT_ROOT": str(self.server_of.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": asked.method,
            "PATH_INFO": url.path,
            "QUERY_STRING": url.query,
            "CONTENT_TYPE": asked.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(asked.body)),
            "GIT_PROTOCOL": asked.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": asked.headers.get("Content-Encoding", ""),
        }
        out = subprocess.run(
            ["git", "http-backend"], input=asked.body, env=env, capture_output=True, check=False
        ).stdout
        head, _, body = out.partition(b"\r\n\r\n")
        lines = (line.partition(": ") for line in head.decode().split("\r\n"))
        headers = {key: value for key, _, value in lines}
        status = int(headers.pop("Status", "200").split(" ")[0])
        return status, headers, body


def make_certificate(path: Path) -> Path:
    """Write a key and a certificate for 127.0.0.1 that nobody has signed but itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    path.write_bytes(private + certificate.public_bytes(pem))
    return path
