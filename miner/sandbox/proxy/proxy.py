"""The allow-listing proxy: the only way from a box to the package index.

It runs in a container of its own, with the standard library of Python 3.11 only: `python3 -m proxy.proxy SOCKET
CONFIG`. Boxes have no network at all; they reach this proxy through a UNIX socket in a volume, by way of `forward.py`.
A connection begins with a line `LANE <name> <tag>`, which the forwarder writes, so that the log can tell whose request
it was. The tag proves that the lane was given by us: a box has one lane and cannot make up others, so what is bounded
for a lane is bounded for a box.

What is served, `rules.py` says. Names are resolved here; an answer that points to this container itself or to a
link-local address (cloud metadata) is refused. Where the operator's network has a proxy of its own, requests go through
that one, which then resolves the names.

The log is one JSON object a line on standard output: "ready", "denied" (what a box may not do) and "failed" (an allowed
host could not be reached).

CONFIG is a JSON file: "allowed" (`host:port` pairs), "key" (of the tags), "routes" (what goes through which upstream
proxy: kind of request -> `host:port` -> [host, port, authorization]).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from .rules import MAX_TEXT, Denied, Target, check_hello, is_inside, parse

MAX_HEAD = 16384
HEAD_TIMEOUT_S = 20.0
CONNECT_TIMEOUT_S = 20.0
MAX_CONNECTIONS = 128  # of one lane
MAX_TOGETHER = 1024
MAX_UNKNOWN = 256  # that have not said yet whose they are
MAX_LOGGED = 50
CHUNK = 65536

_LANE = re.compile(rb"LANE ([a-z0-9.-]{1,128}) ([0-9a-f]{32})\n")
_ESTABLISHED = re.compile(rb"HTTP/1\.[01] 2[0-9][0-9][ \r]")

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def tag_of(key: str, lane: str) -> str:
    """Return what proves that a lane was given by who has the key."""
    return hmac.new(key.encode(), lane.encode(), hashlib.sha256).hexdigest()[:32]


class Log:
    """JSON lines on standard output, bounded for each lane and kind."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def write(self, event: str, lane: str = "", target: str = "", why: str = "") -> None:
        """Write one event, unless this lane has filled its share."""
        self._counts[event, lane] += 1
        if self._counts[event, lane] <= MAX_LOGGED:
            entry = {"event": event, "lane": lane, "target": target[:MAX_TEXT], "why": why[:MAX_TEXT]}
            sys.stdout.write(json.dumps(entry) + "\n")
            sys.stdout.flush()


class Proxy:
    """Serves the connections of all boxes."""

    def __init__(self, config: Mapping[str, Any], log: Log) -> None:
        self._allowed = frozenset(config["allowed"])
        self._key: str = config["key"]
        self._routes: Mapping[str, Mapping[str, tuple[str, str, str]]] = config["routes"]
        self._log = log
        self._unknown: dict[asyncio.StreamWriter, None] = {}  # oldest first
        self._lanes: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection; whatever happens in it ends there."""
        lane = ""
        try:
            lane = await self._introduced(reader, writer)
            self._enter(lane)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_TIMEOUT_S)
            await self._go(parse(head, self._allowed), lane, reader, writer)
        except Denied as denied:
            self._log.write("denied", lane, denied.target, str(denied))
            if not denied.in_tunnel:
                await _answer(writer, "403 Forbidden", f"{denied.target}: {denied}")
        except (TimeoutError, asyncio.LimitOverrunError, asyncio.IncompleteReadError, OSError, ValueError):
            pass  # the box went away, was too slow or sent no head
        finally:
            if lane:
                self._leave(lane)
            writer.close()

    async def _introduced(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """Return whose connection it is. A forwarder says so at once: of too many that wait, the oldest is none."""
        if len(self._unknown) >= MAX_UNKNOWN:
            oldest = next(iter(self._unknown))
            del self._unknown[oldest]
            oldest.transport.abort()
        self._unknown[writer] = None
        try:
            match = _LANE.fullmatch(await asyncio.wait_for(reader.readline(), HEAD_TIMEOUT_S))
        finally:
            self._unknown.pop(writer, None)
        if match is None or not hmac.compare_digest(match[2].decode(), tag_of(self._key, match[1].decode())):
            raise ValueError("no lane of ours")
        return match[1].decode()

    def _enter(self, lane: str) -> None:
        self._lanes[lane] += 1
        if self._lanes[lane] > MAX_CONNECTIONS:
            raise Denied("", f"more than {MAX_CONNECTIONS} connections at once")
        if self._lanes.total() > MAX_TOGETHER:
            self._log.write("failed", lane, "", f"all boxes together have more than {MAX_TOGETHER} connections")
            raise ValueError("full")

    def _leave(self, lane: str) -> None:
        self._lanes[lane] -= 1
        if not self._lanes[lane]:
            del self._lanes[lane]

    async def _go(self, target: Target, lane: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        route = self._routes["https" if target.head is None else "http"].get(target.pair)
        try:
            there = await asyncio.wait_for(
                _direct(target) if route is None else _through(route, target), CONNECT_TIMEOUT_S
            )
        except (TimeoutError, OSError) as error:
            why = str(error) or f"no answer in {CONNECT_TIMEOUT_S:.0f} s"
            self._log.write("failed", lane, target.pair, why)
            await _answer(writer, "502 Bad Gateway", f"{target.pair}: {why}")
            return
        try:
            if target.head is None:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                hello = await asyncio.wait_for(_read_record(reader), HEAD_TIMEOUT_S)
                check_hello(hello, target.host)
                there[1].write(hello)
                back = asyncio.ensure_future(_copy(there[0], writer))
                await _copy(reader, there[1])
                await back
            else:
                there[1].write(target.head if route is None else _for_proxy(target.head, target.pair, route[2]))
                await _copy(there[0], writer)
        finally:
            there[1].close()


async def _direct(target: Target) -> _Streams:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(target.host, target.port, type=1)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    error: OSError = OSError("the name has no address")
    for address in addresses:
        if is_inside(address):
            raise Denied(target.pair, f"its name leads to {address}, which is not outside")
        try:
            return await asyncio.open_connection(address, target.port, limit=CHUNK)
        except OSError as failed:
            error = failed
    raise error


async def _through(route: tuple[str, str, str], target: Target) -> _Streams:
    """Connect to an upstream proxy, and for a tunnel let it connect to the target."""
    host, port, authorization = route
    reader, writer = await asyncio.open_connection(host, int(port), limit=CHUNK)
    if target.head is not None:
        return reader, writer
    try:
        ask = f"CONNECT {target.pair} HTTP/1.1\r\nHost: {target.pair}\r\n\r\n".encode()
        writer.write(_authorized(ask, authorization))
        _check_established(await reader.readuntil(b"\r\n\r\n"), f"{host}:{port}")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        writer.close()
        raise OSError(f"the upstream proxy {host}:{port} gives no answer to CONNECT") from error
    except BaseException:
        writer.close()
        raise
    return reader, writer


def _check_established(answer: bytes, proxy: str) -> None:
    if not _ESTABLISHED.match(answer):
        said = answer.split(b"\r\n")[0][:MAX_TEXT].decode("ascii", "backslashreplace")
        raise OSError(f"the upstream proxy {proxy} answers: {said}")


def _for_proxy(head: bytes, pair: str, authorization: str) -> bytes:
    """Return a request as a proxy wants it: with the whole URL (RFC 9112, section 3.2.2)."""
    return _authorized(head.replace(b" /", f" http://{pair}/".encode(), 1), authorization)


def _authorized(head: bytes, authorization: str) -> bytes:
    field = f"Proxy-Authorization: {authorization}\r\n\r\n".encode()
    return head[:-2] + field if authorization else head


async def _read_record(reader: asyncio.StreamReader) -> bytes:
    """Read one TLS record: five bytes of header, the last two of which are the length of the rest."""
    header = await reader.readexactly(5)
    return header + await reader.readexactly(int.from_bytes(header[3:], "big"))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction up to its end, and tell the other side that it has ended."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        if writer.can_write_eof():
            writer.write_eof()


async def _answer(writer: asyncio.StreamWriter, status: str, why: str) -> None:
    body = f"swe-miner proxy: {why}\n".encode("ascii", "backslashreplace")
    head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    with contextlib.suppress(OSError):
        writer.write(head.encode() + body)
        await writer.drain()


async def main(path: str, config: Mapping[str, Any]) -> None:
    """Listen on a UNIX socket until the end of the process."""
    log = Log()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - this file stays free of imports that it can do without
    server = await asyncio.start_unix_server(Proxy(config, log).serve, path, limit=MAX_HEAD, backlog=512)
    os.chmod(path, 0o666)  # noqa: PTH101, S103 - boxes connect as other users; what they may do is decided here
    log.write("ready")
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as file:  # noqa: PTH123 - as above
        asyncio.run(main(sys.argv[1], json.load(file)))
