"""What `doctor` says of a forge: tokens, limits, clock, git, and every assumption against the forge of all tests."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from forge import Forge, World
from scripted_forge import Say, ScriptedForge

from miner.core.settings import Github
from miner.crawlers.github.doctor import checks
from miner.crawlers.github.doctor_assumptions import ASSUMPTIONS
from miner.crawlers.github.doctor_known import Known
from miner.sandbox.doctor import Check

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
TOKENS = {"GITHUB_TOKEN": "ghp_first,ghp_second"}


class Known2025:
    """A world with everything that can be looked at, and what is known of it."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        repo = self.world.repository("octo/lib", files={"lib.py": "x = 1\n"})
        issue = repo.issue("It breaks", "...")
        repo.edit(issue, "... always", at="2025-04-02T09:00:00Z")
        when = {"at": "2025-05-03T10:00:00Z", "merge": "squash"}
        pull = repo.pull("Fix it", "Fixes #1", files={"lib.py": "x = 2\n"}, closes=[issue], **when)
        moved = repo.issue("It moves", "...")
        known = set(repo.trees)
        mover = repo.pull("Move", files={"lib.py": "x = 3\n"}, closes=[moved], replaced={"lib.py": "x = 4\n"}, **when)
        (draft,) = set(repo.trees) - known - {commit.oid for commit in mover.commits} - {mover.merge_commit.oid}
        there = repo.transfer(moved, self.world.repository("octo/docs"))
        gone = repo.issue("It goes", "...")
        repo.delete_issue(gone)
        self.world.bare("octo/taken", blocked="dmca")
        self.world.rename(repo, "octo/new")
        self.known = Known(
            repository="octo/new",
            pull=pull.number,
            issue=issue.number,
            since=date(2025, 5, 1),
            until=date(2025, 5, 31),
            old_name="octo/lib",
            new_name="octo/new",
            deleted_issue=gone.number,
            replaced=draft,
            moved_pull=mover.number,
            moved_issue=f"octo/docs#{there.number}",
            blocked="octo/taken",
        )


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Known2025:
    return Known2025(tmp_path_factory.mktemp("world"))


@pytest.fixture
def known(year: Known2025) -> Known:
    return year.known


@pytest.fixture
def world(year: Known2025) -> World:
    return year.world


@pytest.fixture
def forge(world: World) -> Iterator[Forge]:
    with Forge(world) as forge:
        yield forge


def look(forge: Forge, known: Known, environ: dict[str, str] = TOKENS) -> dict[str, Check]:
    settings = Github(url=forge.url, api_url=forge.api_url, graphql_url=forge.graphql_url, tries=1)
    return {check.name: check for check in checks(settings, environ, known=known, sleep=lambda seconds: None)}


def failures(found: dict[str, Check]) -> list[str]:
    return [name for name, check in found.items() if not check.ok]


def test_a_forge_that_is_as_it_should_be(forge: Forge, known: Known) -> None:
    found = look(forge, known)
    assert failures(found) == []
    assert found["forge tokens"].detail == "2 in GITHUB_TOKEN or GH_TOKEN"
    assert "core 5000 of 5000, graphql 5000 of 5000, search 30 of 30" in found["forge token 2"].detail
    assert {f"forge: {assumption.name}" for assumption in ASSUMPTIONS} | {"forge: fetch-by-id"} < set(found)
    assert not any("not looked at" in check.detail or "ghp_" in f"{check!r}" for check in found.values())


def test_every_assumption_of_the_forge_of_the_tests_is_looked_at(forge: Forge, known: Known) -> None:
    rows = tomllib.loads((Path(__file__).parents[1] / "forge" / "behaviours.toml").read_text())["behaviour"]
    wanted = {f"forge: {row['check']}" for row in rows if row["kind"] == "assumed"}
    assert wanted
    assert wanted <= set(look(forge, known))


def test_what_nobody_has_named_is_not_looked_at(forge: Forge, known: Known) -> None:
    bare = Known(**known.model_dump(exclude={"deleted_issue", "replaced", "moved_pull", "blocked"}))
    found = look(forge, bare)
    assert failures(found) == []
    assert [name for name, check in found.items() if "not looked at" in check.detail] == [
        "forge: fetch-by-id",
        "forge: deleted-issue",
        "forge: blocked-repository",
        "forge: transferred-closing-reference",
    ]


def test_without_a_token_only_git_is_looked_at(forge: Forge, known: Known) -> None:
    found = look(forge, known, {})
    assert list(found) == ["forge tokens", "forge by git", "forge: fetch-by-id"]
    assert failures(found) == ["forge tokens"]
    assert "GITHUB_TOKEN" in found["forge tokens"].next_step
    assert {entry.resource for entry in forge.log.entries} == {"git"}


def test_a_token_that_is_refused_is_named_by_its_number(world: World, known: Known) -> None:
    with Forge(world, tokens=("ghp_second",)) as forge:
        assert failures(look(forge, known)) == ["forge token 1"]


@pytest.mark.parametrize(
    ("otherwise", "names"),
    [
        ({"issue": 7}, ["closing-references"]),
        ({"since": date(2024, 1, 1), "until": date(2024, 1, 2)}, ["search-count"]),
        ({"old_name": "octo/nothing"}, ["renamed-repository", "search-renamed"]),
        ({"new_name": "octo/docs"}, ["renamed-repository", "search-renamed"]),
        ({"deleted_issue": 1}, ["deleted-issue"]),
        ({"moved_issue": "octo/new#4"}, ["transferred-closing-reference"]),
        ({"blocked": "octo/docs"}, ["blocked-repository"]),
        ({"replaced": "1" * 40}, ["fetch-by-id"]),
    ],
    ids=str,
)
def test_an_assumption_that_does_not_hold_is_said(
    forge: Forge, known: Known, otherwise: dict[str, object], names: list[str]
) -> None:
    found = look(forge, known.model_copy(update=otherwise))
    assert failures(found) == [f"forge: {name}" for name in names]
    assert all("report" in found[name].next_step for name in failures(found))


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("list", "search-count"),
        ("pulls", "predicted-cost"),
        ("/commits", "unchanged"),
        ("edited", "edits-with-original"),
    ],
)
def test_a_fault_fails_one_check_only(forge: Forge, known: Known, where: str, name: str) -> None:
    forge.fail(where, "server-error", status=500)
    assert failures(look(forge, known)) == [f"forge: {name}"]


def test_an_answer_of_another_shape_fails_one_check_only(forge: Forge, known: Known) -> None:
    forge.fail("closing", "partial", path=("repository",))
    found = look(forge, known)
    assert failures(found) == ["forge: closing-references", "forge: transferred-closing-reference"]
    assert "another shape" in found["forge: closing-references"].detail


def test_a_repository_that_git_does_not_find_is_said(forge: Forge, known: Known) -> None:
    found = look(forge, known.model_copy(update={"repository": "octo/nothing"}), {})
    assert not found["forge by git"].ok
    assert "octo/nothing.git" in found["forge by git"].detail


def test_a_forge_that_nobody_answers_for() -> None:
    with ScriptedForge() as gone:
        settings = Github(url=gone.url, api_url=gone.url, tries=1)
    assert [check.ok for check in checks(settings, TOKENS)] == [True, False, False, False]


@pytest.mark.parametrize(
    ("minutes", "ok", "words"), [(0, True, "0 s"), (5, False, "300 s ahead of"), (-5, False, "300 s behind")]
)
def test_clocks_that_disagree_are_said(minutes: int, ok: bool, words: str) -> None:
    with ScriptedForge() as forge:
        forge.say(Say(404, {"message": "Rate limiting is not enabled."}, {"Date": format_datetime(NOW, usegmt=True)}))
        settings = Github(url="http://127.0.0.1:1", api_url=forge.url, tries=1)
        found = {
            check.name: check
            for check in checks(settings, {"GH_TOKEN": "ghs_app"}, clock=lambda: NOW + timedelta(minutes=minutes))
        }
    assert (found["clock"].ok, words in found["clock"].detail) == (ok, True)
    assert "the forge has no limits" in found["forge token 1"].detail
    assert "scopes not stated" in found["forge token 1"].detail


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"X-OAuth-Scopes": ""}, "no scopes (enough for public data)"),
        ({"X-OAuth-Scopes": "repo, workflow"}, "scopes repo, workflow (public data needs no scope"),
        ({"GitHub-Authentication-Token-Expiration": "2025-07-01 00:00:00 UTC"}, "expires 2025-07-01 00:00:00 UTC"),
    ],
)
def test_what_a_token_may_do_is_said(headers: dict[str, str], words: str) -> None:
    with ScriptedForge() as forge:
        forge.say(Say(200, {"resources": {"core": {"limit": 5000, "remaining": 4999}}}, headers))
        settings = Github(url="http://127.0.0.1:1", api_url=forge.url, tries=1)
        found = {check.name: check for check in checks(settings, {"GH_TOKEN": "ghp_first"})}
    assert words in found["forge token 1"].detail
    assert "left: core 4999 of 5000" in found["forge token 1"].detail
