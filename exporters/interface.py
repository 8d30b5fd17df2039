"""Records and protocol of stage 4: what a release is made of, before and after the publishing function."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from miner.core.reasons import Reason
from miner.core.records import (
    Candidate,
    Decision,
    Environment,
    Fact,
    Finding,
    Recipe,
    Record,
    State,
    Verdict,
    Visibility,
)


class ReleaseItem(Record):
    """Everything known about one candidate, recomputed from its facts. Not fit to be published: see `PublicItem`.

    Attributes:
        month: of the merge in UTC, as discovery noted it; None for a release pair.
        trail: the facts that the item was computed from, in the order in which they were used.
        test_command: runs tests in the image, in the project's folder; files or ids of tests are appended to it.
        lock_text: the locked requirements that the environment was installed from.
        build_lock_text: the locked requirements that the project was built with.
        dockerfile: the recipe for people.
        image_name: the name by which a registry finds the image; without one it is the local tag.
    """

    decision: Decision
    findings: tuple[Finding, ...] = ()
    visibility: Visibility
    source: str
    repo: str | None = None
    month: str | None = None
    trail: tuple[Fact, ...] = ()
    candidate: Candidate | None = None
    recipe: Recipe | None = None
    environment: Environment | None = None
    verdict: Verdict | None = None
    test_command: str | None = None
    lock_text: str | None = None
    build_lock_text: str | None = None
    dockerfile: str | None = None
    image_name: str | None = None

    @property
    def instance_id(self) -> str:
        """Id of the candidate."""
        return self.decision.instance_id


class Loader(Protocol):
    """Recomputes an item from the facts that a release names."""

    def __call__(self, instance_id: str, trail: Sequence[Fact], decision: Decision) -> ReleaseItem:
        """Return the item of a candidate; `decision` is the frozen one."""
        ...


class FactNote(Record):
    """What may leave about a fact: ids, codes, numbers and hashes, nothing that was read or printed."""

    id: str
    content_hash: str
    kind: str
    subject: str
    ordinal: int
    producer: str
    epoch: int
    outcome: str
    network: bool
    observed_at: datetime
    measures: dict[str, float]
    logs: dict[str, str]


class Task(Record):
    """The parts of an accepted, public candidate that make its row."""

    candidate: Candidate
    recipe: Recipe
    environment: Environment
    verdict: Verdict
    test_command: str
    lock_text: str
    build_lock_text: str
    dockerfile: str
    image_name: str


class PublicItem(Record):
    """What may leave about one candidate. Made by `exporters.publish.redact` and by nothing else (law 5)."""

    source: str
    visibility: Visibility
    decision: Decision
    findings: tuple[Finding, ...]
    facts: tuple[FactNote, ...]
    month: str | None = None
    repo: str | None = None
    task: Task | None = None

    @property
    def instance_id(self) -> str:
        """Id of the candidate."""
        return self.decision.instance_id


class LeftOut(Record):
    """How many candidates of a source and state a release leaves out, and why."""

    reason: Reason
    source: str
    state: State
    count: int


class Published(Record):
    """The candidates of a release after the publishing function, by instance id, and what was left out."""

    items: tuple[PublicItem, ...]
    left_out: tuple[LeftOut, ...] = ()
    hides_subjects: bool = False
