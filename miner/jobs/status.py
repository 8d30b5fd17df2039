"""How the newest run of a ledger stands, by its heartbeat and by what the ledger knows of it and of earlier ones."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import Field
from sqlalchemy import Row, func, select

from miner.core import tables as t
from miner.core.database import file_of
from miner.core.ledger import Ledger
from miner.core.memo import utc_now
from miner.core.records import Record, State
from miner.core.settings import Settings
from miner.jobs.breakers import OpenBreaker
from miner.jobs.caps import Spent
from miner.jobs.funnel import FunnelStage, Tally, funnel_of
from miner.jobs.heartbeat import STALE_S, Heartbeat, StageProgress, heartbeat_file, read_heartbeat

_EARLIER = 3
_MOVED = 5


class StageStatus(Record):
    """How far a stage is.

    Attributes:
        total: None where it is not known.
        per_hour: pieces of work, since the stage began.
        eta_s: seconds until its end at that rate; None where nothing says.
    """

    stage: str
    done: int
    total: int | None = None
    per_hour: float | None = None
    eta_s: float | None = None

    @property
    def left(self) -> int | None:
        """How many are left."""
        return None if self.total is None else max(0, self.total - self.done)


class Yield(Record):
    """What a month gave.

    Attributes:
        decided: candidates that were come to; in a run that goes on they are a sample of all.
    """

    month: str
    merged: int
    linked: int
    decided: int
    accepted: int

    @property
    def per_thousand(self) -> float:
        """Accepted candidates per 1,000 merged pull requests, as far as those that were come to stand for all."""
        if not self.merged or not self.decided:
            return 0.0
        return 1000 * self.accepted / self.decided * self.linked / self.merged

    @property
    def linked_share(self) -> float:
        """Share of the merged pull requests that close an issue."""
        return self.linked / self.merged if self.merged else 0.0


class Moved(Record):
    """A reason whose share moved since the month before; of candidates, or of repositories where it refuses those."""

    code: str
    share: float
    before: float


class Status(Record):
    """The newest run.

    Attributes:
        state: none (there was no run), running, stale (it holds the ledger and says nothing), done, capped, faulted,
            interrupted, failed or killed.
        heard_s: seconds since the last heartbeat; None where there is none.
        funnel: of the candidates on which it has decided.
        yields: of its month, and of earlier ones.
        moved: since the newest of the earlier months.
        faults: of candidates and units, by reason.
        next: the command to type.
    """

    state: str
    next: str
    heard_s: float | None = None
    run_id: str = ""
    command: str = ""
    source: str = ""
    month: str | None = None
    began_at: datetime | None = None
    hours: float = 0.0
    stages: tuple[StageStatus, ...] = ()
    funnel: tuple[FunnelStage, ...] = ()
    yields: tuple[Yield, ...] = ()
    moved: tuple[Moved, ...] = ()
    faults: dict[str, int] = Field(default_factory=dict)
    breakers: tuple[OpenBreaker, ...] = ()
    spent: Spent = Spent()
    max_points: int | None = None
    max_hours: float | None = None
    max_cost: float | None = None
    capped: str = ""


def status(settings: Settings, options: Sequence[str] = (), now: datetime | None = None) -> Status:
    """Return how the newest run stands; nothing is made or changed.

    Args:
        settings: say where the ledger is.
        options: those of the command line that led to these settings; they stand in the next command.
        now: the present time.
    """
    now = now or utc_now()
    file = file_of(settings.paths.ledger)
    if file is not None and not file.is_file():
        return Status(state="none", next=_command("run", options))
    ledger = Ledger(settings.paths.ledger, create=False)
    try:
        runs = ledger.runs()
        if not runs:
            return Status(state="none", next=_command("run", options))
        return _of_run(settings, ledger, runs[-1], options, now)
    finally:
        ledger.close()


def running_since(settings: Settings) -> str:
    """Return since when a run goes on and how far it is, "" where nothing says so."""
    ledger = Ledger(settings.paths.ledger, create=False)
    beat = read_heartbeat(heartbeat_file(settings, ledger.id))
    ledger.close()
    if beat is None or beat.state != "running" or (utc_now() - beat.at).total_seconds() > STALE_S:
        return ""
    far = "".join(f", {stage.stage} {stage.done} of {stage.total}" for stage in beat.stages[-1:])
    return f" since {beat.began_at:%Y-%m-%d %H:%M} UTC{far}"


def _of_run(settings: Settings, ledger: Ledger, run: Row[Any], options: Sequence[str], now: datetime) -> Status:
    beat = read_heartbeat(heartbeat_file(settings, ledger.id))
    beat = beat if beat is not None and beat.run_id == run.run_id else None
    began = datetime.fromisoformat(run.started_at)
    state = _state(ledger, run, beat or began, now)
    over = datetime.fromisoformat(run.ended_at) if run.ended_at else beat.at if state == "killed" and beat else now
    source, month = _what(run)
    tally, refused = _tally(ledger, run.run_id), _refused(ledger, run.run_id)
    faults = _faults(ledger, run.run_id, tally)
    yields, before = _yields(ledger, run, month)
    return Status(
        state=state,
        heard_s=None if beat is None else max(0.0, round((now - beat.at).total_seconds(), 1)),
        run_id=run.run_id,
        command=run.command,
        source=source,
        month=month,
        began_at=began,
        hours=round((over - began).total_seconds() / 3600, 3),
        stages=tuple(_progress(stage, state, over) for stage in beat.stages)
        if beat
        else _known(ledger, run.run_id, tally),
        funnel=funnel_of(tally) if tally else (),
        yields=yields,
        moved=_moved(_shares(tally, refused), before),
        faults=faults,
        breakers=beat.breakers if beat and state in ("running", "stale") else (),
        spent=beat.spent if beat else Spent(),
        max_points=beat.max_points if beat else None,
        max_hours=beat.max_hours if beat else None,
        max_cost=beat.max_cost if beat else None,
        capped=beat.capped if beat else "",
        next=_next(state, bool(faults), run.command, [*_flags(settings, source, month), *_pilot(run)], options),
    )


def _state(ledger: Ledger, run: Row[Any], last: Heartbeat | datetime, now: datetime) -> str:
    if run.status != "running":
        return str(run.status)
    if not ledger.is_held():
        return "killed"
    heard = last.at if isinstance(last, Heartbeat) else last
    return "running" if (now - heard).total_seconds() <= STALE_S else "stale"


def _what(run: Row[Any]) -> tuple[str, str | None]:
    """Return source and month of a run."""
    settings = json.loads(run.settings)
    mine = settings.get("mine", {})
    return mine.get("source") or ("pypi" if settings.get("pairs") else "github"), mine.get("month")


def _progress(stage: StageProgress, state: str, over: datetime) -> StageStatus:
    hours = ((stage.ended_at or over) - stage.began_at).total_seconds() / 3600
    rate = stage.done / hours if hours > 0 and stage.done else None
    goes_on = state == "running" and stage.ended_at is None and rate
    eta_s = round(3600 * (stage.total - stage.done) / rate) if goes_on and rate else None
    return StageStatus(stage=stage.stage, done=stage.done, total=stage.total, per_hour=rate, eta_s=eta_s)


def _known(ledger: Ledger, run_id: str, tally: Tally) -> tuple[StageStatus, ...]:
    """Return what the ledger says of stages whose run has left no heartbeat on this machine."""
    units = ledger.intake(run_id)
    found = sum(unit.linked for unit in units)
    return (
        StageStatus(stage="discover", done=len(units)),
        StageStatus(stage="mine", done=sum(tally.values()), total=found or None),
    )


def _tally(ledger: Ledger, run_id: str) -> Tally:
    columns = (t.decisions.c.state, t.decisions.c.stage, t.decisions.c.code)
    query = select(*columns, func.count().label("number")).where(t.decisions.c.run_id == run_id).group_by(*columns)
    return {(State(row.state), row.stage, row.code): row.number for row in ledger.rows(query)}


def _refused(ledger: Ledger, run_id: str) -> Counter[str | None]:
    """Return the number of units by the reason why they were not taken, None for those that were."""
    query = select(t.intake.c.refused, func.count().label("number")).where(t.intake.c.run_id == run_id)
    return Counter({row.refused: row.number for row in ledger.rows(query.group_by(t.intake.c.refused))})


def _faults(ledger: Ledger, run_id: str, tally: Tally) -> dict[str, int]:
    faults = Counter({str(code): number for (state, _, code), number in tally.items() if state is State.FAULTED})
    known = (t.intake.c.run_id == run_id) & t.intake.c.fault.is_not(None)
    query = select(t.intake.c.fault, func.count().label("number")).where(known).group_by(t.intake.c.fault)
    faults.update({row.fault: row.number for row in ledger.rows(query)})
    return dict(sorted(faults.items()))


def _yields(ledger: Ledger, run: Row[Any], month: str | None) -> tuple[tuple[Yield, ...], Mapping[str, float]]:
    """Return what this month gave and what earlier ones did, newest first; and the shares of the newest earlier one."""
    if month is None:
        return (), {}
    sums = (func.sum(t.intake.c.merged).label("merged"), func.sum(t.intake.c.linked).label("linked"))
    query = (
        select(t.intake.c.run_id, t.intake.c.month, *sums)
        .join(t.runs, t.runs.c.run_id == t.intake.c.run_id)
        .where(t.intake.c.month.is_not(None), t.intake.c.month <= month, t.runs.c.command == "run")
        .where((t.runs.c.status == "done") | (t.runs.c.run_id == run.run_id))
        .group_by(t.intake.c.run_id, t.intake.c.month)
        .order_by(t.runs.c.started_at)
    )
    newest = {row.month: row for row in ledger.rows(query) if row.month != month or row.run_id == run.run_id}
    rows = [newest[name] for name in sorted(newest, reverse=True)][: _EARLIER + 1]
    tallies = {row.run_id: _tally(ledger, row.run_id) for row in rows}
    yields = tuple(_yield(row, tallies[row.run_id]) for row in rows)
    earlier = [row.run_id for row in rows if row.month != month][:1]
    return yields, _shares(tallies[earlier[0]], _refused(ledger, earlier[0])) if earlier else {}


def _yield(row: Row[Any], tally: Tally) -> Yield:
    accepted = sum(number for (state, _, _), number in tally.items() if state is State.ACCEPTED)
    return Yield(month=row.month, merged=row.merged, linked=row.linked, decided=sum(tally.values()), accepted=accepted)


def _shares(tally: Tally, refused: Counter[str | None]) -> dict[str, float]:
    """Return the share of each reason."""
    decided, units = sum(tally.values()), refused.total()
    shares: Counter[str] = Counter()
    for (state, _, code), number in tally.items():
        if state is State.REJECTED:
            shares[str(code)] += number / decided  # type: ignore[assignment]  # a Counter of floats adds up as well
    return {**shares, **{code: number / units for code, number in refused.items() if code is not None}}


def _moved(now: Mapping[str, float], before: Mapping[str, float]) -> tuple[Moved, ...]:
    """Return the reasons that moved most, those first; none where there is nothing to compare with."""
    if not now or not before:
        return ()
    codes = sorted(
        now.keys() | before.keys(), key=lambda code: (-abs(now.get(code, 0.0) - before.get(code, 0.0)), code)
    )
    moved = (Moved(code=code, share=now.get(code, 0.0), before=before.get(code, 0.0)) for code in codes[:_MOVED])
    return tuple(one for one in moved if one.share != one.before)


def _flags(settings: Settings, source: str, month: str | None) -> list[str]:
    """Return the flags that make a run over these settings one over that source and month."""
    flags = ["--source", source] if settings.source != source else []
    return [*flags, "--month", month] if month is not None and settings.mine.month != month else flags


def _pilot(run: Row[Any]) -> list[str]:
    """Return the flag that makes a run a pilot as large as that one was."""
    number = json.loads(run.settings).get("mine", {}).get("pilot")
    return ["--pilot", str(number)] if run.command == "pilot" and number is not None else []


def _next(state: str, faults: bool, command: str, flags: Sequence[str], options: Sequence[str]) -> str:
    if state == "running":
        return _command("status", options)
    if state == "done" and not faults:
        return _command("funnel", options)
    again = "remeasure" if command == "remeasure" else "run"
    return _command(again, [*(flags if again == "run" else ()), *options])


def _command(verb: str, options: Sequence[str]) -> str:
    return shlex.join(["swe-miner", verb, *options])
