"""Notices: the operator's command is told what happens, and nothing that it does hurts a run."""

from __future__ import annotations

import json
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawlers.index_server import IndexServer
from structlog.testing import capture_logs
from world import quiet_pair, settings

from miner.core.errors import ConfigError, IndexUnreachable, Interrupted
from miner.core.settings import Settings
from miner.jobs import breakers, monthly
from miner.jobs.heartbeat import Pulse
from miner.jobs.notify import Notifier
from miner.jobs.summary import Summary

TOKEN = "ghp_" + "planted" * 5


@pytest.fixture
def server() -> Iterator[IndexServer]:
    with IndexServer() as found:
        yield found


@pytest.fixture
def heard(tmp_path: Path) -> Path:
    return tmp_path / "heard"


@pytest.fixture
def command(heard: Path, tmp_path: Path) -> str:
    """A command that keeps what it is told, with its environment."""
    script = tmp_path / "listen er.py"
    script.write_text(
        "import json, os, sys\n"
        "line = json.dumps({'told': json.load(sys.stdin), 'environment': dict(os.environ)})\n"
        "open(sys.argv[1], 'a').write(line + '\\n')\n"
    )
    return shlex.join([sys.executable, "-S", str(script), str(heard)])


def told(heard: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["told"] for line in heard.read_text().splitlines()]


def run(folder: Path, server: IndexServer, command: str, names: str = "ab", **more: Any) -> Summary:
    pairs = [quiet_pair(server, f"pkg{name}") for name in names]
    return monthly.run(settings(folder, server, *pairs, run__notify=json.dumps(command), **more), quiet=True)


def test_end_of_a_run_is_told_with_counts_and_the_next_command(
    server: IndexServer, tmp_path: Path, command: str, heard: Path
) -> None:
    summary = run(tmp_path, server, command)
    assert told(heard) == [
        {
            "event": "finish",
            "run_id": summary.run_id,
            "source": "pypi",
            "month": None,
            "message": "done",
            "counts": {"merged": 2, "linked": 2, "accepted": 0, "rejected": 2, "faulted": 0, "pending": 0},
            "next": "swe-miner status",
        }
    ]


def test_fault_and_stop_and_cap_are_told(server: IndexServer, tmp_path: Path, command: str, heard: Path) -> None:
    server.fail("/simple/", "reset")
    with pytest.raises(IndexUnreachable):
        run(tmp_path, server, command)
    server.heal()
    assert run(tmp_path, server, command, run__max_hours=0).capped == "run.max_hours=0 is over"
    assert [(one["event"], one["next"]) for one in told(heard)] == [
        ("breaker-open", "swe-miner status"),
        ("fault", IndexUnreachable.next_step),
        ("cap", "swe-miner status"),
    ]
    assert "no answer" in told(heard)[0]["message"]


def test_stop_is_told(
    server: IndexServer, tmp_path: Path, command: str, heard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> None:
        raise Interrupted("stopped by SIGTERM")

    monkeypatch.setattr(monthly, "mine_all", stopped)
    with pytest.raises(Interrupted):
        run(tmp_path, server, command)
    assert [(one["event"], one["message"]) for one in told(heard)] == [("stop", "stopped by SIGTERM")]


def test_breaker_that_opens_and_closes_is_told_in_this_order(
    server: IndexServer, tmp_path: Path, command: str, heard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breakers, "_FIRST_WAIT_S", 0.01)
    server.fail("/simple/", "404", times=3)
    run(tmp_path, server, command, run__pause_max_s=20, run__workers=1)
    assert [one["event"] for one in told(heard)] == ["breaker-open", "breaker-closed", "finish"]


def test_no_token_is_in_what_is_told_or_around_it(
    server: IndexServer, tmp_path: Path, command: str, heard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    notifier = Notifier(chosen(tmp_path, server, command), pulse(tmp_path, server).now)
    notifier.tell("fault", f"401 for {TOKEN}")
    notifier.close()
    assert "401 for [token 1]" in heard.read_text()
    assert TOKEN not in heard.read_text()


BROKEN = {
    "absent": ("/no/such/command", "No such file"),
    "failing": ("false", "exit code 1"),
    "deaf": ("true", ""),
    "hanging": ("sh -c 'sleep 60 & sleep 60'", "no end after 0.3 s"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_command_that_fails_is_logged_once_and_hurts_nobody(kind: str, server: IndexServer, tmp_path: Path) -> None:
    command, seen = BROKEN[kind]
    notifier = Notifier(chosen(tmp_path, server, command), pulse(tmp_path, server).now, within_s=0.3)
    began = time.monotonic()
    with capture_logs() as logs:
        for _ in range(2):
            notifier.tell("finish", "x" * 100_000)
        assert time.monotonic() - began < 0.25, "nobody waits for the command"
        notifier.close()
    assert time.monotonic() - began < 5
    assert [seen in entry["seen"] for entry in logs] == [True] * bool(seen)


def test_run_ends_as_well_where_the_command_fails(server: IndexServer, tmp_path: Path) -> None:
    assert run(tmp_path, server, "/no/such/command").faulted == 0


def test_command_that_cannot_be_read_is_a_configuration_error(server: IndexServer, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run\.notify: No closing quotation"):
        run(tmp_path, server, "mail 'me")


def test_nothing_is_started_without_a_command(server: IndexServer, tmp_path: Path) -> None:
    notifier = Notifier(settings(tmp_path, server), pulse(tmp_path, server).now)
    notifier.tell("finish", "done")
    notifier.close()
    assert "notify" not in {thread.name for thread in threading.enumerate()}


def chosen(folder: Path, server: IndexServer, command: str) -> Settings:
    return settings(folder, server, run__notify=json.dumps(command))


def pulse(folder: Path, server: IndexServer) -> Pulse:
    return Pulse(folder / "beat.json", settings(folder, server), "r", "run")
