"""The funnel: where candidates stop, stage by stage, in counts that add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from miner.core.ledger import Ledger
from miner.core.reasons import Stage
from miner.core.records import Decision, Intake, Record, State

STAGES = (Stage.DISCOVER, Stage.EXTRACT, Stage.SCREEN, Stage.INSTALL, Stage.VALIDATE, Stage.EXPORT)


class FunnelStage(Record):
    """What happened to the candidates that entered one stage. entered = rejected + faulted + pending + passed."""

    stage: Stage
    entered: int
    rejected: dict[str, int]
    faulted: int
    pending: int
    passed: int

    @property
    def rejections(self) -> int:
        """How many candidates were rejected here, by any reason."""
        return sum(self.rejected.values())


Tally = Mapping[tuple[State, str, str | None], int]
"""Number of candidates by state, stage and code."""


def funnel(decisions: Iterable[Decision]) -> tuple[FunnelStage, ...]:
    """Count decisions by the stage at which they fell. What passes one stage enters the next.

    Raises:
        ValueError: a decision stands at no stage of the funnel.
    """
    return funnel_of(Counter((one.state, one.stage, one.code) for one in decisions))


def funnel_of(tally: Tally) -> tuple[FunnelStage, ...]:
    """Return the funnel of decisions that were counted already.

    Raises:
        ValueError: some stand at no stage of the funnel.
    """
    stopped = {key: number for key, number in tally.items() if key[0] is not State.ACCEPTED}
    for (_, stage, _), number in stopped.items():
        if stage not in STAGES:
            raise ValueError(f"{number} stopped at {stage}, which is no stage of the funnel")
    entered = sum(tally.values())
    stages = []
    for stage in STAGES:
        here = {(state, code): number for (state, at, code), number in stopped.items() if at == stage}
        counted = _count(stage, entered, here)
        stages.append(counted)
        entered = counted.passed
    return tuple(stages)


def _count(stage: Stage, entered: int, stopped: Mapping[tuple[State, str | None], int]) -> FunnelStage:
    states: Counter[State] = Counter()
    for (state, _), number in stopped.items():
        states[state] += number
    rejected = {str(code): number for (state, code), number in stopped.items() if state is State.REJECTED}
    return FunnelStage(
        stage=stage,
        entered=entered,
        rejected=dict(sorted(rejected.items())),
        faulted=states[State.FAULTED],
        pending=states[State.PENDING],
        passed=entered - states.total(),
    )


class DiscoveryCount(Record):
    """What discovery came to, in counts that add up.

    units = taken + refused + faulted; merged = linked + unlinked; linked = entered + left + twice - others.

    Attributes:
        units: repositories looked into.
        refused: how many were not taken as a whole, by reason.
        faulted: how many met a fault, by reason.
        merged: merged pull requests of the month.
        linked: those that something says close an issue: they are candidates.
        entered: candidates that entered the funnel.
        left: candidates that a run that stopped early, or a pilot, did not come to.
        twice: candidates that were found in two units.
        others: candidates in the funnel that no unit of the month holds: release pairs, or found by earlier runs.
    """

    units: int
    taken: int
    refused: dict[str, int]
    faulted: dict[str, int]
    merged: int
    unlinked: int
    linked: int
    entered: int
    left: int = 0
    twice: int = 0
    others: int = 0


def discovery(intakes: Iterable[Intake], entered: int, left: int = 0) -> DiscoveryCount | None:
    """Count what discovery came to; None where no month was mined.

    Raises:
        ValueError: the counts do not add up.
    """
    units = [intake for intake in intakes if intake.month is not None]
    if not units:
        return None
    refused = Counter(str(unit.refused) for unit in units if unit.refused)
    faulted = Counter(str(unit.fault) for unit in units if unit.fault)
    merged, linked, unlinked = (sum(getattr(unit, name) for unit in units) for name in ("merged", "linked", "unlinked"))
    if merged != linked + unlinked:
        raise ValueError(f"{merged} pull requests were merged, {linked} of them linked and {unlinked} not")
    known = entered + left
    return DiscoveryCount(
        units=len(units),
        taken=len(units) - refused.total() - faulted.total(),
        refused=dict(sorted(refused.items())),
        faulted=dict(sorted(faulted.items())),
        merged=merged,
        unlinked=unlinked,
        linked=linked,
        entered=entered,
        left=left,
        twice=max(0, linked - known),
        others=max(0, known - linked),
    )


class Funnel(Record):
    """Discovery, where a month was mined, and the stages after it."""

    discovery: DiscoveryCount | None
    stages: tuple[FunnelStage, ...]


def newest_intake(ledger: Ledger) -> list[Intake]:
    """Return what each unit of each month came to in the newest run that looked into it."""
    by_name: dict[tuple[str | None, str], Intake] = {}
    for run in ledger.runs():
        for intake in ledger.intake(run.run_id):
            by_name.pop((intake.month, intake.unit), None)  # so that the newest is the last
            by_name[intake.month, intake.unit] = intake
    newest = {(intake.month, intake.unit_id or intake.unit): intake for intake in by_name.values()}
    return list(newest.values())
