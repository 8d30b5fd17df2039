"""Rules about the candidate's own tests at the base commit: the share that the policy asks for, broken collections."""

from __future__ import annotations

import pytest

from installers.broken import Broken
from installers.share import Suite
from miner.core.reasons import Reason
from miner.core.records import Evidence, Finding
from miner.core.settings import load_settings
from validators.interface import Case, Negative
from validators.rules import evaluate

POLICY = load_settings(environ={}).policy.model_copy(update={"min_suite_share": 0.8})
LOG = Evidence(fact="fact-suite", blob="0" * 64)
FAILED = ("tests/test_a.py::test_x[1]", "tests/test_a.py::test_x[2]")
MISSING = Broken(path="tests/test_b.py", at="base", cause="import", error="ModuleNotFoundError: No module named 'yaml'")


def said(rule: str, policy=POLICY, **known) -> Finding:
    case = Case(instance_id="x", suite_evidence=(LOG,), **known)
    return next(found for found in evaluate(case, policy) if found.rule == rule)


def test_without_a_run_at_the_base_nothing_is_measured() -> None:
    assert [said(rule).outcome for rule in ("collection", "suite-share")] == ["unmeasured"] * 2


def test_enough_tests_pass() -> None:
    found = said("suite-share", suite=Suite(passed=8, failed=FAILED))
    assert (found.outcome, found.value, found.code) == ("pass", 0.8, None)
    assert found.detail == "8 of 10 of the candidate's own tests pass at the base commit"


def test_too_few_tests_pass_is_a_rejection_that_names_and_quotes_them() -> None:
    suite = Suite(passed=2, failed=FAILED, hidden=1, uncollected={"tests/test_c.py": "E"}, quotes=("quoted",))
    found = said("suite-share", suite=suite)
    assert (found.outcome, found.code, found.value) == ("fail", Reason.TOO_FEW_PASS_AT_BASE, 0.4)
    assert found.detail == (
        "2 of 5 of the candidate's own tests pass at the base commit, the policy asks for 80%; "
        "not collected: tests/test_c.py; failed: tests/test_a.py::test_x"
    )
    assert [one.excerpt for one in found.evidence] == ["quoted", ""]
    assert {one.fact for one in found.evidence} == {"fact-suite"}


def test_threshold_is_the_policys_and_needs_no_new_measurement() -> None:
    suite = Suite(passed=2, failed=FAILED)
    lenient = POLICY.model_copy(update={"min_suite_share": 0.5})
    assert [said("suite-share", one, suite=suite).outcome for one in (POLICY, lenient)] == ["fail", "pass"]


def test_run_that_ended_early_says_so() -> None:
    found = said("suite-share", suite=Suite(passed=1, unfinished=FAILED, ended="time"))
    assert "ended early (time)" in found.detail


@pytest.mark.parametrize(
    ("suite", "words"),
    [(Suite(missing=("tests/test_new.py",)), ""), (Suite(skipped=3), ", 3 are skipped")],
)
def test_where_no_test_runs_at_the_base_nothing_speaks_against_the_environment(suite: Suite, words: str) -> None:
    found = said("suite-share", suite=suite)
    assert (found.outcome, found.value) == ("pass", None)
    assert found.detail == f"none of the candidate's own tests runs at the base commit{words}"


def test_import_that_the_patches_do_not_explain_is_a_rejection_with_pytests_error() -> None:
    suite = Suite(
        passed=9, hidden=1, uncollected={"tests/test_b.py": "E   ModuleNotFoundError: No module named 'yaml'"}
    )
    found = said("collection", suite=suite, broken=(MISSING,))
    assert (found.outcome, found.code, found.value) == ("fail", Reason.COLLECTION_BROKEN, 1)
    assert found.detail == (
        "a test file cannot be collected at the base commit, which the patches do not explain: "
        "tests/test_b.py: ModuleNotFoundError: No module named 'yaml'"
    )
    assert "No module named 'yaml'" in found.evidence[0].excerpt


@pytest.mark.parametrize("changes", [{"at": "gold"}, {"cause": "other"}])
def test_what_the_criterion_does_not_count_is_told_and_rejects_nothing(changes) -> None:
    found = said("collection", suite=Suite(passed=1), broken=(MISSING.model_copy(update=changes),))
    assert (found.outcome, found.value) == ("pass", 0)
    assert "tests/test_b.py" in found.detail


def test_environment_whose_tests_cannot_be_imported_at_all_is_rejected_by_its_health() -> None:
    refused = (Negative(code=Reason.COLLECTION_BROKEN, detail="pytest collects no test"),)
    found = said("collection", negatives=refused)
    assert (found.outcome, found.code, found.detail) == (
        "fail",
        Reason.COLLECTION_BROKEN,
        "pytest collects no test",
    )


def test_tests_that_fail_for_a_service_are_told_by_that_and_pass_where_the_policy_is_lenient() -> None:
    suite = Suite(passed=1, failed=FAILED)
    found = said("suite-share", suite=suite, needs=Reason.NEEDS_SERVICE)
    assert (found.outcome, found.code) == ("fail", Reason.NEEDS_SERVICE)
    lenient = POLICY.model_copy(update={"min_suite_share": 0.0})
    assert said("suite-share", lenient, suite=suite, needs=Reason.NEEDS_SERVICE).outcome == "pass"
