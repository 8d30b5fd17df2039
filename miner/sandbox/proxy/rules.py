"""What the proxy allows: pure functions from bytes to a target or a refusal.

`CONNECT host:port` is RFC 9110, section 9.3.6; `GET` and `HEAD` with an absolute `http://` URL RFC 9112, section 3.2.2.
Host and port must be on the list letter by letter: no other spelling, no address in place of a name, no user
information. In a tunnel the name that the TLS client asks for (RFC 6066, section 3) must be the one that was connected
to, since big hosters answer for anybody's name on one address.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

MAX_TEXT = 300

_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) ([!-~]{1,8192}) HTTP/1\.[01]")
_AUTHORITY = re.compile(r"([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?):([1-9][0-9]{0,4})")
_URL = re.compile(r"http://([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)(?::([1-9][0-9]{0,4}))?(/[!-~]*)?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):[ \t]*([\t -~\x80-\xff]*)")
_HANDSHAKE = 22
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_NOT_FORWARDED = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class Denied(Exception):
    """The request is not served; the message says why.

    Attributes:
        target: what was asked for.
        in_tunnel: whether the tunnel stands already, so that no answer can be given.
    """

    def __init__(self, target: str, why: str, *, in_tunnel: bool = False) -> None:
        super().__init__(why)
        self.target = target
        self.in_tunnel = in_tunnel


@dataclass(frozen=True)
class Target:
    """Where an allowed request goes.

    Attributes:
        head: what is sent there first; None for a tunnel.
    """

    host: str
    port: int
    head: bytes | None = None

    @property
    def pair(self) -> str:
        """Host and port as on the list."""
        return f"{self.host}:{self.port}"


def parse(head: bytes, allowed: frozenset[str]) -> Target:
    """Return where a request may go; pure.

    Args:
        head: everything up to and with the empty line.
        allowed: `host:port` pairs.

    Raises:
        Denied: it may go nowhere.
    """
    line, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    shown = line[:MAX_TEXT].decode("ascii", "backslashreplace")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise Denied(shown, "this is no HTTP/1.1 request to a proxy")
    method, target = match[1].decode(), match[2].decode()
    fields = _fields(headers, shown)
    if method == "CONNECT":
        return _tunnel(target, allowed)
    if method in ("GET", "HEAD"):
        return _plain(method, target, fields, allowed)
    raise Denied(shown, f"the method {method} is not served")


def _fields(lines: list[bytes], shown: str) -> list[tuple[str, bytes]]:
    matches = [_HEADER.fullmatch(line) for line in lines]
    if None in matches:
        raise Denied(shown, "a header field is malformed")
    return [(match[1].decode().lower(), match[2]) for match in matches if match is not None]


def _tunnel(target: str, allowed: frozenset[str]) -> Target:
    match = _AUTHORITY.fullmatch(target)
    if match is None:
        raise Denied(target[:MAX_TEXT], "the target is not a plain lower-case host:port")
    return _listed(Target(match[1], int(match[2])), allowed)


def _plain(method: str, target: str, fields: list[tuple[str, bytes]], allowed: frozenset[str]) -> Target:
    match = _URL.fullmatch(target)
    if match is None:
        raise Denied(target[:MAX_TEXT], "the target is not a plain lower-case http:// URL")
    if any(
        name == "transfer-encoding" or (name == "content-length" and value.strip() != b"0") for name, value in fields
    ):
        raise Denied(target[:MAX_TEXT], f"a {method} with a body is not served")
    place = _listed(Target(match[1], int(match[2] or 80)), allowed)
    lines = [f"{method} {match[3] or '/'} HTTP/1.1".encode(), f"host: {place.pair}".encode(), b"connection: close"]
    lines += [name.encode() + b": " + value for name, value in fields if name not in _NOT_FORWARDED]
    return Target(place.host, place.port, b"\r\n".join(lines) + b"\r\n\r\n")


def _listed(target: Target, allowed: frozenset[str]) -> Target:
    if target.pair not in allowed:
        raise Denied(target.pair, "host and port are not on the list of the package index")
    return target


def is_inside(address: str) -> bool:
    """Whether an address is this container itself, link-local (cloud metadata), or no place at all."""
    ip = ipaddress.ip_address(address.split("%")[0])
    mapped = getattr(ip, "ipv4_mapped", None)
    if mapped is not None:
        ip = mapped
    return ip.is_loopback or ip.is_link_local or ip.is_unspecified or ip.is_multicast


def check_hello(record: bytes, host: str) -> None:
    """Look at the first TLS record of a tunnel.

    Args:
        record: the record, header included (RFC 8446, sections 5.1 and 4.1.2).
        host: what was connected to; a client sends no name where this is an address.

    Raises:
        Denied: it is no whole ClientHello, or asks for another name.
    """
    try:
        name = _server_name(record)
    except (IndexError, ValueError) as error:
        raise Denied(host, "the tunnel does not begin with a TLS ClientHello", in_tunnel=True) from error
    if name is None and _is_address(host):
        return
    if name != host:
        raise Denied(host, f"in the tunnel the name {(name or '')[:MAX_TEXT]!r} is asked for", in_tunnel=True)


def _server_name(record: bytes) -> str | None:
    if record[0] != _HANDSHAKE or record[5] != _CLIENT_HELLO:
        raise ValueError("another kind of record")
    hello = _Fields(record[9 : 9 + int.from_bytes(record[6:9], "big")])
    hello.skip(2 + 32)  # version, random
    for size_of_length in (1, 2, 1):  # session, cipher suites, compression
        hello.take(size_of_length)
    extensions = _Fields(hello.take(2))
    while extensions.left:
        kind = extensions.number(2)
        data = _Fields(extensions.take(2))
        if kind == _SERVER_NAME:
            names = _Fields(data.take(2))
            if names.number(1) != 0:
                raise ValueError("another kind of name")
            return names.take(2).decode("ascii")
    return None


class _Fields:
    """Reads the fields of a TLS structure; one that is too short is an IndexError."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def left(self) -> int:
        return len(self._data)

    def skip(self, count: int) -> bytes:
        if count > len(self._data):
            raise IndexError(count)
        taken, self._data = self._data[:count], self._data[count:]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.skip(size), "big")

    def take(self, size_of_length: int) -> bytes:
        return self.skip(self.number(size_of_length))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
