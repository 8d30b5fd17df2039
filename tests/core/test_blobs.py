"""Blobs are named by their bytes, written whole or not at all, and checked when read."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.core.blobs import BlobStore
from miner.core.errors import DiskFull, InfrastructureFault
from miner.core.hashing import sha256_bytes


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs"))


@given(st.binary())
def test_bytes_come_back_under_their_own_digest(data: bytes) -> None:
    store = BlobStore("memory://blobs")
    digest = store.put(data)
    assert digest == sha256_bytes(data)
    assert store.get(digest) == data


@given(st.binary())
def test_text_of_any_bytes_survives(data: bytes) -> None:
    store = BlobStore("memory://blobs")
    text = data.decode("utf-8", "surrogateescape")
    assert store.get_text(store.put_text(text)).encode("utf-8", "surrogateescape") == data


def test_a_stream_with_another_digest_leaves_nothing(blobs: BlobStore) -> None:
    with pytest.raises(InfrastructureFault, match="was announced"):
        blobs.put_stream(sha256_bytes(b"right"), [b"wr", b"ong"])
    assert not blobs.has(sha256_bytes(b"right"))
    blobs.put_stream(sha256_bytes(b"right"), [b"ri", b"ght"])
    assert blobs.get(sha256_bytes(b"right")) == b"right"


def test_a_stream_that_breaks_leaves_no_part_behind(blobs: BlobStore, tmp_path: Path) -> None:
    def broken():
        yield b"half"
        raise RuntimeError("the engine died")

    with pytest.raises(RuntimeError):
        blobs.put_stream("0" * 64, broken())
    assert [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == []


def test_a_damaged_or_missing_blob_is_a_fault_and_never_other_bytes(blobs: BlobStore, tmp_path: Path) -> None:
    digest = blobs.put(b"x" * 1000)
    [path] = (tmp_path / "blobs").rglob("*.zst")
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InfrastructureFault, match="damaged"):
        blobs.get(digest)
    other = blobs.put(b"other")
    blob_of_other = next(p for p in (tmp_path / "blobs").rglob("*.zst") if other in p.name)
    path.write_bytes(blob_of_other.read_bytes())
    with pytest.raises(InfrastructureFault, match="damaged"):
        blobs.get(digest)
    with pytest.raises(InfrastructureFault, match="missing"):
        blobs.get("f" * 64)


def test_a_full_disk_is_its_own_error(blobs: BlobStore) -> None:
    def full():
        yield b"half"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DiskFull):
        blobs.put_stream("0" * 64, full())


@pytest.mark.parametrize("damage", [b"", b"\0" * 50, b"\x28\xb5\x2f\xfd"])
def test_a_damaged_blob_is_replaced_when_the_same_bytes_come_again(
    damage: bytes, blobs: BlobStore, tmp_path: Path
) -> None:
    digest = blobs.put(b"x" * 1000)
    [path] = (tmp_path / "blobs").rglob("*.zst")
    for put in (lambda: blobs.put(b"x" * 1000), lambda: blobs.put_stream(digest, [b"x" * 600, b"x" * 400])):
        path.write_bytes(damage)
        put()
        assert blobs.get(digest) == b"x" * 1000


def test_a_whole_blob_is_not_written_again(blobs: BlobStore, tmp_path: Path) -> None:
    digest = blobs.put(b"x" * 1000)
    [path] = (tmp_path / "blobs").rglob("*.zst")
    path.chmod(0o400)
    before = path.stat()
    blobs.put(b"x" * 1000)
    blobs.put_stream(digest, [b"x" * 1000])
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_blob_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[list[str]] = []
    fsync = os.fsync

    def spy(handle: int) -> None:
        synced.append(sorted(path.suffix for path in (tmp_path / "blobs").rglob("*.*")))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", spy)
    BlobStore(str(tmp_path / "blobs")).put(b"x")
    assert synced == [[".part"], [".zst"], [".zst"]]
