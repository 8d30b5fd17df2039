"""Independent crawls of one forge make the same release to the byte, whatever they met on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forge_month import run
from month_faults import PATIENT, Place, some, undisturbed

pytestmark = pytest.mark.loopback

MET: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "nothing": ("graphql", {"fault": "server-error", "times": 0}, {}),
    "one-worker": ("graphql", {"fault": "server-error", "times": 0}, {"run__workers": 1, "run__crawl_workers": 1}),
    "short-pages": ("graphql", {"fault": "heavy", "nodes": 1500}, {}),
    "short-lists": ("graphql", {"fault": "heavy", "nodes": 200}, {}),
    "errors": ("graphql", {"fault": "server-error", "status": 502, "times": 2}, {}),
}
"""Name -> (where the forge misbehaves, how, settings)."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with undisturbed(tmp_path_factory.mktemp("place")) as place:
        yield place


@pytest.fixture(autouse=True)
def healed(place: Place) -> Iterator[None]:
    yield
    place.forge.heal()


def content(folder: Path) -> dict[str, bytes]:
    """The files of a release that do not tell how it was made."""
    measured = ("measurements/measurements.parquet", "measurements/measurements.lock.json")
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if name not in measured}


@pytest.mark.parametrize("met", some(MET, *(MET.keys() - {"short-lists"})))
def test_release_is_the_same_to_the_byte(met: str, place: Place, tmp_path: Path) -> None:
    where, fault, changes = MET[met]
    place.forge.fail(where, **fault)
    assert run(place.settings(tmp_path, **{**PATIENT, **changes})).faulted == 0
    made, expected = content(tmp_path / "out"), content(place.folder / "out")
    assert {"rejected.parquet", "release.lock", "manifest.json", "README.md"} <= made.keys()
    assert sorted(made) == sorted(expected)
    assert [name for name in made if made[name] != expected[name]] == []
