from __future__ import annotations

import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from histories import Upstream, submodule
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import NEW, OLD, TREES, git, two_commits

from miner.core.errors import InfrastructureFault, Interrupted
from miner.crawlers.archive import Entry
from miner.crawlers.git_repo import GitRepo, TreeFile, make_repo
from miner.crawlers.git_run import GitFault, GitTimeout

SLOW = settings(deadline=None, max_examples=25)


def text(data: str) -> Entry:
    return Entry("100644", data.encode())


@SLOW
@given(tree=TREES)
def test_a_commit_holds_exactly_the_tree_it_was_given(tree: dict[str, Entry]) -> None:
    with TemporaryDirectory() as folder:
        repo = make_repo(Path(folder) / "r.git", [("base", tree, OLD, "x")])
        found = {file.path: Entry(file.mode, data) for file, data in repo.blobs(repo.files(repo.commit_of("base")))}  # type: ignore[arg-type]
    assert found == tree


def test_ids_depend_on_content_and_dates_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = {"b": text("b"), "a": text("a")}
    first = two_commits(tmp_path / "1.git", tree, {"a": text("c")})[1:]
    hostile = tmp_path / "config"
    hostile.write_text(
        "[user]\nname=me\n[core]\nautocrlf=true\n[i18n]\ncommitEncoding=latin-1\n[diff]\nnoprefix=true\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(hostile))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.external")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "false")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "me")
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "objects"))
    monkeypatch.setenv("GIT_DIFF_OPTS", "--unified=9")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    repo, *second = two_commits(tmp_path / "2.git", dict(reversed(tree.items())), {"a": text("c")})
    assert tuple(second) == first
    assert repo.diff(*second).startswith(b"diff --git a/a b/a\n")
    assert not (tmp_path / "objects").exists()


def test_dates_and_identity_are_fixed(tmp_path: Path) -> None:
    repo, _, target = two_commits(tmp_path / "r.git", {}, {"a": text("c")})
    shown = repo.run("log", "-1", "--format=%an %ae %at %cn %ct %s", target).decode().strip()
    assert shown == f"swe-miner swe-miner@localhost {int(NEW.timestamp())} swe-miner {int(NEW.timestamp())} pkg 2"


def test_changes_name_status_and_modes_and_a_rename_is_two(tmp_path: Path) -> None:
    old = {
        "same": text("s"),
        "moved": text("long enough\n" * 9),
        "mode": text("m"),
        "kind": text("k"),
        "edit": text("1"),
    }
    new = {
        "same": text("s"),
        "moved-on": text("long enough\n" * 9),
        "mode": Entry("100755", b"m"),
        "kind": Entry("120000", b"same"),
        "edit": text("2"),
    }
    repo, base, target = two_commits(tmp_path / "r.git", old, new)
    found = [(change.status, change.path, change.old_mode, change.new_mode) for change in repo.changes(base, target)]
    assert found == [
        ("M", "edit", "100644", "100644"),
        ("T", "kind", "100644", "120000"),
        ("M", "mode", "100644", "100755"),
        ("D", "moved", "100644", "000000"),
        ("A", "moved-on", "000000", "100644"),
    ]


def test_attributes_of_the_tree_have_no_say_in_the_diff(tmp_path: Path) -> None:
    rules = text("* -diff\n*.txt binary eol=crlf filter=evil ident\n")
    repo, base, target = two_commits(
        tmp_path / "r.git",
        {".gitattributes": rules, "a.txt": text("$Id$\n")},
        {".gitattributes": rules, "a.txt": text("2\n")},
    )
    assert b"-$Id$\n+2\n" in repo.diff(base, target)


def test_a_missing_object_is_a_fault_and_no_empty_file(tmp_path: Path) -> None:
    repo, base, target = two_commits(tmp_path / "r.git", {"a": text("1")}, {"a": text("2")})
    oid = repo.files(target)[0].oid
    packs = [path.read_bytes() for path in (repo.path / "objects" / "pack").glob("*.pack")]
    for path in (repo.path / "objects" / "pack").iterdir():
        path.unlink()
    for pack in packs:
        repo.run("unpack-objects", "-q", stdin=pack)
    assert repo.read(target, "a") == b"2"
    (repo.path / "objects" / oid[:2] / oid[2:]).unlink()
    for ask in (lambda: repo.diff(base, target), lambda: repo.read(target, "a"), lambda: repo.objects([oid])):
        with pytest.raises(InfrastructureFault):
            ask()


def test_a_complaint_with_exit_code_zero_is_a_fault(tmp_path: Path) -> None:
    repo, *_ = two_commits(tmp_path / "r.git", {"a": text("1")}, {"a": text("2")})
    repo.run("config", "alias.complain", "!echo 'error: unable to read sha1 file of a' >&2")
    with pytest.raises(InfrastructureFault, match="unable to read"):
        repo.run("complain")


def test_an_interrupted_fill_leaves_the_old_repository_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "repos" / "r.git"
    _, base, _ = two_commits(path, {"a": text("1")}, {"a": text("2")})

    def broken() -> object:
        yield "base", {"a": text("3")}, OLD, "x"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_repo(path, broken())  # type: ignore[arg-type]
    assert [item.name for item in path.parent.iterdir()] == ["r.git"]
    assert GitRepo(path).commit_of("base") == base
    assert two_commits(path, {"a": text("4")}, {})[1] != base


@SLOW
@given(old=TREES, new=TREES, reverse=st.booleans())
def test_the_whole_diff_leads_from_base_to_target(old: dict[str, Entry], new: dict[str, Entry], reverse: bool) -> None:
    if reverse:
        old, new = new, old
    with TemporaryDirectory() as folder:
        repo, base, target = two_commits(Path(folder) / "r.git", old, new)
        work = Path(folder) / "work"
        git(Path(folder), "clone", "-q", "--no-checkout", str(repo.path), str(work))
        git(work, "read-tree", base)
        diff = repo.diff(base, target)
        if diff:
            git(work, "apply", "--cached", "--whitespace=nowarn", "-", stdin=diff)
        assert git(work, "write-tree").strip() == repo.tree_of(target)


def test_submodules_are_listed_and_have_no_content(tmp_path: Path) -> None:
    upstream = Upstream(tmp_path / "r.git")
    base = upstream.commit({"a": "1", "lib": submodule("a" * 40)})
    target = upstream.commit({"a": "1", "lib": submodule("b" * 40)}, base)
    repo = upstream.repo
    assert [(file.path, file.is_submodule) for file in repo.files(base)] == [("a", False), ("lib", True)]
    assert [file.path for file, _ in repo.blobs(repo.files(base))] == ["a"]
    assert repo.read(base, "lib") is None
    assert repo.changed_blobs(base, target) == frozenset()
    assert b"-Subproject commit " + b"a" * 40 in repo.diff(base, target)


def test_sizes_say_what_is_missing_and_entries_need_no_content(tmp_path: Path) -> None:
    repo, base, _ = two_commits(tmp_path / "r.git", {"a": text("123")}, {})
    (file,) = repo.entries(base)
    assert (file.path, file.size) == ("a", 0)
    assert repo.sizes([file.oid, "1" * 40, file.oid]) == {file.oid: 3, "1" * 40: None}
    assert repo.sized([file])[0].size == 3
    with pytest.raises(GitFault, match="missing"):
        repo.sized([TreeFile("b", "100644", "1" * 40, 0)])


def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    GitRepo.create(tmp_path / "r.git")
    repo = GitRepo(tmp_path / "r.git", timeout_s=0.2)
    repo.run("config", "alias.hang", f"!(sleep 3; touch {tmp_path}/late) & sleep 3")
    began = time.monotonic()
    with pytest.raises(GitTimeout, match=r"git hang was ended after 0\.2 seconds"):
        repo.run("hang")
    assert time.monotonic() - began < 2
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if f"{tmp_path}/late".encode() in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # a process that has ended meanwhile
        return b""


def test_a_command_of_a_stopped_run_is_ended(tmp_path: Path) -> None:
    GitRepo.create(tmp_path / "r.git").run("config", "alias.hang", "!sleep 3")
    stopped = threading.Event()
    threading.Timer(0.1, stopped.set).start()
    with pytest.raises(Interrupted):
        GitRepo(tmp_path / "r.git", stopped=stopped).run("hang")
