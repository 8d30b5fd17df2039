from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from histories import Upstream, submodule
from hypothesis import given, settings
from trees import TREES, git, two_commits

from miner.core.errors import InfrastructureFault
from miner.core.reasons import Reason
from miner.crawlers.archive import Entry
from miner.crawlers.split import Split, reject_split, split_change

ORDERS = [("gold_patch", "test_patch"), ("test_patch", "gold_patch")]


def text(data: str | bytes) -> Entry:
    return Entry("100644", data.encode() if isinstance(data, str) else data)


def split(folder: Path, old: dict[str, Entry], new: dict[str, Entry]) -> Split:
    repo, base, target = two_commits(folder / "r.git", old, new)
    return split_change(
        repo.diff(base, target), repo.changes(base, target), base_paths=list(old), target_paths=list(new)
    )


def assert_patches_lead_to_target(folder: Path, old: dict[str, Entry], new: dict[str, Entry]) -> Split:
    """Both patches, in either order, on a work tree as on the index alone, give the target tree to the bit."""
    repo, base, target = two_commits(folder / "r.git", old, new)
    found = split_change(
        repo.diff(base, target), repo.changes(base, target), base_paths=list(old), target_paths=list(new)
    )
    for number, order in enumerate(ORDERS):
        work = folder / f"work{number}"
        git(folder, "clone", "-q", "--branch", "base", str(repo.path), str(work))
        for patch in (getattr(found, name) for name in order):
            if patch:
                git(work, "apply", "--index", "--whitespace=nowarn", "-", stdin=patch)
        assert git(work, "write-tree").strip() == repo.tree_of(target), order
    return found


@settings(deadline=None, max_examples=30)
@given(old=TREES, new=TREES)
def test_base_and_both_patches_make_target_in_either_order(old: dict[str, Entry], new: dict[str, Entry]) -> None:
    with TemporaryDirectory() as folder:
        found = assert_patches_lead_to_target(Path(folder), old, new)
    changed = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    parts = [found.gold_files, found.generated_files, found.test_files, found.support_files]
    assert sorted(path for part in parts for path in part) == sorted(changed)
    assert found.reasons.keys() == changed
    assert set(found.test_files) <= new.keys()


TRICKY = {
    "crlf": (b"a\r\nb\r\n", b"a\r\nc\r\n"),
    "no-newline": (b"a\nb", b"a\nc"),
    "newline-added": (b"a\nb", b"a\nb\n"),
    "binary": (b"\0\1\2", b"\0\1\3"),
    "line-separator": ("a\u2028b\n".encode(), "a\u2028c\n".encode()),
    "latin-1": (b"caf\xe9\n", b"th\xe9\n"),
    "form-feed": (b"a\x0cb\n", b"a\x0cc\n"),
    "like-a-header": (b"x\n", b"x\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n"),
    "lone-carriage-returns": (b"a\rb\rc", b"a\rX\rc"),
    "whitespace": (b"a \t\n\n", b"b \t\n\n\n"),
}


@pytest.mark.parametrize("kind", TRICKY)
def test_content_survives_byte_for_byte(tmp_path: Path, kind: str) -> None:
    before, after = TRICKY[kind]
    old = {"pkg/f.txt": text(before), "tests/test_f.py": text("1"), "tests/f.txt": text(before)}
    new = {"pkg/f.txt": text(after), "tests/test_f.py": text("2"), "tests/f.txt": text(after)}
    found = assert_patches_lead_to_target(tmp_path, old, new)
    for patch in (found.gold_patch, found.test_patch):
        assert patch.endswith(b"\n")
        assert patch.decode("utf-8", "surrogateescape").encode("utf-8", "surrogateescape") == patch


@pytest.mark.parametrize(
    "name",
    [
        "sp ace",
        'quo"te',
        "tab\tx",
        "new\nline",
        "back\\slash",
        "\u00e9",
        "\udce9",
        "-x",
        ":(top)x",
        "a b/b a",
        "\u2028",
    ],
)
def test_names_survive_byte_for_byte(tmp_path: Path, name: str) -> None:
    old = {name: text("1"), "tests/test_a.py": text("1"), f"tests/{name}": text("1")}
    new = {name: text("2"), "tests/test_a.py": text("2"), f"tests/{name}": text("2")}
    found = assert_patches_lead_to_target(tmp_path, old, new)
    assert found.gold_files == (name,)
    assert set(found.support_files) == {f"tests/{name}"}


def test_files_go_where_they_belong_and_say_why(tmp_path: Path) -> None:
    old = {
        "pkg.py": text("1"),
        "tests/test_a.py": text("1"),
        "PKG-INFO": text("1"),
        "x.egg-info/SOURCES.txt": text("1"),
    }
    new = {**{path: text("2") for path in old}, "tests/data.json": text("{}")}
    found = split(tmp_path, old, new)
    assert found.gold_files == ("pkg.py",)
    assert found.generated_files == ("PKG-INFO", "x.egg-info/SOURCES.txt")
    assert found.test_files == ("tests/test_a.py",)
    assert found.support_files == ("tests/data.json",)
    assert found.reasons["tests/data.json"] == "in the test folder tests/"
    assert b"tests/" not in found.gold_patch
    assert found.test_patch.count(b"diff --git") == 2


def test_a_test_module_that_moves_is_in_the_test_patch_on_both_sides(tmp_path: Path) -> None:
    found = assert_patches_lead_to_target(
        tmp_path,
        {"parse.py": text("1"), "test_parse.py": text("long\n" * 20)},
        {"parse.py": text("2"), "tests/test_parse.py": text("long\n" * 20)},
    )
    assert found.test_files == ("tests/test_parse.py",)
    assert found.support_files == ("test_parse.py",)
    assert found.gold_files == ("parse.py",)


def test_a_file_that_makes_way_for_a_folder_goes_with_it(tmp_path: Path) -> None:
    found = assert_patches_lead_to_target(
        tmp_path,
        {"tests": text("a file"), "core.py": text("1")},
        {"tests/test_a.py": text("1"), "core.py": text("2")},
    )
    assert found.gold_files == ("core.py", "tests", "tests/test_a.py")


def test_a_file_that_becomes_a_link_is_one_change(tmp_path: Path) -> None:
    found = assert_patches_lead_to_target(
        tmp_path,
        {"a.py": text("1"), "tests/test_a.py": text("1")},
        {"a.py": Entry("120000", b"tests/test_a.py"), "tests/test_a.py": text("2")},
    )
    assert found.gold_patch.count(b"diff --git") == 2


def test_a_submodule_goes_by_its_path_and_its_bump_is_no_test(tmp_path: Path) -> None:
    upstream = Upstream(tmp_path / "r.git")
    old = {"core.py": "1", "lib": submodule("a" * 40), "tests/test_a.py": "1", "tests/lib": submodule("a" * 40)}
    new = {"core.py": "2", "lib": submodule("b" * 40), "tests/test_a.py": "2", "tests/lib": submodule("b" * 40)}
    base = upstream.commit(old)
    target = upstream.commit(new, base)
    repo = upstream.repo
    found = split_change(
        repo.diff(base, target), repo.changes(base, target), base_paths=list(old), target_paths=list(new)
    )
    assert found.gold_files == ("core.py", "lib")
    assert (found.test_files, found.support_files) == (("tests/test_a.py",), ("tests/lib",))
    assert b"+Subproject commit " + b"b" * 40 in found.gold_patch


def test_what_tests_use_goes_with_them_and_sources_with_doctests_do_not(tmp_path: Path) -> None:
    old = {
        path: text("1")
        for path in (
            "src/pkg/core.py",
            "src/pkg/test_core.py",
            "src/pkg/test_core/expected.txt",
            "src/pkg/__snapshots__/test_core.ambr",
            "src/pkg/data.json",
            "tests/fixtures/a.yaml",
            "conftest.py",
            "pytest.ini",
            "docs/guide.rst",
        )
    }
    doctest = text(">>> answer()\n42\n")
    new = {path: doctest if path.endswith((".py", ".rst")) else text("2") for path in old}
    found = split(tmp_path, old, new)
    assert found.gold_files == ("docs/guide.rst", "src/pkg/core.py", "src/pkg/data.json")
    assert found.test_files == ("src/pkg/test_core.py",)
    assert set(found.support_files) == {
        "conftest.py",
        "pytest.ini",
        "src/pkg/__snapshots__/test_core.ambr",
        "src/pkg/test_core/expected.txt",
        "tests/fixtures/a.yaml",
    }


REJECTED = {
    "nothing-tests-anything": (
        {"core.py": "1"},
        {"core.py": "2"},
        Reason.NO_TEST_FILES,
        "looked for test_*.py, *_test.py",
    ),
    "tests-are-no-longer-shipped": (
        {"core.py": "1", "testing/test_a.py": "1"},
        {"core.py": "2"},
        Reason.NO_TEST_FILES,
        "only the tree before the change has testing/test_a.py",
    ),
    "no-test-changed": (
        {"core.py": "1", "tests/test_a.py": "1"},
        {"core.py": "2", "tests/test_a.py": "1"},
        Reason.NO_TEST_CHANGE,
        "1 test files (tests/test_a.py), none of them changed",
    ),
    "only-what-tests-use-changed": (
        {"core.py": "1", "tests/test_a.py": "1", "tests/x.txt": "1"},
        {"core.py": "2", "tests/test_a.py": "1", "tests/x.txt": "2"},
        Reason.NO_TEST_CHANGE,
        "changed: tests/x.txt",
    ),
    "a-test-was-only-deleted": (
        {"core.py": "1", "tests/test_a.py": "1", "tests/test_b.py": "1"},
        {"core.py": "2", "tests/test_a.py": "1"},
        Reason.NO_TEST_CHANGE,
        "changed: tests/test_b.py",
    ),
    "only-tests-changed": (
        {"core.py": "1", "tests/test_a.py": "1", "PKG-INFO": "1"},
        {"core.py": "1", "tests/test_a.py": "2", "PKG-INFO": "2"},
        Reason.NO_GOLD_CHANGE,
        "changed: tests/test_a.py, PKG-INFO",
    ),
    "nothing-changed": ({"test_a.py": "1"}, {"test_a.py": "1"}, Reason.NO_TEST_CHANGE, "none of them changed"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_a_change_without_a_task_in_it_says_what_is_missing(tmp_path: Path, case: str) -> None:
    old, new, reason, words = REJECTED[case]
    after = {path: text(data) for path, data in new.items()}
    found = reject_split(split(tmp_path, {path: text(data) for path, data in old.items()}, after), list(after))
    assert found is not None
    assert found.reason is reason
    assert words in found.detail


def test_a_change_of_product_and_tests_is_not_rejected(tmp_path: Path) -> None:
    new = {"core.py": text("2"), "tests/test_a.py": text("2")}
    assert reject_split(split(tmp_path, {"core.py": text("1"), "tests/test_a.py": text("1")}, new), list(new)) is None


def test_a_diff_of_other_changes_is_a_fault(tmp_path: Path) -> None:
    repo, base, target = two_commits(
        tmp_path / "r.git", {"a": text("1"), "b": text("1")}, {"a": text("2"), "b": text("2")}
    )
    diff, changes = repo.diff(base, target), repo.changes(base, target)
    for wrong in (changes[:1], (changes[1], changes[0]), (*changes, changes[0])):
        with pytest.raises(InfrastructureFault):
            split_change(diff, wrong, base_paths=[], target_paths=[])
