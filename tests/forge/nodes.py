"""Nodes of the graph that are no records of their own, and global ids.

https://docs.github.com/en/graphql/guides/using-global-node-ids
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from graphql import GraphQLError

from forge.records import Actor, ClosedEvent, Comment, Commit, Issue, Pull
from forge.repository import Repo
from forge.world import World


class Missing(GraphQLError):
    """Something cannot be given: its field is null, beside the data of the others.

    Args:
        kind: the `type` of the error.
    """

    def __init__(self, message: str, kind: str = "NOT_FOUND") -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Named:
    """A node that is little more than a name."""

    prefix: str
    key: str
    name: str

    @property
    def id(self) -> str:
        return f"{self.prefix}_{self.key}"

    @staticmethod
    def rate(rate: Mapping[str, Any]) -> SimpleNamespace:
        """Return the `rateLimit` of an answer."""
        return SimpleNamespace(**rate)


@dataclass(frozen=True, slots=True)
class LicenseOf:
    """A licence, by its SPDX id."""

    spdx_id: str

    @property
    def id(self) -> str:
        return f"L_{self.key}"

    @property
    def key(self) -> str:
        return "other" if self.spdx_id == "NOASSERTION" else self.spdx_id.lower()

    @property
    def name(self) -> str:
        return "Other" if self.spdx_id == "NOASSERTION" else f"{self.spdx_id} License"


@dataclass(frozen=True, slots=True)
class RefOf:
    """A branch."""

    repo: Repo
    name: str

    @property
    def id(self) -> str:
        return f"REF_{self.repo.repo_id}_{self.name}"

    @property
    def target(self) -> CommitIn | None:
        return commit_of(self.repo, self.repo.branches.get(self.name))


class CommitIn:
    """A commit in its repository."""

    __slots__ = ("authored_date", "committed_date", "message", "oid", "parents", "repo")

    def __init__(self, repo: Repo, commit: Commit) -> None:
        self.repo = repo
        self.oid = commit.oid
        self.message = commit.message
        self.authored_date = commit.authored_at
        self.committed_date = commit.committed_at
        self.parents = commit.parents

    @property
    def id(self) -> str:
        return f"C_{self.repo.repo_id}_{self.oid}"

    @property
    def message_headline(self) -> str:
        return self.message.partition("\n")[0]


class CommentIn:
    """A comment on its issue."""

    __slots__ = ("author", "body", "created_at", "edits", "issue", "last_edited_at", "number")

    def __init__(self, issue: Issue, comment: Comment) -> None:
        self.issue = issue
        self.number = comment.number
        self.body = comment.body
        self.author = comment.author
        self.created_at = comment.created_at
        self.last_edited_at = comment.last_edited_at
        self.edits = comment.edits

    @property
    def id(self) -> str:
        return f"IC_{self.issue.repo.repo_id}_{self.issue.number}_{self.number}"

    @property
    def database_id(self) -> int:
        return number_of(self.id)

    @property
    def updated_at(self) -> str:
        return self.last_edited_at or self.created_at


class ClosedIn:
    """A closed-event of its issue."""

    __slots__ = ("event", "issue")

    def __init__(self, issue: Issue, event: ClosedEvent) -> None:
        self.issue = issue
        self.event = event

    @property
    def id(self) -> str:
        return f"CE_{self.issue.repo.repo_id}_{self.issue.number}_{self.event.created_at}"

    @property
    def created_at(self) -> str:
        return self.event.created_at

    @property
    def state_reason(self) -> str | None:
        return self.event.state_reason

    @property
    def actor(self) -> Actor | None:
        return self.event.actor


class EditOf:
    """A version of the body of an item."""

    __slots__ = ("deleted_at", "diff", "edited_at", "id")

    def __init__(self, item: Issue | Pull | CommentIn, index: int) -> None:
        edit = item.edits[index]
        self.id = f"UCE_{id_of(item)}_{index}"
        self.deleted_at = edit.deleted_at
        self.diff = edit.text
        self.edited_at = edit.edited_at


def number_of(text: str) -> int:
    """Return a number for a text, always the same: the ids that only REST shows."""
    return zlib.crc32(text.encode()) + 1


def id_of(item: Repo | Issue | Pull | CommentIn) -> str:
    """Return the global id of an item."""
    if isinstance(item, Repo):
        return f"R_{item.repo_id}"
    if isinstance(item, CommentIn):
        return item.id
    return f"{'I' if isinstance(item, Issue) else 'PR'}_{item.repo.repo_id}_{item.number}"


def database_id(item: Issue | Pull) -> int:
    """Return the numeric id of an issue or pull request, by which GitHub knows it over all repositories."""
    return item.repo.repo_id * 100_000 + item.number


def actor_id(actor: Actor) -> int:
    return number_of(actor.login)


def url_of(item: Repo | Issue | Pull) -> str:
    """Return the page of an item; the host is put before it by the server."""
    if isinstance(item, Repo):
        return f"{item.world.url}/{item.full_name}"
    kind = "pull" if isinstance(item, Pull) else "issues"
    return f"{url_of(item.repo)}/{kind}/{item.number}"


def find(world: World, node_id: str) -> Any:
    """Return the node with a global id.

    Raises:
        Missing: there is none.
    """
    kind, *key = node_id.split("_", 3)
    try:
        repo = world.alive(int(key[0]))
        if kind == "R":
            return repo
        if kind == "PR":
            return repo.pulls[int(key[1])]
        if kind == "I":
            return repo.issues[int(key[1])]
        if kind == "IC":
            issue = repo.issues[int(key[1])]
            return CommentIn(issue, issue.comments[int(key[2]) - 1])
    except (KeyError, ValueError, IndexError):
        pass
    raise Missing(f"Could not resolve to a node with the global id of '{node_id}'")


def commit_of(repo: Repo, oid: str | None) -> CommitIn | None:
    """Return a commit of which little more than the id may be known."""
    if oid is None:
        return None
    known = repo.root.commits.get(oid) or repo.commits.get(oid)
    return CommitIn(repo, known or Commit(oid, "", repo.created_at, repo.created_at))


def head_repository(pull: Pull) -> Repo | None:
    """Return the repository of a pull request's branch, None once it was deleted."""
    repo = pull.repo.world.by_id.get(pull.head_repo) if pull.head_repo is not None else None
    return None if repo is None or repo.deleted else repo


def primary_language(repo: Repo) -> Named | None:
    """Return the language with the most bytes."""
    name = max(repo.languages, key=repo.languages.__getitem__, default=None)
    return None if name is None else Named("LNG", name, name)


def closing_of(pull: Pull) -> list[Issue]:
    """Return the issues of the closing references that can be seen."""
    world = pull.repo.world
    found: list[Issue] = []
    for repo_id, number in pull.closing:
        issue = world.by_id[repo_id].issues.get(number)
        if issue is not None and issue.moved_to is not None:
            issue = world.by_id[issue.moved_to[0]].issues.get(issue.moved_to[1])
        if issue is not None and not issue.deleted and not issue.repo.deleted:
            found.append(issue)
    return found


def closer_of(closed: ClosedIn) -> Pull | CommitIn | None:
    """Return what closed an issue; None for a person, or for what cannot be seen."""
    by, event = closed.issue.repo.world.by_id, closed.event
    if event.pull is not None:
        repo = by[event.pull[0]]
        return None if repo.deleted else repo.pulls.get(event.pull[1])
    if event.commit is not None:
        return None if by[event.commit[0]].deleted else commit_of(by[event.commit[0]], event.commit[1])
    return None
