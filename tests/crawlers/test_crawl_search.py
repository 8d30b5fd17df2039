"""Where many pull requests were touched since a month, it is searched: windows are cut until each is shown whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_bench import Bench, forge_of, truth
from forge.records import Commit, Head, Pull
from forge.repository import Repo
from forge.server import Forge
from forge.world import World, lazy_pulls

from miner.core.reasons import Reason

pytestmark = pytest.mark.loopback


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def forge(world: World) -> Iterator[Forge]:
    with forge_of(world) as forge:
        yield forge


@pytest.fixture
def bench(forge: Forge, tmp_path: Path) -> Bench:
    return Bench(forge, tmp_path)


def crowd(world: World, times: list[str], name: str = "octo/lib") -> Repo:
    """Make a repository with a pull request for each time of merge, made when it is asked for."""
    repo = world.bare(name)

    def make(number: int) -> Pull:
        at = times[number - 1]
        commit = Commit(f"{number:040x}", "Work", at, at, ("0" * 40,))
        return Pull(
            repo,
            number,
            f"Change {number}",
            f"Fixes #{len(times) + number}",
            "2020-01-01T00:00:00Z",
            at,
            "main",
            "0" * 40,
            "change",
            "1" * 40,
            state="MERGED",
            merged_at=at,
            closed_at=at,
            commits=[commit],
            merge_commit=commit,
        )

    heads = [Head(i, "MERGED", "2020-01-01T00:00:00Z", at, at, at) for i, at in enumerate(times, start=1)]
    lazy_pulls(repo, heads, make)
    return repo


def spread(count: int, month: str) -> list[str]:
    """Return times of merge that are spread over a month unevenly: half of them stand in one hour."""
    half = count // 2
    dense = [f"{month}-11T10:{i * 3600 // half // 60:02}:{i * 3600 // half % 60:02}Z" for i in range(half)]
    rest = count - half
    return dense + [f"{month}-{1 + i * 28 // rest:02}T{i % 24:02}:00:{i % 60:02}Z" for i in range(rest)]


def ways(bench: Bench) -> list[str]:
    return [fact.payload["way"] for fact in bench.facts if fact.key.kind == "crawl.walk"]


def test_an_old_month_is_searched_and_its_repeat_asks_nothing(world: World, bench: Bench) -> None:
    repo = crowd(world, spread(40, "2024-02") + spread(300, "2025-04"))
    found = bench.crawl("octo/lib", month="2024-02")["octo/lib"]
    assert found.merged == len(truth(repo, "2024-02")) == 40
    assert ways(bench) == ["search"]
    walk = next(fact for fact in bench.facts if fact.key.kind == "crawl.walk").payload
    assert "340 touched since" in walk["why"]
    assert (walk["expected"], walk["found"]) == (40, 40)
    assert bench.asked(lambda: bench.crawl("octo/lib", month="2024-02")) == []


def test_what_changes_in_a_searched_month_is_read_by_a_walk(world: World, bench: Bench) -> None:
    repo = crowd(world, spread(40, "2024-02") + spread(300, "2025-04"))
    bench.crawl("octo/lib", month="2024-02")
    bench.pass_time(days=1)
    pull = repo.pulls[7]
    pull.title = "Renamed"
    repo.touch(pull, at="2025-06-09T08:00:00Z")
    bench.forge.log.clear()
    found = bench.crawl("octo/lib", month="2024-02")["octo/lib"]
    assert found.merged == 40
    assert ways(bench) == ["search", "check", "walk"]
    assert [entry.document for entry in bench.forge.log.of("graphql")] == ["pulls"]


def test_more_than_a_thousand_in_a_month(world: World, bench: Bench) -> None:
    times = spread(1100, "2024-02")
    repo = crowd(world, times + spread(900, "2025-04"))
    source = bench.source("octo/lib", month="2024-02", measure__crawl__page_size=100)
    found = source.discover(source.units(bench.memo())[0], bench.memo())
    assert found.merged == len(truth(repo, "2024-02")) == 1100
    assert ways(bench) == ["search"]
    assert found.notes == ()
    assert len(bench.forge.log.of("searchPulls")) < 11 + 8


def test_what_the_search_does_not_show_is_said(world: World, bench: Bench) -> None:
    crowd(world, ["2024-02-11T10:00:00Z"] * 1010 + spread(900, "2025-04"))
    found = bench.crawl("octo/lib", month="2024-02", measure__crawl__page_size=100)["octo/lib"]
    assert found.merged == 1000
    assert any("1010 merged pull requests, found were 1000" in note for note in found.notes)
    assert any("10 pull requests that it does not show" in note for note in found.notes)


def test_a_month_without_merges_is_not_read_though_much_was_touched_since(world: World, bench: Bench) -> None:
    crowd(world, spread(300, "2025-04"))
    found = bench.crawl("octo/lib", month="2024-02")["octo/lib"]
    assert (found.merged, found.refused) == (0, None)
    assert [entry.document for entry in bench.forge.log] == ["repositories"]


def test_a_walk_of_a_month_serves_later_months_where_it_reached_them(world: World, bench: Bench) -> None:
    repo = crowd(world, spread(60, "2025-05") + ["2025-06-03T00:00:00Z"] * 4)
    bench.crawl("octo/lib", month="2025-05")
    assert ways(bench) == ["walk"]
    bench.pass_time(hours=1)
    asked = bench.asked(lambda: bench.crawl("octo/lib", month="2025-06"))
    assert asked == ["repositories"], "nothing was touched since"
    assert len(truth(repo, "2025-06")) == 4


def test_a_repository_that_vanishes_while_it_is_read(world: World, bench: Bench) -> None:
    repo = crowd(world, spread(60, "2025-05"))
    bench.forge.after("repositories", 1, lambda: world.delete(repo))
    found = bench.crawl("octo/lib", measure__crawl__page_size=10)["octo/lib"]
    assert found.refused is not None
    assert found.refused.reason is Reason.REPOSITORY_GONE
