"""Which project of a repository the tests belong to."""

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.project.workspace import members, project_folder, project_folders

PROJECT = b"[project]\nname = 'x'\n[build-system]\nrequires = []\n"
SETTINGS = b"[tool.ruff]\nline-length = 100\n"


def folder(tests="", files=None, paths=""):
    tree = files or {}
    return project_folder([*paths.split(), *tree], tests.split(), tree if files is not None else None)


def test_by_names_alone():
    assert folder(paths="a/setup.py b/setup.py") == ""
    assert folder(paths="a/setup.py pyproject.toml") == ""
    assert folder(paths="a/setup.py") == "a"
    assert folder(paths="a/setup.py b/setup.py", tests="b/tests/test_x.py") == "b"


def test_a_root_that_is_a_project_wins_unless_all_tests_lie_in_one_member():
    files = {"pyproject.toml": PROJECT, "plugins/y/pyproject.toml": PROJECT}
    assert folder("tests/test_a.py", files) == ""
    assert folder("tests/test_a.py plugins/y/tests/test_b.py", files) == ""
    assert folder("plugins/y/tests/test_b.py", files) == "plugins/y"


def test_a_root_of_settings_gives_way_to_the_member_with_most_tests():
    files = {"pyproject.toml": SETTINGS, "libs/a/pyproject.toml": PROJECT, "libs/b/setup.py": b""}
    assert folder("libs/b/tests/test_1.py libs/b/test_2.py libs/a/test_3.py", files) == "libs/b"
    assert folder("libs/b/test_1.py libs/a/test_2.py", files) == "libs/a"
    assert folder("tests/b/test_1.py", files) == "libs/b"
    assert folder("tests/test_1.py", files) == ""


def test_the_deepest_member_holds_a_test():
    files = {"a/setup.py": b"", "a/b/setup.py": b""}
    assert folder("a/b/tests/test_1.py", files) == "a/b"


def test_the_only_member():
    assert folder("tests/test_1.py", {"pyproject.toml": SETTINGS, "python/pyproject.toml": PROJECT}) == "python"


@pytest.mark.parametrize("name", ["tests/data", "examples/one", "docs", "src/{{ name }}", "a/b/c/d/e"])
def test_folders_that_hold_no_project_of_interest(name):
    assert project_folders([f"{name}/setup.py"]) == ()


@pytest.mark.parametrize(
    "text",
    [
        "[tool.uv]\npackage = false\n[project]\nname = 'x'\n[build-system]\nrequires = []\n",
        "[tool.poetry]\npackage-mode = false\n",
        "[tool.pdm]\ndistribution = false\n[project]\nname = 'x'\n",
        "[project]\nname = 'x'\n[tool.uv]\n",
        "[tool.black]\n",
    ],
)
def test_what_is_no_package(text):
    assert project_folders(["pyproject.toml"], {"pyproject.toml": text.encode()}) == ()


@pytest.mark.parametrize(
    "text",
    [
        "[project]\nname = 'x'\n",
        "[tool.poetry]\nname = 'x'\n",
        "[tool.uv]\npackage = true\n[project]\nname = 'x'\n",
        "[",
    ],
)
def test_what_is_a_package(text):
    assert project_folders(["pyproject.toml"], {"pyproject.toml": text.encode()}) == ("",)


def test_members_by_their_names():
    files = {
        "a/pyproject.toml": b"[project]\nname = 'A.One'\n",
        "b/setup.py": b"setup(name='b_two')",
        "c/pyproject.toml": b"[tool.poetry]\nname = 'c'\n",
        "d/setup.py": b"setup(name=NAME)",
    }
    assert members(list(files), files) == {"a-one": "a", "b-two": "b", "c": "c"}


@given(st.lists(st.text(alphabet="ab/{}.", max_size=12).map(lambda path: path + "/setup.py"), max_size=8), st.data())
def test_the_folder_is_one_of_the_tree(paths, data):
    tests = data.draw(st.lists(st.sampled_from(paths), max_size=3)) if paths else []
    found = project_folder(paths, tests)
    assert found == "" or found in [posixpath.dirname(path) for path in paths]
