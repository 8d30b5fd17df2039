"""What many repositories lack beside their pages is asked for by few documents, and comes to the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_bench import Bench, crawled, forge_of, truth
from forge.repository import Repo
from forge.server import Forge
from forge.world import World

from miner.crawlers.github.answers import Crawled, assemble
from miner.crawlers.github.linking import judge_links

pytestmark = pytest.mark.loopback

MAY = "2025-05-03T00:00:00Z"
LONG = 130


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


def named_by_a_commit(repo: Repo) -> None:
    """Merge a pull request whose commit names an issue: the forge does not list it."""
    issue = repo.issue(at="2025-04-01T00:00:00Z")
    steps = [(f"Mend it\n\nFixes #{issue.number}", {"a.py": "x\n"})]
    repo.pull("Mend", "", commits=steps, merge="squash", at=MAY)


def with_long_lists(repo: Repo) -> None:
    """Merge a pull request with more files than a page holds, whose issue has more comments than that."""
    issue = repo.issue(at="2025-04-01T00:00:00Z")
    for i in range(LONG):
        repo.comment(issue, f"Comment {i}", at="2025-04-02T00:00:00Z")
    files = {f"f{issue.number}-{i}.py": "x\n" for i in range(LONG)}
    repo.pull("Mend", f"Fixes #{issue.number}", files=files, merge="squash", at=MAY, closes=[issue])


def answers(bench: Bench, *names: str) -> dict[str, Crawled]:
    """Crawl repositories and return what is known of their pull requests."""
    found = bench.crawl(*names)
    items = [item for one in found.values() for item in one.items]
    return {item.instance_id: assemble(bench.looked_up(item), bench.blobs) for item in items}


def documents(bench: Bench) -> list[str]:
    return [entry.document for entry in bench.forge.log]


def test_numbers_of_several_repositories_are_looked_up_by_one_document(world: World, bench: Bench) -> None:
    repos = [world.repository(f"octo/lib{i}") for i in range(5)]
    for repo in repos:
        named_by_a_commit(repo)
    known = answers(bench, *(repo.full_name for repo in repos))
    assert [[issue.number for issue in judge_links(one).issues] for one in known.values()] == [[1]] * 5
    assert documents(bench) == ["repositories", "pages", "issuesOf"]


def test_also_of_such_as_need_a_page_of_their_own(world: World, bench: Bench) -> None:
    repos = [world.repository(f"octo/lib{i}") for i in range(3)]
    for repo in repos:
        for _ in range(30):
            repo.pull("Tidy", "", merge="squash", at=MAY)
        named_by_a_commit(repo)
    known = answers(bench, *(repo.full_name for repo in repos))
    assert [[issue.number for issue in judge_links(one).issues] for one in known.values()] == [[31]] * 3
    assert documents(bench) == ["repositories", "pages", "pages", "pages", "issuesOf"]


def test_lists_of_several_repositories_are_completed_by_one_document(world: World, bench: Bench) -> None:
    repos = [world.repository(f"octo/lib{i}") for i in range(3)]
    for repo in repos:
        with_long_lists(repo)
        with_long_lists(repo)
    known = answers(bench, *(repo.full_name for repo in repos))
    assert len(known) == 6
    for one in known.values():
        assert len({file.path for file in one.pull.files}) == LONG
        assert [len(issue.comments) for issue in one.pull.closing] == [LONG]
    assert documents(bench) == ["repositories", "pages", "moreOf"]


def test_lists_of_a_large_repository_are_completed_by_few_documents(world: World, bench: Bench) -> None:
    repo = world.repository("octo/lib")
    for _ in range(15):
        with_long_lists(repo)
    known = answers(bench, "octo/lib")
    assert {len(one.pull.files) for one in known.values()} == {LONG}
    assert documents(bench) == ["repositories", "pulls", "moreOf", "moreOf"]


@pytest.mark.parametrize("document", ["pages", "issuesOf", "moreOf"])
def test_each_does_for_itself_where_a_document_is_too_heavy(document: str, world: World, bench: Bench) -> None:
    repos = [world.repository(f"octo/lib{i}") for i in range(3)]
    for repo in repos:
        named_by_a_commit(repo)
        with_long_lists(repo)
    bench.forge.fail(document, "heavy", nodes=0)
    known = answers(bench, *(repo.full_name for repo in repos))
    assert len(known) == 6
    assert {len(one.pull.files) for one in known.values()} == {1, LONG}
    assert not [name for name in documents(bench) if name == document and bench.forge.log.of(name, status=200)]


def test_what_is_known_of_a_pull_request_does_not_depend_on_how_long_its_pages_were(
    world: World, forge: Forge, tmp_path: Path
) -> None:
    repo = world.repository("octo/lib")
    named_by_a_commit(repo)
    with_long_lists(repo)
    files = {f"more-{i}.py": "x\n" for i in range(LONG)}
    repo.pull("Mend", "Fixes other/lib#1", files=files, merge="squash", at=MAY)
    known = []
    for name, nodes in {"long": 1_000_000, "short": 700, "shortest": 20}.items():
        (tmp_path / name).mkdir()
        bench = Bench(forge, tmp_path / name)
        forge.heal()
        forge.fail("pulls", "heavy", nodes=nodes)
        items = bench.crawl("octo/lib")["octo/lib"].items
        known.append([item.inputs for item in items])
        crawled = [assemble(bench.looked_up(item), bench.blobs) for item in items]
        assert [len(one.pull.files) for one in crawled] == [1, LONG, LONG]
    assert known[0] == known[1] == known[2]
    assert {fact.payload["light"] for fact in bench.kept("crawl.page")} == {True}


def test_what_was_known_is_not_asked_for_again(world: World, bench: Bench) -> None:
    repos = [world.repository(f"octo/lib{i}") for i in range(3)]
    for repo in repos:
        named_by_a_commit(repo)
        with_long_lists(repo)
    names = [repo.full_name for repo in repos]
    first = answers(bench, *names)
    before = len(bench.forge.log)
    assert answers(bench, *names) == first
    assert len(bench.forge.log) == before


def test_next_month_of_several_is_one_document_for_as_many_as_are_new(world: World, bench: Bench) -> None:
    repos = [world.repository(f"octo/lib{i}") for i in range(4)]
    for repo in repos:
        for day in range(1, 11):
            issue = repo.issue(at="2024-01-01T00:00:00Z")
            at = f"2025-05-{day:02}T00:00:00Z"
            repo.pull("Mend", f"Fixes #{issue.number}", merge="squash", closes=[issue], at=at)
    names = [repo.full_name for repo in repos]
    bench.crawl(*names)
    for repo in repos:
        for day in (12, 20):
            issue = repo.issue(at="2024-01-01T00:00:00Z")
            at = f"2025-06-{day:02}T00:00:00Z"
            repo.pull("Mend", f"Fixes #{issue.number}", merge="squash", closes=[issue], at=at)
    bench.pass_time(days=30)
    before = len(bench.forge.log)
    found = bench.crawl(*names, month="2025-06")
    assert {unit: crawled(one) for unit, one in found.items()} == {
        repo.full_name: truth(repo, "2025-06") for repo in repos
    }
    assert documents(bench)[before:] == ["repositories", "pages"]
    rows = [fact.payload["rows"] for fact in bench.kept("crawl.page")][-4:]
    assert rows == [4] * 4, "two are new, one was the last before, and one shows that the others are older"
