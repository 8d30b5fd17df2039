"""Rules about the candidate's own tests at the base commit: can they be collected, and do enough of them pass."""

from __future__ import annotations

from installers.share import Suite
from miner.core.reasons import Reason
from miner.core.settings import Policy
from miner.core.text import some
from validators.interface import Case, Judgement
from validators.verdict import family
from validators.wording import collect_texts, quotes

_UNMEASURED = Judgement("unmeasured")


def collection(case: Case, _policy: Policy) -> Judgement:
    """No import of a test file fails at the base commit, or the patches explain it."""
    if case.suite is None:
        return _UNMEASURED
    found = [one for one in case.broken if one.counts]
    if found:
        files = "a test file" if len(found) == 1 else f"{len(found)} test files"
        named = some([f"{one.path or 'pytest'}: {one.error}" for one in found])
        detail = f"{files} cannot be collected at the base commit, which the patches do not explain: {named}"
        evidence = quotes(case.suite_evidence, collect_texts(case.suite.uncollected))
        return Judgement("fail", Reason.COLLECTION_BROKEN, len(found), detail, evidence)
    others = [f"{one.path}: {one.error}" for one in case.broken]
    return Judgement("pass", value=0, detail=f"cannot be collected: {some(others)}" if others else "")


def suite_share(case: Case, policy: Policy) -> Judgement:
    """Enough of the candidate's own tests pass at the base commit; without one there, nothing speaks against it."""
    if case.suite is None:
        return _UNMEASURED
    suite, share = case.suite, case.suite.share
    if share is None:
        skipped = f", {suite.skipped} are skipped" if suite.skipped else ""
        return Judgement("pass", detail=f"none of the candidate's own tests runs at the base commit{skipped}")
    said = f"{suite.passed} of {suite.total} of the candidate's own tests pass at the base commit"
    if share >= policy.min_suite_share:
        return Judgement("pass", value=share, detail=said)
    detail = f"{said}, the policy asks for {policy.min_suite_share:.0%}{_why(suite)}"
    code = case.needs or Reason.TOO_FEW_PASS_AT_BASE
    return Judgement("fail", code, share, detail, quotes(case.suite_evidence, suite.quotes))


def _why(suite: Suite) -> str:
    """Name what did not pass; functions instead of ids, which may change from run to run."""
    parts = [f"the run ended early ({suite.ended})"] if suite.ended else []
    if suite.uncollected:
        parts.append(f"not collected: {some([name or 'pytest' for name in suite.uncollected])}")
    if suite.failed:
        parts.append(f"failed: {some(sorted({family(nodeid) for nodeid in suite.failed}))}")
    return "".join(f"; {part}" for part in parts)
