"""Notices: a command of the operator's is told what happens to a run, as JSON on its standard input."""

from __future__ import annotations

import os
import queue
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Literal

import structlog

from miner.core.errors import ConfigError
from miner.core.records import Legible, Record, State
from miner.core.settings import Settings
from miner.crawlers.github.tokens import redact, tokens_from
from miner.jobs.breakers import OpenBreaker
from miner.jobs.heartbeat import Heartbeat
from miner.jobs.progress import Reporter

WITHIN_S = 30.0
_NEXT = "swe-miner status"
_log = structlog.get_logger()

Event = Literal["finish", "stop", "fault", "cap", "breaker-open", "breaker-closed"]


class Notice(Record):
    """What the command reads.

    Attributes:
        month: "2025-05"; None where no month is mined.
        message: what happened, for people.
        counts: pieces of work by what became of them.
        next: the command to type.
    """

    event: Event
    run_id: str
    source: str
    month: str | None
    message: Legible
    counts: Mapping[str, int]
    next: str


class Notifier(Reporter):
    """Starts the command, one notice after the other, beside the run: it never waits for it but at its end.

    Args:
        settings: with the command; without one nothing happens.
        now: returns how far the run is.
        within_s: how long the command may take.

    Raises:
        ConfigError: `run.notify` is no command.
    """

    def __init__(self, settings: Settings, now: Callable[[], Heartbeat], *, within_s: float = WITHIN_S) -> None:
        self._command = _split(settings.run.notify)
        self._now = now
        self._within_s = within_s
        self._tokens = tokens_from(settings.github, os.environ)
        self._environ = {name: text for name, text in os.environ.items() if name not in settings.github.token_env}
        self._waiting: queue.SimpleQueue[Notice | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._said = False

    def paused(self, breaker: OpenBreaker) -> None:
        """Tell of an open breaker."""
        self.tell("breaker-open", f"{breaker.name}: {breaker.message}")

    def resumed(self, breaker: OpenBreaker) -> None:
        """Tell that it closed."""
        self.tell("breaker-closed", breaker.name)

    def tell(self, event: Event, message: str, next_step: str = _NEXT) -> None:
        """Have the command told, as soon as it is through with what it was told before."""
        if not self._command:
            return
        beat = self._now()
        counts = {state.value: beat.decided.get(state, 0) for state in State}
        notice = Notice(
            event=event,
            run_id=beat.run_id,
            source=beat.source,
            month=beat.month,
            message=redact(message, self._tokens),
            counts={"merged": beat.merged, "linked": beat.linked, **counts},
            next=next_step,
        )
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="notify", daemon=True)
            self._thread.start()
        self._waiting.put(notice)

    def close(self, within_s: float = WITHIN_S) -> None:
        """Wait until the command was told everything, for so long; what is left then is dropped."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(within_s)

    def _work(self) -> None:
        while (notice := self._waiting.get()) is not None:
            if (trouble := self._run(notice)) and not self._said:
                self._said = True
                _log.warning(
                    "run.notify failed; the run goes on, and says so once", event_told=notice.event, seen=trouble
                )

    def _run(self, notice: Notice) -> str:
        """Run the command once and return what went wrong, "" for nothing."""
        try:
            with subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=self._environ,
                start_new_session=True,
            ) as process:
                try:
                    process.communicate(notice.model_dump_json().encode(), timeout=self._within_s)
                except subprocess.TimeoutExpired:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)  # with all that it started
                    return f"no end after {self._within_s:g} s"
                return f"exit code {process.returncode}" if process.returncode else ""
        except (OSError, ValueError) as error:
            return str(error)


def _split(command: str | None) -> list[str]:
    try:
        return shlex.split(command or "")
    except ValueError as error:
        raise ConfigError(f"run.notify: {error}", next_step="quote it as a shell would, without pipes") from error
