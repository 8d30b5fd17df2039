"""The demo, whole: real packages, real containers, and outcomes that were known before."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import docker
import pandas as pd
import pyarrow.parquet as pq
import pytest
from demo_run import ACCEPTED, CONFIG, OUTCOMES, REJECTED, Demo, collected, counted, created_containers
from whole_run import Place, content, everything, left_in_the_engine, pairs_option, summary_of

from exporters.schema import MEASUREMENTS, TASKS
from exporters.schema import REJECTED as REJECTED_TABLE
from miner.core.blobs import BlobStore
from miner.core.records import ReleasePair
from miner.crawlers.releases import instance_id
from miner.sandbox.base_image import BaseImage

needs_everything = [pytest.mark.docker, pytest.mark.index]
ONE_MORE = {"name": "itsdangerous", "old": "2.1.0", "new": "2.1.1"}


def test_every_pair_of_the_demo_has_a_known_outcome() -> None:
    pairs = tomllib.loads(CONFIG.read_text())["pairs"]
    assert sorted(instance_id(ReleasePair(**pair)) for pair in pairs) == sorted(OUTCOMES)


@pytest.fixture(scope="module")
def rows(demo: Demo) -> dict[str, dict[str, Any]]:
    """The tasks of the release by id."""
    return {row["instance_id"]: row for row in pq.read_table(demo.place.out / TASKS.path).to_pylist()}


@pytest.fixture(scope="module")
def rejections(demo: Demo) -> dict[str, dict[str, Any]]:
    """The rejected candidates of the release by id."""
    return {row["instance_id"]: row for row in pq.read_table(demo.place.out / REJECTED_TABLE.path).to_pylist()}


class TestDemo:
    """Everything here looks at one run of the demo, and changes nothing of it."""

    pytestmark = needs_everything

    def test_release_holds_every_pair_once_and_where_it_belongs(self, rows, rejections) -> None:
        assert sorted(rows) == ACCEPTED
        assert sorted(rejections) == REJECTED

    @pytest.mark.parametrize("name", ACCEPTED)
    def test_task_has_the_tests_that_were_counted_by_hand(self, name: str, rows) -> None:
        row, known = rows[name], OUTCOMES[name]
        assert len(row["FAIL_TO_PASS"]) == known["fail_to_pass"]
        assert len(row["FAIL_TO_FAIL"]) == known.get("fail_to_fail", 0)

    @pytest.mark.parametrize("name", REJECTED)
    def test_rejection_has_the_reason_that_was_found_by_hand(self, name: str, rejections) -> None:
        assert rejections[name]["code"] == OUTCOMES[name]["state"]

    @pytest.mark.parametrize("name", [name for name, known in OUTCOMES.items() if "after" in known])
    def test_pytest_itself_counts_what_was_counted_by_hand(self, name: str, demo: Demo) -> None:
        nothing = {"failed": 0, "passed": 0, "errors": 0}
        for side in ("before", "after"):
            assert counted(demo.log(name, f"validate.{side}")) == {**nothing, **OUTCOMES[name][side]}

    def test_wcwidth_names_the_tests_that_fail_on_both_sides(self, rows, demo: Demo) -> None:
        named = rows["pypi__wcwidth-0.2.10"]["FAIL_TO_FAIL"]
        assert len(named) == 2
        log = demo.log("pypi__wcwidth-0.2.10", "validate.after")
        assert all(f"FAILED {nodeid}" in log for nodeid in named)

    def test_seven_tests_of_tabulate_sit_behind_the_collection_error(self, rows) -> None:
        causes = [found["cause"] for found in rows["pypi__tabulate-0.8.10"]["fail_to_pass_causes"]]
        assert causes.count("collection-error") == 7
        assert len(causes) == 17

    def test_ids_of_marshmallow_that_hold_the_time_are_named_as_unstable(self, demo: Demo) -> None:
        account = json.loads(demo.place.ask("why", "pypi__marshmallow-3.21.2", "--json"))
        unstable = next(finding for finding in account["findings"] if finding["rule"] == "ids-stable")
        assert unstable["value"] == 1
        assert "test_deserialization.py::TestFieldDeserialization::test_invalid_datetime_des" in unstable["detail"]
        sides = [collected(demo.log("pypi__marshmallow-3.21.2", "validate.after", f"collect-{n}")) for n in (0, 1)]
        assert len(sides[0] ^ sides[1]) == 4  # two ids, each with another time in it the second time

    def test_funnel_adds_up(self, demo: Demo) -> None:
        stages = json.loads(demo.place.ask("funnel", "--json"))["stages"]
        assert stages[0]["entered"] == len(OUTCOMES)
        assert stages[-1]["passed"] == len(ACCEPTED)
        for stage, following in zip(stages, [*stages[1:], {"entered": len(ACCEPTED)}], strict=True):
            assert stage["entered"] == sum(stage["rejected"].values()) + stage["passed"]
            assert stage["passed"] == following["entered"]
        assert demo.place.ask("funnel") in demo.text

    def test_every_task_says_what_it_is_about(self, rows) -> None:
        assert [name for name, row in rows.items() if not row["problem_statement"].strip()] == []

    @pytest.mark.parametrize("name", REJECTED)
    def test_rejection_is_explained_with_what_was_seen(self, name: str, demo: Demo) -> None:
        text = demo.place.ask("why", name)
        for words in (*OUTCOMES[name]["why"], f"({OUTCOMES[name]['state']})"):
            assert words in text

    def test_nothing_is_left_in_the_engine_but_images(self, demo: Demo, docker_client: docker.DockerClient) -> None:
        assert len(demo.created) > len(ACCEPTED)
        assert left_in_the_engine(docker_client, demo.owner) == []

    def test_nothing_that_was_released_says_where_it_was_made(self, demo: Demo) -> None:
        for name, whole in everything(demo.place.out).items():
            data = whole
            if name.endswith(".parquet"):
                data = json.dumps(pq.read_table(demo.place.out / name).to_pylist(), default=str).encode()
            assert found_in(data, demo.marks) == [], name

    def test_no_layer_of_an_image_says_where_it_was_made(self, demo: Demo, base_image: BaseImage) -> None:
        blobs = BlobStore(str(demo.place.work / "blobs"))
        below = {layer.diff_id for layer in base_image.layers}
        layers = {layer["diff_id"] for image in manifest(demo) for layer in image["layers"]} - below
        assert len(layers) > len(ACCEPTED)
        for layer in sorted(layers):
            assert found_in(blobs.get(layer.removeprefix("sha256:")), demo.marks) == []
        for source in base_image.sources(demo.place.work / "base"):
            assert source.open is not None
            with source.open() as stream:
                assert found_in(stream.read(), demo.marks) == []

    def test_engine_holds_every_image_of_the_manifest(self, demo: Demo, docker_client: docker.DockerClient) -> None:
        images = manifest(demo)
        assert [image["instance_id"] for image in images] == ACCEPTED
        for image in images:
            attrs = docker_client.images.get(image["image"]).attrs
            assert attrs["Id"] == image["digest"] or "Descriptor" in attrs
            assert attrs["RootFS"]["Layers"] == [layer["diff_id"] for layer in image["layers"]]
            assert image["size"] == sum(layer["size"] for layer in image["layers"])
            assert 0.5 * image["size"] < attrs["Size"] <= image["size"]  # a tar has headers and padding

    def test_row_and_manifest_name_one_image(self, demo: Demo, rows) -> None:
        for image in manifest(demo):
            row = rows[image["instance_id"]]
            assert (row["image"], row["image_digest"], row["image_size"]) == (
                image["image"],
                image["digest"],
                image["size"],
            )

    def test_release_is_read_by_datasets_and_pandas(self, demo: Demo, tmp_path: Path) -> None:
        tasks = datasets.load_dataset(str(demo.place.out), split="test", cache_dir=str(tmp_path))
        assert sorted(tasks["instance_id"]) == ACCEPTED
        frame = pd.read_parquet(demo.place.out / TASKS.path).set_index("instance_id")
        assert len(frame.loc["pypi__tabulate-0.8.10", "FAIL_TO_PASS"]) == 17
        assert str(frame["created_at"].dt.tz) == "UTC"
        measured = pd.read_parquet(demo.place.out / MEASUREMENTS.path)
        assert (measured["wall_s"] >= 0).all()

    def test_second_run_starts_no_container_and_changes_no_byte(
        self, demo: Demo, docker_client: docker.DockerClient
    ) -> None:
        before = everything(demo.place.out)
        with created_containers(docker_client, demo.owner) as created:
            summary = summary_of(demo.place.run("run", "--json"))
        assert created == []
        assert (summary["measured"], summary["tasks"]) == (0, len(ACCEPTED))
        assert summary["seconds"] < 30
        assert everything(demo.place.out) == before


def manifest(demo: Demo) -> list[dict[str, Any]]:
    images: list[dict[str, Any]] = json.loads((demo.place.out / "manifest.json").read_text())["images"]
    return images


def found_in(data: bytes, marks: dict[str, bytes]) -> list[str]:
    return [name for name, mark in marks.items() if mark in data]


@pytest.fixture(scope="module")
def grown(demo: Demo, new_place: Callable[..., Place]) -> Place:
    """The demo's ledger, grown by another pair, and by a test run that was taken out of use and measured again."""
    made = new_place("grown", *demo.place.options, "-c", f"paths.blobs_url={demo.place.work / 'blobs'}")
    for name in ("downloads", "repos"):
        shutil.copytree(demo.place.work / name, made.work / name)
    demo.place.copy_ledger(made)
    made.run("run", *pairs_option([ONE_MORE]))
    which = ("--kind", "validate.after", "--subject", "pypi__pluggy-1.5.0")
    made.run("invalidate", "sandbox.run_tests", "--why", "a test", *which)
    assert "same content" in made.run("remeasure").stdout
    return made


class TestRebuild:
    """A release is rebuilt to the byte from its lock, whatever its ledger has learned since."""

    pytestmark = needs_everything

    def test_every_byte_again(self, demo: Demo, tmp_path: Path) -> None:
        rebuild(demo.place, demo, tmp_path / "again")

    def test_every_byte_again_after_the_ledger_has_grown(self, grown: Place, demo: Demo, tmp_path: Path) -> None:
        assert len(grown.facts()) >= len(demo.place.facts()) + 3
        rebuild(grown, demo, tmp_path / "again")

    def test_release_from_what_was_measured_again_differs_only_in_the_facts_that_it_names(
        self, grown: Place, demo: Demo
    ) -> None:
        new, old = content(grown.out), content(demo.place.out)
        assert sorted(name for name in old if new[name] != old[name]) == ["README.md", "release.lock"]


def rebuild(place: Place, demo: Demo, out: Path) -> None:
    place.run("release", "rebuild", str(demo.place.out / "release.lock"), "--out", str(out))
    assert everything(out) == everything(demo.place.out)
