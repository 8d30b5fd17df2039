"""The package index as of which date: one rule, and the dates that are tried when the first one leads nowhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from miner.core.settings import Cutoff

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def cutoffs(created_at: datetime, rule: Cutoff) -> tuple[datetime, ...]:
    """Return the cut-off dates of a change in the order in which they are tried; `Recipe.fallback` counts them.

    First the beginning of the era, a span of `era_days` counted from 1970-01-01: changes of one era with the same
    dependencies share one environment. It is never later than the exact date, `days_after` the change was proposed,
    which comes second. Then the later ones.
    """
    exact = (created_at + timedelta(days=rule.days_after)).astimezone(UTC).replace(microsecond=0)
    era = timedelta(days=rule.era_days)
    first = exact - (exact - _EPOCH) % era
    later = (exact + timedelta(days=days) for days in rule.fallback_days)
    return tuple(dict.fromkeys((first, exact, *later)))
