"""What the forge knows, as plain mutable records: names are GitHub's own in snake case, times are its ISO texts.

https://docs.github.com/en/graphql/reference/objects
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from forge.repository import Repo

When: TypeAlias = "str | datetime"
Change = Literal["ADDED", "DELETED", "MODIFIED", "RENAMED", "COPIED", "CHANGED"]


def stamp(when: When) -> str:
    """Return a time as GitHub writes it, in UTC: "2025-05-03T10:00:00Z"."""
    if isinstance(when, str):
        when = datetime.fromisoformat(when)
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str) -> datetime:
    """Read a time that `stamp` wrote."""
    return datetime.fromisoformat(text)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something. A deleted account is None wherever an actor may stand."""

    login: str
    kind: Literal["User", "Bot", "Organization", "Mannequin", "EnterpriseUserAccount"] = "User"


@dataclass(slots=True)
class Edit:
    """One version of a body; `text` is None where the version was deleted."""

    edited_at: str
    text: str | None
    deleted_at: str | None = None


@dataclass(slots=True)
class Comment:
    """A comment on an issue."""

    number: int
    body: str
    created_at: str
    author: Actor | None = None
    last_edited_at: str | None = None
    edits: list[Edit] = field(default_factory=list)


@dataclass(slots=True)
class Commit:
    """A commit, of a pull request or of a branch."""

    oid: str
    message: str
    authored_at: str
    committed_at: str
    parents: tuple[str, ...] = ()
    tree: str = ""


@dataclass(slots=True)
class ChangedFile:
    """A file of a pull request; `patch` is its hunks, None for a binary file."""

    path: str
    additions: int = 0
    deletions: int = 0
    change: Change = "MODIFIED"
    patch: str | None = None
    oid: str = "0" * 40


@dataclass(slots=True)
class ClosedEvent:
    """When an issue was closed, and by what: a pull request, a commit, or (neither) by hand."""

    created_at: str
    state_reason: str | None = "COMPLETED"
    pull: tuple[int, int] | None = None
    commit: tuple[int, str] | None = None
    actor: Actor | None = None


class Head(NamedTuple):
    """What the indexes of a shelf need to know of an issue or a pull request."""

    number: int
    state: str
    created_at: str
    updated_at: str
    closed_at: str | None = None
    merged_at: str | None = None


@dataclass(slots=True)
class Issue:
    """An issue.

    Attributes:
        moved_to: (id of the repository, number) after a transfer.
        deleted: it answers 410 then.
    """

    repo: Repo
    number: int
    title: str
    body: str
    created_at: str
    updated_at: str
    state: str = "OPEN"
    state_reason: str | None = None
    closed_at: str | None = None
    last_edited_at: str | None = None
    locked: bool = False
    author: Actor | None = None
    labels: list[str] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    closed_events: list[ClosedEvent] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    moved_to: tuple[int, int] | None = None
    deleted: bool = False

    @property
    def head(self) -> Head:
        """What stands in the index."""
        return Head(self.number, self.state, self.created_at, self.updated_at, self.closed_at)


@dataclass(slots=True)
class Pull:
    """A pull request.

    Attributes:
        head_repo: id of the repository that its branch is in; None once that was deleted.
        closing: (id of the repository, number) of the issues of `closingIssuesReferences`.
        merge_commit: the commit that `mergeCommit` shows.
    """

    repo: Repo
    number: int
    title: str
    body: str
    created_at: str
    updated_at: str
    base_ref: str
    base_oid: str
    head_ref: str
    head_oid: str
    state: str = "OPEN"
    merged_at: str | None = None
    closed_at: str | None = None
    last_edited_at: str | None = None
    locked: bool = False
    author: Actor | None = None
    labels: list[str] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    files: list[ChangedFile] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    closing: list[tuple[int, int]] = field(default_factory=list)
    head_repo: int | None = None
    merge_commit: Commit | None = None

    @property
    def head(self) -> Head:
        """What stands in the index."""
        return Head(self.number, self.state, self.created_at, self.updated_at, self.closed_at, self.merged_at)
