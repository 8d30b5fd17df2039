"""A fact of which something was evicted is an answer like another, and only to a strict memo not known."""

from __future__ import annotations

from miner.core.memo import Facts, Memo
from miner.core.records import Fact, FactKey, Observation, Producer

PRODUCER = Producer(name="test", epoch=1)


class Store:
    """A memo's memory, and what of it is lost."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.lost: set[str] = set()
        self.measured: list[str] = []

    def memo(self) -> Memo:
        return Memo(self._find, self.facts.append, whole=lambda fact: not self.lost & set(fact.blobs.values()))

    def _find(self, key: FactKey) -> list[Fact]:
        return [fact for fact in self.facts if fact.key.model_copy(update={"ordinal": key.ordinal}) == key]

    def ask(self, memo: Memo, name: str) -> Fact:
        def run() -> Observation:
            self.measured.append(name)
            self.lost.discard(name)
            return Observation(blobs={"layer": name})

        return memo.measure(PRODUCER, "test.layer", name, {}, run)


def test_a_lost_layer_is_measured_again_by_a_strict_memo_alone() -> None:
    store = Store()
    first = store.ask(store.memo(), "a")
    store.ask(store.memo(), "b")
    store.lost.add("a")
    assert store.ask(store.memo(), "a") == first
    assert store.measured == ["a", "b"]
    strict = store.memo().strict()
    again = store.ask(strict, "a")
    store.ask(strict, "b")
    assert store.measured == ["a", "b", "a"]
    assert (again.key.ordinal, again.blobs) == (1, first.blobs)
    assert store.ask(store.memo(), "a") == again


def test_a_strict_memo_stays_strict_when_it_is_patient() -> None:
    store = Store()
    store.ask(store.memo(), "a")
    store.lost.add("a")
    store.ask(store.memo().strict().patient(), "a")
    assert store.measured == ["a", "a"]


def test_facts_of_both_are_used_by_one_candidate() -> None:
    store = Store()
    memo = store.memo()
    used = [store.ask(memo, "a"), store.ask(memo.strict(), "b"), store.ask(memo.patient(), "c")]
    assert list(memo.used) == used


def test_what_is_cut_off_counts_as_used_when_it_is_used_again() -> None:
    store, facts = Store(), Facts()
    one, two = store.ask(store.memo(), "a"), store.ask(store.memo(), "b")
    for fact in (one, two, one):
        facts.note(fact)
    facts.cut(1)
    assert list(facts) == [one]
    facts.note(two)
    facts.note(one)
    assert list(facts) == [one, two]
