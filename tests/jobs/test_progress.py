"""Progress: a bar on a terminal, plain lines in a pipe, nothing where only JSON is wanted."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest

from miner.core.reasons import Reason, Stage
from miner.core.records import Decision, Fact, FactKey, State
from miner.jobs.progress import reporter

KEY = FactKey(kind="install.lock", subject="env-0123", input_hash="0", producer="p", epoch=1)
FACT = Fact(key=KEY, observed_at=datetime(2025, 1, 1, tzinfo=UTC), outcome="lock-failed", measures={"wall_s": 2.04})
DECISION = Decision(
    instance_id="pypi__x-1",
    state=State.REJECTED,
    stage=Stage.INSTALL,
    code=Reason.LOCK_FAILED,
    sentence="no [bold]solution[/bold]\nin caf\udce9",
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, quiet: bool = False) -> str:
    monkeypatch.setattr("sys.stdout", stream)
    with reporter(quiet=quiet) as report:
        report.begin("mine", 2)
        report.fact(FACT)
        report.decided(DECISION)
    return stream.getvalue()


def test_lines_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(io.StringIO(), monkeypatch) == (
        "  env-0123 install.lock lock-failed 2.0s\n- pypi__x-1 [lock-failed] no [bold]solution[/bold] in caf\\udce9\n"
    )


def test_bar_on_a_terminal_with_decisions_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    text = told(Terminal(), monkeypatch)
    assert "- pypi__x-1 [lock-failed] no [bold]solution[/bold] in caf\\udce9" in text
    assert "1/2" in text


def test_nothing_with_json(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(Terminal(), monkeypatch, quiet=True) == ""
