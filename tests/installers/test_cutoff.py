"""The package index as of which date: eras, the exact date, later ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from installers.cutoff import cutoffs
from miner.core.settings import Cutoff

RULE = Cutoff(days_after=1.0, era_days=14, fallback_days=(30, 180), exempt=(), exempt_before="2022-08-15")
_moments = st.datetimes(datetime(2015, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))


def test_first_the_era_then_the_exact_date_then_the_later_ones() -> None:
    created = datetime(2023, 5, 20, 13, 30, tzinfo=UTC)
    assert [day.isoformat() for day in cutoffs(created, RULE)] == [
        "2023-05-11T00:00:00+00:00",
        "2023-05-21T13:30:00+00:00",
        "2023-06-20T13:30:00+00:00",
        "2023-11-17T13:30:00+00:00",
    ]


def test_changes_of_one_era_have_one_first_cutoff_whatever_their_zone() -> None:
    here = datetime(2023, 5, 20, 23, 30, tzinfo=timezone(timedelta(hours=9)))
    there = datetime(2023, 5, 23, 1, 0, tzinfo=UTC)
    assert cutoffs(here, RULE)[0] == cutoffs(there, RULE)[0]
    assert cutoffs(here, RULE)[1] != cutoffs(there, RULE)[1]


def test_an_exact_date_on_the_border_of_an_era_is_tried_once() -> None:
    border = datetime(2023, 5, 10, tzinfo=UTC)
    assert len(cutoffs(border, RULE)) == 3


@given(moment=_moments, days=st.integers(1, 90))
def test_the_first_is_never_later_than_the_exact_one_nor_a_whole_era_earlier(moment: datetime, days: int) -> None:
    first = cutoffs(moment, RULE.model_copy(update={"era_days": days}))[0]
    exact = (moment + timedelta(days=1)).replace(microsecond=0)
    assert timedelta(0) <= exact - first < timedelta(days=days)


@given(moment=_moments)
def test_later_ones_come_in_order(moment: datetime) -> None:
    days = cutoffs(moment, RULE)
    assert list(days) == sorted(days)
