"""REST: lists and their pages, conditional requests, redirects, refusals, diffs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from unidiff import PatchSet

from forge import Forge, Repo, World
from forge.conftest import Ask


@pytest.fixture
def busy(repo: Repo) -> Repo:
    """Issues 1, 3, 5 and pull requests 2, 4 (merged), 6 (closed), 7 (open)."""
    for state in ("merged", "merged", "closed"):
        issue = repo.issue()
        how: dict[str, Any] = {"merge": "squash"} if state == "merged" else {"state": "CLOSED"}
        repo.pull("Fix", f"Fixes #{issue.number}", closes=[issue], **how)
    repo.pull("Open")
    return repo


def links(answer: Any) -> dict[str, int]:
    found = re.findall(r'<([^>]+)>; rel="(\w+)"', answer.headers.get("Link", ""))
    return {name: int(re.search(r"[?&]page=(\d+)", url)[1]) for url, name in found}  # type: ignore[index]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [7]),
        ({"state": "closed"}, [6, 4, 2]),
        ({"state": "all", "direction": "asc"}, [2, 4, 6, 7]),
        ({"state": "closed", "sort": "updated", "direction": "desc"}, [2, 6, 4]),
        ({"state": "closed", "sort": "updated"}, [4, 6, 2]),
    ],
)
def test_pull_requests_are_listed_by_state_and_order(
    params: dict[str, str], expected: list[int], get: Ask, busy: Repo
) -> None:
    busy.touch(2, at="2025-08-01T00:00:00Z")
    assert [pull["number"] for pull in get("/repos/octo/lib/pulls", **params).json()] == expected


def test_pages_are_linked(get: Ask, busy: Repo) -> None:
    first = get("/repos/octo/lib/pulls", state="all", per_page=2)
    second = get("/repos/octo/lib/pulls", state="all", per_page=2, page=2)
    assert [pull["number"] for pull in first.json() + second.json()] == [7, 6, 4, 2]
    assert (links(first), links(second)) == ({"next": 2, "last": 2}, {"prev": 1, "first": 1})
    assert get("/repos/octo/lib/pulls", state="all", per_page=2, page=3).json() == []


def test_a_page_is_shifted_by_what_was_touched_meanwhile(get: Ask, busy: Repo, forge: Forge) -> None:
    params = {"state": "all", "sort": "updated", "direction": "desc", "per_page": 2}
    forge.after("/pulls", 1, lambda: busy.touch(2, at="2025-08-01T00:00:00Z"))
    seen = [pull["number"] for page in (1, 2) for pull in get("/repos/octo/lib/pulls", page=page, **params).json()]
    assert seen == [6, 4, 4, 7]


def test_a_known_answer_costs_nothing(get: Ask, busy: Repo, forge: Forge) -> None:
    first = get("/repos/octo/lib/pulls", state="closed")
    used = first.headers["X-RateLimit-Used"]
    again = get("/repos/octo/lib/pulls", state="closed", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content, again.headers["X-RateLimit-Used"]) == (304, b"", used)
    busy.touch(4, at="2025-08-01T00:00:00Z")
    changed = get("/repos/octo/lib/pulls", state="closed", headers={"If-None-Match": first.headers["ETag"]})
    assert changed.status_code == 200
    assert [entry.points for entry in forge.log] == [1, 0, 1]


def test_issues_are_listed_with_pull_requests(get: Ask, busy: Repo) -> None:
    told = get("/repos/octo/lib/issues", state="all", direction="asc").json()
    assert sorted(item["number"] for item in told if "pull_request" in item) == [2, 4, 6, 7]
    assert sorted(item["number"] for item in told if "pull_request" not in item) == [1, 3, 5]


def test_an_old_name_redirects_to_the_id(get: Ask, busy: Repo, session: Any, forge: Forge) -> None:
    busy.rename("octo/library")
    moved = get("/repos/octo/lib/pulls", state="all")
    assert moved.status_code == 301
    assert moved.headers["Location"] == f"{forge.api_url}/repositories/1001/pulls?state=all"
    followed = session.get(moved.headers["Location"], timeout=5).json()
    assert followed[0]["base"]["repo"]["full_name"] == "octo/library"


def test_issues_that_moved_or_were_deleted(get: Ask, busy: Repo, forge: Forge) -> None:
    other = busy.world.repository("octo/other")
    busy.transfer(1, other)
    busy.delete_issue(3)
    moved = get("/repos/octo/lib/issues/1")
    target = f"{forge.api_url}/repositories/{other.repo_id}/issues/1"
    assert (moved.status_code, moved.headers["Location"]) == (301, target)
    assert get("/repos/octo/lib/issues/1/comments").status_code == 404
    assert get("/repos/octo/lib/issues/3").status_code == 410
    assert get("/repos/octo/lib/issues/99").status_code == 404


@pytest.mark.parametrize(
    "path", ["/repos/octo/none", "/repos/octo/lib/pulls/1", "/repositories/5", "/nothing", "/orgs/x"]
)
def test_what_is_not_there_is_404(path: str, get: Ask, busy: Repo) -> None:
    answer = get(path)
    assert (answer.status_code, answer.json()["message"]) == (404, "Not Found")


def test_blocked_and_deleted_repositories(get: Ask, world: World) -> None:
    world.repository("octo/bad", blocked="dmca")
    blocked = get("/repos/octo/bad/pulls")
    assert (blocked.status_code, blocked.json()["block"]["reason"]) == (451, "dmca")
    world.delete(world.repository("octo/gone"))
    assert get("/repos/octo/gone").status_code == 404


def test_a_closed_event_names_the_commit_that_closed(get: Ask, repo: Repo) -> None:
    issue = repo.issue()
    made = repo.commit({"lib.py": "value = 3\n"}, "Fixes #1", at="2025-05-01T00:00:00Z", closes=[issue])
    [event] = get("/repos/octo/lib/issues/1/timeline").json()
    assert (event["event"], event["commit_id"]) == ("closed", made.oid)
    assert get("/repos/octo/lib/commits").json()[0]["sha"] == made.oid


@pytest.mark.parametrize("git", [False, True], ids=["of files", "of git"])
def test_the_diff_of_a_pull_request(git: bool, tmp_path: Path, session: Any) -> None:
    world = World(tmp_path if git else None)
    repo = world.repository("octo/lib", files={"a.py": "one\n", "b.py": "two\n"})
    repo.pull(
        "Fix", files={"a.py": "three\n", "b.py": None, "c.py": "four"}, merge="merge", upstream={"d.py": "five\n"}
    )
    with Forge(world) as forge:
        page = session.get(f"{forge.url}/octo/lib/pull/1.diff", timeout=5)
        accept = {"Accept": "application/vnd.github.v3.diff"}
        by_type = session.get(f"{forge.api_url}/repos/octo/lib/pulls/1", headers=accept, timeout=5)
    assert page.text == by_type.text
    assert [(file.path, file.added, file.removed) for file in PatchSet(page.text)] == [
        ("a.py", 1, 1),
        ("b.py", 0, 1),
        ("c.py", 1, 0),
    ]
