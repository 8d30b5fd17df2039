"""Every misbehaviour of the forge under the job: it recovers, or ends with its error; nothing is rejected for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from forge.faults import FAULTS
from forge_month import (
    TOKEN,
    facts_in,
    known_in,
    options,
    run,
    states,
)
from month_faults import (
    DOCUMENTS,
    GIT_PASSING,
    GRAPHQL_ONLY,
    LASTING,
    LONG,
    NAMES,
    PASSING,
    PATIENT,
    Place,
    check_ends,
    check_goes_on,
    check_recovers,
    some,
    undisturbed,
)

from miner.cli import main
from miner.core.errors import (
    EXIT_CAPPED,
    EXIT_FAULTED,
    ForgeToken,
    ForgeUnreachable,
    InfrastructureFault,
)
from miner.core.reasons import Reason
from miner.core.records import State
from miner.core.settings import Settings
from miner.jobs.summary import Summary

pytestmark = pytest.mark.loopback


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with undisturbed(tmp_path_factory.mktemp("month")) as found:
        yield found


@pytest.fixture
def place(made: Place) -> Iterator[Place]:
    yield made
    made.forge.heal()


def test_undisturbed_run_takes_what_is_there(place: Place) -> None:
    assert {name: row[:2] for name, row in place.known.decisions.items()} == {
        "octo__alpha-2": (State.REJECTED, Reason.PATCH_TOO_LARGE),
        "octo__alpha-4": (State.REJECTED, Reason.NO_TEST_PATH),
        "octo__alpha-9": (State.REJECTED, Reason.NO_TEST_PATH),
        "octo__beta-2": (State.REJECTED, Reason.PATCH_TOO_LARGE),
        "octo__gamma-44": (State.REJECTED, Reason.NO_TEST_PATH),
    }
    assert place.known.intake["octo/gamma"] == (22, 1, 21, None, None)


STORMS = {
    "application": {"repositories": "500", "pages": "half", "pulls": "went-wrong", "more": "timeout", "issues": "504"},
    "proxy": {"repositories": "html", "pages": "502", "pulls": "503", "more": "html", "issues": "half"},
    "network": {"repositories": "reset", "pages": "closed", "pulls": "truncated", "more": "closed", "issues": "slow"},
    "limits": {"repositories": "secondary", "pages": "secondary-429", "pulls": "rate-limited"},
}
"""What each document meets when it is asked for first."""


@pytest.mark.parametrize("storm", some(STORMS, "application"))
def test_faults_that_go_by_leave_no_trace(storm: str, place: Place, tmp_path: Path) -> None:
    for document, case in STORMS[storm].items():
        fault, how = PASSING[case]
        place.forge.fail(document, fault, times=1, **how)
    check_recovers(place, tmp_path, *(PASSING[case][0] for case in STORMS[storm].values()))


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("case", PASSING)
def test_fault_that_goes_by_leaves_no_trace(case: str, document: str, place: Place, tmp_path: Path) -> None:
    fault, how = PASSING[case]
    place.forge.fail(document, fault, times=1, **how)
    check_recovers(place, tmp_path, fault)


HEAVY = {
    "heavy": ("heavy", {"nodes": 2000}),
    "resource-limits": ("resource-limits", {"nodes": 2000}),
    "light-only": ("heavy", {"nodes": 500}),
}


@pytest.mark.parametrize("case", some(HEAVY, "heavy"))
def test_pages_that_are_too_heavy_for_good_are_read_in_smaller_ones(case: str, place: Place, tmp_path: Path) -> None:
    fault, how = HEAVY[case]
    place.forge.fail("pulls", fault, **how)
    place.forge.fail("pages", fault, **how)
    check_recovers(place, tmp_path, fault, github__tries=1)


def test_users_and_head_repositories_that_are_gone_change_no_decision(place: Place, tmp_path: Path) -> None:
    for document in DOCUMENTS:
        place.forge.fail(document, "null-users")
    chosen = place.settings(tmp_path)
    run(chosen)
    found = known_in(chosen)
    assert (found.decisions, found.intake, found.extracted) == (
        place.known.decisions,
        place.known.intake,
        place.known.extracted,
    )


@pytest.mark.parametrize("fault", ["null-head-repository", "null-lists"])
def test_parts_of_answers_that_are_null_are_no_fault(fault: str, place: Place, tmp_path: Path) -> None:
    for document in ("pages", "pulls", "more", "issues"):
        place.forge.fail(document, fault)
    chosen = place.settings(tmp_path)
    summary = run(chosen)
    assert (summary.faulted, summary.units_faulted) == (0, 0)
    if fault == "null-head-repository":
        assert known_in(chosen).decisions == place.known.decisions


@dataclass(frozen=True)
class Ending:
    """How a run ended: with a summary, or with an error."""

    summary: Summary | None = None
    error: InfrastructureFault | None = None


def ending(chosen: Settings) -> Ending:
    try:
        return Ending(summary=run(chosen))
    except InfrastructureFault as error:
        return Ending(error=error)


@pytest.mark.parametrize("case", some(LASTING, "500", "rate-limited"))
def test_fault_that_stays_ends_the_run_with_its_error_and_the_next_run_goes_on(
    case: str, place: Place, tmp_path: Path
) -> None:
    fault, how, expected = LASTING[case]
    chosen = place.settings(tmp_path, github__tries=1)
    place.forge.fail("repositories", fault, **how)
    check_ends(place, chosen, expected)


@pytest.mark.parametrize("case", some(LASTING, "500", "rate-limited"))
def test_fault_that_begins_in_the_middle_rejects_nothing(case: str, place: Place, tmp_path: Path) -> None:
    fault, how, expected = LASTING[case]
    chosen = place.settings(tmp_path, github__tries=1, run__crawl_workers=1)
    place.forge.fail("pulls", fault, **how)
    found = ending(chosen)
    if expected is ForgeUnreachable:
        assert found.summary is not None, "one repository is no spread: the others are mined"
        assert found.summary.units_faulted == 1
        assert found.summary.discovery is not None
        assert set(found.summary.discovery.faulted) <= {Reason.FORGE_UNREACHABLE, Reason.FORGE_ERROR}
        assert states(found.summary).items() <= {name: row[:2] for name, row in place.known.decisions.items()}.items()
    else:
        assert isinstance(found.error, expected)
    check_goes_on(place, chosen)


def test_every_repository_that_fails_alike_ends_the_run(place: Place, tmp_path: Path) -> None:
    chosen = place.settings(tmp_path, github__tries=1)
    for document in ("pages", "pulls"):
        place.forge.fail(document, "server-error")
    check_ends(place, chosen, ForgeUnreachable)


def test_other_token_goes_on_where_one_is_refused(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "the-first-token,the-second-token")
    place.forge.fail("graphql", "bad-credentials", times=1)
    check_recovers(place, tmp_path, "bad-credentials")


def test_organisation_that_asks_for_single_sign_on_is_refused_for_now(place: Place, tmp_path: Path) -> None:
    place.forge.fail("repositories", "sso", times=1)
    chosen = place.settings(tmp_path)
    summary = run(chosen)
    assert summary.discovery is not None
    assert summary.discovery.refused == {Reason.REPOSITORY_UNAVAILABLE: len(NAMES)}
    [fact, *_] = facts_in(chosen, "crawl.repository")
    assert "SAML" in fact.payload["detail"]
    run(place.settings(tmp_path, measure__recheck_after_hours=0))
    assert known_in(chosen) == place.known


def test_pull_request_that_the_forge_does_not_show_is_said_to_be_missing(place: Place, tmp_path: Path) -> None:
    place.forge.fail("pulls", "partial", times=1, path=("repository", "pullRequests", "nodes", 0))
    chosen = place.settings(tmp_path)
    run(chosen)
    merged = known_in(chosen).intake[LONG][0]
    [walk] = [fact for fact in facts_in(chosen, "crawl.walk") if fact.payload["expected"] == 22]
    assert walk.payload["found"] == merged
    assert merged in (21, 22), "the front is read again after several pages"


AGAIN = {"measure__crawl__refresh_after_hours": 0}


class TestRest:
    """A later run asks whether anything changed, by REST."""

    @pytest.mark.parametrize("case", some((case for case in PASSING if case not in GRAPHQL_ONLY), "503"))
    def test_fault_that_goes_by(self, case: str, place: Place, tmp_path: Path) -> None:
        fault, how = PASSING[case]
        chosen = place.settings(place.copy(tmp_path), **AGAIN, **PATIENT)
        place.forge.fail("/pulls", fault, times=1, **how)
        assert run(chosen).units_faulted == 0
        assert known_in(chosen) == place.known

    @pytest.mark.parametrize("case", some((case for case in LASTING if case not in GRAPHQL_ONLY), "primary"))
    def test_fault_that_stays(self, case: str, place: Place, tmp_path: Path) -> None:
        fault, how, expected = LASTING[case]
        chosen = place.settings(place.copy(tmp_path), **AGAIN, github__tries=1)
        place.forge.fail("/pulls", fault, **how)
        found = ending(chosen)
        if found.summary is not None:
            assert expected is ForgeUnreachable
            assert found.summary.units_faulted == len(NAMES)
        else:
            assert isinstance(found.error, expected)
        check_goes_on(place, chosen)

    @pytest.mark.parametrize("fault", some(["not-found", "gone"], "not-found"))
    def test_what_is_known_of_a_repository_stands_when_it_is_said_to_be_gone(
        self, fault: str, place: Place, tmp_path: Path
    ) -> None:
        chosen = place.settings(place.copy(tmp_path), **AGAIN)
        place.forge.fail("/pulls", fault, about="octo/alpha")
        summary = run(chosen)
        assert summary.discovery is not None
        assert (summary.discovery.refused, summary.units_faulted) == ({}, 0)
        assert known_in(chosen).decisions == place.known.decisions
        place.forge.heal()
        run(chosen)
        assert known_in(chosen) == place.known

    def test_repository_that_is_blocked_by_law_is_left_out_until_it_is_not(self, place: Place, tmp_path: Path) -> None:
        chosen = place.settings(place.copy(tmp_path), **AGAIN)
        place.forge.fail("/pulls", "blocked", about="octo/alpha")
        summary = run(chosen)
        assert summary.discovery is not None
        assert (summary.discovery.refused, summary.units_faulted) == ({Reason.REPOSITORY_UNAVAILABLE: 1}, 0)
        assert set(states(summary)) == {name for name in place.known.decisions if "alpha" not in name}
        assert known_in(chosen).decisions == place.known.decisions, "nothing is rejected for it"
        place.forge.heal()
        run(chosen)
        assert known_in(chosen) == place.known


class TestCommandLine:
    """What a person sees, and what a script goes by."""

    @pytest.fixture
    def call(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: Place) -> Any:
        def call(folder: Path, **changes: Any) -> tuple[int, str, str]:
            chosen = options(folder, place.forge, *NAMES, measure__crawl__page_size=10, **changes)
            monkeypatch.setattr("sys.argv", ["swe-miner", "run", *chosen])
            with pytest.raises(SystemExit) as left:
                main()
            code = left.value.code
            assert code is None or isinstance(code, int)
            out, err = capsys.readouterr()
            return code or 0, out, err

        return call

    @pytest.mark.parametrize(
        ("case", "code", "words"),
        [
            ("500", 13, ("check the network and `github.api_url`", "it goes on where it stopped")),
            ("primary", 14, ("later", "add a token", "github.max_wait_s")),
            ("bad-credentials", 15, ("put a valid token into GITHUB_TOKEN", "swe-miner doctor --github")),
            ("under-scoped", 15, ("GITHUB_TOKEN",)),
        ],
    )
    def test_error_has_its_exit_code_and_says_what_to_do(
        self, case: str, code: int, words: tuple[str, ...], call: Any, place: Place, tmp_path: Path
    ) -> None:
        fault, how, _ = LASTING[case]
        place.forge.fail("graphql", fault, **how)
        left, out, err = call(tmp_path, github__tries=1)
        assert left == code
        assert "error: " in err
        next_step = err.partition("\nnext: ")[2]
        assert all(word in next_step for word in words)
        assert "release: " not in out
        assert not (tmp_path / "out").exists()

    def test_no_token_is_an_error_that_says_where_it_belongs(
        self, call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("GITHUB_TOKEN", "GH_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        code, _, err = call(tmp_path)
        assert code == ForgeToken.exit_code
        assert "there is no token" in err

    def test_repository_that_met_a_fault_is_named_and_gives_its_exit_code(
        self, call: Any, place: Place, tmp_path: Path
    ) -> None:
        place.forge.fail("pulls", "server-error")
        code, out, _ = call(tmp_path, github__tries=1)
        assert code == EXIT_FAULTED
        assert f"! {LONG} [forge-unreachable]" in out
        assert "1 unit met a fault: run the same command again" in out

    @pytest.mark.parametrize("pilot", [None, 2])
    def test_cap_that_is_reached_before_all_repositories_are_known_is_a_cap_as_well(
        self, call: Any, tmp_path: Path, pilot: int | None
    ) -> None:
        changes = {} if pilot is None else {"mine__pilot": pilot}
        code, out, _ = call(tmp_path, run__max_points=0, **changes)
        assert code == EXIT_CAPPED
        assert "stopped at a cap: our own cap of 0 points" in out
        assert not (tmp_path / "out").exists()

    def test_run_that_reaches_its_own_cap_stops_without_a_release_and_goes_on_later(
        self, call: Any, place: Place, tmp_path: Path
    ) -> None:
        code, out, _ = call(tmp_path, run__max_points=3)
        assert code == EXIT_CAPPED
        assert "stopped at a cap" in out
        assert not (tmp_path / "out").exists()
        assert call(tmp_path)[0] == 0
        assert known_in(place.settings(tmp_path)) == place.known


def test_every_fault_of_the_forge_is_met_here() -> None:
    met = {one[0] for table in (PASSING, HEAVY, LASTING) for one in table.values()}
    met |= {one[1] for one in GIT_PASSING.values()}
    met |= {"null-users", "null-head-repository", "null-lists", "sso", "partial", "not-found", "gone", "blocked"}
    assert met == set(FAULTS) - {"no-token"}, "a client that has no token asks for nothing"
