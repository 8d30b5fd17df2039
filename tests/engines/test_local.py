"""The local engine streams facts to one writer and stops cleanly."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import pytest

from miner.core.errors import Interrupted, LedgerError
from miner.core.memo import Emit
from miner.core.records import Fact, FactKey
from miner.engines.local import LocalEngine


def make_fact(subject: str) -> Fact:
    key = FactKey(kind="k", subject=subject, input_hash="0", producer="p", epoch=1)
    return Fact(key=key, observed_at=datetime(2024, 1, 1, tzinfo=UTC))


def emit_two(unit: int, emit: Emit) -> int:
    for part in ("a", "b"):
        emit(make_fact(f"{unit}{part}"))
    return unit * 10


def test_every_unit_gives_its_result_and_every_fact_arrives_in_its_order() -> None:
    stored: list[str] = []
    engine: LocalEngine[int, int] = LocalEngine(4, threading.Event())
    results = list(engine.map(emit_two, range(20), lambda fact: stored.append(fact.key.subject)))
    assert sorted(results) == [unit * 10 for unit in range(20)]
    assert sorted(stored) == sorted(f"{unit}{part}" for unit in range(20) for part in "ab")
    assert all(stored.index(f"{unit}a") < stored.index(f"{unit}b") for unit in range(20))


def test_facts_are_stored_in_the_caller_s_thread_only() -> None:
    threads: set[int] = set()
    engine: LocalEngine[int, int] = LocalEngine(3, threading.Event())
    list(engine.map(emit_two, range(6), lambda fact: threads.add(threading.get_ident())))
    assert threads == {threading.get_ident()}


def test_a_worker_goes_on_only_when_its_fact_is_stored() -> None:
    stored: list[str] = []

    def work(unit: int, emit: Emit) -> int:
        emit(make_fact("x"))
        return len(stored)

    def slowly(fact: Fact) -> None:
        time.sleep(0.05)
        stored.append(fact.key.subject)

    engine: LocalEngine[int, int] = LocalEngine(1, threading.Event())
    assert list(engine.map(work, [0], slowly)) == [1]


def test_a_unit_s_exception_reaches_the_caller() -> None:
    def work(unit: int, emit: Emit) -> int:
        raise ZeroDivisionError(unit)

    engine: LocalEngine[int, int] = LocalEngine(2, threading.Event())
    with pytest.raises(ZeroDivisionError):
        list(engine.map(work, range(3), lambda fact: None))


def test_a_ledger_that_cannot_store_ends_the_mapping_and_no_worker_hangs() -> None:
    def refuse(fact: Fact) -> None:
        raise LedgerError("full")

    engine: LocalEngine[int, int] = LocalEngine(3, threading.Event())
    with pytest.raises(LedgerError):
        list(engine.map(emit_two, range(10), refuse))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("unit")]


def test_a_unit_that_hangs_is_not_waited_for_when_the_mapping_ends_early() -> None:
    inside, release = threading.Event(), threading.Event()
    stored: list[Fact] = []

    def work(unit: int, emit: Emit) -> int:
        if unit == 0:
            inside.set()
            release.wait(30)
            emit(make_fact("late"))
            return 0
        inside.wait(30)
        raise ZeroDivisionError

    stop = threading.Event()
    engine: LocalEngine[int, int] = LocalEngine(2, stop, stop.set, grace_s=0.2)
    started = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        list(engine.map(work, range(2), stored.append))
    assert time.monotonic() - started < 10
    release.set()
    for thread in threading.enumerate():
        if thread.name.startswith("unit"):
            thread.join(10)
            assert not thread.is_alive()
    assert stored == []


def test_what_a_unit_begins_after_the_mapping_has_ended_is_ended_too() -> None:
    stop, inside, ended = threading.Event(), threading.Event(), threading.Semaphore(0)
    late: list[bool] = []

    def work(unit: int, emit: Emit) -> int:
        if unit == 1:
            inside.wait(30)
            raise ZeroDivisionError
        inside.set()
        late.extend(ended.acquire(timeout=30) for _ in ("begun before", "begun after"))
        return 0

    def abort() -> None:
        stop.set()
        ended.release()

    engine: LocalEngine[int, int] = LocalEngine(2, stop, abort)
    started = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        list(engine.map(work, range(2), lambda fact: None))
    assert late == [True, True]
    assert time.monotonic() - started < 5


def test_after_a_stop_no_fact_is_stored_and_nothing_new_starts() -> None:
    stop = threading.Event()
    started: list[int] = []
    stored: list[str] = []

    def work(unit: int, emit: Emit) -> int:
        started.append(unit)
        stop.set()
        emit(make_fact("late"))
        return unit

    engine: LocalEngine[int, int] = LocalEngine(1, stop)
    with pytest.raises(Interrupted):
        list(engine.map(work, range(50), lambda fact: stored.append(fact.key.subject)))
    assert stored == []
    assert len(started) < 50
