from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from histories import Tree, Upstream, submodule
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import TREES, consistent

from miner.core.blobs import BlobStore
from miner.crawlers.archive import Entry
from miner.crawlers.candidate import split_of
from miner.crawlers.git_repo import Change
from miner.crawlers.merged import Coordinates, extract_pull
from miner.crawlers.mirror import Mirror, Remote
from miner.crawlers.patches import transplant, unfaithful
from miner.crawlers.split import Split, split_change

pytestmark = pytest.mark.loopback

A, B = "a" * 40, "b" * 40
SUBMODULES = st.dictionaries(
    st.sampled_from(["lib", "tests/lib", "pkg/sub", "b c"]), st.sampled_from([submodule(A), submodule(B)]), max_size=2
)


def with_submodules(tree: dict[str, Entry], modules: dict[str, Entry]) -> dict[str, Entry]:
    """Put submodules into a tree, in place of what stands there."""
    kept = {path: entry for path, entry in tree.items() if not any(path.startswith(f"{at}/") for at in modules)}
    return consistent({**kept, **modules})


FORESTS = st.builds(with_submodules, TREES, SUBMODULES)


def pull_between(folder: Path, old: Tree, new: Tree) -> tuple[Upstream, str, str]:
    upstream = Upstream(folder / "r.git")
    base = upstream.ref("heads/main", upstream.commit(old))
    return upstream, base, upstream.ref("pull/1/head", upstream.commit(new, base))


def split_between(upstream: Upstream, base: str, target: str) -> Split:
    repo = upstream.repo
    paths = [[file.path for file in repo.entries(commit)] for commit in (base, target)]
    return split_change(repo.diff(base, target), repo.changes(base, target), base_paths=paths[0], target_paths=paths[1])


@settings(deadline=None, max_examples=12)
@given(old=FORESTS, new=FORESTS)
def test_gold_and_test_patch_make_the_target_of_any_two_trees(old: dict[str, Entry], new: dict[str, Entry]) -> None:
    with TemporaryDirectory() as folder:
        upstream, base, target = pull_between(Path(folder), old, new)
        split = split_between(upstream, base, target)
        assert unfaithful(upstream.repo, base, target, (split.gold_patch, split.test_patch)) is None


@settings(deadline=None, max_examples=5)
@given(old=FORESTS, new=FORESTS)
def test_any_two_trees_survive_the_way_through_a_mirror(old: dict[str, Entry], new: dict[str, Entry]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        upstream, base, target = pull_between(folder, old, new)
        at = Coordinates(
            repository_id=1,
            network_id=1,
            full_name="o/r",
            number=1,
            base_branch="main",
            base_oid=base,
            head_oid=target,
        )
        blobs = BlobStore(str(folder / "blobs"))
        mirror = Mirror(folder / "store.git", Remote(upstream.path.as_uri(), 1), tries=1)
        seen = extract_pull(mirror, at, blobs)
        assert seen.payload["faithful"], seen.payload["unfaithful"]
        assert seen.payload["changes"] == [
            change.model_dump(mode="json") for change in upstream.repo.changes(base, target)
        ]
        split = split_of(seen.payload, seen.blobs, blobs)
        assert unfaithful(upstream.repo, base, target, (split.gold_patch, split.test_patch)) is None


def entry(data: str | bytes, mode: str = "100644") -> Entry:
    return Entry(mode, data.encode() if isinstance(data, str) else data)  # type: ignore[arg-type]


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n"
CHANGES: dict[str, tuple[Tree, Tree]] = {
    "rename": ({"old.py": "a\n" * 50}, {"new/name.py": "a\n" * 50}),
    "rename across sides": ({"pkg/helper.py": "a\n" * 50}, {"tests/helper.py": "a\n" * 50}),
    "mode": ({"run": entry("#!/bin/sh\n")}, {"run": entry("#!/bin/sh\n", "100755")}),
    "mode of an empty file": ({"run": entry("")}, {"run": entry("", "100755")}),
    "binary": ({"x.bin": bytes(range(256))}, {"x.bin": bytes(reversed(range(256)))}),
    "binary added": ({}, {"x.bin": b"\0\1\2"}),
    "binary deleted": ({"x.bin": b"\0\1\2"}, {}),
    "text to binary": ({"x": "text\n"}, {"x": b"\0"}),
    "CRLF": ({"x": "a\r\nb\r\n"}, {"x": "a\r\nc\r\n"}),
    "CRLF to LF": ({"x": "a\r\nb\r\n"}, {"x": "a\nb\n"}),
    "no newline at the end": ({"x": "a"}, {"x": "b"}),
    "newline at the end": ({"x": "a"}, {"x": "a\n"}),
    "path that is not UTF-8": ({"\udce9.py": "1"}, {"\udce9.py": "2", "tests/\udcff": "x"}),
    "content that is not UTF-8": ({"x": b"caf\xe9\n"}, {"x": b"th\xe9\n"}),
    "line separators": ({"x": "a\u2028b\u2029c\x0bd\x0ce\x85\n"}, {"x": "a\u2028B\u2029c\x0bd\x0ce\x85\n"}),
    "submodule added": ({}, {"lib": submodule(A), ".gitmodules": '[submodule "lib"]\n'}),
    "submodule bump": ({"lib": submodule(A)}, {"lib": submodule(B)}),
    "submodule gone": ({"lib": submodule(A)}, {}),
    "submodule to file": ({"lib": submodule(A)}, {"lib": "file\n"}),
    "file to submodule": ({"lib": "file\n"}, {"lib": submodule(A)}),
    "folder to submodule": ({"lib/a.py": "1", "lib/b/c.py": "2"}, {"lib": submodule(A)}),
    "submodule in tests": ({"tests/lib": submodule(A)}, {"tests/lib": submodule(B)}),
    "LFS pointer": ({"x.bin": LFS.format("1" * 64)}, {"x.bin": LFS.format("2" * 64)}),
    "LFS attributes": ({".gitattributes": "*.bin filter=lfs diff=lfs -text\n", "x.bin": "1"}, {"x.bin": "2"}),
    "link": ({"l": entry("core.py", "120000")}, {"l": entry("tests", "120000")}),
    "link to file": ({"l": entry("core.py", "120000")}, {"l": "core.py"}),
    "link to folder": ({"l": entry("core.py", "120000")}, {"l/x.py": "1"}),
    "file to folder": ({"tests": "a file"}, {"tests/test_x.py": "1"}),
    "folder to file": ({"tests/test_x.py": "1", "tests/a/b.py": "1"}, {"tests": "a file"}),
    "empty file added": ({}, {"pkg/__init__.py": ""}),
    "empty file deleted": ({"pkg/__init__.py": ""}, {}),
    "attributes of the tree": ({".gitattributes": "* text=auto eol=crlf ident\n", "x": "$Id$\n"}, {"x": "$Id: 1$\r\n"}),
    "a diff in a diff": ({"x": "1\n"}, {"x": "1\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n"}),
    "very long line": ({"x": "a" * 100_000}, {"x": "a" * 100_001}),
    "all deleted": ({"pkg/a.py": "1", "b": "2"}, {}),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_every_kind_of_change_survives(tmp_path: Path, kind: str) -> None:
    old, new = CHANGES[kind]
    always: Tree = (
        {"core.py": "1\n", "tests/test_core.py": "1\n"} if "tests" not in {*old, *new} else {"core.py": "1\n"}
    )
    after: Tree = dict.fromkeys(always, "2\n")
    upstream, base, target = pull_between(tmp_path, {**always, **old}, {**after, **new})
    split = split_between(upstream, base, target)
    assert unfaithful(upstream.repo, base, target, (split.gold_patch, split.test_patch)) is None
    assert {change.path for change in upstream.repo.changes(base, target)} >= {
        path for path in {*old, *new} if old.get(path) != new.get(path)
    }


def test_patches_that_do_not_lead_there_say_why(tmp_path: Path) -> None:
    upstream, base, target = pull_between(tmp_path, {"a": "1\n", "b": "1\n"}, {"a": "2\n", "b": "2\n"})
    half = upstream.commit({"a": "2\n", "b": "1\n"}, base)
    part, whole = upstream.repo.diff(base, half), upstream.repo.diff(base, target)
    assert unfaithful(upstream.repo, base, target, (whole, b"")) is None
    assert "and not" in (unfaithful(upstream.repo, base, target, (part, b"")) or "")
    assert "does not apply" in (unfaithful(upstream.repo, base, target, (whole, part)) or "")
    assert "does not apply" in (unfaithful(upstream.repo, base, target, (whole[:-9], b"")) or "")


def test_patches_that_need_an_order_are_unfaithful(tmp_path: Path) -> None:
    upstream, base, target = pull_between(tmp_path, {"a": "1\n"}, {"a": "3\n"})
    middle = upstream.commit({"a": "2\n"}, base)
    steps = upstream.repo.diff(base, middle), upstream.repo.diff(middle, target)
    assert "does not apply" in (unfaithful(upstream.repo, base, target, steps) or "")


def test_trying_leaves_nothing_behind(tmp_path: Path) -> None:
    upstream, base, target = pull_between(tmp_path, {"a": "1\n"}, {"a": "2\n", "b": "x"})
    before = sorted(upstream.path.rglob("*"))
    assert unfaithful(upstream.repo, base, target, (upstream.repo.diff(base, target),)) is None
    assert sorted(upstream.path.rglob("*")) == before


def test_a_change_that_was_applied_elsewhere_is_the_same_commit_each_time(tmp_path: Path) -> None:
    upstream, base, target = pull_between(tmp_path, {"a": "1\n", "b": "1\n"}, {"a": "2\n", "b": "1\n"})
    onto = upstream.commit({"a": "1\n", "b": "5\n"}, base)
    patch = upstream.repo.diff(base, target)
    made = transplant(upstream.repo, patch, onto, target)
    assert made is not None
    assert made == transplant(upstream.repo, patch, onto, target)
    assert upstream.repo.changes(onto, made) == (Change(status="M", path="a", old_mode="100644", new_mode="100644"),)
    assert transplant(upstream.repo, patch, target, target) is None
