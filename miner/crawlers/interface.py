"""What a source of pull requests is: its Protocol, its records and its errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from miner.core.blobs import BlobStore
from miner.core.reasons import Reason
from miner.core.records import Candidate, Observation, Producer, Record

if TYPE_CHECKING:  # which reads archives, and these raise what is defined here
    from miner.crawlers.git_repo import GitRepo

Item = TypeVar("Item")


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


class Source(Protocol[Item]):
    """A source of pull requests: two measuring functions, and one pure function of what they saw.

    The producer of a candidate's first fact says which source it comes from (`miner.crawlers.source_of`).

    Attributes:
        name: the value of the `source` column.
        look_up_producer: part of the key of what `look_up` sees.
        extract_producer: part of the key of what `extract` sees.
    """

    name: str
    look_up_producer: Producer
    extract_producer: Producer

    def discover(self) -> Iterable[Item]:
        """Return the items to look at, in a fixed order."""
        ...

    def subject(self, item: Item) -> str:
        """Return the instance id of an item."""
        ...

    def look_up(self, item: Item) -> Observation:
        """Ask the network what it says about an item."""
        ...

    def extract(self, item: Item, looked_up: Mapping[str, Any], logs: Mapping[str, str]) -> Observation:
        """Bring both trees into a repository and read from them what later stages compute with.

        What comes out depends on the payload `looked_up` alone; the logs of that fact say where to get it.
        """
        ...

    def repository(
        self, item: Item, looked_up: Mapping[str, Any], logs: Mapping[str, str], extracted: Mapping[str, Any]
    ) -> GitRepo:
        """Return the repository with both trees, made again if it was lost."""
        ...

    @staticmethod
    def candidate(
        origin: Mapping[str, Any],
        looked_up: Mapping[str, Any],
        extracted: Mapping[str, Any],
        digests: Mapping[str, str],
        blobs: BlobStore,
    ) -> Candidate | Rejection:
        """Compute the candidate from what identifies the item and what the two facts hold."""
        ...
