from __future__ import annotations

import hashlib
import io
import tarfile
import zlib
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from histories import Upstream, submodule
from hypothesis import given, settings
from trees import OLD, TREES, git, two_commits

from miner.core.errors import InfrastructureFault
from miner.crawlers.archive import Entry
from miner.crawlers.git_image import pack_single_commit
from miner.crawlers.git_repo import GitRepo

OLD_TREE = {
    "setup.py": Entry("100644", b"setup()\r\n"),
    ".gitattributes": Entry("100644", b"* text eol=lf\n*.py ident export-ignore\n"),
    ".gitignore": Entry("100644", b"*.log\n"),
    "kept.log": Entry("100644", b"tracked although ignored\n"),
    "pkg/run.sh": Entry("100755", b"#!/bin/sh\n"),
    "pkg/link": Entry("120000", b"run.sh"),
    "pkg/large": Entry("100644", bytes(range(256)) * 600),
    "long/" + "n" * 200 + "/" + "m" * 200: Entry("100644", b"x"),
}
SECRET = b"the solution"
NEW_TREE = {**OLD_TREE, "pkg/core.py": Entry("100644", SECRET)}


@pytest.fixture
def repo(tmp_path: Path) -> tuple[GitRepo, str, str]:
    return two_commits(tmp_path / "r.git", OLD_TREE, NEW_TREE)


def packed(repo: GitRepo, commit: str, owner: tuple[int, int] = (0, 0)) -> bytes:
    out = io.BytesIO()
    pack_single_commit(repo, commit, out, owner=owner)
    return out.getvalue()


def unpack(data: bytes, folder: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as tar:
        tar.extraction_filter = lambda member, _: member  # type: ignore[assignment] # what Pythons without filters do
        tar.extractall(folder)
    return folder


def test_status_is_clean_at_once_and_content_is_exact(repo: tuple[GitRepo, str, str], tmp_path: Path) -> None:
    work = unpack(packed(*repo[:2]), tmp_path / "work")
    assert git(work, "status", "--porcelain") == ""
    assert git(work, "diff-index", "HEAD") == ""
    assert git(work, "rev-parse", "HEAD").strip() == repo[1]
    assert (work / "setup.py").read_bytes() == b"setup()\r\n"
    assert (work / "pkg/run.sh").stat().st_mode & 0o111
    assert (work / "pkg/link").readlink() == Path("run.sh")


def test_status_is_clean_also_where_times_were_not_kept(repo: tuple[GitRepo, str, str], tmp_path: Path) -> None:
    work = unpack(packed(*repo[:2]), tmp_path / "work")
    for path in work.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.touch()
    assert git(work, "status", "--porcelain") == ""


def test_an_edit_of_the_same_length_is_seen(repo: tuple[GitRepo, str, str], tmp_path: Path) -> None:
    work = unpack(packed(*repo[:2]), tmp_path / "work")
    (work / "setup.py").write_bytes(b"Setup()\r\n")
    assert git(work, "status", "--porcelain") == " M setup.py\n"


def test_the_only_commit_is_the_base_and_the_solution_is_nowhere(
    repo: tuple[GitRepo, str, str], tmp_path: Path
) -> None:
    data = packed(*repo[:2])
    work = unpack(data, tmp_path / "work")
    assert git(work, "log", "--all", "--format=%H").split() == [repo[1]]
    assert git(work, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)").split().count("commit") == 1
    assert git(work, "remote") == ""
    assert git(work, "fsck", "--full", "--strict", "--no-dangling") == ""
    assert SECRET not in data
    assert not any((work / ".git").rglob("logs"))


def test_gits_own_index_of_the_pack_has_the_same_bytes(repo: tuple[GitRepo, str, str], tmp_path: Path) -> None:
    work = unpack(packed(*repo[:2]), tmp_path / "work")
    pack = next((work / ".git/objects/pack").glob("*.pack"))
    git(work, "index-pack", "-o", str(tmp_path / "own.idx"), str(pack))
    assert (tmp_path / "own.idx").read_bytes() == pack.with_suffix(".idx").read_bytes()
    git(work, "verify-pack", str(pack))


def test_a_patch_applies_to_index_and_work_tree_and_gives_the_target_tree(
    repo: tuple[GitRepo, str, str], tmp_path: Path
) -> None:
    work = unpack(packed(*repo[:2]), tmp_path / "work")
    git(work, "apply", "--index", "--whitespace=nowarn", "-", stdin=repo[0].diff(*repo[1:]))
    assert git(work, "write-tree").strip() == repo[0].tree_of(repo[2])


def test_what_tests_leave_behind_is_ignored(repo: tuple[GitRepo, str, str], tmp_path: Path) -> None:
    work = unpack(packed(*repo[:2]), tmp_path / "work")
    for path in ("pkg/__pycache__/x.pyc", "pkg.egg-info/PKG-INFO", ".pytest_cache/x", "build/x"):
        (work / path).parent.mkdir(parents=True)
        (work / path).write_text("x")
    assert git(work, "status", "--porcelain") == ""


def test_bytes_are_the_same_in_another_repository_and_do_not_depend_on_how_git_packed_it(
    repo: tuple[GitRepo, str, str], tmp_path: Path
) -> None:
    other, base, _ = two_commits(tmp_path / "other.git", OLD_TREE, {})
    other.run("repack", "-a", "-d", "-q", "--window=50", "--depth=50")
    assert packed(other, base) == packed(repo[0], repo[1])


def test_bytes_are_those_of_every_machine(tmp_path: Path) -> None:
    """A golden digest: it changes only when what goes into images changes."""
    small = {"a.py": Entry("100644", b"print()\n"), "b": Entry("120000", b"a.py")}
    repo, base, _ = two_commits(tmp_path / "r.git", small, {})
    assert base == "b337f28a56f332083e578d36cb4e514f64f4bdfa"
    assert (
        hashlib.sha256(packed(repo, base)).hexdigest()
        == "2f4087c0101f62f729dbae9e3b18ad2d07cbdeb56ecc367d8f97f5fad6052cbc"
    )


def test_owner_and_times_are_as_told(repo: tuple[GitRepo, str, str]) -> None:
    with tarfile.open(fileobj=io.BytesIO(packed(*repo[:2], owner=(1000, 1001)))) as tar:
        members = tar.getmembers()
    assert {(member.uid, member.gid) for member in members} == {(1000, 1001)}
    when = int(OLD.timestamp())
    assert {member.mtime for member in members if not member.name.startswith(".git/")} <= {when, when + 1}


@pytest.fixture
def history(tmp_path: Path) -> tuple[Upstream, str, str]:
    """A repository with a merge as base: two parents, a submodule, and the solution after it."""
    upstream = Upstream(tmp_path / "h.git")
    tree = {**OLD_TREE, "vendored/lib": submodule("a" * 40), ".gitmodules": '[submodule "lib"]\n'}
    first = upstream.commit({"before": b"a file of the past"})
    side = upstream.commit({"side": b"x"}, first)
    base = upstream.commit(tree, first, side, title="The base", at=1_600_000_000)
    target = upstream.commit({**tree, "pkg/core.py": Entry("100644", SECRET)}, base, title="The solution")
    return upstream, base, target


def test_a_commit_of_a_history_stands_alone_as_itself(history: tuple[Upstream, str, str], tmp_path: Path) -> None:
    upstream, base, _ = history
    data = packed(upstream.repo, base)
    work = unpack(data, tmp_path / "work")
    assert git(work, "status", "--porcelain", "--ignored") == ""
    assert git(work, "rev-parse", "HEAD").strip() == base
    assert git(work, "log", "--all", "--format=%H %s") == f"{base} The base\n"
    assert git(work, "rev-parse", "--is-shallow-repository") == "true\n"
    assert git(work, "fsck", "--full", "--strict", "--no-dangling") == ""
    assert git(work, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)").split().count("commit") == 1
    for never in (SECRET, b"The solution", b"a file of the past"):
        assert never not in data


def test_a_submodule_is_an_empty_folder_that_git_keeps(history: tuple[Upstream, str, str], tmp_path: Path) -> None:
    upstream, base, target = history
    work = unpack(packed(upstream.repo, base), tmp_path / "work")
    assert list((work / "vendored/lib").iterdir()) == []
    assert git(work, "ls-files", "--stage", "vendored").startswith(f"160000 {'a' * 40} 0\tvendored/lib")
    git(work, "apply", "--index", "--whitespace=nowarn", "-", stdin=upstream.repo.diff(base, target))
    assert git(work, "write-tree").strip() == upstream.repo.tree_of(target)
    bumped = upstream.commit({**OLD_TREE, "vendored/lib": submodule("b" * 40)}, base)
    git(work, "reset", "-q", "--hard")
    git(work, "apply", "--index", "-", stdin=upstream.repo.diff(base, bumped))
    assert git(work, "write-tree").strip() == upstream.repo.tree_of(bumped)


def test_bytes_of_a_history_are_those_of_every_machine(history: tuple[Upstream, str, str], tmp_path: Path) -> None:
    upstream, base, _ = history
    whole = packed(upstream.repo, base)
    upstream.repo.run("repack", "-a", "-d", "-q", "--window=50", "--depth=50")
    assert packed(upstream.repo, base) == whole
    assert b".git/shallow" in whole
    assert b".git/shallow" not in packed(*two_commits(tmp_path / "alone.git", OLD_TREE, {})[:2])


def test_a_content_that_is_absent_leaves_its_file_out_and_the_rest_is_as_it_was(
    history: tuple[Upstream, str, str], tmp_path: Path
) -> None:
    upstream, base, target = history
    large = next(file.oid for file in upstream.repo.entries(base) if file.path == "pkg/large")
    work = unpack(packed(GitRepo(upstream.path, absent=frozenset({large})), base), tmp_path / "work")
    assert not (work / "pkg/large").exists()
    assert git(work, "status", "--porcelain", "--ignored") == ""
    git(work, "apply", "--index", "--whitespace=nowarn", "-", stdin=upstream.repo.diff(base, target))
    assert git(work, "write-tree", "--missing-ok").strip() == upstream.repo.tree_of(target)
    assert (work / "pkg/core.py").read_bytes() == SECRET


@pytest.mark.parametrize("at", [0, 1, 2**31 - 1, 2**31, 2**33, 99_999_999_999_999])
def test_odd_dates_make_no_odd_image(tmp_path: Path, at: int) -> None:
    upstream = Upstream(tmp_path / "h.git")
    base = upstream.commit(OLD_TREE, upstream.commit({}), at=at)
    work = unpack(packed(upstream.repo, base), tmp_path / "work")
    assert git(work, "status", "--porcelain") == ""
    assert git(work, "log", "--format=%ct").strip() == str(at)


@pytest.mark.parametrize("name", [".git", ".GIT", "..", ".", "git~1", ".git ", ".g\u200cit"])
def test_nothing_is_written_outside_of_the_work_tree_or_into_the_repository(tmp_path: Path, name: str) -> None:
    upstream = Upstream(tmp_path / "h.git")
    inner = upstream.raw_tree(("100644", "config", upstream.blob(b"[core]")))
    base = upstream.commit_tree(upstream.raw_tree(("40000", name, inner)))
    with pytest.raises(InfrastructureFault, match="cannot be unpacked"):
        packed(upstream.repo, base)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    upstream = Upstream(tmp_path / "h.git")
    inner = upstream.raw_tree(("100644", "passwd", upstream.blob(b"x")))
    tree = upstream.raw_tree(("120000", "etc", upstream.blob(b"/etc")), ("40000", "etc", inner))
    with pytest.raises(InfrastructureFault, match="a file and a folder"):
        packed(upstream.repo, upstream.commit_tree(tree))


def test_a_damaged_byte_is_a_fault_or_changes_nothing(repo: tuple[GitRepo, str, str]) -> None:
    whole = packed(*repo[:2])
    outcomes = Counter[str]()
    for pack in (repo[0].path / "objects/pack").glob("*.pack"):  # one for each commit
        content = pack.read_bytes()
        pack.chmod(0o644)
        for place in range(0, len(content), 43):
            pack.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
            try:
                assert packed(*repo[:2]) == whole
                outcomes["same"] += 1
            except InfrastructureFault:
                outcomes["fault"] += 1
        pack.write_bytes(content)
    assert outcomes["fault"] > 20
    assert outcomes["same"] > 5


def test_an_object_whose_bytes_are_not_those_of_its_id_never_gets_into_an_image(repo: tuple[GitRepo, str, str]) -> None:
    pack = next(path for path in (repo[0].path / "objects/pack").glob("*.pack") if holds(repo[0], path, repo[1]))
    content = pack.read_bytes()
    pack.with_suffix(".idx").unlink()
    pack.unlink()
    repo[0].run("unpack-objects", "-q", stdin=content)
    script = next(file for file in repo[0].files(repo[1]) if file.path == "setup.py")
    place = repo[0].path / "objects" / script.oid[:2] / script.oid[2:]
    place.chmod(0o644)
    place.write_bytes(zlib.compress(b"blob 9\0Setup()\r\n"))
    with pytest.raises(InfrastructureFault, match=f"{script.oid} in r.git is damaged"):
        pack_single_commit(*repo[:2], io.BytesIO())


def holds(repo: GitRepo, pack: Path, oid: str) -> bool:
    return oid in repo.run("verify-pack", "-v", str(pack)).decode()


@settings(deadline=None, max_examples=20)
@given(tree=TREES)
def test_any_tree_survives_the_way_into_an_image(tree: dict[str, Entry]) -> None:
    with TemporaryDirectory() as folder:
        repo, base, _ = two_commits(Path(folder) / "r.git", tree, {})
        work = unpack(packed(repo, base), Path(folder) / "work")
        assert git(work, "status", "--porcelain", "--ignored") == ""
        git(work, "add", "--all")
        assert git(work, "write-tree").strip() == repo.tree_of(base)
        git(work, "fsck", "--full")
