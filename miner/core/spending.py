"""What language models cost: the upper bound of a request is reserved before it is sent, and settled afterwards.

Amounts are whole nano-dollars, so that sums are exact; what is said to people is in dollars. What was reserved and not
settled counts at its bound for ever: a run that was killed may have spent it. No tombstone takes anything from it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import ROUND_FLOOR, Decimal
from typing import Any, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, func, select

from miner.core.ledger import Ledger
from miner.core.memo import utc_now
from miner.core.settings import Run
from miner.core.tables import spending

NANO = 1_000_000_000
"""Nano-dollars in a dollar."""
MOST = 2**53
"""No amount is larger (nine million dollars): sums of a million of them still fit into the column's 64 bits."""
_COUNTED = func.coalesce(spending.c.money, spending.c.bound)


class OverCap(Exception):
    """A request could cost more than a cap leaves; the message says how much is spent, which differs from run to run.

    Attributes:
        cap: the setting ("run.max_cost").
        later: it would fit if what is reserved at the moment turned out to cost nothing.
    """

    def __init__(self, message: str, *, cap: str, later: bool = False) -> None:
        super().__init__(message)
        self.cap = cap
        self.later = later

    @property
    def sentence(self) -> str:
        """What may be kept of it: no amounts, so that the same is kept however many work at once."""
        return f"{self.cap} leaves too little for another request"


class Caps(NamedTuple):
    """What may be spent; None: no cap."""

    run: int | None = None
    month: int | None = None
    repository: int | None = None

    @classmethod
    def of(cls, run: Run) -> Caps:
        """Return the caps that settings hold."""
        return cls(*(map(_cap, (run.max_cost, run.max_cost_month, run.max_cost_repository))))


class _Scope(NamedTuple):
    """What one cap counts."""

    cap: str
    limit: int | None
    rows: ColumnElement[bool]
    live: int


class Spending:
    """The money of a ledger; threads share it. Who reserves holds the ledger for writing.

    Args:
        ledger: keeps it.
        clock: says in which calendar month, in UTC, something is spent.
    """

    def __init__(self, ledger: Ledger, clock: Callable[[], datetime] = utc_now) -> None:
        self._ledger = ledger
        self._clock = clock
        self._changed = threading.Condition()
        self._live: dict[int, tuple[str, int]] = {}

    def reserve(
        self, run_id: str, repository: str, model: str, bound: int, caps: Caps, parts: Sequence[str] = ()
    ) -> int:
        """Reserve the upper bound of a request and return the id of the reservation.

        Args:
            run_id: of the run that asks.
            repository: on whose behalf.
            model: that is asked.
            bound: of what it can cost.
            caps: within which everything that was spent or is reserved has to stay, this bound included.
            parts: ids of runs that this one goes on with: they count as one with it.

        Raises:
            OverCap: it does not; nothing is reserved.
        """
        now, asked = self._clock(), min(max(bound, 0), MOST)
        month = f"{now:%Y-%m}"
        with self._changed, self._ledger.writing() as connection:
            _alone(connection)
            for scope in self._scopes((run_id, *parts), repository, month, caps):
                _check(scope, _sum(connection, scope.rows), asked)
            row = {"run_id": run_id, "month": month, "repository": repository, "model": model, "at": now.isoformat()}
            made = connection.execute(spending.insert().values(**row, bound=asked).returning(spending.c.id))
            name: int = made.scalar_one()
            self._live[name] = repository, asked
        return name

    def _scopes(self, runs: Sequence[str], repository: str, month: str, caps: Caps) -> tuple[_Scope, ...]:
        of_run, t = spending.c.run_id.in_(runs), spending.c
        live = sum(bound for _, bound in self._live.values())
        ours = sum(bound for name, bound in self._live.values() if name == repository)
        return (
            _Scope("run.max_cost", caps.run, of_run, live),
            _Scope("run.max_cost_month", caps.month, t.month == month, live),
            _Scope("run.max_cost_repository", caps.repository, of_run & (t.repository == repository), ours),
        )

    def settle(self, reservation: int, money: int) -> None:
        """Note what a reserved request has cost; more than its bound is noted as well."""
        amount = min(max(money, 0), MOST)
        try:
            with self._ledger.writing() as connection:
                connection.execute(spending.update().where(spending.c.id == reservation).values(money=amount))
        finally:
            with self._changed:
                self._live.pop(reservation, None)
                self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until something is settled, or for so long."""
        with self._changed:
            self._changed.wait(seconds)

    def spent(self, run_id: str) -> float:
        """Return what a run has spent or reserved, in dollars."""
        return self._total(spending.c.run_id == run_id)

    def spent_in_month(self, month: str) -> float:
        """Return what all runs have spent or reserved in a calendar month ("2026-11"), in dollars."""
        return self._total(spending.c.month == month)

    def spent_by_model(self, run_id: str) -> dict[str, float]:
        """Return what a run has spent or reserved for each model, in dollars."""
        return self._by(spending.c.model, run_id)

    def spent_by_repository(self, run_id: str) -> dict[str, float]:
        """Return what a run has spent or reserved for each repository, in dollars."""
        return self._by(spending.c.repository, run_id)

    def _by(self, column: Column[Any], run_id: str) -> dict[str, float]:
        query = select(column.label("name"), func.sum(_COUNTED).label("total")).where(spending.c.run_id == run_id)
        rows = self._ledger.rows(query.group_by(column).order_by(column))
        return {row.name: dollars(int(row.total)) for row in rows}

    def _total(self, rows: ColumnElement[bool]) -> float:
        [row] = self._ledger.rows(select(func.coalesce(func.sum(_COUNTED), 0).label("total")).where(rows))
        return dollars(int(row.total))


def dollars(amount: int) -> float:
    """Return an amount in dollars."""
    return amount / NANO


def as_text(amount: int) -> str:
    """Return an amount for people, exact to a hundredth of a cent and never rounded to nothing."""
    return f"${amount / NANO:.4f}" if amount == 0 or amount >= NANO // 10_000 else f"${amount / NANO:.9f}"


def _cap(limit: float | None) -> int | None:
    """Return a cap as an amount: what is less than a nano-dollar is cut off, and an infinite cap is none."""
    if limit is None or limit == float("inf"):
        return None
    return int((Decimal(str(limit)) * NANO).to_integral_value(ROUND_FLOOR))


def _check(scope: _Scope, counted: int, asked: int) -> None:
    if scope.limit is None or counted + asked <= scope.limit:
        return
    raise OverCap(
        f"{scope.cap} is {as_text(scope.limit)}: {as_text(counted)} are spent or reserved, and this request could cost "
        f"{as_text(asked)}",
        cap=scope.cap,
        later=counted - scope.live + asked <= scope.limit,
    )


def _alone(connection: Connection) -> None:
    """Have the transaction begin as the only one that writes: what it reads stays true until it ends."""
    if connection.dialect.name == "sqlite":  # whose driver would begin it at the first insert
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql("LOCK TABLE spending IN EXCLUSIVE MODE")


def _sum(connection: Connection, rows: ColumnElement[bool]) -> int:
    total: Any = connection.execute(select(func.coalesce(func.sum(_COUNTED), 0)).where(rows)).scalar_one()
    return int(total)
