from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from histories import START, Upstream, submodule

from miner.core.blobs import BlobStore
from miner.core.errors import InfrastructureFault
from miner.core.reasons import Reason
from miner.core.records import Observation
from miner.crawlers.archive import Entry
from miner.crawlers.interface import Rejection
from miner.crawlers.merged import Coordinates, Endpoints, endpoints, extract_pull, whole_trees
from miner.crawlers.mirror import Mirror, Remote

pytestmark = pytest.mark.loopback

NOBODY = "1" * 40
OLD = {"core.py": "1\n", "tests/test_core.py": "1\n"}
NEW = {"core.py": "2\n", "tests/test_core.py": "2\n"}


class Pull:
    """A repository with one pull request, number 7, and a mirror of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.upstream = Upstream(folder / "r.git")
        self.commit = self.upstream.commit
        self.base = self.commit(OLD, title="Start")

    def mirror(self) -> Mirror:
        return Mirror(self.folder / "store.git", Remote(self.upstream.path.as_uri(), 5), tries=1)

    def at(self, head: str = "", merge: str | None = None, **more: Any) -> Coordinates:
        """Push the base branch and the pull request's head, and say where it is."""
        self.upstream.ref("heads/main", more.pop("main", None) or merge or self.base)
        if head and more.pop("has_ref", True):
            self.upstream.ref("pull/7/head", head)
        known = {"base_oid": "", "base_branch": "main", "network_id": 0, "full_name": "o/r", "number": 7, **more}
        return Coordinates(repository_id=5, head_oid=head, merge_commit=merge, **known)

    def ends(self, at: Coordinates, given_base: str | None = None) -> Endpoints:
        found = endpoints(self.mirror(), at, given_base=given_base)
        assert isinstance(found, Endpoints), found
        return found

    def rejected(self, at: Coordinates, given_base: str | None = None) -> Rejection:
        found = endpoints(self.mirror(), at, given_base=given_base)
        assert isinstance(found, Rejection), found
        return found

    def extract(self, at: Coordinates, given_base: str | None = None) -> Observation:
        return extract_pull(self.mirror(), at, self.blobs, given_base=given_base)

    @property
    def blobs(self) -> BlobStore:
        return BlobStore(str(self.folder / "blobs"))


@pytest.fixture
def pull(tmp_path: Path) -> Pull:
    return Pull(tmp_path)


def short(ends: Endpoints) -> tuple[str, str, str, bool | None]:
    return ends.kind, ends.base, ends.target, ends.merged_tree_differs


def test_merge_goes_from_the_merge_base_to_the_head(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    main = pull.commit({**OLD, "other": "x"}, pull.base)
    merge = pull.commit({**NEW, "other": "x"}, main, head)
    assert short(pull.ends(pull.at(head, merge))) == ("merge", pull.base, head, True)


def test_merge_of_a_branch_that_was_up_to_date_has_the_tree_of_the_head(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    assert short(pull.ends(pull.at(head, pull.commit(NEW, pull.base, head)))) == ("merge", pull.base, head, False)


def test_merge_after_the_base_branch_was_merged_into_the_head(pull: Pull) -> None:
    first = pull.commit({**OLD, "core.py": "2\n"}, pull.base)
    main = pull.commit({**OLD, "other": "x"}, pull.base)
    head = pull.commit({**NEW, "other": "x"}, first, main)
    merge = pull.commit({**NEW, "other": "x"}, main, head)
    assert short(pull.ends(pull.at(head, merge))) == ("merge", main, head, False)


def test_merge_whose_head_is_the_first_parent(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    main = pull.commit({**OLD, "other": "x"}, pull.base)
    merge = pull.commit({**NEW, "other": "x"}, head, main)
    assert short(pull.ends(pull.at(head, merge))) == ("merge", pull.base, head, True)


def test_merge_of_more_than_the_head_takes_the_head_alone(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    more = pull.commit({**NEW, "more": "x"}, head)
    merge = pull.commit({**NEW, "more": "x"}, pull.base, more)
    ends = pull.ends(pull.at(head, merge))
    assert short(ends) == ("merge", pull.base, head, True)
    assert "no parent of the merge commit" in ends.notes[0]


def test_merge_of_a_head_that_was_pushed_over_takes_the_second_parent(pull: Pull) -> None:
    head, landed = pull.commit({**NEW, "x": "1"}, pull.base), pull.commit(NEW, pull.base)
    ends = pull.ends(pull.at(head, pull.commit(NEW, pull.base, landed)))
    assert short(ends) == ("merge", pull.base, landed, False)
    assert "no parent of the merge commit" in ends.notes[0]


def test_of_several_merge_bases_the_newest_is_taken_and_all_are_named(pull: Pull) -> None:
    one = pull.commit({**OLD, "one": "x"}, pull.base, at=START + 100)
    two = pull.commit({**OLD, "two": "x"}, pull.base, at=START + 200)
    both = {**OLD, "one": "x", "two": "x"}
    main = pull.commit(both, one, two)
    head = pull.commit({**both, **NEW}, two, one)
    ends = pull.ends(pull.at(head, pull.commit({**both, **NEW}, main, head)))
    assert ends.base == two
    assert f"2 merge bases, the newest one was taken: {two}, {one}" in ends.notes[0]


def test_octopus_takes_the_parent_that_is_the_head(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    other = pull.commit({**OLD, "other": "x"}, pull.base)
    merge = pull.commit({**NEW, "other": "x"}, pull.base, other, head)
    assert short(pull.ends(pull.at(head, merge))) == ("octopus", pull.base, head, True)


def test_fast_forward_with_a_known_base(pull: Pull) -> None:
    head = pull.commit(NEW, pull.commit({**OLD, "core.py": "2\n"}, pull.base))
    assert short(pull.ends(pull.at(head, head, base_oid=pull.base))) == ("fast-forward", pull.base, head, False)


@pytest.mark.parametrize("base_oid", ["", NOBODY, "head"])
def test_fast_forward_without_a_known_base_goes_back_over_the_listed_commits(pull: Pull, base_oid: str) -> None:
    first = pull.commit({**OLD, "core.py": "2\n"}, pull.base)
    head = pull.commit(NEW, first)
    at = pull.at(head, head, base_oid=head if base_oid == "head" else base_oid, commits=(first, head))
    ends = pull.ends(at)
    assert short(ends) == ("fast-forward", pull.base, head, False)
    assert "first commit before the 2 that the forge lists" in ends.notes[-1]


def test_a_head_that_is_below_the_merge_commit_landed_as_it_is(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    after = pull.commit({**NEW, "more": "x"}, head)
    assert short(pull.ends(pull.at(head, after, base_oid=pull.base))) == ("fast-forward", pull.base, head, True)


def test_a_fast_forward_to_a_merge_is_none_of_the_head_into_the_branch(pull: Pull) -> None:
    own = pull.commit(NEW, pull.base)
    main = pull.commit({**OLD, "other": "x"}, pull.base)
    head = pull.commit({**NEW, "other": "x"}, own, main)
    assert short(pull.ends(pull.at(head, head, base_oid=main))) == ("fast-forward", main, head, False)


def test_squash_of_one_commit(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    main = pull.commit({**OLD, "other": "x"}, pull.base)
    squashed = pull.commit({**NEW, "other": "x"}, main, title="Change (#7)")
    assert short(pull.ends(pull.at(head, squashed))) == ("squash", main, squashed, False)


def test_squash_of_many_commits(pull: Pull) -> None:
    first = pull.commit({**OLD, "core.py": "2\n"}, pull.base, title="First")
    head = pull.commit(NEW, first, title="Second")
    squashed = pull.commit(NEW, pull.base, title="Both (#7)")
    assert short(pull.ends(pull.at(head, squashed, base_oid=pull.base))) == ("squash", pull.base, squashed, False)


def test_squash_onto_a_branch_whose_last_commits_only_look_alike(pull: Pull) -> None:
    before = pull.commit({**OLD, "log": "x"}, pull.base, title="Update")
    first = pull.commit({**OLD, "core.py": "2\n"}, pull.base, title="Update")
    head = pull.commit(NEW, first, title="Update")
    squashed = pull.commit({**NEW, "log": "x"}, before, title="Update")
    assert short(pull.ends(pull.at(head, squashed))) == ("squash", before, squashed, False)


STEPS = [("a", "1"), ("b", "1"), ("c", "1")]


def rebased(pull: Pull, order: list[int], **how: Any) -> tuple[str, str, str]:
    """Make a pull request of three commits and land those of `order`: head, main before it, last landed commit."""
    head, tree = pull.base, dict(OLD)
    for number, (path, data) in enumerate(STEPS):
        tree[path] = data
        head = pull.commit(tree, head, title=f"Step {number}", authored=START - 100 + number)
    main = pull.commit({**OLD, "other": "x"}, pull.base, title="Elsewhere")
    last, tree = main, {**OLD, "other": "x"}
    for number in order:
        path, data = STEPS[number]
        tree[path] = how.get("data", data)
        title = how.get("title", f"Step {number}")
        last = pull.commit(tree, last, title=title, authored=how.get("authored", START - 100 + number))
    return head, main, last


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 2], [0, 2], [2], [1, 0, 2], [2, 0, 1]], ids=str)
def test_rebase_finds_the_first_landed_commit(pull: Pull, order: list[int]) -> None:
    head, main, last = rebased(pull, order)
    ends = pull.ends(pull.at(head, last))
    assert short(ends) == ("rebase", main, last, False)
    assert f"{len(order)} of 3 commits landed" in ends.notes[0]


def test_rebase_of_commits_that_were_worded_anew_is_found_by_their_patches(pull: Pull) -> None:
    head, main, last = rebased(pull, [0, 1, 2], title="Worded anew", authored=START)
    ends = pull.ends(pull.at(head, last))
    assert short(ends) == ("rebase", main, last, False)
    assert "3 of them by their patch" in ends.notes[0]


def test_rebase_with_conflicts_is_found_by_title_and_date(pull: Pull) -> None:
    head, main, last = rebased(pull, [0, 1, 2], data="resolved")
    assert short(pull.ends(pull.at(head, last))) == ("rebase", main, last, False)


def test_rebase_of_what_was_built_on_another_pull_request_begins_after_that(pull: Pull) -> None:
    below = pull.commit({**OLD, "a": "1"}, pull.base, title="Below", authored=START)
    head = pull.commit({**OLD, "a": "1", "b": "1"}, below, title="Own", authored=START + 1)
    landed = pull.commit({**OLD, "x": "1", "a": "1"}, pull.base, title="Below", authored=START, at=START + 5_000)
    last = pull.commit(
        {**OLD, "x": "1", "a": "1", "b": "1"}, landed, title="Own", authored=START + 1, at=START + 90_000
    )
    assert short(pull.ends(pull.at(head, last, base_oid=pull.base))) == ("rebase", landed, last, False)


def test_squash_of_what_was_built_on_another_pull_request_begins_after_that(pull: Pull) -> None:
    below = pull.commit({**OLD, "a": "1"}, pull.base, title="Below")
    head = pull.commit({**OLD, "a": "1", "b": "1"}, below, title="Own")
    main = pull.commit({**OLD, "x": "1"}, pull.base, title="Elsewhere")
    squashed = pull.commit({**OLD, "x": "1", "a": "1"}, main, title="Below (#6)")
    last = pull.commit({**OLD, "x": "1", "a": "1", "b": "1"}, squashed, title="Own (#7)")
    assert pull.ends(pull.at(head, last, base_oid=pull.base)).base == squashed


def test_rebase_whose_head_is_gone_is_found_by_titles(pull: Pull) -> None:
    _, main, last = rebased(pull, [0, 1, 2])
    at = pull.at(NOBODY, last, has_ref=False, commit_titles=("Step 0", "Step 1", "Step 2"))
    ends = pull.ends(at)
    assert short(ends) == ("rebase", main, last, False)
    assert ends.head is None
    assert any("title alone" in note for note in ends.notes)


def test_rebase_stops_at_what_was_on_the_branch_before(pull: Pull) -> None:
    head, main, last = rebased(pull, [0, 1, 2])
    before = pull.mirror()
    at = pull.at(head, last)
    before.bring({"heads/main": last})
    picked = before.repo.run("rev-parse", f"{last}~2").decode().strip()  # step 0 was there before, picked by hand
    assert pull.ends(at.model_copy(update={"base_oid": picked})).base == picked
    assert pull.ends(at).base == main


def test_a_head_that_only_its_reference_leads_to_is_noted(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    at = pull.at(head, None).model_copy(update={"head_oid": NOBODY})
    ends = pull.ends(at)
    assert short(ends) == ("head", pull.base, head, None)
    assert f"the head {NOBODY} is gone, and refs/pull/7/head is {head}" in ends.notes


def test_a_merge_commit_that_is_gone_leaves_the_head_against_the_branch(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    main = pull.commit({**OLD, "other": "x"}, pull.base)
    ends = pull.ends(pull.at(head, NOBODY, main=main))
    assert short(ends) == ("head", pull.base, head, None)
    assert f"the merge commit {NOBODY} is gone" in ends.notes


def test_commits_that_are_gone_for_good_are_a_rejection_of_the_network(pull: Pull) -> None:
    at = pull.at(NOBODY, "2" * 40, main=pull.base, has_ref=False)
    rejection = pull.rejected(at)
    assert rejection.reason is Reason.COMMIT_GONE
    assert NOBODY in rejection.detail
    seen = pull.extract(at)
    assert (seen.outcome, seen.network) == ("commit-gone", True)


def test_histories_that_have_nothing_in_common_are_a_rejection(pull: Pull) -> None:
    alone = pull.commit(NEW, title="Another start")
    merge = pull.commit(NEW, pull.base, alone)
    assert pull.rejected(pull.at(alone, merge)).reason is Reason.NO_MERGE_BASE


def test_a_merge_commit_without_a_parent_is_a_rejection(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    assert pull.rejected(pull.at(head, pull.commit(NEW))).reason is Reason.NO_MERGE_BASE


def test_given_base_where_the_head_left_the_branch(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    assert short(pull.ends(pull.at(head), given_base=pull.base)) == ("given", pull.base, head, None)


def test_given_base_further_on_takes_the_change_with_it(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    main = pull.commit({**OLD, "other": "x"}, pull.base)
    at = pull.at(head, None, main=main)
    ends = pull.ends(at, given_base=main)
    assert (ends.kind, ends.base) == ("given", main)
    mirror = pull.mirror()
    assert {file.path for file in mirror.repo.entries(ends.target)} == {*NEW, "other"}
    shutil.rmtree(mirror.path)
    assert pull.ends(at, given_base=main) == ends, "the commit depends on what it is made of alone"


def test_given_base_to_which_the_change_does_not_apply(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    main = pull.commit({**OLD, "core.py": "3\n"}, pull.base)
    assert pull.rejected(pull.at(head, None, main=main), given_base=main).reason is Reason.PATCH_NOT_FAITHFUL
    assert pull.rejected(pull.at(head), given_base=NOBODY).reason is Reason.COMMIT_GONE


def test_extraction_holds_what_later_stages_compute_with(pull: Pull) -> None:
    old = {**OLD, "setup.cfg": "[metadata]\nname = p\n", "lib": submodule("a" * 40), "doc/x": "y"}
    base = pull.commit(old, title="With a set-up")
    pull.upstream.ref("tags/v1.2", base)
    head = pull.commit({**old, **NEW}, base, title="Fix it")
    main = pull.commit({**old, "other": "x"}, base)
    merge = pull.commit({**old, **NEW, "other": "x"}, main, head)
    pull.upstream.ref("tags/v1.3", head)
    seen = pull.extract(pull.at(head, merge))
    payload = seen.payload
    assert seen.outcome == "ok"
    assert (payload["base_commit"], payload["target_commit"], payload["kind"]) == (base, head, "merge")
    assert [change["path"] for change in payload["changes"]] == ["core.py", "tests/test_core.py"]
    assert payload["base_paths"] == payload["target_paths"] == ["core.py", "doc/x", "setup.cfg", "tests/test_core.py"]
    assert payload["submodules"] == {"lib": "a" * 40}
    assert (payload["faithful"], payload["unfaithful"], payload["merged_tree_differs"]) == (True, None, True)
    assert (payload["base_version"], payload["version"]) == ("1.2", "1.3")
    assert payload["commit_titles"] == ["Fix it"]
    assert payload["committed_at"][0].startswith("2023-11-14T22:")
    assert json.loads(pull.blobs.get(seen.blobs["base_files"])) == {"setup.cfg": "[metadata]\nname = p\n"}
    assert pull.blobs.get(seen.blobs["diff"]).count(b"diff --git") == 2
    assert not seen.network


def test_extraction_fetches_contents_of_changes_and_declarations_alone(pull: Pull) -> None:
    base = pull.commit({**OLD, "setup.cfg": "", "data": "large"})
    head = pull.commit({**NEW, "setup.cfg": "", "data": "large"}, base)
    at = pull.at(head, pull.commit({**NEW, "setup.cfg": "", "data": "large"}, base, head))
    seen = pull.extract(at)
    large = next(file.oid for file in pull.mirror().repo.entries(base) if file.path == "data")
    assert not pull.mirror().has(large)
    repo = whole_trees(pull.mirror(), at, seen.payload)
    assert repo.read(base, "data") == b"large"
    assert {file.path: data for file, data in repo.blobs(repo.files(base))}.keys() == {*OLD, "setup.cfg", "data"}


def test_a_lost_or_damaged_mirror_is_made_again_with_the_same_trees(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    at = pull.at(head, pull.commit(NEW, pull.base, head))
    seen = pull.extract(at)
    shutil.rmtree(pull.mirror().path)
    assert whole_trees(pull.mirror(), at, seen.payload).read(pull.base, "core.py") == b"1\n"
    for pack in pull.mirror().path.glob("objects/pack/*.pack"):
        pack.chmod(0o644)
        pack.write_bytes(pack.read_bytes()[:-30] + b"0" * 30)
    assert whole_trees(pull.mirror(), at, seen.payload).read(pull.base, "core.py") == b"1\n"
    assert pull.extract(at) == seen


def test_other_commits_than_before_are_a_fault(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base)
    at = pull.at(head, pull.commit(NEW, pull.base, head))
    seen = pull.extract(at)
    with pytest.raises(InfrastructureFault, match="no longer lies between"):
        whole_trees(pull.mirror(), at, {**seen.payload, "base_commit": NOBODY})


def test_extraction_is_the_same_in_a_mirror_that_holds_more(pull: Pull, tmp_path: Path) -> None:
    head, _, last = rebased(pull, [1, 0])
    at = pull.at(head, last)
    seen = pull.extract(at)
    shutil.rmtree(pull.mirror().path)
    pull.mirror().bring({"heads/main": last, "pull/7/head": head}, also={"tags/*": "refs/tags/*"})
    assert pull.extract(at) == seen


def test_a_tree_that_git_would_not_check_out_is_refused(pull: Pull) -> None:
    blob = pull.upstream.blob(b"x")
    inner = pull.upstream.raw_tree(("100644", "config", blob))
    trees = {
        "git folder": [("40000", ".GIT", inner)],
        "up": [("40000", "..", inner)],
        "twice": [("120000", "a", blob), ("40000", "a", inner)],
        "disguise": [("100644", "git~1", blob)],
    }
    for what, entries in trees.items():
        head = pull.upstream.commit_tree(pull.upstream.raw_tree(*entries), pull.base)
        seen = pull.extract(pull.at(head, pull.commit(NEW, pull.base, head)))
        assert seen.outcome == Reason.TREE_UNSAFE.value, what


def test_a_tree_that_was_written_oddly_is_compared_by_what_it_holds(pull: Pull) -> None:
    blob = pull.upstream.blob(b"2\n")
    tests = pull.upstream.raw_tree(("100644", "test_core.py", blob))
    odd = pull.upstream.raw_tree(("100644", "core.py", blob), ("040000", "tests", tests))
    head = pull.upstream.commit_tree(odd, pull.base)
    seen = pull.extract(pull.at(head, pull.commit(NEW, pull.base, head)))
    assert (seen.payload["faithful"], seen.payload["target_tree"]) == (True, odd)


TAGS = [
    ({"v1.0": "base"}, ("1.0", "1.0")),
    ({"v1.0": "base", "v1.1rc1": "head"}, ("1.0", "1.1rc1")),
    ({"release-2.0": "start", "rel_2_1": "base", "latest": "base", "2.x": "base"}, ("2.1", "2.1")),
    ({"v3.0": "elsewhere"}, ("3.0", "3.0")),
    ({"v3.0": "elsewhere", "v9": "later"}, ("3.0", "3.0")),
    ({"20240101": "base"}, ("0.0.0", "0.0.0")),
    ({}, ("0.0.0", "0.0.0")),
]


@pytest.mark.parametrize(("tags", "expected"), TAGS, ids=lambda value: "-".join(value))
def test_versions_come_from_the_nearest_tags(pull: Pull, tags: dict[str, str], expected: tuple[str, str]) -> None:
    commits = {"start": pull.base, "base": pull.commit({**OLD, "x": "y"}, pull.base)}
    commits["elsewhere"] = pull.commit(OLD, title="Another line")
    commits["head"] = head = pull.commit({**NEW, "x": "y"}, commits["base"])
    merge = pull.commit({**NEW, "x": "y"}, commits["base"], head)
    commits["later"] = pull.commit({**OLD, "z": "z"}, commits["elsewhere"])
    for tag, where in tags.items():
        pull.upstream.ref(f"tags/{tag}", commits[where])
    payload = pull.extract(pull.at(head, merge)).payload
    assert (payload["base_version"], payload["version"]) == expected
    assert sum("version" in note for note in payload["notes"]) == 2


def test_dates_that_are_none_do_no_harm(pull: Pull) -> None:
    head = pull.commit(NEW, pull.base, at=99_999_999_999_999)
    payload = pull.extract(pull.at(head, pull.commit(NEW, pull.base, head))).payload
    assert payload["committed_at"] == ["9999-12-31T23:59:59Z"]


def test_links_and_large_declarations_are_not_read(pull: Pull) -> None:
    old = {**OLD, "setup.py": Entry("120000", b"/etc/passwd"), "tox.ini": "x" * (1 << 20) + "y"}
    base = pull.commit(old)
    head = pull.commit({**old, **NEW}, base)
    seen = pull.extract(pull.at(head, pull.commit({**old, **NEW}, base, head)))
    assert json.loads(pull.blobs.get(seen.blobs["base_files"])) == {}
    assert "tox.ini: 1048577 bytes, too large to read" in seen.payload["notes"]
