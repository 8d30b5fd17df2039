"""The crawl finds every merged pull request of a month, as brute force does, and asks for nothing twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from crawl_bench import Bench, Killed, crawled, forge_of, truth
from forge.repository import Repo
from forge.server import Forge
from forge.world import World

from miner.core.memo import Emit
from miner.crawlers.github.source import GithubSource
from miner.crawlers.github.walk import PAGE
from miner.engines.local import LocalEngine

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


def fill(repo: Repo, count: int, *, month: str = "2025-05", linked: bool = True, opened: str | None = None) -> None:
    """Merge pull requests all over a month, each with an issue of its own."""
    for i in range(count):
        at = f"{month}-{1 + i * 27 // count:02}T{i % 24:02}:{i % 60:02}:00Z"
        issue = repo.issue(at="2024-01-01T00:00:00Z")
        body = f"Fixes #{issue.number}" if linked else "Tidy"
        repo.pull(f"Change {i}", body, merge="squash", at=at, opened=opened, closes=[issue] if linked else [])


def test_a_small_repository_takes_one_page(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    fill(repo, 5)
    repo.pull("Tidy", "", merge="merge", at="2025-05-20T00:00:00Z")
    found = bench.crawl("octo/lib")["octo/lib"]
    assert crawled(found) == truth(repo) - {repo.pulls.newest}
    assert (found.merged, found.unlinked, found.refused) == (6, 1, None)
    assert [entry.document for entry in bench.forge.log] == ["repositories", "pulls"]


def test_pull_requests_opened_years_earlier_are_found(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    fill(repo, 4, opened="2019-01-01T00:00:00Z")
    fill(repo, 3, month="2025-04")
    fill(repo, 3, month="2025-06")
    assert crawled(bench.crawl("octo/lib")["octo/lib"]) == truth(repo)


def test_a_walk_of_many_pages_is_read_again_from_the_front(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    fill(repo, 30)
    found = bench.crawl("octo/lib", measure__crawl__page_size=10)["octo/lib"]
    assert crawled(found) == truth(repo)
    assert [entry.variables["first"] for entry in bench.forge.log.of("pulls")] == [10, 10, 10, 10]
    assert [entry.variables["after"] is None for entry in bench.forge.log.of("pulls")] == [True, False, False, True]


def test_what_jumps_to_the_front_while_pages_are_read_is_found(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    fill(repo, 30)
    late = sorted(truth(repo))[:3]  # they stand on the last page

    def jump(fact: object) -> None:
        if late and len(bench.forge.log.of("pulls")):
            with world.lock:
                repo.touch(late.pop(), at=f"2025-06-08T12:00:{10 - len(late):02}Z")

    bench.on_fact = jump
    found = bench.crawl("octo/lib", measure__crawl__page_size=10)["octo/lib"]
    assert crawled(found) == truth(repo)


def test_a_killed_crawl_goes_on_after_its_last_page(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    fill(repo, 30)
    bench.killed_after = 4
    with pytest.raises(Killed):
        bench.crawl("octo/lib", measure__crawl__page_size=10)
    kept = [fact for fact in bench.facts if fact.key.kind == "crawl.page"]
    bench.killed_after = None
    bench.forge.log.clear()
    found = bench.crawl("octo/lib", measure__crawl__page_size=10)["octo/lib"]
    assert crawled(found) == truth(repo)
    assert len(kept) == 2
    assert len(bench.forge.log.of("pulls")) == 4 - len(kept)


def test_a_repeated_month_asks_nothing_then_only_whether_anything_changed(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    fill(repo, 5)
    first = bench.crawl("octo/lib")
    assert bench.asked(lambda: bench.crawl("octo/lib")) == []
    bench.pass_time(hours=7)
    assert bench.asked(lambda: bench.crawl("octo/lib")) == ["/api/v3/repos/octo/lib/pulls", "touched"]
    bench.pass_time(hours=7)
    bench.forge.log.clear()
    assert bench.crawl("octo/lib") == first
    assert [(entry.status, entry.document) for entry in bench.forge.log] == [(304, ""), (200, "touched")]
    assert bench.forge.log.points == 1
    assert bench.asked(lambda: bench.crawl("octo/lib")) == []


def test_what_changed_is_read_down_to_the_watermark(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    fill(repo, 30)
    bench.crawl("octo/lib")
    bench.pass_time(hours=7)
    repo.edit(repo.pulls[min(truth(repo))], "Nothing is fixed", at="2025-06-08T13:00:00Z")
    bench.forge.log.clear()
    found = bench.crawl("octo/lib")["octo/lib"]
    assert [entry.document for entry in bench.forge.log] == ["", "pulls", "touched"]
    assert bench.forge.log.of("pulls")[0].variables["first"] == 10
    item = next(item for item in found.items if item.number == min(truth(repo)))
    assert len(found.items) == 30, "the closing reference of the forge stands"
    assert bench.source("octo/lib").crawled(bench.looked_up(item), bench.blobs).pull.body == "Nothing is fixed"


def test_the_next_month_begins_where_the_last_one_ended(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    fill(repo, 20)
    repo.pull("Early", "", merge="squash", at="2025-06-02T00:00:00Z")
    bench.crawl("octo/lib")
    repo.pull("Late", "", merge="squash", at="2025-06-20T00:00:00Z")
    bench.pass_time(days=30)
    bench.forge.log.clear()
    found = bench.crawl("octo/lib", month="2025-06")["octo/lib"]
    assert found.unlinked == len(truth(repo, "2025-06")) == 2
    assert [entry.document for entry in bench.forge.log] == ["repositories", "pulls"]
    assert sum(fact.payload.get("rows", 0) for fact in bench.facts if fact.key.kind == "crawl.page") < 40
    asked = bench.asked(lambda: bench.crawl("octo/lib", month="2025-05"))
    assert asked == ["touched"], "the walk of June has refreshed May, but for its issues"


def test_a_dormant_repository_costs_its_share_of_one_document(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    fill(repo, 5, month="2025-03")
    found = bench.crawl("octo/lib")["octo/lib"]
    assert (found.merged, found.items) == (0, ())
    assert [entry.document for entry in bench.forge.log] == ["repositories"]


def test_small_repositories_share_a_document(world: World, bench: Bench) -> None:
    repos = [world.repository(f"octo/lib{i}") for i in range(12)]
    for i, repo in enumerate(repos):
        fill(repo, 1 + i % 3)
    found = bench.crawl(*(repo.full_name for repo in repos))
    assert {unit: crawled(one) for unit, one in found.items()} == {repo.full_name: truth(repo) for repo in repos}
    assert [entry.document for entry in bench.forge.log] == ["repositories", "pages", "pages"]


def test_what_the_search_counts_is_compared_with_what_was_found(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    fill(repo, 3)
    hidden = repo.pull("Hidden", "", merge="squash", at="2025-05-20T00:00:00Z")
    bench.forge.fail(
        "pulls", "partial", path=("repository", "pullRequests", "nodes", 1), message="Could not resolve to a node"
    )
    repo.touch(hidden, at="2025-05-29T00:00:00Z")
    found = bench.crawl("octo/lib")["octo/lib"]
    assert found.merged == 3
    assert "the forge's search counts 4 merged pull requests, found were 3" in found.notes
    assert "the forge counts 1 pull requests that it does not show" in found.notes
    assert [entry.document for entry in bench.forge.log] == ["repositories", "pulls", "countPulls"]
    assert bench.crawl("octo/lib")["octo/lib"].notes == found.notes


def test_a_month_that_goes_on_is_counted_anew(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    fill(repo, 3, month="2025-05")
    bench.now -= timedelta(days=20)
    for number in list(truth(repo)):
        repo.touch(number, at=bench.now)
    bench.forge.after(
        "repositories", 1, lambda: repo.pull("Now", "Fixes #1", merge="squash", at=bench.now + timedelta(seconds=1))
    )
    found = bench.crawl("octo/lib")["octo/lib"]
    assert found.merged == 4
    assert len(found.notes) == 1
    assert "is open until 2025-06-08" in found.notes[0]


def test_what_is_known_of_a_repository_stands_when_it_is_gone(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    fill(repo, 2)
    before = bench.crawl("octo/lib")["octo/lib"]
    world.delete(repo)
    bench.pass_time(hours=7)
    found = bench.crawl("octo/lib")["octo/lib"]
    assert (found.refused, found.items) == (None, before.items)
    assert found.notes[0] == "octo/lib: status 404 for its pull requests; what was known before stands"


def test_a_pull_request_that_was_closed_unmerged_costs_one_small_page(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    fill(repo, 20)
    bench.crawl("octo/lib")
    bench.pass_time(hours=7)
    repo.pull("No", "", state="CLOSED", at="2025-06-08T15:00:00Z")
    bench.forge.log.clear()
    assert bench.crawl("octo/lib")["octo/lib"].merged == 20
    assert [entry.document for entry in bench.forge.log] == ["", "pulls", "touched"]
    bench.pass_time(hours=7)
    asked = bench.asked(lambda: bench.crawl("octo/lib"))
    assert asked == ["/api/v3/repos/octo/lib/pulls", "touched"], "and then it is known"


def test_repositories_are_crawled_at_once_by_threads(world: World, bench: Bench) -> None:
    repos = [world.repository(f"octo/lib{i}") for i in range(16)]
    for i, repo in enumerate(repos):
        fill(repo, 1 + i % 3)
    source = bench.source(*(repo.full_name for repo in repos))
    units = source.units(bench.memo())
    engine: LocalEngine[str, tuple[str, set[int]]] = LocalEngine(8, threading.Event())
    work = partial(_crawled_with, source, bench)
    found = dict(engine.map(work, units, bench.store))
    assert found == {repo.full_name: truth(repo) for repo in repos}
    assert len(bench.forge.log.of("pages")) == 2


def _crawled_with(source: GithubSource, bench: Bench, unit: str, emit: Emit) -> tuple[str, set[int]]:
    return unit, crawled(source.discover(unit, bench.memo(emit)))


def test_every_answer_has_its_cost(world: World, bench: Bench) -> None:
    for name in ("octo/a", "octo/b"):
        fill(world.repository(name), 2)
    fill(world.repository("octo/big"), 60)
    bench.crawl("octo/a", "octo/b", "octo/big")
    asked = [fact for fact in bench.facts if fact.network and fact.key.kind != "crawl.walk"]
    assert sum(fact.measures["points"] for fact in asked) == pytest.approx(bench.forge.log.points, abs=0.01)
    assert sum(fact.measures["requests"] for fact in asked) == pytest.approx(len(bench.forge.log), abs=0.01)
    assert all(fact.measures["wall_s"] >= 0 for fact in asked)


def test_facts_are_known_by_subject_and_peeked_at(world: World, bench: Bench) -> None:
    fill(world.repository("octo/lib"), 25)
    bench.crawl("octo/lib", measure__crawl__page_size=10)
    memo = bench.memo()
    pages = memo.known(PAGE, "crawl.page", "repo-1001")
    pages.sort(key=lambda fact: int(fact.payload["page"]))
    assert [fact.payload["page"] for fact in pages] == [0, 1, 2, 3]
    assert memo.known(PAGE, "crawl.page", "repo-1") == []
    assert memo.peek(PAGE, "crawl.page", "repo-1001", {"walk": 0, "page": 1}) == pages[1]
    assert memo.peek(PAGE, "crawl.page", "repo-1001", {"walk": 0, "page": 4}) is None
    assert memo.used == []
    bench.ledger.invalidate(why="test", producer=PAGE.name)
    assert memo.known(PAGE, "crawl.page", "repo-1001") == []
    assert len(bench.crawl("octo/lib")["octo/lib"].items) == 25, "and it is read again"
