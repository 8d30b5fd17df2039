"""The pure parts of the crawl: which repositories are taken, windows of time, what is known, what is asked next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.core.reasons import Reason
from miner.core.settings import Repositories, load_settings
from miner.crawlers.github.coverage import Coverage, Glimpse, Known
from miner.crawlers.github.filters import python_share, refuse, sampled
from miner.crawlers.github.groups import MOST, groups_of
from miner.crawlers.github.model import Repository
from miner.crawlers.github.month import SECOND, Month, Window, moment, stamp
from miner.crawlers.github.plans import Counts, Plan, first_plan, wanted
from miner.crawlers.github.reading import MOST_PASSES, Page, PageSize, reading

END = datetime(2025, 6, 1, tzinfo=UTC)
MAY = Month.of("2025-05")
GOOD: dict[str, Any] = {
    "forge_id": 7,
    "node_id": "R_7",
    "full_name": "octo/lib",
    "default_branch": "main",
    "languages": {"Python": 60, "C": 40},
    "spdx": "MIT",
    "stars": 5,
    "disk_kb": 1024,
    "created_at": "2020-01-01T00:00:00Z",
    "pushed_at": "2025-05-30T00:00:00Z",
}


def policy(**changed: Any) -> Repositories:
    return load_settings(environ={}).policy.repositories.model_copy(update=changed)


def repository(**changed: Any) -> Repository:
    return Repository.model_validate({**GOOD, **changed})


@pytest.mark.parametrize(
    ("changed", "rules", "reason", "says"),
    [
        ({}, {}, None, ""),
        ({"spdx": None}, {}, Reason.REPOSITORY_LICENCE, "has the licence none"),
        ({"spdx": "GPL-3.0"}, {}, Reason.REPOSITORY_LICENCE, "GPL-3.0"),
        ({"spdx": "NOASSERTION"}, {}, Reason.REPOSITORY_LICENCE, "NOASSERTION"),
        ({"languages": {"Python": 49, "C": 51}}, {}, Reason.REPOSITORY_NOT_PYTHON, "49.0% Python; at least 50%"),
        ({"languages": {}}, {}, Reason.REPOSITORY_NOT_PYTHON, "0.0%"),
        ({"is_fork": True, "parent": "up/lib"}, {}, Reason.REPOSITORY_FORK, "fork of up/lib"),
        ({"is_fork": True}, {"forks": True}, None, ""),
        ({"is_archived": True}, {}, None, ""),
        ({"is_archived": True}, {"archived": False}, Reason.REPOSITORY_ARCHIVED, "archived"),
        ({"is_template": True}, {}, Reason.REPOSITORY_TEMPLATE, "template"),
        ({"stars": 5}, {"min_stars": 6}, Reason.REPOSITORY_TOO_FEW_STARS, "5 stars; at least 6"),
        ({"disk_kb": 1025 * 1024}, {}, Reason.REPOSITORY_TOO_LARGE, "1025 MB; at most 1024"),
        ({"pushed_at": "2024-05-31T23:59:59Z"}, {}, Reason.REPOSITORY_INACTIVE, "last on 2024-05-31"),
        ({"pushed_at": "2024-06-01T00:00:00Z"}, {}, None, ""),
        ({"pushed_at": None}, {}, Reason.REPOSITORY_INACTIVE, "never"),
        ({"is_private": True, "spdx": None}, {}, Reason.REPOSITORY_UNAVAILABLE, "private"),
        ({"is_unavailable": True}, {}, Reason.REPOSITORY_UNAVAILABLE, "disabled or locked"),
    ],
)
def test_rules_of_repositories(
    changed: dict[str, Any], rules: dict[str, Any], reason: Reason | None, says: str
) -> None:
    rejection = refuse(repository(**changed), policy(**rules), as_of=END)
    assert (rejection.reason if rejection else None) is reason
    assert says in (rejection.detail if rejection else "")


def test_a_share_passes_each_rule_that_is_no_legal_one_and_says_so() -> None:
    passed, rules = 0, policy()
    for forge_id in range(2000):
        fork = repository(forge_id=forge_id, is_fork=True)
        rejection, notes = sampled(fork, rules, as_of=END, share=0.05, seed=1)
        assert (rejection is None) == (len(notes) == 1)
        passed += rejection is None
        assert sampled(fork, rules, as_of=END, share=0.05, seed=1) == (rejection, notes)
        unlicensed = repository(forge_id=forge_id, spdx=None, is_fork=True)
        assert sampled(unlicensed, rules, as_of=END, share=1.0, seed=1)[0] is not None
    assert 60 < passed < 140


def test_python_is_counted_in_bytes() -> None:
    assert python_share(repository()) == pytest.approx(0.6)


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_parts_of_a_window_hold_each_second_once(seconds: int, count: int) -> None:
    start = datetime(2025, 5, 1, tzinfo=UTC)
    window = Window(first=start, last=start + seconds * SECOND)
    parts = window.parts(count)
    assert 1 <= len(parts) <= count
    assert (parts[0].first, parts[-1].last) == (window.first, window.last)
    assert all(later.first - earlier.last == SECOND for earlier, later in pairwise(parts))
    assert all(part.first <= part.last for part in parts)


def test_a_month_ends_with_its_last_second() -> None:
    december = Month.of("2024-12")
    assert str(december.window) == "2024-12-01T00:00:00Z..2024-12-31T23:59:59Z"
    assert december.holds(datetime(2024, 12, 31, 23, 59, 59, tzinfo=UTC))
    assert not december.holds(datetime(2025, 1, 1, tzinfo=UTC))
    assert december.holds(datetime(2025, 1, 1, 0, 30, tzinfo=UTC) - timedelta(hours=1))


@given(st.lists(st.tuples(st.text("abc", min_size=1), st.integers(0, 60)), unique_by=lambda one: one[0]))
def test_groups_fit_into_a_page(sizes: list[tuple[str, int]]) -> None:
    groups, by_name = groups_of(sizes, 50), dict(sizes)
    for name, group in groups.items():
        assert name in group
        assert 1 < len(group) <= MOST
        assert sum(by_name[member] for member in group) <= 50
        assert all(groups[member] == group for member in group)
        assert by_name[name] > 0


def test_a_page_size_recovers_slowly() -> None:
    size = PageSize(32)
    assert size.halve(32)
    assert size.halve(16)
    seen = []
    for _ in range(9):
        seen.append(size.now)
        size.note(size.now)
    assert seen == [8, 8, 8, 8, 16, 16, 16, 16, 32]
    assert not PageSize(32, 1).halve(1)


def test_a_walk_whose_front_never_rests_is_given_up_and_says_so() -> None:
    plan = Plan(way="walk", month="2025-05", floor=MAY.start, why="")
    state, minute, asked = reading(plan), 0, 0
    while (ask := state.ask(2)) is not None:
        asked += 1
        minute += 2
        newest = moment("2025-06-08T00:00:00Z") + timedelta(minutes=minute)
        times = (newest, newest) if ask.after is None else (MAY.start, MAY.start - SECOND)
        state.feed(
            Page(
                after=ask.after,
                count=9,
                rows=2,
                next=f"cursor {asked}",
                pulls=tuple((i, stamp(at), stamp(MAY.start)) for i, at in enumerate(times)),
            )
        )
    assert state.bounded
    assert asked == 2 * MOST_PASSES


def counts(newest: str | None, merged: int | None, touched: int | None, at: str = "2025-06-08T12:00:00Z") -> Counts:
    glimpse = Glimpse(at=moment(at), newest=None if newest is None else moment(newest))
    return Counts(glimpse=glimpse, merged=merged, touched=touched)


@pytest.mark.parametrize(
    ("newest", "merged", "touched", "way", "nothing"),
    [
        (None, 0, 0, "walk", True),
        ("2025-04-30T23:59:59Z", 0, 0, "walk", True),
        ("2025-06-08T00:00:00Z", 0, 2, "walk", False),
        ("2025-06-08T00:00:00Z", 0, 500, "search", True),
        ("2025-06-08T00:00:00Z", 20, 25, "walk", False),
        ("2025-06-08T00:00:00Z", 20, 400, "search", False),
        ("2025-06-08T00:00:00Z", 2000, 2500, "walk", False),
        ("2025-06-08T00:00:00Z", None, 400, "walk", False),
        ("2025-06-08T00:00:00Z", 20, None, "walk", False),
    ],
)
def test_the_cheaper_way_is_taken(
    newest: str | None, merged: int | None, touched: int | None, way: str, nothing: bool
) -> None:
    plan = first_plan(Coverage(), MAY, counts(newest, merged, touched), page=50)
    assert (plan.way, plan.nothing) == (way, nothing)
    assert plan.floor == (MAY.start if way == "walk" else None)


def test_a_walk_that_ended_not_long_before_a_month_is_gone_on_with() -> None:
    known = Known(
        since=moment("2025-04-01T00:00:00Z"), to=moment("2025-04-20T00:00:00Z"), at=moment("2025-04-20T00:00:00Z")
    )
    plan = first_plan(Coverage(known=(known,)), MAY, counts("2025-06-08T00:00:00Z", 10, 12), page=50)
    assert plan.floor == moment("2025-04-19T23:55:00Z")


def test_what_was_seen_since_is_taken_as_it_is_and_a_change_is_read() -> None:
    seen = moment("2025-06-08T00:00:00Z")
    known = Coverage(known=(Known(since=MAY.start, to=moment("2025-06-07T00:00:00Z"), at=seen),))
    old = counts("2025-06-07T00:00:00Z", 10, 12, at="2025-06-07T23:00:00Z")
    assert wanted(known, MAY, old, since=seen, page=50) is None
    later = seen + timedelta(days=1)
    assert wanted(known, MAY, old, since=later, page=50) == "check"
    same = known.model_copy(update={"glimpses": (Glimpse(at=later, newest=moment("2025-06-07T00:00:00Z"), etag="x"),)})
    assert wanted(same, MAY, old, since=later, page=50) is None
    changed = known.model_copy(update={"glimpses": (Glimpse(at=later, newest=moment("2025-06-08T09:00:00Z")),)})
    plan = wanted(changed, MAY, old, since=later, page=50)
    assert isinstance(plan, Plan)
    assert (plan.floor, plan.to) == (moment("2025-06-06T23:55:00Z"), moment("2025-06-08T09:00:00Z"))
