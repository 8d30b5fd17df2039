"""The monthly mining job: find candidates, bring each as far as its facts allow, decide, and write the release.

for each unit:       discover -> what is to be mined (a repository's merged pull requests; all pairs)
for each candidate:  look_up -> extract -> build -> run_before -> run_after     (STEPS; each adds facts)
after every step the case is computed anew; the first failing finding ends the way
of what passes:      screen -> no secret in what would be published
then:                decisions -> funnel -> release

A pilot takes a sample of the candidates the same way, and says what all of them would come to instead of a release.
"""

from __future__ import annotations

import time
from typing import Any

from miner.core.errors import CapReached, UsageError
from miner.core.records import Decision
from miner.core.settings import Settings
from miner.crawlers.interface import Source
from miner.jobs.context import Context, open_context
from miner.jobs.discovery import discover, items_of
from miner.jobs.done import Done, summary
from miner.jobs.mining import mine_all
from miner.jobs.pilot import fly
from miner.jobs.release import write
from miner.jobs.summary import Summary
from miner.jobs.watch import Watch, watching

_EMPTY = {
    "pypi": ("`pairs` is empty", "swe-miner run --config configs/demo.toml"),
    "github": (
        "no repository is named",
        "set `mine.repositories`, `mine.repository_list`, `mine.repository_search` or `mine.archive`",
    ),
}


def run(settings: Settings, *, quiet: bool = False, source: Source[Any] | None = None) -> Summary:
    """Run the job; safe to stop and to repeat at any moment.

    Args:
        settings: of the run.
        quiet: say nothing while it goes on.
        source: where candidates come from; what the settings say by default.

    Raises:
        LedgerBusy: another run writes to this ledger.
        InfrastructureFault: the engine, the disk or the network is gone; what was completed is kept.
        Interrupted: Ctrl-C or SIGTERM.
    """
    started = time.monotonic()
    command = "run" if settings.mine.pilot is None else "pilot"
    with open_context(settings, command, source) as context, watching(context, command, quiet=quiet) as watch:
        done = mine_and_release(context, watch) if command == "run" else _sample(context, watch)
        return summary(context, watch, done, time.monotonic() - started)


def units_of(context: Context, watch: Watch) -> tuple[str, ...]:
    """Return what discovery is split into; nothing where a cap is reached by asking for that.

    Raises:
        UsageError: there is nothing: a release would be replaced by an empty one.
    """
    try:
        units = context.source.units(context.memo(context.store))
    except CapReached as cap:
        watch.caps.hit(str(cap))
        return ()
    if not units:
        what, next_step = _EMPTY.get(context.settings.source, ("the source holds nothing", "look into what it reads"))
        raise UsageError(f"no candidates: {what}", next_step=next_step)
    return units


def mine_and_release(context: Context, watch: Watch) -> Done:
    """Mine all candidates of a context's source, decide on each, and write the release.

    A run that stops at a cap leaves the last release as it is: what it came to is a sample.
    """
    found, decisions = _mined(context, watch)
    if watch.caps.stopped:
        return Done(found, decisions)
    return Done(found, decisions, write(context.settings, context.ledger, context.reader, decisions))


def _mined(context: Context, watch: Watch) -> tuple[int, list[Decision]]:
    """Return how many candidates there are, and the decisions; what was known of each beside them is let go."""
    items = items_of(context, discover(context, units_of(context, watch), watch))
    return len(items), mine_all(context, items, watch)


def _sample(context: Context, watch: Watch) -> Done:
    units = units_of(context, watch)
    return fly(context, units, watch) if units else Done(0, ())
