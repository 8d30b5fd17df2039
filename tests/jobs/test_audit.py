"""`why` accounts for every state of a candidate; `--json` is whole for every verb."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from crawlers.index_server import IndexServer
from planted import BELOW, TERMINAL, TWO, plant, test_run
from typer.testing import CliRunner, Result
from world import options, pair, publish, settings

from exporters.release import LOCK
from miner.cli import app, why
from miner.core.blobs import BlobStore
from miner.core.ledger import Ledger
from miner.core.reasons import Stage
from miner.core.records import Decision, Fact, Observation, Seen, State, Visibility
from miner.jobs.audit import Account
from miner.jobs.funnel import STAGES, FunnelStage
from miner.jobs.summary import Correction, Summary
from miner.sandbox.doctor import Check

IDS = {name: f"pypi__{name}-1.1" for name in ("good", "still", "gone", "stuck", "later", "waiting")}


@dataclass(frozen=True)
class Mined:
    """A ledger with a candidate in every state."""

    folder: Path
    options: list[str]
    ledger: Ledger

    def call(self, *arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, [*arguments, *self.options])
        assert result.exit_code == code, (result.output, result.exception)
        return result

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.call(*arguments, "--json", code=code).stdout)

    def why(self, name: str) -> str:
        return self.call("why", IDS[name]).stdout


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mined]:
    folder = tmp_path_factory.mktemp("audit")
    with IndexServer() as server:
        server.release("pluggy", "1.0", {})
        good, still, stuck = (publish(server, name) for name in ("good", "still", "stuck"))
        chosen = settings(folder, server, good, still)
        blobs = BlobStore(chosen.paths.blobs)

        def fails_after(subject: str, kind: str, seen: Observation) -> Observation:
            if (subject, kind) != (IDS["still"], "validate.after"):
                return seen
            return test_run(blobs, {TWO: "passed", BELOW: "failed"}, TERMINAL)

        plant(chosen, fails_after)
        server.fail("/simple/stuck/", "500")
        arguments = options(folder, server, good, still, pair("gone"), stuck)
        run = CliRunner().invoke(app, ["run", *arguments])
        assert run.exit_code == 12, run.exception
        ledger = Ledger(chosen.paths.ledger)
        run_id = ledger.runs()[-1].run_id
        for name in ("later", "waiting"):
            ledger.add_candidates(
                [Seen(instance_id=IDS[name], source="pypi", origin={}, visibility=Visibility.PUBLIC)], run_id
            )
        waits = Decision(
            instance_id=IDS["waiting"], state=State.PENDING, stage=Stage.INSTALL, sentence="not judged yet"
        )
        ledger.decide(run_id, "", waits, ())
        yield Mined(folder, arguments, ledger)
        ledger.close()


def test_accepted_candidate_has_every_finding_and_fact_in_order(mined: Mined) -> None:
    text = mined.why("good")
    assert text.startswith("pypi__good-1.1: accepted at export\n  1 test failed before the gold patch and passed after")
    stages = [line.split()[0] for line in text.split("\nfindings\n")[1].split("\n\n")[0].splitlines()]
    assert stages == sorted(stages, key=[str(stage) for stage in STAGES].index)
    kinds = [line.split()[1] for line in text.split("\nfacts\n")[1].splitlines() if not line.startswith("      ")]
    assert kinds == sorted(kinds, key=_step)
    assert (kinds[0], kinds[-1]) == ("source.look_up", "validate.after")
    assert "fail [" not in text


def _step(kind: str) -> int:
    return ["source", "install", "validate"].index(kind.split(".")[0])


def test_rejected_candidate_has_the_failing_test_s_own_words_and_the_way_to_the_whole_log(mined: Mined) -> None:
    text = mined.why("still")
    assert text.startswith("pypi__still-1.1: rejected at validate (fails-after)\n")
    assert "  | E       assert 2 == -2" in text
    log = _logs(mined, "still", "validate.after")["events"]
    assert f"  whole log: swe-miner why {IDS['still']} --log {log[:12]}\n" in text


def test_whole_log_is_printed_byte_for_byte(mined: Mined) -> None:
    log = _logs(mined, "still", "validate.after")["events"]
    for length in (12, 64):
        assert mined.call("why", IDS["still"], "--log", log[:length]).stdout_bytes == TERMINAL


def test_whole_log_does_not_reach_a_terminal_with_what_aims_at_it(
    mined: Mined, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = _logs(mined, "still", "validate.after")["events"]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    why(IDS["still"], log=log[:12], config=Path(mined.options[1]), overrides=mined.options[3::2])
    shown = capsys.readouterr().out
    assert shown == "\\x1b[31mE       assert 2 == -2\\x1b[0m caf\\udce9\ntests/test_double.py:9: AssertionError\n"


def test_blob_that_is_not_of_the_candidate_or_not_one_is_refused(mined: Mined) -> None:
    strange = BlobStore(str(mined.folder / "var" / "blobs")).put(b"of nobody")
    for prefix, count in ((strange, "0 blobs"), ("", "blobs of pypi__still-1.1 begin with ''")):
        result = CliRunner().invoke(app, ["why", IDS["still"], "--log", prefix, *mined.options])
        assert count in str(result.exception)
        assert getattr(result.exception, "exit_code", 0) == 2


def test_provisional_rejection_says_so(mined: Mined) -> None:
    text = mined.why("gone")
    assert text.startswith("pypi__gone-1.1: rejected at discover (unknown-package)\n")
    assert "  provisional: it rests on one answer of a network service" in text
    assert "provisional" not in mined.why("still")


def test_faulted_candidate_names_the_fault_and_when(mined: Mined) -> None:
    text = mined.why("stuck")
    assert text.startswith("pypi__stuck-1.1: faulted at discover (index-error)\n")
    assert "the index answers with status 500" in text
    [line] = text.split("\nfaults of the infrastructure\n")[1].splitlines()
    assert line.split()[1] == "index-error:"


def test_pending_candidate_says_what_it_waits_for(mined: Mined) -> None:
    assert mined.why("waiting") == "pypi__waiting-1.1: pending at install\n  not judged yet\n"


def test_candidate_that_was_seen_and_not_decided_is_pending(mined: Mined) -> None:
    assert mined.why("later").startswith(
        "pypi__later-1.1: pending at discover\n  seen, but no run has come to a decision"
    )


def test_candidate_that_was_never_seen_gets_the_nearest_ids(mined: Mined) -> None:
    result = CliRunner().invoke(app, ["why", "pypi__stick-1.1", *mined.options])
    assert "pypi__stick-1.1 was never seen; did you mean pypi__stuck-1.1" in str(result.exception)
    result = CliRunner().invoke(app, ["why", "~~~~", *mined.options])
    assert str(result.exception) == "~~~~ was never seen"


def test_funnel_counts_every_candidate_ever_seen(mined: Mined) -> None:
    first, *_, last = mined.json("funnel")["stages"]
    assert (first["entered"], last["passed"]) == (6, 1)
    assert (first["rejected"], first["faulted"], first["pending"]) == ({"unknown-package": 1}, 1, 1)
    text = mined.call("funnel").stdout
    assert text.endswith("1 of 6 accepted\n")
    ids = mined.call("funnel", "--ids").stdout.splitlines()
    assert [line.split()[1] for line in ids] == sorted(IDS.values())


@pytest.mark.parametrize("name", IDS)
def test_json_of_why_is_the_whole_account(name: str, mined: Mined) -> None:
    said = mined.json("why", IDS[name])
    account = Account.model_validate(said)
    assert said == account.model_dump(mode="json")
    assert account.decision.instance_id == IDS[name]
    assert [fact.id for fact in account.facts] == list(account.decision.trail)


def test_json_of_every_other_verb_is_whole(mined: Mined) -> None:
    summary = Summary.model_validate(mined.json("run", code=12))
    assert {one.instance_id: one.state for one in summary.decisions}[IDS["good"]] is State.ACCEPTED
    assert [FunnelStage.model_validate(stage).stage for stage in mined.json("funnel")["stages"]] == list(STAGES)
    listed = [Decision.model_validate(one).instance_id for one in mined.json("funnel", "--ids")]
    assert listed == sorted(IDS.values())
    checks = {check.name: check for check in map(Check.model_validate, mined.json("doctor", code=11))}
    assert not checks["engine"].ok
    assert checks["engine"].next_step
    assert checks["index"].ok
    would = [Fact.model_validate(fact) for fact in mined.json("invalidate", "pypi.extract", "--why", "x", "--dry-run")]
    assert {fact.key.subject for fact in would} == {IDS["good"], IDS["still"]}
    gone = [
        Fact.model_validate(fact)
        for fact in mined.json("invalidate", "pypi.look_up", "--why", "x", "--subject", IDS["gone"])
    ]
    assert [fact.outcome for fact in gone] == ["unknown-package"]
    corrected = Correction.model_validate(mined.json("remeasure", code=12))
    assert (corrected.left, corrected.faulted) == (0, 1)
    [again] = corrected.changes
    assert (again.subject, again.old, again.same) == (IDS["gone"], "unknown-package", True)
    lock = mined.folder / "out" / LOCK
    rebuilt = mined.json("release", "rebuild", str(lock), "--out", str(mined.folder / "again"))
    assert rebuilt == {"folder": str(mined.folder / "again"), "tasks": 1, "rejected": 2}


def _logs(mined: Mined, name: str, kind: str) -> dict[str, str]:
    [fact] = [one for one in mined.ledger.facts_of(IDS[name]) if one.key.kind == kind]
    return fact.logs
