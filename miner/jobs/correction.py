"""The correction job: take out of use what a wrong producer measured, and measure exactly that again (law 1)."""

from __future__ import annotations

import difflib
from typing import Any

from miner.core.errors import UsageError
from miner.core.ledger import Ledger, content_hash
from miner.core.records import Fact, State
from miner.core.settings import Settings
from miner.crawlers.interface import Source
from miner.jobs.context import open_context
from miner.jobs.monthly import mine_and_release
from miner.jobs.summary import Correction, Remeasured
from miner.jobs.watch import watching


def invalidate(
    settings: Settings,
    *,
    why: str,
    producer: str,
    epoch: int | None = None,
    kind: str | None = None,
    subject: str | None = None,
    dry_run: bool = False,
) -> list[Fact]:
    """Put tombstones on a producer's standing facts and return them; nothing is deleted.

    Raises:
        UsageError: nothing in the ledger is of this producer.
        LedgerBusy: a run writes to this ledger.
    """
    ledger = Ledger(settings.paths.ledger, create=False)
    known = ledger.producers()
    if producer not in known:
        near = difflib.get_close_matches(producer, known, n=1, cutoff=0.4) or known
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise UsageError(f"the ledger holds nothing of a producer {producer}{hint}")
    with ledger.exclusive():
        return ledger.invalidate(why=why, producer=producer, epoch=epoch, kind=kind, subject=subject, dry_run=dry_run)


def remeasure(settings: Settings, *, quiet: bool = False, source: Source[Any] | None = None) -> Correction:
    """Mine once more, and compare what stands in the place of invalidated facts with what they said.

    Args:
        settings: of the run; what candidates of other settings rest on stays out of use.
        quiet: say nothing while it goes on.
        source: where candidates come from; what the settings say by default.

    Raises:
        SweMinerError: as of `miner.jobs.monthly.run`.
    """
    command = "remeasure"
    with open_context(settings, command, source) as context, watching(context, command, quiet=quiet) as watch:
        old = {_question(fact): fact for fact, _ in context.ledger.tombstoned()}
        decisions = mine_and_release(context, watch).decisions
        new = {_question(fact): fact for fact in map(context.ledger.get, sorted(context.new_facts)) if fact is not None}
        left = sum(not context.ledger.find(fact.key) for question, fact in old.items() if question not in new)
        pairs = [(old[question], new[question]) for question in sorted(old.keys() & new.keys())]
        return Correction(
            changes=tuple(_compared(*pair) for pair in pairs),
            left=left,
            faulted=sum(one.state is State.FAULTED for one in decisions),
        )


def _question(fact: Fact) -> tuple[str, ...]:
    """Return what a fact answers, whichever attempt of whichever epoch it is."""
    return fact.key.subject, fact.key.kind, fact.key.input_hash, fact.key.producer


def _compared(old: Fact, new: Fact) -> Remeasured:
    same_key = new.model_copy(update={"key": old.key})
    return Remeasured(
        subject=old.key.subject,
        kind=old.key.kind,
        old=old.outcome,
        new=new.outcome,
        same=content_hash(old) == content_hash(same_key),
    )
