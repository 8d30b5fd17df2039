"""The disk of a run: what a kill left half written goes, and eviction is looked into between candidates."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import docker
import pytest

from miner.core.blobs import BlobStore
from miner.core.hashing import sha256_bytes
from miner.core.ledger import Ledger
from miner.core.records import Fact, FactKey, Layer
from miner.core.settings import load_settings
from miner.jobs.disk import Disk, sweep
from miner.sandbox.engine import connect

MB = 1_000_000


def test_what_a_kill_left_half_written_is_removed_and_nothing_else(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path / "blobs"))
    digest = blobs.put(b"whole")
    halves = [
        tmp_path / "blobs" / digest[:2] / f"{digest}.zst.12-34.part",
        tmp_path / "downloads" / "ab" / ".part-x",
        tmp_path / "repos" / ".pypi__a-1.git.q1" / "new" / "HEAD",
    ]
    kept = [tmp_path / "downloads" / "ab" / "ab12.tar.gz", tmp_path / "repos" / "pypi__a-1.git" / "HEAD"]
    for path in (*halves, *kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    assert sweep(tmp_path) == 3
    assert not any(path.exists() for path in halves)
    assert all(path.exists() for path in kept)
    assert blobs.get(digest) == b"whole"
    assert sweep(tmp_path) == 0


def test_an_empty_work_folder_is_swept(tmp_path: Path) -> None:
    assert sweep(tmp_path / "new") == 0


def _known(ledger: Ledger, blobs: BlobStore, data: bytes) -> str:
    """Store a layer of a megabyte and the fact that knows it; return its digest."""
    plain = data * MB
    digest = sha256_bytes(plain)
    (path := Path(blobs._root) / digest[:2]).mkdir(parents=True, exist_ok=True)
    (path / f"{digest}.zst").write_bytes(plain)  # as large on the disk as it is
    layer = Layer(diff_id=f"sha256:{digest}", size=MB)
    key = FactKey(kind="install.env", subject=digest, input_hash="1", producer="p", epoch=1)
    found = Fact(key=key, observed_at=datetime.now(UTC), payload={"layer": layer.model_dump()}, blobs={"layer": digest})
    ledger.add(found, "run")
    return digest


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite3'}")
    with ledger.exclusive():
        ledger.begin_run("run", "run", load_settings(), {})
        yield ledger
    ledger.close()


def test_without_a_bound_or_an_engine_nothing_is_looked_into(ledger: Ledger, tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path / "blobs"))
    digest = _known(ledger, blobs, b"a")
    assert Disk(None, ledger, blobs, lambda: pytest.fail("asked for an engine")).look() is None
    assert Disk(1e-9, ledger, blobs, lambda: None).look() is None
    assert blobs.has(digest)


@pytest.mark.docker
def test_layers_go_between_candidates_but_not_those_in_use_nor_twice_in_a_moment(
    ledger: Ledger, tmp_path: Path
) -> None:
    client: docker.DockerClient = connect(load_settings().docker)
    blobs = BlobStore(str(tmp_path / "blobs"))
    old = _known(ledger, blobs, b"a")
    os.utime(tmp_path / "blobs" / old[:2] / f"{old}.zst", (1000, 1000))
    disk = Disk(1e-9, ledger, blobs, lambda: client)
    with disk.in_use():
        new = _known(ledger, blobs, b"b")
        done = disk.look()
        assert done is not None
        assert [thing.name for thing in done.removed] == [old]
        assert done.over
        assert (blobs.has(old), blobs.has(new)) == (False, True)
        assert disk.look() is None
    client.close()
