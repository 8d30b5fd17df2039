"""The ledger: facts, tombstones, runs, findings and decisions, on SQLite (WAL).

Facts are inserted, never changed or deleted; a tombstone takes one out of use. One process writes at a time.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from sqlalchemy import Connection, Row, func, select
from sqlalchemy.exc import IntegrityError

from miner.core import tables as t
from miner.core.database import OTHER_FOLDER, file_of, ledger_faults, open_engine, prepare
from miner.core.errors import LedgerBusy, LedgerError
from miner.core.hashing import canonical_json
from miner.core.ledger_rows import (
    FIND,
    FORGET,
    INSERT_CANDIDATE,
    INSERT_DECISION,
    INSERT_FACT,
    INSERT_FINDING,
    UPDATE_CANDIDATE,
    content_hash,
    decision_of,
    fact_id,
    fact_of,
    finding_of,
    row_of_decision,
    row_of_fact,
    rows_of_findings,
)
from miner.core.memo import utc_now
from miner.core.migrations import migrate
from miner.core.reasons import Reason
from miner.core.records import Decision, Fact, FactKey, Finding, Intake, Seen, Visibility
from miner.core.settings import Settings

__all__ = ["Ledger", "content_hash", "fact_id"]
_AT_ONCE = 500
"""Values in a query: databases bound the number of parameters."""
_MOMENT_S = 0.02


class Ledger:
    """A ledger at a SQLAlchemy URL of SQLite; migrated on opening.

    Args:
        url: of the database.
        create: make the file if there is none.

    Raises:
        ConfigError: the URL names no database, or one that this version cannot keep to one writer.
        LedgerError: the database is missing, damaged, or newer than this program.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        self._file = file_of(url)
        if self._file is not None:
            prepare(self._file, create=create)
        self._engine = open_engine(url)
        with ledger_faults():
            migrate(self._engine)
            with self._engine.connect() as connection:
                self.id: str = connection.execute(select(t.identity.c.ledger_id)).scalar_one()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the ledger for writing; the lock is the operating system's, so that a killed run leaves none behind.

        Raises:
            LedgerBusy: another process holds it.
        """
        if self._file is None:
            yield
            return
        try:
            lock = self._file.with_suffix(".lock").open("w")
        except OSError as error:
            raise LedgerError(f"{self._file.parent}: {error.strerror}", next_step=OTHER_FOLDER) from error
        with lock:
            if not _lock(lock, fcntl.LOCK_EX):
                raise LedgerBusy("another run writes to this ledger")
            yield

    def is_held(self) -> bool:
        """Whether a process holds the ledger for writing."""
        try:
            lock = None if self._file is None else self._file.with_suffix(".lock").open("r")
        except OSError:  # nobody ever held it
            return False
        if lock is None:
            return False
        with lock:
            return not _lock(lock, fcntl.LOCK_SH)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Write rows in one transaction; call it while holding the ledger."""
        with ledger_faults(), self._engine.begin() as connection:
            yield connection

    # Facts

    def add(self, fact: Fact, run_id: str) -> None:
        """Insert a fact; the same key twice keeps the first."""
        row = row_of_fact(fact, run_id)
        with ledger_faults():
            try:
                with self._engine.begin() as connection:
                    connection.execute(INSERT_FACT, row)
            except IntegrityError:
                if self.get(row["fact_id"]) is None:
                    raise

    def find(self, key: FactKey) -> list[Fact]:
        """Return a key's standing facts by ordinal, whatever its own ordinal; -1 includes tombstoned ones.

        A key with an empty input hash asks for the facts of all inputs, in order of observation.

        Facts of earlier epochs stand as well: what a raised epoch made doubtful has a tombstone (law 1).
        """
        statement = FIND[bool(key.input_hash), key.ordinal != -1]
        names = ("kind", "subject", "producer", "epoch", *(("input_hash",) if key.input_hash else ()))
        return self._facts(statement, {name: getattr(key, name) for name in names})

    def get(self, fact_id: str) -> Fact | None:
        """Return a fact by its id, tombstoned or not."""
        found = self._facts(select(t.facts).where(t.facts.c.fact_id == fact_id))
        return found[0] if found else None

    def facts_of(self, subject: str) -> list[Fact]:
        """Return the standing facts of a subject in order of observation."""
        alive = t.facts.c.fact_id.not_in(select(t.tombstones.c.fact_id))
        return self._facts(
            select(t.facts).where(t.facts.c.subject == subject, alive).order_by(t.facts.c.observed_at, t.facts.c.kind)
        )

    def standing(self, kind: str, outcome: str | None = "ok") -> Iterator[Fact]:
        """Yield the standing facts of a kind with an outcome (None: any), oldest first; never many are held at once."""
        alive = t.facts.c.fact_id.not_in(select(t.tombstones.c.fact_id))
        chosen = select(t.facts).where(t.facts.c.kind == kind, alive)
        if outcome is not None:
            chosen = chosen.where(t.facts.c.outcome == outcome)
        with ledger_faults(), self._engine.connect().execution_options(yield_per=200) as connection:
            for row in connection.execute(chosen.order_by(t.facts.c.observed_at, t.facts.c.fact_id)):
                yield fact_of(row)

    def get_all(self, fact_ids: Iterable[str]) -> dict[str, Fact]:
        """Return those of these facts that are known, by id."""
        return {
            row.fact_id: fact_of(row)
            for names in _parts(fact_ids)
            for row in self.rows(select(t.facts).where(t.facts.c.fact_id.in_(names)))
        }

    def _facts(self, query: Any, values: Mapping[str, Any] | None = None) -> list[Fact]:
        with ledger_faults(), self._engine.connect() as connection:
            return [fact_of(row) for row in connection.execute(query, values)]

    def runs_of(self, fact_ids: Iterable[str]) -> dict[str, str]:
        """Return for each of these facts that is known the run that measured it."""
        columns = select(t.facts.c.fact_id, t.facts.c.run_id)
        return {
            row.fact_id: row.run_id
            for names in _parts(fact_ids)
            for row in self.rows(columns.where(t.facts.c.fact_id.in_(names)))
        }

    def producers(self) -> list[str]:
        """Return the names of all that has measured a fact."""
        with ledger_faults(), self._engine.connect() as connection:
            return list(
                connection.execute(select(t.facts.c.producer).distinct().order_by(t.facts.c.producer)).scalars()
            )

    def count_facts(self) -> int:
        """Return the number of facts, tombstoned ones included."""
        with ledger_faults(), self._engine.connect() as connection:
            return connection.execute(select(func.count()).select_from(t.facts)).scalar_one()

    def invalidate(
        self,
        *,
        why: str,
        producer: str,
        epoch: int | None = None,
        kind: str | None = None,
        subject: str | None = None,
        dry_run: bool = False,
    ) -> list[Fact]:
        """Put tombstones on a producer's standing facts and return them; nothing is deleted (law 1)."""
        conditions = [t.facts.c.producer == producer, t.facts.c.fact_id.not_in(select(t.tombstones.c.fact_id))]
        for column, value in ((t.facts.c.epoch, epoch), (t.facts.c.kind, kind), (t.facts.c.subject, subject)):
            if value is not None:
                conditions.append(column == value)
        found = self._facts(select(t.facts).where(*conditions).order_by(t.facts.c.subject, t.facts.c.ordinal))
        if found and not dry_run:
            rows = [{"fact_id": fact_id(fact.key), "why": why, "at": utc_now().isoformat()} for fact in found]
            with ledger_faults(), self._engine.begin() as connection:
                connection.execute(t.tombstones.insert(), rows)
        return found

    def suspect(self, facts: Iterable[Fact], why: str) -> None:
        """Put tombstones on these facts: what they say may be the fault of a service that was not well (law 2)."""
        with ledger_faults(), self._engine.begin() as connection:
            for name in {fact_id(fact.key) for fact in facts}:
                known = connection.execute(select(t.tombstones.c.why).where(t.tombstones.c.fact_id == name)).scalar()
                if known is None:
                    connection.execute(t.tombstones.insert().values(fact_id=name, why=why, at=utc_now().isoformat()))

    def tombstoned(self) -> list[tuple[Fact, str]]:
        """Return every fact that was taken out of use, with the reason given."""
        query = select(t.facts, t.tombstones.c.why).join(t.tombstones).order_by(t.facts.c.subject, t.facts.c.ordinal)
        with ledger_faults(), self._engine.connect() as connection:
            return [(fact_of(row), row.why) for row in connection.execute(query)]

    # What was seen, and runs

    def add_intake(self, intake: Intake, run_id: str) -> None:
        """Store what a unit of discovery came to in a run."""
        row = intake.model_dump(mode="json", exclude={"notes"}) | {"notes": canonical_json(list(intake.notes))}
        with ledger_faults(), self._engine.begin() as connection:
            known = (t.intake.c.run_id == run_id) & (t.intake.c.unit == intake.unit)
            connection.execute(t.intake.delete().where(known))
            connection.execute(t.intake.insert().values(run_id=run_id, **row))

    def intake(self, run_id: str) -> list[Intake]:
        """Return what discovery came to in a run, by unit."""
        query = select(t.intake).where(t.intake.c.run_id == run_id).order_by(t.intake.c.unit)
        names = Intake.model_fields.keys() - {"notes"}
        return [
            Intake(**{name: getattr(row, name) for name in names}, notes=tuple(json.loads(row.notes)))
            for row in self.rows(query)
        ]

    def add_candidates(self, seen: Iterable[Seen], run_id: str) -> None:
        """Note that candidates were seen, in one transaction: the first run stands, the newest origin wins.

        The strictest visibility ever given stands, so that no run opens by its defaults what another one has closed;
        an `explicit` one, said of this very candidate, wins over what stands.
        """
        listed = list(seen)
        stood = {
            name: Visibility(row.visibility) for name, row in self.candidates_of(one.instance_id for one in listed)
        }
        new: dict[str, dict[str, Any]] = {}
        known: dict[str, dict[str, Any]] = {}
        for one in listed:
            name, visibility = one.instance_id, one.visibility
            if name in stood and not one.explicit:
                visibility = visibility.stricter(stood[name])
            values = {**one.model_dump(include={"source", "month", "unit_id"}), "visibility": visibility.value}
            values["origin"] = canonical_json(one.origin)
            if name in stood and name not in new:
                known[name] = {"of_candidate": name, **values}
            else:
                new[name] = {"instance_id": name, "first_run": run_id, **values}
            stood[name] = visibility
        with ledger_faults(), self._engine.begin() as connection:
            if new:
                connection.execute(INSERT_CANDIDATE, list(new.values()))
            if known:
                connection.execute(UPDATE_CANDIDATE, list(known.values()))

    def candidates_of(self, instance_ids: Iterable[str]) -> Iterator[tuple[str, Row[Any]]]:
        """Yield (id, row) of those of these candidates that were ever seen."""
        for names in _parts(instance_ids):
            for row in self.rows(select(t.candidates).where(t.candidates.c.instance_id.in_(names))):
                yield row.instance_id, row

    def candidate(self, instance_id: str) -> Row[Any] | None:
        """Return a candidate as it was seen, None if it never was."""
        return dict(self.candidates_of([instance_id])).get(instance_id)

    def candidates(self) -> list[Row[Any]]:
        """Return all candidates ever seen, by id."""
        return self.rows(select(t.candidates).order_by(t.candidates.c.instance_id))

    def begin_run(self, run_id: str, command: str, settings: Settings, versions: dict[str, str]) -> None:
        """Note the start of a run with its settings and policy whole; call it while holding the ledger."""
        with ledger_faults(), self._engine.begin() as connection:
            # Nobody else holds the ledger: what is still "running" had no time to note its end.
            connection.execute(t.runs.update().where(t.runs.c.status == "running").values(status="killed"))
            connection.execute(
                t.runs.insert().values(
                    run_id=run_id,
                    command=command,
                    settings_hash=settings.hash,
                    settings=canonical_json(settings.portable()),
                    policy_hash=settings.policy_hash,
                    policy=canonical_json(settings.policy),
                    versions=canonical_json(versions),
                    started_at=utc_now().isoformat(),
                    status="running",
                )
            )

    def end_run(self, run_id: str, status: str) -> None:
        """Note the end of a run: "done", "capped", "faulted", "interrupted" or "failed"."""
        with ledger_faults(), self._engine.begin() as connection:
            connection.execute(
                t.runs.update().where(t.runs.c.run_id == run_id).values(ended_at=utc_now().isoformat(), status=status)
            )

    def runs(self) -> list[Row[Any]]:
        """Return all runs, oldest first."""
        return self.rows(select(t.runs).order_by(t.runs.c.started_at))

    def add_fault(self, run_id: str, instance_id: str, reason: Reason, message: str) -> None:
        """Note a fault of the infrastructure that a candidate met in a run."""
        with ledger_faults(), self._engine.begin() as connection:
            connection.execute(
                t.faults.insert().values(
                    run_id=run_id, instance_id=instance_id, reason=reason, message=message, at=utc_now().isoformat()
                )
            )

    def faults_of(self, instance_id: str) -> list[Row[Any]]:
        """Return the faults that a candidate met, oldest first."""
        return self.rows(select(t.faults).where(t.faults.c.instance_id == instance_id).order_by(t.faults.c.id))

    # Findings and decisions

    def decide(self, run_id: str, policy_hash: str, decision: Decision, findings: Iterable[Finding]) -> None:
        """Store a run's findings and decision on a candidate."""
        self.decide_all(run_id, policy_hash, [(decision, tuple(findings))])

    def decide_all(self, run_id: str, policy_hash: str, decided: Iterable[tuple[Decision, Sequence[Finding]]]) -> None:
        """Store a run's decisions with their findings, in one transaction; the last one on a candidate stands."""
        newest = {decision.instance_id: (decision, findings) for decision, findings in decided}
        if not newest:
            return
        before = [{"of_run": run_id, "of_candidate": name} for name in newest]
        rows = [row for name, (_, findings) in newest.items() for row in rows_of_findings(run_id, name, findings)]
        with ledger_faults(), self._engine.begin() as connection:
            for statement in FORGET:
                connection.execute(statement, before)
            if rows:
                connection.execute(INSERT_FINDING, rows)
            connection.execute(
                INSERT_DECISION, [row_of_decision(run_id, policy_hash, decision) for decision, _ in newest.values()]
            )

    def decisions(self, run_id: str | None = None) -> list[Decision]:
        """Return the decisions of a run, or of each candidate's newest run, by instance id."""
        query = select(t.decisions).join(t.runs, t.runs.c.run_id == t.decisions.c.run_id)
        if run_id is not None:
            query = query.where(t.decisions.c.run_id == run_id)
        newest = {row.instance_id: row for row in self.rows(query.order_by(t.runs.c.started_at))}
        return [decision_of(newest[name]) for name in sorted(newest)]

    def findings_of(self, instance_id: str) -> list[Finding]:
        """Return the findings of the newest run that decided on a candidate, in order."""
        return self.findings_of_all([instance_id]).get(instance_id, [])

    def findings_of_all(self, instance_ids: Iterable[str]) -> dict[str, list[Finding]]:
        """Return for each of these candidates the findings of the newest run that decided on it, in order."""
        found: dict[str, list[Finding]] = {}
        runs = t.decisions.join(t.runs, t.runs.c.run_id == t.decisions.c.run_id)
        decided = select(t.decisions.c.instance_id, t.decisions.c.run_id).select_from(runs)
        for names in _parts(instance_ids):
            those = decided.where(t.decisions.c.instance_id.in_(names)).order_by(t.runs.c.started_at)
            newest = {row.instance_id: row.run_id for row in self.rows(those)}
            query = select(t.findings).where(t.findings.c.instance_id.in_(names)).order_by(t.findings.c.position)
            for row in self.rows(query):
                if newest.get(row.instance_id) == row.run_id:
                    found.setdefault(row.instance_id, []).append(finding_of(row))
        return found

    def rows(self, query: Any) -> list[Row[Any]]:
        """Return the rows of a query over `miner.core.tables`."""
        with ledger_faults(), self._engine.connect() as connection:
            return list(connection.execute(query))

    def close(self) -> None:
        """Give back all connections."""
        self._engine.dispose()


def _lock(file: IO[str], how: int) -> bool:
    """Lock a file if nobody else holds it; who only asks whether somebody does holds it for a moment."""
    for again in (True, True, False):
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
            return True
        except OSError:
            if again:
                time.sleep(_MOMENT_S)
    return False


def _parts(names: Iterable[str]) -> Iterator[list[str]]:
    """Yield names in lists that one query takes."""
    ordered = sorted(set(names))
    for start in range(0, len(ordered), _AT_ONCE):
        yield ordered[start : start + _AT_ONCE]
