"""Why a merged pull request is no candidate at all: computed from what was crawled; the ledger only counts them."""

from __future__ import annotations

import re

from sqlalchemy import Row, select

from miner.core import tables as t
from miner.core.ledger import Ledger, fact_id
from miner.core.reasons import Reason, Stage
from miner.core.records import Decision, State
from miner.crawlers.github.coverage import Sight, newest_sights
from miner.crawlers.github.repositories import subject_of

_PULL = re.compile(r"(?P<owner>[A-Za-z0-9_-]+?)__(?P<name>[A-Za-z0-9_.-]+)-(?P<number>[1-9]\d*)")


def uncounted(ledger: Ledger, instance_id: str) -> Decision | None:
    """Return why `owner__repo-N` is no candidate, None where nothing is known of that repository or pull request."""
    named = _PULL.fullmatch(instance_id)
    if named is None:
        return None
    taken = _newest_intake(ledger, f"{named['owner']}/{named['name']}".lower())
    if taken is None:
        return None
    if taken.refused is not None:
        sentence = f"{taken.unit} was not taken in {taken.month}: {taken.detail}"
        return _decision(instance_id, Reason(taken.refused), sentence, ())
    pages = [fact for fact in ledger.facts_of(subject_of(int(taken.unit_id))) if fact.key.kind == "crawl.page"]
    sight = newest_sights(pages).get(int(named["number"]))
    if sight is None:
        return None
    trail = tuple(fact_id(fact.key) for fact in pages if fact.blobs["page"] == sight.page)
    return _decision(instance_id, Reason.NO_LINKED_ISSUE, _unlinked(sight, taken), trail)


def _newest_intake(ledger: Ledger, unit: str) -> Row[tuple[object, ...]] | None:
    query = select(t.intake).join(t.runs, t.runs.c.run_id == t.intake.c.run_id).where(t.intake.c.unit == unit)
    rows = ledger.rows(query.order_by(t.runs.c.started_at.desc()).limit(1))
    return rows[0] if rows else None


def _unlinked(sight: Sight, taken: Row[tuple[object, ...]]) -> str:
    merged = f"merged on {sight.merged_at:%Y-%m-%d}"
    if sight.merged_at.strftime("%Y-%m") != taken.month:
        return f"{merged}, which is not in {taken.month}: that month was not mined, or no issue is linked"
    return f"{merged}; {Reason.NO_LINKED_ISSUE.meaning}: it is counted as unlinked, and is no candidate"


def _decision(instance_id: str, code: Reason, sentence: str, trail: tuple[str, ...]) -> Decision:
    return Decision(
        instance_id=instance_id,
        state=State.REJECTED,
        stage=Stage.DISCOVER,
        code=code,
        sentence=sentence,
        trail=trail,
    )
