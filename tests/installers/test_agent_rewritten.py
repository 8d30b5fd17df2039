"""Which changes of tracked files are what a build does, and which are edits."""

from __future__ import annotations

import pytest

from installers.agent.rewritten import is_rewritten
from installers.distrust.tree import TreeEdit

TRACKED = {"src/a/_speed.pyx", "src/a/_speed.c", "src/a/pure.py", "src/a/pure.c", "src/a/hand.c", "src/a/hand.h"}


@pytest.mark.parametrize(
    "path",
    [
        *("demo.egg-info/PKG-INFO", "src/demo.egg-info/SOURCES.txt", "src/a/_version.py", "uv.lock", "rust/Cargo.lock"),
        *("src/a/_speed.c", "src/a/_speed.cpp", "src/a/pure.c"),
    ],
)
def test_what_tools_generate_may_change_and_nothing_else(path):
    assert is_rewritten(TreeEdit(path=path, kind="changed"), TRACKED)
    for kind in ("deleted", "added", "type-changed", "mode-changed", "unsafe"):
        assert not is_rewritten(TreeEdit(path=path, kind=kind), TRACKED)


@pytest.mark.parametrize(
    "path",
    [
        *("src/a/hand.c", "src/a/pure.py", "src/a/_speed.pyx", "setup.py", "tests/test_version.py", "conftest.py"),
        *("egg-info/PKG-INFO", "demo.egg-info/x/conftest.py", "pytest.lock", "version.pyx", "tests/version.py/x.py"),
    ],
)
def test_source_and_tests_may_not(path):
    assert not is_rewritten(TreeEdit(path=path, kind="changed"), TRACKED)
