"""The proxy itself, on a UNIX socket and loopback: whose connection it is, and the way through another proxy."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from miner.sandbox.proxy import proxy as program
from miner.sandbox.proxy.proxy import Log, Proxy, tag_of

KEY = "the key of this run"
PAIR = "index.test:443"


class Upstream:
    """A proxy of a company, on loopback: answers as told, then echoes."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.heads: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self.answer)
            while data := await reader.read(1000):
                writer.write(b"echo " + data)
        writer.close()


class Client:
    """A box's end of the proxy's socket."""

    def __init__(self, socket: str) -> None:
        self.socket = socket

    async def connect(self, first: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_unix_connection(self.socket)
        writer.write(first)
        return reader, writer

    async def ask(self, request: bytes, lane: str = "box-1") -> bytes:
        """Send one request and return everything up to the end."""
        reader, writer = await self.connect(lane_of(lane) + request)
        with contextlib.suppress(OSError):
            writer.write_eof()
        answer = await reader.read()
        writer.close()
        return answer


def lane_of(name: str) -> bytes:
    return f"LANE {name} {tag_of(KEY, name)}\n".encode()


def connect(pair: str = PAIR) -> bytes:
    return f"CONNECT {pair} HTTP/1.1\r\n\r\n".encode()


def hello(name: str) -> bytes:
    out = ssl.MemoryBIO()
    connection = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return out.read()


def run(test: Callable[[Client], Awaitable[None]], upstream: Upstream | None = None, authorization: str = "") -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            routes: dict[str, Any] = {"https": {}, "http": {}}
            async with contextlib.AsyncExitStack() as servers:
                if upstream is not None:
                    there = await servers.enter_async_context(await asyncio.start_server(upstream.serve, "127.0.0.1"))
                    upstream.port = there.sockets[0].getsockname()[1]
                    route = ["127.0.0.1", str(upstream.port), authorization]
                    routes = {"https": {PAIR: route}, "http": {"index.test:80": route}}
                config = {"allowed": [PAIR, "index.test:80", "127.0.0.1:443"], "key": KEY, "routes": routes}
                served = Proxy(config, Log()).serve
                socket = f"{folder}/socket"
                await servers.enter_async_context(await asyncio.start_unix_server(served, socket, limit=16384))
                await asyncio.wait_for(test(Client(socket)), 30)

    asyncio.run(main())


def events(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str, str]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [(line["event"], line["lane"], line["why"]) for line in lines]


def test_tunnel_goes_through_the_upstream_proxy_with_its_login() -> None:
    upstream = Upstream(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n")

    async def test(client: Client) -> None:
        reader, writer = await client.connect(lane_of("box-1") + connect())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connection established\r\n\r\n"
        writer.write(hello("index.test"))
        assert (await reader.readexactly(5 + 1))[:5] == b"echo "
        writer.close()

    run(test, upstream, "Basic bWU6c2VjcmV0")
    assert upstream.heads == [
        b"CONNECT index.test:443 HTTP/1.1\r\nHost: index.test:443\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n"
    ]


def test_another_name_in_the_tunnel_does_not_get_through_the_upstream_proxy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def test(client: Client) -> None:
        assert b"echo" not in await client.ask(connect() + hello("evil.test"))

    run(test, Upstream(b"HTTP/1.1 200 OK\r\n\r\n"))
    assert events(capsys) == [("denied", "box-1", "in the tunnel the name 'evil.test' is asked for")]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407 Proxy Authentication Required"),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "503"),
        (b"SSH-2.0-x\r\n\r\n", "SSH-2.0-x"),
        (b"x" * 70000 * 3, "no answer to CONNECT"),
    ],
)
def test_upstream_proxy_that_refuses_is_a_failure_of_the_network(
    capsys: pytest.CaptureFixture[str], answer: bytes, why: str
) -> None:
    async def test(client: Client) -> None:
        assert (await client.ask(connect())).startswith(b"HTTP/1.1 502 ")

    run(test, Upstream(answer))
    [(event, lane, said)] = events(capsys)
    assert (event, lane) == ("failed", "box-1")
    assert why in said


def test_plain_request_is_sent_to_the_upstream_proxy_with_its_whole_address() -> None:
    upstream = Upstream(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    async def test(client: Client) -> None:
        request = b"GET http://index.test/simple/ HTTP/1.1\r\nProxy-Authorization: Basic eA==\r\n\r\n"
        reader, writer = await client.connect(lane_of("box-1") + request)
        assert b"\r\n\r\nok" in await reader.readuntil(b"ok")
        writer.close()

    run(test, upstream, "Basic bWU6c2VjcmV0")
    assert upstream.heads == [
        b"GET http://index.test:80/simple/ HTTP/1.1\r\nhost: index.test:80\r\nconnection: close\r\n"
        b"Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n"
    ]


@pytest.mark.parametrize(
    "first",
    [
        b"LANE box-1\n",
        b"LANE box-1 " + b"0" * 32 + b"\n",
        f"LANE box-2 {tag_of(KEY, 'box-1')}\n".encode(),
        f"LANE box-1 {tag_of('another key', 'box-1')}\n".encode(),
        b"",
        b"GET http://index.test/ HTTP/1.1\r\n\r\n",
        b"\xff" * 20000,
    ],
)
def test_lane_that_was_not_given_by_us_is_neither_served_nor_logged(
    capsys: pytest.CaptureFixture[str], first: bytes
) -> None:
    async def test(client: Client) -> None:
        reader, writer = await client.connect(first + connect("evil.test:443"))
        with contextlib.suppress(OSError):
            writer.write_eof()
            assert await reader.read() == b""
        writer.close()

    run(test)
    assert events(capsys) == []


def test_one_lane_has_a_bounded_number_of_connections_and_of_log_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "MAX_CONNECTIONS", 5)
    monkeypatch.setattr(program, "MAX_LOGGED", 3)

    async def test(client: Client) -> None:
        waiting = [await client.connect(lane_of("box-1")) for _ in range(5)]
        await asyncio.sleep(0.1)
        for _ in range(6):
            assert b"more than 5 connections" in await client.ask(connect())
        assert b"403" in await client.ask(connect("evil.test:443"), lane="box-2")
        for _, writer in waiting:
            writer.close()
        await asyncio.sleep(0.1)
        assert b"127.0.0.1, which is not outside" in await client.ask(connect("127.0.0.1:443"))

    run(test)
    assert [lane for _, lane, _ in events(capsys)] == ["box-1"] * 3 + ["box-2"]


def test_all_lanes_together_are_bounded_and_who_is_turned_away_had_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "MAX_TOGETHER", 5)

    async def test(client: Client) -> None:
        waiting = [await client.connect(lane_of(f"box-{number}")) for number in range(5)]
        await asyncio.sleep(0.1)
        assert await client.ask(connect(), lane="box-9") == b""
        for _, writer in waiting:
            writer.close()

    run(test)
    [(event, lane, _)] = events(capsys)
    assert (event, lane) == ("failed", "box-9")


def test_connections_that_do_not_say_whose_they_are_give_way_to_those_that_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program, "MAX_UNKNOWN", 5)

    async def test(client: Client) -> None:
        silent = [await client.connect(b"LANE ") for _ in range(20)]
        await asyncio.sleep(0.1)
        assert b"403" in await client.ask(connect("evil.test:443"))
        with contextlib.suppress(ConnectionResetError):
            assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()

    run(test)


def test_program_needs_the_standard_library_only() -> None:
    for name in ("proxy.py", "rules.py", "forward.py"):
        text = (Path(program.__file__).with_name(name)).read_text()
        assert "import miner" not in text
        assert "from miner" not in text
