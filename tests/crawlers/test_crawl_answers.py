"""Raw answers become records, whatever is null in them, and lists that are longer than a page are whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_bench import Bench, forge_of
from forge.repository import Repo
from forge.server import Forge
from forge.world import World

from miner.core.errors import ForgeUnreachable, InfrastructureFault
from miner.core.records import Fact, FactKey
from miner.crawlers.github.answers import Crawled, assemble, parse_issue, parse_pull, parse_repository
from miner.crawlers.github.client import HeavyPage
from miner.crawlers.github.model import Actor, Issue
from miner.crawlers.github.pages import Decoded

pytestmark = pytest.mark.loopback

MAY = "2025-05-03T00:00:00Z"
BARE_PULL: dict[str, Any] = {
    "id": "PR_1", "number": 7, "title": "Fix", "body": "", "url": "u", "createdAt": MAY, "updatedAt": MAY,
    "mergedAt": MAY, "closedAt": None, "lastEditedAt": None, "author": None,
    "repository": {"databaseId": 1, "nameWithOwner": "octo/lib"},
    "baseRefName": "main", "baseRefOid": "b", "headRefName": "fix", "headRefOid": "h", "headRepository": None,
    "mergeCommit": None, "changedFiles": 0, "additions": 0, "deletions": 0, "labels": None, "files": None,
    "commits": {"nodes": [None]}, "userContentEdits": {"nodes": None}, "closingIssuesReferences": {"nodes": [None]},
}  # fmt: skip
BARE_ISSUE: dict[str, Any] = {
    "id": "I_1", "number": 3, "title": "Bug", "body": "", "url": "u", "state": "CLOSED", "stateReason": None,
    "createdAt": MAY, "updatedAt": MAY, "closedAt": MAY, "lastEditedAt": None, "locked": False, "author": None,
    "repository": {"databaseId": 1, "nameWithOwner": "octo/lib"}, "labels": None, "comments": {"nodes": [None]},
    "timelineItems": {"nodes": [None, {"createdAt": MAY, "closer": None}, {"createdAt": MAY, "closer": {
        "__typename": "Commit", "oid": "c", "repository": None}},
        {"createdAt": MAY, "closer": {"__typename": "ProjectV2"}}]},
    "userContentEdits": {"nodes": [{"editedAt": MAY, "deletedAt": MAY, "diff": "secret"}, None]},
}  # fmt: skip
BARE_REPOSITORY: dict[str, Any] = {
    "id": "R_1", "databaseId": 1, "nameWithOwner": "octo/lib", "createdAt": MAY, "pushedAt": None, "updatedAt": None,
    "defaultBranchRef": None, "licenseInfo": None, "primaryLanguage": None, "languages": None, "parent": None,
    "diskUsage": None, "newestIssue": {"nodes": []}, "newestPull": {"nodes": [None]}, "lastMerged": None,
}  # fmt: skip


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


@pytest.fixture
def repo(world: World) -> Repo:
    return world.repository("octo/lib")


def crawl_one(bench: Bench, number: int, **changed: Any) -> Crawled:
    found = bench.crawl("octo/lib", **changed)["octo/lib"]
    item = next(item for item in found.items if item.number == number)
    return assemble(bench.looked_up(item), bench.blobs)


def test_a_pull_request_with_nothing_but_nulls() -> None:
    pull = parse_pull(BARE_PULL)
    assert (pull.author, pull.head_repository, pull.merge_commit, pull.merge_parents) == (None, None, None, ())
    assert (pull.files, pull.commits, pull.closing, pull.edits, pull.labels) == ((), (), (), (), ())


def test_an_issue_with_nothing_but_nulls() -> None:
    issue = parse_issue(BARE_ISSUE)
    assert [(closer.commit, closer.repository_id) for closer in issue.closers] == [("c", None)]
    assert [edit.text for edit in issue.edits] == [None], "a version that was deleted is not shown"


def test_a_repository_with_nothing_but_nulls() -> None:
    repository = parse_repository(BARE_REPOSITORY)
    assert (repository.default_branch, repository.spdx, repository.pushed_at) == (None, None, None)
    assert (repository.network_id, repository.newest_number, repository.disk_kb) == (1, 0, 0)


@pytest.mark.parametrize("lost", ["number", "mergedAt", "repository", "headRefOid", "updatedAt"])
def test_an_answer_without_what_it_must_hold_is_a_fault(lost: str) -> None:
    with pytest.raises(InfrastructureFault, match="makes no sense"):
        parse_pull({**BARE_PULL, lost: None})


def test_what_the_forge_says_comes_through_whole(repo: Repo, bench: Bench) -> None:
    issue = repo.issue("It breaks", "Run \x1b[1m this \u2028", labels=["bug"], at="2025-04-01T00:00:00Z")
    repo.comment(issue, "Me too", at="2025-04-02T00:00:00Z", author=None)
    repo.edit(issue, "Run that", at="2025-04-03T00:00:00Z")
    made = repo.pull(
        "Fix", f"Fixes #{issue.number}", merge="merge", at=MAY, closes=[issue], author="helper[bot]", labels=["x"],
        files={"lib.py": "a\n", "test_lib.py": "b\n"}, edits=[("2025-05-02T12:00:00Z", f"Closes #{issue.number}")],
    )  # fmt: skip
    pull = crawl_one(bench, made.number).pull
    assert made.merge_commit is not None
    assert (pull.body, pull.labels, pull.author) == ("Closes #1", ("x",), Actor(login="helper", kind="Bot"))
    assert [edit.text for edit in pull.edits] == ["Fixes #1", "Closes #1"]
    assert (pull.merge_commit, pull.merge_parents) == (made.merge_commit.oid, made.merge_commit.parents)
    assert [commit.oid for commit in pull.commits] == [commit.oid for commit in made.commits]
    assert {file.path for file in pull.files} == {"lib.py", "test_lib.py"}
    (closing,) = pull.closing
    assert (closing.body, closing.state, closing.labels) == ("Run that", "CLOSED", ("bug",))
    assert [(comment.body, comment.author) for comment in closing.comments] == [("Me too", None)]
    assert [(closer.pull, closer.repository_id) for closer in closing.closers] == [(made.number, repo.repo_id)]


def test_lists_that_are_longer_than_a_page_are_whole(repo: Repo, bench: Bench) -> None:
    issues = [repo.issue(f"Bug {i}", at="2025-04-01T00:00:00Z", labels=[f"l{j}" for j in range(25)]) for i in range(30)]
    for issue in (issues[0], issues[29]):
        for i in range(230):
            repo.comment(issue, f"Comment {i}", at="2025-04-02T00:00:00Z")
    for _ in range(14):
        repo.close(issues[1], at="2025-04-03T00:00:00Z")
        repo.reopen(issues[1], at="2025-04-03T00:00:00Z")
    edits = [(f"2025-05-02T{i:02}:00:00Z", f"Version {i}") for i in range(12)]
    commits = [(f"Part {i}", {f"f{i}.py": "x\n"}) for i in range(120)]
    made = repo.pull(
        "All",
        "",
        commits=commits,
        closes=issues,
        merge="merge",
        at=MAY,
        edits=edits,
        labels=[f"p{i}" for i in range(45)],
    )
    other = repo.pull("Other", "", closes=[issues[0]], merge="squash", at="2025-05-04T00:00:00Z")
    pull = crawl_one(bench, made.number).pull
    sizes = (len(pull.commits), len(pull.files), len(pull.labels), len(pull.edits), len(pull.closing))
    assert sizes == (120, 120, 45, 13, 30)
    assert [commit.message for commit in pull.commits] == [message for message, _ in commits]
    assert {issue.number: len(issue.comments) for issue in pull.closing if issue.comments} == {1: 230, 30: 230}
    assert {len(issue.labels) for issue in pull.closing} == {25}
    assert len(pull.closing[1].closers) == 1, "those closed by hand are left out, and one stands behind them"
    entries = [*bench.forge.log.of("more"), *bench.forge.log.of("moreOf")]
    asked = [value for entry in entries for name, value in entry.variables.items() if name.startswith("id")]
    shared = next(issue.node_id for issue in pull.closing if issue.number == 1)
    assert asked.count(shared) == 3, "2 pages of comments, 1 of labels: once for both pull requests"
    assert crawl_one(bench, other.number).pull.closing[0] == pull.closing[0]
    assert bench.asked(lambda: bench.crawl("octo/lib")) == []


def test_of_a_pull_request_without_links_only_what_links_rest_on_is_completed(repo: Repo, bench: Bench) -> None:
    commits = [(f"Part {i}", {f"f{i}.py": "x\n"}) for i in range(120)]
    repo.pull("Plain", "", commits=commits, merge="squash", at=MAY)
    bench.crawl("octo/lib")
    assert len(bench.forge.log.of("more")) == 1


def test_a_link_in_a_commit_beyond_the_first_page_is_found(repo: Repo, bench: Bench) -> None:
    issue = repo.issue(at="2025-04-01T00:00:00Z")
    commits = [(f"Part {i}", {f"f{i}.py": "x\n"}) for i in range(110)]
    commits.append((f"Fixes #{issue.number}", {"last.py": "x\n"}))
    made = repo.pull("Plain", "", commits=commits, merge="merge", at=MAY)
    reference = crawl_one(bench, made.number).pull.references[issue.number]
    assert isinstance(reference, Issue)
    assert reference.title == "It breaks"


def test_numbers_that_texts_name_are_looked_up_many_at_once(world: World, repo: Repo, bench: Bench) -> None:
    elsewhere = world.repository("octo/other")
    plain, moved, gone = (repo.issue(at="2025-04-01T00:00:00Z") for _ in range(3))
    repo.transfer(moved, elsewhere)
    repo.delete_issue(gone)
    earlier = repo.pull("Earlier", "", merge="squash", at="2025-04-10T00:00:00Z")
    named = (plain, moved, gone, earlier)
    body = "\n".join(f"Fixes #{each.number}" for each in named)
    made = repo.pull("Fix", body, merge="squash", at=MAY)
    repo.pull("Fix more", f"Fixes #{plain.number}", merge="squash", at=MAY)
    references = crawl_one(bench, made.number).pull.references
    assert isinstance(references[plain.number], Issue)
    assert [references[each.number] for each in named[1:]] == ["gone", "gone", "pull"], "a transfer is not shown"
    assert len(bench.forge.log.of("issues")) == 1
    assert len(crawl_one(bench, made.number + 1).pull.references) == 1


def test_more_numbers_than_one_document_asks_for(repo: Repo, bench: Bench) -> None:
    issues = [repo.issue(at="2025-04-01T00:00:00Z") for _ in range(50)]
    for issue in issues:
        repo.pull("Fix", f"Fixes #{issue.number}", merge="squash", at=MAY)
    bench.forge.fail("issues", "heavy", nodes=2000)
    found = bench.crawl("octo/lib")["octo/lib"]
    assert len(found.items) == 50
    bench.forge.heal()
    repo.pull("Again", "Fixes #1", merge="squash", at="2025-05-05T00:00:00Z")
    bench.pass_time(hours=7)
    assert "issues" not in bench.asked(lambda: bench.crawl("octo/lib")), "what is known is not looked up again"


def test_heavy_pages_are_halved_and_recover(repo: Repo, bench: Bench) -> None:
    for _ in range(60):
        repo.pull("Change", "", merge="squash", at=MAY)
    bench.forge.fail("pulls", "heavy", times=4, nodes=3000)  # each is tried twice
    found = bench.crawl("octo/lib", measure__crawl__page_size=32)["octo/lib"]
    sizes = [entry.variables["first"] for entry in bench.forge.log.of("pulls")]
    assert found.merged == 60
    assert sizes[:6] == [32, 32, 16, 16, 8, 8]
    assert sizes[6:9] == [8, 8, 16]


def test_a_pull_request_that_is_too_heavy_for_a_page_is_read_with_short_lists(repo: Repo, bench: Bench) -> None:
    issue = repo.issue(at="2025-04-01T00:00:00Z")
    for i in range(3):
        repo.comment(issue, f"Comment {i}", at="2025-04-02T00:00:00Z")
    commits = [(f"Part {i}", {f"f{i}.py": "x\n"}) for i in range(4)]
    made = repo.pull("Fix", "Fixes it", commits=commits, closes=[issue], merge="merge", at=MAY)
    bench.forge.fail("pulls", "heavy", nodes=20)
    pull = crawl_one(bench, made.number).pull
    assert (len(pull.commits), len(pull.files), len(pull.closing[0].comments)) == (4, 4, 3)
    (page,) = bench.kept("crawl.page")
    assert page.payload["light"] is True


def test_a_walk_ends_where_pages_hold_one_pull_request_each_and_nothing_is_touched(repo: Repo, bench: Bench) -> None:
    for _ in range(3):
        repo.pull("Change", "", merge="squash", at=MAY)
    bench.forge.fail("pulls", "heavy", nodes=20)
    found = bench.crawl("octo/lib")["octo/lib"]
    assert (found.merged, found.notes) == (3, ())
    assert len(bench.kept("crawl.page")) == 6, "all of them, and once more since they were touched in the same second"


def test_what_is_too_heavy_whatever_is_asked_is_a_fault(repo: Repo, bench: Bench) -> None:
    repo.pull("Fix", "", merge="squash", at=MAY)
    bench.forge.fail("pulls", "heavy", nodes=0)
    with pytest.raises(HeavyPage) as caught:
        bench.crawl("octo/lib")
    assert isinstance(caught.value, ForgeUnreachable)
    assert bench.kept("crawl.page") == []


def test_a_group_that_is_too_heavy_is_read_one_by_one(world: World, bench: Bench) -> None:
    for name in ("octo/a", "octo/b"):
        world.repository(name).pull("Fix", "", merge="squash", at=MAY)
    bench.forge.fail("pages", "heavy", nodes=0)
    found = bench.crawl("octo/a", "octo/b")
    assert [one.merged for one in found.values()] == [1, 1]


@pytest.mark.parametrize("fault", ["null-users", "null-head-repository"])
def test_deleted_accounts_and_forks(repo: Repo, bench: Bench, fault: str) -> None:
    issue = repo.issue(at="2025-04-01T00:00:00Z")
    made = repo.pull("Fix", "", closes=[issue], merge="squash", at=MAY, fork="someone")
    bench.forge.fail("pulls", fault)
    pull = crawl_one(bench, made.number).pull
    assert (pull.author is None) == (fault == "null-users")
    assert (pull.head_repository is None) == (fault == "null-head-repository")


def test_a_page_that_lost_its_blob_is_read_again(repo: Repo, bench: Bench) -> None:
    issue = repo.issue(at="2025-04-01T00:00:00Z")
    made = repo.pull("Fix", "", closes=[issue], merge="squash", at=MAY)
    crawl_one(bench, made.number)
    (page,) = bench.kept("crawl.page")
    bench.lose(page.blobs["page"])
    assert crawl_one(bench, made.number).pull.title == "Fix"


@pytest.mark.parametrize("text", ["{}", "[]", '{"repository": {}, "pull": null}'])
def test_a_fact_whose_answers_are_not_whole_is_a_fault(repo: Repo, bench: Bench, text: str) -> None:
    issue = repo.issue(at="2025-04-01T00:00:00Z")
    repo.pull("Fix", "", closes=[issue], merge="squash", at=MAY)
    (item,) = bench.crawl("octo/lib")["octo/lib"].items
    wrong = bench.looked_up(item).model_copy(update={"blobs": {"answers": bench.blobs.put_text(text)}})
    with pytest.raises(InfrastructureFault, match="makes no sense"):
        assemble(wrong, bench.blobs)


def test_a_pull_request_is_the_same_whatever_pages_it_was_read_from(repo: Repo, bench: Bench, tmp_path: Path) -> None:
    issues = [repo.issue(body=f"It breaks {n}", at="2025-04-01T00:00:00Z") for n in range(4)]
    for issue in issues:
        repo.pull("Fix", f"Fixes #{issue.number}", merge="squash", at=MAY)
    other = Bench(bench.forge, tmp_path / "other")
    found = [
        {item.number: (item.inputs, item.raw["page"]) for item in one.crawl("octo/lib", **size)["octo/lib"].items}
        for one, size in ((bench, {}), (other, {"measure__crawl__page_size": 1}))
    ]
    other.ledger.close()
    assert len(found[0]) == 4
    assert {number: inputs for number, (inputs, _) in found[0].items()} == {
        number: inputs for number, (inputs, _) in found[1].items()
    }
    assert len({page for _, page in found[1].values()}) == 4


def test_a_page_is_decoded_once_for_all_of_its_pull_requests(tmp_path: Path) -> None:
    class Counted:
        asked = 0

        def get(self, digest: str) -> bytes:
            self.asked += 1
            return b'{"a": "\\ud800"}' if digest == "odd" else b'{"a": 1}'

    blobs, decoded = Counted(), Decoded(kept=2)
    assert [decoded.read(digest, blobs)["a"] for digest in ("x", "y", "x", "odd", "x", "y")] == [
        1,
        1,
        1,
        "\ud800",
        1,
        1,
    ]  # type: ignore[arg-type]
    assert blobs.asked == 4


def test_looking_up_asks_nothing(repo: Repo, bench: Bench) -> None:
    issue = repo.issue(at="2025-04-01T00:00:00Z")
    repo.pull("Fix", "", closes=[issue], merge="squash", at=MAY)
    (item,) = bench.crawl("octo/lib")["octo/lib"].items
    assert bench.asked(lambda: bench.looked_up(item)) == []
    assert item.origin["month"] == "2025-05"
    key = FactKey(kind="k", subject="s", input_hash="h", producer="p", epoch=1)
    assert Fact(key=key, observed_at=bench.now, payload=item.identity).payload["origin"] == item.origin
