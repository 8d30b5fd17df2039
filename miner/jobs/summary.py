"""What a job answers when it is done."""

from __future__ import annotations

from miner.core.records import Decision, Legible, Record
from miner.jobs.caps import Spent
from miner.jobs.estimate import Extrapolation
from miner.jobs.funnel import DiscoveryCount, FunnelStage


class Summary(Record):
    """A run in numbers.

    Attributes:
        discovery: None where no month was mined.
        measured: facts that this run added.
        known: facts that the decisions rest on and that were there before.
        release: folder of the release, as configured; "" where none was written.
        tasks: candidates that were accepted.
        spent: of the forge's points, and of money.
        models: a sentence on language models: what they cost, or why none is asked.
        notes: sentences on what discovery as a whole could not see.
        capped: which cap the run stopped at, "" if at none.
        pilot: what all candidates would come to, of a pilot.
    """

    run_id: str
    decisions: tuple[Decision, ...]
    discovery: DiscoveryCount | None = None
    funnel: tuple[FunnelStage, ...]
    measured: int
    known: int
    faulted: int
    seconds: float
    release: str
    tasks: int
    spent: Spent = Spent()
    models: Legible = ""
    notes: tuple[Legible, ...] = ()
    capped: str = ""
    pilot: Extrapolation | None = None

    @property
    def units_faulted(self) -> int:
        """How many units of discovery met a fault."""
        return sum(self.discovery.faulted.values()) if self.discovery else 0


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
