"""Numbered migrations of the ledger: each takes a connection and moves it one version on, inside one transaction."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from sqlalchemy import Column, Connection, Engine, inspect, select
from sqlalchemy.schema import CreateColumn

from miner.core.errors import LedgerError
from miner.core.tables import candidates, identity, intake, metadata, schema_version, spending


def _create(connection: Connection) -> None:
    """1: identity, runs, candidates, facts, tombstones, faults, findings, decisions."""
    metadata.create_all(connection, checkfirst=False)
    connection.execute(identity.insert().values(ledger_id=uuid.uuid4().hex))


def _months(connection: Connection) -> None:
    """2: intake; month and unit of candidates."""
    intake.create(connection, checkfirst=True)
    known = {column["name"] for column in inspect(connection).get_columns("candidates")}
    for column in (candidates.c.month, candidates.c.unit_id):
        if column.name not in known:  # a new ledger has them: step 1 makes today's tables
            connection.exec_driver_sql(f"ALTER TABLE candidates ADD COLUMN {_column(connection, column)}")
            for index in candidates.indexes:
                if column.name in index.columns:
                    index.create(connection, checkfirst=True)


def _one_way(connection: Connection) -> None:
    """3: no index of facts by producer: finding a fact by its key went through all facts of its producer."""
    connection.exec_driver_sql("DROP INDEX IF EXISTS ix_facts_producer")


def _spending(connection: Connection) -> None:
    """4: what language models cost."""
    spending.create(connection, checkfirst=True)


def _column(connection: Connection, column: Column[Any]) -> str:
    """Return a column as its table's definition has it."""
    return str(CreateColumn(column).compile(dialect=connection.dialect))


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_create, _months, _one_way, _spending)


def current_version(connection: Connection) -> int:
    """Return the version of the schema that a database holds, 0 for an empty one."""
    if not inspect(connection).has_table("schema_version"):
        return 0
    return connection.execute(select(schema_version.c.version)).scalar() or 0


def migrate(engine: Engine) -> int:
    """Bring a database to this program's version and return it.

    Raises:
        LedgerError: the database is newer than this program.
    """
    with engine.connect() as connection:
        version = current_version(connection)
    if version > len(MIGRATIONS):
        raise LedgerError(f"the ledger has schema {version}, this program knows up to {len(MIGRATIONS)}")
    if version < len(MIGRATIONS):
        _move_on(engine)
    return len(MIGRATIONS)


def _move_on(engine: Engine) -> None:
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":  # whose driver would leave CREATE TABLE outside of the transaction
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        for step in MIGRATIONS[current_version(connection) :]:  # another process may have been faster
            step(connection)
        connection.execute(schema_version.delete())
        connection.execute(schema_version.insert().values(version=len(MIGRATIONS)))
