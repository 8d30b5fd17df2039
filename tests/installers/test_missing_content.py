"""Submodules and files of git LFS: a reason where what is needed lies in them, and nowhere else."""

from __future__ import annotations

import pytest
from bench import recipe_of

from installers.missing_content import is_pointer, missing_content, needed_paths, pointers_of

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 12345\n"


@pytest.mark.parametrize("needed", ["lib", "lib/demo", "lib/tests/test_a.py"])
def test_what_lies_in_a_submodule_is_missing(needed: str) -> None:
    found = missing_content([needed], links=["docs", "lib"])
    assert found is not None
    assert found.reason == "submodule-missing"
    assert f"{needed} lies in the submodule lib" in found.detail


@pytest.mark.parametrize("needed", ["library/demo", "src/lib", "tests/test_a.py"])
def test_submodule_beside_what_is_needed_is_no_matter(needed: str) -> None:
    assert missing_content([needed], links=["lib", "docs"]) is None


@pytest.mark.parametrize("pointer", ["src/demo.py", "src/demo/__init__.py", "tests/test_a.py"])
def test_module_or_test_that_is_a_pointer_is_missing(pointer: str) -> None:
    found = missing_content(["src/demo", "tests/test_a.py"], pointers=["assets/x.bin", pointer])
    assert found is not None
    assert (found.reason, found.detail) == ("lfs-content-missing", f"{pointer} is kept by git LFS elsewhere")


def test_data_that_is_a_pointer_is_no_matter_by_itself() -> None:
    assert missing_content(["src/demo"], pointers=["assets/x.bin", "src/demo_data.py"]) is None


def test_what_an_environment_needs_of_a_tree() -> None:
    recipe = recipe_of(project_dir="py", source_root="src", top_level=("demo", "google.cloud.x"))
    assert needed_paths(recipe, ["py/tests/test_a.py"]) == (
        "py",
        "py/src/demo",
        "py/src/google/cloud/x",
        "py/tests/test_a.py",
    )
    assert needed_paths(recipe_of(source_root=""), []) == ("demo",)


def test_pointers_are_known_by_their_first_line_and_their_size() -> None:
    assert is_pointer(POINTER)
    assert not is_pointer(POINTER + bytes(2000))
    assert not is_pointer(b"# version https://git-lfs.github.com/spec/v1\n")
    assert pointers_of({"a": POINTER, "b": b"text"}) == ("a",)
