"""What stands in the files of the repositories of `month_projects`, before and after their pull requests."""

LICENSE = "MIT License\n\nCopyright (c) 2020 The authors of this library\n\nPermission is hereby granted ...\n"
WORKFLOW = """on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: pip install -e .[test]
      - run: pytest
"""

TALLY = """[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "tally"
version = "2.3.0"
description = "Counts votes"
requires-python = ">=3.8"

[project.optional-dependencies]
test = ["pytest"]

[tool.setuptools.packages.find]
where = ["src"]

[tool.setuptools.package-data]
tally = ["*.bin"]

[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = "-ra"
"""
COUNTER = '''"""Counts votes."""


def count(votes):
    """Return how often each vote was given."""
    counts = {}
    for vote in votes:
        counts[vote] = counts.get(vote, 0) + 1
    return counts


def winner(votes):
    """Return the vote that was given most often."""
    counts = count(votes)
'''
FIRST_WINS = "    return max(counts, key=counts.get)\n"
NOBODY_WINS = """    best = max(counts.values(), default=0)
    winners = [vote for vote, number in counts.items() if number == best]
    return winners[0] if len(winners) == 1 else None
"""
READING = '''"""Reads votes."""\r\n\r\nfrom pathlib import Path\r\n\r\n\r
MARK = Path(__file__).with_name("mark.bin").read_bytes()\r\n\r\n\r
def read(path):\r\n    """Return the votes of a file, one a line."""\r
    text = Path(path).read_bytes().decode()\r
    return [line for line in text.{split} if line]\r
'''
TEST_COUNTER = """from tally.counter import count, winner


def test_count(votes):
    assert count(votes) == {"yes": 2, "no": 1}


def test_winner(votes):
    assert winner(votes) == "yes"
"""
TEST_DRAW = """

def test_winner_of_nothing():
    assert winner([]) is None


def test_draw():
    assert winner(["yes", "no"]) is None
"""
TEST_READING = """from pathlib import Path

from tally.reading import MARK, read

DATA = Path(__file__).parent / "data"


def test_read():
    assert read(DATA / "unix.txt") == ["yes", "no"]
"""
TEST_WINDOWS = """

def test_read_what_windows_wrote():
    assert read(DATA / "windows.txt") == ["yes", "no"]


def test_mark():
    assert MARK == bytes(range(256))
"""

WEAVE = """[build-system]
requires = ["flit_core >=3.2,<4"]
build-backend = "flit_core.buildapi"

[project]
name = "weave"
dynamic = ["version", "description"]
requires-python = ">=3.8"
"""
TEXT = '''"""Weaves text."""

from itertools import zip_longest


def woven(left, right):
    """Return the lines of two texts side by side."""
    rows = {rows}
    return "\\n".join(a + b for a, b in rows)


def indented(text, width=4):
    """Return a text with spaces before each line."""
    return "\\n".join({line} for line in text.split("\\n"))
'''
ZIP, LONGEST = (
    f"{name}(left.split('\\n'), right.split('\\n'){more})"
    for name, more in (("zip", ""), ("zip_longest", ", fillvalue=''"))
)
EVERY, FILLED = "' ' * width + line", "' ' * width + line if line else line"
TEST_TEXT = """import pytest

from weave.text import indented, woven


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        pytest.param("a", "b", "ab", id="one line"),
{more}    ],
)
def test_woven(left, right, both):
    assert woven(left, right) == both


def test_indented():
    assert indented("a{blank}\\nb", 2) == "  a{blank}\\n  b"
"""
UNEQUAL = '        pytest.param("a\\nc", "b", "ab\\nc", id="left is longer"),\n'

SETUP = """from setuptools import find_packages, setup

setup(
    name="oldtool",
    version="1.1",
    packages=find_packages(exclude=["test"]),
    extras_require={"test": ["pytest"]},
)
"""
PARSE = '''"""Parses pairs."""


def parse(text):
    """Return the pairs of a text: "a=1;b=2"."""
    pairs = (pair.{split} for pair in text.split(";"))
    return {{key: value{trim} for key, value in pairs}}
'''
TEST_PARSE = """import unittest

from oldtool.parse import parse


class ParseTest(unittest.TestCase):
    def test_pairs(self):
        self.assertEqual(parse("a=1;b=2"), {"a": "1", "b": "2"})
"""
TEST_EQUALS = """
    def test_value_with_equals_sign(self):
        self.assertEqual(parse("a=1=2"), {"a": "1=2"})
"""
TEST_TRIM = """
    def test_key_with_spaces(self):
        self.assertEqual(parse(" a =1"), {"a": "1"})
"""
