"""Submodules, files of git LFS, and files that name a Python."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.project.git_files import read_lfs, read_submodules
from miner.project.python_files import read_python_files


def test_submodules():
    text = (
        b'[submodule "data"]\n\tpath = tests/data\n\turl = https://example.org/data\n[submodule "x"]\n\tpath=libs/x/\n'
    )
    assert read_submodules({".gitmodules": text}) == ("tests/data", "libs/x")
    assert read_submodules({}) == ()


def test_lfs_patterns():
    text = b'*.bin filter=lfs diff=lfs merge=lfs -text\n*.py text\n# *.no filter=lfs\n"a b/*" filter=lfs\n'
    assert read_lfs({".gitattributes": text}) == ("*.bin", "a b/*")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (".python-version", "3.8.10\n3.7\n", ["3.8", "3.7"]),
        (".python-version", "cpython-3.11\n", ["3.11"]),
        (".python-version", "3.13-dev\npypy3.9\nmyenv\n", ["3.13"]),
        ("runtime.txt", "python-3.6.15\n", ["3.6"]),
    ],
)
def test_versions_of_python(name, text, expected):
    assert [hint.version for hint in read_python_files({name: text.encode()}, "")] == expected
    assert [hint.version for hint in read_python_files({name: text.encode()}, "sub")] == expected


def test_the_file_of_the_member_wins():
    files = {".python-version": b"3.8", "sub/.python-version": b"3.9"}
    assert [hint.version for hint in read_python_files(files, "sub")] == ["3.9"]


@given(st.dictionaries(st.sampled_from([".gitmodules", ".gitattributes", ".python-version"]), st.binary(max_size=80)))
def test_any_bytes_are_read_without_an_error(files):
    read_submodules(files)
    read_lfs(files)
    list(read_python_files(files, ""))
