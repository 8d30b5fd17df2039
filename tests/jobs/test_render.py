"""What a person sees, to the letter. `UPDATE_GOLDEN=1 pytest tests/jobs/test_render.py` writes the files anew."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from miner.core.reasons import Reason, Stage
from miner.core.records import Decision, Evidence, Finding, State
from miner.jobs.audit import Account, Met, Seen, account_text
from miner.jobs.breakers import OpenBreaker
from miner.jobs.caps import Spent
from miner.jobs.estimate import Extrapolation, Interval, exactly
from miner.jobs.funnel import DiscoveryCount, funnel
from miner.jobs.render import checks_text, correction_text, decision_line, funnel_text, summary_text
from miner.jobs.render_status import status_text
from miner.jobs.status import Moved, StageStatus, Status, Yield
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
    models="language models: none is asked (OPENAI_BASE_URL names no endpoint)",
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
DISCOVERY = DiscoveryCount(
    units=5,
    taken=2,
    refused={"repository-fork": 2},
    faulted={"forge-unreachable": 1},
    merged=1200,
    unlinked=1190,
    linked=10,
    entered=7,
    left=2,
    twice=1,
)
PILOT = Extrapolation(
    units=5000,
    units_seen=200,
    candidates=Interval(estimate=30211, low=25000.4, high=35000),
    sampled={"repositories with 1": (11, 260), "repositories with 2-4": (39, 948)},
    seconds={"source": 1.21, "install": 42.0, "validate": 18.55},
    tasks=Interval(estimate=1812.6, low=512, high=5676),
    hours=Interval(estimate=250.42, low=199, high=330.25),
    disk_gb=exactly(1234.5),
    points=Interval(estimate=8123, low=7000, high=9000),
    money=exactly(0),
    assumptions=("intervals of 95 %", "200 of 5000 repositories were looked into: a seeded sample"),
)
MANY = tuple(
    decision(f"many-{number}", State.REJECTED, Stage.SCREEN, Reason.NO_TEST_CHANGE, "none") for number in range(200)
)
BEGAN = datetime(2025, 6, 8, 2, 0, tzinfo=UTC)
RUNNING = Status(
    state="running",
    next="swe-miner status --config monthly.toml",
    heard_s=1.9,
    run_id="0123456789abcdef",
    command="run",
    source="github",
    month="2025-05",
    began_at=BEGAN,
    hours=5.25,
    stages=(
        StageStatus(stage="discover", done=5000, total=5000, per_hour=2400.4),
        StageStatus(stage="mine", done=1204, total=30211, per_hour=240.8, eta_s=433_000),
    ),
    funnel=funnel(DECISIONS),
    yields=(
        Yield(month="2025-05", merged=61002, linked=12810, decided=1204, accepted=43),
        Yield(month="2025-04", merged=99120, linked=20001, decided=20001, accepted=1711),
    ),
    moved=(Moved(code="no-test-path", share=0.232, before=0.2), Moved(code="lock-failed", share=0.01, before=0.0211)),
    faults={"docker-error": 1, "index-unreachable": 3},
    breakers=(
        OpenBreaker(name="index", since=BEGAN, message="https://index.invalid/simple/pip/: no answer", suspects=12),
    ),
    spent=Spent(requests=812, points=2410, waited_s=61.2),
    max_points=5000,
    max_hours=12,
)
STOPPED = RUNNING.model_copy(
    update={
        "state": "capped",
        "capped": "run.max_hours=5 is over",
        "max_points": None,
        "breakers": (),
        "moved": (),
        "faults": {},
        "yields": RUNNING.yields[:1],
        "stages": (StageStatus(stage="discover", done=12),),
        "next": "swe-miner run --month 2025-05",
    }
)
TEXTS = {
    "status-running": status_text(RUNNING),
    "status-capped": status_text(STOPPED),
    "status-none": status_text(Status(state="none", next="swe-miner run")),
    "funnel-of-a-month": funnel_text(SUMMARY.funnel, DISCOVERY),
    "summary-of-a-month": summary_text(
        SUMMARY.model_copy(
            update={
                "decisions": DECISIONS + MANY,
                "funnel": funnel(DECISIONS + MANY),
                "discovery": DISCOVERY,
                "spent": Spent(requests=812, points=2410, waited_s=61.2),
            }
        )
    ),
    "summary-of-a-pilot": summary_text(SUMMARY.model_copy(update={"pilot": PILOT, "release": ""})),
    "summary-at-a-cap": summary_text(SUMMARY.model_copy(update={"capped": "run.max_hours=5 is over", "release": ""})),
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


@pytest.mark.parametrize("name", [name for name in TEXTS if name.startswith("status")])
def test_status_is_one_screen(name: str) -> None:
    lines = TEXTS[name].splitlines()
    assert len(lines) <= 32
    assert max(map(len, lines)) <= 110


def test_every_golden_file_is_of_a_text() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == set(TEXTS)


def test_a_decision_is_one_line_whatever_its_sentence_is() -> None:
    long = DECISIONS[0].model_copy(update={"sentence": "first line\nTraceback\n  second"})
    assert "\n" not in decision_line(long)
