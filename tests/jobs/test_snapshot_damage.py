"""Snapshots that were damaged on the way, or made by who means harm; and replays that are killed. No engine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forge_month
import pytest
import structlog
import zstandard
from forge import Forge, World
from forge_month import TOKEN, library, mend, run
from snapshots import UP_TO_EXTRACTION, all_facts, of_the_crawl, plain, replay

from miner.core.blobs import BlobStore
from miner.core.errors import SnapshotError
from miner.core.hashing import sha256_bytes
from miner.core.ledger import Ledger
from miner.core.records import Fact
from miner.core.settings import Settings
from miner.crawlers.snapshot_facts import take_in
from miner.crawlers.snapshot_manifest import BLOBS, FACTS, MANIFEST, REPOSITORIES, SnapshotFile, read_manifest
from miner.jobs import snapshot
from miner.jobs.sources import settled

pytestmark = pytest.mark.loopback


@dataclass(frozen=True)
class Place:
    """A work folder, and the snapshot that was written from it."""

    settings: Settings
    snapshot: Path


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    structlog.reset_defaults()  # a test that called the program has left an output that is closed by now


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A small crawl, and its snapshot."""
    root = tmp_path_factory.mktemp("small")
    world = World(root / "forge")
    mend(library(world, "octo/lib"), "one")
    with pytest.MonkeyPatch.context() as patch, Forge(world) as forge:
        patch.setenv("GITHUB_TOKEN", TOKEN)
        chosen = forge_month.settings(root / "first", forge, "octo/lib", "octo/gone")
        run(chosen)
        snapshot.write(chosen, root / "snapshot")
    return Place(chosen, root / "snapshot")


def packed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def write_manifest(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the manifest of a snapshot, and seal it anew as who means harm would."""
    made = read_manifest(folder)
    said = made.model_dump(mode="json")
    change(said)
    (folder / MANIFEST).write_text(json.dumps(said))
    try:
        sealed = type(made).model_validate_json((folder / MANIFEST).read_text()).sealed()
    except ValueError:
        return
    (folder / MANIFEST).write_text(sealed.model_dump_json())


def replace(folder: Path, path: str, data: bytes, plain_size: int | None = None) -> None:
    """Put other bytes in the place of a file, with a manifest that fits them."""

    def change(said: dict[str, Any]) -> None:
        file = next(file for file in said["files"] if file["path"] == path)
        file |= SnapshotFile(path=path, size=len(data), sha256=sha256_bytes(data), plain_size=plain_size).model_dump(
            mode="json"
        )

    write_manifest(folder, change)
    (folder / path).write_bytes(data)


class TestDamage:
    @pytest.fixture
    def copy(self, place: Place, tmp_path: Path) -> Path:
        shutil.copytree(place.snapshot, tmp_path / "copy")
        return tmp_path / "copy"

    def refused(self, folder: Path, match: str) -> None:
        """See that a replay ends with an error, and leaves no fact in its ledger."""
        chosen = replay(folder.parent, folder, **UP_TO_EXTRACTION)
        with pytest.raises(SnapshotError, match=match) as met:
            run(chosen)
        assert met.value.exit_code == 17
        if (folder.parent / "var" / "ledger.sqlite3").exists():
            assert all_facts(chosen) == {}

    @pytest.mark.parametrize("path", [FACTS, BLOBS, REPOSITORIES, MANIFEST])
    @pytest.mark.parametrize("how", ["flipped", "cut", "missing", "link"])
    def test_file(self, how: str, path: str, copy: Path) -> None:
        file = copy / path
        data = bytearray(file.read_bytes())
        if how == "flipped":
            at = data.index(b"2025-05") + 6 if path == MANIFEST else len(data) // 2
            data[at] ^= 1
            file.write_bytes(data)
        elif how == "cut":
            file.write_bytes(data[:-1] if path != MANIFEST else data[: len(data) // 2])
        else:
            file.rename(copy.parent / "away")
            if how == "link":
                file.symlink_to(copy.parent / "away")
        if (how, path) == ("link", MANIFEST):
            return
        self.refused(copy, "damaged|lacks|no snapshot|no regular file")

    @pytest.mark.parametrize("how", ["flipped", "missing"])
    def test_bundle_is_checked_when_it_is_needed(self, how: str, copy: Path, tmp_path: Path) -> None:
        chosen = replay(tmp_path, copy, **UP_TO_EXTRACTION)
        run(chosen)
        with closing(Ledger(chosen.paths.ledger)) as ledger:
            ledger.invalidate(why="again", producer="github.extract")
        for bundle in (copy / "git").iterdir():
            data = bundle.read_bytes()
            bundle.write_bytes(
                data[:-100] + bytes([data[-100] ^ 1]) + data[-99:]
            ) if how == "flipped" else bundle.unlink()
        with pytest.raises(SnapshotError, match=r"is damaged: its sha256|lacks git/"):
            run(chosen)

    def test_folder_of_bundles_that_leads_elsewhere(self, copy: Path) -> None:
        (copy / "git").rename(copy.parent / "elsewhere")
        (copy / "git").symlink_to(copy.parent / "elsewhere")
        self.refused(copy, "no regular file of the snapshot")

    @pytest.mark.parametrize(
        "path", ["../secret", "/etc/passwd", "git/../../x.bundle", "git/x.bundle", "git/1.bundle\n"]
    )
    def test_path_that_leads_out(self, path: str, copy: Path) -> None:
        write_manifest(copy, lambda said: said["files"][0].update(path=path))
        self.refused(copy, "files.0.path")

    def test_newer_format(self, copy: Path) -> None:
        write_manifest(copy, lambda said: said.update(format=2, novelty=True))
        self.refused(copy, "has format 2, this program knows 1")

    def test_manifest_that_was_changed_by_hand(self, copy: Path) -> None:
        text = (copy / MANIFEST).read_text()
        (copy / MANIFEST).write_text(text.replace('"merged": 1', '"merged": 2'))
        self.refused(copy, "its seal does not fit")

    def test_bomb_that_says_so(self, copy: Path) -> None:
        data = packed(b"\0" * (4 << 20))
        replace(copy, BLOBS, data, plain_size=1 << 40)
        self.refused(copy, "would unpack from")

    def test_bomb_that_says_less(self, copy: Path) -> None:
        replace(copy, BLOBS, packed(b"a" * 64 + b" 99999999\n" + b"\0" * (64 << 20)), plain_size=100)
        self.refused(copy, "does not unpack to the 100 bytes")

    def test_facts_that_are_shorter_than_stated(self, copy: Path) -> None:
        replace(copy, FACTS, packed(b""), plain_size=100)
        self.refused(copy, "does not unpack to the 100 bytes")

    def test_no_zstd(self, copy: Path) -> None:
        replace(copy, FACTS, b"not packed at all", plain_size=17)
        self.refused(copy, f"{FACTS} is damaged")

    @pytest.mark.parametrize("line", [b"no json\n", b"{}\n", b"[" * 100_000 + b"\n", b'{"key": 1}'])
    def test_line_that_is_no_fact(self, line: bytes, copy: Path) -> None:
        replace(copy, FACTS, packed(line), plain_size=len(line))
        self.refused(copy, "line 1: no fact|a line is cut")

    @pytest.mark.parametrize(
        ("kind", "producer"), [("validate.after", "sandbox.run_tests"), ("source.look_up", "pypi.look_up")]
    )
    def test_fact_that_no_crawl_observes(self, kind: str, producer: str, copy: Path) -> None:
        first = json.loads(plain(copy)[FACTS].splitlines()[0])
        first["key"] |= {"kind": kind, "producer": producer}
        line = json.dumps(first).encode() + b"\n"
        replace(copy, FACTS, packed(line), plain_size=len(line))
        self.refused(copy, f"a fact {kind} of {producer} has no place")

    @pytest.mark.parametrize("how", ["lacking", "other bytes", "no head", "cut"])
    def test_blobs_that_are_not_those_of_the_facts(self, how: str, copy: Path) -> None:
        data = plain(copy)[BLOBS]
        end = data.index(b"\n") + 1
        size = int(data[:end].split()[1])
        made = {
            "lacking": data[end + size :],
            "other bytes": data[:end] + b"x" * size + data[end + size :],
            "no head": b"nonsense" + data,
            "cut": data[:-10],
        }[how]
        replace(copy, BLOBS, packed(made), plain_size=len(made))
        self.refused(copy, "lacks 1 blobs|arrived|should begin|ends within a blob|does not unpack")

    def test_bundle_with_names_that_are_none_of_a_mirror(self, copy: Path, tmp_path: Path) -> None:
        bundle = next((copy / "git").iterdir())
        data = bundle.read_bytes().replace(b" refs/repositories/", b" refs/heads/another/")
        replace(copy, f"git/{bundle.name}", data)
        chosen = replay(tmp_path, copy, **UP_TO_EXTRACTION)
        run(chosen)
        with closing(Ledger(chosen.paths.ledger)) as ledger:
            ledger.invalidate(why="again", producer="github.extract")
        with pytest.raises(SnapshotError, match="which is none of a mirror's"):
            run(chosen)


class Killed(Exception):
    """What a test does to a replay."""


class TestKill:
    """A replay that is killed while it takes the snapshot in goes on in the next run."""

    @pytest.mark.parametrize("after", [0, 1, 3])
    @pytest.mark.parametrize("where", ["blobs", "facts"])
    def test_is_taken_in_by_the_next_run(self, where: str, after: int, place: Place, tmp_path: Path) -> None:
        chosen = settled(replay(tmp_path, place.snapshot, **UP_TO_EXTRACTION))
        left = after

        def or_killed() -> None:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1

        class MortalBlobs(BlobStore):
            def put_stream(self, digest: str, chunks: Any) -> None:
                or_killed() if where == "blobs" else None
                super().put_stream(digest, chunks)

        class MortalLedger(Ledger):
            def add(self, fact: Fact, run_id: str) -> None:
                or_killed() if where == "facts" else None
                super().add(fact, run_id)

        blobs, manifest = MortalBlobs(chosen.paths.blobs), read_manifest(place.snapshot)
        with closing(MortalLedger(chosen.paths.ledger)) as ledger, pytest.raises(Killed):
            take_in(place.snapshot, manifest, ledger, blobs, chosen)
        assert len(all_facts(chosen)) == (after if where == "facts" else 0)
        run(chosen)
        assert of_the_crawl(all_facts(chosen)) == of_the_crawl(all_facts(place.settings))
