"""The whole job on a month of a forge: from crawl to Parquet, in real containers, with outcomes known before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import docker
import pyarrow.parquet as pq
import pytest
from forge import Forge, World
from forge_month import MONTH, TOKEN
from month_projects import EVERY_BYTE, OPENED, REJECTED, Month, real_month
from whole_run import Place, everything, left_in_the_engine, summary_of

from exporters.schema import REJECTED as REJECTED_TABLE
from exporters.schema import TASKS

pytestmark = [pytest.mark.docker, pytest.mark.index]

Row = dict[str, Any]
LIST = """# repositories of the month
acme/tally
https://github.com/acme/weave   # by its address
acme/oldtool
acme/newtool                    # the same one
acme/rejects
forker/rejects
acme/unlicensed
acme/nothing
"""
ACCEPTED = ["acme__newtool-2", "acme__tally-3", "acme__tally-5", "acme__weave-2", "acme__weave-4"]
CODES = {**{name: code.value for name, code in REJECTED.items()}, "acme__newtool-4": "fails-after"}
REFUSED = {
    "forker/rejects": "repository-fork",
    "acme/unlicensed": "repository-licence",
    "acme/nothing": "repository-gone",
}
TESTS = {
    "acme__tally-3": (
        ["tests/test_counter.py::test_draw", "tests/test_counter.py::test_winner_of_nothing"],
        ["tests/test_counter.py::test_count", "tests/test_counter.py::test_winner"],
    ),
    "acme__tally-5": (
        ["tests/test_reading.py::test_mark", "tests/test_reading.py::test_read_what_windows_wrote"],
        ["tests/test_reading.py::test_read"],
    ),
    "acme__weave-2": (
        ["tests/test_text.py::test_woven[left is longer]"],
        ["tests/test_text.py::test_indented", "tests/test_text.py::test_woven[one line]"],
    ),
    "acme__weave-4": (
        ["tests/test_text.py::test_indented"],
        ["tests/test_text.py::test_woven[left is longer]", "tests/test_text.py::test_woven[one line]"],
    ),
    "acme__newtool-2": (
        ["test/test_parse.py::ParseTest::test_value_with_equals_sign"],
        ["test/test_parse.py::ParseTest::test_pairs"],
    ),
}


@dataclass(frozen=True)
class Run:
    """What the fixture made: a run, its forge, and what it printed."""

    place: Place
    forge: Forge
    month: Month
    text: str

    def table(self, path: str) -> dict[str, Row]:
        """Rows of a table of the release, by instance id."""
        return {row["instance_id"]: row for row in pq.read_table(self.place.out / path).to_pylist()}


@pytest.fixture(scope="module")
def done(new_place: Callable[..., Place], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The job as its README says, in a process of its own."""
    folder = tmp_path_factory.mktemp("forge")
    month = real_month(World(folder))
    (folder / "repositories.txt").write_text(LIST)
    with pytest.MonkeyPatch.context() as patch, Forge(month.world) as forge:
        patch.setenv("GITHUB_TOKEN", TOKEN)
        chosen = {
            "mine.source": '"github"',
            "mine.month": MONTH,
            "mine.repository_list": folder / "repositories.txt",
            "github.url": forge.url,
            "github.api_url": forge.api_url,
            "policy.pulls.min_link_confidence": "strong",
            "policy.pulls.gate_sample": 0,
        }
        place = new_place("month", *(part for name, value in chosen.items() for part in ("-c", f"{name}={value}")))
        text = place.run("run", "--source", "github", "--month", MONTH, "--forge-url", forge.url).stdout
        yield Run(place, forge, month, text)


@pytest.fixture(scope="module")
def rows(done: Run) -> dict[str, Row]:
    return done.table(TASKS.path)


@pytest.fixture(scope="module")
def rejections(done: Run) -> dict[str, Row]:
    return done.table(REJECTED_TABLE.path)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


class TestDecisions:
    def test_every_candidate_is_where_it_belongs(self, rows, rejections) -> None:
        assert sorted(rows) == ACCEPTED
        assert {name: row["code"] for name, row in rejections.items()} == CODES

    def test_funnel_adds_up_with_what_was_taken_in(self, done: Run) -> None:
        found = json.loads(done.place.ask("funnel", "--json"))
        taken = found["discovery"]
        assert (taken["units"], taken["taken"], taken["faulted"]) == (7, 4, {})
        assert taken["refused"] == dict.fromkeys(REFUSED.values(), 1)
        assert (taken["merged"], taken["unlinked"], taken["linked"]) == (17, 1, 16)
        assert taken["linked"] == taken["entered"] == len(ACCEPTED) + len(CODES)
        stages = found["stages"]
        assert stages[0]["entered"] == taken["entered"]
        for stage, following in zip(stages, [*stages[1:], {"entered": len(ACCEPTED)}], strict=True):
            assert stage["entered"] == sum(stage["rejected"].values()) + stage["passed"]
            assert stage["passed"] == following["entered"]
        assert done.place.ask("funnel") in done.text

    def test_repositories_that_are_not_taken_are_named_with_the_reason(self, done: Run) -> None:
        for name, code in REFUSED.items():
            assert f"- {name} [{code}]" in done.text
        assert "asked for as acme/oldtool, it is acme/newtool now" in done.text

    def test_rejected_one_is_explained(self, done: Run) -> None:
        text = done.place.ask("why", "acme__rejects-9")
        assert "acme__rejects-9: rejected at discover (issue-gone)" in text
        assert "Fixes #2" in text
        text = done.place.ask("why", "acme__newtool-4")
        assert "acme__newtool-4: rejected at validate (fails-after)" in text
        assert "test_key_with_spaces" in text

    def test_accepted_one_is_explained(self, done: Run) -> None:
        account = json.loads(done.place.ask("why", "acme__tally-3", "--json"))
        assert account["decision"]["state"] == "accepted"
        assert {finding["outcome"] for finding in account["findings"]} == {"pass"}
        kinds = [fact["kind"] for fact in account["facts"]]
        assert kinds[:2] == ["source.look_up", "source.extract"]
        assert kinds[-2:] == ["validate.before", "validate.after"]

    def test_what_was_spent_is_what_the_forge_has_counted(self, done: Run) -> None:
        log = done.forge.log
        assert f"forge: {log.requests} requests, {log.points} points" in done.text


class TestRows:
    @pytest.mark.parametrize("name", ACCEPTED)
    def test_tests_are_those_that_were_written_for_it(self, name: str, rows) -> None:
        assert (rows[name]["FAIL_TO_PASS"], rows[name]["PASS_TO_PASS"]) == TESTS[name]
        assert rows[name]["FAIL_TO_FAIL"] == []

    def test_statement_is_made_of_all_issues_and_hints_are_what_was_said_before(self, rows) -> None:
        row = rows["acme__tally-3"]
        assert row["problem_statement"] == (
            "winner of nothing fails\n\n`winner([])` raises `ValueError`.\n\nIt should be `None`."
            "\n\n---\n\na draw has a winner\n\n`winner(['yes', 'no'])` is `'yes'`; nobody won."
        )
        assert [issue["number"] for issue in row["issues"]] == [1, 2]
        assert row["issues"][0]["created_at"] == at("2025-04-02T09:00:00Z")
        assert row["hints_text"] == ("An empty list comes in when a poll is opened.\n\n---\n\nTies should be nobody's.")

    def test_links_say_where_they_were_found_and_how_sure_they_are(self, rows) -> None:
        def links(name: str) -> set[tuple[int, str, str]]:
            return {(link["number"], link["provenance"], link["confidence"]) for link in rows[name]["links"]}

        certain = {(number, how, "certain") for number in (1, 2) for how in ("closing-reference", "timeline")}
        assert links("acme__tally-3") == {*certain, (1, "text", "strong"), (2, "text", "strong")}
        assert links("acme__weave-2") == {(1, "commit-message", "strong")}
        assert {link for link in links("acme__newtool-2") if link[2] == "certain"} == {
            (1, "closing-reference", "certain"),
            (1, "timeline", "certain"),
        }

    def test_times_and_names_are_those_of_the_forge(self, rows) -> None:
        assert {row["month"] for row in rows.values()} == {MONTH}
        assert {row["source"] for row in rows.values()} == {"github"}
        assert {row["created_at"] for row in rows.values()} == {at(OPENED)}
        assert rows["acme__tally-5"]["merged_at"] == rows["acme__tally-5"]["closed_at"] == at("2025-05-31T23:59:59Z")
        assert rows["acme__weave-2"]["merged_at"] == at("2025-05-01T00:00:00Z")
        assert all(row["first_public_at"] <= row["created_at"] for row in rows.values())
        numbers = {name: (row["repo"], row["pull_number"]) for name, row in rows.items()}
        assert numbers["acme__newtool-2"] == ("acme/newtool", 2)
        assert (rows["acme__tally-3"]["version"], rows["acme__tally-5"]["version"]) == ("2.3.0", "2.3.0")

    def test_base_is_what_the_way_of_merging_says(self, done: Run, rows) -> None:
        month = done.month
        bases = {name: row["base_commit"] for name, row in rows.items()}
        for name, pull in (("acme__tally-3", month.votes), ("acme__weave-4", month.blank)):
            assert bases[name] == pull.base_oid, "the merge base, not where the branch stood at the merge"
        for name, pull in (("acme__tally-5", month.windows), ("acme__newtool-2", month.equals)):
            assert pull.merge_commit is not None
            assert bases[name] == pull.merge_commit.parents[0]
        history = [commit.oid for commit in month.weave.history]
        assert month.unequal.merge_commit is not None
        last = history.index(month.unequal.merge_commit.oid)
        assert bases["acme__weave-2"] == history[last - 3], "before the first of the three that landed"

    def test_binary_and_carriage_returns_are_in_the_patch(self, rows) -> None:
        row = rows["acme__tally-5"]
        assert "GIT binary patch" in row["patch"]
        assert "+    return [line for line in text.splitlines() if line]\r\n" in row["patch"]
        assert "+yes\r\n" in row["test_patch"]
        assert row["test_files"] == ["tests/test_reading.py"]

    def test_what_a_rejected_row_says_can_be_looked_up(self, rejections) -> None:
        row = rejections["acme__rejects-4"]
        assert (row["repo"], row["month"], row["stage"], row["final"]) == ("acme/rejects", MONTH, "discover", True)
        assert {one["rule"]: one["code"] for one in row["findings"]}["human-author"] == "bot-author"
        assert len(row["facts"]) == 1, "nothing was fetched for it"


class TestImages:
    def test_image_holds_the_base_commit_and_nothing_behind_it(
        self, done: Run, rows, docker_client: docker.DockerClient
    ) -> None:
        asked = "git rev-parse HEAD; git rev-list --all | wc -l; git status --porcelain; git log --format=%P"
        for row in rows.values():
            said = docker_client.containers.run(
                row["image"], ["bash", "-c", asked], network_mode="none", working_dir=row["workdir"], remove=True
            )
            assert said.decode().split() == [row["base_commit"], "1"]

    def test_gold_patch_makes_the_target_in_the_image(
        self, done: Run, rows, docker_client: docker.DockerClient
    ) -> None:
        row = rows["acme__tally-5"]
        script = "printf '%s' \"$PATCH\" | git apply && sha256sum src/tally/mark.bin"
        said = docker_client.containers.run(
            row["image"],
            ["bash", "-c", script],
            environment={"PATCH": row["patch"]},
            network_mode="none",
            working_dir=row["workdir"],
            remove=True,
        )
        assert said.decode().split()[0] == hashlib.sha256(EVERY_BYTE).hexdigest()

    def test_manifest_names_an_image_for_each_task_and_equal_environments_share_their_layers(self, done: Run) -> None:
        images = json.loads((done.place.out / "manifest.json").read_text())["images"]
        assert [image["instance_id"] for image in images] == ACCEPTED
        layers = [[layer["diff_id"] for layer in image["layers"]] for image in images]
        shared, own = [one[:-2] for one in layers], {one[-2] for one in layers}  # above: the tree, the project
        assert all(one == shared[0] for one in shared), "all were opened on one day, and need pytest alone"
        assert len(own) == len(ACCEPTED)

    def test_nothing_is_left_in_the_engine_but_images(self, done: Run, docker_client: docker.DockerClient) -> None:
        assert left_in_the_engine(docker_client, done.place.owner) == []


class TestRelease:
    def test_card_counts_the_month(self, done: Run) -> None:
        card = (done.place.out / "README.md").read_text()
        assert f"| github | {MONTH} | {len(ACCEPTED)} | {len(CODES)} | 0 |" in card
        for code in CODES.values():
            assert f"`{code}`" in card

    def test_second_run_measures_nothing_asks_nothing_and_changes_no_byte(self, done: Run) -> None:
        before, asked = everything(done.place.out), len(done.forge.log)
        summary = summary_of(done.place.run("run", "--json"))
        assert (summary["measured"], summary["tasks"]) == (0, len(ACCEPTED))
        assert [entry.path for entry in done.forge.log][asked:] == []
        assert everything(done.place.out) == before

    def test_rebuild_gives_every_byte_again(self, done: Run, tmp_path: Path) -> None:
        lock = str(done.place.out / "release.lock")
        done.place.ask("release", "rebuild", lock, "--out", str(tmp_path / "again"))
        assert everything(tmp_path / "again") == everything(done.place.out)

    def test_token_is_nowhere_in_what_was_left_or_said(self, done: Run) -> None:
        left = [*everything(done.place.work).values(), *everything(done.place.out).values()]
        assert not [data for data in left if TOKEN.encode() in data]
        assert TOKEN not in done.text
