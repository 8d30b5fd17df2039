"""What validators exchange: the case of one candidate, a rule that judges it, and a fault that prevents it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from miner.core.reasons import Reason, Stage
from miner.core.records import (
    Candidate,
    Environment,
    Evidence,
    Finding,
    Legible,
    Outcome,
    Recipe,
    Record,
    RunOutcome,
    Verdict,
)
from miner.core.settings import Policy


class Negative(Record):
    """A negative observation: a step of a stage could not be done, for a reason that lies in the task.

    Attributes:
        detail: one sentence for people, with the names and values that matter.
    """

    code: Reason
    detail: str = ""
    evidence: tuple[Evidence, ...] = ()


class Case(Record):
    """Everything that is known of one candidate, computed from facts; what was not measured is None or empty.

    Attributes:
        negatives: negative observations of the stages, in any order.
        before_evidence: where the report and the log of the run before the gold patch are.
        after_evidence: the same of the run after it.
    """

    instance_id: str
    negatives: tuple[Negative, ...] = ()
    candidate: Candidate | None = None
    recipe: Recipe | None = None
    environment: Environment | None = None
    before: RunOutcome | None = None
    after: RunOutcome | None = None
    verdict: Verdict | None = None
    before_evidence: tuple[Evidence, ...] = ()
    after_evidence: tuple[Evidence, ...] = ()


class Fault(Record):
    """A fault of the infrastructure that keeps a candidate from being judged (law 2)."""

    code: Reason
    stage: Stage
    detail: Legible = ""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """What the function of a rule returns; the rule makes it a finding."""

    outcome: Outcome
    code: Reason | None = None
    value: float | None = None
    detail: str = ""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Rule:
    """One rule about a candidate.

    Attributes:
        codes: the reasons that this rule may give; a negative observation with one of them fails it.
        judge: what the rule says about a case without such an observation.
        step: a step of the pipeline: it was done if a later one was come to.
    """

    name: str
    stage: Stage
    codes: tuple[Reason, ...]
    judge: Callable[[Case, Policy], Judgement]
    step: bool = False

    def __call__(self, case: Case, policy: Policy) -> Finding:
        """Judge a case."""
        for negative in case.negatives:
            if negative.code in self.codes:
                detail = negative.detail or negative.code.meaning
                return self.finding(Judgement("fail", negative.code, detail=detail, evidence=negative.evidence))
        return self.finding(self.judge(case, policy))

    def finding(self, said: Judgement) -> Finding:
        """Return a judgement as a finding of this rule."""
        return Finding(
            rule=self.name,
            stage=self.stage,
            outcome=said.outcome,
            code=said.code,
            value=said.value,
            detail=said.detail,
            evidence=said.evidence,
        )
