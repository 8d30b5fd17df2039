"""The database under the ledger: its file, its engine, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, OperationalError, StatementError

from miner.core.errors import ConfigError, DiskFull, LedgerError, SweMinerError

OTHER_FOLDER = "make its folder readable and writable, or choose another with `-c paths.work=...`"


def file_of(text: str) -> Path | None:
    """Return the file of a SQLite ledger, None for one in memory."""
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise ConfigError(f"paths.ledger_url: {error}", next_step="sqlite:///path/of/ledger.sqlite3") from error
    if url.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise ConfigError(
            f"paths.ledger_url: {url.drivername} is not supported yet: nothing would keep two runs apart",
            next_step="use sqlite:///path/of/ledger.sqlite3; PostgreSQL comes later",
        )
    return Path(url.database) if url.database and url.database != ":memory:" else None


def prepare(file: Path, *, create: bool) -> None:
    """See that there is a folder for a ledger, or a ledger."""
    try:
        if create:
            file.parent.mkdir(parents=True, exist_ok=True)
        elif not file.is_file():
            raise LedgerError(
                f"there is no ledger at {file}", next_step="check `paths.work`; `swe-miner run` makes one"
            )
    except OSError as error:
        raise LedgerError(f"{file.parent}: {error.strerror}", next_step=OTHER_FOLDER) from error


def open_engine(url: str) -> Engine:
    """Return an engine; SQLite's keeps a write-ahead log, waits for locks and checks foreign keys."""
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":

        @event.listens_for(engine, "connect")
        def _pragmas(connection: Any, _record: Any) -> None:
            for pragma in ("busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                connection.execute(f"PRAGMA {pragma}")

    return engine


@contextmanager
def ledger_faults() -> Iterator[None]:
    """Turn a database's error into ours: a full disk is a fault of the infrastructure, damage is a ledger error."""
    try:
        yield
    except OperationalError as error:
        if "disk is full" in str(error):
            raise DiskFull("no space left while writing the ledger") from error
        raise LedgerError(f"the ledger cannot be used: {error.orig}", next_step=OTHER_FOLDER) from error
    except DatabaseError as error:
        if isinstance(error, IntegrityError):
            raise
        raise LedgerError(f"the ledger is damaged or not a ledger: {error.orig}") from error
    except StatementError as error:
        if isinstance(error.orig, SweMinerError):  # a signal came while a statement was made
            raise error.orig from None
        raise
