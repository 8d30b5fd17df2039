"""Layers of the ground that another ledger has made."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from installers.ground_cache import kept
from installers.layer import store
from miner.core.blobs import BlobStore
from miner.core.records import Observation
from miner.sandbox.base_image import layer_path
from miner.sandbox.image_archive import TarEntry

INPUTS = {"kind": "install.ground", "packages": ("gcc",)}


class Machine:
    """What two ledgers on one machine share: the folder of the base image."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = 0
        (folder / "base").mkdir()

    def workshop(self, ledger: str) -> SimpleNamespace:
        return SimpleNamespace(base_cache=self.folder / "base", blobs=BlobStore(str(self.folder / ledger)))

    def ask(self, ledger: str, outcome: str = "ok", **inputs) -> Observation:
        workshop = self.workshop(ledger)

        def make() -> Observation:
            self.made += 1
            layer = store([TarEntry("usr/bin/gcc", "file", content=b"gcc")], workshop.blobs, self.folder)
            return Observation(outcome=outcome, payload={"layer": layer.model_dump()})

        return kept(workshop, {**INPUTS, **inputs}, make)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_second_ledger_makes_nothing_and_has_the_layer(machine: Machine) -> None:
    first = machine.ask("one")
    assert machine.ask("two") == first
    assert machine.made == 1
    out = io.BytesIO()
    machine.workshop("two").blobs.copy_to(first.payload["layer"]["diff_id"].removeprefix("sha256:"), out)
    assert b"usr/bin/gcc" in out.getvalue()


def test_other_inputs_and_refusals_are_made_anew(machine: Machine) -> None:
    machine.ask("one")
    machine.ask("one", packages=("make",))
    assert machine.made == 2
    machine.ask("one", "system-package-unknown", packages=("nothing",))
    machine.ask("two", "system-package-unknown", packages=("nothing",))
    assert machine.made == 4


@pytest.mark.parametrize(
    "damage", [lambda file: file.unlink(), lambda file: file.write_bytes(b"cut")], ids=["gone", "cut"]
)
def test_a_layer_whose_file_is_lost_is_made_again(machine: Machine, damage) -> None:
    seen = machine.ask("one")
    file = layer_path(machine.folder / "base", seen.payload["layer"]["diff_id"])
    damage(file)
    assert machine.ask("two") == seen
    assert machine.made == 2
    assert machine.ask("three") == seen
    assert machine.made == 2


@pytest.mark.parametrize("left", [b"", b'{"payload": {"la'], ids=["empty", "cut"])
def test_a_record_that_a_machine_left_when_it_went_down_is_written_again(machine: Machine, left: bytes) -> None:
    seen = machine.ask("one")
    (record,) = (machine.folder / "base").glob("*.ground")
    record.write_bytes(left)
    assert machine.ask("two") == seen
    assert machine.made == 2
    assert machine.ask("three") == seen
    assert machine.made == 2
