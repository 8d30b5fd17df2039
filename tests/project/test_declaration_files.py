"""Which files are kept, and which of them are locks, requirements files and conda files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.project.declaration_files import is_conda, is_declaration, is_lock, is_requirements


@pytest.mark.parametrize(
    "path",
    [
        "pyproject.toml",
        "packages/core/pyproject.toml",
        "Pipfile",
        "uv.lock",
        "pylock.toml",
        "pylock.dev.toml",
        "environment.yml",
        "ci/environment-3.8.yaml",
        "conda.recipe/meta.yaml",
        "requirements/base.in",
        "requirements/dev/extra.txt",
        "constraints.txt",
        ".gitmodules",
        ".gitattributes",
        ".python-version",
        "runtime.txt",
        "build_ext.py",
        "x.egg-info/requires.txt",
        ".github/workflows/ci.yml",
        "noxfile.py",
        "Makefile",
    ],
)
def test_files_that_declare_something(path):
    assert is_declaration(path)


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "demo/data.txt",
        "sub/PKG-INFO",
        "sub/.gitmodules",
        "a/b/c/d/e/setup.py",
        "node_modules/x/setup.py",
        "src/demo/_vendor/pyproject.toml",
        "x.egg-info/SOURCES.txt",
        "demo/uv.lock.py",
    ],
)
def test_files_that_declare_nothing(path):
    assert not is_declaration(path)


def test_kinds():
    assert is_lock("sub/poetry.lock")
    assert not is_lock("poetry.toml")
    assert is_requirements("tests/reqs.txt")
    assert not is_requirements("tests/data.txt")
    assert is_conda("ci/deps-39.yml")
    assert not is_conda(".github/workflows/environment.yml")


@given(st.text(max_size=60))
def test_any_path_is_judged(path):
    assert is_declaration(path) in (True, False)
