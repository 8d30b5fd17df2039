"""A signal that comes while the ledger is written to ends the run as a signal does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import StatementError

from miner.core.database import ledger_faults
from miner.core.errors import Interrupted
from miner.core.ledger import Ledger
from miner.core.records import Fact, FactKey
from miner.core.settings import load_settings


@pytest.fixture
def stopping() -> Iterator[None]:
    def stop(_number: int, _frame: object) -> None:
        raise Interrupted("stopped by SIGTERM")

    before = signal.signal(signal.SIGTERM, stop)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("moment", ["before_execute", "before_cursor_execute", "commit"])
def test_is_the_interruption_itself_and_leaves_no_half_fact(moment: str, stopping: None, tmp_path: Path) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.sqlite3")
    ledger.begin_run("r", "run", load_settings(environ={}), {})
    key = FactKey(kind="k", subject="s", input_hash="0" * 64, producer="p", epoch=1)
    armed = threading.Event()
    armed.set()

    def send(*_: object) -> None:
        if armed.is_set():
            armed.clear()
            signal.raise_signal(signal.SIGTERM)

    event.listen(ledger._engine, moment, send)  # there is no other way to hit the moment
    with pytest.raises(Interrupted, match="stopped by SIGTERM"):
        ledger.add(Fact(key=key, observed_at=datetime(2025, 5, 1, tzinfo=UTC)), "r")
    assert ledger.count_facts() == 0


def test_also_where_the_library_takes_it_for_an_error_of_a_statement() -> None:
    with pytest.raises(Interrupted, match="stopped by SIGTERM"), ledger_faults():
        raise StatementError("stopped", "INSERT", {}, Interrupted("stopped by SIGTERM"))
    with pytest.raises(StatementError), ledger_faults():
        raise StatementError("a bug", "INSERT", {}, ValueError("a bug"))
