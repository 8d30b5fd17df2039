"""The facts of a snapshot and their blobs: written in a fixed order, read with bounds, and taken into a ledger.

A ledger takes only what a crawl observes: what boxes show of a candidate is measured where it is replayed.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import zstandard
from pydantic import ValidationError
from sqlalchemy import select

from miner.core import tables as t
from miner.core.blobs import BlobStore
from miner.core.errors import InfrastructureFault, SnapshotError
from miner.core.hashing import canonical_json
from miner.core.imported import import_facts
from miner.core.ledger import Ledger, content_hash, fact_id
from miner.core.records import Fact
from miner.core.settings import Settings
from miner.crawlers.snapshot_manifest import BLOBS, FACTS, Manifest, SnapshotFile, checked_file, file_hash

_LEVEL = 9
_CHUNK = 1 << 20
_MAX_WINDOW = 1 << 27
_MAX_LINE = 256 << 20
_AT_ONCE = 500
_HEAD = re.compile(rb"([0-9a-f]{64}) ([0-9]{1,15})\n")
_OF_THE_SOURCE = re.compile(r"(?:crawl\.[\w-]+|source\.look_up|source\.extract) github\.[\w-]+")


@dataclass(frozen=True)
class Taken:
    """What a ledger did not have yet."""

    facts: int
    blobs: int


def write_facts(folder: Path, facts: Iterable[Fact]) -> SnapshotFile:
    """Write facts in the order in which they are given."""
    with _packed(folder / FACTS) as out:
        for fact in facts:
            out.write(canonical_json(fact).encode() + b"\n")
    return file_of(folder, FACTS, out.size)


def write_blobs(folder: Path, blobs: BlobStore, digests: Iterable[str]) -> SnapshotFile:
    """Write blobs in the order of their digests.

    Raises:
        InfrastructureFault: one is missing or damaged.
    """
    with _packed(folder / BLOBS) as out:
        for digest in sorted(set(digests)):
            data = blobs.get(digest)
            out.write(f"{digest} {len(data)}\n".encode())
            out.write(data)
    return file_of(folder, BLOBS, out.size)


def file_of(folder: Path, path: str, plain_size: int | None = None) -> SnapshotFile:
    """Return what a manifest says of a file that is there."""
    place = folder / path
    return SnapshotFile(path=path, size=place.stat().st_size, sha256=file_hash(place), plain_size=plain_size)


def take_in(folder: Path, manifest: Manifest, ledger: Ledger, blobs: BlobStore, settings: Settings) -> Taken:
    """Take facts and blobs of a snapshot into a ledger that is held; what is there already stays.

    Blobs come first: a kill at any moment leaves no fact without them, and the next call goes on.

    Raises:
        SnapshotError: the snapshot is damaged, or the ledger holds another crawl of the same repositories.
    """
    file = _file(manifest, FACTS)
    path = checked_file(folder, file)
    lacking, digests = _compare(ledger, read_facts(path, file))
    absent = {digest for digest in digests if not blobs.has(digest)}
    if absent:
        _take_blobs(folder, manifest, blobs, absent)
    if lacking or manifest.closed:
        new = (fact for fact in read_facts(path, file) if fact_id(fact.key) in lacking)
        import_facts(ledger, new, manifest.closed, settings, manifest.observed_until)
    return Taken(facts=len(lacking), blobs=len(absent))


def _compare(ledger: Ledger, facts: Iterator[Fact]) -> tuple[set[str], set[str]]:
    """Return the facts that a ledger lacks, and the digests of all blobs that facts name."""
    lacking: set[str] = set()
    digests: set[str] = set()
    while chunk := {fact_id(fact.key): fact for fact in islice(facts, _AT_ONCE)}:
        query = select(t.facts.c.fact_id, t.facts.c.content_hash).where(t.facts.c.fact_id.in_(chunk))
        known = {row.fact_id: row.content_hash for row in ledger.rows(query)}
        for name, fact in chunk.items():
            if known.get(name, content_hash(fact)) != content_hash(fact):
                raise SnapshotError(
                    f"the ledger holds another observation of {fact.key.kind} of {fact.key.subject}: two crawls of the"
                    " same repository do not mix",
                    next_step="replay in a folder of its own: -c paths.work=FOLDER",
                )
            digests.update(fact.blobs.values(), fact.logs.values())
        lacking |= chunk.keys() - known.keys()
    return lacking, digests


def _take_blobs(folder: Path, manifest: Manifest, blobs: BlobStore, absent: set[str]) -> None:
    file = _file(manifest, BLOBS)
    left = set(absent)
    for digest, chunks in read_blobs(checked_file(folder, file), file):
        if digest in left:
            try:
                blobs.put_stream(digest, chunks)
            except InfrastructureFault as fault:
                if isinstance(fault.__cause__, OSError):
                    raise
                raise SnapshotError(f"{file.path} is damaged: {fault}") from fault
            left.remove(digest)
    if left:
        raise SnapshotError(f"the snapshot lacks {len(left)} blobs that its facts name, {min(left)} among them")


def read_facts(path: Path, file: SnapshotFile) -> Iterator[Fact]:
    """Yield the facts of a file whose hash was checked.

    Raises:
        SnapshotError: a line is no fact, or none that a crawl observes.
    """
    with _plain(path, file) as stream:
        for number, line in enumerate(_lines(stream, file), start=1):
            try:
                fact = Fact.model_validate_json(line)
            except ValidationError as error:
                raise SnapshotError(f"{file.path}, line {number}: no fact: {error.errors()[0]['msg']}") from error
            if not _OF_THE_SOURCE.fullmatch(f"{fact.key.kind} {fact.key.producer}"):
                what = f"a fact {fact.key.kind} of {fact.key.producer}"
                raise SnapshotError(f"{file.path}, line {number}: {what} has no place in a snapshot")
            yield fact


def read_blobs(path: Path, file: SnapshotFile) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the blobs of a file whose hash was checked, with their content in chunks; what is not read is skipped.

    Raises:
        SnapshotError: the file is not what it should be.
    """
    with _plain(path, file) as stream:
        while head := stream.readline(100):
            found = _HEAD.fullmatch(head)
            if found is None:
                raise SnapshotError(f"{file.path} is damaged: {head[:80]!r} stands where a blob should begin")
            chunks = _content(stream, int(found[2]), file)
            yield found[1].decode(), chunks
            for _ in chunks:
                pass


def _content(stream: BinaryIO, size: int, file: SnapshotFile) -> Iterator[bytes]:
    while size:
        chunk = stream.read(min(size, _CHUNK))
        if not chunk:
            raise SnapshotError(f"{file.path} is damaged: it ends within a blob")
        size -= len(chunk)
        yield chunk


def _lines(stream: BinaryIO, file: SnapshotFile) -> Iterator[bytes]:
    while line := stream.readline(_MAX_LINE):
        if not line.endswith(b"\n"):
            raise SnapshotError(f"{file.path} is damaged: a line is cut or has no end")
        yield line


def _file(manifest: Manifest, path: str) -> SnapshotFile:
    found = manifest.file(path)
    if found is None:
        raise SnapshotError(f"the snapshot lacks {path}")
    return found


class _Packed:
    """A zstd stream that counts what is written to it."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.size = 0

    def write(self, data: bytes) -> None:
        self._out.write(data)
        self.size += len(data)


@contextmanager
def _packed(path: Path) -> Iterator[_Packed]:
    with path.open("wb") as file, zstandard.ZstdCompressor(level=_LEVEL).stream_writer(file) as out:
        yield _Packed(out)


class _Bounded(io.RawIOBase):
    """A stream that holds exactly so many bytes."""

    def __init__(self, stream: BinaryIO, file: SnapshotFile) -> None:
        super().__init__()
        self._stream = stream
        self._file = file
        self._left = file.plain_size or 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # any writable buffer
        try:
            data = self._stream.read(len(buffer))
        except zstandard.ZstdError as error:
            raise SnapshotError(f"{self._file.path} is damaged: {error}") from error
        self._left -= len(data)
        if self._left < 0 or (not data and self._left):
            raise SnapshotError(
                f"{self._file.path} does not unpack to the {self._file.plain_size} bytes that it states"
            )
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def _plain(path: Path, file: SnapshotFile) -> Iterator[BinaryIO]:
    with path.open("rb") as packed:
        stream = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).stream_reader(packed)
        yield io.BufferedReader(_Bounded(stream, file), _CHUNK)
