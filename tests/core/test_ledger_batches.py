"""What is written and read many at once is what one at a time would be."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy.dialects import sqlite

from miner.core.errors import LedgerError
from miner.core.ledger import Ledger, fact_id
from miner.core.ledger_rows import FIND
from miner.core.reasons import Reason
from miner.core.records import Decision, Fact, FactKey, Finding, Seen, State, Visibility
from miner.core.settings import load_settings

MANY = 601


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.sqlite3")
    for run in ("r1", "r2"):
        ledger.begin_run(run, "run", load_settings(environ={}), {})
    return ledger


def fact(number: int) -> Fact:
    key = FactKey(kind="k", subject=f"s{number}", input_hash="0" * 64, producer="p", epoch=1)
    return Fact(key=key, observed_at=datetime(2025, 5, 1, tzinfo=UTC), payload={"n": number})


def decision(name: str, sentence: str = "no") -> Decision:
    code = Reason.TOO_FEW_FILES
    return Decision(instance_id=name, state=State.REJECTED, stage="discover", code=code, sentence=sentence)


def finding(rule: str, value: float = 1) -> Finding:
    return Finding(rule=rule, stage="discover", outcome="pass", value=value)


def test_facts_are_found_by_their_ids_however_many(ledger: Ledger) -> None:
    facts = [fact(number) for number in range(MANY)]
    for one in facts:
        ledger.add(one, "r1")
    wanted = [fact_id(one.key) for one in facts]
    assert ledger.get_all([*wanted, "f" * 64, wanted[0]]) == dict(zip(wanted, facts, strict=True))
    assert ledger.runs_of(wanted) == dict.fromkeys(wanted, "r1")


@pytest.mark.parametrize("of_inputs", [True, False])
@pytest.mark.parametrize("standing", [True, False])
def test_facts_of_a_key_are_found_by_the_key(of_inputs: bool, standing: bool, ledger: Ledger, tmp_path: Path) -> None:
    statement = FIND[of_inputs, standing].compile(dialect=sqlite.dialect())
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as database:
        plan = database.execute(f"EXPLAIN QUERY PLAN {statement}", ["x"] * len(statement.positiontup or ())).fetchall()
    (search,) = [row[3] for row in plan if row[3].startswith("SEARCH facts")]
    assert "subject=?" in search, "not by all facts of a kind or producer, of which there may be a million"


def test_decisions_are_stored_with_their_findings_in_order(ledger: Ledger) -> None:
    names = [f"o__r-{number}" for number in range(MANY)]
    ledger.decide_all("r1", "p", [(decision(name), (finding("one"), finding("two", len(name)))) for name in names])
    assert ledger.decisions("r1") == [decision(name) for name in sorted(names)]
    found = ledger.findings_of_all(names)
    assert found == {name: [finding("one"), finding("two", len(name))] for name in names}
    assert ledger.findings_of(names[0]) == found[names[0]]


def test_of_two_decisions_on_a_candidate_the_last_one_stands(ledger: Ledger) -> None:
    ledger.decide_all("r1", "p", [(decision("a", "first"), (finding("one"),)), (decision("a", "last"), ())])
    ledger.decide_all("r1", "p", [(decision("b"), (finding("two"),))])
    ledger.decide_all("r1", "p", [])
    assert [one.sentence for one in ledger.decisions("r1")] == ["last", "no"]
    assert ledger.findings_of_all(["a", "b", "c"]) == {"b": [finding("two")]}


def test_findings_are_those_of_the_newest_run_that_decided(ledger: Ledger) -> None:
    ledger.decide_all("r1", "p", [(decision(name), (finding("old"),)) for name in "ab"])
    ledger.decide_all("r2", "p", [(decision("b"), (finding("new"),))])
    assert ledger.findings_of_all("ab") == {"a": [finding("old")], "b": [finding("new")]}


def test_a_batch_that_cannot_be_stored_leaves_nothing(ledger: Ledger) -> None:
    with pytest.raises(Exception, match="FOREIGN KEY"):
        ledger.decide_all("no-such-run", "p", [(decision(name), (finding("one"),)) for name in "ab"])
    assert (ledger.decisions(), ledger.findings_of_all("ab")) == ([], {})


def test_candidates_seen_many_at_once_keep_their_strictest_visibility(ledger: Ledger) -> None:
    def seen(visibility: Visibility, month: str, *, explicit: bool = False) -> list[Seen]:
        return [
            Seen(instance_id=f"c{n}", source="github", origin={"n": n}, visibility=visibility, month=month)
            if not explicit
            else Seen(instance_id=f"c{n}", source="github", origin={}, visibility=visibility, explicit=True)
            for n in range(MANY)
        ]

    ledger.add_candidates(seen(Visibility.PRIVATE, "2025-05"), "r1")
    ledger.add_candidates([*seen(Visibility.PUBLIC, "2025-06"), *seen(Visibility.PUBLIC, "2025-07")[:1]], "r2")
    rows = dict(ledger.candidates_of(f"c{n}" for n in range(MANY + 5)))
    assert len(rows) == MANY
    assert {(row.visibility, row.first_run) for row in rows.values()} == {("private", "r1")}
    assert (rows["c0"].month, rows["c1"].month) == ("2025-07", "2025-06")
    ledger.add_candidates(seen(Visibility.PUBLIC, "", explicit=True), "r2")
    assert {row.visibility for _, row in ledger.candidates_of(rows)} == {"public"}


def test_reading_from_a_damaged_ledger_is_said_so(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite3"
    ledger = Ledger(f"sqlite:///{file}")
    ledger.close()
    file.write_bytes(b"SQLite format 3\0" + b"\1" * 8000)
    with pytest.raises(LedgerError):
        ledger.get_all(["f" * 64])
