"""`snapshot.json`: what a snapshot holds, and the hash of each of its files.

A snapshot is a folder that was handed over: nothing in it is believed before it was looked at. Its files are regular
ones with the names that are listed here, of the size and hash that the manifest states.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from miner.core.errors import SnapshotError
from miner.core.hashing import hash_of
from miner.core.records import Record, Seen, Visibility

FORMAT = 1
MANIFEST, FACTS, BLOBS, REPOSITORIES = "snapshot.json", "facts.jsonl.zst", "blobs.zst", "repositories.txt"
GIT = "git"
_MAX_MANIFEST = 256 << 20
_MAX_RATIO, _ALWAYS_ALLOWED = 1000, 1 << 30
_CHUNK = 1 << 20
LAYOUT = {
    MANIFEST: "this file: what the snapshot holds, and the sha256 of every other file",
    REPOSITORIES: "the repositories that were looked into, one a line",
    FACTS: "zstd; one fact a line as JSON: key, time of observation, payload, and the sha256 of its blobs",
    BLOBS: "zstd; the blobs by their sha256: for each a line `sha256 size`, then so many bytes",
    f"{GIT}/NETWORK.bundle": (
        "a git bundle of version 3 for each fork network (its number at the forge): all history without contents"
        " (`@filter=blob:none`), and the contents of the trees before and after each change; `git bundle list-heads`"
        " shows its names, `git bundle unbundle` takes it into a bare repository (git 2.36 or newer)"
    ),
    "replay": "swe-miner run -c mine.source=snapshot -c mine.snapshot=FOLDER --month MONTH",
}


class SnapshotFile(Record):
    """One file of a snapshot.

    Attributes:
        plain_size: of a compressed file, unpacked.
    """

    path: Annotated[str, Field(pattern=rf"^(?:{FACTS}|{BLOBS}|{REPOSITORIES}|{GIT}/[0-9]{{1,20}}\.bundle)$")]
    size: int
    sha256: str
    plain_size: int | None = None


class Mined(Record):
    """The settings under `mine` that say what was mined; a replay takes them over where its own say nothing."""

    repositories: tuple[str, ...] = ()
    repository_search: tuple[str, ...] = ()
    seed: int = 0


class LeftOut(Record):
    """What the ledger holds of the month and the snapshot does not, since it is not public."""

    repositories: int = 0
    candidates: dict[Visibility, int] = Field(default_factory=dict)


class Counts(Record):
    """A snapshot in numbers. merged = linked + unlinked, as far as it is known.

    Attributes:
        units: repositories that were looked into.
        missing: those of which the crawl did not come to its end: a replay can say nothing about them.
        opted_out: those that asked not to be mined; nothing but their name is there.
        refused: those that were not taken, by reason.
        extracted: candidates whose trees were read.
        incomplete: those of them that the forge no longer gives whole: they cannot be built again from here.
    """

    units: int
    missing: int
    opted_out: int
    refused: dict[str, int]
    merged: int
    linked: int
    unlinked: int
    extracted: int
    incomplete: int
    facts: int
    blobs: int
    networks: int
    left_out: LeftOut


class Manifest(Record):
    """What a snapshot says of itself.

    Attributes:
        observed_until: time of its last observation.
        settings: of the run, as far as they steer what is crawled and which of it is taken.
        visibility: the strictest of what is in it.
        opted_out: repositories that asked not to be mined.
        closed: candidates that are not public.
        seal: hash of everything else.
    """

    format: int = FORMAT
    layout: dict[str, str] = Field(default_factory=lambda: dict(LAYOUT))
    written_with: dict[str, str]
    source: Literal["github"] = "github"
    month: str
    observed_until: datetime | None
    visibility: Visibility
    mine: Mined
    settings: dict[str, Any]
    counts: Counts
    opted_out: tuple[str, ...] = ()
    closed: tuple[Seen, ...] = ()
    files: tuple[SnapshotFile, ...]
    seal: str = ""

    def sealed(self) -> Manifest:
        """Return it with its seal."""
        unsealed = self.model_copy(update={"seal": ""})
        return unsealed.model_copy(update={"seal": hash_of(unsealed)})

    def file(self, path: str) -> SnapshotFile | None:
        """Return what it says of a file, None where it has none of this name."""
        return next((file for file in self.files if file.path == path), None)


def manifest_text(manifest: Manifest) -> str:
    """Return the text of a sealed manifest."""
    return json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=True) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a snapshot, and see that its files are there.

    Raises:
        SnapshotError: there is none, it is damaged, or newer than this program; or a file is missing.
    """
    path = folder / MANIFEST
    try:
        if path.stat().st_size > _MAX_MANIFEST:
            raise SnapshotError(f"{path} is larger than a manifest can be")
        data = path.read_bytes()
    except OSError as error:
        raise SnapshotError(
            f"{folder} is no snapshot: {MANIFEST} cannot be read ({error.strerror})",
            next_step="name a folder that `swe-miner snapshot` wrote: -c mine.snapshot=FOLDER",
        ) from error
    found = _parsed(data, path)
    for file in found.files:
        _see(folder, file)
    return found


def _parsed(data: bytes, path: Path) -> Manifest:
    try:
        known = _Format.model_validate_json(data).format
        if known != FORMAT:
            raise SnapshotError(
                f"{path}: has format {known}, this program knows {FORMAT}",
                next_step="use the version of swe-miner that wrote the snapshot, or a newer one",
            )
        found = Manifest.model_validate_json(data)
    except ValidationError as error:
        item = error.errors()[0]
        where = ".".join(str(part) for part in item["loc"]) or "whole file"
        raise SnapshotError(f"{path}: damaged, or no manifest: {where}: {item['msg']}") from error
    if found != found.sealed():
        raise SnapshotError(f"{path}: damaged: its seal does not fit its content")
    if len({file.path for file in found.files}) < len(found.files):
        raise SnapshotError(f"{path}: damaged: a file stands twice")
    return found


def checked_file(folder: Path, file: SnapshotFile) -> Path:
    """Return where a file of a snapshot is, once its bytes are what the manifest says.

    Raises:
        SnapshotError: they are not.
    """
    path = _see(folder, file)
    try:
        found = file_hash(path)
    except OSError as error:
        raise SnapshotError(f"{path} cannot be read: {error.strerror}") from error
    if found != file.sha256:
        raise SnapshotError(f"{path} is damaged: its sha256 is {found}, and was {file.sha256}")
    return path


def file_hash(path: Path) -> str:
    """Return the sha256 of a file."""
    seen = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            seen.update(chunk)
    return seen.hexdigest()


def _see(folder: Path, file: SnapshotFile) -> Path:
    """Return where a file is, if it is a regular one of the right size, in the folder itself, and no bomb."""
    path = folder / file.path
    try:
        found = path.lstat()
    except OSError as error:
        raise SnapshotError(f"the snapshot lacks {file.path}: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode) or path.resolve() != folder.resolve() / file.path:
        raise SnapshotError(f"{path} is no regular file of the snapshot: a link or a folder stands there")
    if found.st_size != file.size:
        raise SnapshotError(f"{path} is damaged: it has {found.st_size} bytes, and had {file.size}")
    plain = file.plain_size or 0
    if plain > max(_ALWAYS_ALLOWED, _MAX_RATIO * file.size):
        raise SnapshotError(f"{path} would unpack from {file.size} to {plain} bytes", next_step="do not use it")
    return path


class _Format(BaseModel):
    format: int


def settings_that_matter(portable: Mapping[str, Any]) -> dict[str, Any]:
    """Return of a run's settings those that steer what is crawled, and which of it is taken."""
    measure, policy = portable["measure"], portable["policy"]
    return {
        "measure": {name: measure[name] for name in ("archive", "crawl")},
        "policy": {name: policy[name] for name in ("pulls", "repositories")},
    }
