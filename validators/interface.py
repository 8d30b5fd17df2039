"""What validators exchange: the case of one candidate, a rule that judges it, and a fault that prevents it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from installers.broken import Broken
from installers.interface import Attempt
from installers.share import Suite
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
from miner.crawlers.github.answers import Crawled
from miner.crawlers.github.linking import Judged


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
        source: name of the source, as its first fact says.
        negatives: negative observations of the stages, in any order.
        crawled: what the forge says about the pull request; None for a release pair.
        declared: the recipe that the base tree declares.
        recipe: of the attempt that was chosen; the declared one where none was.
        attempts: of the ladder, in order.
        attempt: the one whose environment is taken.
        suite: what the candidate's own tests say about that environment at the base commit.
        broken: test files that cannot be collected in it, which the patches do not explain.
        needs: what most of the failing ones ask for and no environment of ours has (a service, a device).
        suite_evidence: where the report and the log of that run are.
        links: what was made of everything that says which issues it closes.
        before_evidence: where the report and the log of the run before the gold patch are.
        after_evidence: the same of the run after it.
    """

    instance_id: str
    source: str | None = None
    negatives: tuple[Negative, ...] = ()
    crawled: Crawled | None = None
    links: Judged | None = None
    candidate: Candidate | None = None
    declared: Recipe | None = None
    recipe: Recipe | None = None
    attempts: tuple[Attempt, ...] = ()
    attempt: Attempt | None = None
    environment: Environment | None = None
    suite: Suite | None = None
    broken: tuple[Broken, ...] = ()
    needs: Reason | None = None
    suite_evidence: tuple[Evidence, ...] = ()
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


Judge = Callable[[Case, Policy], Judgement]


def any_case(_case: Case) -> bool:
    """Whether a rule for all sources applies: it does."""
    return True


@dataclass(frozen=True)
class Rule:
    """One rule about a candidate.

    Attributes:
        codes: the reasons that this rule may give; a negative observation with one of them fails it.
        judge: what the rule says about a case without such an observation.
        step: a step of the pipeline: it was done if a later one was come to.
        applies: whether a case is of a source that this rule is about; one with such an observation is.
    """

    name: str
    stage: Stage
    codes: tuple[Reason, ...]
    judge: Judge
    step: bool = False
    applies: Callable[[Case], bool] = any_case

    def is_about(self, case: Case) -> bool:
        """Whether this rule has something to say about a case."""
        return self.applies(case) or any(negative.code in self.codes for negative in case.negatives)

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
