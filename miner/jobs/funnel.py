"""The funnel: where candidates stop, stage by stage, in counts that add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from miner.core.reasons import Stage
from miner.core.records import Decision, Record, State

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


def funnel(decisions: Iterable[Decision]) -> tuple[FunnelStage, ...]:
    """Count decisions by the stage at which they fell. What passes one stage enters the next.

    Raises:
        ValueError: a decision stands at no stage of the funnel, or the counts do not add up.
    """
    stopped: dict[Stage, list[Decision]] = {stage: [] for stage in STAGES}
    accepted = 0
    for decision in decisions:
        if decision.state is State.ACCEPTED:
            accepted += 1
        elif decision.stage in stopped:
            stopped[Stage(decision.stage)].append(decision)
        else:
            raise ValueError(f"{decision.instance_id} stopped at {decision.stage}, which is no stage of the funnel")
    entered = accepted + sum(len(found) for found in stopped.values())
    stages = []
    for stage in STAGES:
        counted = _count(stage, entered, stopped[stage])
        stages.append(counted)
        entered = counted.passed
    if entered != accepted:
        raise ValueError(f"{entered} candidates passed all stages, {accepted} were accepted")
    return tuple(stages)


def _count(stage: Stage, entered: int, stopped: list[Decision]) -> FunnelStage:
    states = Counter(decision.state for decision in stopped)
    codes = Counter(str(decision.code) for decision in stopped if decision.state is State.REJECTED)
    return FunnelStage(
        stage=stage,
        entered=entered,
        rejected=dict(sorted(codes.items())),
        faulted=states[State.FAULTED],
        pending=states[State.PENDING],
        passed=entered - len(stopped),
    )
