"""Building and rebuilding: content is the same for the same inputs, and everything is for the same facts."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import datasets
import pytest
from release_items import (
    VERSIONS,
    Store,
    accepted,
    candidate,
    content,
    fact,
    faulted,
    rejected,
    settings,
    tree,
)

from exporters.interface import ReleaseItem
from exporters.lock import content_versions
from exporters.parquet import read_rows
from exporters.release import Release, build, rebuild
from miner.core.errors import ReleaseError
from miner.core.ledger import fact_id
from miner.core.records import Visibility


def some_items() -> list[ReleaseItem]:
    latin = candidate("pypi__wordlib-1.3.0", patch="diff --git a/x b/x\n+caf\udce9\n")
    return [
        accepted("pypi__wordlib-1.1.0"),
        accepted("pypi__wordlib-1.2.0"),
        accepted("pypi__wordlib-1.3.0", candidate=latin),
        accepted("pypi__quietlib-7.7.7", visibility=Visibility.PRIVATE),
        accepted("pypi__secretlib-6.6", visibility=Visibility.HOLD_OUT),
        rejected(),
    ]


def make(store: Store, items: list[ReleaseItem], folder: Path) -> Release:
    stored = [store.add(item) for item in items]
    return build(stored, settings(), content_versions(), folder, store.runs(stored))


def store_in(folder: Path, run: int = 0) -> Store:
    folder.mkdir()
    return Store(folder, run)


def test_release_adds_up_and_is_written_where_it_was_asked_for(tmp_path: Path) -> None:
    made = make(store_in(tmp_path / "a"), [*some_items(), faulted()], tmp_path / "release")
    assert (made.accepted, made.rejected, made.unmeasured, made.left_out) == (3, 2, 1, 1)
    assert made.changed
    assert sorted(tree(made.folder)) == [
        "README.md",
        "data/test-00000-of-00001.parquet",
        "manifest.json",
        "measurements/measurements.lock.json",
        "measurements/measurements.parquet",
        "measurements/unmeasured.parquet",
        "rejected.parquet",
        "release.lock",
    ]


def test_independent_runs_make_the_same_content_and_other_measurements(tmp_path: Path) -> None:
    one = make(store_in(tmp_path / "a"), some_items(), tmp_path / "one")
    again = [item.model_copy(update={"trail": tuple(_later(f, 3) for f in item.trail)}) for item in some_items()]
    other = make(store_in(tmp_path / "b", run=3), again[::-1], tmp_path / "other")
    assert content(tree(one.folder)) == content(tree(other.folder))
    assert tree(one.folder) != tree(other.folder)


def _later(one: object, run: int) -> object:
    key = one.key  # type: ignore[attr-defined] # a Fact
    return fact(key.subject, key.kind, run=run)


def test_same_facts_make_the_same_measurements(tmp_path: Path) -> None:
    one = make(store_in(tmp_path / "a"), some_items(), tmp_path / "one")
    other = make(store_in(tmp_path / "b"), some_items(), tmp_path / "other")
    assert tree(one.folder) == tree(other.folder)


def test_building_again_changes_nothing(tmp_path: Path) -> None:
    store = store_in(tmp_path / "a")
    make(store, some_items(), tmp_path / "release")
    assert not make(store, some_items(), tmp_path / "release").changed


def test_fault_that_a_rerun_repairs_leaves_no_trace_in_the_content(tmp_path: Path) -> None:
    store = store_in(tmp_path / "a")
    broken = make(store, [*some_items()[1:], faulted("pypi__wordlib-1.1.0")], tmp_path / "release")
    assert broken.unmeasured == 1
    assert "Incomplete" in (broken.folder / "README.md").read_text()
    repaired = make(store, some_items(), tmp_path / "release")
    undisturbed = make(store_in(tmp_path / "b"), some_items(), tmp_path / "other")
    assert content(tree(repaired.folder)) == content(tree(undisturbed.folder))


def test_rebuild_gives_every_byte_again_when_the_ledger_has_grown(tmp_path: Path) -> None:
    store = store_in(tmp_path / "a")
    made = make(store, [*some_items(), faulted()], tmp_path / "release")

    store.ledger.begin_run("run-9", "run", settings(), VERSIONS)
    store.run = 9
    store.add(accepted("pypi__newlib-1.0", run=9))
    retry = fact("pypi__wordlib-1.1.0", "case", run=9)
    retry = retry.model_copy(
        update={"key": retry.key.model_copy(update={"ordinal": 1}), "payload": {"of": "other"}, "outcome": "disk-full"}
    )
    store.ledger.add(retry, "run-9")
    store.ledger.invalidate(why="test", producer="validate.after")

    again = rebuild(made.folder / "release.lock", store.ledger, store.blobs, store.load, tmp_path / "again")

    assert tree(again.folder) == tree(made.folder)
    assert again.lock == made.lock
    assert again.same_measurements is True


def test_rebuild_keeps_the_frozen_decision_and_conditions(tmp_path: Path) -> None:
    store = store_in(tmp_path / "a")
    stored = [store.add(item) for item in some_items()]
    other = settings("measure.test.timeout_s=77.0", "policy.min_fail_to_pass=50")
    made = build(stored, other, content_versions(), tmp_path / "release")
    again = rebuild(made.folder / "release.lock", store.ledger, store.blobs, store.load, tmp_path / "again")
    assert content(tree(again.folder)) == content(tree(made.folder))
    assert read_rows((again.folder / "data/test-00000-of-00001.parquet").read_bytes())[0]["timeout_s"] == 77.0


def test_rebuild_from_another_run_of_the_same_inputs_says_that_measurements_differ(tmp_path: Path) -> None:
    made = make(store_in(tmp_path / "a"), some_items(), tmp_path / "release")
    other = store_in(tmp_path / "b", run=4)
    for item in some_items():
        other.add(item.model_copy(update={"trail": tuple(_later(f, 4) for f in item.trail)}))
    again = rebuild(made.folder / "release.lock", other.ledger, other.blobs, other.load, tmp_path / "again")
    assert content(tree(again.folder)) == content(tree(made.folder))
    assert again.same_measurements is False


def test_missing_fact_is_named(tmp_path: Path) -> None:
    made = make(store_in(tmp_path / "a"), [rejected()], tmp_path / "release")
    empty = store_in(tmp_path / "b")
    name = made.lock.items[0].facts[0].id
    with pytest.raises(ReleaseError, match=f"pypi__shapes-2.0: fact {name} is not in the ledger"):
        rebuild(made.folder / "release.lock", empty.ledger, empty.blobs, empty.load, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_changed_fact_is_named(tmp_path: Path) -> None:
    store = store_in(tmp_path / "a")
    made = make(store, [rejected()], tmp_path / "release")
    name = made.lock.items[0].facts[1].id
    with sqlite3.connect(tmp_path / "a" / "ledger.sqlite3") as database:
        database.execute('UPDATE facts SET payload = \'{"of": "forged"}\' WHERE fact_id = ?', (name,))
    with pytest.raises(ReleaseError, match=rf"fact {name} \(validate.after\) says something else"):
        rebuild(made.folder / "release.lock", store.ledger, store.blobs, store.load, tmp_path / "again")


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_missing_or_damaged_blob_is_named(tmp_path: Path, harm: str) -> None:
    store = store_in(tmp_path / "a")
    made = make(store, [accepted()], tmp_path / "release")
    fact_read = store.ledger.get(made.lock.items[0].facts[0].id)
    assert fact_read is not None
    digest = fact_read.blobs["lock"]
    (path,) = (tmp_path / "a" / "blobs").rglob(f"{digest}.zst")
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(b"garbage")
    with pytest.raises(ReleaseError, match=rf"pypi__wordlib-1.1.0.*{digest}"):
        rebuild(made.folder / "release.lock", store.ledger, store.blobs, store.load, tmp_path / "again")


def test_rebuild_by_other_code_says_which_files_and_versions_differ(tmp_path: Path) -> None:
    store = store_in(tmp_path / "a")
    stored = [store.add(accepted())]
    made = build(stored, settings(), {**content_versions(), "pyarrow": "0.1"}, tmp_path / "release")

    def other_code(instance_id: str, trail: object, decision: object) -> ReleaseItem:
        item = store.load(instance_id, trail, decision)  # type: ignore[arg-type] # as the protocol has them
        return item.model_copy(update={"test_command": "tox"})

    with pytest.raises(ReleaseError, match=r"other bytes for data/test-\S+; the release was made with pyarrow 0.1"):
        rebuild(made.folder / "release.lock", store.ledger, store.blobs, other_code, tmp_path / "again")


def test_facts_of_the_lock_are_those_of_the_candidates(tmp_path: Path) -> None:
    store = store_in(tmp_path / "a")
    stored = store.add(accepted())
    made = build([stored], settings(), VERSIONS, tmp_path / "release", store.runs([stored]))
    assert [f.id for f in made.lock.items[0].facts] == [fact_id(f.key) for f in stored.trail]
    rows = read_rows((made.folder / "measurements/measurements.parquet").read_bytes())
    assert {row["run_id"] for row in rows} == {"run-0"}


def load(folder: Path, cache: Path, name: str | None = None, split: str = "test") -> datasets.Dataset:
    return datasets.load_dataset(str(folder), name, split=split, cache_dir=str(cache))


def test_datasets_library_loads_the_folder_by_its_card(tmp_path: Path) -> None:
    made = build([accepted(), rejected(), faulted()], settings(), VERSIONS, tmp_path / "release")
    tasks = load(made.folder, tmp_path / "cache")
    assert tasks["instance_id"][:] == ["pypi__wordlib-1.1.0"]
    assert tasks.features["FAIL_TO_PASS"] == datasets.List(datasets.Value("string"))
    assert tasks.features["created_at"] == datasets.Value("timestamp[us, tz=UTC]")
    for name in ("rejected", "measurements", "unmeasured"):
        assert load(made.folder, tmp_path / "cache", name, split=name).num_rows


def test_complete_release_offers_no_table_without_rows(tmp_path: Path) -> None:
    made = build([accepted()], settings(), VERSIONS, tmp_path / "release")
    names = datasets.get_dataset_config_names(str(made.folder))
    assert sorted(names) == ["default", "measurements"]


def test_release_without_any_candidate_can_be_read(tmp_path: Path) -> None:
    made = build([], settings(), VERSIONS, tmp_path / "release")
    path = str(made.folder / "data/test-00000-of-00001.parquet")
    tasks = datasets.load_dataset("parquet", data_files=path, split="train", streaming=True)
    assert list(tasks) == []
    assert "FAIL_TO_PASS" in tasks.features
