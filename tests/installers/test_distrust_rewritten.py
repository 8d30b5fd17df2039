"""Which files are what a build writes, and which are edits."""

from __future__ import annotations

import pytest

from installers.distrust.rewritten import is_generated, is_rewritten

TRACKED = {"src/a/_speed.pyx", "src/a/_speed.c", "src/a/pure.py", "src/a/pure.c", "src/a/hand.c", "src/a/hand.h"}
MODULES = (
    *("src/a/_version.py", "version.py", "src/a/parsetab.py", "src/a/lextab.py", "pycparser/yacctab.py"),
    *("tests/aliastab.py", "tests/manytab.py", "opt2tab.py"),
    *("src/a/wire_pb2.py", "src/a/wire_pb2.pyi", "src/a/wire_pb2_grpc.py", "numpy/__config__.py"),
)
WRITTEN_BY_HAND = (
    *("src/a/hand.py", "src/a/pure.py", "setup.py", "conftest.py", "tests/test_version.py", "src/a/check_version.py"),
    *("tests/test_parsetab.py", "tests/test_pb2.py", "tests/test_wire_pb2.py", "pb2.py", "tests/version.py/x.py"),
    *("a/__config__/conftest.py", "config.py", "src/a/parsetab.pyi", "parsetab.cfg", "src/a/my_parsetab.py"),
    *("tests/test_manytab.py", "table.py", "src/a/opt2tab.pyi", "tests/aliastab/conftest.py"),
)


@pytest.mark.parametrize("path", MODULES)
def test_modules_that_tools_generate_may_be_new_and_may_change(path):
    assert is_generated(path)
    assert is_rewritten(path, TRACKED)


@pytest.mark.parametrize(
    "path",
    [
        *("demo.egg-info/PKG-INFO", "src/demo.egg-info/SOURCES.txt", "uv.lock", "rust/Cargo.lock"),
        *("src/a/_speed.c", "src/a/_speed.cpp", "src/a/pure.c"),
    ],
)
def test_what_else_tools_generate_may_change(path):
    assert is_rewritten(path, TRACKED)
    assert not is_generated(path)


@pytest.mark.parametrize(
    "path",
    [
        *WRITTEN_BY_HAND,
        *("src/a/hand.c", "src/a/_speed.pyx", "egg-info/PKG-INFO", "demo.egg-info/x/conftest.py", "pytest.lock"),
        *("version.pyx", "pytest.ini"),
    ],
)
def test_source_tests_and_settings_may_not(path):
    assert not is_generated(path)
    assert not is_rewritten(path, TRACKED)
