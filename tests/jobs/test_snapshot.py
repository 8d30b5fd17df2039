"""A month that was crawled is written to a folder, and the same comes out of it elsewhere, with no forge. No engine."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forge_month
import pytest
import structlog
from forge import Forge, World
from forge_month import EXTRACT, LOOK_UP, MONTH, TOKEN, facts_in, known_in, library, mend, run, states
from snapshots import UP_TO_EXTRACTION, all_facts, extract_again, extracted, of_the_crawl, plain, plant, replay
from world import content, files

from miner.cli import main
from miner.core.errors import ConfigError, UsageError
from miner.core.ledger import Ledger
from miner.core.reasons import Reason
from miner.core.records import State
from miner.core.settings import Settings, load_settings
from miner.crawlers.snapshot_manifest import MANIFEST
from miner.jobs import snapshot
from miner.jobs.snapshot import Snapshot
from miner.jobs.sources import settled

pytestmark = pytest.mark.loopback

UNITS = ("octo/lib", "octo/rebased", "octo/old", "octo/fork", "octo/gone")
CRAWLED = {"crawl.repository", "crawl.identity", "crawl.page", "crawl.walk", "crawl.issues", LOOK_UP, EXTRACT}


def real_world(folder: Path) -> World:
    """Candidates of every way of merging, one of a repository that was renamed, and repositories that are refused."""
    world = World(folder)
    lib = library(world, "octo/lib")
    mend(lib, "one", body="It was wrong, see #1.\n\nFixes #1, fixes #2", closes=[])
    mend(lib, "two", merge="merge")
    mend(lib, "three", body="It was wrong.", closes=[])
    lib.store.ref("refs/tags/v1.5", lib.branches["main"])
    mend(library(world, "octo/rebased"), "one", merge="rebase", fork="contributor")
    renamed = library(world, "octo/old")
    mend(renamed, "one")
    renamed.rename("octo/new")
    mend(library(world, "octo/fork", parent=lib), "one")
    return world


@dataclass(frozen=True)
class Place:
    """A work folder, and the snapshot that was written from it."""

    settings: Settings
    snapshot: Path
    made: Snapshot


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    structlog.reset_defaults()  # a test that called the program has left an output that is closed by now


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A run with accepted tasks (what an engine would show is made up), and its snapshot. The forge is gone then."""
    root = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch, Forge(real_world(root / "forge")) as forge:
        patch.setenv("GITHUB_TOKEN", TOKEN)
        changes: dict[str, Any] = {"policy__max_patch_lines": 5000, "mine__seed": 3}
        chosen = forge_month.settings(root / "first", forge, *UNITS, **changes)
        plant(chosen)
        run(chosen)
        made = snapshot.write(chosen, root / "snapshot", month=MONTH)
    return Place(chosen, root / "snapshot", made)


@pytest.fixture(scope="module")
def replayed(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A replay in a folder of its own, by somebody who has no token."""
    chosen = replay(tmp_path_factory.mktemp("replayed"), place.snapshot)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GITHUB_TOKEN", raising=False)
        plant(chosen)
        run(chosen)
    return chosen


class TestReplay:
    def test_comes_to_the_same_intake_candidates_and_decisions(self, place: Place, replayed: Settings) -> None:
        there, here = known_in(place.settings), known_in(replayed)
        assert here == there
        assert {unit: row[3] for unit, row in here.intake.items() if row[3]} == {
            "octo/fork": Reason.REPOSITORY_FORK,
            "octo/gone": Reason.REPOSITORY_GONE,
        }
        assert here.intake["octo/lib"][:3] == (3, 2, 1)
        assert sum(state is State.ACCEPTED for state, *_ in here.decisions.values()) == 4

    def test_comes_to_the_same_release_byte_for_byte(self, place: Place, replayed: Settings) -> None:
        there, here = content(place.settings.paths.release), content(replayed.paths.release)
        assert len(json.loads(here["manifest.json"])["images"]) > 0 or b"octo__lib" in here["manifest.json"]
        assert here == there

    def test_has_the_facts_of_the_crawl_as_they_were_measured(self, place: Place, replayed: Settings) -> None:
        there, here = of_the_crawl(all_facts(place.settings)), of_the_crawl(all_facts(replayed))
        assert here == there, "keys, times, measures and all"
        assert {fact.key.kind for fact in here.values()} >= CRAWLED
        with closing(Ledger(replayed.paths.ledger, create=False)) as ledger:
            assert set(ledger.runs_of(here).values()) == {"imported"}
            assert ledger.runs()[0].run_id == "imported", "it is nobody's newest run"
            sources = {row.source for row in ledger.candidates()}
        assert sources == {"github"}, "a replay is no other source"

    def test_next_run_takes_in_and_measures_nothing(self, replayed: Settings) -> None:
        before = all_facts(replayed)
        assert run(replayed).measured == 0
        assert all_facts(replayed) == before

    def test_in_the_folder_of_the_first_run_nothing_is_new(self, place: Place, tmp_path: Path) -> None:
        shutil.copytree(place.settings.paths.work, tmp_path / "var")
        again = replay(tmp_path, place.snapshot)
        assert run(again).measured == 0
        assert all_facts(again) == all_facts(place.settings)
        assert content(again.paths.release) == content(place.settings.paths.release)

    def test_may_be_written_again_from_the_replay_byte_for_byte(
        self, place: Place, replayed: Settings, tmp_path: Path
    ) -> None:
        snapshot.write(replayed, tmp_path / "again")
        assert files(tmp_path / "again") == files(place.snapshot)

    def test_judges_by_another_policy(self, place: Place, tmp_path: Path) -> None:
        summary = run(replay(tmp_path, place.snapshot, **UP_TO_EXTRACTION))
        assert {code for _, code in states(summary).values()} == {Reason.PATCH_TOO_LARGE}
        assert (len(summary.decisions), summary.faulted, summary.measured) == (4, 0, 0)

    def test_picks_repositories_that_settings_name(self, place: Place, tmp_path: Path) -> None:
        summary = run(replay(tmp_path, place.snapshot, mine__repositories='["octo/lib"]', **UP_TO_EXTRACTION))
        assert summary.discovery is not None
        assert (summary.discovery.units, summary.discovery.linked) == (1, 2)

    def test_no_of_somebody_else_is_not_asked_for_again(self, place: Place, tmp_path: Path) -> None:
        old = {"measure__recheck_after_hours": 0}
        chosen = replay(tmp_path, place.snapshot, **UP_TO_EXTRACTION, **old)
        assert run(chosen).units_faulted == 0
        assert known_in(chosen).intake["octo/gone"][3] is Reason.REPOSITORY_GONE


@pytest.fixture(scope="module")
def again(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A replay that has read all trees again."""
    made = replay(tmp_path_factory.mktemp("again"), place.snapshot, **UP_TO_EXTRACTION)
    run(made)
    extract_again(made)
    return made


class TestTrees:
    def test_extraction_comes_to_the_same_from_the_bundles(self, place: Place, again: Settings) -> None:
        assert extracted(again) == extracted(place.settings)
        assert len(extracted(again)) == 4

    def test_whole_trees_are_in_the_bundles(self, place: Place, again: Settings) -> None:
        for fact in facts_in(place.settings, EXTRACT):
            [looked_up] = facts_in(place.settings, LOOK_UP, fact.key.subject)
            git_dir = again.paths.work / "mirrors" / f"{looked_up.payload['coordinates']['network_id']}.git"
            for side in ("base_commit", "target_commit"):
                assert b"tests/test_core.py" in _git(git_dir, "archive", fact.payload[side])

    def test_damaged_mirror_is_made_again_from_the_bundle(self, place: Place, again: Settings) -> None:
        for pack in (again.paths.work / "mirrors").rglob("*.pack"):
            pack.chmod(0o600)
            pack.write_bytes(pack.read_bytes()[:-30] + b"damaged" * 4)
        extract_again(again)
        assert extracted(again) == extracted(place.settings)

    def test_plain_git_reads_a_bundle(self, place: Place, tmp_path: Path) -> None:
        for bundle in (place.snapshot / "git").iterdir():
            git_dir = tmp_path / bundle.stem
            subprocess.run(["git", "init", "--quiet", "--bare", str(git_dir)], check=True)
            assert b"complete history" in _git(git_dir, "bundle", "verify", str(bundle))
            heads = _git(git_dir, "bundle", "unbundle", str(bundle)).decode().splitlines()
            base = next(line.split()[0] for line in heads if line.endswith("/base") and "/extracted/" in line)
            assert b"lib/core.py" in _git(git_dir, "archive", base)


class TestWriting:
    def test_same_facts_make_the_same_bytes(self, place: Place, tmp_path: Path) -> None:
        shutil.copytree(place.settings.paths.work, tmp_path / "elsewhere" / "var")
        moved = place.settings.model_copy(
            update={"paths": place.settings.paths.model_copy(update={"work": tmp_path / "elsewhere" / "var"})}
        )
        snapshot.write(moved, tmp_path / "again", month=MONTH)
        assert files(tmp_path / "again") == files(place.snapshot)

    def test_manifest_says_what_there_is(self, place: Place) -> None:
        said = json.loads((place.snapshot / MANIFEST).read_text())
        assert (said["format"], said["month"], said["source"], said["visibility"]) == (1, MONTH, "github", "public")
        assert said["mine"] == {"repositories": list(UNITS), "repository_search": [], "seed": 3}
        assert {file["path"] for file in said["files"]} | {MANIFEST} == set(files(place.snapshot))
        counts = said["counts"]
        assert (counts["units"], counts["merged"], counts["linked"], counts["unlinked"]) == (5, 5, 4, 1)
        assert counts["refused"] == {"repository-fork": 1, "repository-gone": 1}
        assert (counts["extracted"], counts["missing"], counts["incomplete"]) == (4, 0, 0)
        assert counts["facts"] == len(of_the_crawl(all_facts(place.settings)))

    def test_nothing_of_the_machine_is_in_it(self, place: Place) -> None:
        for path, data in plain(place.snapshot).items():
            for word in (str(place.snapshot.parent), TOKEN, str(Path.home())):
                assert word.encode() not in data, (path, word)

    def test_command_line(
        self, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        work = ["-c", f"paths.work={place.settings.paths.work}"]
        monkeypatch.setattr("sys.argv", ["swe-miner", "snapshot", str(tmp_path / "x"), "--month", MONTH, *work])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 0
        assert "2025-05, 5 repositories, 5 merged pull requests, 4 of them linked" in capsys.readouterr().out
        assert files(tmp_path / "x") == files(place.snapshot)

    def test_another_month_has_no_run(self, place: Place, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no run over 2025-04 has come to its end"):
            snapshot.write(place.settings, tmp_path / "x", month="2025-04")
        assert not (tmp_path / "x").exists()

    def test_folder_with_something_else_is_left_alone(self, place: Place, tmp_path: Path) -> None:
        (tmp_path / "thesis.txt").write_text("mine")
        with pytest.raises(UsageError, match=r"thesis\.txt"):
            snapshot.write(place.settings, tmp_path, month=MONTH)
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]

    @pytest.mark.parametrize("killed", ["while it wrote", "between two renames", "before it cleaned up"])
    def test_what_a_killed_one_left_does_no_harm(self, killed: str, place: Place, tmp_path: Path) -> None:
        folder = tmp_path / "snap"
        if killed != "between two renames":
            shutil.copytree(place.snapshot, folder)
        if killed == "while it wrote":
            (tmp_path / ".snap.part" / "git" / "1.pack").mkdir(parents=True)
        else:
            shutil.copytree(place.snapshot, tmp_path / ".snap.old")
        snapshot.write(place.settings, folder, month=MONTH)
        assert files(folder) == files(place.snapshot)
        assert [path.name for path in tmp_path.iterdir()] == ["snap"]


class TestSettings:
    def test_replay_without_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="needs `snapshot`"):
            run(load_settings(overrides=["mine.source=snapshot", f"paths.work={tmp_path}"], environ={}))

    def test_replay_of_another_month(self, place: Place, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="the snapshot is of 2025-05"):
            run(replay(tmp_path, place.snapshot, mine__month="2025-06"))

    def test_hash_of_a_replay_is_that_of_the_run(self, place: Place, tmp_path: Path) -> None:
        assert settled(replay(tmp_path, place.snapshot)).hash == place.settings.hash


def _git(git_dir: Path, *args: str) -> bytes:
    done = subprocess.run(["git", "--git-dir", str(git_dir), *args], check=True, capture_output=True)
    return done.stdout + done.stderr
