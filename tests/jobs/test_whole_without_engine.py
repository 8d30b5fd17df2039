"""What is known is not measured again: no engine and no index is asked, and the same facts make the same bytes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from crawlers.index_server import IndexServer
from planted import BELOW, TERMINAL, TWO, know_base_image, plant, test_run
from world import Pair, content, files, pair, publish, quiet_pair, settings

from exporters.release import LOCK
from miner.core.blobs import BlobStore
from miner.core.errors import DockerUnavailable, LedgerError, ReleaseError
from miner.core.ledger import Ledger
from miner.core.reasons import Reason
from miner.core.records import Observation
from miner.core.settings import Settings, configs_dir
from miner.jobs import monthly, release
from miner.jobs.summary import Summary

pytestmark = pytest.mark.loopback


@dataclass(frozen=True)
class World:
    """An index with good pairs, a pair without a changed test, and one that is not there; and a ledger of them."""

    server: IndexServer
    pairs: tuple[Pair, ...]
    known: Path

    def settings(self, folder: Path, **changes: Any) -> Settings:
        return settings(folder, self.server, *self.pairs, **changes)

    def mined(self, folder: Path) -> Settings:
        """A copy of the ledger, and of the release that was made of it."""
        shutil.copytree(self.known, folder, dirs_exist_ok=True)
        return self.settings(folder)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with IndexServer() as server:
        pairs = [publish(server, "alpha"), quiet_pair(server, "quiet"), publish(server, "beta"), pair("gone")]
        made = World(server, tuple(pairs), tmp_path_factory.mktemp("known"))
        planted_run(made.settings(made.known))
        yield made


def run(chosen: Settings) -> Summary:
    return monthly.run(chosen, quiet=True)


def planted_run(chosen: Settings) -> Summary:
    plant(chosen)
    return run(chosen)


def test_second_run_measures_nothing_and_asks_neither_engine_nor_index(world: World, tmp_path: Path) -> None:
    chosen = world.mined(tmp_path)
    decisions = tuple(Ledger(chosen.paths.ledger).decisions())
    released, asked = files(chosen.paths.release), len(world.server.requests)
    again = run(chosen)
    assert (again.measured, again.faulted, again.tasks) == (0, 0, 2)
    assert again.decisions == decisions
    assert len(world.server.requests) == asked
    assert files(chosen.paths.release) == released


def test_content_is_the_same_in_two_ledgers_and_measurements_are_not(world: World, tmp_path: Path) -> None:
    one, other = world.mined(tmp_path / "one"), world.settings(tmp_path / "another-folder" / "deep")
    planted_run(other)
    assert content(one.paths.release) == content(other.paths.release)
    assert files(one.paths.release) != files(other.paths.release)


def test_content_does_not_depend_on_how_many_work_at_once(tmp_path: Path) -> None:
    with IndexServer() as server:
        pairs = [quiet_pair(server, f"pkg{number}") for number in range(4)]
        made = []
        for workers, order in ((1, pairs), (4, pairs[::-1])):
            chosen = settings(tmp_path / f"{workers}", server, *order, run__workers=workers)
            assert run(chosen).measured == 8
            made.append({path: data for path, data in content(chosen.paths.release).items() if path != LOCK})
    assert made[0] == made[1]


def test_another_policy_is_judged_with_what_is_known(world: World, tmp_path: Path) -> None:
    world.mined(tmp_path)
    strict = run(world.settings(tmp_path, policy__min_fail_to_pass=2))
    assert (strict.measured, strict.tasks) == (0, 0)
    codes = {one.instance_id: one.code for one in strict.decisions}
    assert codes["pypi__alpha-1.1"] is Reason.TOO_FEW_FLIPS
    assert run(world.settings(tmp_path)).tasks == 2


@pytest.mark.parametrize("changed", ["measure__test__timeout_s", "measure__install__timeout_s", "measure__hash_seed"])
def test_what_steers_measuring_makes_what_is_known_another_thing(changed: str, world: World, tmp_path: Path) -> None:
    world.mined(tmp_path)
    with pytest.raises(DockerUnavailable):
        run(world.settings(tmp_path, **{changed: 77}))


def test_another_base_image_needs_the_engine(world: World, tmp_path: Path) -> None:
    chosen = world.mined(tmp_path)
    know_base_image(chosen, seed=2)
    with pytest.raises(DockerUnavailable):
        run(chosen)


def test_base_images_of_two_architectures_need_the_engine_to_tell_which(world: World, tmp_path: Path) -> None:
    chosen = world.mined(tmp_path)
    know_base_image(chosen, architecture="arm64")
    with pytest.raises(DockerUnavailable):
        run(chosen)


class TestRebuild:
    """From the lock alone, after the ledger has learned more."""

    @pytest.fixture
    def released(self, world: World, tmp_path: Path) -> Settings:
        chosen = world.mined(tmp_path)
        shutil.copytree(chosen.paths.release, tmp_path / "kept")
        return chosen

    def test_gives_every_byte_again_when_another_pair_came(
        self, released: Settings, world: World, tmp_path: Path
    ) -> None:
        grown = settings(tmp_path, world.server, *world.pairs, publish(world.server, "gamma"))
        assert planted_run(grown).tasks == 3
        rebuilt = release.rebuild(grown, tmp_path / "kept" / LOCK, tmp_path / "again")
        assert (rebuilt.accepted, rebuilt.rejected) == (2, 2)
        assert files(tmp_path / "again") == files(tmp_path / "kept")

    def test_gives_every_byte_again_when_a_run_was_taken_out_of_use_and_ended_otherwise(
        self, released: Settings, tmp_path: Path
    ) -> None:
        ledger = Ledger(released.paths.ledger)
        assert len(ledger.invalidate(why="flaky", producer="sandbox.run_tests", kind="validate.after")) == 2
        blobs = BlobStore(released.paths.blobs)

        def fails(_subject: str, kind: str, seen: Observation) -> Observation:
            failed = test_run(blobs, {TWO: "passed", BELOW: "failed"}, TERMINAL)
            return failed if kind == "validate.after" else seen

        plant(released, fails)
        assert run(released).tasks == 0
        release.rebuild(released, tmp_path / "kept" / LOCK, tmp_path / "again")
        assert files(tmp_path / "again") == files(tmp_path / "kept")

    def test_does_not_look_at_the_policy_of_today(self, released: Settings, world: World, tmp_path: Path) -> None:
        strict = world.settings(tmp_path, policy__min_fail_to_pass=9, release__name="another")
        release.rebuild(strict, tmp_path / "kept" / LOCK, tmp_path / "again")
        assert files(tmp_path / "again") == files(tmp_path / "kept")

    def test_takes_the_interpreters_of_the_lock_and_not_those_that_came_since(
        self, released: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        later = tmp_path / "configs"
        shutil.copytree(configs_dir(), later)
        with (later / "pythons.toml").open("a") as file:
            file.write('[[python]]\nversion = "3.12"\nexecutable = "/usr/bin/python3.12"\n')
            file.write("released = 2023-10-02\nend_of_life = 2028-10-31\n")
        before = released.hash
        for module in ("miner.core.settings", "installers.pythons"):
            monkeypatch.setattr(f"{module}.configs_dir", lambda: later)
        assert released.hash != before
        release.rebuild(released, tmp_path / "kept" / LOCK, tmp_path / "again")
        assert files(tmp_path / "again") == files(tmp_path / "kept")

    def test_names_the_fact_that_a_ledger_does_not_have(self, released: Settings, world: World, tmp_path: Path) -> None:
        other = world.settings(tmp_path / "other")
        Ledger(other.paths.ledger).close()
        with pytest.raises(ReleaseError, match=r"pypi__alpha-1\.1: fact \w{64} is not in the ledger"):
            release.rebuild(other, tmp_path / "kept" / LOCK, tmp_path / "again")
        assert not (tmp_path / "again").exists()

    @pytest.mark.parametrize("what", ["missing", "damaged"])
    def test_names_the_blob_that_is_lost(self, what: str, released: Settings, tmp_path: Path) -> None:
        [fact] = [one for one in Ledger(released.paths.ledger).facts_of("pypi__beta-1.1") if "diff" in one.blobs]
        [file] = (tmp_path / "var" / "blobs").rglob(f"{fact.blobs['diff']}*")
        file.unlink() if what == "missing" else file.write_bytes(file.read_bytes()[:20])
        with pytest.raises(ReleaseError, match=rf"pypi__beta-1\.1.*{fact.blobs['diff']}"):
            release.rebuild(released, tmp_path / "kept" / LOCK, tmp_path / "again")
        assert not (tmp_path / "again").exists()

    def test_makes_no_ledger_where_there_is_none(self, released: Settings, world: World, tmp_path: Path) -> None:
        with pytest.raises(LedgerError, match="no ledger"):
            release.rebuild(world.settings(tmp_path / "typo"), tmp_path / "kept" / LOCK, tmp_path / "again")
        assert not (tmp_path / "typo").exists()
