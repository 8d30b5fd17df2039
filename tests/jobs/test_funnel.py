"""The funnel counts every candidate once, and what enters a stage leaves it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.core.reasons import Reason, Stage
from miner.core.records import Decision, State
from miner.jobs.funnel import STAGES, funnel


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
