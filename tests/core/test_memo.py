"""Measured once: the memo asks the ledger first, and asks a network service twice before a no is final."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from miner.core.errors import IndexUnreachable
from miner.core.ledger import Ledger
from miner.core.memo import Memo, is_final
from miner.core.records import Fact, Observation, Producer
from miner.core.settings import load_settings

PRODUCER = Producer(name="p")


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2024, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger("sqlite://")
    ledger.begin_run("r", "run", load_settings(environ={}), {})
    return ledger


@pytest.fixture
def memo(ledger: Ledger, clock: Clock) -> Memo:
    return Memo(ledger.find, lambda fact: ledger.add(fact, "r"), recheck_after=timedelta(hours=6), clock=clock)


def measure(memo: Memo, seen: Observation, *, producer: Producer = PRODUCER, **inputs: object) -> Fact:
    return memo.measure(producer, "k", "s", inputs, lambda: seen)


def test_the_same_inputs_are_measured_once(memo: Memo) -> None:
    first = measure(memo, Observation(payload={"n": 1}), x=1)
    assert measure(memo, Observation(payload={"n": 2}), x=1) == first


def test_other_inputs_are_measured_apart(memo: Memo) -> None:
    measure(memo, Observation(payload={"n": 1}), x=1)
    assert measure(memo, Observation(payload={"n": 2}), x=2).payload == {"n": 2}


def test_a_raised_epoch_keeps_what_stands_and_measures_what_was_invalidated(memo: Memo, ledger: Ledger) -> None:
    raised = Producer(name="p", epoch=2)
    first = measure(memo, Observation(payload={"n": 1}))
    assert measure(memo, Observation(payload={"n": 2}), producer=raised) == first
    ledger.invalidate(why="epoch 2", producer="p", epoch=1)
    second = measure(memo, Observation(payload={"n": 2}), producer=raised)
    assert (second.key.epoch, second.payload) == (2, {"n": 2})
    assert measure(memo, Observation(payload={"n": 3}), producer=raised) == second


def test_a_fact_of_a_later_epoch_is_not_known_to_an_earlier_one(memo: Memo) -> None:
    measure(memo, Observation(payload={"n": 2}), producer=Producer(name="p", epoch=2))
    assert measure(memo, Observation(payload={"n": 1})).payload == {"n": 1}


def test_an_invalidated_fact_is_measured_again_under_the_next_ordinal(memo: Memo, ledger: Ledger) -> None:
    measure(memo, Observation(payload={"n": 1}))
    ledger.invalidate(why="a bug", producer="p")
    again = measure(memo, Observation(payload={"n": 2}))
    assert (again.key.ordinal, again.payload) == (1, {"n": 2})


def test_a_no_of_a_network_service_is_asked_for_again_hours_later_and_then_stands(memo: Memo, clock: Clock) -> None:
    no = Observation(outcome="unknown-package", network=True)
    first = measure(memo, no)
    assert not is_final([first])
    assert measure(memo, Observation()) == first, "not yet"
    clock.now += timedelta(hours=7)
    second = measure(memo, no)
    assert second.key.ordinal == 1
    assert is_final([first, second])
    clock.now += timedelta(hours=7)
    assert measure(memo, Observation()) == second, "final now"


def test_a_no_that_does_not_depend_on_the_network_is_final_at_once(memo: Memo, clock: Clock) -> None:
    first = measure(memo, Observation(outcome="archive-corrupt"))
    clock.now += timedelta(hours=7)
    assert is_final([first])
    assert measure(memo, Observation()) == first


def test_a_patient_memo_takes_an_old_no_as_it_stands(memo: Memo, clock: Clock) -> None:
    first = measure(memo, Observation(outcome="unknown-package", network=True))
    clock.now += timedelta(days=400)
    assert measure(memo.patient(), Observation()) == first
    assert measure(memo, Observation()).key.ordinal == 1


def test_the_memo_tells_what_it_answered_with_in_order_and_once(memo: Memo) -> None:
    first, second = measure(memo, Observation(), x=1), measure(memo.patient(), Observation(), x=2)
    assert measure(memo, Observation(), x=1) == first
    assert memo.used == [first, second]


def test_a_memo_that_is_apart_knows_the_same_and_tells_on_its_own_what_it_answered_with(memo: Memo) -> None:
    first = measure(memo, Observation(), x=1)
    apart = memo.apart()
    second = measure(apart, Observation(), x=2)
    assert measure(apart, Observation(payload={"n": 2}), x=1) == first
    assert (memo.used, apart.used) == ([first], [second, first])
    assert measure(memo, Observation(payload={"n": 2}), x=2) == second


def test_a_memo_that_is_apart_is_as_patient_as_the_one_that_it_comes_from(memo: Memo, clock: Clock) -> None:
    first = measure(memo, Observation(outcome="unknown-package", network=True))
    clock.now += timedelta(days=400)
    assert measure(memo.patient().apart(), Observation()) == first
    assert measure(memo.apart(), Observation()).key.ordinal == 1


def test_a_fault_of_the_infrastructure_leaves_no_fact(memo: Memo, ledger: Ledger) -> None:
    def broken() -> Observation:
        raise IndexUnreachable("no route")

    with pytest.raises(IndexUnreachable):
        memo.measure(PRODUCER, "k", "s", {}, broken)
    assert ledger.count_facts() == 0


def test_two_workers_that_need_the_same_fact_measure_it_once() -> None:
    stored: list[Fact] = []
    memo = Memo(lambda key: [fact for fact in stored if fact.key == key], stored.append)
    inside, release = threading.Event(), threading.Event()

    def slow() -> Observation:
        inside.set()
        release.wait(10)
        return Observation(payload={"n": 1})

    first = threading.Thread(target=lambda: memo.measure(PRODUCER, "k", "s", {}, slow))
    first.start()
    assert inside.wait(10)
    second = threading.Thread(
        target=lambda: memo.measure(PRODUCER, "k", "s", {}, lambda: Observation(payload={"n": 2}))
    )
    second.start()
    release.set()
    first.join(10)
    second.join(10)
    assert [fact.payload for fact in stored] == [{"n": 1}]
