"""A month of a forge up to extraction: what is taken in, what is asked again, and what a later run finds. No engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forge import Forge, Repo, World
from forge_month import (
    EXTRACT,
    LOOK_UP,
    MONTH,
    PASSED,
    TOKEN,
    facts_in,
    known_in,
    library,
    mend,
    run,
    settings,
    states,
)

from miner.core.reasons import Reason
from miner.core.records import State
from miner.jobs.summary import Summary

pytestmark = pytest.mark.loopback

AGAIN = {"measure__crawl__refresh_after_hours": 0}
"""A repository is asked in every run whether anything changed, not only hours later."""


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "forge")


@pytest.fixture
def repo(world: World) -> Repo:
    """Two candidates, and a pull request that is linked to nothing."""
    made = library(world, "octo/lib")
    mend(made, "one")
    mend(made, "two")
    mend(made, "three", body="It was wrong.", closes=[])
    return made


@pytest.fixture
def forge(world: World) -> Iterator[Forge]:
    with Forge(world) as made:
        yield made


class Job:
    """Runs the job in one folder; `asked` is what the last run asked of the API, by document or path."""

    def __init__(self, folder: Path, forge: Forge) -> None:
        self.folder = folder
        self.forge = forge
        self.asked: list[str] = []

    def run(self, *names: str, **changes: Any) -> Summary:
        before = len(self.forge.log)
        summary = run(settings(self.folder, self.forge, *names, **changes))
        api = [entry for entry in list(self.forge.log)[before:] if entry.resource not in ("git", "web")]
        self.asked = [entry.document or entry.path.removeprefix("/api/v3") for entry in api]
        return summary

    def facts(self, kind: str, subject: str | None = None) -> list[Any]:
        return facts_in(settings(self.folder, self.forge), kind, subject)


@pytest.fixture
def job(tmp_path: Path, forge: Forge) -> Job:
    return Job(tmp_path, forge)


class TestMonth:
    def test_month_begins_and_ends_with_its_seconds_in_utc(self, world: World, job: Job) -> None:
        repo = library(world, "octo/lib")
        times = {
            "before": "2025-04-30T23:59:59Z",
            "first": "2025-05-01T00:00:00Z",
            "last": "2025-05-31T23:59:59Z",
            "elsewhere": "2025-06-01T01:59:59+02:00",
            "after": "2025-06-01T00:00:00Z",
        }
        pulls = {name: f"octo__lib-{mend(repo, name, at=at).number}" for name, at in times.items()}
        found = {month: set(states(job.run("octo/lib", month=month))) for month in ("2025-04", MONTH, "2025-06")}
        assert found[MONTH] == {pulls["first"], pulls["last"], pulls["elsewhere"]}
        assert found["2025-04"] == {pulls["before"]}
        assert found["2025-06"] == {pulls["after"]}

    def test_merged_long_after_it_was_opened_and_touched_long_after_it_was_merged(self, world: World, job: Job) -> None:
        repo = library(world, "octo/lib")
        old = mend(repo, "old", opened="2020-02-01T00:00:00Z")
        touched = mend(repo, "touched")
        repo.touch(touched, at="2026-01-01T00:00:00Z")
        assert set(states(job.run("octo/lib"))) == {f"octo__lib-{old.number}", f"octo__lib-{touched.number}"}

    def test_month_that_holds_nothing_is_no_error(self, repo: Repo, job: Job) -> None:
        summary = job.run("octo/lib", month="2024-02")
        assert summary.decisions == ()
        assert summary.discovery is not None
        assert (summary.discovery.units, summary.discovery.merged) == (1, 0)
        assert Path(summary.release, "release.lock").is_file()


class TestAgain:
    def test_second_run_asks_nothing(self, repo: Repo, job: Job) -> None:
        first = job.run("octo/lib")
        second = job.run("octo/lib")
        assert (job.asked, second.measured) == ([], 0)
        assert second.decisions == first.decisions

    def test_later_run_asks_once_whether_anything_changed_and_then_for_nothing(self, repo: Repo, job: Job) -> None:
        first = job.run("octo/lib")
        for _ in range(3):
            later = job.run("octo/lib", **AGAIN)
            assert job.asked == ["/repos/octo/lib/pulls", "touched"]
            assert later.decisions == first.decisions
            assert later.measured == 2, "that nothing changed, of pull requests and of their issues"
        assert [entry.status for entry in job.forge.log.of("/pulls")] == [200, 304, 304]

    def test_link_that_is_added_later_makes_a_candidate_and_nothing_else_is_fetched_again(
        self, repo: Repo, job: Job
    ) -> None:
        first = job.run("octo/lib")
        late = next(pull for pull in repo.pulls if "three" in pull.title)
        repo.edit(late, "It was wrong.\n\nFixes #5", at="2025-06-20T00:00:00Z")
        second = job.run("octo/lib", **AGAIN)
        assert states(second) == {**states(first), f"octo__lib-{late.number}": PASSED}
        assert job.asked.count("pulls") == 1
        assert len(job.facts(EXTRACT)) == len(second.decisions), "each was extracted once"
        assert second.discovery is not None
        assert (second.discovery.linked, second.discovery.unlinked) == (3, 0)

    def test_issue_text_that_is_edited_later_is_seen_when_its_pull_request_is_touched(
        self, repo: Repo, job: Job
    ) -> None:
        job.run("octo/lib")
        chosen = settings(job.folder, job.forge)
        before = known_in(chosen)
        pull = next(pull for pull in repo.pulls if "one" in pull.title)
        repo.edit(repo.issues[pull.closing[0][1]], "Another text, of some length as well.", at="2025-06-19T00:00:00Z")
        repo.touch(pull, at="2025-06-20T00:00:00Z")
        job.run("octo/lib", **AGAIN)
        after = known_in(chosen)
        changed = {name for name in before.crawled if before.crawled[name] != after.crawled[name]}
        assert changed == {f"octo__lib-{pull.number}"}
        assert after.extracted == before.extracted

    def test_repository_that_is_added_to_the_list_is_all_that_is_crawled(
        self, repo: Repo, world: World, job: Job
    ) -> None:
        job.run("octo/lib")
        mend(library(world, "octo/more"), "one")
        more = job.run("octo/lib", "octo/more")
        assert sorted(states(more)) == ["octo__lib-2", "octo__lib-4", "octo__more-2"]
        assert all(
            "octo/more" in entry.variables.values() or "octo/lib" not in str(entry.variables)
            for entry in job.forge.log.of("pulls")
        )
        assert len(job.forge.log.of("pulls")) == 2

    def test_next_month_goes_on_from_where_the_last_one_ended(self, world: World, job: Job) -> None:
        repo = library(world, "octo/lib")
        for day in range(1, 31):
            mend(repo, f"may{day}", at=f"2025-05-{day:02}T12:00:00Z", body="It was wrong.", closes=[])
        may = mend(repo, "may")
        job.run("octo/lib")
        june = mend(repo, "june", at="2025-06-10T12:00:00Z")
        assert set(states(job.run("octo/lib", month="2025-06"))) == {f"octo__lib-{june.number}"}
        first, *later = job.facts("crawl.page")
        assert first.payload["rows"] == 31
        assert sum(fact.payload["rows"] for fact in later) < first.payload["rows"], "the walk ends where May's began"
        assert set(states(job.run("octo/lib"))) == {f"octo__lib-{may.number}"}


class TestNames:
    def test_two_names_of_one_repository_are_one(self, repo: Repo, job: Job) -> None:
        repo.rename("octo/library")
        summary = job.run("octo/lib", "octo/library", "OCTO/Library")
        assert sorted(states(summary)) == ["octo__library-2", "octo__library-4"]
        assert summary.discovery is not None
        assert (summary.discovery.units, summary.discovery.merged) == (1, 3)

    def test_renamed_repository_keeps_the_name_of_first_sight_in_its_ids(self, repo: Repo, job: Job) -> None:
        first = job.run("octo/lib")
        repo.rename("other/library")
        mend(repo, "june", at="2025-06-10T12:00:00Z")
        for names in (["octo/lib"], ["other/library"], ["octo/lib", "other/library"]):
            assert states(job.run(*names)) == states(first)
        assert sorted(states(job.run("other/library", month="2025-06"))) == ["octo__lib-8"]
        assert len(list(job.folder.glob("var/mirrors/*.git"))) == 1

    def test_name_that_somebody_else_took_is_another_repository(self, repo: Repo, world: World, job: Job) -> None:
        job.run("octo/lib")
        repo.rename("other/library")
        squatter = library(world, "octo/lib")
        mend(squatter, "june", at="2025-06-10T12:00:00Z")
        mend(repo, "june", at="2025-06-10T12:00:00Z")
        summary = job.run("octo/lib", "other/library", month="2025-06")
        assert summary.discovery is not None
        assert (summary.discovery.units, summary.discovery.merged) == (2, 2)
        assert summary.discovery.twice == 0
        assert len(summary.decisions) == 2


NOT_TAKEN: dict[str, tuple[dict[str, Any], Reason]] = {
    "licence": ({"license": "GPL-3.0"}, Reason.REPOSITORY_LICENCE),
    "no-licence": ({"license": None}, Reason.REPOSITORY_LICENCE),
    "not-python": ({"languages": {"C": 900, "Python": 100}}, Reason.REPOSITORY_NOT_PYTHON),
    "template": ({"is_template": True}, Reason.REPOSITORY_TEMPLATE),
    "large": ({"disk_kb": 3_000_000}, Reason.REPOSITORY_TOO_LARGE),
    "inactive": ({"pushed_at": "2023-01-01T00:00:00Z"}, Reason.REPOSITORY_INACTIVE),
    "disabled": ({"is_disabled": True}, Reason.REPOSITORY_UNAVAILABLE),
    "private": ({"is_private": True}, Reason.REPOSITORY_UNAVAILABLE),
}


class TestIntake:
    def test_repositories_that_are_not_taken_are_counted_with_the_reason_and_not_crawled(
        self, world: World, repo: Repo, job: Job
    ) -> None:
        for name, (fields, _) in NOT_TAKEN.items():
            mend(library(world, f"no/{name}"), "one")
            made = world.find(f"no/{name}")
            assert made is not None
            for field, value in fields.items():
                setattr(made, field, value)
        world.fork(repo, "no")
        names = ["octo/lib", "no/lib", *(f"no/{name}" for name in NOT_TAKEN)]
        summary = job.run(*names)
        assert sorted(states(summary)) == ["octo__lib-2", "octo__lib-4"]
        refused = {unit: row[3] for unit, row in known_in(settings(job.folder, job.forge)).intake.items()}
        expected = {f"no/{name}": reason for name, (_, reason) in NOT_TAKEN.items()}
        assert refused == {**expected, "no/lib": Reason.REPOSITORY_FORK, "octo/lib": None}
        assert {name for entry in job.forge.log.of("pulls") for name in entry.variables.values()} <= {
            "octo",
            "lib",
            None,
        } | set(range(99))

    @pytest.mark.parametrize("how", ["deleted", "blocked", "hidden", "never"])
    def test_repository_that_is_not_there_is_refused_and_asked_for_again_later(
        self, how: str, repo: Repo, world: World, job: Job
    ) -> None:
        lost = library(world, "octo/lost")
        pull = mend(lost, "one")
        if how == "deleted":
            world.delete(lost)
        elif how == "blocked":
            lost.blocked = "dmca"
        elif how == "hidden":
            lost.is_private = True
        name = "octo/never" if how == "never" else "octo/lost"
        summary = job.run("octo/lib", name)
        assert summary.faulted == 0
        assert sorted(states(summary)) == ["octo__lib-2", "octo__lib-4"]
        reason = known_in(settings(job.folder, job.forge)).intake[name][3]
        assert reason in (Reason.REPOSITORY_GONE, Reason.REPOSITORY_UNAVAILABLE)
        if how in ("deleted", "never"):
            assert reason is Reason.REPOSITORY_GONE
            lost.deleted = False
            later = job.run("octo/lib", "octo/lost", measure__recheck_after_hours=0)
            assert f"octo__lost-{pull.number}" in states(later)

    def test_repository_that_vanishes_before_its_commits_are_fetched(self, repo: Repo, world: World, job: Job) -> None:
        lost = library(world, "octo/lost")
        pull = mend(lost, "one")
        job.forge.after("pages", 1, lambda: world.delete(lost))
        summary = job.run("octo/lib", "octo/lost")
        found = next(one for one in summary.decisions if one.instance_id == f"octo__lost-{pull.number}")
        assert (found.state, found.code) == (State.REJECTED, Reason.REPOSITORY_GONE)
        assert not found.final, "the forge said so once"
        assert summary.faulted == 0

    def test_who_asked_not_to_be_mined_is_not_asked_for_under_any_name(
        self, repo: Repo, world: World, job: Job
    ) -> None:
        renamed, owned, known = library(world, "one/old"), library(world, "two/lib"), library(world, "three/lib")
        for one in (renamed, owned, known):
            mend(one, "one")
        renamed.rename("one/new")
        optout = job.folder / "optout.toml"
        optout.write_text(f'names = ["one/old", "Two/*"]\nids = [{known.repo_id}]\n')
        summary = job.run("octo/lib", "one/new", "two/lib", "three/lib", mine__optout=optout)
        assert sorted(states(summary)) == ["octo__lib-2", "octo__lib-4"]
        intake = known_in(settings(job.folder, job.forge)).intake
        assert {name for name, row in intake.items() if row[3] is Reason.REPOSITORY_OPTED_OUT} == {
            "one/new",
            "two/lib",
            "three/lib",
        }
        named = {str(value) for entry in job.forge.log.of("graphql") for value in entry.variables.values()}
        assert "two" not in named, "not even whether it is there"

    def test_who_asks_later_is_left_out_of_the_next_run(self, repo: Repo, world: World, job: Job) -> None:
        mend(library(world, "octo/more"), "one")
        assert len(job.run("octo/lib", "octo/more").decisions) == 3
        optout = job.folder / "optout.toml"
        optout.write_text('names = ["octo/lib"]\n')
        summary = job.run("octo/lib", "octo/more", mine__optout=optout)
        assert sorted(states(summary)) == ["octo__more-2"]


def test_shuffled_order_of_units_changes_nothing(world: World, job: Job, tmp_path: Path) -> None:
    for number in range(5):
        mend(library(world, f"octo/lib{number}"), "one")
    names = [f"octo/lib{number}" for number in range(5)]
    job.run(*names)
    other = Job(tmp_path / "other", job.forge)
    other.folder.mkdir()
    other.run(*reversed(names), mine__seed=7, run__workers=1, run__crawl_workers=1)
    one, two = (known_in(settings(folder, job.forge)) for folder in (job.folder, other.folder))
    assert one == two
    assert len(facts_in(settings(job.folder, job.forge), LOOK_UP)) == 5
