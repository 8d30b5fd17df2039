"""Evidence: the files that matter come first, are cut to what matters, and never cost more than they may."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structured_bench import FILES, RECIPE

from installers.brief.cutting import cut
from installers.brief.evidence import outline, select, tokens_of
from installers.interface import Tree

PYPROJECT = b"""[build-system]
requires = ["setuptools"]

[project]
name = "demo"
description = "what it is"
authors = [{name = "A"}]
dependencies = ["attrs"]

[tool.ruff.lint]
select = ["E"]

[tool.pytest.ini_options]
addopts = "-q"

[tool.mypy]
strict = true
"""
MORE = {
    "setup.py": b"from setuptools import setup\nsetup(install_requires=['attrs'])\n",
    "requirements-dev.txt": b"# what developers need\npytest\n  --hash=sha256:abc\n    # via x\n",
    "environment.yml": b"dependencies:\n  - python=3.8\n  - geos\n",
    "Dockerfile": b"FROM python:3.8\nRUN apt-get install -y libgeos-dev && pytest\n",
    "CONTRIBUTING.md": b"# Hello\n"
    + b"We are nice.\n" * 40
    + b"Install with `pip install -e .[test]`.\n"
    + b"Bye.\n" * 40,
    "uv.lock": b"version = 1\n" * 5000,
    "docs/requirements.txt": b"sphinx\n",
    ".github/workflows/release.yml": b"jobs: {}\n",
    ".github/dependabot.yml": b"version: 2\n",
    "MANIFEST.in": b"include x\n",
    "sub/other/setup.py": b"setup()\n",
    "PKG-INFO": b"Name: demo\nVersion: 1\n\nlong text\n",
}


def tree(files=None, paths=()):
    files = {**FILES, **MORE} if files is None else files
    return Tree(files, (*files, *paths))


def shown(files=None, budget=8000, recipe=RECIPE):
    return {one.path: one for one in select(tree(files), recipe, budget)}


def test_the_order_is_declarations_tests_ci_then_the_rest():
    assert list(shown()) == [
        "setup.py",
        "requirements-dev.txt",
        "pyproject.toml",
        "tox.ini",
        ".github/workflows/test.yml",
        "Dockerfile",
        "environment.yml",
        "CONTRIBUTING.md",
    ]


def test_locks_releases_documentation_and_the_like_cost_nothing():
    for path in (
        "uv.lock",
        "docs/requirements.txt",
        ".github/workflows/release.yml",
        ".github/dependabot.yml",
        "MANIFEST.in",
    ):
        assert path not in shown()
    assert "PKG-INFO" not in shown()


def test_the_files_of_the_projects_own_folder_come_first():
    recipe = RECIPE.model_copy(update={"project_dir": "lib/core"})
    files = {"setup.py": b"setup()", "lib/core/setup.py": b"setup(name='core')", "tox.ini": b"[tox]\nx = 1"}
    assert list(shown(files, recipe=recipe)) == ["lib/core/setup.py", "tox.ini", "setup.py"]


def test_tables_of_other_tools_and_what_only_describes_are_left_out():
    text = shown({"pyproject.toml": PYPROJECT})["pyproject.toml"]
    assert text.cut
    assert "ruff" not in text.text
    assert "strict" not in text.text
    assert "what it is" not in text.text
    for kept in ("setuptools", "attrs", "addopts"):
        assert kept in text.text


def test_of_words_for_people_only_what_is_about_installing_stays():
    text = shown()["CONTRIBUTING.md"].text
    assert "pip install -e .[test]" in text
    assert text.count("We are nice") <= 2


def test_hashes_and_notes_of_compiled_requirements_are_left_out():
    assert shown()["requirements-dev.txt"].text == "pytest"


@given(
    st.dictionaries(
        st.sampled_from([*FILES, *MORE, "setup.cfg", "tests/requirements.txt", "noxfile.py"]), st.binary(max_size=3000)
    ),
    st.integers(0, 3000),
)
@settings(max_examples=150, deadline=None)
def test_the_budget_is_kept(files, budget):
    found = select(tree(files), RECIPE, budget)
    assert sum(one.tokens for one in found) <= budget
    assert all(tokens_of(one.text) <= one.tokens for one in found)


@given(
    st.sampled_from(["a.toml", "setup.cfg", "x.md", "r.txt", "w.yml", "setup.py"]),
    st.text(max_size=2000),
    st.integers(0, 900),
)
@settings(max_examples=200, deadline=None)
def test_cutting_keeps_its_budget(path, text, budget):
    assert len(cut(path, text, budget)[0].encode()) <= budget


def test_no_file_takes_all_the_room():
    files = {"setup.py": b"x = 'install'\n" * 5000, "tox.ini": b"[testenv]\ndeps = pytest\n"}
    found = shown(files, 2000)
    assert found["setup.py"].tokens <= 800
    assert not found["tox.ini"].cut


@pytest.mark.parametrize("path", ['a"b/setup.py', "a\nb/setup.py", "<data>/setup.py"])
def test_paths_that_would_not_stay_in_their_label_are_left_out(path):
    assert shown({path: b"setup()", "setup.py": b"setup()"}).keys() == {"setup.py"}
    assert path not in outline(tree({path: b"x"}))


def test_bytes_that_are_no_text_are_left_out_or_made_legible():
    found = shown({"setup.py": b"\0\1", "setup.cfg": b"[options]\nx = \xff\x1b[31m\n"})
    assert "setup.py" not in found
    assert "\x1b" not in found["setup.cfg"].text


def test_the_outline_of_a_large_tree_is_short():
    paths = [f"pkg/p{a}/q{b}/m{c}.py" for a in range(30) for b in range(10) for c in range(10)]
    text = outline(tree({f"f{n}.txt": b"" for n in range(200)}, (*paths, "tests/test_x.py")), ("tests/test_x.py",))
    assert len(text.splitlines()) <= 60
    assert "pkg/ (3000 files)" in text
    assert "tests/test_x.py (a test that has to run)" in text
    assert "more entries]" in text


@pytest.mark.parametrize(
    "path", ["setup.cfg", "pyproject.toml", "README.md", "requirements.txt", "test.yml", "PKG-INFO"]
)
@pytest.mark.parametrize(
    "text", ["[" + " " * 300_000, "[" * 300_000, " " * 300_000 + "#", "tool." * 60_000, "[a]\n" * 60_000]
)
def test_no_file_takes_long(path, text):
    started = time.process_time()
    cut(path, text, 1000)
    assert time.process_time() - started < 2
