"""The ledger keeps every fact once, lets go of none, and has one writer."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, inspect

from miner.core.errors import LedgerBusy, LedgerError
from miner.core.ledger import Ledger, content_hash, fact_id
from miner.core.migrations import MIGRATIONS
from miner.core.reasons import Reason
from miner.core.records import Decision, Evidence, Fact, FactKey, Finding, Intake, Seen, State, Visibility
from miner.core.settings import load_settings

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)


def make_fact(subject: str = "pypi__demo-1.0", ordinal: int = 0, **changes: object) -> Fact:
    key = FactKey(kind="k", subject=subject, input_hash="0" * 64, ordinal=ordinal, producer="p", epoch=1)
    return Fact.model_validate({"key": key, "observed_at": NOW, **changes})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.sqlite3")
    ledger.begin_run("r1", "run", load_settings(environ={}), {"swe-miner": "0"})
    return ledger


def test_a_fact_comes_back_as_it_went_in(ledger: Ledger) -> None:
    fact = make_fact(
        outcome="lock-failed",
        payload={"text": "\udcff surrogate", "n": [1, None, {"a": 1.5}]},
        blobs={"lock": "a" * 64},
        measures={"wall_s": 1.25},
        logs={"uv": "b" * 64},
        network=True,
    )
    ledger.add(fact, "r1")
    assert ledger.find(fact.key) == [fact]
    assert ledger.get(fact_id(fact.key)) == fact
    assert ledger.facts_of("pypi__demo-1.0") == [fact]


def test_the_same_key_twice_keeps_the_first_observation(ledger: Ledger) -> None:
    ledger.add(make_fact(payload={"n": 1}), "r1")
    ledger.add(make_fact(payload={"n": 2}), "r1")
    assert [fact.payload for fact in ledger.find(make_fact().key)] == [{"n": 1}]
    assert ledger.count_facts() == 1


def test_a_fact_of_an_unknown_run_is_refused(ledger: Ledger) -> None:
    with pytest.raises(Exception, match="FOREIGN KEY"):
        ledger.add(make_fact(), "no-such-run")


def test_repeats_are_told_apart_by_their_ordinal(ledger: Ledger) -> None:
    for ordinal in (2, 0, 1):
        ledger.add(make_fact(ordinal=ordinal), "r1")
    assert [fact.key.ordinal for fact in ledger.find(make_fact(ordinal=7).key)] == [0, 1, 2]


def test_a_tombstone_takes_a_fact_out_of_use_and_deletes_nothing(ledger: Ledger) -> None:
    fact = make_fact()
    ledger.add(fact, "r1")
    assert ledger.invalidate(why="a bug", producer="p", epoch=2) == []
    assert ledger.invalidate(why="a bug", producer="p", dry_run=True) == [fact]
    assert ledger.find(fact.key) == [fact]
    assert ledger.invalidate(why="a bug", producer="p", epoch=1) == [fact]
    assert ledger.find(fact.key) == []
    assert ledger.facts_of(fact.key.subject) == []
    assert ledger.find(fact.key.model_copy(update={"ordinal": -1})) == [fact]
    assert ledger.tombstoned() == [(fact, "a bug")]
    assert ledger.count_facts() == 1


def test_measurements_do_not_change_what_a_fact_says() -> None:
    slow = make_fact(measures={"wall_s": 9.0}, logs={"log": "c" * 64})
    assert content_hash(make_fact()) == content_hash(slow)
    assert content_hash(make_fact()) != content_hash(make_fact(outcome="lock-failed"))


def test_the_newest_decision_of_a_candidate_wins(ledger: Ledger) -> None:
    ledger.begin_run("r2", "run", load_settings(environ={}), {})
    finding = Finding(
        rule="fail_to_pass", stage="validate", outcome="fail", code=Reason.NOTHING_FAILS_BEFORE, value=0.0,
        evidence=(Evidence(fact="f", excerpt="191 passed"),),
    )  # fmt: skip
    rejected = Decision(
        instance_id="a", state=State.REJECTED, stage="validate", code=Reason.NOTHING_FAILS_BEFORE, sentence="no",
        trail=("x", "y"),
    )  # fmt: skip
    accepted = Decision(instance_id="a", state=State.ACCEPTED, stage="export", sentence="yes")
    ledger.decide("r1", "p", accepted, [])
    ledger.decide("r2", "p", rejected, [finding])
    assert ledger.decisions() == [rejected]
    assert ledger.decisions("r1") == [accepted]
    assert ledger.findings_of("a") == [finding]


def test_deciding_again_in_the_same_run_replaces(ledger: Ledger) -> None:
    decision = Decision(instance_id="a", state=State.FAULTED, stage="install", sentence="x")
    ledger.decide("r1", "p", decision, [Finding(rule="one", stage="s", outcome="pass")] * 3)
    ledger.decide("r1", "p", decision, [Finding(rule="two", stage="s", outcome="pass")])
    assert [finding.rule for finding in ledger.findings_of("a")] == ["two"]


def test_a_run_that_could_not_note_its_end_was_killed(ledger: Ledger) -> None:
    ledger.begin_run("r2", "run", load_settings(environ={}), {})
    ledger.end_run("r2", "done")
    ledger.begin_run("r3", "run", load_settings(environ={}), {})
    assert {run.run_id: (run.status, run.ended_at is None) for run in ledger.runs()} == {
        "r1": ("killed", True),
        "r2": ("done", False),
        "r3": ("running", True),
    }


def test_a_candidate_keeps_its_first_run_and_takes_its_newest_origin(ledger: Ledger) -> None:
    ledger.begin_run("r2", "run", load_settings(environ={}), {})
    for run, old in (("r1", "1.0"), ("r2", "1.1")):
        seen = Seen(instance_id="a", source="pypi", origin={"old": old}, visibility=Visibility.PUBLIC)
        ledger.add_candidates([seen], run)
    [row] = ledger.candidates()
    assert (row.first_run, row.origin) == ("r1", '{"old":"1.1"}')


def test_a_second_writer_is_told_that_the_ledger_is_busy(ledger: Ledger, tmp_path: Path) -> None:
    other = Ledger(f"sqlite:///{tmp_path}/ledger.sqlite3")
    with ledger.exclusive(), pytest.raises(LedgerBusy), other.exclusive():
        pass
    with other.exclusive():
        pass


def _write_until_killed(url: str) -> None:
    ledger = Ledger(url)
    for ordinal in range(100_000):
        ledger.add(make_fact(ordinal=ordinal, payload={"ordinal": ordinal}), "r1")


def test_a_kill_loses_no_stored_fact_and_leaves_no_half_one(ledger: Ledger, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite3"
    writer = multiprocessing.get_context("spawn").Process(target=_write_until_killed, args=(url,))
    writer.start()
    deadline = time.monotonic() + 30
    while ledger.count_facts() < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    facts = Ledger(url).find(make_fact().key)
    assert len(facts) >= 5
    assert [fact.payload["ordinal"] for fact in facts] == list(range(len(facts)))


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite3").write_bytes(b"this is a text, and not a short one" * 100)
    with pytest.raises(LedgerError, match="damaged or not a ledger"):
        Ledger(f"sqlite:///{tmp_path}/ledger.sqlite3")


def test_a_ledger_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite3"
    Ledger(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE schema_version SET version = 99")
    with pytest.raises(LedgerError, match="schema 99"):
        Ledger(f"sqlite:///{path}")


def test_a_new_ledger_opened_by_many_at_once_is_made_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite3"
    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: Ledger(url).id, range(16)))
    assert len(ids) == 1


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite3"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE decisions (something_else TEXT)")
    with pytest.raises(LedgerError):
        Ledger(url)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["decisions"]


def test_a_ledger_of_version_one_gets_months_and_keeps_its_candidates(tmp_path: Path) -> None:
    url, file = f"sqlite:///{tmp_path}/old.sqlite3", tmp_path / "old.sqlite3"
    Ledger(url).close()
    with sqlite3.connect(file) as connection:  # what version 1 had
        connection.execute("DROP TABLE intake")
        connection.execute("DROP INDEX ix_candidates_month")
        connection.execute("ALTER TABLE candidates DROP COLUMN month")
        connection.execute("ALTER TABLE candidates DROP COLUMN unit_id")
        connection.execute("INSERT INTO runs VALUES ('r0', '', '', '', '', '', '', '', '', 'done')")
        connection.execute("INSERT INTO candidates VALUES ('old', 'pypi', '{}', 'public', 'r0')")
        connection.execute("UPDATE schema_version SET version = 1")
    connection.close()
    ledger = Ledger(url)
    new = Seen(
        instance_id="new", source="github", origin={}, visibility=Visibility.PUBLIC, month="2025-05", unit_id="7"
    )
    ledger.add_candidates([new], "r0")
    assert [(row.instance_id, row.month, row.unit_id) for row in ledger.candidates()] == [
        ("new", "2025-05", "7"),
        ("old", None, ""),
    ]
    ledger.add_intake(Intake(unit="o/r", merged=3, linked=1, unlinked=2, notes=("odd",)), "r0")
    assert [(one.unit, one.merged, one.notes) for one in ledger.intake("r0")] == [("o/r", 3, ("odd",))]


def test_migrations_are_numbered_from_one_in_their_docstrings() -> None:
    numbers = [int((step.__doc__ or "").partition(":")[0]) for step in MIGRATIONS]
    assert numbers == list(range(1, len(MIGRATIONS) + 1))


def test_no_path_and_no_host_of_this_machine_is_in_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite3"
    settings = load_settings(
        overrides=[f"paths.work={tmp_path}", "index.url=http://secret-host/simple", "docker.host=tcp://secret-host:1"],
        environ={},
    )
    ledger = Ledger(f"sqlite:///{path}")
    ledger.begin_run("r", "run", settings, {})
    ledger.close()
    text = path.read_bytes()
    assert b"secret-host" not in text
    assert str(tmp_path).encode() not in text


scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    scalars | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_any_json_payload_survives_the_ledger(payload: dict[str, object]) -> None:
    ledger = Ledger("sqlite://")
    ledger.begin_run("r1", "run", load_settings(environ={}), {})
    fact = make_fact(payload=payload)
    ledger.add(fact, "r1")
    [found] = ledger.find(fact.key)
    assert found == fact
    assert content_hash(found) == content_hash(fact)
