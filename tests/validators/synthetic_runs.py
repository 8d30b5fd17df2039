"""Builders of run outcomes for tests: what a run says, in a few words."""

from miner.core.records import RunOutcome, TestResult, TestStatus

P, F, E, S = TestStatus.PASSED, TestStatus.FAILED, TestStatus.ERROR, TestStatus.SKIPPED
XF, XP = TestStatus.XFAILED, TestStatus.XPASSED


def ids(count, start=0, module="tests/test_a.py"):
    """Node ids of one module, numbered."""
    return [f"{module}::test_{number:04}" for number in range(start, start + count)]


def result(nodeid, status, exceptions=None, text=""):
    """A result; a failure is an assertion unless told otherwise."""
    failing = status in (F, E)
    names = (("AssertionError", "Exception") if failing else ()) if exceptions is None else exceptions
    return TestResult(nodeid=nodeid, status=status, phase="call", exceptions=names, text=text, message="m" * failing)


def run(statuses, *, other=None, collections=2, **facts):
    """A run that came to its end.

    Args:
        statuses: node id -> status.
        other: what the second process collected, where it is not the same.
        collections: how many processes collected.
    """
    own = frozenset(statuses)
    second = own if other is None else frozenset(other)
    return RunOutcome(
        results=tuple(result(nodeid, status) for nodeid, status in sorted(statuses.items())),
        collected=(own, second)[:collections],
        **{"started": True, "finished": True, "exit_status": 0, **facts},
    )
