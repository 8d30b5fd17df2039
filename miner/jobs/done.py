"""What a job did, and what that is in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exporters.release import Release
from miner.core.records import Decision, State
from miner.jobs.archive import notes_of
from miner.jobs.context import Context
from miner.jobs.estimate import Extrapolation
from miner.jobs.funnel import discovery, funnel
from miner.jobs.models import models_line
from miner.jobs.summary import Summary
from miner.jobs.watch import Watch, spent_in


@dataclass(frozen=True)
class Done:
    """What a job did.

    Attributes:
        found: how many candidates discovery found.
        decisions: on those that were reached, by id.
        release: None where none was written.
        pilot: of a pilot.
    """

    found: int
    decisions: Sequence[Decision]
    release: Release | None = None
    pilot: Extrapolation | None = None


def summary(context: Context, watch: Watch, done: Done, seconds: float) -> Summary:
    """Return a run in numbers."""
    decisions, release = done.decisions, done.release
    used = {name for decision in decisions for name in decision.trail}
    accepted = sum(decision.state is State.ACCEPTED for decision in decisions)
    return Summary(
        run_id=context.run_id,
        decisions=tuple(decisions),
        discovery=discovery(context.ledger.intake(context.run_id), len(decisions), done.found - len(decisions)),
        funnel=funnel(decisions),
        measured=len(context.new_facts),
        known=len(used - context.new_facts),
        faulted=sum(decision.state is State.FAULTED for decision in decisions),
        seconds=round(seconds, 1),
        release=str(release.folder) if release is not None else "",
        tasks=release.accepted if release is not None else accepted,
        spent=spent_in(context),
        models=models_line(context),
        notes=notes_of(context),
        capped=watch.caps.stopped,
        pilot=done.pilot,
    )
