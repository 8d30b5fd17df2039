"""GraphQL: every document of the product is answered; pages, what a document costs, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from graphql import parse

from forge import Actor, Forge, Repo, World
from forge.conftest import Ask
from forge.cost import cost_of
from forge.documents import documents
from forge.graph import load_schema
from miner.crawlers.github import queries

PULLS = """query pulls($owner: String!, $name: String!, $first: Int!, $after: String) {
  repository(owner: $owner, name: $name) { pullRequests(states: [MERGED], first: $first, after: $after,
    orderBy: {field: UPDATED_AT, direction: DESC})
  { totalCount pageInfo { endCursor hasNextPage } nodes { number } } } }"""


def merged(repo: Repo, count: int) -> list[int]:
    return [repo.pull(f"Fix {index}", merge="squash").number for index in range(count)]


def numbers(answer: Any) -> list[int]:
    return [node["number"] for node in answer["data"]["repository"]["pullRequests"]["nodes"]]


@pytest.mark.parametrize("name", documents())
def test_every_document_of_the_product_is_answered(name: str, ask: Ask, repo: Repo) -> None:
    issue = repo.issue(labels=["bug"], author=None)
    repo.comment(issue, "Yes.", at="2025-04-02T00:00:00Z", edits=[("2025-04-03T00:00:00Z", "No.")])
    edits = [("2025-05-12T00:00:00Z", "Fixes #1")]
    repo.pull("Fix", "Fix", merge="rebase", closes=[issue], labels=["fix"], fork="fan", edits=edits)
    repo.close(repo.issue(), at="2025-05-01T00:00:00Z")
    document = documents()[name]
    item = "I_1001_1" if "Issue'" in name else "PR_1001_2"
    of_one = {"owner": "octo", "name": "lib", "id": item, "first": 10, "after": None, "query": "repo:octo/lib is:pr"}
    variables = dict(of_one)
    for index in range(3):
        variables |= {f"{key}{index}": value for key, value in of_one.items()}
        variables |= {
            f"o{index}": "octo",
            f"n{index}": "lib",
            f"m{index}": "repo:octo/lib",
            f"u{index}": "repo:octo/lib",
        }
    answer = ask(document, **variables).json()
    assert "errors" not in answer
    assert answer["data"]["rateLimit"]["cost"] >= 1


def test_a_pull_request_is_told_whole(ask: Ask, repo: Repo) -> None:
    issue = repo.issue("It breaks", "So.", labels=["bug"], at="2025-05-01T08:00:00Z")
    pull = repo.pull(
        "Fix",
        "Fixes #1",
        files={"lib.py": "value = 2\n"},
        merge="squash",
        closes=[issue],
        fork="fan",
        at="2025-05-03T10:00:00Z",
        author=Actor("helper", "Bot"),
    )
    variables = {"owner": "octo", "name": "lib", "first": 5}
    told = ask(queries.PULLS, **variables).json()["data"]["repository"]["pullRequests"]["nodes"][0]
    assert (told["number"], told["mergedAt"], told["baseRefName"]) == (2, "2025-05-03T10:00:00Z", "main")
    assert told["author"] == {"__typename": "Bot", "login": "helper"}
    assert told["headRepository"]["nameWithOwner"] == "fan/lib"
    assert told["mergeCommit"]["oid"] == repo.branches["main"]
    assert told["mergeCommit"]["parents"]["nodes"] == [{"oid": pull.base_oid}]
    assert told["files"]["nodes"] == [{"path": "lib.py", "additions": 1, "deletions": 1, "changeType": "MODIFIED"}]
    [closing] = told["closingIssuesReferences"]["nodes"]
    assert (closing["number"], closing["state"], closing["stateReason"]) == (1, "CLOSED", "COMPLETED")
    [closed] = closing["timelineItems"]["nodes"]
    assert closed["closer"] == {
        "__typename": "PullRequest",
        "number": 2,
        "repository": {"databaseId": repo.repo_id, "nameWithOwner": "octo/lib"},
    }


def test_pages_hold_everything_once_the_last_touched_first(ask: Ask, repo: Repo) -> None:
    made = merged(repo, 7)
    seen: list[int] = []
    after = None
    while True:
        answer = ask(PULLS, owner="octo", name="lib", first=3, after=after).json()
        seen += numbers(answer)
        page = answer["data"]["repository"]["pullRequests"]
        assert page["totalCount"] == 7
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = page["pageInfo"]["endCursor"]
    assert seen == made[::-1]


def test_a_pull_request_that_is_touched_between_pages_is_lost_to_who_only_goes_on(
    ask: Ask, repo: Repo, forge: Forge
) -> None:
    """https://github.com/spiceai/spiceai/pull/12069"""
    made = merged(repo, 6)
    forge.after("pulls", 1, lambda: repo.touch(made[0], at="2025-07-01T00:00:00Z"))
    first = ask(PULLS, owner="octo", name="lib", first=3).json()
    after = first["data"]["repository"]["pullRequests"]["pageInfo"]["endCursor"]
    second = ask(PULLS, owner="octo", name="lib", first=3, after=after).json()
    assert numbers(first) + numbers(second) == [*made[:0:-1]]
    assert numbers(ask(PULLS, owner="octo", name="lib", first=1).json()) == [made[0]]


def test_lists_inside_an_item_are_gone_on_with(ask: Ask, repo: Repo) -> None:
    issue = repo.issue()
    for index in range(5):
        repo.comment(issue, f"{index}", at=f"2025-04-0{index + 2}T00:00:00Z")
    document = queries.MORE["Issue", "comments"]
    page = ask(document, id="I_1001_1", first=3).json()["data"]["node"]["comments"]
    more = ask(document, id="I_1001_1", first=3, after=page["pageInfo"]["endCursor"]).json()["data"]["node"]["comments"]
    assert [comment["body"] for comment in page["nodes"] + more["nodes"]] == list("01234")
    assert (page["pageInfo"]["hasNextPage"], more["pageInfo"]["hasNextPage"]) == (True, False)


def test_what_is_not_there_is_null_beside_the_rest(ask: Ask, repo: Repo) -> None:
    gone, moved = repo.issue(), repo.issue()
    repo.pull("A pull request", merge="merge")
    repo.delete_issue(gone)
    repo.transfer(moved, repo.world.repository("octo/other"))
    answer = ask(queries.issues([1, 2, 3, 99]), owner="octo", name="lib").json()
    told = answer["data"]["repository"]
    assert told["n3"]["__typename"] == "PullRequest"
    assert (told["n1"], told["n2"], told["n99"]) == (None, None, None)
    assert [(error["type"], error["path"]) for error in answer["errors"]] == [
        ("NOT_FOUND", ["repository", "n1"]),
        ("NOT_FOUND", ["repository", "n2"]),
        ("NOT_FOUND", ["repository", "n99"]),
    ]
    assert answer["errors"][2]["message"] == "Could not resolve to an issue or pull request with the number of 99."


def test_names_in_any_case_and_old_names_answer_for_the_repository(ask: Ask, repo: Repo) -> None:
    repo.rename("new/place")
    document = 'query q($name: String!) { repository(owner: "Octo", name: $name) { databaseId nameWithOwner } }'
    assert ask(document, name="LIB").json()["data"]["repository"] == {"databaseId": 1001, "nameWithOwner": "new/place"}
    strict = document.replace("name: $name", "name: $name, followRenames: false")
    [error] = ask(strict, name="lib").json()["errors"]
    assert (error["type"], error["path"]) == ("NOT_FOUND", ["repository"])


def test_a_closing_reference_follows_its_issue_to_another_repository(ask: Ask, repo: Repo) -> None:
    issue = repo.issue()
    repo.pull("Fix", "Fixes #1", merge="squash", closes=[issue])
    repo.transfer(issue, repo.world.repository("octo/other"))
    told = ask(queries.PULLS, owner="octo", name="lib", first=5).json()
    [closing] = told["data"]["repository"]["pullRequests"]["nodes"][0]["closingIssuesReferences"]["nodes"]
    assert closing["repository"]["nameWithOwner"] == "octo/other"


def test_deleted_accounts_and_forks_are_null(ask: Ask, repo: Repo) -> None:
    repo.pull("Fix", merge="squash", author=None, fork="fan")
    repo.world.delete(repo.world.fork(repo, "fan"))
    [told] = ask(queries.PULLS, owner="octo", name="lib", first=5).json()["data"]["repository"]["pullRequests"]["nodes"]
    assert (told["author"], told["headRepository"]) == (None, None)


def test_edits_are_told_the_newest_first_with_the_original(ask: Ask, repo: Repo) -> None:
    issue = repo.issue(body="one", at="2025-04-01T00:00:00Z")
    repo.edit(issue, "two", at="2025-04-02T00:00:00Z")
    repo.edit(issue, "three", at="2025-04-03T00:00:00Z")
    node = ask(queries.MORE["Issue", "userContentEdits"], id="I_1001_1").json()["data"]["node"]
    assert [(edit["editedAt"][:10], edit["diff"]) for edit in node["userContentEdits"]["nodes"]] == [
        ("2025-04-03", "three"),
        ("2025-04-02", "two"),
        ("2025-04-01", "one"),
    ]


@pytest.mark.parametrize(
    ("document", "connections", "nodes"),
    [
        # both examples of https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api,
        # put on a search, which opens one list as `viewer.repositories` does
        (
            '{ search(query: "", type: REPOSITORY, first: 50) { nodes { ... on Repository '
            "{ issues(first: 10) { totalCount } } } } }",
            51,
            550,
        ),
        (
            '{ search(query: "", type: REPOSITORY, first: 100) { nodes { ... on Repository { issues(first: 50) '
            "{ nodes { labels(first: 60) { totalCount } } } } } } }",
            5101,
            305100,
        ),
        ('query q($n: Int = 7) { search(query: "", type: ISSUE, first: $n) { issueCount } }', 1, 7),
        ('{ a: search(query: "", type: ISSUE, last: 2) { issueCount } rateLimit { cost } }', 1, 2),
    ],
)
def test_points_and_nodes_are_those_of_the_documentation(document: str, connections: int, nodes: int) -> None:
    cost = cost_of(load_schema(), parse(document), {})
    assert (cost.connections, cost.nodes, cost.errors) == (connections, nodes, [])
    assert cost.points == max(1, round(connections / 100))


@pytest.mark.parametrize(
    ("pages", "kind"),
    [
        ("pullRequests(first: 101) { totalCount }", "EXCESSIVE_PAGINATION"),
        ("pullRequests(first: 0) { totalCount }", "EXCESSIVE_PAGINATION"),
        ("pullRequests { totalCount }", "MISSING_PAGINATION_BOUNDARIES"),
        (
            "pullRequests(first: 100) { nodes { closingIssuesReferences(first: 100) { nodes { comments(first: 100) "
            "{ totalCount } } } } }",
            "MAX_NODE_LIMIT_EXCEEDED",
        ),
    ],
)
def test_what_is_too_much_is_refused_and_costs_nothing(
    pages: str, kind: str, ask: Ask, repo: Repo, forge: Forge
) -> None:
    answer = ask(f'{{ repository(owner: "octo", name: "lib") {{ {pages} }} }}')
    assert [error["type"] for error in answer.json()["errors"]] == [kind]
    assert "data" not in answer.json()
    assert forge.log.points == 0


def test_a_field_that_github_does_not_have_is_refused(ask: Ask, repo: Repo) -> None:
    answer = ask('{ repository(owner: "octo", name: "lib") { inventedField } }').json()
    assert "inventedField" in answer["errors"][0]["message"]
    assert ask("{ repository(").json()["errors"][0]["message"].startswith("Syntax Error")


def test_a_cursor_that_is_none_is_an_error(ask: Ask, repo: Repo) -> None:
    [error] = ask(PULLS, owner="octo", name="lib", first=1, after="nonsense").json()["errors"]
    assert error["type"] == "INVALID_CURSOR_ARGUMENTS"


def test_a_body_that_is_no_query_is_refused(forge: Forge, session: Any) -> None:
    answer = session.post(forge.graphql_url, data=b"{", headers={"Authorization": "Bearer x"}, timeout=5)
    assert (answer.status_code, answer.json()["message"]) == (400, "Problems parsing JSON")


def test_a_taken_down_repository_is_null(ask: Ask, world: World) -> None:
    world.repository("octo/bad", blocked="dmca")
    answer = ask('{ repository(owner: "octo", name: "bad") { id } }').json()
    assert (answer["data"], answer["errors"][0]["type"]) == ({"repository": None}, "FORBIDDEN")
