"""What a job answers when it is done."""

from __future__ import annotations

from miner.core.records import Decision, Record
from miner.jobs.funnel import FunnelStage


class Summary(Record):
    """A run in numbers.

    Attributes:
        measured: facts that this run added.
        known: facts that the decisions rest on and that were there before.
        release: folder of the release, as configured.
        tasks: rows of the release.
    """

    run_id: str
    decisions: tuple[Decision, ...]
    funnel: tuple[FunnelStage, ...]
    measured: int
    known: int
    faulted: int
    seconds: float
    release: str
    tasks: int


class Remeasured(Record):
    """One fact that was taken out of use, against the one that stands in its place."""

    subject: str
    kind: str
    old: str
    new: str
    same: bool

    @property
    def verdict(self) -> str:
        """Whether the content changed."""
        return "same content" if self.same else "changed"


class Correction(Record):
    """What measuring again came to.

    Attributes:
        left: facts that are out of use with nothing in their place: no candidate of these settings came to them.
        faulted: candidates that met a fault.
    """

    changes: tuple[Remeasured, ...]
    left: int
    faulted: int
