"""What watches over a run: what a person sees, the heartbeat, the notices, and the caps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from miner.core.errors import InfrastructureFault, Interrupted, SweMinerError
from miner.jobs.caps import Caps, Spent
from miner.jobs.context import Context
from miner.jobs.heartbeat import Pulse, heartbeat_file
from miner.jobs.notify import WITHIN_S, Notifier
from miner.jobs.progress import All, Reporter, reporter

_AGAIN = "run the same command again"
_STOP_WITHIN_S = 5.0  # who stops a run kills it when it does not end soon


@dataclass(frozen=True)
class Watch:
    """What a stage tells, and what it asks before something begins."""

    report: Reporter
    caps: Caps


@contextmanager
def watching(context: Context, command: str, *, quiet: bool) -> Iterator[Watch]:
    """Watch over a run: its heartbeat says how it ended, and so does the last notice."""
    settings = context.settings

    def spent() -> Spent:
        return spent_in(context)

    caps = Caps(settings.run, spent)
    file = heartbeat_file(settings, context.ledger.id)
    pulse = Pulse(file, settings, context.run_id, command, spent=spent, capped=lambda: caps.stopped)
    notifier = Notifier(settings, pulse.now)
    state = "failed"
    pulse.start()
    with reporter(quiet=quiet) as shown:
        try:
            yield Watch(All((shown, pulse, notifier)), caps)
            state = context.ended = "capped" if caps.stopped else "done"
            notifier.tell("cap" if caps.stopped else "finish", caps.stopped or "done")
        except Interrupted as stop:
            state = "interrupted"
            notifier.tell("stop", str(stop), stop.next_step)
            raise
        except SweMinerError as error:
            state = "faulted" if isinstance(error, InfrastructureFault) else "failed"
            notifier.tell("fault", str(error), error.next_step)
            raise
        except Exception as error:
            notifier.tell("fault", f"{type(error).__name__}: a bug; the log says more", _AGAIN)
            raise
        finally:
            pulse.end(state)
            notifier.close(_STOP_WITHIN_S if state == "interrupted" else WITHIN_S)


def spent_in(context: Context) -> Spent:
    """Return what a run has spent so far."""
    found = context.spent()
    return Spent(
        requests=found.requests,
        points=found.points,
        waited_s=found.waited_s,
        money=context.money(),
    )
