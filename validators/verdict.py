"""The verdict: which tests fail before the gold patch and pass after it, which pass on both sides, and what is unclear.

A pure function of two run outcomes. Only stable node ids enter a list: an id that stands for one test, and that every
collection of its side found. Ids that hold a time, an address or a random value are in one collection and not in the
next; compared by name, they would all seem to be new.

                   after: passed     failed, error   skipped    xfailed, xpassed, not reached   absent
    before
    passed                PASS_TO_PASS  PASS_TO_FAIL  skipped    unjudged                        vanished
    failed, error         FAIL_TO_PASS  FAIL_TO_FAIL
    collection error      FAIL_TO_PASS  FAIL_TO_FAIL
    absent                FAIL_TO_PASS  FAIL_TO_FAIL
    skipped               skipped
    xfailed, xpassed,     unjudged
    not reached
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

from miner.core.records import Cause, RunOutcome, TestResult, TestStatus, Verdict

MIN_COLLECTIONS = 2
_CHECKS = frozenset({"AssertionError", "Failed", "DocTestFailure", "MultipleDoctestFailures"})


class _Side(Enum):
    """What one side says about one id."""

    PASSED = auto()
    FAILED = auto()
    BEHIND_ERROR = auto()
    SKIPPED = auto()
    UNCLEAR = auto()
    ABSENT = auto()


_BY_STATUS = {
    TestStatus.PASSED: _Side.PASSED,
    TestStatus.FAILED: _Side.FAILED,
    TestStatus.ERROR: _Side.FAILED,
    TestStatus.SKIPPED: _Side.SKIPPED,
    TestStatus.XFAILED: _Side.UNCLEAR,
    TestStatus.XPASSED: _Side.UNCLEAR,
}
_NO_PASS = (_Side.FAILED, _Side.BEHIND_ERROR, _Side.ABSENT)


@dataclass(frozen=True)
class _View:
    """One run, indexed by node id."""

    outcome: RunOutcome
    results: dict[str, TestResult]
    listed: frozenset[str]
    unstable: frozenset[str]

    def side(self, nodeid: str) -> _Side:
        """Return what this run says about an id."""
        result = self.results.get(nodeid)
        if result is not None:
            return _Side.UNCLEAR if self._cut_short(nodeid) else _BY_STATUS[result.status]
        if nodeid in self.listed:
            return _Side.UNCLEAR
        if any(holds(collector, nodeid) for collector in self.outcome.collect_errors):
            return _Side.BEHIND_ERROR
        if any(holds(collector, nodeid) for collector in self.outcome.collect_skips):
            return _Side.SKIPPED
        return _Side.ABSENT

    def _cut_short(self, nodeid: str) -> bool:
        """Whether a limit ended the run inside this test, which may be as good as its neighbours."""
        limited = self.outcome.timed_out or self.outcome.out_of_memory or bool(self.outcome.limit)
        return limited and nodeid in self.outcome.unfinished


def holds(collector: str, nodeid: str) -> bool:
    """Whether an id lies below a collector: a module or class, a folder, a package's `__init__.py`, the session."""
    folder = collector.removesuffix("__init__.py").rstrip("/")
    if folder in ("", "."):
        return True
    return nodeid == collector or nodeid.startswith((f"{collector}::", f"{folder}/"))


def family(nodeid: str) -> str:
    """Return the id of the test function, without its parameters."""
    path, sep, name = nodeid.partition("::")
    return path + sep + name.partition("[")[0]


def verdict(before: RunOutcome, after: RunOutcome) -> Verdict:
    """Compare the run before the gold patch with the run after it.

    The after side must have been collected by two processes: without the second one, none of its ids is stable. Where
    the before side was collected by one, an id that is gone after is unstable if its function has unstable ids there.
    """
    old, new = _view(before), _view(after)
    if len(after.collected) < MIN_COLLECTIONS:
        new = replace(new, unstable=new.listed)
    unstable = old.unstable | new.unstable
    if len(before.collected) < MIN_COLLECTIONS:
        shaky = {family(nodeid) for nodeid in new.unstable}
        unstable |= {nodeid for nodeid in old.listed - new.listed if family(nodeid) in shaky}
    lists: dict[str, list[str]] = {}
    causes: dict[str, Cause] = {}
    for nodeid in sorted(old.listed | new.listed):
        sides = old.side(nodeid), new.side(nodeid)
        name = "unstable" if nodeid in unstable else _list_of(*sides)
        if name is None:
            continue
        lists.setdefault(name, []).append(nodeid)
        if name == "fail_to_pass":
            causes[nodeid] = _cause(sides[0], old.results.get(nodeid))
    return Verdict(causes=causes, **{name: tuple(ids) for name, ids in lists.items()})


def _view(outcome: RunOutcome) -> _View:
    results = {result.nodeid: result for result in outcome.results}
    collections = outcome.collected
    listed = frozenset(results).union(*collections)
    agreed = collections[0].intersection(*collections[1:]) if collections else frozenset()
    return _View(outcome, results, listed, (listed - agreed) | outcome.repeated)


def _list_of(old: _Side, new: _Side) -> str | None:
    """Return the list of the table in the module's docstring, None where both sides say nothing that counts."""
    if new is _Side.PASSED:
        return {_Side.PASSED: "pass_to_pass", _Side.SKIPPED: "skipped", _Side.UNCLEAR: "unjudged"}.get(
            old, "fail_to_pass"
        )
    if old is _Side.PASSED:
        return {_Side.SKIPPED: "skipped", _Side.UNCLEAR: "unjudged", _Side.ABSENT: "vanished"}.get(new, "pass_to_fail")
    if old in _NO_PASS and new is _Side.FAILED:
        return "fail_to_fail"
    return None


def _cause(side: _Side, result: TestResult | None) -> Cause:
    if side is _Side.BEHIND_ERROR:
        return Cause.COLLECTION
    if result is None:
        return Cause.ABSENT
    checked = _CHECKS.intersection(result.exceptions) or (result.phase == "call" and not result.exceptions)
    return Cause.ASSERTION if checked else Cause.ERROR
