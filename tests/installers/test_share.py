"""The share of passing tests: what is in it, what is not, and what a run that ended early comes to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installers.own_tests import own_tests, suite_paths
from installers.share import Suite, count, is_below, is_good
from installers.suite import with_failures
from miner.core.records import RunOutcome, TestResult, TestStatus

P, F, E, S = TestStatus.PASSED, TestStatus.FAILED, TestStatus.ERROR, TestStatus.SKIPPED
XF, XP = TestStatus.XFAILED, TestStatus.XPASSED
A, B = "tests/test_a.py", "tests/test_b.py"


def run(statuses=None, also_collected=(), **facts) -> RunOutcome:
    """A run that came to its end."""
    statuses = statuses or {}
    results = tuple(TestResult(nodeid=nodeid, status=status) for nodeid, status in sorted(statuses.items()))
    collected = (frozenset(statuses) | frozenset(also_collected),)
    return RunOutcome(
        results=results, collected=collected, **{"started": True, "finished": True, "exit_status": 0, **facts}
    )


def many(file: str, number: int, status: TestStatus = P) -> dict[str, TestStatus]:
    return {f"{file}::test_{n}": status for n in range(number)}


def test_expected_failures_count_as_passed_and_skipped_tests_do_not_count() -> None:
    found = count(run(dict(zip((f"{A}::{n}" for n in "abcdef"), (P, F, E, S, XF, XP), strict=True))), (A,))
    assert (found.passed, found.total, found.skipped) == (3, 5, 1)
    assert found.failed == (f"{A}::b", f"{A}::c")
    assert found.share == 3 / 5


def test_no_test_there_is_no_share() -> None:
    assert count(run(), ()).share is None
    assert count(run(exit_status=5), (A,)).share is None
    only_skipped = count(run(many(A, 3, S), collect_skips={B: "needs numpy"}), (A, B))
    assert (only_skipped.share, only_skipped.skipped) == (None, 4)


def test_file_that_cannot_be_collected_stands_for_as_many_tests_as_the_others_hold() -> None:
    found = count(run({**many(A, 4), **many("tests/test_c.py", 3)}, collect_errors={B: "E   SyntaxError"}), (A, B))
    assert (found.hidden, found.passed, found.total) == (4, 7, 11)  # 3.5, rounded up
    assert found.uncollected == {B: "E   SyntaxError"}


def test_nothing_collected_counts_each_file_once() -> None:
    errors = {A: "E   ImportError: x", B: "E   ImportError: y"}
    found = count(run(exit_status=2, collect_errors=errors), (A, B))
    assert (found.share, found.total) == (0.0, 2)


def test_class_that_cannot_be_collected_is_one_beside_the_others_of_its_file() -> None:
    found = count(run(many(A, 6), collect_errors={f"{A}::TestX": "E   x"}), (A,))
    assert (found.hidden, found.total) == (1, 7)


@pytest.mark.parametrize("collector", ["tests/sub", "tests/sub/__init__.py"])
def test_folder_stands_for_the_files_below_it_that_are_not_known_otherwise(collector: str) -> None:
    below = [f"tests/sub/test_{n}.py" for n in range(4)]
    seen = run(
        many(A, 2),
        collect_errors={collector: "E   x", below[0]: "E   y"},
        collect_skips={below[1]: "no"},
    )
    assert count(seen, (A, *below)).hidden == 2 * 2 + 2


def test_folder_of_unknown_files_stands_for_one() -> None:
    assert count(run(many(A, 2), collect_errors={"tests/sub": "E   x"}), ("tests",)).hidden == 2


def test_pytest_that_does_not_start_is_no_share_of_nothing_but_zero() -> None:
    seen = RunOutcome(exit_status=4, stopped="error: unrecognized arguments: --x", collected=(frozenset(),))
    found = count(seen, (A, B))
    assert (found.share, found.total, found.ended) == (0.0, 2, "start")
    assert "unrecognized" in found.uncollected[""]


def test_conftest_that_fails_is_named_once() -> None:
    seen = RunOutcome(exit_status=4, collect_errors={"": "ImportError while loading conftest"}, stopped="x")
    found = count(seen, (A, B))
    assert (list(found.uncollected), found.hidden) == ([""], 2)


def test_usage_error_of_a_started_session_collected_nothing() -> None:
    found = count(run(exit_status=4), (A,))
    assert (found.share, found.ended) == (0.0, "start")


@pytest.mark.parametrize(
    ("facts", "ended"),
    [
        ({"timed_out": True}, "time"),
        ({"out_of_memory": True}, "memory"),
        ({"limit": "pids"}, "pids"),
        ({}, "crash"),
    ],
)
def test_run_that_ended_early_still_gives_a_number(facts, ended: str) -> None:
    hung = f"{A}::test_hung"
    seen = run(
        {**many(A, 3), hung: E},
        also_collected=(*many(B, 6),),
        finished=False,
        exit_status=137,
        unfinished=frozenset({hung}),
        **facts,
    )
    found = count(seen, (A, B))
    assert (found.passed, found.total, found.ended) == (3, 10, ended)
    assert (found.failed, len(found.unfinished)) == ((), 7)
    assert found.timed_out == (ended == "time")


def test_time_that_was_over_while_collecting_counts_the_files() -> None:
    seen = run(finished=False, exit_status=137, timed_out=True, collect_errors={A: "E   x"})
    assert count(seen, (A, B, "tests/test_c.py")).total == 3


def test_what_the_gold_patch_fixes_is_in_neither_number() -> None:
    broken = {f"{A}::test_bug": F, f"{A}::test_other": F, f"{A}::test_ok": P}
    base = run(broken, collect_errors={B: "E   ImportError: cannot import name 'new'"})
    after = run({f"{A}::test_bug": P, f"{A}::test_other": F, f"{B}::test_new": F})
    found = count(base, (A, B), after)
    assert found.fixed == (f"{A}::test_bug", B)
    assert (found.failed, found.uncollected) == ((f"{A}::test_other",), {})
    assert (found.passed, found.total) == (1, 2)


def test_candidate_of_which_only_tests_to_fix_are_there_has_no_share() -> None:
    found = count(run(many(A, 2, F)), (A,), run(many(A, 2)))
    assert (found.share, len(found.fixed)) == (None, 2)
    assert is_good(found, (), 0.8)


def test_gold_patch_that_changes_nothing_fixes_nothing() -> None:
    base = run(many(A, 2, F), collect_errors={B: "E   x"})
    assert count(base, (A, B), base) == count(base, (A, B))
    assert count(base, (A, B), RunOutcome()) == count(base, (A, B))


def test_failures_are_quoted() -> None:
    seen = run({f"{A}::test_x": F})
    failed = seen.results[0].model_copy(update={"text": "def test_x():\n>   assert 1\nE   assert 0\n\na.py:1: Error"})
    found = count(seen.model_copy(update={"results": (failed,)}), (A,))
    assert found.quotes == (f"{A}::test_x\nE   assert 0\na.py:1: Error",)


def test_good_is_what_collects_and_passes_or_what_nothing_speaks_against() -> None:
    good, poor = Suite(passed=4, failed=("x",)), Suite(passed=3, failed=("x",))
    assert is_good(good, (), 0.8)
    assert not is_good(good, ("broken",), 0.8)
    assert not is_good(poor, (), 0.8)
    assert is_good(Suite(missing=(A,)), (), 0.8)
    assert not is_good(Suite(skipped=3), (), 0.8)


def test_time_that_is_over_does_not_send_for_a_better_environment() -> None:
    cut = Suite(passed=4, failed=("x",), unfinished=("a",) * 9, ended="time")
    assert cut.share_of_ended == 0.8
    assert is_good(cut, (), 0.8)
    assert not is_good(cut.model_copy(update={"ended": "crash"}), (), 0.8)
    assert not is_good(Suite(unfinished=("a",), ended="time"), (), 0.8)


def test_session_that_calls_itself_a_dot_is_the_session() -> None:
    found = count(run(exit_status=2, collect_errors={".": "E   x"}), (A, B))
    assert (list(found.uncollected), found.hidden) == ([""], 2)


def test_files_with_failures_are_those_that_hold_what_did_not_pass() -> None:
    files = (A, B, "tests/sub/test_c.py", "tests/sub/test_d.py", "test_e.py")
    found = Suite(
        passed=1, failed=(f"{A}::test_x[a::b]",), uncollected={"tests/sub": "E"}, unfinished=("test_e.py::t",)
    )
    assert with_failures(found, files) == (A, *files[2:])
    assert with_failures(Suite(uncollected={"": "E"}), files) == files


_STATUSES = st.dictionaries(
    st.builds(lambda file, n: f"tests/test_{file}.py::test_{n}", st.sampled_from("abc"), st.integers(0, 5)),
    st.sampled_from(TestStatus),
)


@given(_STATUSES, _STATUSES, st.sets(st.sampled_from("defg")), st.booleans())
def test_share_is_a_share_and_fixing_never_lowers_it(statuses, after, errors, finished) -> None:
    files = tuple(f"tests/test_{name}.py" for name in "abcdefg")
    base = run(statuses, finished=finished, collect_errors={f"tests/test_{name}.py": "E" for name in errors})
    plain, fixed = count(base, files), count(base, files, run(after))
    for found in (plain, fixed):
        assert found.share is None or 0 <= found.share <= 1
    assert plain.passed == fixed.passed
    assert fixed.total <= plain.total
    assert len(statuses) + len(errors) <= plain.total + plain.skipped


def test_whole_suite_is_run_by_its_folders() -> None:
    files = (
        "tests/a/test_a.py",
        "tests/test_b.py",
        "src/pkg/sub/tests/test_c.py",
        "src/pkg/tests/test_d.py",
        "test_e.py",
    )
    assert suite_paths(files) == ("src/pkg/sub/tests", "src/pkg/tests", "tests", "test_e.py")
    assert own_tests(files, "", whole=True) == suite_paths(files)
    assert own_tests(files, "", whole=False) == files


def test_files_beside_the_project_stay_files_and_similar_names_stay_apart() -> None:
    files = ("lib/test_a.py", "lib/tests/test_b.py", "lib/tests_more/test_c.py")
    assert suite_paths(files, "lib") == ("lib/tests", "lib/tests_more", "lib/test_a.py")


def test_names_too_long_for_a_command_line_become_folders() -> None:
    files = tuple(f"tests/{'x' * 200}/test_{n}.py" for n in range(10_000))
    assert own_tests(files, "", whole=False) == (f"tests/{'x' * 200}",)


@pytest.mark.parametrize(
    ("collector", "path", "below"),
    [
        ("", "a.py::t", True),
        ("tests", "tests/a.py::t", True),
        ("tests", "tests_more/a.py", False),
        ("tests/__init__.py", "tests/a.py", True),
        ("tests/a.py", "tests/a.py::t", True),
        ("tests/a.py", "tests/a.pyx", False),
    ],
)
def test_what_lies_below_a_collector(collector: str, path: str, below: bool) -> None:
    assert is_below(collector, path) == below
