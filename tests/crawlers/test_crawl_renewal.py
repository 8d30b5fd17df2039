"""Issues that are edited after a month was crawled: they are read once more, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_bench import Bench, Killed, crawled, forge_of
from forge.repository import Repo
from forge.server import Forge
from forge.world import World

from miner.core.records import Fact
from miner.crawlers.github.answers import Crawled
from miner.crawlers.github.items import PullItem
from miner.crawlers.interface import Found

pytestmark = pytest.mark.loopback

LATER = "2025-06-08T13:00:00Z"


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


def lib(world: World, name: str = "octo/lib", *, listed: bool = True, pulls: int = 1) -> Repo:
    """A repository with issues 1, 3, 5 ..., each closed by the pull request that follows it."""
    repo = world.repository(name)
    for i in range(pulls):
        issue = repo.issue("It breaks", "Once upon a time", at="2025-04-01T00:00:00Z")
        body = f"Fixes #{issue.number}"
        at = f"2025-05-03T{i // 60:02}:{i % 60:02}:00Z"
        repo.pull("Fix", body, merge="squash", at=at, closes=[issue] if listed else [])
    return repo


def again(bench: Bench, *names: str) -> dict[str, Found[PullItem]]:
    bench.pass_time(hours=7)
    bench.forge.log.clear()
    return bench.crawl(*names)


def documents(bench: Bench) -> list[str]:
    """What was asked by GraphQL."""
    return [entry.document for entry in bench.forge.log if entry.document]


def seen(bench: Bench, item: PullItem) -> Crawled:
    found = bench.source(item.full_name).crawled(bench.looked_up(item), bench.blobs)
    assert found is not None
    return found


def bodies(bench: Bench, found: Found[PullItem]) -> dict[int, str]:
    """The text of the issue of each pull request."""
    texts = {}
    for item in found.items:
        pull = seen(bench, item).pull
        issues = [*pull.closing, *(one for one in pull.references.values() if not isinstance(one, str))]
        texts[item.number] = " + ".join(issue.body for issue in issues)
    return texts


def test_an_issue_that_was_not_there_once_is_asked_for_again(world: World, bench: Bench) -> None:
    lib(world, listed=False)
    bench.forge.fail("issues", "partial", times=1, path=("repository", "n1"))
    before = bench.crawl("octo/lib")["octo/lib"]
    assert seen(bench, before.items[0]).pull.references == {1: "gone"}
    after = again(bench, "octo/lib")["octo/lib"]
    assert documents(bench) == ["touched", "issues"]
    assert bodies(bench, after) == {2: "Once upon a time"}
    assert documents_of_another_run(bench) == []


def test_an_issue_that_is_gone_stays_gone(world: World, bench: Bench) -> None:
    repo = lib(world, listed=False)
    repo.issues[1].deleted = True
    bench.crawl("octo/lib")
    after = again(bench, "octo/lib")["octo/lib"]
    assert documents(bench) == ["touched"]
    assert seen(bench, after.items[0]).pull.references == {1: "gone"}


def documents_of_another_run(bench: Bench) -> list[str]:
    bench.forge.log.clear()
    bench.crawl("octo/lib")
    return documents(bench)


@pytest.mark.parametrize("listed", [True, False], ids=["closing reference", "named in the text"])
def test_an_edited_issue_gives_a_new_fact_beside_the_old_one(world: World, bench: Bench, listed: bool) -> None:
    repo = lib(world, listed=listed, pulls=3)
    before = bench.crawl("octo/lib")["octo/lib"]
    old = {item.number: bench.looked_up(item) for item in before.items}
    repo.edit(repo.issues[3], "It is clear now", at=LATER)
    after = again(bench, "octo/lib")["octo/lib"]
    assert bodies(bench, after) == {2: "Once upon a time", 4: "It is clear now", 6: "Once upon a time"}
    new = {item.number: bench.looked_up(item) for item in after.items}
    assert [number for number in new if new[number].key != old[number].key] == [4]
    assert bodies(bench, before)[4] == "Once upon a time"
    assert old[4] in bench.ledger.facts_of("octo__lib-4")
    assert documents(bench) == ["touched", "issues"]
    assert next(entry.path for entry in bench.forge.log) == "/api/v3/repos/octo/lib/pulls"


def test_what_was_read_once_more_is_known(world: World, bench: Bench) -> None:
    repo = lib(world)
    bench.crawl("octo/lib")
    repo.edit(repo.issues[1], "It is clear now", at=LATER)
    after = again(bench, "octo/lib")
    assert bench.asked(lambda: bench.crawl("octo/lib")) == []
    assert bench.crawl("octo/lib") == after
    assert again(bench, "octo/lib") == after
    assert documents(bench) == ["touched"]
    repo.edit(repo.issues[1], "And clearer", at="2025-06-09T01:00:00Z")
    assert bodies(bench, again(bench, "octo/lib")["octo/lib"]) == {2: "And clearer"}
    repo.edit(repo.pulls[2], "Fixes #1, at last", at="2025-06-09T02:00:00Z")
    assert bodies(bench, again(bench, "octo/lib")["octo/lib"]) == {2: "And clearer"}


def test_comments_and_states_are_part_of_an_issue(world: World, bench: Bench) -> None:
    repo = lib(world)
    for number in range(60):
        repo.comment(1, f"Comment {number}", at=f"2025-04-02T00:{number:02}:00Z")
    before = bench.crawl("octo/lib")["octo/lib"].items[0]
    assert len(seen(bench, before).pull.closing[0].comments) == 60
    repo.comment(1, "One more", at=LATER)
    (item,) = again(bench, "octo/lib")["octo/lib"].items
    comments = [comment.body for comment in seen(bench, item).pull.closing[0].comments]
    assert comments == [*(f"Comment {number}" for number in range(60)), "One more"]
    assert documents(bench) == ["touched", "issues", "more"]
    assert len(seen(bench, before).pull.closing[0].comments) == 60


@pytest.mark.parametrize("listed", [True, False], ids=["closing reference", "named in the text"])
def test_an_issue_that_was_deleted_is_none_any_more(world: World, bench: Bench, listed: bool) -> None:
    repo = lib(world, listed=listed)
    assert crawled(bench.crawl("octo/lib")["octo/lib"]) == {2}
    repo.issues[1].deleted = True
    found = again(bench, "octo/lib")["octo/lib"]
    pull = seen(bench, found.items[0]).pull
    assert (pull.closing, pull.references) == ((), {1: "gone"}), "the text names it still, and leads to nothing"
    assert documents(bench) == ["touched", "issues"]
    assert again(bench, "octo/lib")["octo/lib"] == found
    assert documents(bench) == ["touched"]


def test_an_issue_of_two_pull_requests_is_as_new_in_both(world: World, bench: Bench) -> None:
    repo = lib(world)
    repo.pull("Fix it again", "Fixes #1", merge="squash", at="2025-05-04T00:00:00Z", closes=[1])
    bench.crawl("octo/lib")
    repo.edit(repo.issues[1], "It is clear now", at=LATER)
    repo.touch(repo.pulls[3], at="2025-06-08T13:00:01Z")
    found = again(bench, "octo/lib")["octo/lib"]
    assert bodies(bench, found) == {2: "It is clear now", 3: "It is clear now"}


def test_one_document_looks_after_many_repositories(world: World, bench: Bench) -> None:
    names = [f"octo/lib{number}" for number in range(6)]
    repos = [lib(world, name, pulls=2) for name in names]
    bench.crawl(*names)
    repos[4].edit(repos[4].issues[3], "It is clear now", at=LATER)
    found = again(bench, *names)
    assert bodies(bench, found["octo/lib4"]) == {2: "Once upon a time", 4: "It is clear now"}
    assert documents(bench) == ["touched", "issues"]
    assert bench.forge.log.points == 2
    looks = bench.kept("crawl.touched")
    assert len(looks) == 6
    assert sum(fact.measures["points"] for fact in looks) == pytest.approx(1)


def test_more_issues_than_a_document_takes(world: World, bench: Bench) -> None:
    names = ["octo/big", "octo/small"]
    repo = lib(world, "octo/big", pulls=102)
    lib(world, "octo/small")
    bench.crawl(*names)
    changed = [1, 3, 129, 201, 203]
    for number in changed:
        repo.edit(repo.issues[number], "It is clear now", at=LATER)
    found = again(bench, *names)
    texts = bodies(bench, found["octo/big"])
    assert sorted(number - 1 for number, text in texts.items() if text == "It is clear now") == changed
    assert documents(bench) == ["touched", "touched", "issues"]


def test_issues_of_other_repositories_are_left_alone(world: World, bench: Bench) -> None:
    other = lib(world, "octo/other")
    repo = world.repository("octo/lib")
    repo.pull("Fix", "Tidy", merge="squash", at="2025-05-03T00:00:00Z", closes=[other.issues[1]])
    bench.crawl("octo/lib")
    other.edit(other.issues[1], "It is clear now", at=LATER)
    again(bench, "octo/lib")
    assert documents(bench) == []


def test_a_killed_look_goes_on(world: World, bench: Bench) -> None:
    repo = lib(world)
    bench.crawl("octo/lib")
    repo.edit(repo.issues[1], "It is clear now", at=LATER)
    bench.killed_after = len(bench.facts) + 2  # the check and the look, and not what was touched
    with pytest.raises(Killed):
        again(bench, "octo/lib")
    assert bench.facts[-1].key.kind == "crawl.touched"
    bench.killed_after = None
    bench.forge.log.clear()
    assert bodies(bench, bench.crawl("octo/lib")["octo/lib"]) == {2: "It is clear now"}
    assert documents(bench) == ["issues"]


def test_issues_that_are_too_heavy_are_read_by_halves(world: World, bench: Bench) -> None:
    repo = lib(world, pulls=4)
    bench.crawl("octo/lib")
    for number in (1, 3, 5, 7):
        repo.edit(repo.issues[number], "It is clear now", at=LATER)
    bench.forge.fail("issues", "heavy", nodes=250)
    found = again(bench, "octo/lib")["octo/lib"]
    assert set(bodies(bench, found).values()) == {"It is clear now"}
    renewed: list[Fact] = bench.kept("crawl.renewed")
    assert [fact.payload["numbers"] for fact in renewed] == [[1, 3], [5, 7]]


def test_a_neighbour_that_is_gone_is_passed_over(world: World, bench: Bench) -> None:
    names = ["octo/a", "octo/b"]
    repos = [lib(world, name) for name in names]
    bench.crawl(*names)
    world.delete(repos[1])
    repos[0].edit(repos[0].issues[1], "It is clear now", at=LATER)
    found = again(bench, *names)
    assert bodies(bench, found["octo/a"]) == {2: "It is clear now"}
    assert found["octo/b"].notes[0].endswith("what was known before stands")
    assert [fact.key.subject for fact in bench.kept("crawl.touched")] == [f"repo-{repos[0].repo_id}"]
