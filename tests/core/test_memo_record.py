"""What happens again and again is recorded each time: the memo counts on, and does not answer with it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from miner.core.ledger import Ledger
from miner.core.memo import KeyedLocks, Memo
from miner.core.records import Observation, Producer
from miner.core.settings import load_settings

PRODUCER = Producer(name="p")


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.sqlite3")
    ledger.begin_run("r", "run", load_settings(environ={}), {})
    return ledger


def memo_of(ledger: Ledger, locks: KeyedLocks | None = None) -> Memo:
    return Memo(ledger.find, lambda fact: ledger.add(fact, "r"), locks=locks)


def test_each_recording_is_a_fact_of_the_next_ordinal(ledger: Ledger) -> None:
    memo = memo_of(ledger)
    made = [memo.record(PRODUCER, "k", "s", {"x": 1}, Observation(payload={"n": n})) for n in range(3)]
    assert [fact.key.ordinal for fact in made] == [0, 1, 2]
    assert ledger.find(made[0].key) == made
    assert memo_of(ledger).record(PRODUCER, "k", "s", {"x": 1}, Observation()).key.ordinal == 3
    assert memo.record(PRODUCER, "k", "s", {"x": 2}, Observation()).key.ordinal == 0


def test_a_recording_is_kept_as_it_was_seen_and_is_nothing_that_was_answered_with(ledger: Ledger) -> None:
    memo = memo_of(ledger)
    seen = Observation(outcome="model-error", measures={"wall_s": 9.0}, logs={"error": "a" * 64}, network=True)
    made = memo.record(PRODUCER, "k", "s", {}, seen)
    assert Observation(**made.model_dump(exclude={"key", "observed_at"})) == seen
    assert memo.used == []


def test_recordings_count_on_over_what_was_taken_out_of_use(ledger: Ledger) -> None:
    memo = memo_of(ledger)
    memo.record(PRODUCER, "k", "s", {}, Observation())
    ledger.invalidate(why="a bug", producer="p")
    assert memo.record(PRODUCER, "k", "s", {}, Observation()).key.ordinal == 1


def test_workers_that_record_at_once_lose_nothing(ledger: Ledger) -> None:
    locks = KeyedLocks()
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: memo_of(ledger, locks).record(PRODUCER, "k", "s", {}, Observation()), range(40)))
    assert sorted(fact.key.ordinal for fact in made) == list(range(40))
    assert ledger.count_facts() == 40
