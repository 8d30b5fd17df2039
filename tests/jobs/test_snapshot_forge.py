"""What of a snapshot depends on the forge, on who may read what, and on who is not to be mined at all. No engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import forge_month
import pytest
import structlog
from forge import Forge, Repo, World
from forge_month import TOKEN, known_in, library, mend, run, states
from snapshots import UP_TO_EXTRACTION, all_facts, plain, replay
from world import content, files

from miner.core.errors import InfrastructureFault, SnapshotError, UsageError
from miner.core.ledger import Ledger
from miner.core.reasons import Reason
from miner.core.records import State, Visibility
from miner.core.settings import Settings
from miner.jobs import snapshot

pytestmark = pytest.mark.loopback


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    structlog.reset_defaults()  # a test that called the program has left an output that is closed by now


def states_of(chosen: Settings) -> dict[str, tuple[State, Reason | None]]:
    return {name: (state, code) for name, (state, code, _) in known_in(chosen).decisions.items()}


class TestForge:
    """What depends on the forge while it is crawled or written."""

    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        return World(tmp_path / "forge")

    @pytest.fixture
    def repo(self, world: World) -> Repo:
        made = library(world, "octo/lib")
        mend(made, "one")
        return made

    @pytest.fixture
    def forge(self, world: World) -> Iterator[Forge]:
        with Forge(world) as made:
            yield made

    @pytest.fixture
    def crawl(self, tmp_path: Path, forge: Forge) -> Callable[..., Settings]:
        def crawl(*names: str, **changes: Any) -> Settings:
            chosen = forge_month.settings(tmp_path / "first", forge, *names, **changes)
            run(chosen)
            return chosen

        return crawl

    def test_only_contents_that_trees_lack_are_asked_for(
        self, repo: Repo, forge: Forge, crawl: Callable[..., Settings], tmp_path: Path
    ) -> None:
        chosen = crawl("octo/lib")
        before = len(forge.log)
        snapshot.write(chosen, tmp_path / "snap")
        assert {entry.resource for entry in list(forge.log)[before:]} == {"git"}
        before = len(forge.log)
        snapshot.write(chosen, tmp_path / "again")
        assert len(forge.log) == before
        assert files(tmp_path / "again") == files(tmp_path / "snap")

    def test_forge_that_does_not_answer_is_a_fault_and_leaves_what_was_there(
        self, repo: Repo, forge: Forge, crawl: Callable[..., Settings], tmp_path: Path
    ) -> None:
        chosen = crawl("octo/lib", github__tries=1)
        forge.stop()
        with pytest.raises(InfrastructureFault) as met:
            snapshot.write(chosen, tmp_path / "snap")
        assert met.value.reason is Reason.MIRROR_FAILED
        assert not (tmp_path / "snap").exists()
        assert not (tmp_path / ".snap.part").exists()

    def test_repository_that_is_gone_since_is_written_as_far_as_it_is_known(
        self, repo: Repo, world: World, crawl: Callable[..., Settings], tmp_path: Path
    ) -> None:
        chosen = crawl("octo/lib")
        world.delete(repo)
        made = snapshot.write(chosen, tmp_path / "snap")
        assert (made.counts.extracted, made.counts.incomplete) == (1, 1)
        here = replay(tmp_path / "second", tmp_path / "snap", **UP_TO_EXTRACTION)
        run(here)
        assert known_in(here) == known_in(chosen)

    def test_repository_whose_crawl_met_a_fault_meets_one_in_the_replay(
        self, repo: Repo, world: World, forge: Forge, crawl: Callable[..., Settings], tmp_path: Path
    ) -> None:
        mend(library(world, "octo/faulty"), "one")
        crawl("octo/lib")
        forge.fail("pulls", "server-error")
        chosen = crawl("octo/lib", "octo/faulty", github__tries=1)
        assert known_in(chosen).intake["octo/faulty"][4] is not None
        made = snapshot.write(chosen, tmp_path / "snap")
        assert (made.counts.units, made.counts.missing, made.counts.linked) == (2, 1, 1)
        here = replay(tmp_path / "b", tmp_path / "snap", **UP_TO_EXTRACTION)
        assert states(run(here)) == states_of(chosen)
        assert known_in(here).intake["octo/faulty"][4] is Reason.NOT_IN_SNAPSHOT
        assert known_in(here).intake["octo/lib"] == known_in(chosen).intake["octo/lib"]

    def test_no_that_was_said_once_stays_as_it_is(
        self, repo: Repo, world: World, forge: Forge, crawl: Callable[..., Settings], tmp_path: Path
    ) -> None:
        lost = library(world, "octo/lost")
        mend(lost, "one")
        forge.after("pages", 1, lambda: world.delete(lost))
        chosen = crawl("octo/lib", "octo/lost")
        assert known_in(chosen).decisions["octo__lost-2"][1] is Reason.REPOSITORY_GONE
        snapshot.write(chosen, tmp_path / "snap")
        here = replay(tmp_path / "b", tmp_path / "snap", measure__recheck_after_hours=0, **UP_TO_EXTRACTION)
        found = {one.instance_id: one for one in run(here).decisions}
        assert known_in(here) == known_in(chosen)
        assert not found["octo__lost-2"].final

    def test_looser_policy_asks_for_what_is_not_there(
        self, repo: Repo, world: World, crawl: Callable[..., Settings], tmp_path: Path
    ) -> None:
        mend(library(world, "octo/archive", is_archived=True), "one")
        chosen = crawl("octo/lib", "octo/archive", policy__repositories__archived="false")
        snapshot.write(chosen, tmp_path / "snap")
        strict = replay(tmp_path / "a", tmp_path / "snap", policy__repositories__archived="false", **UP_TO_EXTRACTION)
        assert run(strict).units_faulted == 0
        loose = replay(tmp_path / "b", tmp_path / "snap", policy__repositories__archived="true", **UP_TO_EXTRACTION)
        summary = run(loose)
        assert states(summary) == {"octo__lib-2": forge_month.PASSED}
        assert known_in(loose).intake["octo/archive"][4] is Reason.NOT_IN_SNAPSHOT
        with closing(Ledger(loose.paths.ledger)) as ledger:
            [faulted] = [one for one in ledger.intake(summary.run_id) if one.fault]
        assert "octo/archive" in faulted.detail

    def test_who_asked_not_to_be_mined_is_named_and_nothing_more(
        self, repo: Repo, world: World, crawl: Callable[..., Settings], tmp_path: Path
    ) -> None:
        mend(library(world, "octo/quiet"), "secretly")
        optout = tmp_path / "optout.toml"
        optout.write_text('names = ["octo/quiet"]\n')
        crawl("octo/lib", "octo/quiet")
        chosen = crawl("octo/lib", "octo/quiet", mine__optout=optout)
        made = snapshot.write(chosen, tmp_path / "snap")
        assert made.counts.opted_out == 1
        assert not [path for path, data in plain(tmp_path / "snap").items() if b"secretly" in data]
        here = replay(tmp_path / "second", tmp_path / "snap", **UP_TO_EXTRACTION)
        assert set(states(run(here))) == {"octo__lib-2"}
        assert known_in(here).intake["octo/quiet"][3] is Reason.REPOSITORY_OPTED_OUT

    def test_who_asks_later_is_left_out_of_a_replay(
        self, repo: Repo, world: World, crawl: Callable[..., Settings], tmp_path: Path
    ) -> None:
        mend(library(world, "octo/quiet"), "one")
        snapshot.write(crawl("octo/lib", "octo/quiet"), tmp_path / "snap")
        (tmp_path / "optout.toml").write_text('names = ["octo/quiet"]\n')
        here = replay(tmp_path / "b", tmp_path / "snap", mine__optout=tmp_path / "optout.toml", **UP_TO_EXTRACTION)
        assert set(states(run(here))) == {"octo__lib-2"}

    @pytest.mark.parametrize("visibility", [Visibility.PRIVATE, Visibility.HOLD_OUT])
    def test_repository_with_a_candidate_that_is_not_public_is_left_out(
        self, visibility: Visibility, repo: Repo, world: World, crawl: Callable[..., Settings], tmp_path: Path
    ) -> None:
        mend(library(world, "octo/covert"), "hidden")
        crawl("octo/covert", release__visibility=visibility.value)
        chosen = crawl("octo/lib", "octo/covert")
        made = snapshot.write(chosen, tmp_path / "snap")
        assert made.counts.left_out.model_dump() == {"repositories": 1, "candidates": {visibility: 1}}
        assert made.visibility is Visibility.PUBLIC
        words = (b"covert", b"hidden", b"octo__covert")
        told = {path: data for path, data in plain(tmp_path / "snap").items() if any(word in data for word in words)}
        assert not told
        assert set(states(run(replay(tmp_path / "b", tmp_path / "snap", **UP_TO_EXTRACTION)))) == {"octo__lib-2"}

    def test_candidate_of_another_month_hides_its_repository_too(
        self, repo: Repo, world: World, crawl: Callable[..., Settings], tmp_path: Path
    ) -> None:
        covert = library(world, "octo/covert")
        mend(covert, "hidden", at="2025-04-10T12:00:00Z")
        mend(covert, "shown")
        crawl("octo/covert", month="2025-04", release__visibility="hold-out")
        made = snapshot.write(crawl("octo/lib", "octo/covert"), tmp_path / "snap")
        assert made.counts.left_out.model_dump() == {"repositories": 1, "candidates": {}}
        assert not [path for path, data in plain(tmp_path / "snap").items() if b"covert" in data]

    def test_where_nothing_is_public_nothing_is_written(
        self, repo: Repo, crawl: Callable[..., Settings], tmp_path: Path
    ) -> None:
        chosen = crawl("octo/lib", release__visibility="private")
        with pytest.raises(UsageError, match="nothing is public: 1 repositories"):
            snapshot.write(chosen, tmp_path / "snap")
        assert not (tmp_path / "snap").exists()

    def test_what_is_not_public_stays_so_in_a_replay_of_all_of_it(
        self, repo: Repo, world: World, crawl: Callable[..., Settings], tmp_path: Path
    ) -> None:
        mend(library(world, "octo/covert"), "hidden")
        crawl("octo/covert", release__visibility="hold-out")
        chosen = crawl("octo/lib", "octo/covert")
        made = snapshot.write(chosen, tmp_path / "snap", not_public=True)
        assert made.visibility is Visibility.HOLD_OUT
        here = replay(tmp_path / "b", tmp_path / "snap", **UP_TO_EXTRACTION)
        assert set(states(run(here))) == {"octo__lib-2", "octo__covert-2"}
        assert content(here.paths.release) == content(chosen.paths.release)
        with closing(Ledger(here.paths.ledger)) as ledger:
            shown = {row.instance_id: row.visibility for row in ledger.candidates()}
        assert shown == {"octo__lib-2": "public", "octo__covert-2": "hold-out"}

    def test_two_crawls_of_one_repository_do_not_mix(
        self, repo: Repo, forge: Forge, crawl: Callable[..., Settings], tmp_path: Path
    ) -> None:
        snapshot.write(crawl("octo/lib"), tmp_path / "snap")
        other = forge_month.settings(tmp_path / "b", forge, "octo/lib")
        run(other)
        before = all_facts(other)
        with pytest.raises(SnapshotError, match=r"another observation of crawl\.\w+ of .*do not mix"):
            run(replay(tmp_path / "b", tmp_path / "snap", **UP_TO_EXTRACTION))
        assert all_facts(other) == before
