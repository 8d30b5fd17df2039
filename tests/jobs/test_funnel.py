"""The funnel counts every candidate once, and what enters a stage leaves it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.core.reasons import Reason, Stage
from miner.core.records import Decision, Intake, State
from miner.jobs.funnel import STAGES, discovery, funnel


def stopped(state: State, stage: Stage, code: Reason | None) -> Decision:
    return Decision(instance_id="x", state=state, stage=stage, code=code, sentence="s")


ACCEPTED = stopped(State.ACCEPTED, Stage.VALIDATE, None)
REJECTIONS = [reason for reason in Reason if reason.stage in STAGES]
FAULTS = [reason for reason in Reason if reason.is_fault]
decisions = st.lists(
    st.one_of(
        st.just(ACCEPTED),
        st.sampled_from(REJECTIONS).map(lambda reason: stopped(State.REJECTED, reason.stage, reason)),
        st.builds(stopped, st.just(State.FAULTED), st.sampled_from(STAGES), st.sampled_from(FAULTS)),
        st.builds(stopped, st.just(State.PENDING), st.sampled_from(STAGES), st.none()),
    )
)


@given(decisions)
def test_what_enters_a_stage_is_rejected_faulted_pending_or_passed_on(found: list[Decision]) -> None:
    stages = funnel(found)
    assert [stage.stage for stage in stages] == list(STAGES)
    assert stages[0].entered == len(found)
    for stage in stages:
        assert stage.entered == stage.rejections + stage.faulted + stage.pending + stage.passed
    for before, after in pairwise(stages):
        assert before.passed == after.entered
    assert stages[-1].passed == found.count(ACCEPTED)


@given(decisions)
def test_each_decision_is_counted_once_under_its_own_code(found: list[Decision]) -> None:
    stages = {stage.stage: stage for stage in funnel(found)}
    for reason in REJECTIONS:
        counted = stages[reason.stage].rejected.get(reason, 0)
        assert counted == sum(one.state is State.REJECTED and one.code is reason for one in found)
    for state, name in ((State.FAULTED, "faulted"), (State.PENDING, "pending")):
        for stage in STAGES:
            counted = getattr(stages[stage], name)
            assert counted == sum(one.state is state and one.stage == stage for one in found)


@given(decisions, st.randoms())
def test_the_order_of_decisions_does_not_matter(found: list[Decision], random: object) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert funnel(shuffled) == funnel(found)


def test_a_decision_at_a_stage_that_is_none_of_mining_is_refused_and_not_dropped() -> None:
    with pytest.raises(ValueError, match="stopped at infrastructure"):
        funnel([stopped(State.REJECTED, Stage.INFRASTRUCTURE, Reason.SECRET_FOUND)])


def test_no_candidates_are_an_empty_funnel() -> None:
    assert {stage.entered for stage in funnel([])} == {0}


REFUSALS = [reason for reason in Reason if reason.name.startswith("REPOSITORY_")]
taken = st.builds(
    lambda linked, unlinked: {"merged": linked + unlinked, "linked": linked, "unlinked": unlinked},
    st.integers(0, 50),
    st.integers(0, 500),
)
came_to = st.one_of(
    taken,
    st.builds(lambda code: {"refused": code}, st.sampled_from(REFUSALS)),
    st.builds(lambda code: {"fault": code}, st.sampled_from(FAULTS)),
)


@given(st.lists(came_to, min_size=1), st.integers(0, 60), st.integers(0, 60))
def test_discovery_adds_up_to_what_enters_the_funnel(units: list[dict[str, int]], entered: int, left: int) -> None:
    intakes = [Intake.model_validate({"unit": f"o/r{n}", "month": "2025-05", **unit}) for n, unit in enumerate(units)]
    found = discovery(intakes, entered, left)
    assert found is not None
    assert found.units == len(units) == found.taken + sum(found.refused.values()) + sum(found.faulted.values())
    assert found.merged == found.linked + found.unlinked
    assert found.linked + found.others == found.entered + found.left + found.twice
    assert min(found.others, found.twice) == 0


def test_release_pairs_have_no_discovery_to_count() -> None:
    assert discovery([Intake(unit="pairs", merged=3, linked=3)], 3) is None


def test_discovery_that_does_not_add_up_is_refused() -> None:
    with pytest.raises(ValueError, match="3 pull requests were merged, 1 of them linked and 1 not"):
        discovery([Intake(unit="o/r", month="2025-05", merged=3, linked=1, unlinked=1)], 1)
