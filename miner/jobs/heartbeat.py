"""The heartbeat of a run: a small file beside the ledger that says how far it is, for `swe-miner status` and others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pydantic import Field, ValidationError

from miner.core.memo import utc_now
from miner.core.records import Decision, Fact, Intake, Record, State
from miner.core.settings import Settings
from miner.jobs.breakers import OpenBreaker
from miner.jobs.caps import Spent
from miner.jobs.progress import Reporter

BEAT_S = 2.0
STALE_S = 60.0


class StageProgress(Record):
    """How far one stage is; `done` counts everything once, however often it was worked on."""

    stage: str
    total: int
    done: int
    began_at: datetime
    ended_at: datetime | None = None


class Heartbeat(Record):
    """What a run last said of itself.

    Attributes:
        at: when it said so.
        state: "running", or how it ended.
        linked: candidates that discovery found.
        decided: candidates by state.
        breakers: those that are open.
        capped: which cap it has reached, "" if none.
    """

    run_id: str
    command: str
    at: datetime
    began_at: datetime
    state: str
    source: str
    month: str | None
    stages: tuple[StageProgress, ...] = ()
    merged: int = 0
    linked: int = 0
    decided: dict[State, int] = Field(default_factory=dict)
    measured: int = 0
    spent: Spent = Spent()
    max_points: int | None = None
    max_hours: float | None = None
    max_cost: float | None = None
    breakers: tuple[OpenBreaker, ...] = ()
    capped: str = ""


class Pulse(Reporter):
    """Keeps count of what happens in a run, and writes it to a file every few seconds.

    Args:
        file: where; replaced as a whole each time.
        settings: of the run.
        run_id: of the run.
        command: "run", "remeasure".
        spent: returns what was spent so far.
        capped: returns which cap is reached.
    """

    def __init__(
        self,
        file: Path,
        settings: Settings,
        run_id: str,
        command: str,
        *,
        spent: Callable[[], Spent] = Spent,
        capped: Callable[[], str] = str,
    ) -> None:
        self._file = file
        self._spent = spent
        self._capped = capped
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._done: set[str] = set()
        self._decisions: dict[str, State] = {}
        self._units: dict[str, tuple[int, int]] = {}
        now = utc_now()
        self._last = Heartbeat(
            run_id=run_id,
            command=command,
            at=now,
            began_at=now,
            state="running",
            source=settings.source,
            month=settings.mine.month,
            max_points=settings.run.max_points,
            max_hours=settings.run.max_hours,
            max_cost=settings.run.max_cost,
        )

    def begin(self, stage: str, total: int) -> None:
        """Begin to count a stage."""
        with self._lock:
            now = utc_now()
            before = tuple(self._current(ended_at=now))
            self._done = set()
            began = StageProgress(stage=stage, total=total, done=0, began_at=now)
            self._change(stages=(*self._last.stages[:-1], *before, began))
        self.beat()

    def discovered(self, intake: Intake) -> None:
        """Count a unit, once."""
        with self._lock:
            self._done.add(intake.unit)
            self._units[intake.unit] = (intake.merged, intake.linked)

    def fact(self, _fact: Fact) -> None:
        """Count a fact."""
        with self._lock:
            self._change(measured=self._last.measured + 1)

    def decided(self, decision: Decision) -> None:
        """Count a candidate, once."""
        with self._lock:
            self._done.add(decision.instance_id)
            self._decisions[decision.instance_id] = decision.state

    def paused(self, breaker: OpenBreaker) -> None:
        """Note an open breaker, and say so at once."""
        with self._lock:
            self._change(breakers=(*self._last.breakers, breaker))
        self.beat()

    def resumed(self, breaker: OpenBreaker) -> None:
        """Note that it closed."""
        with self._lock:
            self._change(breakers=tuple(one for one in self._last.breakers if one != breaker))

    def now(self, state: str = "running") -> Heartbeat:
        """Return how far the run is."""
        with self._lock:
            states = list(self._decisions.values())
            merged, linked = (sum(unit[place] for unit in self._units.values()) for place in (0, 1))
            now = utc_now()
            return self._last.model_copy(
                update={
                    "at": now,
                    "state": state,
                    "stages": (*self._last.stages[:-1], *self._current(ended_at=None if state == "running" else now)),
                    "merged": merged,
                    "linked": linked,
                    "decided": {one: states.count(one) for one in State if one in states},
                    "spent": self._spent(),
                    "capped": self._capped(),
                    "breakers": self._last.breakers if state == "running" else (),
                }
            )

    def beat(self, state: str = "running") -> None:
        """Write the file; a run does not fail because it cannot tell how far it is."""
        part = self._file.with_suffix(f".{threading.get_ident()}.part")
        with suppress(OSError):
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(self.now(state).model_dump_json(), encoding="utf-8")
            part.replace(self._file)

    def start(self, every_s: float = BEAT_S) -> None:
        """Write the file now and every few seconds, until the end."""
        self.beat()
        self._thread = threading.Thread(target=self._go_on, args=(every_s,), name="heartbeat", daemon=True)
        self._thread.start()

    def end(self, state: str) -> None:
        """Write how the run ended, as the last word."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self.beat(state)

    def _go_on(self, every_s: float) -> None:
        while not self._ended.wait(every_s):
            self.beat()

    def _current(self, ended_at: datetime | None) -> list[StageProgress]:
        """Return the stage that is on as it stands."""
        return [
            stage.model_copy(update={"done": len(self._done), "ended_at": ended_at}) for stage in self._last.stages[-1:]
        ]

    def _change(self, **values: object) -> None:
        self._last = self._last.model_copy(update=values)


def heartbeat_file(settings: Settings, ledger_id: str) -> Path:
    """Return where the runs of a ledger leave their heartbeat on this machine."""
    return settings.paths.work / "heartbeat" / f"{ledger_id}.json"


def read_heartbeat(file: Path) -> Heartbeat | None:
    """Return the last heartbeat, None where there is none that can be read."""
    try:
        return Heartbeat.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


def age_s(beat: Heartbeat) -> float:
    """Return how long ago a heartbeat was, by this machine's clock."""
    return max(0.0, time.time() - beat.at.timestamp())
