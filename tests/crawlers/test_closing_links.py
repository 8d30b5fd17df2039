"""Links to issues: the table of texts, the forge's own word, and what issues turn out to be."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from forge_records import OTHER, OWN, closer, commit, crawled, found, issue, pull, repository

from miner.core.reasons import Reason
from miner.crawlers.github.answers import Crawled
from miner.crawlers.github.linking import (
    closing_links,
    disagreements,
    judge_links,
    named_numbers,
    usable_issues,
)
from miner.crawlers.github.model import Pull

TABLE = tomllib.loads(Path(__file__).with_name("link_table.toml").read_text(encoding="utf-8"))


def said(place: str, text: str) -> Pull:
    if place == "commit":
        return pull(commits=(commit(text),))
    return pull(**{place: text})


@pytest.mark.parametrize("row", TABLE["row"], ids=lambda row: f"{row.get('place', 'body')}: {row['text']!a}")
def test_table_of_texts(row: dict[str, Any]) -> None:
    of = said(row.get("place", "body"), row["text"])

    links = closing_links(crawled(of))

    own = {(link.number, link.confidence) for link in links if link.repository is None}
    assert own == {(number, sure) for sure in ("strong", "weak") for number in row.get(sure, [])}
    assert [f"{link.repository}#{link.number}" for link in links if link.repository] == row.get("foreign", [])
    assert list(named_numbers(of, repository())) == sorted(row.get("strong", []) + row.get("weak", []))


def test_every_row_says_how_it_is_known() -> None:
    for row in TABLE["row"]:
        assert set(row) <= {"text", "place", "strong", "weak", "foreign", "kind", "page"}, row
        assert (row["kind"] == "assumed") == ("page" not in row), row
        assert row["kind"] in ("documented", "recorded", "assumed"), row
        assert row.get("page", "linking") in TABLE["pages"], row
    assert {row.get("page") for row in TABLE["row"]} - {None} == set(TABLE["pages"])
    assert len({(row["text"], row.get("place")) for row in TABLE["row"]}) == len(TABLE["row"])
    assert TABLE["highest"] == repository().newest_number


def test_places_and_words_are_kept() -> None:
    links = closing_links(
        crawled(
            title="Fix #11",
            body="# Summary\n\n- quick\n- [Closes](x) nothing, fixes\n  #12\n- fixes [#13](https://github.com/o/r/issues/13)\n",
            commits=(commit("Wait\n\nResolves #14"), commit("fixes #12", "9f8e7d6c" * 5)),
            merge_message="Merge pull request #15 from someone/lock\n\nFixes GH-16",
        )
    )

    assert [(link.number, link.provenance, link.where, link.text) for link in links] == [
        (13, "text", "body:6", "fixes [#13](https://github.com/o/r/issues/13)"),
        (11, "title", "title", "Fix #11"),
        (14, "commit-message", "commit 1a2b3c4:3", "Resolves #14"),
        (12, "commit-message", "commit 9f8e7d6:1", "fixes #12"),
        (16, "commit-message", "merge commit:3", "Fixes GH-16"),
    ]


def test_numbers_up_to_the_highest_one_known_are_links() -> None:
    late = Crawled(repository=repository(newest_number=0), pull=pull(body="fixes #12, fixes #16"))

    assert [link.number for link in closing_links(late)] == [12]


def test_merge_message_counts_once_where_the_merge_made_no_commit_of_its_own() -> None:
    only = commit("Fixes #12")

    links = closing_links(crawled(commits=(only,), merge_commit=only.oid, merge_message=only.message))

    assert found(links) == [(12, "commit 1a2b3c4:1", "strong")]


def test_every_name_of_the_repository_is_its_own() -> None:
    of = pull(
        repository="old/name",
        body="fixes old/name#11, fixes https://github.com/New/Name/issues/12, fixes older/name#13",
        closing=(issue(14, repository="older/name", repository_id=OWN),),
    )

    links = closing_links(Crawled(repository=repository(full_name="new/name"), pull=of))

    assert [(link.number, link.repository) for link in links] == [(14, None), (11, None), (12, None), (13, None)]


def test_a_url_of_another_server_is_no_link() -> None:
    of = pull(url="https://git.example.org/o/r/pull/15", body="fixes https://git.example.org/o/r/issues/12")

    assert found(closing_links(crawled(of))) == [(12, "body:1", "strong")]
    assert closing_links(crawled(of.model_copy(update={"body": "fixes https://github.com/o/r/issues/12"}))) == ()


# ---------------------------------------------------------------- the forge's own word


def test_closing_references_decide() -> None:
    links = closing_links(crawled(body="Fixes #12\nfixes #13", closing=(issue(12),), references={13: issue(13)}))

    assert found(links) == [
        (12, "closingIssuesReferences", "certain"),
        (12, "body:1", "strong"),
        (13, "body:2", "weak"),
    ]


def test_a_closed_event_confirms_what_the_references_leave_out() -> None:
    by_commit = issue(13, closers=(closer(repository_id=OWN, commit="d" * 40),))
    of = pull(body="Fixes #13", closing=(issue(12),), references={13: by_commit})

    links = closing_links(crawled(of))

    assert found(links) == [
        (12, "closingIssuesReferences", "certain"),
        (13, "timeline", "certain"),
        (13, "body:1", "strong"),
    ]
    assert links[1].text == f"closed by commit {'d' * 40}"
    assert [one.number for one in usable_issues(crawled(of))] == [13, 12]


@pytest.mark.parametrize(
    ("event", "counts"),
    [
        (closer(repository_id=OWN, pull=15), True),
        (closer(repository_id=OWN, commit="1a2b3c4d" * 5), True),
        (closer(repository_id=OWN, commit="d" * 40), True),
        (closer(repository_id=OWN, pull=16), False),
        (closer(repository_id=OTHER, pull=15), False),
        (closer(repository_id=OTHER, commit="d" * 40), False),
        (closer(repository_id=None, pull=15), False),
        (closer(repository_id=OWN, commit="e" * 40), False),
    ],
)
def test_a_closed_event_counts_if_it_names_this_pull_request(event: Any, counts: bool) -> None:
    of = pull(commits=(commit("Wait"),), references={12: issue(12, closers=(event,))})

    assert any(link.provenance == "timeline" for link in closing_links(crawled(of))) == counts


def test_text_is_weak_in_a_pull_request_into_another_branch() -> None:
    of = pull(base_branch="1.x", body="Fixes #12", commits=(commit("Fixes #12"),), references={12: issue(12)})

    assert {link.confidence for link in closing_links(crawled(of))} == {"weak"}
    assert disagreements(crawled(of)) == ()
    assert [one.number for one in usable_issues(crawled(of))] == [12]
    nowhere = Crawled(repository=repository(default_branch=None), pull=of)
    assert {link.confidence for link in closing_links(nowhere)} == {"strong"}


def test_disagreements_are_sentences() -> None:
    other = issue(14, closers=(closer(repository_id=OWN, pull=9),))
    of = pull(
        body="Fixes #11, does not fix #12, fixes #16",
        closing=(issue(12), issue(13), other),
        references={11: issue(11), 16: "pull"},
    )

    assert disagreements(crawled(of)) == (
        "body:1 says 'Fixes #11', but the forge lists #12, #13, #14 as closed, and no closed-event of #11 names this "
        "pull request or a commit of it",
        "body:1 says that #12 is not closed, the forge that it is",
        "the forge lists #13 as closed, but no text of the pull request says so",
        "the forge lists #14 as closed, but no text of the pull request says so",
        "the forge lists #14 as closed by this pull request, but its closed-events name pull request 9",
    )
    assert disagreements(crawled(body="Fixes #12", closing=(issue(12),))) == ()
    assert disagreements(crawled(body="Fixes #12. Does not fix #12 on Windows", closing=(issue(12),))) == ()


def test_text_that_the_forge_does_not_confirm_is_reported() -> None:
    assert disagreements(crawled(title="Fix #12", references={12: issue(12)})) == (
        "title says 'Fix #12', but the forge lists nothing as closed, and no closed-event of #12 names this pull "
        "request or a commit of it",
    )


# ---------------------------------------------------------------- what a link leads to


@pytest.mark.parametrize(
    ("references", "reason", "detail"),
    [
        ({12: "pull"}, Reason.ISSUE_IS_PULL, "body:1: 'fixes #12'; #12 is a pull request"),
        ({12: "gone"}, Reason.ISSUE_GONE, "body:1: 'fixes #12'; #12 does not exist, or not any more"),
        ({12: "moved"}, Reason.ISSUE_GONE, "body:1: 'fixes #12'; #12 is in another repository now"),
        (
            {12: issue(12, repository="a/b")},
            Reason.ISSUE_GONE,
            "body:1: 'fixes #12'; #12 is in another repository now",
        ),
        ({}, Reason.NO_LINKED_ISSUE, "body:1: 'fixes #12'; #12 was never looked up"),
    ],
)
def test_links_that_lead_to_no_issue_are_kept(references: Any, reason: Reason, detail: str) -> None:
    judged = judge_links(crawled(body="fixes #12", references=references))

    assert (judged.reason, judged.detail) == (reason, detail)
    assert found(judged.links) == [(12, "body:1", "strong")]
    assert judged.issues == ()


def test_no_link_at_all() -> None:
    judged = judge_links(crawled(body="see #12"))

    assert judged.reason is Reason.NO_LINKED_ISSUE
    assert judged.links == ()


def test_a_pull_request_that_names_itself_names_a_pull_request() -> None:
    of = pull(body="fixes #15")

    assert named_numbers(of, repository()) == ()
    assert judge_links(crawled(of)).reason is Reason.ISSUE_IS_PULL


def test_issues_of_other_repositories_are_links_and_no_statement() -> None:
    elsewhere = issue(12, repository="a/b", closers=(closer(repository_id=OWN, pull=15),))
    of = pull(body="fixes A/B#12", closing=(elsewhere,))

    judged = judge_links(crawled(of))

    assert [(link.number, link.repository, link.confidence) for link in judged.links] == [
        (12, "a/b", "certain"),
        (12, "a/b", "certain"),
        (12, "A/B", "strong"),
    ]
    assert judged.reason is Reason.ISSUE_ELSEWHERE
    assert judged.disagreements == ()
    assert named_numbers(of, repository()) == ()


def test_the_surest_link_says_why_there_is_no_issue() -> None:
    judged = judge_links(crawled(body="does not fix #12, fixes #13", references={12: "gone", 13: "pull"}))

    assert judged.reason is Reason.ISSUE_IS_PULL


def test_weak_links_make_no_statement_beside_better_ones() -> None:
    references = {11: issue(11), 12: issue(12), 13: issue(13)}

    some = judge_links(crawled(body="does not fix #11, fixes #13, fixes #12", references=references))
    only = judge_links(crawled(body="does not fix #11", references=references))

    assert [one.number for one in some.issues] == [13, 12]
    assert [one.number for one in only.issues] == [11]
    assert (some.reason, only.reason) == (None, None)


def test_issues_are_in_the_order_of_their_certainty_and_first_mention() -> None:
    certain = issue(16, closers=(closer(repository_id=OWN, pull=15),))
    of = pull(
        body="fixes #13, fixes #12",
        title="fixes #11",
        commits=(commit("fixes #16"),),
        references={11: issue(11), 12: issue(12), 13: issue(13), 16: certain},
    )

    assert [one.number for one in usable_issues(crawled(of))] == [16, 13, 12, 11]
    assert [one.number for one in usable_issues(crawled(closing=(issue(13), issue(12))))] == [12, 13]


def test_a_locked_issue_is_an_issue() -> None:
    assert usable_issues(crawled(body="fixes #12", references={12: issue(12, locked=True)}))
