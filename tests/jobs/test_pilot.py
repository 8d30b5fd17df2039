"""A pilot: a stratified sample goes through all stages, says what all would come to, and is not mined again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import forge_month
import pytest
from crawlers.index_server import IndexServer
from forge import Forge, World
from hypothesis import given
from hypothesis import strategies as st
from world import Pair, project, settings

from miner.core.blobs import BlobStore
from miner.core.ledger import Ledger
from miner.core.memo import Memo
from miner.core.records import ReleasePair
from miner.core.settings import Settings
from miner.crawlers.index import IndexClient
from miner.crawlers.interface import Found
from miner.crawlers.pypi import PypiSource
from miner.jobs import monthly, pilot
from miner.jobs.estimate import Interval, exactly, mean, share, student
from miner.jobs.pilot import allocate, draw, repository_of, stratify
from miner.jobs.render import pilot_text
from miner.jobs.summary import Summary

pytestmark = pytest.mark.loopback


@pytest.fixture
def server() -> Iterator[IndexServer]:
    with IndexServer() as found:
        yield found


class Units(PypiSource):
    """Release pairs, a unit for each package."""

    def units(self, _memo: Memo) -> tuple[str, ...]:
        return tuple(sorted({pair.name for pair in self._pairs}))

    def discover(self, unit: str, memo: Memo) -> Found[ReleasePair]:
        items = tuple(pair for pair in super().discover("", memo).items if pair.name == unit)
        return replace(Found(items=items), merged=len(items) + 1, unlinked=1)


def source(chosen: Settings) -> Units:
    work = chosen.paths.work
    index = IndexClient(chosen.index, work / "downloads")
    return Units(chosen.pairs, index, BlobStore(chosen.paths.blobs), work / "repos", chosen.measure.archive)


def package(server: IndexServer, name: str, releases: int) -> list[Pair]:
    """A package with so many pairs, none of which changes a test."""
    for number in range(releases + 1):
        server.release(name, f"1.{number}", project(name, f"1.{number}", fixed=False))
    return [{"name": name, "old": f"1.{n}", "new": f"1.{n + 1}"} for n in range(releases)]


def run(chosen: Settings) -> Summary:
    return monthly.run(chosen, quiet=True, source=source(chosen))


def test_sample_goes_through_all_stages_and_the_whole_run_measures_nothing_of_it_again(
    server: IndexServer, tmp_path: Path
) -> None:
    pairs = [*package(server, "busy", 6), *(pair for name in "abc" for pair in package(server, name, 1))]
    flown = run(settings(tmp_path, server, *pairs, mine__pilot=4, mine__month="2024-02"))
    assert (len(flown.decisions), flown.measured, flown.faulted) == (4, 8, 0)
    assert flown.pilot is not None
    assert flown.pilot.sampled == {"repositories with 1": (1, 3), "repositories with 5-16": (3, 6)}
    assert (flown.pilot.units, flown.pilot.units_seen, flown.pilot.candidates) == (4, 4, exactly(9))
    assert (flown.discovery.linked, flown.discovery.entered, flown.discovery.left) == (9, 4, 5)  # type: ignore[union-attr]
    assert flown.pilot.tasks.low == 0 < flown.pilot.tasks.high < 9
    assert flown.release == ""
    assert not (tmp_path / "out").exists()
    ledger = Ledger(settings(tmp_path, server).paths.ledger)
    before = {fact for name in flown.decisions for fact in name.trail}
    whole = run(settings(tmp_path, server, *pairs, mine__month="2024-02"))
    assert (whole.measured, len(whole.decisions)) == (2 * 9 - 8, 9)
    assert {fact for one in whole.decisions for fact in one.trail} > before
    assert [(row.command, row.status) for row in ledger.runs()] == [("pilot", "done"), ("run", "done")]


def test_pilot_over_everything_is_exact(server: IndexServer, tmp_path: Path) -> None:
    pairs = package(server, "a", 3)
    flown = run(settings(tmp_path, server, *pairs, mine__pilot=50))
    assert flown.pilot is not None
    assert (len(flown.decisions), flown.pilot.tasks, flown.pilot.money) == (3, exactly(0), exactly(0))
    assert flown.pilot.hours.low == flown.pilot.hours.high > 0
    assert flown.pilot.seconds["source"] > 0


def test_of_many_units_a_seeded_sample_is_looked_into_and_said_so(
    server: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pilot, "MOST_UNITS", 4)
    pairs = [pair for number in range(12) for pair in package(server, f"pkg{number}", 1 + number % 2)]
    flown = run(settings(tmp_path, server, *pairs, mine__pilot=3))
    assert flown.pilot is not None
    assert (flown.pilot.units, flown.pilot.units_seen) == (12, 4)
    assert flown.pilot.candidates.low <= 18 <= flown.pilot.candidates.high
    assert "4 of 12 repositories were looked into: a seeded sample" in flown.pilot.assumptions
    seen = {unit.unit for unit in Ledger(settings(tmp_path, server).paths.ledger).intake(flown.run_id)}
    again = run(settings(tmp_path, server, *pairs, mine__pilot=3))
    assert {one.instance_id for one in again.decisions} == {one.instance_id for one in flown.decisions}
    assert again.measured == 0
    other = run(settings(tmp_path, server, *pairs, mine__pilot=3, mine__seed=1))
    assert seen != {unit.unit for unit in Ledger(settings(tmp_path, server).paths.ledger).intake(other.run_id)}


def test_forge_is_asked_for_the_repositories_of_the_sample_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pilot, "MOST_UNITS", 3)
    monkeypatch.setenv("GITHUB_TOKEN", forge_month.TOKEN)
    world, names = World(tmp_path / "forge"), [f"octo/lib{number}" for number in range(8)]
    for name in names:
        forge_month.mend(forge_month.library(world, name), "one")
    with Forge(world) as forge:
        flown = forge_month.run(forge_month.settings(tmp_path, forge, *names, mine__pilot=2))
        assert flown.pilot is not None
        assert (flown.pilot.units, flown.pilot.units_seen, len(flown.decisions)) == (8, 3, 2)
        assert flown.pilot.points.low <= flown.spent.points <= flown.pilot.points.high
        assert len({fact.key.subject for fact in forge_month.facts_in(chosen(tmp_path, forge), "crawl.page")}) == 3
        whole = forge_month.run(chosen(tmp_path, forge, *names))
        assert (len(whole.decisions), whole.known) == (8, 2 * len(flown.decisions))


def chosen(folder: Path, forge: Forge, *names: str) -> Settings:
    return forge_month.settings(folder, forge, *names)


def test_candidate_that_met_a_fault_says_nothing(server: IndexServer, tmp_path: Path) -> None:
    pairs = [*package(server, "a", 1), *package(server, "b", 1)]
    server.fail("/simple/a/", "500")
    flown = run(settings(tmp_path, server, *pairs, mine__pilot=2))
    assert flown.pilot is not None
    assert flown.pilot.sampled == {"repositories with 1": (1, 2)}
    assert "1 of the sample met a fault and are left out" in flown.pilot.assumptions
    assert "pilot: 1 of 2 candidates" in pilot_text(flown.pilot)


# Strata and allocation

names = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 40)), unique=True, min_size=1, max_size=80)


@given(names, st.integers(1, 100), st.integers(0, 3))
def test_sample_is_of_every_stratum_in_proportion(found: list[tuple[str, int]], number: int, seed: int) -> None:
    ids = [f"o__{repository}-{pull}" for repository, pull in found]
    strata = stratify(ids)
    assert sorted(name for stratum in strata.values() for name in stratum) == sorted(ids)
    chosen = draw(strata, number, seed)
    drawn = [name for stratum in chosen.values() for name in stratum]
    assert len(drawn) == len(set(drawn)) == min(number, len(ids))
    assert draw({name: sorted(stratum, reverse=True) for name, stratum in strata.items()}, number, seed) == chosen
    for stratum, members in strata.items():
        assert set(chosen[stratum]) <= set(members)
        assert chosen[stratum] or number < len(strata)
        assert abs(len(chosen[stratum]) - min(number, len(ids)) * len(members) / len(ids)) < len(strata)


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 500), min_size=1), st.integers(1, 300))
def test_allocation_takes_no_more_than_there_is(sizes: dict[str, int], number: int) -> None:
    taken = allocate(sizes, number)
    assert sum(taken.values()) == min(number, sum(sizes.values()))
    assert all(0 <= taken[name] <= size for name, size in sizes.items())


def test_sample_is_spread_over_repositories() -> None:
    ids = [f"o__{name}-{number}" for name in "abcdefghij" for number in range(3)]
    [chosen] = draw(stratify(ids), 10, 0).values()
    assert set(Counter(map(repository_of, chosen)).values()) == {1}


# Statistics; expected values from R 4: prop.test(correct=FALSE), qt(0.975, n), t.test


@pytest.mark.parametrize(
    ("freedom", "expected"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (5, 2.5706), (10, 2.2281), (1000, 1.9623)]
)
def test_quantiles_of_student(freedom: int, expected: float) -> None:
    assert student(freedom) == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"), [(0, 50, 0.0, 0.07135), (3, 50, 0.02062, 0.16217), (25, 50, 0.36644, 0.63356)]
)
def test_share_of_an_endless_number_has_wilson_s_interval(hits: int, of: int, low: float, high: float) -> None:
    found = share({"all": hits}, {"all": of}, {"all": 10**9})
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)
    assert found.estimate == pytest.approx(hits / of)


def test_share_weighs_strata_by_their_size() -> None:
    found = share({"a": 5, "b": 0}, {"a": 5, "b": 5}, {"a": 100, "b": 900})
    assert found.estimate == pytest.approx(0.1)


def test_nothing_taken_says_nothing_and_everything_taken_says_all() -> None:
    assert share({}, {}, {"a": 9}) == Interval(estimate=0, low=0, high=1)
    assert share({"a": 3}, {"a": 9}, {"a": 9}) == exactly(3 / 9)
    assert mean({"a": [1.0, 3.0]}, {"a": 2}) == exactly(2.0)
    assert mean({}, {}) == exactly(0.0)


def test_mean_of_an_endless_number_has_student_s_interval() -> None:
    found = mean({"all": [1.0, 2.0, 3.0, 4.0, 5.0]}, {"all": 10**9})
    assert found.estimate == 3
    assert (found.low, found.high) == pytest.approx((3 - 1.9632, 3 + 1.9632), abs=0.01)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.integers(0, 1000))
def test_interval_holds_its_estimate(values: list[float], more: int) -> None:
    found = mean({"all": values}, {"all": len(values) + more})
    assert 0 <= found.low <= found.estimate * (1 + 1e-9) + 1e-9
    assert found.estimate <= found.high * (1 + 1e-9) + 1e-9
    assert all(map(math.isfinite, (found.low, found.high)))


def test_share_is_covered_as_often_as_the_interval_says() -> None:
    rate, covered = 0.06, 0
    for seed in range(200):
        ids = [f"o__r{number % 300}-{number}" for number in range(1500)]
        good = {name for name in ids if int(name.rpartition("-")[2]) * 7919 % 1500 < rate * 1500}
        strata = stratify(ids)
        chosen = draw(strata, 50, seed)
        hits: dict[str, Any] = {stratum: sum(name in good for name in drawn) for stratum, drawn in chosen.items()}
        taken = {stratum: len(drawn) for stratum, drawn in chosen.items()}
        found = share(hits, taken, {stratum: len(members) for stratum, members in strata.items()})
        covered += found.low <= rate <= found.high
    assert covered >= 185
