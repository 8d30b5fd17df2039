"""Which files that cannot be collected are the environment's fault: what the patches explain, and what they do not."""

from __future__ import annotations

import pytest

from installers.broken import Broken, broken_collections, is_import_error
from miner.core.records import RunOutcome

A, B = "tests/test_a.py", "tests/test_b.py"
IMPORT = """ImportError while importing test module '/testbed/tests/test_a.py'.
Hint: make sure your test modules/packages have valid Python names.
Traceback:
tests/test_a.py:1: in <module>
    import yaml
E   ModuleNotFoundError: No module named 'yaml'"""
SYNTAX = 'E     File "/testbed/tests/test_a.py", line 1\nE       print 1\nE   SyntaxError: Missing parentheses'
NUMPY = """ImportError while importing test module '/testbed/tests/test_a.py'.
E   ImportError:
E
E   IMPORTANT: PLEASE READ THIS FOR ADVICE ON HOW TO SOLVE THIS ISSUE!
E
E   Importing the numpy C-extensions failed."""
CONFTEST = (
    "ImportError while loading conftest '/testbed/tests/conftest.py'.\nE   ModuleNotFoundError: No module named 'x'"
)


def run(errors=None, **facts) -> RunOutcome:
    return RunOutcome(collect_errors=errors or {}, **{"started": True, "finished": True, "exit_status": 2, **facts})


def shown(found: tuple[Broken, ...]) -> list[tuple[str, str, str, bool]]:
    return [(one.path, one.at, one.cause, one.counts) for one in found]


def test_import_that_fails_at_the_base_and_with_both_patches_counts() -> None:
    found = broken_collections(run({A: IMPORT}), run({A: IMPORT}))
    assert shown(found) == [(A, "base", "import", True)]
    assert found[0].error == "ModuleNotFoundError: No module named 'yaml'"


def test_import_that_the_patches_make_good_is_explained() -> None:
    assert broken_collections(run({A: IMPORT}), run()) == ()


def test_error_of_another_kind_at_the_base_is_left_to_the_share() -> None:
    assert shown(broken_collections(run({A: SYNTAX}), run({A: SYNTAX}))) == [(A, "base", "other", False)]


def test_import_that_fails_then_and_in_another_way_now_is_not_made_good() -> None:
    assert shown(broken_collections(run({A: IMPORT}), run({A: SYNTAX}))) == [(A, "base", "import", True)]


def test_error_that_only_the_patches_bring_is_told_apart() -> None:
    assert shown(broken_collections(run(), run({A: IMPORT}))) == [(A, "gold", "import", False)]
    assert shown(broken_collections(None, run({A: IMPORT}))) == [(A, "gold", "import", False)]


def test_folder_at_the_base_and_its_file_later_are_the_same_thing() -> None:
    assert shown(broken_collections(run({"tests": IMPORT}), run({A: IMPORT}))) == [("tests", "base", "import", True)]
    assert shown(broken_collections(run({f"{A}::TestX": IMPORT}), run({A: IMPORT}))) == [(A, "base", "import", True)]


def test_pytest_that_cannot_be_used_counts_for_everything() -> None:
    conftest = RunOutcome(collect_errors={"": CONFTEST}, exit_status=4, stopped=CONFTEST)
    usage = RunOutcome(exit_status=4, stopped="ERROR: Missing required plugins: pytest-x")
    internal = run(exit_status=3, stopped="INTERNALERROR> x", collected=(frozenset(),))
    for one, error in (
        (conftest, "ModuleNotFoundError: No module named 'x'"),
        (usage, "ERROR: Missing required plugins: pytest-x"),
        (internal, "INTERNALERROR> x"),
    ):
        found = broken_collections(one, one)
        assert shown(found) == [("", "base", "import", True)]
        assert found[0].error == error
        assert broken_collections(one, run()) == ()


def test_nothing_that_was_run_is_nothing_broken() -> None:
    assert broken_collections(RunOutcome(), RunOutcome()) == ()
    assert broken_collections(run(), run()) == ()


def test_stop_among_the_tests_is_no_broken_collection() -> None:
    stopped = run(stopped="Interrupted: x", collected=(frozenset({f"{A}::t"}),))
    assert broken_collections(stopped, stopped) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (IMPORT, True),
        (NUMPY, True),
        (CONFTEST, True),
        ("E   pkg_resources.DistributionNotFound: The 'x' distribution was not found", True),
        ("E   importlib.metadata.PackageNotFoundError: No package metadata was found for x", True),
        ("tests/conftest.py:1: in <module>\n    import x\nE   ImportError: libGL.so.1: cannot open", True),
        ("E   _pytest.config.ConftestImportFailure: (local('/testbed/tests/conftest.py'), (<class 'x'>,))", True),
        (SYNTAX, False),
        ("E   AttributeError: module 'numpy' has no attribute 'float'", False),
        ("E   AssertionError: ImportError was not raised", False),
        ("", False),
    ],
)
def test_what_an_import_error_looks_like(text: str, expected: bool) -> None:
    assert is_import_error(text) == expected
