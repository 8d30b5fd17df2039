from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from histories import Upstream
from trees import git

from miner.core.blobs import BlobStore
from miner.core.errors import ConfigError
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Candidate, Fact, FactKey, IssueLink, Observation, Visibility
from miner.crawlers.git_source import GitSource, GivenItem
from miner.crawlers.interface import Rejection

pytestmark = pytest.mark.loopback

OLD = {"core.py": "1\n", "tests/test_core.py": "1\n"}
NEW = {"core.py": "2\n", "tests/test_core.py": "2\n"}
MEMO = Memo(lambda _key: [], lambda _fact: None)


class World:
    """A folder of repositories, a file of rows, and the source over both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mirrors = folder / "given"
        self.mirrors.mkdir()
        self.blobs = BlobStore(str(folder / "blobs"))

    def repository(self, place: str) -> tuple[Upstream, str]:
        """Make a repository with pull request 7, merged by a merge commit; return it and the id of its base."""
        upstream = Upstream(self.mirrors / place)
        base = upstream.commit(OLD, title="Start")
        head = upstream.ref("pull/7/head", upstream.commit(NEW, base, title="Fix"))
        upstream.ref("heads/main", upstream.commit(NEW, base, head, title="Merge pull request #7 from f/fix"))
        upstream.head("main")
        return upstream, base

    def source(self, *rows: dict[str, Any] | str, **more: Any) -> GitSource:
        pulls = self.folder / "pulls.jsonl"
        pulls.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
        return GitSource(pulls, self.mirrors, self.blobs, self.folder / "own", **more)

    def item(self, source: GitSource) -> GivenItem:
        (unit,) = source.units(MEMO)
        (item,) = source.discover(unit, MEMO).items
        return item

    def facts(self, source: GitSource) -> tuple[GivenItem, Fact, Fact]:
        item = self.item(source)
        looked_up = fact(source.subject(item), source.look_up(item))
        return item, looked_up, fact(source.subject(item), source.extract(item, looked_up))

    def candidate(self, source: GitSource) -> Candidate | Rejection:
        _, looked_up, extracted = self.facts(source)
        return source.candidate(looked_up, extracted, self.blobs)


def fact(subject: str, seen: Observation) -> Fact:
    key = FactKey(kind="x", subject=subject, input_hash="", producer="x", epoch=1)
    return Fact(key=key, observed_at=datetime(2024, 1, 1, tzinfo=UTC), **seen.model_dump())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


ROW = {"repo": "o/r", "pull": 7}


def test_a_row_becomes_a_candidate(world: World) -> None:
    upstream, base = world.repository("o+r/repo")
    upstream.ref("tags/v1.0", base)
    row = {
        **ROW,
        "created_at": "2024-05-01T10:00:00Z",
        "merged_at": "2024-06-30T23:30:00-02:00",
        "statement": "It is 1, and should be 2.",
        "links": [12, {"number": 13, "text": "see #13", "confidence": "weak", "provenance": "text"}],
    }
    found = world.candidate(world.source(row))
    assert isinstance(found, Candidate)
    assert (found.instance_id, found.source, found.repo, found.pull) == ("o__r-7", "git", "o/r", 7)
    assert (found.base_commit, found.version, found.base_version) == (base, "1.0", "1.0")
    assert (found.statement, found.month) == ("It is 1, and should be 2.", "2024-07")
    assert (found.gold_files, found.test_files) == (("core.py",), ("tests/test_core.py",))
    assert b"+2" in found.patch.encode()
    assert found.links == (
        IssueLink(number=12, provenance="given", where="given", text="", confidence="certain"),
        IssueLink(number=13, provenance="given", where="given", text="see #13", confidence="weak"),
    )


def test_issues_of_a_row_make_the_statement(world: World) -> None:
    world.repository("o+r")
    issues = [{"number": n, "title": f"T{n}", "body": f"B{n}", "created_at": "2024-01-01T00:00:00Z"} for n in (12, 13)]
    found = world.candidate(world.source({**ROW, "issues": issues}))
    assert isinstance(found, Candidate)
    assert found.statement == "T12\n\nB12\n\n---\n\nT13\n\nB13"
    assert [issue.number for issue in found.issues] == [12, 13]
    assert (found.month, found.created_at.year) == (None, 2023)  # of the last commit, where the row has no time


def test_a_row_of_a_benchmark_is_taken_as_it_is_and_its_answers_are_not_looked_at(world: World) -> None:
    upstream, base = world.repository("o+r")
    elsewhere = upstream.commit({**OLD, "other": "x"}, base)
    upstream.ref("heads/other", elsewhere)
    row = {
        **ROW,
        "instance_id": "o__r-7",
        "base_commit": elsewhere,
        "created_at": "2024-05-01T10:00:00Z",
        "version": "2.3",
        "test_files": ["tests/test_core.py"],
        "fail_to_pass": ["tests/test_core.py::test"],
        "pass_to_pass": [],
        "source": "A benchmark",
    }
    item, looked_up, extracted = world.facts(world.source(row))
    assert extracted.payload["kind"] == "given"
    assert extracted.payload["base_commit"] == elsewhere
    kept = json.dumps([item.inputs, looked_up.payload, extracted.payload]) + world.blobs.get_text(
        looked_up.blobs["row"]
    )
    assert "tests/test_core.py::test" not in kept
    assert "A benchmark" not in kept


@pytest.mark.parametrize(
    "place",
    ["o+r", "o+r/repo", "o+r@abc/repo", "o__r", "o__r.git", "o__r+x/y", "o/r", "o/r.git", "O+R/repo"],
)
def test_a_repository_is_found_by_its_name(world: World, place: str) -> None:
    world.repository(place)
    assert world.item(world.source(ROW)).folder == place


@pytest.mark.parametrize("place", ["o+r2", "o+r-more", "o+r.more", "o/r2", "x+r", "o", "r"])
def test_a_name_that_goes_on_is_another_repository(world: World, place: str) -> None:
    world.repository(place)
    assert world.item(world.source(ROW)).folder is None


def test_a_repository_is_found_by_the_path_of_its_row_and_in_a_clone(world: World) -> None:
    upstream, base = world.repository("bare.git")
    (world.mirrors / "deep").mkdir()
    git(world.folder, "clone", "-q", str(upstream.path), str(world.mirrors / "deep" / "clone"))
    source = world.source({**ROW, "path": "deep/clone", "head_commit": upstream.repo.commit_of("refs/pull/7/head")})
    assert world.item(source).folder == "deep/clone/.git"
    found = world.candidate(source)
    assert isinstance(found, Candidate)
    assert found.base_commit == base


def test_an_absent_repository_is_said_so_without_a_path_of_this_machine(world: World) -> None:
    for row, told in ((ROW, "there is no o+r*/, o__r*/, o/r, o/r.git"), ({**ROW, "path": "a/b"}, "a/b is no")):
        source = world.source(row)
        seen = source.look_up(world.item(source))
        assert seen.outcome == Reason.MIRROR_MISSING.value
        assert told in seen.payload["detail"]
        assert str(world.folder) not in seen.payload["detail"]


def test_a_repository_that_comes_later_is_looked_up_again(world: World) -> None:
    before = world.item(world.source(ROW)).inputs
    world.repository("o+r")
    assert world.item(world.source(ROW)).inputs != before


def test_no_fact_holds_a_path_of_this_machine(world: World) -> None:
    world.repository("o+r")
    item, looked_up, extracted = world.facts(world.source(ROW))
    kept = json.dumps([item.origin, item.identity, item.inputs, looked_up.payload, extracted.payload])
    assert str(world.folder) not in kept
    assert str(world.folder) not in world.blobs.get_text(looked_up.blobs["row"])


def test_the_folder_is_only_read(world: World) -> None:
    world.repository("o+r")
    before = {path: path.stat().st_mtime_ns for path in world.mirrors.rglob("*")}
    source = world.source(ROW)
    item, looked_up, extracted = world.facts(source)
    source.repository(item, looked_up, extracted)
    assert {path: path.stat().st_mtime_ns for path in world.mirrors.rglob("*")} == before


def test_a_lost_mirror_of_our_own_is_fetched_again(world: World) -> None:
    _, base = world.repository("o+r")
    source = world.source(ROW)
    item, looked_up, extracted = world.facts(source)
    shutil.rmtree(world.folder / "own")
    assert source.repository(item, looked_up, extracted).read(base, "core.py") == b"1\n"


def landed(upstream: Upstream, how: str) -> str:
    """Land pull request 8 in some way, and return the commit that a forge would name as its merge."""
    main = upstream.repo.commit_of("refs/heads/main")
    first = upstream.commit({**NEW, "core.py": "3\n"}, main, title="First half")
    head = upstream.ref("pull/8/head", upstream.commit({**NEW, "core.py": "4\n"}, first, title="Second half", at=2**31))
    other = upstream.commit({**NEW, "other": "x"}, main, title="Something else, see #8")
    tree = {**NEW, "core.py": "4\n", "other": "x"}
    later = 2**31 + 60
    match how:
        case "merge":
            merge = upstream.commit(tree, other, head, title="Merge", at=later)
        case "squash":
            merge = upstream.commit(tree, other, title="Both halves (#8)", at=later)
        case "rebase":
            middle = upstream.commit({**tree, "core.py": "3\n"}, other, title="First half", at=later)
            merge = upstream.commit(tree, middle, title="Second half", at=later, authored=2**31)
        case "fast-forward":
            merge = head
        case "merge into a branch that is merged":
            merge = upstream.commit(tree, other, head, title="Merge pull request #8 from f/x", at=later)
            branch = upstream.commit({**tree, "more": "x"}, merge, at=later + 60)
            upstream.ref("heads/main", upstream.commit({**tree, "more": "x"}, other, branch, at=later + 120))
            return merge
        case _:
            raise AssertionError(how)
    upstream.ref(
        "heads/main", upstream.commit({**tree, "more": "x"}, merge, title="Later, see (#8) of old", at=later + 60)
    )
    return merge


@pytest.mark.parametrize("how", ["merge", "squash", "rebase", "fast-forward", "merge into a branch that is merged"])
def test_the_merge_commit_is_found(world: World, how: str) -> None:
    upstream, _ = world.repository("o+r")
    merge = landed(upstream, how)
    source = world.source({**ROW, "pull": 8})
    looked_up = source.look_up(world.item(source))
    assert looked_up.payload["coordinates"]["merge_commit"] == merge
    assert looked_up.payload["notes"][0].startswith(f"merge commit {merge}: it")


def test_a_pull_request_that_was_never_merged_is_its_head_against_the_branch(world: World) -> None:
    upstream, _ = world.repository("o+r")
    main = upstream.repo.commit_of("refs/heads/main")
    head = upstream.ref("pull/9/head", upstream.commit({**NEW, "core.py": "5\n"}, main, title="Open"))
    _, looked_up, extracted = world.facts(world.source({**ROW, "pull": 9}))
    assert looked_up.payload["coordinates"]["merge_commit"] is None
    assert (extracted.payload["kind"], extracted.payload["base_commit"]) == ("head", main)
    assert extracted.payload["target_commit"] == head


def test_a_pull_request_that_is_not_there_is_a_rejection(world: World) -> None:
    world.repository("o+r")
    _, _, extracted = world.facts(world.source({**ROW, "pull": 99}))
    assert extracted.outcome == Reason.COMMIT_GONE.value


def lose(upstream: Upstream, path: str) -> None:
    """Take a content out of a repository, as a copy does that leaves large files out."""
    oid = next(file.oid for file in upstream.repo.entries("refs/heads/main") if file.path == path)
    (upstream.path / "objects" / oid[:2] / oid[2:]).unlink()


def loose(upstream: Upstream) -> None:
    for pack in (upstream.path / "objects/pack").glob("*.pack"):
        content = pack.read_bytes()
        pack.with_suffix(".idx").unlink()
        pack.unlink()
        upstream.repo.run("unpack-objects", "-q", stdin=content)


@pytest.fixture
def lacking(world: World) -> Upstream:
    """A repository that lacks one content of its base, which the change does not touch."""
    upstream = Upstream(world.mirrors / "o+r")
    base = upstream.commit({**OLD, "data/large.bin": "x" * 100})
    head = upstream.ref("pull/7/head", upstream.commit({**NEW, "data/large.bin": "x" * 100}, base))
    upstream.ref("heads/main", upstream.commit({**NEW, "data/large.bin": "x" * 100}, base, head))
    upstream.head("main")
    loose(upstream)
    lose(upstream, "data/large.bin")
    return upstream


def test_a_repository_that_lacks_contents_makes_no_candidate(world: World, lacking: Upstream) -> None:
    found = world.candidate(world.source(ROW))
    assert isinstance(found, Rejection)
    assert (found.reason, found.detail) == (
        Reason.MIRROR_INCOMPLETE,
        "contents of 1 files are not there: data/large.bin",
    )


def test_files_without_contents_are_left_out_where_that_is_asked_for(world: World, lacking: Upstream) -> None:
    source = world.source(ROW, may_lack_files=True)
    item, looked_up, extracted = world.facts(source)
    assert list(extracted.payload["absent"]) == ["data/large.bin"]
    assert isinstance(source.candidate(looked_up, extracted, world.blobs), Candidate)
    repo = source.repository(item, looked_up, extracted)
    assert [file.path for file in repo.files(extracted.payload["base_commit"])] == ["core.py", "tests/test_core.py"]


def test_a_change_whose_contents_are_not_there_is_a_rejection(world: World) -> None:
    upstream, _ = world.repository("o+r")
    loose(upstream)
    lose(upstream, "core.py")
    _, _, extracted = world.facts(world.source(ROW, may_lack_files=True))
    assert extracted.outcome == Reason.MIRROR_INCOMPLETE.value
    assert "core.py" in extracted.payload["detail"]


WRONG = [
    ("{", "line 1: is no JSON object"),
    ("[1]", "line 1"),
    ('{"repo": "r", "pull": 1}', "repo: Value error, a repository is written owner/name"),
    ('{"repo": "../r", "pull": 1}', "repo: Value error"),
    ('{"repo": "o/r", "pull": 1, "path": "../../etc"}', "path: Value error, a path starts at the folder"),
    ('{"repo": "o/r", "pull": 1, "path": "/etc"}', "path: Value error"),
    ('{"repo": "o/r", "pull": 0}', "pull: "),
    ('{"repo": "o/r", "pull": 1, "base_commit": "main"}', "base_commit: "),
    ('{"repo": "o/r", "pull": 1, "base_comit": "x"}', "base_comit: Extra inputs are not permitted"),
    ('{"repo": "o/r", "pull": 1, "created_at": "2024-01-01T00:00:00"}', "created_at: Input should have timezone"),
    ('{"repo": "o/r", "pull": 1, "links": ["12"]}', "links.0"),
    ('{"repo": "o/r", "pull": 1}\n\n{"repo": "O/R", "pull": 1}', "line 3: O/R#1 stands twice"),
]


@pytest.mark.parametrize(("lines", "told"), WRONG, ids=[told for _, told in WRONG])
def test_a_wrong_line_is_named(world: World, lines: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        world.source(lines).units(MEMO)
    assert told in str(error.value)


def test_absent_paths_of_the_settings_are_said_so(world: World) -> None:
    source = world.source(ROW)
    (world.folder / "pulls.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"mine\.git_pulls: pulls\.jsonl cannot be read"):
        source.units(MEMO)
    shutil.rmtree(world.mirrors)
    with pytest.raises(ConfigError, match=r"mine\.git_mirrors"):
        source.units(MEMO)


def test_rows_of_another_month_are_counted_and_left_out(world: World) -> None:
    rows = [{**ROW, "pull": n, "merged_at": f"2024-0{n}-01T00:00:00Z"} for n in (5, 6)]
    source = world.source(*rows, ROW, month="2024-06")
    assert source.units(MEMO) == ("o/r",)
    found = source.discover("o/r", MEMO)
    assert [item.row.pull for item in found.items] == [6]
    assert (found.merged, found.notes) == (3, ("2 rows are not of 2024-06",))


def test_visibility_is_of_the_item_and_enters_no_fact(world: World) -> None:
    world.repository("o+r")
    seen = [world.facts(world.source({**ROW, "visibility": visibility})) for visibility in ("private", "public")]
    assert [item.visibility for item, *_ in seen] == [Visibility.PRIVATE, Visibility.PUBLIC]
    assert seen[0][0].inputs == seen[1][0].inputs
    assert (seen[0][1].payload, seen[0][1].blobs) == (seen[1][1].payload, seen[1][1].blobs)
