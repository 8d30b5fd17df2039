"""Facts that were measured elsewhere: they keep their keys and times, and stand under a run of their own."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from miner.core import tables as t
from miner.core.hashing import canonical_json
from miner.core.ledger import Ledger
from miner.core.memo import utc_now
from miner.core.records import Fact, Seen
from miner.core.settings import Settings

IMPORTED = "imported"
"""Name of the run under which such facts stand."""


def import_facts(
    ledger: Ledger, facts: Iterable[Fact], closed: Iterable[Seen], settings: Settings, until: datetime | None
) -> None:
    """Take facts into a ledger that is held; one that is there already stays.

    Args:
        ledger: takes them.
        facts: as they were measured.
        closed: candidates that are not public: they are noted first, so that no run opens them by its defaults.
        settings: of the run that imports them.
        until: time of the last observation.
    """
    _note_run(ledger, settings, until)
    ledger.add_candidates(closed, IMPORTED)
    for fact in facts:
        ledger.add(fact, IMPORTED)


def _note_run(ledger: Ledger, settings: Settings, until: datetime | None) -> None:
    """Note the run once, as older than all others: it is nobody's newest."""
    runs = ledger.runs()
    if any(run.run_id == IMPORTED for run in runs):
        return
    began = [datetime.fromisoformat(run.started_at) for run in runs]
    at = min([until or utc_now(), *began])
    row = {
        "run_id": IMPORTED,
        "command": "import",
        "settings_hash": settings.hash,
        "settings": canonical_json(settings.portable()),
        "policy_hash": settings.policy_hash,
        "policy": canonical_json(settings.policy),
        "versions": "{}",
        "started_at": at.isoformat(),
        "ended_at": at.isoformat(),
        "status": "done",
    }
    with ledger.writing() as connection:
        connection.execute(t.runs.insert().values(**row))
