"""`release.lock`: what a release was made from, so that it can be made again to the byte when the ledger has grown.

It belongs to the content: no time, duration, run or log stands in it, so that independent runs over the same inputs
write the same lock. The hashes of the measurements are in `measurements/measurements.lock.json`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from exporters.interface import FactNote, LeftOut, PublicItem, Published
from exporters.publish import redact_settings
from exporters.schema import SCHEMA_VERSION
from exporters.text import json_bytes, record_hash
from miner.core.errors import ReleaseError
from miner.core.hashing import hash_of, sha256_bytes
from miner.core.records import Decision, Finding, Record, Visibility
from miner.core.settings import Settings

_DECIDES_BYTES = ("swe-miner", "pyarrow", "jinja2", "bc-detect-secrets")


class LockedFact(Record):
    """A fact by its id, and the hash of what it says."""

    id: str
    content_hash: str


class LockedItem(Record):
    """A candidate with its frozen decision and findings, and the facts that they rest on, in order of use."""

    source: str
    visibility: Visibility
    decision: Decision
    findings: tuple[Finding, ...]
    facts: tuple[LockedFact, ...]

    @property
    def instance_id(self) -> str:
        """Id of the candidate."""
        return self.decision.instance_id


class LockedFile(Record):
    """A content file of the release."""

    path: str
    sha256: str
    size: int


class ReleaseLock(Record):
    """All that a release was made from.

    Attributes:
        settings: the portable settings whole, the policy among them; no pairs where they would name hold-out subjects.
        facts_root: Merkle root of all facts by id and content hash.
        files: all content files except the lock itself; empty in a draft.
        seal: hash of everything else in the lock.
    """

    schema_version: int
    name: str
    versions: dict[str, str]
    sources: tuple[str, ...]
    settings: dict[str, Any]
    settings_hash: str
    policy_hash: str
    base_images: tuple[str, ...]
    items: tuple[LockedItem, ...]
    left_out: tuple[LeftOut, ...]
    facts_root: str
    files: tuple[LockedFile, ...] = ()
    seal: str = ""


def content_versions() -> dict[str, str]:
    """Return the versions of the code that decides the bytes of a release."""
    return {name: version(name) for name in _DECIDES_BYTES}


def make_lock(published: Published, settings: Settings, versions: Mapping[str, str]) -> ReleaseLock:
    """Return the draft of a lock: everything but the files, which are rendered from it."""
    items = tuple(_locked(item) for item in published.items)
    tasks = [item.task for item in published.items if item.task]
    return ReleaseLock(
        schema_version=SCHEMA_VERSION,
        name=settings.release.name,
        versions=dict(versions),
        sources=tuple(sorted(settings.release.sources)),
        settings=redact_settings(settings.portable(), hides_subjects=published.hides_subjects),
        settings_hash=settings.hash,
        policy_hash=settings.policy_hash,
        base_images=tuple(sorted({task.environment.base_digest for task in tasks})),
        items=items,
        left_out=published.left_out,
        facts_root=merkle_root({fact.id: fact.content_hash for item in items for fact in item.facts}),
    )


def seal(lock: ReleaseLock, content: Mapping[str, bytes]) -> ReleaseLock:
    """Return the lock with its content files and the hash of itself."""
    files = (LockedFile(path=path, sha256=sha256_bytes(data), size=len(data)) for path, data in sorted(content.items()))
    unsealed = lock.model_copy(update={"files": tuple(files), "seal": ""})
    return unsealed.model_copy(update={"seal": record_hash(unsealed)})


def lock_bytes(lock: ReleaseLock) -> bytes:
    """Return the text of `release.lock`."""
    return json_bytes(lock)


def read_lock(path: Path) -> ReleaseLock:
    """Read a `release.lock`.

    Raises:
        ReleaseError: it cannot be read, has another schema, or is not what was written.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReleaseError(f"{path}: cannot be read ({error.strerror})") from error
    return parse_lock(data, str(path))


def parse_lock(data: bytes, where: str) -> ReleaseLock:
    """Return the lock in these bytes; `where` names them in errors.

    Raises:
        ReleaseError: the bytes have another schema, or are not what was written.
    """
    damaged = f"{where}: damaged, or not a release.lock"
    try:
        known = _Version.model_validate_json(data).schema_version
    except ValidationError as error:
        raise ReleaseError(f"{damaged}: {_first(error)}") from error
    if known != SCHEMA_VERSION:
        raise ReleaseError(
            f"{where}: has schema {known}, this program knows {SCHEMA_VERSION}",
            next_step="use the version of swe-miner that made the release",
        )
    try:
        lock = ReleaseLock.model_validate_json(data)
    except ValidationError as error:
        raise ReleaseError(f"{damaged}: {_first(error)}") from error
    if lock.seal != record_hash(lock.model_copy(update={"seal": ""})):
        raise ReleaseError(f"{damaged}: its seal does not fit its content")
    return lock


def merkle_root(facts: Mapping[str, str]) -> str:
    """Return the Merkle root of facts by id (tree of RFC 6962, section 2.1; a leaf is id and content hash)."""
    level = [hashlib.sha256(f"\0{name}\n{facts[name]}".encode()).digest() for name in sorted(facts)]
    if not level:
        return hashlib.sha256().hexdigest()
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [hashlib.sha256(b"\1" + b"".join(p)).digest() if len(p) == 2 else p[0] for p in pairs]
    return level[0].hex()


class MeasurementsLock(Record):
    """Hashes of the measurements: they differ between runs, and are the same for the same facts."""

    schema_version: int
    facts: dict[str, str]
    facts_root: str
    files: tuple[LockedFile, ...]


def lock_measurements(
    items: Iterable[PublicItem], runs: Mapping[str, str], files: Mapping[str, bytes]
) -> MeasurementsLock:
    """Return the hash of what each fact of a release measured, and of the measurement files."""
    facts = {fact.id: measurement_hash(fact, runs.get(fact.id)) for item in items for fact in item.facts}
    locked = (LockedFile(path=path, sha256=sha256_bytes(data), size=len(data)) for path, data in sorted(files.items()))
    return MeasurementsLock(
        schema_version=SCHEMA_VERSION, facts=facts, facts_root=merkle_root(facts), files=tuple(locked)
    )


def measurement_hash(fact: FactNote, run_id: str | None) -> str:
    """Return the hash of a fact's measurements: what its content hash leaves out."""
    return hash_of({**fact.model_dump(mode="json", include={"observed_at", "measures", "logs"}), "run_id": run_id})


def _locked(item: PublicItem) -> LockedItem:
    facts = tuple(LockedFact(id=fact.id, content_hash=fact.content_hash) for fact in item.facts)
    known = {fact.id for fact in facts}
    if missing := [name for name in item.decision.trail if name not in known]:
        raise ReleaseError(f"{item.instance_id}: its decision rests on facts that are not at hand: {missing}")
    return LockedItem(
        source=item.source, visibility=item.visibility, decision=item.decision, findings=item.findings, facts=facts
    )


class _Version(BaseModel):
    schema_version: int


def _first(error: ValidationError) -> str:
    item = error.errors()[0]
    return f"{'.'.join(str(part) for part in item['loc']) or 'whole file'}: {item['msg']}"
