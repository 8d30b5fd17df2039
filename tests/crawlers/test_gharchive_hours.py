"""Where hours come from: folders, fsspec URLs, HTTP; what is missing is a value, what is broken is a fault."""

from __future__ import annotations

import gzip
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest
from gharchive_maker import HOUR, plain, slim, write

from miner.core.errors import ConfigError, InfrastructureFault
from miner.core.reasons import Reason
from miner.crawlers.gharchive import HourArchive, HourReport, hours_of, read_hour

PACKED = gzip.compress(plain([slim(number) for number in range(1, 400)]))


class Server:
    """Hours over HTTP; `faults` are for the next requests, one each: a status, or "cut", "html", "reset", "slow"."""

    def __init__(self) -> None:
        self.hours: dict[str, bytes] = {}
        self.faults: list[str] = []
        self.headers: dict[str, str] = {}
        self.knows_head = True
        self.requests: list[tuple[str, dict[str, str]]] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def start(self) -> None:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.requests.append((self.path, dict(self.headers)))
            fault = server.faults.pop(0) if server.faults else ""
            data = server.hours.get(self.path)
            if fault == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                return
            if fault == "slow":
                time.sleep(0.5)
            if fault.isdigit() or data is None:
                self.answer(int(fault or 404), b"on purpose", {})
            elif fault == "html":
                self.answer(200, b"\n<!DOCTYPE html><html>You have exceeded a rate limit</html>", {})
            else:
                self.answer(200, data, server.headers, sent=len(data) // 2 if fault == "cut" else None)

        def do_HEAD(self) -> None:
            if server.knows_head:
                self.do_GET()
            else:
                server.requests.append((self.path, dict(self.headers)))
                self.answer(405, b"", {})

        def answer(self, status: int, data: bytes, headers: dict[str, str], sent: int | None = None) -> None:
            self.send_response(status)
            for key, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data[:sent])

        def log_message(self, *args: Any) -> None:
            pass

        def finish(self) -> None:
            with suppress(OSError, ValueError):
                super().finish()

    return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    server.hours[f"/{HOUR}.json.gz"] = PACKED
    server.start()
    yield server
    server.stop()


def archive(location: str, **options: Any) -> HourArchive:
    return HourArchive(location, **{"timeout_s": 0.2, "tries": 3, "wait_s": 0.01, **options})


def read(location: str, **options: Any) -> tuple[int, HourReport]:
    reading = read_hour(archive(location, **options), HOUR)
    return len(list(reading)), reading.report


@pytest.mark.parametrize(("month", "count"), [("2025-05", 744), ("2024-02", 696), ("2025-02", 672), ("2025-12", 744)])
def test_hours_of_a_month(month: str, count: int) -> None:
    hours = hours_of(month)
    assert len(set(hours)) == count
    assert hours[0] == f"{month}-01-0"
    assert hours[33] == f"{month}-02-9"
    assert hours[-1].endswith("-23")


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_folder(tmp_path: Path, slash: str) -> None:
    write(tmp_path, PACKED)
    assert read(f"{tmp_path}{slash}")[0] == 399


def test_a_url_of_fsspec() -> None:
    with fsspec.open(f"memory://hours/{HOUR}.json.gz", "wb") as file:
        file.write(PACKED)
    found = archive("memory://hours")
    assert len(list(read_hour(found, HOUR))) == 399
    other = read_hour(found, "2025-05-01-1")
    assert (list(other), other.report.state) == ([], "missing")


@pytest.mark.parametrize("location", ["no/such/folder", "nosuch://x", "http://[half/"])
def test_a_location_that_cannot_be_is_a_wrong_setting(location: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"mine\.archive"):
        archive(location if "://" in location else str(tmp_path / location))


def test_a_file_that_cannot_be_opened_is_a_fault_and_no_missing_hour(tmp_path: Path) -> None:
    (tmp_path / f"{HOUR}.json.gz").mkdir()
    with pytest.raises(InfrastructureFault, match=HOUR) as caught:
        read(str(tmp_path))
    assert caught.value.reason is Reason.HOURS_UNREACHABLE


def test_http(server: Server) -> None:
    count, report = read(f"{server.url}/")
    assert (count, report.state, report.merges) == (399, "read", 399)
    path, headers = server.requests[-1]
    assert path == f"/{HOUR}.json.gz"
    assert headers["Accept-Encoding"] == "identity"
    assert headers["User-Agent"].startswith("Mozilla/5.0")


@pytest.mark.parametrize("status", ["404", "410"])
def test_an_hour_that_is_not_there_is_asked_for_once(server: Server, status: str) -> None:
    server.faults = [status]
    count, report = read(server.url)
    assert (count, report.state, len(server.requests)) == (0, "missing", 1)


def test_a_server_that_calls_the_files_gzip_an_encoding(server: Server) -> None:
    server.headers = {"Content-Encoding": "gzip"}
    assert read(server.url)[0] == 399


@pytest.mark.parametrize("fault", ["500", "503", "429", "html", "cut", "reset", "slow"])
def test_a_fault_is_asked_again_and_leaves_no_trace(server: Server, fault: str) -> None:
    server.faults = [fault, fault]
    count, report = read(server.url)
    assert (count, report.state, report.merges, len(server.requests)) == (399, "read", 399, 3)


@pytest.mark.parametrize("fault", ["502", "html", "cut", "reset", "slow"])
def test_a_lasting_fault_is_raised_and_is_no_missing_hour(server: Server, fault: str) -> None:
    server.faults = [fault] * 3
    with pytest.raises(InfrastructureFault, match=f"127.0.0.1.*{HOUR}") as caught:
        read(server.url)
    assert caught.value.reason is Reason.HOURS_UNREACHABLE
    assert "folder" in caught.value.next_step
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", ["401", "403", "400"])
def test_a_refusal_is_a_fault_at_once(server: Server, status: str) -> None:
    server.faults = [status]
    with pytest.raises(InfrastructureFault, match=f"status {status}"):
        read(server.url)
    assert len(server.requests) == 1


def test_no_server_at_all() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(InfrastructureFault, match="no answer"):
            read(f"http://127.0.0.1:{unused.getsockname()[1]}")


def test_an_hour_that_is_cut_on_the_server_is_truncated(server: Server) -> None:
    server.hours[f"/{HOUR}.json.gz"] = PACKED[:-50]
    count, report = read(server.url)
    assert 300 < count < 399
    assert (report.state, len(server.requests)) == ("truncated", 1)


def test_an_empty_hour_over_http(server: Server) -> None:
    server.hours[f"/{HOUR}.json.gz"] = b""
    assert read(server.url)[1].state == "empty"


def said(error: BaseException | None) -> str:
    """Return the texts of an error and of those that a traceback shows with it."""
    if error is None:
        return ""
    return f"{error}\n" + said(error.__cause__ or (None if error.__suppress_context__ else error.__context__))


@pytest.mark.parametrize("fault", ["500", "reset", "html", "403"])
def test_a_login_never_stands_in_an_error(server: Server, fault: str) -> None:
    server.faults = [fault] * 3
    with pytest.raises(InfrastructureFault) as caught:
        read(server.url.replace("//", "//somebody:hunter2@"))
    assert "hunter2" not in said(caught.value)
    assert server.requests[0][1]["Authorization"].startswith("Basic ")


def test_a_login_never_stands_in_the_error_of_an_address_that_cannot_be() -> None:
    with pytest.raises(InfrastructureFault, match="InvalidURL") as caught:
        read("http://somebody:hunter2@")
    assert "hunter2" not in said(caught.value)
    with pytest.raises(ConfigError) as refused:
        archive("http://somebody:hunter2@[half/")
    assert "hunter2" not in str(refused.value)


def test_a_stopped_run_asks_no_more(server: Server) -> None:
    stopped = threading.Event()
    stopped.set()
    server.faults = ["500"] * 3
    with pytest.raises(InfrastructureFault):
        read(server.url, stopped=stopped)
    assert len(server.requests) == 1


HOURS = (HOUR, "2025-05-01-1", "2025-05-01-2")


def test_sizes_in_a_folder(tmp_path: Path) -> None:
    for hour in (HOURS[2], HOURS[0], "2025-06-01-0"):
        write(tmp_path, PACKED, hour)
    (tmp_path / f"{HOURS[1]}.json").touch()
    assert list(archive(str(tmp_path)).sizes(HOURS).items()) == [(HOURS[0], len(PACKED)), (HOURS[2], len(PACKED))]


def test_sizes_at_a_url_of_fsspec() -> None:
    with fsspec.open(f"memory://sized/{HOUR}.json.gz", "wb") as file:
        file.write(PACKED)
    assert archive("memory://sized").sizes(HOURS) == {HOUR: len(PACKED)}
    assert archive("memory://nothing").sizes(HOURS) == {}


@pytest.mark.parametrize("knows_head", [True, False])
def test_sizes_over_http_cost_no_body(server: Server, knows_head: bool) -> None:
    server.knows_head = knows_head
    server.hours[f"/{HOURS[2]}.json.gz"] = PACKED * 2
    assert archive(server.url).sizes(HOURS) == {HOURS[0]: len(PACKED), HOURS[2]: 2 * len(PACKED)}
    assert len(server.requests) == (3 if knows_head else 6)


@pytest.mark.parametrize("fault", ["500", "429", "reset", "slow"])
def test_a_size_is_asked_for_again(server: Server, fault: str) -> None:
    server.faults = [fault]
    assert archive(server.url).sizes([HOUR]) == {HOUR: len(PACKED)}


@pytest.mark.parametrize("faults", [["403"], ["500"] * 3])
def test_a_size_that_nobody_says_is_a_fault(server: Server, faults: list[str]) -> None:
    server.faults = faults
    with pytest.raises(InfrastructureFault) as caught:
        archive(server.url).sizes([HOUR])
    assert caught.value.reason is Reason.HOURS_UNREACHABLE
    assert not server.faults


def test_an_hour_without_a_size_is_there(server: Server) -> None:
    server.headers = {"Content-Length": "", "Connection": "close"}
    assert archive(server.url).sizes([HOUR]) == {HOUR: None}
