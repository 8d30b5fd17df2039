"""What a person sees, to the letter. `UPDATE_GOLDEN=1 pytest tests/jobs/test_render.py` writes the files anew."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from miner.core.reasons import Reason, Stage
from miner.core.records import Decision, Evidence, Finding, State
from miner.jobs.audit import Account, Met, Seen, account_text
from miner.jobs.funnel import funnel
from miner.jobs.render import checks_text, correction_text, decision_line, funnel_text, summary_text
from miner.jobs.summary import Correction, Remeasured, Summary
from miner.sandbox.doctor import Check

GOLDEN = Path(__file__).with_name("golden")


def decision(name: str, state: State, stage: Stage, code: Reason | None, sentence: str) -> Decision:
    return Decision(instance_id=f"pypi__{name}", state=state, stage=stage, code=code, sentence=sentence)


DECISIONS = (
    decision("good-2.0", State.ACCEPTED, Stage.VALIDATE, None, "10 tests failed before and passed after"),
    decision("gone-1.1", State.REJECTED, Stage.DISCOVER, Reason.UNKNOWN_PACKAGE, "the index knows no package 'gone'"),
    decision("odd-1.1", State.REJECTED, Stage.DISCOVER, Reason.UNKNOWN_VERSION, "odd has no version 1.0"),
    decision("quiet-3.1", State.REJECTED, Stage.SCREEN, Reason.NO_TEST_CHANGE, "4 test files, none of them changed"),
    decision("still-3.1", State.REJECTED, Stage.SCREEN, Reason.NO_TEST_CHANGE, "1 test file, none of them changed"),
    decision("stuck-1.0", State.FAULTED, Stage.INSTALL, Reason.DISK_FULL, "no space left on device"),
    decision("later-1.0", State.PENDING, Stage.DISCOVER, None, "not judged yet"),
)  # fmt: skip
SUMMARY = Summary(
    run_id="r",
    decisions=DECISIONS,
    funnel=funnel(DECISIONS),
    measured=12,
    known=30,
    faulted=1,
    seconds=61.4,
    release="out",
    tasks=1,
)
LOG = "a" * 64
ACCOUNT = Account(
    decision=Decision(
        instance_id="pypi__still-3.1",
        state=State.REJECTED,
        stage=Stage.VALIDATE,
        code=Reason.FAILS_AFTER,
        sentence="2 tests failed before the gold patch, and none of them passed after it",
        evidence=(
            Evidence(fact="f" * 64, blob=LOG, excerpt="E       assert 1 == 2\ntests/test_a.py:3: AssertionError"),
            Evidence(fact="e" * 64, excerpt="E       assert 2 == 3"),
        ),
        final=False,
    ),
    findings=(
        Finding(rule="source-found", stage=Stage.DISCOVER, outcome="pass"),
        Finding(rule="gold-files", stage=Stage.SCREEN, outcome="pass", value=3, detail="3 files, 500 are allowed"),
        Finding(
            rule="fail-to-pass", stage=Stage.VALIDATE, outcome="fail", value=0, code=Reason.FAILS_AFTER, detail="no"
        ),
        Finding(
            rule="no-pass-to-fail",
            stage=Stage.VALIDATE,
            outcome="fail",
            value=1,
            code=Reason.PASS_TO_FAIL,
            detail="1 test broke",
            evidence=(Evidence(blob="c" * 64, excerpt="E       KeyError\nE       at all"),),
        ),
        Finding(rule="none-vanished", stage=Stage.VALIDATE, outcome="unmeasured"),
    ),
    notes=("Python 3.11 was released after the change", "pytest option left out: --cov=x (plug-in \x1b is missing)"),
    facts=(
        Seen(
            id="f" * 64,
            kind="validate.before",
            subject="pypi__still-3.1",
            outcome="ok",
            observed_at=datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC),
            seconds=12.34,
            blobs={"diff": "b" * 64},
            logs={"events": LOG},
        ),
    ),
    faults=(Met(reason="docker-unavailable", message="no engine\nat all", at="2025-01-01T10:11:12.131415+00:00"),),
)
CHECKS = (
    Check(name="engine", ok=True, detail="28.0, API 1.48"),
    Check(name="index", ok=False, detail="no answer", next_step="check the network, index.url and index.ca_bundle"),
)
CHANGES = (
    Remeasured(subject="pypi__good-2.0", kind="validate.after", old="ok", new="ok", same=True),
    Remeasured(subject="env-0123456789abcdef", kind="install.lock", old="lock-failed", new="ok", same=False),
)
TEXTS = {
    "funnel": funnel_text(SUMMARY.funnel),
    "summary": summary_text(SUMMARY),
    "summary-without-faults": summary_text(SUMMARY.model_copy(update={"faulted": 0})),
    "account": account_text(ACCOUNT),
    "account-of-a-pending-candidate": account_text(Account(decision=DECISIONS[-1], findings=(), facts=(), faults=())),
    "doctor": checks_text(CHECKS),
    "correction": correction_text(Correction(changes=CHANGES, left=3, faulted=2)),
    "correction-of-nothing": correction_text(Correction(changes=(), left=0, faulted=0)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_the_golden_file(name: str) -> None:
    file = GOLDEN / f"{name}.txt"
    text = TEXTS[name] + "\n"
    if "UPDATE_GOLDEN" in os.environ:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_every_golden_file_is_of_a_text() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == set(TEXTS)


def test_a_decision_is_one_line_whatever_its_sentence_is() -> None:
    long = DECISIONS[0].model_copy(update={"sentence": "first line\nTraceback\n  second"})
    assert "\n" not in decision_line(long)
