"""Rules and decisions: one finding for each rule, the first failing one decides, and the sentence names the thing."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_runs import E, F, P, ids, result, run

from installers.share import Suite
from miner.core.reasons import Reason, Stage
from miner.core.records import (
    BuildMode,
    Candidate,
    Environment,
    Evidence,
    Finding,
    Recipe,
    RunOutcome,
    State,
)
from miner.core.settings import load_settings
from validators.decide import decide
from validators.interface import Case, Fault, Negative
from validators.rules import RULES, evaluate
from validators.verdict import verdict

POLICY = load_settings(environ={}).policy.model_copy(
    update={"min_statement_chars": 20, "max_gold_files": 3, "max_patch_lines": 10, "min_fail_to_pass": 1}
)
OF_RELEASE_PAIRS = (
    *("source-found", "archive-readable", "test-files-present", "test-files-changed", "gold-present", "gold-files"),
    *("patch-size", "statement-present", "statement-length", "setup-readable", "python-available", "sources-complete"),
    *("packages-known", "lock-resolved", "environment-built", "project-installed"),
    *("rebuild-offline", "project-imports", "pytest-usable", "tests-collect", "edit-seen", "collection", "suite-share"),
    *("patches-apply", "rebuild-done", "runs-ended", "reports-intact", "something-ran", "ids-stable", "fail-to-pass"),
    *("fail-to-fail", "no-pass-to-fail", "none-vanished"),
)
LOG = Evidence(fact="fact-after", blob="0" * 64)


def candidate(**changes):
    fields = {
        "instance_id": "pypi__thing-1.1",
        "source": "pypi",
        "repo": "thing",
        "version": "1.1",
        "base_commit": "a" * 40,
        "base_tree": "b" * 40,
        "target_tree": "c" * 40,
        "created_at": datetime(2024, 1, 1, tzinfo=UTC),
        "patch": "diff --git a/thing.py b/thing.py\n",
        "test_patch": "diff --git a/test_thing.py b/test_thing.py\n",
        "statement": "Fix the parsing of empty things.",
        "test_files": ("test_thing.py",),
        "gold_files": ("thing.py",),
    }
    return Candidate(**{**fields, **changes})


def case(before=None, after=None, **changes):
    """A case that was installed, and validated where runs are given."""
    known = {
        "candidate": candidate(),
        "recipe": Recipe(python="3.11", build_backend="flit_core.buildapi"),
        "environment": Environment(
            image="sha256:1", base_digest="sha256:0", layers=(), lock_sha256="0" * 64, mode=BuildMode.EDITABLE
        ),
        "suite": Suite(passed=10),
        "before": before,
        "after": after,
        "verdict": verdict(before, after) if before is not None and after is not None else None,
        "after_evidence": (LOG,),
    }
    return Case(instance_id="pypi__thing-1.1", **{**known, **changes})


def decision_of(one):
    return decide(one.instance_id, evaluate(one, POLICY))


def finding(one, rule):
    return next(found for found in evaluate(one, POLICY) if found.rule == rule)


def test_every_reason_of_a_task_belongs_to_one_rule():
    judged = [code for rule in RULES for code in rule.codes]
    of_rows = {Reason.SOURCE_NOT_RELEASED, Reason.NOT_PUBLIC, Reason.SECRET_FOUND}
    of_fetching = {Reason.REPOSITORY_GONE, Reason.REPOSITORY_UNAVAILABLE}
    of_repositories = {reason for reason in Reason if reason.startswith("repository-")} - of_fetching
    faults = {reason for reason in Reason if reason.is_fault}
    expected = set(Reason) - of_rows - of_repositories - faults
    assert len(judged) == len(set(judged))
    assert set(judged) == expected


@pytest.mark.parametrize("source", [None, "pypi"])
def test_rules_about_a_release_pair_are_these_in_this_order(source):
    nothing_known = Case(instance_id="x", source=source)
    whole = case(run({"a.py::t": F}), run({"a.py::t": P}), source=source)
    for one in (nothing_known, whole):
        assert tuple(found.rule for found in evaluate(one, POLICY)) == OF_RELEASE_PAIRS


def test_rules_stand_in_stage_order_and_have_names_of_their_own():
    order = list(Stage)
    stages = [order.index(rule.stage) for rule in RULES]
    assert stages == sorted(stages)
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(code.stage is rule.stage for rule in RULES for code in rule.codes)


@pytest.mark.parametrize("code", [code for rule in RULES for code in rule.codes])
def test_negative_observation_rejects_with_its_own_code_and_sentence(code):
    rejected = Case(instance_id="x", negatives=(Negative(code=code, detail="what was seen", evidence=(LOG,)),))
    said = decision_of(rejected)
    assert (said.state, said.code, said.stage) == (State.REJECTED, code, code.stage)
    assert (said.sentence, said.evidence) == ("what was seen", (LOG,))


def test_steps_before_a_negative_observation_are_done_and_those_behind_it_unmeasured():
    failed = Case(instance_id="x", candidate=candidate(), negatives=(Negative(code=Reason.BUILD_FAILED),))
    outcomes = {found.rule: found.outcome for found in evaluate(failed, POLICY)}
    assert outcomes["lock-resolved"] == "pass"
    assert outcomes["environment-built"] == "fail"
    assert outcomes["project-installed"] == outcomes["fail-to-pass"] == "unmeasured"


@pytest.mark.parametrize(
    ("changes", "code", "value"),
    [
        ({"test_files": (), "test_patch": ""}, Reason.NO_TEST_CHANGE, 0),
        ({"patch": "", "gold_files": ()}, Reason.NO_GOLD_CHANGE, 0),
        ({"gold_files": ("a", "b", "c", "d")}, Reason.TOO_MANY_FILES, 4),
        ({"patch": "+\n" * 11}, Reason.PATCH_TOO_LARGE, 11),
        ({"statement": " \n "}, Reason.NO_STATEMENT, None),
        ({"statement": "Fix a bug."}, Reason.STATEMENT_TOO_SHORT, 10),
    ],
)
def test_what_the_policy_forbids_is_rejected_before_anything_is_installed(changes, code, value):
    findings = evaluate(Case(instance_id="x", candidate=candidate(**changes)), POLICY)
    failed = next(found for found in findings if found.outcome == "fail")
    assert (failed.code, failed.value, failed.stage) == (code, value, Stage.SCREEN)
    assert decide("x", findings).code is code


@pytest.mark.parametrize(
    "changes", [{"gold_files": ("a", "b", "c")}, {"patch": "+\n" * 10}, {"statement": "x" * 20}], ids=str
)
def test_values_at_their_limit_pass(changes):
    decision = decide("x", evaluate(Case(instance_id="x", candidate=candidate(**changes)), POLICY))
    assert (decision.state, decision.stage) == (State.PENDING, Stage.INSTALL)


def test_failure_of_a_later_stage_is_rejected_at_that_stage():
    failed = Case(instance_id="x", candidate=candidate(), negatives=(Negative(code=Reason.LOCK_FAILED),))
    decision = decide("x", evaluate(failed, POLICY))
    assert (decision.state, decision.stage) == (State.REJECTED, Stage.INSTALL)


def test_accepted_with_the_counts_of_both_sides():
    names = ids(293)
    before = run({name: F if number < 10 else P for number, name in enumerate(names)})
    said = decision_of(case(before, run(dict.fromkeys(names, P))))
    assert said.state is State.ACCEPTED
    assert said.sentence == (
        "10 tests failed before the gold patch and passed after it (10 assertion): "
        "10 failed, 283 passed before, 293 passed after"
    )


def test_flip_behind_a_collection_error_quotes_that_error():
    before = run({"b.py::t": P}, collect_errors={"a.py": "E   ImportError: cannot import name 'new'"})
    one = case(before, run({"a.py::t": P, "b.py::t": P}))
    assert "cannot import name 'new'" in finding(one, "fail-to-pass").evidence[0].excerpt
    assert "(1 collection-error)" in decision_of(one).sentence


def test_nothing_fails_before_says_the_counts():
    everything = run(dict.fromkeys(ids(752), P))
    said = decision_of(case(everything, everything))
    assert said.code is Reason.NOTHING_FAILS_BEFORE
    assert said.sentence == "no test fails before the gold patch: 752 passed before, 752 passed after"


def test_ids_that_hold_the_time_are_no_flips_and_their_function_is_named():
    before = run({"a.py::t": P, "a.py::u[1]": P}, other=["a.py::t", "a.py::u[2]"])
    after = run({"a.py::t": P, "a.py::u[3]": P}, other=["a.py::t", "a.py::u[4]"])
    one = case(before, after)
    assert decision_of(one).code is Reason.NOTHING_FAILS_BEFORE
    assert finding(one, "ids-stable").detail.endswith(": a.py::u")
    assert finding(one, "ids-stable").value == 1


def test_only_unstable_flips():
    before = run({"a.py::t": P, "a.py::u": F}, repeated=frozenset({"a.py::u"}))
    said = decision_of(case(before, run({"a.py::t": P, "a.py::u": P})))
    assert said.code is Reason.ONLY_UNSTABLE_FLIPS
    assert "a.py::u" in said.sentence


def test_fails_after_quotes_the_tests_own_error():
    text = "def test():\n>       assert f(1) == 2\nE       assert 3 == 2\n\na.py:7: AssertionError"
    after = run({"a.py::t": F}).model_copy(update={"results": (result("a.py::t", F, text=text),)})
    said = decision_of(case(run({"a.py::t": F}), after))
    assert said.code is Reason.FAILS_AFTER
    assert said.evidence[0].excerpt == "a.py::t\nE       assert 3 == 2\na.py:7: AssertionError"
    assert said.evidence[0].blob == LOG.blob


def test_pass_to_fail_quotes_the_tests_own_error():
    after = run({"a.py::t": P, "a.py::u": E}).model_copy(
        update={"results": (result("a.py::t", P), result("a.py::u", E, text="E   KeyError: 'x'"))}
    )
    said = decision_of(case(run({"a.py::t": F, "a.py::u": P}), after))
    assert said.code is Reason.PASS_TO_FAIL
    assert said.sentence == "1 test passed before the gold patch and failed after it: a.py::u"
    assert "KeyError: 'x'" in said.evidence[0].excerpt


def test_vanished_test_rejects():
    said = decision_of(case(run({"a.py::t": F, "a.py::u": P}), run({"a.py::t": P})))
    assert said.code is Reason.TESTS_VANISHED
    assert "a.py::u" in said.sentence


def test_tests_that_fail_on_both_sides_are_named_and_reject_nothing():
    one = case(run({"a.py::t": F, "a.py::u": F}), run({"a.py::t": P, "a.py::u": F}))
    assert decision_of(one).state is State.ACCEPTED
    assert finding(one, "fail-to-fail").value == 1
    assert "a.py::u" in finding(one, "fail-to-fail").detail


def test_too_few_flips_for_the_policy():
    asking = POLICY.model_copy(update={"min_fail_to_pass": 2})
    one = case(run({"a.py::t": F}), run({"a.py::t": P}))
    assert decide("x", evaluate(one, asking)).code is Reason.TOO_FEW_FLIPS


@pytest.mark.parametrize(
    ("facts", "code", "words"),
    [
        ({"timed_out": True, "finished": False, "running": "a.py::t"}, Reason.RUN_TIMEOUT, "a.py::t was running"),
        ({"out_of_memory": True, "finished": False}, Reason.RUN_OUT_OF_MEMORY, "memory limit"),
        ({"finished": False, "exit_status": 139}, Reason.RUN_CRASHED, "exit status 139"),
        ({"truncated": True, "finished": False}, Reason.RUN_LIMIT, "more than is read"),
        ({"limit": "pids", "finished": False}, Reason.RUN_LIMIT, "limit of pids"),
        ({"started": False, "finished": False, "exit_status": 4}, Reason.RUN_CRASHED, "did not start"),
        ({"stopped": "stopping after 1 failures"}, Reason.RUN_CRASHED, "stopping after 1 failures"),
        (
            {"stopped": "Traceback (most recent call last):\n  File ...\nKeyError: 1"},
            Reason.RUN_CRASHED,
            "(KeyError: 1)",
        ),
        ({"damaged": 3}, Reason.REPORT_DAMAGED, "3 lines"),
    ],
)
def test_run_after_that_did_not_end_well(facts, code, words):
    said = decision_of(case(run({"a.py::t": F}), run({"a.py::t": P}, **facts)))
    assert said.code is code
    assert words in said.sentence


def test_second_collection_that_did_not_end_is_named():
    said = decision_of(case(run({"a.py::t": F}), run({"a.py::t": P}, other=[])))
    assert said.code is Reason.RUN_CRASHED
    assert "second collection" in said.sentence


def test_pytest_that_did_not_start_is_quoted():
    words = "__main__.py: error: unrecognized arguments: --cov=thing"
    after = run({}, started=False, finished=False, exit_status=4, stopped=f"ERROR: usage: ...\n{words}")
    said = decision_of(case(run({"a.py::t": F}), after))
    assert said.code is Reason.RUN_CRASHED
    assert words in said.evidence[0].excerpt


def test_crash_before_is_an_outcome_of_the_running_test():
    before = run({"a.py::t": E}, finished=False, unfinished=frozenset({"a.py::t"}), running="a.py::t")
    assert decision_of(case(before, run({"a.py::t": P}))).state is State.ACCEPTED


def test_run_before_that_exceeded_its_time_is_no_proof():
    before = run({"a.py::t": F, "a.py::u": E}, finished=False, timed_out=True)
    assert decision_of(case(before, run({"a.py::t": P, "a.py::u": P}))).code is Reason.RUN_TIMEOUT


def test_nothing_ran_where_no_test_file_was_there():
    assert decision_of(case(RunOutcome(), RunOutcome())).code is Reason.NOTHING_RAN


def test_run_before_that_was_never_started_proves_nothing():
    assert decision_of(case(RunOutcome(), run({"a.py::t": P}))).code is Reason.RUN_CRASHED


def test_nothing_ran_quotes_the_collection_error():
    after = run({}, collect_errors={"a.py": "E   ModuleNotFoundError: No module named 'pretend'"})
    said = decision_of(case(run({}, collect_errors={"a.py": "x"}), after))
    assert said.code is Reason.NOTHING_RAN
    assert "No module named 'pretend'" in said.evidence[0].excerpt


def test_fault_leaves_a_candidate_faulted_unless_it_is_rejected_or_complete():
    fault = Fault(code=Reason.DISK_FULL, stage=Stage.INSTALL, detail="no space left")
    waiting = Case(instance_id="x", candidate=candidate())
    assert decide("x", evaluate(waiting, POLICY), fault).state is State.FAULTED
    rejected = Case(instance_id="x", candidate=candidate(statement=""))
    assert decide("x", evaluate(rejected, POLICY), fault).state is State.REJECTED
    complete = case(run({"a.py::t": F}), run({"a.py::t": P}))
    assert decide("x", evaluate(complete, POLICY), fault).state is State.ACCEPTED


def test_unmeasured_rest_is_pending_and_names_what_is_missing():
    said = decide("x", evaluate(Case(instance_id="x", candidate=candidate()), POLICY))
    assert (said.state, said.stage) == (State.PENDING, Stage.INSTALL)
    assert "setup-readable" in said.sentence


def test_candidate_without_findings_is_pending():
    assert decide("x", ()).state is State.PENDING


def test_rejection_that_rests_on_one_answer_of_the_network_is_not_final():
    findings = evaluate(Case(instance_id="x", negatives=(Negative(code=Reason.LOCK_FAILED),)), POLICY)
    assert decide("x", findings).final
    assert not decide("x", findings, provisional={Reason.LOCK_FAILED}).final


outcomes = st.sampled_from(["pass", "fail", "unmeasured"])


@given(st.lists(outcomes, max_size=8), st.booleans())
def test_each_list_of_findings_gives_exactly_one_state(said, faulted):
    findings = [
        Finding(rule=f"r{n}", stage=Stage.SCREEN, outcome=one, code=Reason.NO_STATEMENT if one == "fail" else None)
        for n, one in enumerate(said)
    ]
    fault = Fault(code=Reason.DISK_FULL, stage=Stage.INSTALL) if faulted else None
    state = decide("x", findings, fault).state
    if "fail" in said:
        assert state is State.REJECTED
    elif said and set(said) == {"pass"}:
        assert state is State.ACCEPTED
    else:
        assert state is (State.FAULTED if faulted else State.PENDING)


@given(st.sets(st.sampled_from(list(Reason))), st.booleans())
def test_any_set_of_negative_observations_gives_a_finding_for_each_rule(codes, crawled):
    one = Case(
        instance_id="x",
        candidate=candidate() if crawled else None,
        negatives=tuple(Negative(code=code) for code in sorted(codes)),
        before=RunOutcome(),
    )
    findings = evaluate(one, POLICY)
    assert [found.rule for found in findings] == [
        rule.name for rule in RULES if rule.name in OF_RELEASE_PAIRS or codes.intersection(rule.codes)
    ]
    for found in findings:
        assert (found.code is not None) == (found.outcome == "fail")


def test_a_policy_that_asks_for_no_statement_takes_a_candidate_without_one():
    silent = case(candidate=candidate(statement=""))
    asked = [found.code for found in evaluate(silent, POLICY) if found.outcome == "fail"]
    lenient = POLICY.model_copy(update={"min_statement_chars": 0})
    assert Reason.NO_STATEMENT in asked
    assert [found.code for found in evaluate(silent, lenient) if found.outcome == "fail"] == []
