"""A stage of a run: work on many things at once, and once more on those whose outcome turns out suspect (law 2)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import TypeVar

from miner.core.errors import CapReached, DiskFull, DockerUnavailable, ForgeLimited, ForgeToken, InfrastructureFault
from miner.core.memo import Emit
from miner.core.reasons import Reason
from miner.engines.interface import Work
from miner.engines.local import LocalEngine
from miner.jobs.breakers import Breakers, Outcome
from miner.jobs.canaries import canaries
from miner.jobs.context import Context
from miner.jobs.watch import Watch

_ROUNDS = 3
_STOPS_THE_RUN = (DockerUnavailable, DiskFull, ForgeLimited, ForgeToken)

Thing = TypeVar("Thing")
Made = TypeVar("Made", bound=Outcome)


def in_rounds(
    context: Context,
    watch: Watch,
    work: Work[Thing, Made],
    things: Sequence[Thing],
    store: Emit,
    *,
    name: Callable[[Thing], str],
    workers: int,
) -> Generator[Made]:
    """Yield what became of each thing, as it comes; of a name that comes again the last word counts.

    Once a cap is reached nothing more begins.

    Raises:
        InfrastructureFault: the engine, the disk or a service is gone.
    """
    settings = context.settings
    breakers: Breakers[Made] = Breakers(
        canaries(settings), context.stop, settings.run.pause_max_s, watch.report, context.ledger.suspect
    )

    def begin(thing: Thing, emit: Emit) -> Made | None:
        breakers.enter()
        if not watch.caps.allow():
            return None
        result = work(thing, emit)
        if isinstance(result.error, CapReached):
            watch.caps.hit(str(result.error))
            return None
        if not _stops_the_run(result.error):
            breakers.note(result)
        return result

    left = list(things)
    try:
        for more in reversed(range(_ROUNDS)):
            engine: LocalEngine[Thing, Made | None] = LocalEngine(workers, context.stop, context.abort)
            with closing(engine.map(begin, left, store)) as results:
                yield from _attended(results, breakers)
            if not breakers.suspects or not more or watch.caps.stopped:
                break
            suspects = breakers.again()
            left = [thing for thing in left if name(thing) in suspects]
            watch.report.again(len(left))
        yield from breakers.unsettled()
    except InfrastructureFault:
        yield from breakers.unsettled()
        raise


def _stops_the_run(error: InfrastructureFault | None) -> bool:
    """Whether nothing could go on after a fault: what comes next would meet it as well."""
    return isinstance(error, _STOPS_THE_RUN) or (error is not None and error.reason is Reason.MODEL_LOGIN)


def _attended(results: Iterator[Made | None], breakers: Breakers[Made]) -> Iterator[Made]:
    """Yield the results of one round; nothing is final before all of it was looked at."""
    doubted: dict[str, Made] = {}
    for result in results:
        if result is None:
            continue
        if (standing := result.in_doubt()) is not result:
            doubted[result.name] = result
        yield standing
        if result.error is not None and _stops_the_run(result.error):
            raise result.error
        breakers.attend()
    breakers.attend(at_the_end=True)
    yield from (result for name, result in doubted.items() if name not in breakers.suspects)
