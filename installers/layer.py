"""Normalised layers: what an installation left behind, without anything that differs from run to run.

Two installations from one lock have one digest. Dropped or rewritten on the way: times, owners, names, modes beyond
"executable or not", hard links, devices, byte code, caches and notes of the installer, and the RECORD of each
distribution (PyPA specification "Recording installed projects") loses the rows of what was dropped.
"""

from __future__ import annotations

import csv
import hashlib
import io
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from miner.core.blobs import BlobStore
from miner.core.records import Layer
from miner.sandbox.image_archive import TarEntry, deterministic_tar, read_tar

NORMALISER = 1  # enters input hashes: raise it when a rule below changes

OWNER = 1000
TIME = 946684800
"""One time for all files, 2000-01-01: wheels and other zip files cannot say anything before 1980."""
_CHUNK = 1 << 20
_MAX_RECORD = 16 << 20  # a RECORD of 100,000 files has 10 MB
_MAX_URL = 64 << 10
_WHITEOUT = ".wh."
_LEVEL = 3  # of the compression: a tenth larger than by default, in less than half of the time
_DROPPED_DIRS = frozenset({"__pycache__"})
_DROPPED_FILES = frozenset({"uv_cache.json", ".lock"})

Tree = dict[str, TarEntry]


def normalise(entries: Iterable[TarEntry], prefix: str = "") -> Tree:
    """Return entries by path, without what differs between two equal installations.

    Args:
        entries: as read from an exported file system.
        prefix: a folder put in front of every path ("opt" for an archive whose root is `env`).
    """
    kept: Tree = {}
    links: list[TarEntry] = []
    for entry in entries:
        moved = _moved(entry, prefix)
        if not _is_kept(PurePosixPath(moved.path)):
            continue
        if moved.kind == "hardlink":
            links.append(moved)
        else:
            kept[moved.path] = plain(moved)
    for link in links:
        if link.link in kept:
            kept[link.path] = replace(kept[link.link], path=link.path)
    return _with_records(_without_archive_urls(kept))


def _moved(entry: TarEntry, prefix: str) -> TarEntry:
    if not prefix:
        return entry
    link = f"{prefix}/{entry.link}" if entry.kind == "hardlink" else entry.link
    return replace(entry, path=f"{prefix}/{entry.path}", link=link)


def _is_kept(path: PurePosixPath) -> bool:
    """A name with the whiteout prefix would delete files of lower layers: it cannot be kept."""
    return (
        _DROPPED_DIRS.isdisjoint(path.parts)
        and path.name not in _DROPPED_FILES
        and not any(part.startswith(_WHITEOUT) for part in path.parts)
    )


def plain(entry: TarEntry) -> TarEntry:
    """Return an entry with the owner of all layers and no mode but "executable or not"."""
    if entry.kind == "symlink":
        return replace(entry, mode=0o777, uid=OWNER, gid=OWNER)
    mode = 0o755 if entry.kind == "dir" or entry.mode & 0o100 else 0o644
    return replace(entry, mode=mode, uid=OWNER, gid=OWNER)


def _without_archive_urls(tree: Tree) -> Tree:
    """Drop the `direct_url.json` (PEP 610) of wheels: it names a temporary folder and a hash of zip times."""
    return {
        path: entry
        for path, entry in tree.items()
        if not (_is_note(path, entry, "direct_url.json", _MAX_URL) and b'"archive_info"' in read(entry))
    }


def _with_records(tree: Tree) -> Tree:
    result = dict(tree)
    for path, entry in tree.items():
        if _is_note(path, entry, "RECORD", _MAX_RECORD):
            text = _record(read(entry), PurePosixPath(path).parent.parent, tree)
            result[path] = replace(entry, content=text, size=len(text))
    return result


def _is_note(path: str, entry: TarEntry, name: str, limit: int) -> bool:
    """Whether an entry is a file of this name that an installer has written; a larger one is kept as it is."""
    return path.endswith(f".dist-info/{name}") and entry.kind == "file" and entry.length <= limit


def _record(data: bytes, site: PurePosixPath, tree: Tree) -> bytes:
    """Sort the rows of a RECORD and leave out those whose file is not in the layer."""
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8"), newline="")))
    except (UnicodeDecodeError, csv.Error):
        return data
    out = io.StringIO(newline="")
    kept = (row for row in rows if row and _resolve(site, row[0]) in tree)
    csv.writer(out, lineterminator="\n").writerows(sorted(kept))
    return out.getvalue().encode()


def _resolve(site: PurePosixPath, name: str) -> str:
    parts: list[str] = []
    for part in (site / name).parts:
        if part == ".." and parts:
            parts.pop()
        elif part not in ("/", ".."):
            parts.append(part)
    return "/".join(parts)


def difference(below: Mapping[str, TarEntry], above: Mapping[str, TarEntry]) -> list[TarEntry]:
    """Return the layer that turns one normalised tree into another; what is gone becomes a whiteout.

    A whiteout is an empty file `.wh.NAME` (OCI image specification, "Representing Changes"); what lies in a folder
    that is gone needs none of its own. The folders above a change are written too: an engine that has to make them up
    gives them to root.
    """
    changed = [entry for path, entry in above.items() if path not in below or not _same(below[path], entry)]
    gone = [path for path in below if path not in above and _parent_stands(path, below, above)]
    written = {entry.path: entry for entry in changed}
    parents = {str(parent) for path in (*written, *gone) for parent in PurePosixPath(path).parents}
    folders = [above[parent] for parent in parents if parent in above and parent not in written]
    return [*changed, *folders, *(TarEntry(path, "whiteout", uid=OWNER, gid=OWNER) for path in gone)]


def _parent_stands(path: str, below: Mapping[str, TarEntry], above: Mapping[str, TarEntry]) -> bool:
    parent = str(PurePosixPath(path).parent)
    return parent not in below or (parent in above and above[parent].kind == "dir")


def _same(one: TarEntry, other: TarEntry) -> bool:
    alike = (one.kind, one.mode, one.link, one.length) == (other.kind, other.mode, other.link, other.length)
    return alike and (one.kind != "file" or content_digest(one) == content_digest(other))


def content_digest(entry: TarEntry) -> str:
    """Return the sha256 of a file's content."""
    digest = hashlib.sha256()
    with entry.open() as stream:
        for chunk in chunks_of(stream):
            digest.update(chunk)
    return digest.hexdigest()


def read(entry: TarEntry) -> bytes:
    """Return the content of a file."""
    with entry.open() as stream:
        return stream.read()


def chunks_of(stream: BinaryIO) -> Iterator[bytes]:
    """Yield a stream in pieces that fit in memory."""
    while chunk := stream.read(_CHUNK):
        yield chunk


def rooted(entries: Iterable[TarEntry]) -> list[TarEntry]:
    """Add the folders of the base image that entries lie in (`opt`), which are root's."""
    written = list(entries)
    paths = {entry.path for entry in written}
    above = {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {".", *paths}
    return [*written, *(TarEntry(path, "dir", 0o755) for path in above)]


def store(entries: Iterable[TarEntry], blobs: BlobStore, scratch: Path) -> Layer:
    """Write a layer and keep its plain bytes as a blob, whose digest is the layer's diff id.

    Args:
        entries: of the layer.
        blobs: where it is kept.
        scratch: a folder with room for it, for as long as this takes.
    """
    with tempfile.TemporaryFile(dir=scratch) as file:
        layer = deterministic_tar(rooted(entries), file, mtime=TIME)
        file.seek(0)
        blobs.put_stream(layer.diff_id.removeprefix("sha256:"), chunks_of(file), level=_LEVEL)
    return layer


def load(layer: Layer, blobs: BlobStore, folder: Path) -> Tree:
    """Return what was stored as a layer; the plain bytes lie in `folder`, which must outlive the entries."""
    path = unpacked(layer, blobs, folder)
    return {entry.path: entry for entry in read_tar(path) if entry.uid == OWNER}


def unpacked(layer: Layer, blobs: BlobStore, folder: Path) -> Path:
    """Write the plain bytes of a stored layer into a folder and return their path."""
    digest = layer.diff_id.removeprefix("sha256:")
    path = folder / f"{digest}.tar"
    if not path.exists():
        with path.open("wb") as file:
            blobs.copy_to(digest, file)
    return path
