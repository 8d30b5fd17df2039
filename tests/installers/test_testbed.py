"""What becomes of `/testbed`: the repository as it was, and what an installation added to it, ignored by git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installers.layer import read
from installers.testbed import Testbed, merge, pattern, repository_tree, version_tags
from miner.sandbox.image_archive import TarEntry


def file(path: str, content: bytes = b"", **changes) -> TarEntry:
    return TarEntry(path, "file", content=content, **changes)


REPOSITORY = [file(".git/HEAD", b"ref"), file("setup.py", b"1"), file("src/a.py", b"1", mode=0o755)]


def exported(*more: TarEntry, without: str = "") -> list[TarEntry]:
    left = [TarEntry("testbed", "dir"), TarEntry("testbed/src", "dir"), TarEntry("testbed/.git", "dir")]
    left += [TarEntry(f"testbed/{item.path}", "file", item.mode, content=item.content) for item in REPOSITORY]
    return [item for item in left if item.path != without] + list(more)


def left(entries: list[TarEntry]) -> dict[str, TarEntry]:
    return {entry.path: entry for entry in entries}


def merged(repository: list[TarEntry], entries: list[TarEntry]) -> Testbed:
    return merge(repository_tree(repository), left(entries))


def contents(made: Testbed) -> dict[str, bytes]:
    return {entry.path: read(entry) for entry in made.entries if entry.kind == "file"}


def test_untouched_tree_adds_nothing_to_the_repository() -> None:
    assert merged(REPOSITORY, exported()) == Testbed((), (), ())


def test_entries_that_were_left_alone_are_not_even_read() -> None:
    def unreadable():
        raise AssertionError("read")

    tree = repository_tree([TarEntry("big", "file", content=unreadable, size=1 << 40)])
    assert merge(tree, dict(tree)).restored == ()


def test_changed_and_deleted_tracked_files_are_restored_and_named() -> None:
    made = merged(REPOSITORY, [*exported(without="testbed/setup.py"), file("testbed/src/a.py", b"evil")])
    assert made.restored == ("setup.py", "src/a.py")
    assert made.entries == ()


def test_one_commit_gets_the_tags_of_its_version() -> None:
    tree = repository_tree([*REPOSITORY, file(".git/refs/heads/main", b"c0ffee\n")], version_tags("1.2"))
    assert {path: read(entry) for path, entry in tree.items() if "/tags/" in path} == {
        "testbed/.git/refs/tags/1.2": b"c0ffee\n",
        "testbed/.git/refs/tags/v1.2": b"c0ffee\n",
    }


@pytest.mark.parametrize("version", [None, "", "1..2", "../x", "1.2.", "a b", "-x", "1:2", "1.2.lock", "1.2/3"])
def test_text_that_git_takes_for_no_tag_is_none(version: str | None) -> None:
    assert version_tags(version) == ()


def test_added_paths_are_kept_and_ignored_by_their_topmost_name() -> None:
    more = [
        TarEntry("testbed/src/a.egg-info", "dir"),
        file("testbed/src/a.egg-info/PKG-INFO", b"x"),
        file("testbed/src/_version.py", b"v"),
        TarEntry("testbed/src/__pycache__", "dir"),
        file("testbed/src/__pycache__/a.pyc", b"x"),
    ]
    made = merged([*REPOSITORY, file(".git/info/exclude", b"*.log\n")], exported(*more))
    assert made.added == ("src/_version.py", "src/a.egg-info/")
    assert contents(made)["testbed/.git/info/exclude"] == b"*.log\n/src/_version.py\n/src/a.egg-info/\n"
    assert "testbed/src/a.egg-info/PKG-INFO" in contents(made)
    assert not any("__pycache__" in entry.path for entry in made.entries)


def test_nothing_in_git_is_taken_from_the_container() -> None:
    planted = exported(file("testbed/.git/hooks/post-checkout", b"x"), file("testbed/.git/config", b"x"))
    assert merged(REPOSITORY, planted) == Testbed((), (), ())


def test_tracked_name_with_git_in_it_is_no_part_of_git() -> None:
    repository = [*REPOSITORY, file(".gitignore", b"1")]
    assert merged(repository, [*exported(), file("testbed/.gitignore", b"2")]).restored == (".gitignore",)


def test_folder_in_the_place_of_a_tracked_file_is_left_out() -> None:
    more = [TarEntry("testbed/setup.py", "dir"), file("testbed/setup.py/x", b"x")]
    made = merged(REPOSITORY, exported(*more, without="testbed/setup.py"))
    assert "testbed/setup.py/x" not in contents(made)
    assert made.restored == ("setup.py",)


def test_link_in_the_place_of_a_tracked_folder_is_the_folder_again() -> None:
    linked = TarEntry("testbed/src", "symlink", link="/etc")
    made = merged(REPOSITORY, [TarEntry("testbed", "dir"), linked, file("testbed/setup.py", b"1")])
    assert made.entries == ()
    assert set(made.restored) == {"src", "src/a.py"}


def test_added_hard_link_of_a_tracked_file_is_a_file_of_its_own() -> None:
    made = merged(REPOSITORY, exported(TarEntry("testbed/zz", "hardlink", link="testbed/setup.py")))
    assert contents(made)["testbed/zz"] == b"1"


@pytest.mark.parametrize("name", ["a*b", "a?b", "[ab]", "a b ", "a\\b", "#a", "!a", "ä", "a]b"])
def test_pattern_means_one_path_and_nothing_else(name: str, tmp_path: Path) -> None:
    assert ignored(tmp_path, name) == {name}


SAFE = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0\n\r", exclude_categories=["Cs"]), min_size=1, max_size=6
)


@given(SAFE.filter(lambda name: name not in (".", "..")))
def test_pattern_escapes_every_special_character(name: str) -> None:
    unescaped = pattern(name)[1:].replace("\\", "")
    assert pattern(name).startswith("/")
    assert unescaped == name.replace("\\", "")


def ignored(folder: Path, name: str) -> set[str]:
    """Ask git which of some similar names the pattern of one name ignores."""
    subprocess.run(["git", "init", "--quiet", "--template=", str(folder)], check=True)
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/exclude").write_text(pattern(name) + "\n", encoding="utf-8")
    names = {name, "axb", "a", "ab", "b", f"sub/{name}"}
    fed = "\0".join(sorted(names)).encode()
    ran = subprocess.run(["git", "-C", str(folder), "check-ignore", "-z", "--stdin"], input=fed, capture_output=True)
    return {item for item in ran.stdout.decode().split("\0") if item}
