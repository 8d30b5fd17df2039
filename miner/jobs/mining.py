"""Mining: bring each candidate as far as its facts allow, and decide on it; STEPS in `miner.jobs.steps` is the way."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from exporters.publish import SECRET_RULE
from miner.core.errors import InfrastructureFault
from miner.core.ledger import fact_id
from miner.core.memo import Emit, is_final
from miner.core.reasons import Reason, Stage
from miner.core.records import Decision, Fact, Finding, State
from miner.crawlers.interface import Item
from miner.jobs.context import Context
from miner.jobs.faults import fault_from, infrastructure_fault
from miner.jobs.release import screen
from miner.jobs.rounds import in_rounds
from miner.jobs.steps import STEPS, Bench
from miner.jobs.watch import Watch
from validators.decide import decide
from validators.interface import Fault
from validators.rules import evaluate

_MANY = 200
_SOON_S = 0.5
_UNSCREENED = Finding(rule=SECRET_RULE, stage=Stage.EXPORT, outcome="unmeasured")


@dataclass(frozen=True)
class Mined:
    """What became of one candidate, and the fault that it met, if one did; nobody holds more than one of them.

    Attributes:
        error: the fault, where it is one of the infrastructure; None for a bug.
        negatives: facts of this run that it was rejected by, and that depended on a network service.
    """

    decision: Decision
    findings: tuple[Finding, ...]
    fault: Fault | None = None
    error: InfrastructureFault | None = None
    negatives: tuple[Fact, ...] = ()

    @property
    def name(self) -> str:
        """The candidate."""
        return self.decision.instance_id

    @property
    def group(self) -> str:
        """Its repository: what an instance id begins with."""
        return self.decision.instance_id.rpartition("-")[0]

    def in_doubt(self) -> Mined:
        """Return it as not final, where it rests on a service that may not have been well."""
        if not self.negatives or not self.decision.final:
            return self
        return replace(self, decision=self.decision.model_copy(update={"final": False}))

    def suspected(self, fault: InfrastructureFault) -> Mined:
        """Return it as faulted: what it was rejected by says nothing."""
        met = Fault(code=fault.reason, stage=Stage(self.decision.stage), detail=f"suspect: {fault}")
        kept = tuple(finding for finding in self.findings if finding.outcome == "pass")
        decision = Decision(
            instance_id=self.name,
            state=State.FAULTED,
            stage=self.decision.stage,
            code=met.code,
            sentence=met.detail,
            trail=self.decision.trail,
        )
        return replace(self, decision=decision, findings=kept, fault=met, error=fault, negatives=())


def mine_all(context: Context, items: Sequence[Item], watch: Watch) -> list[Decision]:
    """Mine all candidates and return the decisions on those that were reached, by id."""

    def store(fact: Fact) -> None:
        context.store(fact)
        watch.report.fact(fact)

    watch.report.begin("mine", len(items))
    name, workers = context.source.subject, context.settings.run.workers
    decisions: dict[str, Decision] = {}
    rounds = in_rounds(context, watch, partial(mine, context), items, store, name=name, workers=workers)
    with _Kept(context) as kept, closing(rounds) as results:
        for mined in results:
            decision, before = mined.decision, decisions.get(mined.name)
            kept.add(mined)
            context.disk.look()
            decisions[mined.name] = decision
            if before is None or before.model_copy(update={"final": decision.final}) != decision:
                watch.report.decided(decision)
    return [decisions[name] for name in sorted(decisions)]


class _Kept:
    """Stores what was decided, many at once where they come quickly; what a kill loses of it, the next run computes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting: list[tuple[Decision, tuple[Finding, ...]]] = []
        self._stored_at = 0.0

    def __enter__(self) -> _Kept:
        return self

    def __exit__(self, *_: object) -> None:
        self._store()

    def add(self, mined: Mined) -> None:
        """Store what was decided on a candidate, now or soon, and now the fault that it met."""
        decision, fault = mined.decision, mined.fault
        self._waiting.append((decision, mined.findings))
        if len(self._waiting) >= _MANY or time.monotonic() - self._stored_at >= _SOON_S:
            self._store()
        if fault is not None:
            message = "\n".join([fault.detail, *(evidence.excerpt for evidence in fault.evidence)])
            self._context.ledger.add_fault(self._context.run_id, decision.instance_id, fault.code, message)

    def _store(self) -> None:
        context, waiting = self._context, self._waiting
        self._waiting, self._stored_at = [], time.monotonic()
        context.ledger.decide_all(context.run_id, context.settings.policy_hash, waiting)


def mine(context: Context, item: Item, emit: Emit) -> Mined:
    """Bring one candidate as far as its facts allow, and decide on it."""
    with context.disk.in_use():
        return _mine(context, item, emit)


def _mine(context: Context, item: Item, emit: Emit) -> Mined:
    instance_id = context.source.subject(item)
    bench = Bench(context, context.memo(emit), item, instance_id)
    trail: tuple[Fact, ...] = ()
    fault, error = None, None
    findings = evaluate(case := context.reader.case(instance_id, trail), context.settings.policy)
    for stage, step in STEPS:
        try:
            trail += step(bench, case, trail)
            case = context.reader.case(instance_id, trail)
        except Exception as caught:  # noqa: BLE001 - a bug must not end the other candidates' run
            fault, error = _met(caught, stage, context)
            trail = tuple(bench.memo.used)
        findings = evaluate(case, context.settings.policy)
        if fault is not None or any(finding.outcome == "fail" for finding in findings):
            break
    if fault is None:
        try:
            findings += screen(context.ledger, context.reader, decide(instance_id, findings), trail)
        except Exception as caught:  # noqa: BLE001 - as above
            fault, error = _met(caught, Stage.EXPORT, context)
            findings += (_UNSCREENED,)
    decision = decide(instance_id, findings, fault, _provisional(context, trail))
    decision = decision.model_copy(update={"trail": tuple(fact_id(fact.key) for fact in trail)})
    if decision.state is State.REJECTED:  # what comes after that was not measured, and goes without saying
        findings = tuple(finding for finding in findings if finding.outcome != "unmeasured")
    return Mined(decision, findings, fault, error, _negatives(context, decision, trail))


def _met(caught: Exception, stage: Stage, context: Context) -> tuple[Fault, InfrastructureFault | None]:
    return fault_from(caught, stage, context.settings), infrastructure_fault(caught)


def _provisional(context: Context, trail: Sequence[Fact]) -> set[Reason]:
    """Return the reasons that rest on one answer of a network service."""
    return {Reason(fact.outcome) for fact in trail if not fact.ok and not is_final(context.ledger.find(fact.key))}


def _negatives(context: Context, decision: Decision, trail: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return what a candidate was rejected by just now, if a network service said so."""
    if decision.state is not State.REJECTED:
        return ()
    found = tuple(fact for fact in trail if not fact.ok and fact.network and fact_id(fact.key) in context.new_facts)
    return found if any(fact.outcome == decision.code for fact in found) else ()
