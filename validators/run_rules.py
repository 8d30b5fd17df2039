"""Rules about the two test runs: did they end, is their report whole, and what does their comparison say.

Every failure quotes the test's own error text as evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from miner.core.excerpt import error_excerpt
from miner.core.reasons import Reason
from miner.core.records import Cause, Evidence, RunOutcome, TestStatus, Verdict
from miner.core.settings import Policy
from miner.core.text import some
from validators.interface import Case, Judgement
from validators.verdict import MIN_COLLECTIONS, family, holds
from validators.wording import FAILING, collect_texts, error_texts, quotes, summary, tests

_UNMEASURED = Judgement("unmeasured")


def ended(case: Case, _policy: Policy) -> Judgement:
    """Both runs came to their end; before the patch, a crash of the test process is an outcome like another."""
    for name, run, where in _runs(case):
        if run.exit_status is None and not run.started and not _limit(run) and not (case.after and case.after.results):
            continue  # no test file was there to run: `ran` says so
        problem = _limit(run) or (_after_problem(run) if name == "after" else _before_problem(run))
        if problem:
            code, text = problem
            at = f" while {run.running} was running" if run.running else ""
            detail = f"the run {name} the gold patch {text}{at}"
            return Judgement("fail", code, detail=detail, evidence=quotes(where, _last_words(run)))
    return _UNMEASURED if case.after is None or case.before is None else Judgement("pass")


def _limit(run: RunOutcome) -> tuple[Reason, str] | None:
    if run.timed_out:
        return Reason.RUN_TIMEOUT, "exceeded its time limit"
    if run.out_of_memory:
        return Reason.RUN_OUT_OF_MEMORY, "exceeded its memory limit"
    if run.limit:
        return Reason.RUN_LIMIT, f"exceeded its limit of {run.limit}"
    if run.truncated:
        return Reason.RUN_LIMIT, "reported more than is read"
    return None


def _before_problem(run: RunOutcome) -> tuple[Reason, str] | None:
    if not run.started and not run.collect_errors:
        return Reason.RUN_CRASHED, f"did not start{_status(run)}"
    return None


def _after_problem(run: RunOutcome) -> tuple[Reason, str] | None:
    if not run.started:
        return Reason.RUN_CRASHED, f"did not start{_status(run)}"
    if run.stopped:
        return Reason.RUN_CRASHED, f"stopped early ({run.stopped.splitlines()[-1].strip()})"
    if not run.finished:
        return Reason.RUN_CRASHED, f"crashed{_status(run)}"
    if run.results and (len(run.collected) < MIN_COLLECTIONS or not all(run.collected)):
        return Reason.RUN_CRASHED, "ended, but a second collection of its tests did not"
    return None


def _status(run: RunOutcome) -> str:
    return "" if run.exit_status is None else f" (exit status {run.exit_status})"


def intact(case: Case, _policy: Policy) -> Judgement:
    """The reports hold the lines that the reporter wrote, all of them, and no others."""
    if case.before is None or case.after is None:
        return _UNMEASURED
    lines = case.before.damaged + case.after.damaged
    if not lines:
        return Judgement("pass", value=0)
    detail = (
        f"{lines} lines of the reports are lost or foreign ({case.before.damaged} before, {case.after.damaged} after)"
    )
    return Judgement("fail", Reason.REPORT_DAMAGED, lines, detail, (*case.before_evidence, *case.after_evidence))


def ran(case: Case, _policy: Policy) -> Judgement:
    """The run after the patch reports tests."""
    if case.after is None:
        return _UNMEASURED
    count = len(case.after.results)
    if count:
        return Judgement("pass", value=count, detail=f"{summary(case.after)} after the gold patch")
    errors = case.after.collect_errors
    why = f": {len(errors)} collection errors ({', '.join(sorted(errors))})" if errors else ""
    evidence = quotes(case.after_evidence, collect_texts(errors))
    return Judgement("fail", Reason.NOTHING_RAN, 0, f"no test ran after the gold patch{why}", evidence)


def flips(case: Case, policy: Policy) -> Judgement:
    """Enough tests fail before the gold patch and pass after it."""
    if case.before is None or case.after is None or case.verdict is None:
        return _UNMEASURED
    found = case.verdict.fail_to_pass
    causes = Counter(case.verdict.causes.values())
    sides = f"{summary(case.before)} before, {summary(case.after)} after"
    split = ", ".join(f"{causes[cause]} {cause}" for cause in sorted(causes))
    if len(found) >= policy.min_fail_to_pass:
        texts = error_texts(case.before, found)
        if causes[Cause.COLLECTION]:
            texts += collect_texts(case.before.collect_errors)
        detail = f"{tests(found)} failed before the gold patch and passed after it ({split}): {sides}"
        return Judgement("pass", value=len(found), detail=detail, evidence=quotes(case.before_evidence, texts))
    if found:
        detail = f"{tests(found)} failed before and passed after, the policy asks for {policy.min_fail_to_pass}"
        return Judgement("fail", Reason.TOO_FEW_FLIPS, len(found), detail)
    return _no_flips(case, case.before, case.after, case.verdict)


def _no_flips(case: Case, before: RunOutcome, after: RunOutcome, said: Verdict) -> Judgement:
    """Say why nothing flips: all fail after as well, only ids that change from run to run flip, or nothing fails."""
    unstable = frozenset(said.unstable)
    failing = [result.nodeid for result in before.results if result.status in FAILING]
    stable = [nodeid for nodeid in failing if nodeid not in unstable]
    shaky = [nodeid for nodeid in failing if nodeid in unstable] + _shaky_behind_errors(before, after, unstable)
    sides = f"{summary(before)} before, {summary(after)} after"
    if stable or (before.collect_errors and not shaky):
        texts = error_texts(before, stable) or collect_texts(before.collect_errors)
        evidence = (*quotes(case.after_evidence, error_texts(after, stable)), *quotes(case.before_evidence, texts))
        what = f"{tests(stable)} failed" if stable else f"{len(before.collect_errors)} modules could not be collected"
        detail = f"{what} before the gold patch, and none of them passed after it: {sides}"
        return Judgement("fail", Reason.FAILS_AFTER, 0, detail, evidence)
    if shaky:
        detail = f"the only failures before the gold patch have unstable ids ({some(_functions(shaky))}): {sides}"
        evidence = quotes(case.before_evidence, error_texts(before, shaky))
        return Judgement("fail", Reason.ONLY_UNSTABLE_FLIPS, 0, detail, evidence)
    detail = f"no test fails before the gold patch: {sides}"
    return Judgement("fail", Reason.NOTHING_FAILS_BEFORE, 0, detail, (*case.before_evidence, *case.after_evidence))


def _shaky_behind_errors(before: RunOutcome, after: RunOutcome, unstable: frozenset[str]) -> list[str]:
    return [
        result.nodeid
        for result in after.results
        if result.nodeid in unstable
        and result.status is TestStatus.PASSED
        and any(holds(collector, result.nodeid) for collector in before.collect_errors)
    ]


def broken(case: Case, policy: Policy) -> Judgement:
    """No test that passes before fails after the gold patch."""
    if case.after is None or case.verdict is None:
        return _UNMEASURED
    found = case.verdict.pass_to_fail
    if len(found) <= policy.max_pass_to_fail:
        return Judgement("pass", value=len(found))
    detail = f"{tests(found)} passed before the gold patch and failed after it: {some(found)}"
    texts = error_texts(case.after, found) or collect_texts(case.after.collect_errors)
    return Judgement("fail", Reason.PASS_TO_FAIL, len(found), detail, quotes(case.after_evidence, texts))


def vanished(case: Case, policy: Policy) -> Judgement:
    """No test that passes before is gone after the gold patch."""
    if case.verdict is None:
        return _UNMEASURED
    found = case.verdict.vanished
    if len(found) <= policy.max_vanished:
        return Judgement("pass", value=len(found))
    detail = f"{tests(found)} passed before the gold patch and were not there after it: {some(found)}"
    return Judgement("fail", Reason.TESTS_VANISHED, len(found), detail, case.after_evidence)


def still_failing(case: Case, _policy: Policy) -> Judgement:
    """Name the tests that fail on both sides; they reject nothing."""
    if case.after is None or case.verdict is None:
        return _UNMEASURED
    found = case.verdict.fail_to_fail
    detail = f"{tests(found)} failed before the gold patch and after it: {some(found)}" if found else ""
    evidence = quotes(case.after_evidence, error_texts(case.after, found)) if found else ()
    return Judgement("pass", value=len(found), detail=detail, evidence=evidence)


def unstable(case: Case, _policy: Policy) -> Judgement:
    """Name the functions whose ids do not name one test reliably and enter no list; they reject nothing."""
    if case.verdict is None:
        return _UNMEASURED
    found = _functions(case.verdict.unstable)
    detail = f"ids that change or stand for several tests enter no list: {some(found)}" if found else ""
    return Judgement("pass", value=len(found), detail=detail)


def _functions(ids: Iterable[str]) -> list[str]:
    """Return the test functions of unstable ids: unlike the ids, they are the same in every run."""
    return sorted({family(nodeid) for nodeid in ids})


def _runs(case: Case) -> list[tuple[str, RunOutcome, tuple[Evidence, ...]]]:
    """Return the runs that were made, the one after the patch first."""
    both = (("after", case.after, case.after_evidence), ("before", case.before, case.before_evidence))
    return [(name, run, where) for name, run, where in both if run is not None]


def _last_words(run: RunOutcome) -> list[str]:
    """Return the error text of a run that did not end well."""
    return [error_excerpt(run.stopped)] if run.stopped else error_texts(run, run.unfinished)
