"""Hints folded by month and repository, and what share of the truth they are."""

from __future__ import annotations

import json
import tracemalloc
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.crawlers.gharchive import Hints, HourReport, MergeHint, hours_of, repositories_with_hints
from miner.crawlers.gharchive_coverage import Coverage, coverage_of

START = datetime(2025, 5, 1, tzinfo=UTC)


def hint(
    number: int, at: datetime = START, *, of: int = 10, name: str = "o/r", language: str | None = None
) -> MergeHint:
    return MergeHint(of, name, number, at, language)


def folded(*found: MergeHint, month: str = "2025-05") -> Hints:
    hints = Hints(month)
    for one in found:
        hints.add(one)
    return hints


def day(number: int, hour: int = 0) -> datetime:
    return datetime(2025, 5, number, hour, tzinfo=UTC)


def test_a_repository_is_its_number_and_names_are_aliases() -> None:
    hints = folded(hint(1, name="old/name"), hint(2, name="new/name"), hint(3, name="new/name"))
    [found] = repositories_with_hints(hints)
    assert (found.repository_id, found.repository, found.names, found.merges) == (
        10,
        "new/name",
        ("old/name", "new/name"),
        3,
    )


def test_a_repository_that_got_its_old_name_back() -> None:
    [found] = repositories_with_hints(folded(hint(1, name="a/a"), hint(2, name="b/b"), hint(3, name="a/a")))
    assert (found.repository, found.names) == ("a/a", ("b/b", "a/a"))


def test_what_is_seen_twice_counts_once_at_its_earliest_time() -> None:
    hints = folded(hint(7, day(3)), hint(7, day(2, 5)), hint(7, day(4)), hint(8, day(9)))
    assert hints.pulls(10) == {7: day(2, 5), 8: day(9)}
    assert [found.merges for found in hints] == [2]
    assert hints.pulls(11) == {}


@pytest.mark.parametrize(
    ("at", "taken"),
    [
        (START, True),
        (START - timedelta(seconds=1), False),
        (day(31, 23), True),
        (datetime(2025, 6, 1, tzinfo=UTC), False),
        (datetime(2025, 6, 1, 1, tzinfo=timezone(timedelta(hours=2))), True),
        (datetime(2025, 5, 1, 1, tzinfo=timezone(timedelta(hours=2))), False),
        (datetime(2024, 5, 9, tzinfo=UTC), False),
    ],
    ids=str,
)
def test_the_month_is_that_of_the_merge_in_utc(at: datetime, taken: bool) -> None:
    hints = Hints("2025-05")
    assert hints.add(hint(1, at)) is taken
    assert len(hints) == taken


def test_repositories_come_with_most_merges_first() -> None:
    hints = folded(hint(1, of=5), hint(1, of=3), hint(1, of=4), hint(2, of=4), hint(2, of=4))
    assert [(found.repository_id, found.merges) for found in repositories_with_hints(hints)] == [(4, 2), (3, 1), (5, 1)]


def test_a_known_language_narrows_and_an_unknown_one_does_not() -> None:
    hints = folded(
        hint(1, of=1, language="Python"),
        hint(2, of=1),
        hint(1, of=2, language="Go"),
        hint(1, of=3),
        hint(1, of=4, language="Go"),
        hint(2, of=4, language="Python"),
    )
    found = repositories_with_hints(hints, language="Python")
    assert {one.repository_id: one.language for one in found} == {1: "Python", 3: None, 4: "Python"}
    assert len(repositories_with_hints(hints)) == 4


def test_memory_is_bound_by_what_is_distinct() -> None:
    tracemalloc.start()
    hints = Hints("2025-05")
    for turn in range(10):
        for number in range(1, 1001):
            hints.add(hint(number, START + timedelta(seconds=turn), of=number % 10 + 1))
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 40_000
    assert sum(found.merges for found in hints) == 1000


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(0, 40 * 86400)), max_size=60))
def test_the_fold_is_what_a_dictionary_would_hold(found: list[tuple[int, int, int]]) -> None:
    hints, plain = Hints("2025-05"), {}
    for repository, number, seconds in found:
        at = START + timedelta(seconds=seconds)
        hints.add(hint(number, at, of=repository))
        if at.month == 5:
            pulls = plain.setdefault(repository, {})
            pulls[number] = min(at, pulls.get(number, at))
    assert {one.repository_id: hints.pulls(one.repository_id) for one in hints} == plain


REPORTS = (
    HourReport(hour="2025-05-01-0", state="read", size=900, pulls=9, merges=4, undecided=1, bad=2),
    HourReport(hour="2025-05-01-1", state="truncated", size=100, pulls=1, merges=1, detail="cut after 100 bytes"),
    HourReport(hour="2025-05-01-2", state="empty"),
    HourReport(hour="2025-05-02-0", state="missing"),
    HourReport(hour="2025-05-02-1", state="unreadable", detail="damaged after 0 bytes"),
)
HINTS = folded(hint(1, day(1)), hint(2, day(1)), hint(9, day(1)), hint(1, day(2), of=11), hint(5, day(1), of=99))
TRUTH = {
    10: {1: day(1), 2: day(2, 1), 3: day(2, 2), 4: datetime(2025, 6, 1, tzinfo=UTC)},
    11: {1: day(1, 23)},
    12: {7: day(3)},
}


def test_coverage_of_hours_and_events() -> None:
    found = coverage_of("2025-05", REPORTS, HINTS)
    assert found.hours == {"read": 1, "truncated": 1, "empty": 1, "missing": 1, "unreadable": 1}
    assert found.not_whole["missing"] == ("2025-05-02-0",)
    assert "read" not in found.not_whole
    assert (found.size, found.pulls, found.events, found.undecided, found.bad) == (1000, 10, 5, 1, 2)
    assert (found.repositories, found.merges) == (3, 5)
    assert (found.merged, found.seen, found.unconfirmed, found.share) == (None, None, None, None)
    assert [(one.day, one.hours, one.events) for one in found.days] == [("2025-05-01", 2, 5), ("2025-05-02", 0, 0)]


def test_the_share_of_the_truth_that_was_seen_by_day() -> None:
    found = coverage_of("2025-05", REPORTS, HINTS, TRUTH)
    assert (found.merged, found.seen, found.share) == (5, 3, 0.6)
    assert [(one.day, one.merged, one.seen, one.share) for one in found.days] == [
        ("2025-05-01", 2, 2, 1.0),
        ("2025-05-02", 2, 1, 0.5),
        ("2025-05-03", 1, 0, 0.0),
    ]
    # number 9 of repository 10; repository 99 is in nobody's truth
    assert found.unconfirmed == 1


def test_a_day_is_that_of_the_merge_in_utc() -> None:
    late = datetime(2025, 6, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    found = coverage_of("2025-05", (), Hints("2025-05"), {10: {1: late}})
    assert [(one.day, one.merged) for one in found.days] == [("2025-05-31", 1)]


def test_the_number_of_another_repository_is_not_seen() -> None:
    found = coverage_of("2025-05", REPORTS, folded(hint(1, of=10)), {11: {1: day(1)}})
    assert (found.merged, found.seen, found.unconfirmed) == (1, 0, 0)


@pytest.mark.parametrize("truth", [{}, {10: {}}, {10: {1: datetime(2025, 6, 1, tzinfo=UTC)}}], ids=str)
def test_a_truth_without_merges_has_no_share(truth: dict[int, dict[int, datetime]]) -> None:
    found = coverage_of("2025-05", REPORTS, Hints("2025-05"), truth)
    assert (found.merged, found.seen, found.share) == (0, 0, None)
    assert "0 of 0" in found.text()


def test_the_text_says_what_matters() -> None:
    text = coverage_of("2025-05", REPORTS, HINTS, TRUTH).text()
    assert "5 hours: 1 empty, 1 missing, 1 read, 1 truncated, 1 unreadable" in text
    assert "  missing: 2025-05-02-0" in text
    assert "3 of 5 merged pull requests were seen (60.0%); 1 more are in the archive only" in text
    assert text.splitlines()[-2].split() == ["2025-05-02", "0", "0", "2", "1", "50.0%"]


def test_the_text_of_an_empty_archive_is_short() -> None:
    reports = [HourReport(hour=hour, state="missing") for hour in hours_of("2025-05")]
    text = coverage_of("2025-05", reports, Hints("2025-05")).text()
    assert "744 hours: 744 missing" in text
    assert "2025-05-01-11 and 732 more" in text
    assert "truth: none was given" in text
    assert len(text.splitlines()) < 40


def test_json_and_back() -> None:
    found = coverage_of("2025-05", REPORTS, HINTS, TRUTH)
    assert Coverage.model_validate_json(found.model_dump_json()) == found
    assert json.loads(found.model_dump_json())["days"][0]["day"] == "2025-05-01"
