from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.crawlers.links import find_links, repositories_of

OWN = frozenset({"Owner/Repo"})


def numbers(text: str) -> list[int]:
    return [link.number for link in find_links(text, "CHANGES", own=OWN)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fix it. (#12)", [12]),
        ("#12, #7 and #12 again", [12, 7]),
        (":issue:`12` and :pr:`13`", [12, 13]),
        (":issue:`12, 13`", [12, 13]),
        (":ghissue:`12` :ghpull:`13` :gh:`14` :bug:`15` :feature:`16`", [12, 13, 14, 15, 16]),
        (":issue:`the one <12>`", [12]),
        ("GH-12, gh13, gh-14", [12, 13, 14]),
        ("(issue12), Issue 13, issue #14, pull request 15, PR-16", [12, 13, 14, 15, 16]),
        ("https://github.com/owner/repo/issues/12", [12]),
        ("https://github.com/owner/repo/pull/12/files", [12]),
        ("https://gitlab.example/Owner/Repo/-/issues/12", [12]),
        ("https://bitbucket.org/owner/repo/issues/12/a-title", [12]),
        ("[#12](https://github.com/owner/repo/issues/12)", [12]),
        ("`#12 <https://github.com/owner/repo/issues/12>`_", [12]),
        ("`PR #12`_", [12]),
        ("https://github.com/python/cpython/issues/12", []),
        ("[#12](https://github.com/python/cpython/issues/12)", []),
        ("`#12 <https://github.com/python/cpython/issues/12>`_ but #13", [13]),
        ("https://github.com/owner/repo/compare/1...2", []),
        ("python/cpython#12", []),
        ("&#39;quoted&#39;", []),
        ("colour #123456f and C#7", []),
        ("PEP 517, version 1.2, bpo-12, CVE-2024-12", []),
        (":user:`12` :pep:`517`", []),
        ("#0", []),
        ("#1234567", []),
        ("needs PR 1.5", []),
    ],
)
def test_issue_numbers_in_notation(text: str, expected: list[int]) -> None:
    assert numbers(text) == expected


def test_every_repository_counts_where_the_own_one_is_not_known() -> None:
    assert [link.number for link in find_links("https://github.com/a/b/issues/1", "x")] == [1]


def test_a_link_says_where_it_stands_and_what_it_says() -> None:
    link = find_links("first\n\nFixes (#12)", "docs/changes.rst", first_line=5, own=OWN)[0]
    assert (link.where, link.text, link.provenance) == ("docs/changes.rst:7", "#12", "changelog")
    assert find_links("#12", "CHANGES", first_line=0)[0].where == "CHANGES"


def test_own_repositories_are_read_from_fields_and_not_from_the_description() -> None:
    metadata = (
        "Metadata-Version: 2.1\nName: x\nHome-page: https://github.com/Owner/Repo\n"
        "Project-URL: Source, https://gitlab.com/other/repo.git\n"
        "Project-URL: Funding, https://github.com/sponsors/owner\n\nSee https://github.com/python/cpython\n"
    )
    assert repositories_of(metadata) == {"Owner/Repo", "other/repo"}


@given(st.text(max_size=300))
def test_any_text_is_searched_without_an_error_and_each_number_comes_once(text: str) -> None:
    found = numbers(text)
    assert len(found) == len(set(found))
