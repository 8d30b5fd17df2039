"""Building a release, and rebuilding it from its lock: both render the same function of lock and candidates.

content        data/, rejected.parquet, manifest.json, README.md, release.lock
measurements   measurements/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from exporters.card import card_bytes
from exporters.folder import write_release
from exporters.interface import Loader, PublicItem, ReleaseItem
from exporters.lock import (
    LockedItem,
    ReleaseLock,
    content_versions,
    lock_bytes,
    lock_measurements,
    make_lock,
    read_lock,
    seal,
)
from exporters.manifest import manifest_bytes
from exporters.parquet import parquet_bytes
from exporters.publish import redact, select
from exporters.rows import measurement_rows, rejected_rows, task_rows, unmeasured_rows
from exporters.schema import MEASUREMENTS, REJECTED, TASKS, UNMEASURED
from exporters.text import json_bytes
from miner.core.blobs import BlobStore
from miner.core.errors import InfrastructureFault, ReleaseError
from miner.core.ledger import Ledger, content_hash
from miner.core.records import Fact, State
from miner.core.settings import Measure, Settings

LOCK = "release.lock"
MEASUREMENTS_LOCK = "measurements/measurements.lock.json"


@dataclass(frozen=True, slots=True)
class Release:
    """A written release: how many candidates ended where, and whether the folder had to be changed.

    Attributes:
        same_measurements: the measurements are those that lie beside the lock; None where there are none to compare.
    """

    folder: Path
    lock: ReleaseLock
    accepted: int
    rejected: int
    unmeasured: int
    left_out: int
    changed: bool
    same_measurements: bool | None = None


def build(
    items: Iterable[ReleaseItem],
    settings: Settings,
    versions: Mapping[str, str],
    folder: Path,
    runs: Mapping[str, str] | None = None,
) -> Release:
    """Build the release of these candidates in a folder.

    Args:
        items: all candidates, accepted or not.
        settings: of the run; `settings.release` says what is taken.
        versions: of the code, usually `content_versions()`.
        folder: becomes the release.
        runs: maps the id of a fact to the run that measured it.

    Raises:
        ReleaseError: the items do not make a release, or the folder cannot become one.
        DiskFull: no space is left.
    """
    published = select(items, settings.release.sources)
    draft = make_lock(published, settings, versions)
    return _write(folder, draft, published.items, runs or {})


def rebuild(lock_path: Path, ledger: Ledger, blobs: BlobStore, loader: Loader, folder: Path) -> Release:
    """Build a release again from its lock: the same bytes, whatever the ledger has learned since.

    Raises:
        ReleaseError: the lock is damaged, a fact or blob is missing or changed, or other bytes come out.
        DiskFull: no space is left.
    """
    lock = read_lock(lock_path)
    items = tuple(_load(locked, ledger, blobs, loader) for locked in lock.items)
    runs = ledger.runs_of(fact.id for locked in lock.items for fact in locked.facts)
    before = _read(lock_path.parent / MEASUREMENTS_LOCK)
    release = _write(folder, lock, items, runs)
    same = None if before is None else before == _read(folder / MEASUREMENTS_LOCK)
    return replace(release, same_measurements=same)


def render(
    lock: ReleaseLock, items: Sequence[PublicItem], runs: Mapping[str, str]
) -> tuple[ReleaseLock, dict[str, bytes]]:
    """Return the sealed lock and all files by relative path. A draft of a lock is sealed, a sealed one is checked.

    Raises:
        ReleaseError: a sealed lock names other bytes than these.
    """
    content = _content(lock, items)
    sealed = seal(lock, content)
    if lock.seal and lock != sealed:
        raise _other_bytes(lock, sealed)
    return sealed, {**content, LOCK: lock_bytes(sealed), **_measurements(items, runs)}


def _content(lock: ReleaseLock, items: Sequence[PublicItem]) -> dict[str, bytes]:
    measure = Measure.model_validate(lock.settings["measure"])
    return {
        TASKS.path: parquet_bytes(TASKS, task_rows(items, measure)),
        REJECTED.path: parquet_bytes(REJECTED, rejected_rows(items)),
        "manifest.json": manifest_bytes(items, lock.policy_hash),
        "README.md": card_bytes(lock, items),
    }


def _measurements(items: Sequence[PublicItem], runs: Mapping[str, str]) -> dict[str, bytes]:
    files = {
        MEASUREMENTS.path: parquet_bytes(MEASUREMENTS, measurement_rows(items, runs)),
        UNMEASURED.path: parquet_bytes(UNMEASURED, unmeasured_rows(items)),
    }
    return {**files, MEASUREMENTS_LOCK: json_bytes(lock_measurements(items, runs, files))}


def _write(folder: Path, lock: ReleaseLock, items: Sequence[PublicItem], runs: Mapping[str, str]) -> Release:
    sealed, files = render(lock, items, runs)
    states = [item.decision.state for item in items]
    return Release(
        folder=folder,
        lock=sealed,
        accepted=states.count(State.ACCEPTED),
        rejected=states.count(State.REJECTED),
        unmeasured=states.count(State.FAULTED) + states.count(State.PENDING),
        left_out=sum(row.count for row in sealed.left_out),
        changed=write_release(folder, files),
    )


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _other_bytes(lock: ReleaseLock, sealed: ReleaseLock) -> ReleaseError:
    wanted = {file.path: file.sha256 for file in lock.files}
    made = {file.path: file.sha256 for file in sealed.files}
    names = ", ".join(sorted(name for name in wanted | made if wanted.get(name) != made.get(name)))
    now = content_versions()
    others = [f"{name} {old} (now {now.get(name)})" for name, old in lock.versions.items() if now.get(name) != old]
    why = f"; the release was made with {', '.join(others)}" if others else ""
    return ReleaseError(
        f"rebuilding gives other bytes for {names}{why}",
        next_step="use the versions that the lock names; other code makes another release, under another name",
    )


def _load(locked: LockedItem, ledger: Ledger, blobs: BlobStore, loader: Loader) -> PublicItem:
    trail = [_fact(locked.instance_id, fact.id, fact.content_hash, ledger, blobs) for fact in locked.facts]
    try:
        item = loader(locked.instance_id, trail, locked.decision)
    except InfrastructureFault as error:
        raise ReleaseError(f"{locked.instance_id} cannot be computed from its facts: {error}") from error
    frozen = {name: getattr(locked, name) for name in ("source", "visibility", "decision", "findings")}
    public = redact(item.model_copy(update={**frozen, "trail": tuple(trail)}))
    if public is None:
        raise ReleaseError(f"{locked.instance_id} is held out, so that no release may name it")
    return public


def _fact(instance_id: str, name: str, expected: str, ledger: Ledger, blobs: BlobStore) -> Fact:
    fact = ledger.get(name)
    if fact is None:
        raise ReleaseError(f"{instance_id}: fact {name} is not in the ledger")
    if content_hash(fact) != expected:
        raise ReleaseError(f"{instance_id}: fact {name} ({fact.key.kind}) says something else than when it was locked")
    for part, digest in sorted(fact.blobs.items()):
        if not blobs.has(digest):
            raise ReleaseError(f"{instance_id}: blob {digest} ({part} of fact {name}) is missing")
    return fact
