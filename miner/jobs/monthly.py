"""The monthly mining job: find candidates, bring each as far as its facts allow, decide, and write the release.

for each unit:       discover -> what is to be mined (a repository's merged pull requests; all pairs)
for each candidate:  look_up -> extract -> build -> run_before -> run_after     (STEPS; each adds facts)
after every step the case is computed anew; the first failing finding ends the way
of what passes:      screen -> no secret in what would be published
then:                decisions -> funnel -> release
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from exporters.publish import SECRET_RULE
from exporters.release import Release
from miner.core.errors import InfrastructureFault, UsageError
from miner.core.ledger import fact_id
from miner.core.memo import Emit, is_final
from miner.core.reasons import Reason, Stage
from miner.core.records import Decision, Fact, Finding, State
from miner.core.settings import Settings
from miner.crawlers.interface import Item, Source
from miner.engines.local import LocalEngine
from miner.jobs.breakers import Breaker
from miner.jobs.context import Context, open_context
from miner.jobs.discovery import discover
from miner.jobs.faults import fault_from, infrastructure_fault
from miner.jobs.funnel import funnel
from miner.jobs.progress import Reporter, reporter
from miner.jobs.release import screen, write
from miner.jobs.steps import STEPS, Bench
from miner.jobs.summary import Summary
from validators.decide import decide
from validators.interface import Fault
from validators.rules import evaluate

_UNSCREENED = Finding(rule=SECRET_RULE, stage=Stage.EXPORT, outcome="unmeasured")


@dataclass(frozen=True)
class Mined:
    """What became of one candidate, and the fault that it met, if one did; nobody holds more than one of them.

    Attributes:
        error: the fault, where it is one of the infrastructure; None for a bug.
    """

    decision: Decision
    findings: tuple[Finding, ...]
    fault: Fault | None = None
    error: InfrastructureFault | None = None


def run(settings: Settings, *, quiet: bool = False, source: Source[Any] | None = None) -> Summary:
    """Run the job; safe to stop and to repeat at any moment.

    Args:
        settings: of the run.
        quiet: say nothing while it goes on.
        source: where candidates come from; what the settings say by default.

    Raises:
        LedgerBusy: another run writes to this ledger.
        InfrastructureFault: the engine, the disk or the network is gone; what was completed is kept.
        Interrupted: Ctrl-C or SIGTERM.
    """
    started = time.monotonic()
    with open_context(settings, "run", source) as context:
        decisions, release = mine_and_release(context, quiet=quiet)
        return _summary(context, decisions, release, time.monotonic() - started)


def mine_and_release(context: Context, *, quiet: bool) -> tuple[list[Decision], Release]:
    """Mine all candidates of a context's source, decide on each, and write the release.

    Raises:
        UsageError: there are none: a release would be replaced by an empty one.
    """
    units = context.source.units(context.memo(context.store))
    if not units:
        raise UsageError("no candidates: `pairs` is empty", next_step="swe-miner run --config configs/demo.toml")
    with reporter(quiet=quiet) as report:
        report.begin("discover", len(units))
        items = discover(context, units, report)
        report.begin("mine", len(items))
        decisions = _mine_all(context, items, report)
    return decisions, write(context.settings, context.ledger, context.reader, decisions)


def _mine_all(context: Context, items: Sequence[Item], report: Reporter) -> list[Decision]:
    def store(fact: Fact) -> None:
        context.store(fact)
        report.fact(fact)

    engine: LocalEngine[Item, Mined] = LocalEngine(context.settings.run.workers, context.stop, context.abort)
    breaker = Breaker()
    decisions: list[Decision] = []
    with closing(engine.map(partial(mine, context), items, store)) as results:
        for mined in results:
            _keep(context, mined)
            decisions.append(mined.decision)
            report.decided(mined.decision)
            breaker.note(mined.error)
    return sorted(decisions, key=lambda one: one.instance_id)


def _keep(context: Context, mined: Mined) -> None:
    """Store what was decided on a candidate, and the fault that it met."""
    decision, fault = mined.decision, mined.fault
    context.ledger.decide(context.run_id, context.settings.policy_hash, decision, mined.findings)
    if fault is not None:
        message = "\n".join([fault.detail, *(evidence.excerpt for evidence in fault.evidence)])
        context.ledger.add_fault(context.run_id, decision.instance_id, fault.code, message)


def mine(context: Context, item: Item, emit: Emit) -> Mined:
    """Bring one candidate as far as its facts allow, and decide on it."""
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
    ids = tuple(fact_id(fact.key) for fact in trail)
    return Mined(decision.model_copy(update={"trail": ids}), findings, fault, error)


def _met(caught: Exception, stage: Stage, context: Context) -> tuple[Fault, InfrastructureFault | None]:
    return fault_from(caught, stage, context.settings), infrastructure_fault(caught)


def _provisional(context: Context, trail: Sequence[Fact]) -> set[Reason]:
    """Return the reasons that rest on one answer of a network service."""
    return {Reason(fact.outcome) for fact in trail if not fact.ok and not is_final(context.ledger.find(fact.key))}


def _summary(context: Context, decisions: Sequence[Decision], release: Release, seconds: float) -> Summary:
    used = {name for decision in decisions for name in decision.trail}
    return Summary(
        run_id=context.run_id,
        decisions=tuple(decisions),
        funnel=funnel(decisions),
        measured=len(context.new_facts),
        known=len(used - context.new_facts),
        faulted=sum(decision.state is State.FAULTED for decision in decisions),
        seconds=round(seconds, 1),
        release=str(release.folder),
        tasks=release.accepted,
    )
