"""What a source of pull requests is: its Protocol, its records and its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from miner.core.blobs import BlobStore
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Candidate, Fact, Observation, Producer, Record, Visibility

if TYPE_CHECKING:  # which reads archives, and these raise what is defined here
    from miner.crawlers.git_repo import GitRepo
    from miner.crawlers.github.answers import Crawled

Made = TypeVar("Made", bound="Item")


class Refused(Exception):
    """A property of the input that ends a measurement; the measuring function turns it into an observation.

    Args:
        reason: its code.
        detail: one sentence that names what was found, and where.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class ArchiveRefused(Refused):
    """The archive is corrupt, hostile or too large."""


class Rejection(Record):
    """Why facts make no candidate: a value, never a lost exception (law 2)."""

    reason: Reason
    detail: str


def negative(reason: Reason, detail: str, *, network: bool = False) -> Observation:
    """Return a negative observation; what a person needs to know stands under `detail` of its payload."""
    return Observation(outcome=reason.value, payload={"detail": detail}, network=network)


class Item(Protocol):
    """What a source finds: something that may become a candidate."""

    @property
    def visibility(self) -> Visibility | None:
        """Who may read what about it; None: as the settings and the ledger say."""
        ...

    @property
    def origin(self) -> dict[str, Any]:
        """What identifies it, as the ledger keeps it."""
        ...

    @property
    def identity(self) -> dict[str, Any]:
        """The origin as it stands in the payload of its first fact."""
        ...

    @property
    def inputs(self) -> dict[str, Any]:
        """What its first fact depends on."""
        ...


@dataclass(frozen=True)
class Found(Generic[Made]):
    """What one unit of discovery came to.

    Attributes:
        items: what may become candidates.
        unit_id: what identifies the unit whatever its name (the forge's id of a repository).
        merged: how many changes there were to look at.
        unlinked: how many of them name no issue: they are counted, and are no candidates.
        refused: why the unit as a whole is not taken.
        notes: sentences on what could not be seen, or was seen and is odd.
    """

    items: tuple[Made, ...] = ()
    unit_id: str = ""
    merged: int = 0
    unlinked: int = 0
    refused: Rejection | None = None
    notes: tuple[str, ...] = ()


class Source(Protocol[Made]):
    """A source of pull requests: discovery, two measuring functions, and pure functions of what they saw.

    The producer of a candidate's first fact says which source it comes from (`miner.crawlers.source_of`).

    Attributes:
        name: the value of the `source` column.
        look_up_producer: part of the key of what `look_up` sees.
        extract_producer: part of the key of what `extract` sees.
    """

    name: str
    look_up_producer: Producer
    extract_producer: Producer

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the units as a whole, and of what they may lack: sentences; none before `units`."""
        ...

    def units(self, memo: Memo, /) -> tuple[str, ...]:
        """Return what discovery is split into, in a fixed order."""
        ...

    def discover(self, unit: str, memo: Memo, /) -> Found[Made]:
        """Return what one unit holds; what has to be asked for that is measured."""
        ...

    def subject(self, item: Made, /) -> str:
        """Return the instance id of an item."""
        ...

    def look_up(self, item: Made, /) -> Observation:
        """Return what the network says about an item."""
        ...

    def extract(self, item: Made, looked_up: Fact, /) -> Observation:
        """Bring both trees into a repository and read from them what later stages compute with.

        What comes out depends on the payload of `looked_up` alone; its logs say where to get it.
        """
        ...

    def repository(self, item: Made, looked_up: Fact, extracted: Fact, /) -> GitRepo:
        """Return the repository with both trees, made again if it was lost."""
        ...

    @staticmethod
    def candidate(looked_up: Fact, extracted: Fact, blobs: BlobStore, /) -> Candidate | Rejection:
        """Compute the candidate from what the two facts hold."""
        ...

    @staticmethod
    def crawled(looked_up: Fact, blobs: BlobStore, /) -> Crawled | None:
        """Return what a forge says about the pull request; None where there is no forge."""
        ...
