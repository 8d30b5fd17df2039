"""From findings to the one state of a candidate: pure, so that a changed policy never needs a new measurement."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from miner.core.reasons import Reason, Stage
from miner.core.records import Decision, Evidence, Finding, State
from validators.interface import Fault


def decide(
    instance_id: str,
    findings: Sequence[Finding],
    fault: Fault | None = None,
    provisional: Collection[Reason] = (),
) -> Decision:
    """Return the decision about a candidate.

    The first failing finding rejects, with its code and sentence. Without one, a candidate of which everything is
    measured is accepted; a fault leaves it faulted; otherwise it waits.

    Args:
        instance_id: the candidate.
        findings: what the rules say, in stage order.
        fault: the fault of the infrastructure that ended the last attempt, if one did.
        provisional: codes that rest on one answer of a network service: a rejection by them is not final.
    """
    failed = next((found for found in findings if found.outcome == "fail"), None)
    if failed is not None:
        final = failed.code not in provisional
        return _decision(instance_id, State.REJECTED, failed.stage, failed.code, failed.detail, failed.evidence, final)
    missing = next((found for found in findings if found.outcome == "unmeasured"), None)
    if missing is None and findings:
        return _decision(instance_id, State.ACCEPTED, findings[-1].stage, None, _accepted(findings))
    if fault is not None:
        sentence = fault.detail or fault.code.meaning
        return _decision(instance_id, State.FAULTED, fault.stage, fault.code, sentence, fault.evidence)
    stage = missing.stage if missing is not None else Stage.DISCOVER
    sentence = f"not judged yet: {missing.rule} is not measured" if missing is not None else "not judged yet"
    return _decision(instance_id, State.PENDING, stage, None, sentence)


def _accepted(findings: Sequence[Finding]) -> str:
    return next((found.detail for found in findings if found.rule == "fail-to-pass"), "") or "every rule passes"


def _decision(
    instance_id: str,
    state: State,
    stage: str,
    code: Reason | None,
    sentence: str,
    evidence: tuple[Evidence, ...] = (),
    final: bool = True,
) -> Decision:
    return Decision(
        instance_id=instance_id,
        state=state,
        stage=stage,
        code=code,
        sentence=sentence,
        evidence=evidence,
        final=final,
    )
