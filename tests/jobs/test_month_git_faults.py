"""What git meets at the forge: it is tried again, or the candidate stays faulted; it is never rejected for good."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from forge_month import TOKEN, known_in, run, states
from month_faults import GIT_PASSING, Place, check_recovers, some, undisturbed

from miner.core.reasons import Reason
from miner.core.records import State

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


@pytest.mark.parametrize("case", some(GIT_PASSING, "cut"))
def test_fault_that_goes_by(case: str, place: Place, tmp_path: Path) -> None:
    where, fault, how = GIT_PASSING[case]
    place.forge.fail(where, fault, times=1, **how)
    check_recovers(place, tmp_path, fault)


@pytest.mark.parametrize("case", some(GIT_PASSING, "500"))
def test_fault_that_stays_leaves_candidates_faulted(case: str, place: Place, tmp_path: Path) -> None:
    where, fault, how = GIT_PASSING[case]
    chosen = place.settings(tmp_path, github__tries=1)
    place.forge.fail(where, fault, about="octo/alpha", **how)
    summary = run(chosen)
    assert states(summary)["octo__alpha-2"] == (State.FAULTED, Reason.MIRROR_FAILED)
    assert {**known_in(chosen).decisions, "octo__alpha-2": None} == {**place.known.decisions, "octo__alpha-2": None}
    place.forge.heal()
    run(chosen)
    assert known_in(chosen) == place.known


@pytest.mark.parametrize("fault", some(["not-found", "gone", "blocked"], "not-found"))
def test_repository_that_git_does_not_find_is_rejected_for_now_and_looked_for_again(
    fault: str, place: Place, tmp_path: Path
) -> None:
    chosen = place.settings(tmp_path, measure__recheck_after_hours=0)
    place.forge.fail("git", fault, about="octo/alpha")
    summary = run(chosen)
    found = next(one for one in summary.decisions if one.instance_id == "octo__alpha-2")
    expected = Reason.REPOSITORY_UNAVAILABLE if fault == "blocked" else Reason.REPOSITORY_GONE
    assert (found.state, found.code, found.final) == (State.REJECTED, expected, False)
    place.forge.heal()
    run(chosen)
    assert known_in(chosen) == place.known
