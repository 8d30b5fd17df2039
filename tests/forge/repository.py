"""A repository of the forge: what it states of itself, its issues and pull requests, and its git history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from forge.gitstore import Content, File, GitStore, Tree, as_file
from forge.records import Actor, ClosedEvent, Comment, Commit, Edit, Issue, Pull, When, stamp
from forge.shelf import Shelf

if TYPE_CHECKING:
    from forge.world import World

IssueRef: TypeAlias = "int | Issue"


@dataclass(slots=True, eq=False, repr=False)
class Repo:
    """A repository; `world.repository(...)` makes it. Every field may be set by hand.

    Attributes:
        names: earlier names, which redirect to this one.
        blocked: why it answers 451 ("dmca"), None where it does not.
        history: the commits of the default branch that were made here, oldest first.
        path: its git directory; None where it has none.
    """

    world: World
    repo_id: int
    owner: str
    name: str
    names: list[str] = field(default_factory=list)
    default_branch: str = "main"
    description: str = ""
    languages: dict[str, int] = field(default_factory=lambda: {"Python": 10_000})
    license: str | None = "MIT"
    stars: int = 100
    forks: int = 10
    disk_kb: int = 500
    created_at: str = "2020-01-01T00:00:00Z"
    pushed_at: str = "2025-06-01T00:00:00Z"
    updated_at: str = "2025-06-01T00:00:00Z"
    parent: Repo | None = None
    is_archived: bool = False
    is_template: bool = False
    is_private: bool = False
    is_disabled: bool = False
    is_locked: bool = False
    is_mirror: bool = False
    is_empty: bool = False
    has_issues: bool = True
    deleted: bool = False
    blocked: str | None = None
    issues: Shelf[Issue] = field(default_factory=Shelf)
    pulls: Shelf[Pull] = field(default_factory=Shelf)
    history: list[Commit] = field(default_factory=list)
    path: Path | None = None
    store: GitStore = field(default_factory=lambda: GitStore(None))
    branches: dict[str, str] = field(default_factory=dict)
    trees: dict[str, Tree] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Repo {self.repo_id} {self.full_name}>"

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def root(self) -> Repo:
        """The root of its fork network."""
        return self if self.parent is None else self.parent.root

    @property
    def next_number(self) -> int:
        return max(self.issues.newest, self.pulls.newest) + 1

    def tree(self, ref: str) -> Tree:
        """Return the files of a branch or commit that was made here."""
        return self.trees[self.branches.get(ref, ref)]

    def rename(self, full_name: str) -> Repo:
        """Rename or transfer it: the numeric id stays, the old name redirects."""
        self.world.rename(self, full_name)
        return self

    def commit(
        self,
        files: Mapping[str, Content],
        message: str = "Work",
        *,
        at: When,
        branch: str | None = None,
        author: str = "octocat",
        closes: Iterable[IssueRef] = (),
    ) -> Commit:
        """Commit on a branch, without a pull request; issues are closed by the commit.

        Args:
            files: path -> content, None to delete it; the others stay.
        """
        branch = branch or self.default_branch
        parent = self.branches.get(branch)
        base = self.trees[parent] if parent else {}
        made = self.write(applied(base, files), (parent,) if parent else (), message, author, stamp(at))
        self.move(branch, made.oid)
        self.land(made)
        for issue in closes:
            self.close(issue, at=at, commit=made.oid)
        return made

    def write(
        self, tree: Tree, parents: tuple[str, ...], message: str, author: str, at: str, committed_at: str | None = None
    ) -> Commit:
        """Write a commit that no branch points to yet."""
        oid_of_tree = self.store.tree(tree)
        oid = self.store.commit(oid_of_tree, parents, message, author, at, committed_at or at)
        self.trees[oid] = tree
        self.commits[oid] = Commit(oid, message, at, committed_at or at, parents, oid_of_tree)
        return self.commits[oid]

    def move(self, branch: str, oid: str | None) -> None:
        """Move a branch to a commit; None deletes it."""
        self.store.ref(f"refs/heads/{branch}", oid)
        if oid is None:
            self.branches.pop(branch, None)
        else:
            self.branches[branch] = oid

    def land(self, commit: Commit) -> None:
        """Note a commit as the newest of the default branch."""
        self.history.append(commit)
        self.pushed_at = max(self.pushed_at, commit.committed_at)

    def issue(
        self,
        title: str = "It breaks",
        body: str = "It does not work.",
        *,
        at: When = "2025-04-01T09:00:00Z",
        author: Actor | str | None = "reporter",
        number: int | None = None,
        labels: Iterable[str] = (),
        **fields: Any,
    ) -> Issue:
        """Open an issue; `fields` are any of `forge.records.Issue`."""
        made = Issue(
            self,
            number or self.next_number,
            title,
            body,
            stamp(at),
            stamp(at),
            author=self.world.actor(author),
            labels=list(labels),
            **fields,
        )
        self.issues.put(made)
        return made

    def pull(self, title: str = "Change", body: str = "", **how: Any) -> Pull:
        """Open a pull request, and merge it where `merge` says how: see `forge.pulls.open_pull`."""
        from forge.pulls import open_pull

        return open_pull(self, title, body, **how)

    def comment(
        self,
        on: IssueRef,
        body: str,
        *,
        at: When,
        author: Actor | str | None = "reader",
        edits: Iterable[tuple[When, str]] = (),
    ) -> Comment:
        """Comment on an issue; `edits` are its later bodies, oldest first."""
        issue = self.issue_of(on)
        made = Comment(len(issue.comments) + 1, body, stamp(at), self.world.actor(author))
        made.body, made.edits, made.last_edited_at = edited(body, made.created_at, edits)
        issue.comments.append(made)
        issue.updated_at = max(issue.updated_at, made.last_edited_at or made.created_at)
        self.issues.put(issue)
        return made

    def edit(self, item: Issue | Pull, body: str, *, at: When) -> None:
        """Edit the body of an issue or pull request: its earlier versions stay to be seen."""
        earlier = item.edits[::-1] or [Edit(item.created_at, item.body)]
        item.edits = [Edit(stamp(at), body), *reversed(earlier)]
        item.body, item.last_edited_at = body, stamp(at)
        self.touch(item, at=at)

    def touch(self, item: Issue | Pull | int, *, at: When) -> None:
        """Say that something of an issue or pull request changed, so that its `updatedAt` moves."""
        if isinstance(item, int):
            item = self.pulls[item] if item in self.pulls else self.issues[item]
        item.updated_at = stamp(at)
        if isinstance(item, Pull):
            self.pulls.put(item)
        else:
            self.issues.put(item)

    def close(
        self,
        issue: IssueRef,
        *,
        at: When,
        reason: str | None = "COMPLETED",
        pull: Pull | None = None,
        commit: str | None = None,
    ) -> None:
        """Close an issue by a pull request, by a commit, or by hand."""
        item = self.issue_of(issue)
        item.state, item.state_reason, item.closed_at = "CLOSED", reason, stamp(at)
        item.updated_at = max(item.updated_at, stamp(at))
        by = None if pull is None else (pull.repo.repo_id, pull.number)
        item.closed_events.append(
            ClosedEvent(
                stamp(at), reason, by, None if commit is None else (self.repo_id, commit), self.world.actor("octocat")
            )
        )
        item.repo.issues.put(item)

    def reopen(self, issue: IssueRef, *, at: When) -> None:
        """Open a closed issue again; its closed-events stay."""
        item = self.issue_of(issue)
        item.state, item.state_reason, item.closed_at = "OPEN", "REOPENED", None
        self.touch(item, at=at)

    def transfer(self, issue: IssueRef, to: Repo, *, at: When = "2025-06-01T00:00:00Z") -> Issue:
        """Move an issue to another repository, where it gets a new number; the old one redirects."""
        item = self.issue_of(issue)
        moved = to.issue(
            item.title, item.body, at=item.created_at, author=item.author, labels=item.labels, state=item.state
        )
        moved.comments, moved.closed_events, moved.edits = item.comments, item.closed_events, item.edits
        moved.closed_at, moved.state_reason = item.closed_at, item.state_reason
        to.touch(moved, at=at)
        item.moved_to = (to.repo_id, moved.number)
        self.issues.put(item)
        return moved

    def delete_issue(self, issue: IssueRef) -> None:
        """Delete an issue: REST answers 410 from now on."""
        item = self.issue_of(issue)
        item.deleted = True
        self.issues.put(item)

    def issue_of(self, issue: IssueRef) -> Issue:
        return issue if isinstance(issue, Issue) else self.issues[issue]


def applied(base: Tree, files: Mapping[str, Content]) -> dict[str, File]:
    """Return a tree with some files replaced, added, or (None) removed."""
    tree = dict(base)
    for path, content in files.items():
        if content is None:
            tree.pop(path, None)
        else:
            tree[path] = as_file(content)
    return tree


def edited(body: str, created_at: str, edits: Iterable[tuple[When, str]]) -> tuple[str, list[Edit], str | None]:
    """Return the last body, all versions newest first (none where it was never edited), and the last edit's time."""
    versions = [Edit(created_at, body), *(Edit(stamp(when), text) for when, text in edits)]
    if len(versions) == 1:
        return body, [], None
    return versions[-1].text or "", versions[::-1], versions[-1].edited_at
