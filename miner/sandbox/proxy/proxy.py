"""The allow-listing proxy: the only way from a box to the package index.

It runs in a container of its own, with the standard library of Python 3.11 only: `python3 -m proxy.proxy SOCKET
HOST:PORT...`. Boxes have no network at all; they reach this proxy through a UNIX socket in a volume, by way of
`forward.py`. A connection begins with a line `LANE <name>`, which the forwarder writes, so that the log can tell whose
request it was.

What is served, `rules.py` says. Names are resolved here; an answer that points to this container itself or to a
link-local address (cloud metadata) is refused.

The log is one JSON object a line on standard output: "ready", "denied" (what a box may not do) and "failed" (an allowed
host could not be reached).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
from collections import Counter

from .rules import MAX_TEXT, Denied, Target, check_hello, is_inside, parse

MAX_HEAD = 16384
HEAD_TIMEOUT_S = 20.0
CONNECT_TIMEOUT_S = 20.0
MAX_CONNECTIONS = 256
MAX_LOGGED = 200
CHUNK = 65536

_LANE = re.compile(rb"LANE ([a-z0-9.-]{1,128})\r?\n?")


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

    def __init__(self, allowed: frozenset[str], log: Log) -> None:
        self._allowed = allowed
        self._log = log
        self._lanes: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection; whatever happens in it ends there."""
        lane = ""
        try:
            lane = await asyncio.wait_for(_read_lane(reader), HEAD_TIMEOUT_S)
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
                self._lanes[lane] -= 1
            writer.close()

    def _enter(self, lane: str) -> None:
        self._lanes[lane] += 1
        if self._lanes[lane] > MAX_CONNECTIONS:
            raise Denied("", f"more than {MAX_CONNECTIONS} connections at once")

    async def _go(self, target: Target, lane: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.wait_for(self._connect(target), CONNECT_TIMEOUT_S)
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
                there[1].write(target.head)
                await _copy(there[0], writer)
        finally:
            there[1].close()

    async def _connect(self, target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
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


async def _read_lane(reader: asyncio.StreamReader) -> str:
    match = _LANE.fullmatch(await reader.readline())
    if match is None:
        raise ValueError("no lane")
    return match[1].decode()


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


async def main(path: str, allowed: frozenset[str]) -> None:
    """Listen on a UNIX socket until the end of the process."""
    log = Log()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - this file stays free of imports that it can do without
    server = await asyncio.start_unix_server(Proxy(allowed, log).serve, path, limit=MAX_HEAD, backlog=512)
    os.chmod(path, 0o666)  # noqa: PTH101, S103 - boxes connect as other users; what they may do is decided here
    log.write("ready")
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], frozenset(sys.argv[2:])))
