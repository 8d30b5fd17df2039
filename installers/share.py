"""The share of a candidate's own tests that pass at the base commit: one definition, the same for everything; pure.

    share = passed / total,   total = passed + failed + unfinished + hidden

passed      passed, or failed as expected (xfailed); also what passed though it was expected to fail (xpassed): where a
            project is strict about that, pytest reports a failed test.
failed      failed, or an error in set-up or tear-down.
unfinished  collected, but without a result, because the run reached a limit or crashed.
hidden      tests of files that could not be collected: nobody knows how many there are. Each such file stands for as
            many as the collected files hold on average, rounded up, and for one where none was collected. One for each,
            as pytest counts them, would make a suite look well of which most modules cannot be imported.

Not in it: skipped tests, and files that are not there at the base commit.

Tests fail at the base for another reason than their environment: what the change is going to fix. The base's versions
of the tests run, so new ones are not among them, but one may have been broken before, and would speak against a good
environment. What passes with the gold patch alone is *fixed*, and in neither number. Where no test at all is left,
there is no share.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from pydantic import Field

from miner.core.excerpt import error_excerpt
from miner.core.records import Legible, Record, RunOutcome, TestStatus

_PASSED = frozenset({TestStatus.PASSED, TestStatus.XFAILED, TestStatus.XPASSED})
_QUOTED = 3
_INTERNAL_ERROR, _USAGE_ERROR = 3, 4  # https://docs.pytest.org/en/stable/reference/exit-codes.html


class Suite(Record):
    """What the candidate's own tests say about an environment; the module's docstring is the definition.

    Attributes:
        failed: ids.
        unfinished: ids.
        hidden: how many tests the files in `uncollected` stand for.
        skipped: how many tests were skipped, and files as a whole.
        uncollected: collector (file, folder, "" for all) -> why it could not be collected.
        fixed: ids and collectors that the gold patch makes pass; in no number.
        missing: test files that are not there at the base commit.
        quotes: what pytest says of the first of `failed`.
        ended: how the run ended before its time: the limit that it reached ("time", "memory", ...), "start" where
            pytest did not come to running tests, "crash", "stopped" by the tests themselves; "" where it did not.
    """

    passed: int = 0
    failed: tuple[Legible, ...] = ()
    unfinished: tuple[Legible, ...] = ()
    hidden: int = 0
    skipped: int = 0
    uncollected: dict[str, Legible] = Field(default_factory=dict)
    fixed: tuple[Legible, ...] = ()
    missing: tuple[Legible, ...] = ()
    quotes: tuple[Legible, ...] = ()
    ended: str = ""

    @property
    def total(self) -> int:
        """Number of tests that the share is of."""
        return self.passed + len(self.failed) + len(self.unfinished) + self.hidden

    @property
    def share(self) -> float | None:
        """Share of the tests that pass; None where there is none."""
        return self.passed / self.total if self.total else None

    @property
    def share_of_ended(self) -> float | None:
        """The share without unfinished tests: what they would have come to, if nothing else is known."""
        ended = self.total - len(self.unfinished)
        return self.passed / ended if ended else self.share

    @property
    def timed_out(self) -> bool:
        """Whether the run was ended because its time was over."""
        return self.ended == "time"


def count(run: RunOutcome, files: Sequence[str], after: RunOutcome | None = None) -> Suite:
    """Count the tests of one run.

    Args:
        run: of the candidate's test files at the base commit.
        files: the files and folders that pytest was given, those left out that are not there.
        after: the same run with the gold patch, of the files that hold failures.
    """
    if not files:
        return Suite()
    statuses = {result.nodeid: result.status for result in run.results}
    ids = statuses.keys() | (run.collected[0] if run.collected else frozenset())
    passed = {nodeid for nodeid, status in statuses.items() if status in _PASSED}
    skipped = {nodeid for nodeid, status in statuses.items() if status is TestStatus.SKIPPED}
    open_ids = ids - passed - skipped
    failed = {nodeid for nodeid in open_ids if nodeid in statuses and nodeid not in run.unfinished}
    ended = _ended(run, ids)
    errors = collectors(run)
    if ended and not ids and "" not in errors:
        errors[""] = run.stopped or "the run ended before the tests were collected"
    fixed_ids, fixed_errors = _fixed(open_ids, errors, after)
    modules = {nodeid.partition("::")[0] for nodeid in ids}
    each = math.ceil(len(ids) / len(modules)) if modules else 1
    known = {*modules, *errors, *run.collect_skips}
    return Suite(
        passed=len(passed),
        failed=tuple(sorted(failed - fixed_ids)),
        unfinished=tuple(sorted(open_ids - failed - fixed_ids)),
        hidden=sum(_hidden(name, files, modules, known, each) for name in errors.keys() - fixed_errors),
        skipped=len(skipped) + len(run.collect_skips),
        uncollected={name: errors[name] for name in sorted(errors.keys() - fixed_errors)},
        fixed=tuple(sorted(fixed_ids | fixed_errors)),
        quotes=_quotes(run, failed - fixed_ids),
        ended=ended,
    )


def _quotes(run: RunOutcome, ids: Collection[str]) -> tuple[str, ...]:
    shown = [result for result in run.results if result.nodeid in ids][:_QUOTED]
    return tuple(f"{result.nodeid}\n{error_excerpt(result.text) or result.message}" for result in shown)


def collectors(run: RunOutcome) -> dict[str, str]:
    """Return the collectors that failed, and pytest's texts; the session as a whole is "" (some versions say ".")."""
    return {"" if name == "." else name: text for name, text in run.collect_errors.items()}


def _ended(run: RunOutcome, ids: Collection[str]) -> str:
    """Say how a run ended before its time, "" where it came to its end."""
    if run.timed_out or run.out_of_memory:
        return "time" if run.timed_out else "memory"
    if run.limit or run.truncated:
        return run.limit or "output"
    if not run.started or (not ids and run.exit_status in (_INTERNAL_ERROR, _USAGE_ERROR)):
        return "start"
    if not run.finished:
        return "crash"
    return "stopped" if run.stopped else ""


def _fixed(
    ids: Collection[str], errors: Collection[str], after: RunOutcome | None
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the ids that pass with the gold patch, and the collectors that can be collected with it."""
    if after is None:
        return frozenset(), frozenset()
    passing = {result.nodeid for result in after.results if result.status in _PASSED}
    seen = {result.nodeid for result in after.results}
    mended = {
        name
        for name in errors
        if any(is_below(name, nodeid) for nodeid in seen)
        and not any(is_below(name, other) or is_below(other, name) for other in after.collect_errors)
    }
    return frozenset(passing.intersection(ids)), frozenset(mended)


def _hidden(collector: str, files: Sequence[str], modules: Collection[str], known: Collection[str], each: int) -> int:
    """Return how many tests a collector stands for; a class or a file of which others are known for one."""
    path = collector.partition("::")[0]
    if path != collector or path in modules:
        return 1
    return each * max(1, sum(1 for file in files if file not in known and is_below(path, file)))


def is_below(collector: str, path: str) -> bool:
    """Whether a file or node id lies at or below a collector: a file, a folder, its `__init__.py`, all ("")."""
    folder = collector.removesuffix("__init__.py").rstrip("/")
    if folder in ("", "."):
        return True
    return path == collector or path.startswith((f"{collector}::", f"{folder}/"))


def is_good(suite: Suite, broken: Collection[object], enough: float) -> bool:
    """Whether an environment is so good that no better one is looked for.

    It is where every test file can be collected and enough of their tests pass; also where there is no test at the base
    commit to say otherwise, but not where all of them are skipped: a better one may run them. Where the time was over,
    the tests that were come to must do: no other environment has more of it.
    """
    share = suite.share_of_ended if suite.timed_out else suite.share
    if broken:
        return False
    return not suite.skipped if share is None else share >= enough
