"""Misbehaviour on demand: every fault is what its row says, and meets only the requests that are meant."""

from __future__ import annotations

import time
from typing import Any

import pytest
import requests

from forge import Forge, Repo
from forge.behaviours import behaviours
from forge.conftest import Ask
from forge.faults import FAULTS
from miner.crawlers.github import queries

ASKED = {"owner": "octo", "name": "lib", "first": 3}


@pytest.fixture
def busy(repo: Repo) -> Repo:
    for _ in range(3):
        repo.pull("Fix", "Fixes #1", merge="squash", fork="fan")
    return repo


@pytest.fixture
def pulls(ask: Ask, busy: Repo) -> Any:
    return lambda: ask(queries.PULLS, **ASKED)


def nodes(answer: requests.Response) -> list[Any]:
    found: list[Any] = answer.json()["data"]["repository"]["pullRequests"]["nodes"]
    return found


@pytest.mark.parametrize(
    ("fault", "options", "status", "message"),
    [
        ("primary", {}, 403, "API rate limit exceeded"),
        ("primary", {"status": 429}, 429, "API rate limit exceeded"),
        ("secondary", {}, 403, "secondary rate limit"),
        ("secondary", {"status": 429}, 429, "secondary rate limit"),
        ("bad-credentials", {}, 401, "Bad credentials"),
        ("no-token", {}, 401, "Requires authentication"),
        ("not-found", {}, 404, "Not Found"),
        ("gone", {}, 410, "deleted"),
        ("blocked", {}, 451, "Repository access blocked"),
        ("under-scoped", {}, 403, "not accessible by personal access token"),
        ("sso", {}, 403, "SAML"),
        ("server-error", {}, 500, "Server Error"),
        ("server-error", {"status": 504}, 504, "in time"),
    ],
)
def test_refusals_of_rest(
    fault: str, options: Any, status: int, message: str, get: Ask, forge: Forge, busy: Repo
) -> None:
    forge.fail("rest", fault, **options)
    answer = get("/repos/octo/lib")
    assert (answer.status_code, message in answer.json()["message"]) == (status, True)
    assert forge.log.entries[0].fault == fault


def test_the_headers_of_limits(get: Ask, forge: Forge, busy: Repo) -> None:
    forge.fail("rest", "primary", times=1, reset_s=30)
    forge.fail("rest", "secondary", times=1, retry_after=7)
    forge.fail("rest", "secondary", times=1)
    primary, told, untold = (get("/repos/octo/lib") for _ in range(3))
    assert primary.headers["X-RateLimit-Remaining"] == "0"
    assert 28 <= int(primary.headers["X-RateLimit-Reset"]) - time.time() <= 31
    assert told.headers["Retry-After"] == "7"
    assert "Retry-After" not in untold.headers
    assert int(untold.headers["X-RateLimit-Remaining"]) > 0


@pytest.mark.parametrize(
    ("fault", "options", "status", "kind"),
    [
        ("rate-limited", {}, 200, "RATE_LIMITED"),
        ("rate-limited", {"kind": "RATE_LIMIT"}, 200, "RATE_LIMIT"),
        ("under-scoped", {}, 200, "INSUFFICIENT_SCOPES"),
        ("sso", {}, 200, "FORBIDDEN"),
        ("resource-limits", {}, 200, "RESOURCE_LIMITS_EXCEEDED"),
        ("partial", {"path": ("repository", "pullRequests", "nodes", 1), "kind": "FORBIDDEN"}, 200, "FORBIDDEN"),
        ("went-wrong", {}, 200, None),
        ("went-wrong", {"timeout": True}, 200, None),
        ("heavy", {"nodes": 100}, 502, None),
    ],
)
def test_errors_of_graphql(fault: str, options: Any, status: int, kind: str | None, pulls: Any, forge: Forge) -> None:
    forge.fail("pulls", fault, **options)
    answer = pulls()
    assert answer.status_code == status
    assert answer.json()["errors"][0].get("type") == kind
    assert kind is not None or "Something went wrong" in answer.json()["errors"][0]["message"]


def test_only_heavy_pages_fail(ask: Ask, busy: Repo, forge: Forge) -> None:
    def sized(first: int) -> requests.Response:
        return ask(queries.PULLS, owner="octo", name="lib", first=first)

    sized(10)
    forge.fail("pulls", "heavy", nodes=forge.log.entries[0].nodes)
    assert [sized(first).status_code for first in (11, 10, 5)] == [502, 200, 200]
    assert [entry.points > 0 for entry in forge.log] == [True, False, True, True]


def test_nodes_are_lost_to_resource_limits_each_with_its_error(pulls: Any, forge: Forge) -> None:
    forge.fail("pulls", "resource-limits", kept=2)
    answer = pulls()
    assert [node is None for node in nodes(answer)] == [False, False, True]
    assert [error["path"] for error in answer.json()["errors"]] == [["repository", "pullRequests", "nodes", 2]]


def test_sso_leaves_repositories_out(pulls: Any, forge: Forge) -> None:
    forge.fail("pulls", "sso")
    answer = pulls()
    assert answer.json()["data"]["repository"] is None
    assert answer.json()["data"]["rateLimit"]["cost"] >= 1
    assert answer.json()["errors"][0]["extensions"] == {"saml_failure": True}
    assert answer.headers["X-GitHub-SSO"].startswith("required; url=")


def test_everybody_and_every_fork_may_be_gone(pulls: Any, get: Ask, forge: Forge) -> None:
    forge.fail("", "null-users", times=2)
    assert {node["author"] for node in nodes(pulls())} == {None}
    assert get("/repos/octo/lib/pulls/1").json()["user"] is None
    forge.fail("", "null-head-repository")
    assert {node["headRepository"] for node in nodes(pulls())} == {None}
    assert get("/repos/octo/lib/pulls/1").json()["head"]["repo"] is None
    assert get("/repos/octo/lib/pulls", state="all").json()[0]["head"]["repo"] is None


def test_lists_may_be_null(pulls: Any, forge: Forge) -> None:
    forge.fail("pulls", "null-lists")
    told = nodes(pulls())[0]
    assert (told["files"], told["labels"], told["closingIssuesReferences"]) == (None, None, None)
    assert told["commits"]["totalCount"] == 1


def test_a_page_instead_of_json(pulls: Any, forge: Forge) -> None:
    forge.fail("graphql", "html", times=1)
    forge.fail("graphql", "server-error", times=1, status=502)
    answers = [pulls(), pulls()]
    assert [answer.status_code for answer in answers] == [200, 502]
    assert all(answer.headers["Content-Type"].startswith("text/html") for answer in answers)
    assert all("Unicorn" in answer.text for answer in answers)


def test_broken_bodies(pulls: Any, forge: Forge) -> None:
    forge.fail("graphql", "half", times=1)
    with pytest.raises(ValueError, match=r"Unterminated|Expecting|delimiter"):
        pulls().json()
    forge.fail("graphql", "truncated", times=1)
    with pytest.raises((requests.exceptions.ChunkedEncodingError, requests.exceptions.ConnectionError)):
        pulls()
    assert len(nodes(pulls())) == 3


@pytest.mark.parametrize("fault", ["closed", "reset"])
def test_broken_connections(fault: str, get: Ask, forge: Forge, busy: Repo) -> None:
    forge.fail("rest", fault, times=1)
    with pytest.raises(requests.exceptions.ConnectionError):
        get("/repos/octo/lib")
    assert get("/repos/octo/lib").status_code == 200


def test_a_slow_answer_holds_up_nobody_else(forge: Forge, busy: Repo) -> None:
    forge.fail("rest", "slow", times=1, seconds=0.5)
    with pytest.raises(requests.exceptions.Timeout):
        requests.get(f"{forge.api_url}/repos/octo/lib", timeout=0.1)
    started = time.monotonic()
    assert requests.get(f"{forge.api_url}/repos/octo/lib", timeout=5).status_code == 200
    assert time.monotonic() - started < 0.4


def test_rules_meet_only_what_they_name(get: Ask, pulls: Any, forge: Forge, busy: Repo) -> None:
    busy.world.repository("octo/other")
    forge.fail("/pulls", "not-found", times=1, after=1)
    assert [get("/repos/octo/lib/pulls").status_code for _ in range(3)] == [200, 404, 200]
    forge.fail("", "blocked", about="Octo/Lib")
    assert [get(f"/repos/octo/{name}").status_code for name in ("lib", "other")] == [451, 200]
    assert get("/search/issues", q="repo:octo/lib is:pr").status_code == 451
    assert pulls().status_code == 451
    forge.heal()
    forge.fail("", "bad-credentials", token=2)
    other = {"Authorization": "Bearer another"}
    assert [get("/repos/octo/lib", headers=headers).status_code for headers in ({}, other)] == [200, 401]


def test_a_burst_ends(pulls: Any, forge: Forge) -> None:
    forge.fail("pulls", "server-error", times=3, status=503)
    assert [pulls().status_code for _ in range(4)] == [503, 503, 503, 200]
    assert len(forge.log.of("pulls", fault="server-error")) == 3


def test_something_is_done_after_a_request(pulls: Any, forge: Forge, busy: Repo) -> None:
    forge.after("pulls", 2, lambda: busy.touch(1, at="2025-09-01T00:00:00Z"))
    assert [nodes(pulls())[0]["number"] for _ in range(3)] == [3, 3, 1]


def test_a_fault_that_there_is_not_is_refused(forge: Forge) -> None:
    with pytest.raises(ValueError, match="no-such"):
        forge.fail("", "no-such")


def test_a_mistake_of_the_forge_is_not_taken_for_githubs(busy: Repo) -> None:
    busy.issues.lazy([busy.pulls[1].head], lambda number: 1 // 0)
    statuses: list[int] = []
    with pytest.raises(ZeroDivisionError), Forge(busy.world) as forge:
        statuses.append(requests.get(f"{forge.api_url}/repos/octo/lib/issues/1", timeout=5).status_code)
    assert statuses == [500]


def test_every_fault_has_its_row() -> None:
    assert {row.name for row in behaviours() if row.name.startswith("fault.")} == {f"fault.{name}" for name in FAULTS}
