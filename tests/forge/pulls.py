"""Pull requests with their history: opened on a branch or a fork, pushed to, and merged in the three ways of GitHub.

https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/incorporating-changes-from-a-pull-request/about-pull-request-merges
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from forge.gitstore import Content, Tree
from forge.records import Actor, Commit, Pull, When, moment, stamp
from forge.repository import IssueRef, Repo, applied, edited
from forge.trees import changed_files, merge

How = Literal["merge", "squash", "rebase"]
Files: TypeAlias = "Mapping[str, Content]"
Step: TypeAlias = "tuple[str, Files]"


@dataclass(frozen=True, slots=True)
class _Branch:
    """What a pull request asks to merge."""

    base: str
    commits: list[Commit]
    head: str


def open_pull(
    repo: Repo,
    title: str,
    body: str,
    *,
    files: Files | None = None,
    commits: Sequence[Step] = (),
    merge: How | None = None,
    at: When | None = None,
    opened: When | None = None,
    number: int | None = None,
    base: str | None = None,
    base_oid: str | None = None,
    head: str | None = None,
    author: Actor | str | None = "octocat",
    fork: str | None = None,
    closes: Iterable[IssueRef] = (),
    labels: Iterable[str] = (),
    upstream: Files | None = None,
    replaced: Files | None = None,
    extra: Files | None = None,
    landed: Sequence[int] | None = None,
    message: str | None = None,
    edits: Iterable[tuple[When, str]] = (),
    updated: When | None = None,
    state: Literal["OPEN", "CLOSED"] = "OPEN",
    keep_branch: bool = False,
) -> Pull:
    """Open a pull request, and merge it.

    Args:
        files: what it changes, as one commit named after its title; or `commits`: (message, files) of each.
        merge: how it is merged; None: it stays in `state`.
        at: when it is merged (or closed).
        opened: when it is opened, two days before `at` where it is not said.
        base: the branch that it asks for.
        base_oid: what it states as the base's commit, where that is not the one its branch starts from: "tip" for where
            the base branch stands at the merge.
        fork: owner of the fork that its branch is in, which is made where it is missing.
        closes: issues of its closing references, which it closes where it is merged into the default branch.
        upstream: what lands on the base branch between opening and merging.
        replaced: what its branch held before a force-push.
        extra: what its merge commit changes besides.
        landed: for a rebase: which of its commits land, in which order.
        message: of the squash or merge commit.
        edits: later bodies and their times.
        updated: its `updatedAt`, where it is not that of the last event.
        keep_branch: its branch is not deleted after the merge.
    """
    number = number or repo.next_number
    at = stamp(at or moment("2025-05-10T12:00:00Z") + timedelta(minutes=number))
    opened = stamp(opened or moment(at) - timedelta(days=2))
    base = base or repo.default_branch
    head = head or f"change-{number}"
    steps = list(commits) or [(title, files if files is not None else {f"change_{number}.txt": f"{number}\n"})]
    where = repo if fork is None else repo.world.fork(repo, fork)
    if replaced is not None:
        _branch(repo, base, [("Draft", replaced)], author, opened)
    branch = _branch(repo, base, steps, author, opened)
    repo.store.ref(f"refs/pull/{number}/head", branch.head)
    where.move(head, branch.head)
    last, versions, edited_at = edited(body, opened, edits)
    pull = Pull(
        repo,
        number,
        title,
        last,
        opened,
        stamp(updated or max(filter(None, [opened, at if merge or state == "CLOSED" else None, edited_at]))),
        base,
        branch.base,
        head,
        branch.head,
        last_edited_at=edited_at,
        author=repo.world.actor(author),
        labels=list(labels),
        commits=branch.commits,
        files=changed_files(repo.trees[branch.base], repo.trees[branch.head]),
        edits=versions,
        closing=[(issue.repo.repo_id, issue.number) for issue in map(repo.issue_of, closes)],
        head_repo=where.repo_id,
    )
    if upstream is not None:
        repo.commit(upstream, "Other work", at=moment(at) - timedelta(hours=1), branch=base)
    if base_oid is not None:
        pull.base_oid = repo.branches[base] if base_oid == "tip" else base_oid
    if merge is not None:
        _merge(pull, branch, merge, at, extra or {}, landed, message)
        if not keep_branch:
            where.move(head, None)
    elif state == "CLOSED":
        pull.state, pull.closed_at = "CLOSED", at
    repo.pulls.put(pull)
    return pull


def _branch(repo: Repo, base: str, steps: Sequence[Step], author: Actor | str | None, opened: str) -> _Branch:
    start = repo.branches[base]
    tree: Tree = repo.trees[start]
    parent, made = start, []
    for left, (message, files) in zip(range(len(steps), 0, -1), steps, strict=True):
        tree = applied(tree, files)
        at = stamp(moment(opened) - timedelta(minutes=10 * left))
        made.append(repo.write(tree, (parent,), message, _login(author), at))
        parent = made[-1].oid
    return _Branch(start, made, parent)


def _merge(
    pull: Pull, branch: _Branch, how: How, at: str, extra: Files, landed: Sequence[int] | None, message: str | None
) -> None:
    repo = pull.repo
    tip = repo.branches[pull.base_ref]
    author = _login(pull.author)
    if how == "rebase":
        landing = [branch.commits[index] for index in (landed if landed is not None else range(len(branch.commits)))]
        made = _replayed(repo, branch, landing, tip, author, at)
    else:
        tree = applied(merge(repo.trees[branch.base], repo.trees[tip], repo.trees[branch.head]), extra)
        parents = (tip, branch.head) if how == "merge" else (tip,)
        made = [repo.write(tree, parents, message or _message(pull, how), author, at)]
    repo.move(pull.base_ref, made[-1].oid)
    if pull.base_ref == repo.default_branch:
        for commit in [*(branch.commits if how == "merge" else ()), *made]:
            repo.land(commit)
    pull.state, pull.merged_at, pull.closed_at = "MERGED", at, at
    pull.merge_commit = made[-1]
    if pull.base_ref == repo.default_branch:
        for repo_id, number in pull.closing:
            repo.world.by_id[repo_id].close(number, at=at, pull=pull)


def _replayed(repo: Repo, branch: _Branch, landing: Sequence[Commit], tip: str, author: str, at: str) -> list[Commit]:
    made: list[Commit] = []
    parent = tip
    for commit in landing:
        tree = merge(repo.trees[commit.parents[0]], repo.trees[parent], repo.trees[commit.oid])
        made.append(repo.write(tree, (parent,), commit.message, author, commit.authored_at, at))
        parent = made[-1].oid
    return made


def _message(pull: Pull, how: How) -> str:
    """https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/incorporating-changes-from-a-pull-request/about-pull-request-merges#merge-message-for-a-squash-merge"""
    if how == "merge":
        where = pull.repo.world.by_id[pull.head_repo or pull.repo.repo_id]
        return f"Merge pull request #{pull.number} from {where.owner}/{pull.head_ref}\n\n{pull.title}"
    if len(pull.commits) == 1:
        first, _, rest = pull.commits[0].message.partition("\n")
        return f"{first} (#{pull.number})\n{rest}".rstrip()
    return f"{pull.title} (#{pull.number})\n\n" + "\n\n".join(f"* {commit.message}" for commit in pull.commits)


def _login(author: Actor | str | None) -> str:
    return "ghost" if author is None else author if isinstance(author, str) else author.login
