"""Which of a project's pytest options are kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installers.addopts import drop_unrecognised, split_addopts

KEPT = [
    "--strict-markers",
    "-p no:cacheprovider",
    "-pno:x",
    "-W error",
    "-Werror::DeprecationWarning",
    "--doctest-modules",
    "--import-mode=importlib",
    "--import-mode importlib",
    "--ignore=docs/x.py",
    "--ignore docs",
    "--deselect tests/a.py::b",
    "-m fast",
    "-k pattern",
    "-o xfail_strict=true",
    "--asyncio-mode=auto",
    "--timeout 5",
    "--benchmark-disable",
    "--benchmark-sort name",
    "--runslow",
    "--ds=settings",
]
DROPPED = [
    ("-n auto", "parallel"),
    ("-n4", "parallel"),
    ("--numprocesses=2", "parallel"),
    ("--dist loadfile", "parallel"),
    ("--cov", "coverage"),
    ("--cov=demo", "coverage"),
    ("--cov-report term-missing", "coverage"),
    ("--cov-fail-under=100", "coverage"),
    ("--no-cov-on-fail", "coverage"),
    ("-x", "early"),
    ("-xvs", "early"),
    ("--maxfail=1", "early"),
    ("--maxfail 1", "early"),
    ("--lf", "earlier"),
    ("--ff", "earlier"),
    ("--sw", "earlier"),
    ("-q", "output"),
    ("-vv", "output"),
    ("-ra", "output"),
    ("-r a", "output"),
    ("-rfEsX", "output"),
    ("--tb=short", "output"),
    ("--tb native", "output"),
    ("--color=yes", "output"),
    ("-s", "output"),
    ("--capture=no", "output"),
    ("--durations=10", "output"),
    ("--pdb", "person"),
    ("--junitxml=out.xml", "report"),
    ("--junit-xml out.xml", "report"),
    ("--html=report.html", "report"),
    ("--flake8", "linter"),
    ("--black", "linter"),
    ("tests", "path"),
    ("src/demo", "path"),
]


@pytest.mark.parametrize("text", KEPT)
def test_kept(text):
    assert split_addopts(text.split()) == (tuple(text.split()), ())


@pytest.mark.parametrize(("text", "reason"), DROPPED)
def test_dropped_with_a_reason(text, reason):
    kept, dropped = split_addopts(text.split())
    assert kept == ()
    assert [option for option, _ in dropped] == [text]
    assert reason in dropped[0][1]


def test_order_and_values_stay():
    kept, dropped = split_addopts(["-ra", "-m", "not slow", "--cov=x", "-p", "no:y", "tests", "--strict"])
    assert kept == ("-m", "not slow", "-p", "no:y", "--strict")
    assert [option for option, _ in dropped] == ["-ra", "--cov=x", "tests"]


def test_a_path_after_an_option_that_takes_no_value_is_a_path():
    assert split_addopts(["--doctest-modules", "demo"])[0] == ("--doctest-modules",)
    assert split_addopts(["--runslow", "tests/"])[0] == ("--runslow",)
    assert split_addopts(["--cov", "demo"])[0] == ()


WORDS = st.lists(
    st.sampled_from([word for text in [*KEPT, *(text for text, _ in DROPPED)] for word in text.split()])
    | st.text(max_size=6),
    max_size=10,
)


def characters(words):
    return sorted("".join(words).replace(" ", ""))


@given(WORDS)
def test_no_word_is_lost_or_invented_and_a_second_pass_changes_nothing(words):
    kept, dropped = split_addopts(words)
    assert characters([*kept, *(option for option, _ in dropped)]) == characters(words)
    assert split_addopts(kept) == (kept, ())


@given(WORDS)
def test_kept_words_are_in_the_order_of_the_declaration(words):
    remaining = iter(words)
    assert all(word in remaining for word in split_addopts(words)[0])


USAGE = """ERROR: usage: pytest [options] [file_or_dir] [file_or_dir] [...]
pytest: error: unrecognized arguments: --mypy-ini --asyncio-mode=auto --ds
  inifile: /testbed/setup.cfg
  rootdir: /testbed
"""


def test_unrecognised_arguments_are_dropped_with_their_values():
    kept = ("--strict", "--mypy-ini", "x.ini", "--asyncio-mode=auto", "--ds", "settings", "-m", "fast")
    left, dropped = drop_unrecognised(kept, USAGE)
    assert left == ("--strict", "-m", "fast")
    assert [option for option, _ in dropped] == ["--mypy-ini x.ini", "--asyncio-mode=auto", "--ds settings"]


def test_missing_plugins_are_dropped():
    text = "ImportError: Error importing plugin \"missing.plugin\": No module named 'missing'"
    assert drop_unrecognised(("-p", "missing.plugin", "-p", "no:x", "-pmissing.plugin"), text)[0] == ("-p", "no:x")


def test_another_error_drops_nothing():
    kept = ("--strict", "-p", "no:x")
    assert drop_unrecognised(kept, "INTERNALERROR> boom") == (kept, ())
    assert drop_unrecognised(kept, "") == (kept, ())


@given(WORDS, st.text(max_size=80))
def test_dropping_only_takes_away(words, text):
    kept = split_addopts(words)[0]
    left, dropped = drop_unrecognised(kept, f"error: unrecognized arguments: {text}")
    remaining = iter(kept)
    assert all(word in remaining for word in left)
    assert bool(dropped) == (left != kept)
