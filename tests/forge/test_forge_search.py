"""Search: qualifiers and windows, the order of what is found, and how deep it can be read."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge import Forge, Head, Repo, World
from forge.conftest import Ask
from forge.records import stamp
from forge.search import BadQuery, between, search_issues, search_repositories, within

COUNT = "query q($query: String!) { search(query: $query, type: ISSUE, first: 1) { issueCount } }"


@pytest.fixture
def shelf(world: World) -> World:
    world.bare("a/one", stars=100, languages={"Python": 9, "C": 1}, license="MIT", pushed_at="2025-05-01T00:00:00Z")
    world.bare("a/two", stars=50, languages={"C": 9, "Python": 1}, license="GPL-3.0", pushed_at="2025-04-01T00:00:00Z")
    world.bare("b/three", stars=10, is_archived=True, license=None, pushed_at="2024-01-01T00:00:00Z", disk_kb=9_000)
    world.bare("b/fork", stars=70, parent=world.find("a/one"))
    world.bare("b/hidden", stars=900, is_private=True)
    return world


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("language:python", ["a/one", "b/three"]),
        ("language:Python stars:>=50", ["a/one"]),
        ("stars:10..50", ["a/two", "b/three"]),
        ("stars:>10", ["a/one", "a/two"]),
        ("stars:<=50 fork:true", ["a/two", "b/three"]),
        ("fork:only", ["b/fork"]),
        ("fork:true stars:>60", ["a/one", "b/fork"]),
        ("license:mit", ["a/one"]),
        ("archived:false", ["a/one", "a/two"]),
        ("pushed:>=2025-04-15", ["a/one"]),
        ("pushed:2025-04-01", ["a/two"]),
        ("pushed:*..2024-12-31", ["b/three"]),
        ("user:b", ["b/three"]),
        ("size:>1000", ["b/three"]),
        ("stars:0..1000 sort:stars-asc", ["b/three", "a/two", "a/one"]),
        ("sort:updated", ["a/one", "a/two", "b/three"]),
    ],
)
def test_repositories_are_found_by_qualifiers(query: str, expected: list[str], shelf: World) -> None:
    assert [repo.full_name for repo in search_repositories(shelf, query)] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("repo:octo/lib is:pr is:merged", [4, 2]),
        ("repo:octo/lib is:pr", [6, 5, 4, 2]),
        ("repo:octo/lib is:issue", [3, 1]),
        ("repo:octo/lib is:issue is:open", [3]),
        ("repo:octo/lib is:pr is:closed", [5, 4, 2]),
        ("repo:octo/lib is:pr is:unmerged", [5]),
        ("repo:octo/lib type:pr merged:2025-05-02..2025-05-31", [4]),
        ("repo:octo/lib is:merged merged:2025-05-01T00:00:00Z..2025-05-01T23:59:59Z", [2]),
        ("repo:octo/lib is:merged merged:>2025-05-01", [4]),
        ("repo:octo/lib is:merged merged:<2025-05-05", [2]),
        ("repo:octo/lib is:merged sort:created-asc", [2, 4]),
        ("repo:octo/lib repo:octo/app is:merged", [2, 4, 2]),
        ("user:octo is:merged closed:2025-05-01", [2]),
    ],
)
def test_issues_and_pull_requests_are_found_by_qualifiers(query: str, expected: list[int], repo: Repo) -> None:
    first = repo.issue(at="2025-04-01T00:00:00Z")
    repo.pull("a", merge="squash", closes=[first], at="2025-05-01T12:00:00Z", opened="2025-04-02T00:00:00Z")
    repo.issue(at="2025-04-03T00:00:00Z")
    repo.pull("b", merge="squash", at="2025-05-05T00:00:00Z", opened="2025-04-04T00:00:00Z")
    repo.pull("c", state="CLOSED", at="2025-05-06T00:00:00Z", opened="2025-04-05T00:00:00Z")
    repo.pull("d", opened="2025-04-06T00:00:00Z")
    app = repo.world.repository("octo/app")
    app.pull("e", number=2, merge="merge", at="2025-05-09T00:00:00Z", opened="2025-04-07T00:00:00Z")
    assert [head.number for _, head, _ in search_issues(repo.world, query)] == expected


@given(*[st.datetimes(min_value=datetime(2008, 1, 1))] * 3)
def test_both_ends_of_a_window_are_in_it(low: object, high: object, at: object) -> None:
    first, last, when = (stamp(str(time)) for time in (low, high, at))
    assert within(f"{first}..{last}")(when) == (first <= when <= last)
    assert within(f">{first}")(when) == (when > first)
    assert within(f"<={last}")(when) == (when <= last)


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000))
def test_both_ends_of_a_range_are_in_it(low: int, high: int, number: int) -> None:
    assert between(f"{low}..{high}")(number) == (low <= number <= high)
    assert between(f">{low}")(number) == (number > low)
    assert between(f"<{high}")(number) == (number < high)


def test_what_cannot_be_read_is_refused(get: Ask, ask: Ask, repo: Repo) -> None:
    for query in ("repo:octo/none is:pr", "repo:octo/lib merged:yesterday"):
        answer = get("/search/issues", q=query)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "q")
        assert ask(COUNT, query=query).json()["data"]["search"]["issueCount"] == 0
    with pytest.raises(BadQuery):
        between("many")


def test_only_the_first_thousand_can_be_seen(get: Ask, ask: Ask, world: World) -> None:
    repo = world.bare("octo/big")
    times = [f"2025-05-{1 + index // 60 % 28:02}T{index // 1680:02}:{index % 60:02}:00Z" for index in range(1234)]
    heads = [Head(index + 1, "OPEN", time, time) for index, time in enumerate(times)]
    repo.issues.lazy(heads, lambda number: repo.issue(number=number, at=times[number - 1]))
    document = """query q($after: String) {
        search(query: "repo:octo/big is:issue", type: ISSUE, first: 100, after: $after)
        { issueCount pageInfo { endCursor hasNextPage } nodes { ... on Issue { number } } } }"""
    seen: list[int] = []
    after, more = None, True
    while more:
        page = ask(document, after=after).json()["data"]["search"]
        seen += [node["number"] for node in page["nodes"]]
        after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
        assert page["issueCount"] == 1234
    assert len(set(seen)) == len(seen) == 1000
    last = get("/search/issues", q="repo:octo/big is:issue", per_page=100, page=10)
    assert (len(last.json()["items"]), last.json()["total_count"]) == (100, 1234)
    deeper = get("/search/issues", q="repo:octo/big is:issue", per_page=100, page=11)
    assert (deeper.status_code, deeper.json()["message"]) == (422, "Only the first 1000 search results are available")


def test_searches_have_a_limit_of_their_own(get: Ask, repo: Repo, forge: Forge) -> None:
    statuses = [get("/search/repositories", q="stars:>1").status_code for _ in range(31)]
    assert statuses == [200] * 30 + [403]
    assert get("/repos/octo/lib").status_code == 200
