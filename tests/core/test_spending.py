"""No cap is exceeded: bounds are reserved atomically, and what was never settled counts at its bound for ever."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.core import tables as t
from miner.core.ledger import Ledger
from miner.core.settings import Run, load_settings
from miner.core.spending import MOST, NANO, Caps, OverCap, Spending, as_text, dollars

NO_CAPS = Caps()
NOVEMBER = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)


def ledger_at(folder: Path, *runs: str) -> Ledger:
    ledger = Ledger(f"sqlite:///{folder}/ledger.sqlite3")
    for run in runs:
        ledger.begin_run(run, "run", load_settings(environ={}), {})
    return ledger


def counted(ledger: Ledger) -> list[tuple[int, int | None]]:
    return [(row.bound, row.money) for row in ledger.rows(t.spending.select().order_by(t.spending.c.id))]


def test_a_settled_request_counts_with_what_it_cost(tmp_path: Path) -> None:
    spending = Spending(ledger_at(tmp_path, "r"))
    first = spending.reserve("r", "o/a", "m", 500, NO_CAPS)
    spending.reserve("r", "o/b", "n", 70, NO_CAPS)
    assert spending.spent("r") == dollars(570)
    spending.settle(first, 30)
    assert spending.spent("r") == dollars(100)
    assert spending.spent_by_model("r") == {"m": dollars(30), "n": dollars(70)}
    assert spending.spent_by_repository("r") == {"o/a": dollars(30), "o/b": dollars(70)}
    assert spending.spent("another") == 0.0


def test_a_cap_is_exact_and_over_it_nothing_is_reserved(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path, "r")
    spending, caps = Spending(ledger), Caps.of(Run(max_cost=1e-7))
    spending.reserve("r", "o/a", "m", 60, caps)
    with pytest.raises(
        OverCap, match=r"run\.max_cost is \$0\.000000100: \$0\.000000060 .* cost \$0\.000000041"
    ) as over:
        spending.reserve("r", "o/a", "m", 41, caps)
    assert over.value.cap == "run.max_cost"
    assert over.value.sentence == "run.max_cost leaves too little for another request"
    spending.reserve("r", "o/a", "m", 40, caps)
    assert counted(ledger) == [(60, None), (40, None)]


def test_more_than_the_bound_is_counted_as_it_was_reported(tmp_path: Path) -> None:
    spending, caps = Spending(ledger_at(tmp_path, "r")), Caps(run=100)
    spending.settle(spending.reserve("r", "o/a", "m", 10, caps), 250)
    assert spending.spent("r") == dollars(250)
    with pytest.raises(OverCap):
        spending.reserve("r", "o/a", "m", 0, caps)


def test_an_over_cap_says_whether_it_would_fit_later(tmp_path: Path) -> None:
    spending, caps = Spending(ledger_at(tmp_path, "r")), Caps(run=100)
    held = spending.reserve("r", "o/a", "m", 80, caps)
    with pytest.raises(OverCap) as over:
        spending.reserve("r", "o/a", "m", 30, caps)
    assert over.value.later
    spending.settle(held, 80)
    with pytest.raises(OverCap) as over:
        spending.reserve("r", "o/a", "m", 30, caps)
    assert not over.value.later


def test_the_cap_of_a_month_holds_over_runs_and_ends_with_the_month_in_utc(tmp_path: Path) -> None:
    now = [NOVEMBER]
    spending, caps = Spending(ledger_at(tmp_path, "r1", "r2"), clock=lambda: now[0]), Caps(run=1000, month=100)
    spending.settle(spending.reserve("r1", "o/a", "m", 80, caps), 70)
    with pytest.raises(OverCap, match="max_cost_month"):
        spending.reserve("r2", "o/a", "m", 31, caps)
    spending.reserve("r2", "o/a", "m", 30, caps)
    assert spending.spent_in_month("2026-11") == dollars(100)
    now[0] = datetime(2026, 12, 1, tzinfo=UTC)
    spending.reserve("r2", "o/a", "m", 100, caps)
    assert (spending.spent_in_month("2026-12"), spending.spent("r2")) == (dollars(100), dollars(130))


def test_the_cap_of_a_repository_holds_in_one_run(tmp_path: Path) -> None:
    spending, caps = Spending(ledger_at(tmp_path, "r1", "r2")), Caps(run=1000, repository=100)
    spending.reserve("r1", "o/a", "m", 100, caps)
    with pytest.raises(OverCap, match="max_cost_repository"):
        spending.reserve("r1", "o/a", "m", 1, caps)
    spending.reserve("r1", "o/b", "m", 100, caps)
    spending.reserve("r2", "o/a", "m", 100, caps)


def test_sixteen_workers_never_exceed_a_cap_together(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path, "r")
    spending, caps, refused = Spending(ledger), Caps(run=1000), threading.Semaphore(0)

    def work(number: int) -> None:
        try:
            held = spending.reserve("r", f"o/{number % 4}", "m", 90, caps)
        except OverCap:
            refused.release()
        else:
            spending.settle(held, 90 if number % 3 else 60)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(64)))
    rows = counted(ledger)
    assert sum(money or 0 for _, money in rows) <= 1000
    assert len(rows) >= 11
    assert refused.acquire(blocking=False), "the cap has let everything through"


def test_two_objects_of_one_ledger_keep_one_cap(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path, "r")
    both = [Spending(ledger), Spending(Ledger(f"sqlite:///{tmp_path}/ledger.sqlite3"))]

    def work(number: int) -> int:
        try:
            return both[number % 2].reserve("r", "o/a", "m", 10, Caps(run=200))
        except OverCap:
            return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(map(bool, pool.map(work, range(40)))) == 20
    assert Spending(ledger).spent("r") == dollars(200)


def test_what_another_process_is_about_to_reserve_is_waited_for(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path, "r")
    spending, caps = Spending(ledger), Caps(run=200)
    other = sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO spending VALUES (1, 'r', '2026-11', 'o/a', 'm', '', 150, NULL)")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(spending.reserve, "r", "o/a", "m", 60, caps)
        time.sleep(0.1)
        assert not asked.done()
        other.execute("COMMIT")
        with pytest.raises(OverCap):
            asked.result(10)
    other.close()
    assert counted(ledger) == [(150, None)]


KILLED = """
import os, signal, sys
from miner.core.ledger import Ledger
from miner.core.spending import Caps, Spending
spending = Spending(Ledger(sys.argv[1]))
spending.settle(spending.reserve("r1", "o/a", "m", 30, Caps(run=100)), 10)
spending.reserve("r1", "o/a", "m", 60, Caps(run=100))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_between_reserving_and_settling_costs_the_bound_for_ever(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path, "r1", "r2")
    killed = subprocess.run([sys.executable, "-c", KILLED, f"sqlite:///{tmp_path}/ledger.sqlite3"], env=os.environ)
    assert killed.returncode == -signal.SIGKILL
    assert counted(ledger) == [(30, 10), (60, None)]
    spending = Spending(ledger)
    assert spending.spent("r1") == dollars(70)
    with pytest.raises(OverCap) as over:
        spending.reserve("r2", "o/a", "m", 31, Caps(run=100, month=100))
    assert not over.value.later, "nobody is left who could settle it"
    spending.reserve("r2", "o/a", "m", 30, Caps(run=100, month=100))


def test_what_is_taken_out_of_use_was_paid_all_the_same(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path, "r")
    spending = Spending(ledger)
    spending.settle(spending.reserve("r", "o/a", "m", 50, NO_CAPS), 40)
    ledger.invalidate(why="a bug", producer="installers.models")
    assert spending.spent("r") == dollars(40)


def test_a_ledger_of_version_three_gets_the_table_and_keeps_its_runs(tmp_path: Path) -> None:
    ledger_at(tmp_path, "r").close()
    with sqlite3.connect(tmp_path / "ledger.sqlite3") as connection:
        connection.execute("DROP TABLE spending")
        connection.execute("UPDATE schema_version SET version = 3")
    connection.close()
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.sqlite3")
    assert [run.run_id for run in ledger.runs()] == ["r"]
    Spending(ledger).reserve("r", "o/a", "m", 5, NO_CAPS)
    assert counted(ledger) == [(5, None)]


def test_an_infinite_cap_is_none_and_parts_of_a_nano_dollar_are_cut_off() -> None:
    assert Caps.of(Run(max_cost=float("inf"), max_cost_repository=None)) == NO_CAPS
    assert Caps.of(Run(max_cost=0.1, max_cost_month=1.23456789012, max_cost_repository=20)) == (
        100_000_000,
        1_234_567_890,
        20 * NANO,
    )


def test_amounts_that_no_column_holds_are_cut(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path, "r")
    spending = Spending(ledger)
    spending.settle(spending.reserve("r", "o/a", "m", 10**30, NO_CAPS), 10**40)
    spending.settle(spending.reserve("r", "o/a", "m", -5, NO_CAPS), -7)
    assert counted(ledger) == [(MOST, MOST), (0, 0)]


def test_amounts_for_people_are_never_rounded_to_nothing() -> None:
    assert [as_text(amount) for amount in (0, 1, 99_999, 100_000, 20 * NANO)] == [
        "$0.0000",
        "$0.000000001",
        "$0.000099999",
        "$0.0001",
        "$20.0000",
    ]


steps = st.lists(
    st.tuples(st.sampled_from(["o/a", "o/b"]), st.integers(0, 60), st.none() | st.integers(0, 80)), max_size=12
)


@given(steps, st.integers(0, 150), st.integers(0, 100))
def test_in_any_order_no_bound_is_reserved_beyond_a_cap(
    asked: list[tuple[str, int, int | None]], run: int, repository: int
) -> None:
    ledger = Ledger("sqlite://")
    ledger.begin_run("r", "run", load_settings(environ={}), {})
    spending, total, of = Spending(ledger), 0, dict.fromkeys(("o/a", "o/b"), 0)
    for name, bound, cost in asked:
        fits = total + bound <= run and of[name] + bound <= repository
        try:
            held = spending.reserve("r", name, "m", bound, Caps(run=run, repository=repository))
        except OverCap:
            assert not fits
            continue
        assert fits
        if cost is not None:
            spending.settle(held, cost)
        total, of[name] = total + (bound if cost is None else cost), of[name] + (bound if cost is None else cost)
    assert spending.spent("r") == dollars(total)
