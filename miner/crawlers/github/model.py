"""What the forge's answers say, as records: read from raw answers by `miner.crawlers.github.answers`, never stored.

Names are GitHub's own in snake case (https://docs.github.com/en/graphql/reference/objects). A deleted account is None
("ghost"), and so is a head repository that was deleted.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from miner.core.records import Record


class Repository(Record):
    """A repository, by its numeric id: its names are aliases.

    Attributes:
        full_name: `owner/name` as the forge spells it now.
        languages: name -> bytes.
        spdx: SPDX id of the licence that the forge found, None where it found none ("NOASSERTION" stands as it is).
        newest_number: highest number of its issues and pull requests, 0 where it has none.
        network_id: id of the root of its fork network, as far as it is known (its parent's, or its own).
    """

    forge_id: int
    node_id: str
    full_name: str
    default_branch: str | None
    languages: dict[str, int] = Field(default_factory=dict)
    spdx: str | None = None
    stars: int = 0
    forks: int = 0
    disk_kb: int = 0
    created_at: datetime
    pushed_at: datetime | None = None
    updated_at: datetime | None = None
    is_fork: bool = False
    is_archived: bool = False
    is_template: bool = False
    is_private: bool = False
    is_mirror: bool = False
    is_unavailable: bool = False
    has_issues: bool = True
    parent: str | None = None
    network_id: int = 0
    newest_number: int = 0


class Actor(Record):
    """Who wrote something: `kind` is User, Bot, Organization, Mannequin or EnterpriseUserAccount."""

    login: str
    kind: str


class Edit(Record):
    """One earlier version of a body; `text` is None where the forge does not show it."""

    edited_at: datetime
    text: str | None = None


class Comment(Record):
    """A comment on an issue."""

    node_id: str
    body: str
    created_at: datetime
    last_edited_at: datetime | None = None
    author: Actor | None = None


class Closer(Record):
    """What closed an issue, by a closed-event of its timeline.

    Attributes:
        repository_id: of the pull request or commit; None where the forge does not show it.
        pull: number of the pull request that closed it.
        commit: id of the commit that closed it.
    """

    at: datetime
    repository_id: int | None = None
    pull: int | None = None
    commit: str | None = None


class Issue(Record):
    """An issue, whole: lists that were longer than a page are completed.

    Attributes:
        state_reason: COMPLETED, NOT_PLANNED, DUPLICATE, REOPENED or None.
        closers: of its closed-events, oldest first; those closed by hand are left out.
    """

    node_id: str
    repository_id: int
    repository: str
    number: int
    title: str
    body: str
    url: str
    state: str
    state_reason: str | None = None
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None
    last_edited_at: datetime | None = None
    locked: bool = False
    author: Actor | None = None
    labels: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    closers: tuple[Closer, ...] = ()
    edits: tuple[Edit, ...] = ()


class Commit(Record):
    """A commit of a pull request."""

    oid: str
    message: str
    authored_at: datetime
    committed_at: datetime


class ChangedFile(Record):
    """A file of a pull request, as the forge counts it: ADDED, DELETED, MODIFIED, RENAMED, COPIED or CHANGED."""

    path: str
    additions: int
    deletions: int
    change: str


class Pull(Record):
    """A merged pull request, whole: lists that were longer than a page are completed.

    Attributes:
        merge_commit: id of the commit that the merge made on the base branch; None where the forge does not know it.
        merge_parents: ids of its parents: two for a merge commit, one for squash and rebase.
        merge_message: its message.
        changed_files: as the forge counts them; `files` may hold fewer where it does not list them all.
        closing: the issues of `closingIssuesReferences`.
        references: what the numbers turned out to be that the texts name beside those, by number: an issue, "pull" for
            a pull request, "gone" for nothing (it never existed, was deleted, or was moved: GraphQL does not say where
            to), "moved" for an issue that is in another repository now.
    """

    node_id: str
    repository_id: int
    repository: str
    number: int
    title: str
    body: str
    url: str
    created_at: datetime
    updated_at: datetime
    merged_at: datetime
    closed_at: datetime | None = None
    last_edited_at: datetime | None = None
    author: Actor | None = None
    labels: tuple[str, ...] = ()
    base_branch: str
    base_oid: str
    head_branch: str
    head_oid: str
    head_repository_id: int | None = None
    head_repository: str | None = None
    merge_commit: str | None = None
    merge_parents: tuple[str, ...] = ()
    merge_message: str = ""
    changed_files: int = 0
    additions: int = 0
    deletions: int = 0
    files: tuple[ChangedFile, ...] = ()
    commits: tuple[Commit, ...] = ()
    edits: tuple[Edit, ...] = ()
    closing: tuple[Issue, ...] = ()
    references: dict[int, Issue | Literal["pull", "gone", "moved"]] = Field(default_factory=dict)
