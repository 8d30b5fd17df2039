"""The snapshot job: write what was crawled of a month to a folder, from which it can be replayed with no network.

newest run over the month   its repositories and its settings
for each repository         discovered once more from what is known: what this reads is what is written
for each candidate          its facts `source.look_up` and `source.extract`; both of its trees are made whole
then                        facts, blobs, a bundle for each fork network, and the manifest; moved into place whole

What is not public stays out (law 5). One answer of the forge holds the texts of many pull requests, so that a
repository with a candidate that is private or held out is left out as a whole, and counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import git
from pydantic import ValidationError
from sqlalchemy import Row

from exporters.publish import redact_settings
from miner.core.blobs import BlobStore
from miner.core.errors import LedgerError, UsageError
from miner.core.ledger import Ledger
from miner.core.records import Record, Seen, Visibility
from miner.core.settings import Settings
from miner.crawlers.github.optout import full_name
from miner.crawlers.snapshot import OfflineSource, SnapshotSource
from miner.crawlers.snapshot_facts import file_of, write_blobs, write_facts
from miner.crawlers.snapshot_folder import new_folder
from miner.crawlers.snapshot_manifest import (
    GIT,
    MANIFEST,
    REPOSITORIES,
    Counts,
    LeftOut,
    Manifest,
    Mined,
    SnapshotFile,
    manifest_text,
    settings_that_matter,
)
from miner.jobs.machine import versions
from miner.jobs.snapshot_gather import Gathered, gather, write_bundles


class Snapshot(Record):
    """A written snapshot.

    Attributes:
        size: bytes of all its files.
    """

    folder: str
    month: str
    visibility: Visibility
    size: int
    counts: Counts


def write(settings: Settings, folder: Path, *, month: str | None = None, not_public: bool = False) -> Snapshot:
    """Write the snapshot of a month, as the newest run over it that came to its end has mined it.

    Contents of trees that were not needed so far are fetched; nothing else is asked of anybody.

    Args:
        settings: where ledger, blobs and mirrors are.
        folder: becomes the snapshot.
        month: by default that of the settings.
        not_public: take candidates that are private or held out, too: for a machine of one's own.

    Raises:
        UsageError: no run over the month has come to its end, nothing of it is public, or the folder holds something
            else.
        ReleaseError: a setting holds what looks like a secret.
        LedgerBusy: a run writes to this ledger.
        InfrastructureFault: the forge does not give what is needed now, or a mirror or blob is damaged.
    """
    wanted = month or settings.mine.month
    if wanted is None:
        raise UsageError("a snapshot is of a month", next_step="swe-miner snapshot FOLDER --month 2025-05")
    with closing(Ledger(settings.paths.ledger, create=False)) as ledger, ledger.exclusive():
        run = _newest_run(ledger, wanted)
        as_then = _settings_of(run, settings)
        blobs = BlobStore(settings.paths.blobs)
        with new_folder(folder) as part:
            source = _source(settings, as_then, ledger, blobs)
            found = gather(ledger, blobs, as_then, source, ledger.intake(run.run_id), not_public=not_public)
            _refuse_empty(found)
            files = _write_files(part, ledger, blobs, found, source)
            manifest = _manifest(found, files, as_then, json.loads(run.settings))
            (part / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
            size = sum(file.size for file in manifest.files) + (part / MANIFEST).stat().st_size
    return Snapshot(folder=str(folder), month=wanted, visibility=manifest.visibility, size=size, counts=manifest.counts)


def snapshot_text(made: Snapshot) -> str:
    """Return what a snapshot is, for people."""
    found, out = made.counts, made.counts.left_out
    lines = [
        f"{made.folder}: {made.month}, {found.units} repositories, {found.merged} merged pull requests,"
        f" {found.linked} of them linked, {found.extracted} with their trees",
        f"{found.facts} facts, {found.blobs} blobs, {found.networks} bundles, {made.size / (1 << 20):.1f} MB",
    ]
    if found.missing:
        lines.append(f"{found.missing} repositories were not crawled to the end: a replay meets a fault there")
    if found.incomplete:
        lines.append(f"{found.incomplete} candidates are nowhere to be had whole: a replay cannot build them anew")
    if out.repositories:
        hidden = ", ".join(f"{number} {name.value}" for name, number in sorted(out.candidates.items()))
        lines.append(f"left out: {out.repositories} repositories that have candidates that are not public ({hidden})")
    if made.visibility is not Visibility.PUBLIC:
        lines.append(f"it holds what is {made.visibility.value}: do not hand it over")
    return "\n".join(lines)


def _newest_run(ledger: Ledger, month: str) -> Row[Any]:
    def is_wanted(run: Row[Any]) -> bool:
        said = json.loads(run.settings)
        mine = said.get("mine", {})
        source = mine.get("source") or ("pypi" if said.get("pairs") else "github")
        return (run.command, run.status, source, mine.get("month")) == ("run", "done", "github", month)

    found = [run for run in ledger.runs() if is_wanted(run)]
    if not found:
        raise UsageError(
            f"no run over {month} has come to its end here",
            next_step=f"swe-miner run --source github --month {month}",
        )
    return found[-1]


def _settings_of(run: Row[Any], here: Settings) -> Settings:
    """Return the settings of a run, with what is true of this machine.

    Raises:
        LedgerError: another version of this program made the run.
    """
    said = {name: value for name, value in json.loads(run.settings).items() if name in Settings.model_fields}
    machine = here.model_dump(include={"paths", "index", "github", "run"})
    said["mine"]["optout"] = here.mine.optout
    try:
        return Settings.model_validate({**said, **machine})
    except ValidationError as error:
        raise LedgerError(f"run {run.run_id} has settings that this version does not know: {error}") from error


def _refuse_empty(found: Gathered) -> None:
    if not found.units:
        raise UsageError(
            f"nothing is public: {len(found.hidden_units)} repositories have candidates that are private or held out",
            next_step="`--not-public` takes them, for a machine of your own",
        )


def _source(here: Settings, as_then: Settings, ledger: Ledger, blobs: BlobStore) -> OfflineSource:
    """Return the source over what is known; where that was replayed itself, its trees are in another snapshot."""
    mirrors = here.paths.work / "mirrors"
    if here.source == "snapshot" and here.mine.snapshot is not None:
        return SnapshotSource(as_then, here.mine.snapshot, ledger, blobs, mirrors)
    return OfflineSource(as_then, (), blobs, mirrors)


def _write_files(
    part: Path, ledger: Ledger, blobs: BlobStore, found: Gathered, source: OfflineSource
) -> list[SnapshotFile]:
    """Write all files but the manifest."""
    (part / REPOSITORIES).write_text("".join(f"{name}\n" for name in found.units), encoding="utf-8")
    facts = (fact for name in found.known.ordered() if (fact := ledger.get(name)) is not None)
    return [
        file_of(part, REPOSITORIES),
        write_facts(part, facts),
        write_blobs(part, blobs, found.known.digests),
        *write_bundles(part, found, source),
    ]


def _manifest(found: Gathered, files: list[SnapshotFile], settings: Settings, portable: Mapping[str, Any]) -> Manifest:
    mined = _mined(settings, found)
    said = {**settings_that_matter(portable), "mine": mined.model_dump(mode="json")}
    shown = redact_settings(said, hides_subjects=False)
    return Manifest(
        written_with=_written_with(),
        month=settings.mine.month or "",
        observed_until=found.known.until,
        visibility=_strictest(found.closed),
        mine=mined,
        settings={name: shown[name] for name in ("measure", "policy")},
        counts=_counts(found, sum(file.path.startswith(GIT) for file in files)),
        opted_out=tuple(found.opted_out),
        closed=tuple(found.closed),
        files=tuple(sorted(files, key=lambda file: file.path)),
    ).sealed()


def _counts(found: Gathered, networks: int) -> Counts:
    return Counts(
        units=len(found.units),
        missing=found.missing,
        opted_out=len(found.opted_out),
        refused=dict(sorted(found.refused.items())),
        merged=found.merged,
        linked=found.linked,
        unlinked=found.unlinked,
        extracted=found.extracted,
        incomplete=found.incomplete,
        facts=len(found.known.ordered()),
        blobs=len(found.known.digests),
        networks=networks,
        left_out=LeftOut(repositories=len(found.hidden_units), candidates=dict(sorted(found.hidden.items()))),
    )


def _mined(settings: Settings, found: Gathered) -> Mined:
    """Return what was mined. Where something is left out, no other name of it stands there, nor what led to it."""
    mine = settings.mine
    if not found.hidden_units:
        return Mined(repositories=mine.repositories, repository_search=mine.repository_search, seed=mine.seed)
    kept = (name for name in mine.repositories if full_name(name, where="mine.repositories") in found.units)
    return Mined(repositories=tuple(kept), seed=mine.seed)


def _strictest(closed: list[Seen]) -> Visibility:
    strictest = Visibility.PUBLIC
    for seen in closed:
        strictest = strictest.stricter(seen.visibility)
    return strictest


def _written_with() -> dict[str, str]:
    known = versions()
    number = ".".join(map(str, git.Git().version_info))
    return {"swe-miner": known["swe-miner"], "git": number}
