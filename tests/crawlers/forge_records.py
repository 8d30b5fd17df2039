"""Records of the forge with everything that a test does not care about filled in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from miner.core.records import IssueLink
from miner.crawlers.github.answers import Crawled
from miner.crawlers.github.model import Closer, Comment, Commit, Issue, Pull, Repository

OWN, OTHER = 1, 2
OPENED = datetime(2025, 5, 10, 12, tzinfo=UTC)


def at(days: float) -> datetime:
    """Return a time so many days after the pull request was opened."""
    return OPENED + timedelta(days=days)


def repository(**changes: Any) -> Repository:
    """Return the repository o/r, with numbers up to 20."""
    fields: dict[str, Any] = {
        "forge_id": OWN,
        "node_id": "R_1",
        "full_name": "o/r",
        "default_branch": "main",
        "created_at": at(-1000),
        "newest_number": 20,
    }
    return Repository(**{**fields, **changes})


def pull(**changes: Any) -> Pull:
    """Return pull request 15 of o/r, merged into main."""
    fields: dict[str, Any] = {
        "node_id": "PR_15",
        "repository_id": OWN,
        "repository": "o/r",
        "number": 15,
        "title": "Wait for the lock",
        "body": "",
        "url": "https://github.com/o/r/pull/15",
        "created_at": OPENED,
        "updated_at": at(3),
        "merged_at": at(2),
        "closed_at": at(2),
        "base_branch": "main",
        "base_oid": "b" * 40,
        "head_branch": "lock",
        "head_oid": "c" * 40,
        "merge_commit": "d" * 40,
    }
    return Pull(**{**fields, **changes})


def commit(message: str, oid: str = "1a2b3c4d" * 5, *, made: float = -1) -> Commit:
    """Return a commit of the pull request."""
    return Commit(oid=oid, message=message, authored_at=at(made), committed_at=at(made))


def issue(number: int, **changes: Any) -> Issue:
    """Return an issue of o/r."""
    name = changes.get("repository", "o/r")
    fields: dict[str, Any] = {
        "node_id": f"I_{name}_{number}",
        "repository_id": OWN if name == "o/r" else OTHER,
        "repository": name,
        "number": number,
        "title": f"Title {number}",
        "body": f"Body {number}",
        "url": f"https://github.com/{name}/issues/{number}",
        "state": "CLOSED",
        "created_at": at(-30),
        "updated_at": at(2),
    }
    return Issue(**{**fields, **changes})


def comment(body: str, days: float, **changes: Any) -> Comment:
    """Return a comment, made so many days after the pull request was opened."""
    return Comment(node_id=f"C_{days}", body=body, created_at=at(days), **changes)


def closer(**changes: Any) -> Closer:
    """Return a closed-event of the day of the merge."""
    return Closer(at=at(2), **changes)


def crawled(of: Pull | None = None, /, **changes: Any) -> Crawled:
    """Return what the forge says about a pull request, given whole or by what is special about it."""
    return Crawled(repository=repository(), pull=of or pull(**changes))


def found(links: tuple[IssueLink, ...]) -> list[tuple[int, str, str]]:
    """Return what most tests want to know of links."""
    return [(link.number, link.where, link.confidence) for link in links]
