"""How much of a month GH Archive had: its hours, and the share of the truly merged pull requests that it saw.

The truth is what the forge's API said of the repositories that were crawled. Where the archive alone named these, those
that it missed as a whole are in no such share: crawl a list or a search beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from sqlalchemy import select

from miner.core import tables as t
from miner.core.blobs import BlobStore
from miner.core.errors import LedgerError, UsageError
from miner.core.ledger import Ledger
from miner.core.memo import Memo
from miner.core.records import Fact
from miner.core.settings import Settings
from miner.crawlers.gharchive_coverage import Coverage, Merges, coverage_of
from miner.crawlers.github.coverage import coverage
from miner.crawlers.github.hints import ARCHIVE, KIND, fullest, hints_of, reports_of
from miner.crawlers.github.month import Month
from miner.crawlers.github.repositories import subject_of
from miner.crawlers.github.walk import PAGE, WALK
from miner.jobs.context import Context


def archive_coverage(ledger: Ledger, blobs: BlobStore, month: str) -> Coverage | None:
    """Return what the archive had of a month, computed from what is known; None where no hour of it was read.

    Raises:
        InfrastructureFault: a blob is missing or damaged.
    """
    memo = Memo(ledger.find, _refuse)
    facts = fullest(memo.known(ARCHIVE, KIND, month))
    if not facts:
        return None
    truth = dict(_truth(ledger, memo, Month.of(month)))
    return coverage_of(month, reports_of(month, facts), hints_of(month, facts, blobs), truth)


def of_month(settings: Settings, month: str | None = None) -> Coverage:
    """Return what the archive had of a month.

    Raises:
        UsageError: no month is named, or no hour of it was read.
    """
    wanted = month or settings.mine.month
    if wanted is None:
        raise UsageError("an archive's coverage is of a month", next_step="swe-miner archive --month 2025-05")
    with closing(Ledger(settings.paths.ledger, create=False)) as ledger:
        found = archive_coverage(ledger, BlobStore(settings.paths.blobs), wanted)
    if found is None:
        raise UsageError(
            f"no hour of GH Archive was read for {wanted}",
            next_step=f"swe-miner run --source github --month {wanted} -c mine.archive=FOLDER",
        )
    return found


def notes_of(context: Context) -> tuple[str, ...]:
    """Return what is to be said of a run's repositories as a whole, and of the archive where it was used."""
    mine = context.settings.mine
    if mine.archive is None or mine.month is None:
        return context.source.notes
    found = archive_coverage(context.ledger, context.blobs, mine.month)
    return (*context.source.notes, *([found.line()] if found else []))


def _truth(ledger: Ledger, memo: Memo, month: Month) -> Iterator[tuple[int, Merges]]:
    """Yield the merges of each repository whose crawl covers the month."""
    crawled = (t.intake.c.month == month.name) & (t.intake.c.unit_id != "") & t.intake.c.refused.is_(None)
    for row in ledger.rows(select(t.intake.c.unit_id).where(crawled).distinct()):
        repository_id = int(row.unit_id)
        subject = subject_of(repository_id)
        known = coverage(memo.known(PAGE, "crawl.page", subject), memo.known(WALK, "crawl.walk", subject))
        if known.of(month) is not None:
            yield repository_id, {sight.number: sight.merged_at for sight in known.merged_in(month)}


def _refuse(fact: Fact) -> None:
    raise LedgerError(f"{fact.key.kind} of {fact.key.subject} is not known")
