"""From a merged pull request to the two commits between which its change lies.

Which commits a merge left behind depends on how it was made
(https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/incorporating-changes-from-a-pull-request/about-pull-request-merges):

merge         two parents: from the merge base of both to the pull request's head
octopus       more parents: the same, with the parent that is the head
fast-forward  the head itself is on the branch: from its merge base with the branch as it was before
squash        one parent: from that to the merge commit
rebase        one parent, and more commits before it: from the parent of the first landed one to the last
head          the forge names no merge commit, or it is gone: from the merge base with the base branch to the head
given         the base was given: from that to the head, or to the head's change applied to it
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from miner.core.reasons import Reason
from miner.core.records import Record
from miner.crawlers.git_run import checked
from miner.crawlers.interface import Rejection
from miner.crawlers.landed import CommitLine, commit_lines, find_landed, only_title
from miner.crawlers.mirror import Mirror
from miner.crawlers.patches import transplant

Kind = Literal["merge", "octopus", "fast-forward", "squash", "rebase", "head", "given"]

_BRANCH = re.compile(r"[^\s:*?\[\\^~]+")


class Coordinates(Record):
    """Where a pull request is, as a forge says it.

    Attributes:
        repository_id: the forge's number of the repository.
        network_id: that of the root of its fork network, 0 where it is not known.
        full_name: `owner/name`, as it is now.
        base_oid: the base branch before the merge, "" where it is not known.
        head_oid: the last commit of the pull request, "" where it is not known.
        merge_commit: what the forge calls so: for squash and rebase the last commit that landed.
        commits: ids of the pull request's commits, in order, as far as the forge lists them.
        commit_titles: first lines of their messages.
    """

    repository_id: int
    network_id: int
    full_name: str
    number: int
    base_branch: str
    base_oid: str
    head_oid: str
    merge_commit: str | None = None
    merge_parents: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    commit_titles: tuple[str, ...] = ()


class Endpoints(Record):
    """The two commits, and how they were found.

    Attributes:
        head: the last commit of the pull request itself, None where it is gone.
        merged_tree_differs: whether the tree of the merge commit is another than that of the target, None where there
            is no merge commit.
    """

    kind: Kind
    base: str
    target: str
    head: str | None = None
    merged_tree_differs: bool | None = None
    notes: tuple[str, ...] = ()


class _Found(Exception):
    """Ends the search with a rejection."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.rejection = Rejection(reason=reason, detail=detail)


def endpoints(mirror: Mirror, at: Coordinates, *, given_base: str | None = None) -> Endpoints | Rejection:
    """Fetch what is needed of a pull request's history, and find base and target.

    Args:
        mirror: of its repository.
        at: where it is.
        given_base: a base that was chosen by hand.

    Raises:
        Refused: the repository is gone.
        InfrastructureFault: it cannot be fetched from now.
    """
    try:
        return _Search(mirror, at).run(given_base)
    except _Found as found:
        return found.rejection


class _Search:
    """The search for one pull request; sentences on what is odd gather in `notes`."""

    def __init__(self, mirror: Mirror, at: Coordinates) -> None:
        self.mirror = mirror
        self.at = at
        self.notes: list[str] = []

    def run(self, given_base: str | None) -> Endpoints:
        merge, head = self._bring()
        if given_base is not None:
            return self._given(given_base, head)
        if merge is None and head is None:
            raise _Found(Reason.COMMIT_GONE, self._gone())
        if merge is None:
            return self._from_head(head or "", "head")
        if head is None and self.at.head_oid:
            self.notes.append(f"the head {self.at.head_oid} is gone")
        return self._from_merge(merge, head)

    def _bring(self) -> tuple[str | None, str | None]:
        """Return merge commit and head as far as they are to be had: by id, and the head by its reference, too."""
        at, pull = self.at, f"pull/{self.at.number}"
        also = {"tags/*": "refs/tags/*"}
        if _BRANCH.fullmatch(at.base_branch):
            also[f"heads/{at.base_branch}"] = f"refs/heads/{at.base_branch}"
        named = {f"{pull}/merge": at.merge_commit, f"{pull}/head": at.head_oid}
        gone = self.mirror.bring({name: oid for name, oid in named.items() if oid}, also=also)
        merge = at.merge_commit if at.merge_commit and f"{pull}/merge" not in gone else None
        if at.merge_commit and merge is None:
            self.notes.append(f"the merge commit {at.merge_commit} is gone")
        if at.head_oid and f"{pull}/head" not in gone:
            return merge, at.head_oid
        lost = self.mirror.bring({f"{pull}/head": f"refs/pull/{at.number}/head"}, also=also)
        head = None if lost else self.mirror.resolve(f"{pull}/head")
        if head is not None and at.head_oid and self.mirror.has(at.head_oid):
            head = at.head_oid
        elif head is not None and at.head_oid:
            self.notes.append(f"the head {at.head_oid} is gone, and refs/pull/{at.number}/head is {head}")
        return merge, head

    def _gone(self) -> str:
        at = self.at
        named = [oid for oid in (at.merge_commit, at.head_oid) if oid]
        return f"neither {' nor '.join([*named, f'refs/pull/{at.number}/head'])} can be fetched from {at.full_name}"

    def _from_merge(self, merge: str, head: str | None) -> Endpoints:
        parents = self._parents(merge)
        was_there = (
            head is not None and head not in parents and bool(parents[:1]) and self._is_ancestor(head, parents[0])
        )
        if len(parents) > 1 and merge != head and not was_there:
            base, target = self._merged(parents, head)
            kind: Kind = "merge" if len(parents) == 2 else "octopus"
        elif head is not None and self._is_ancestor(head, merge):
            return self._from_head(head, "fast-forward", merge)
        elif not parents:
            raise _Found(Reason.NO_MERGE_BASE, f"the merge commit {merge} has no parent")
        else:
            kind, base = self._squash_or_rebase(merge, parents[0], head)
            target = merge
        return self._endpoints(kind, base, target, head, merge)

    def _merged(self, parents: Sequence[str], head: str | None) -> tuple[str, str]:
        """Return base and target of a merge commit: the side that is the pull request's, and where it left the other.

        That side is the parent that is its head, else the parent that holds it, else the second one.
        """
        if head is not None and head in parents:
            target, side = head, head
        else:
            holding = [one for one in parents[1:] if head is not None and self._is_ancestor(head, one)]
            side = holding[0] if holding else parents[1]
            target = head if holding and head is not None else side
            self.notes.append(f"the head is no parent of the merge commit, {target} was taken")
        main = next(one for one in parents if one != side) if len(set(parents)) > 1 else side
        return self._merge_base(main, target), target

    def _from_head(self, head: str, kind: Kind, merge: str | None = None) -> Endpoints:
        """Find the base of a head that is on the base branch itself, or of one whose merge is not known."""
        at = self.at
        before = at.base_oid
        if before and self.mirror.bring({f"pull/{at.number}/base": before}):
            self.notes.append(f"the base {before} is gone")
            before = ""
        if not before and kind == "head":
            self.mirror.bring({f"heads/{at.base_branch}": f"refs/heads/{at.base_branch}"})
            before = self.mirror.resolve(f"heads/{at.base_branch}") or ""
            self.notes.append(f"the base branch is looked at as it is now: {before or 'it is gone'}")
        if before:
            base = self._merge_base(before, head)
            if base != head:
                return self._endpoints(kind, base, head, head, merge)
        return self._endpoints(kind, self._before_listed(head), head, head, merge)

    def _before_listed(self, head: str) -> str:
        """Return the first ancestor, by first parents, that is not among the commits that the forge lists."""
        listed = frozenset(self.at.commits) | {head}
        for line in commit_lines(self.mirror, "--first-parent", f"--max-count={len(listed) + 1}", head):
            if line.oid not in listed:
                self.notes.append(f"the base is the first commit before the {len(listed)} that the forge lists")
                return line.oid
        raise _Found(Reason.NO_MERGE_BASE, f"nothing comes before the commits of the pull request, up to {head}")

    def _squash_or_rebase(self, merge: str, parent: str, head: str | None) -> tuple[Kind, str]:
        pull = self._own_commits(parent, head)
        if len(pull) < 2:
            return "squash", parent
        landed = find_landed(self.mirror, merge, pull, self.at.base_oid, self.at.number)
        if not landed.commits:
            return "squash", parent
        first = landed.commits[-1]
        how = "title and date" if head is not None else "title alone, since the head is gone"
        found = f"{len(landed.commits)} of {len(pull)} commits landed, from {first.oid} on"
        self.notes.append(f"{found}; found by {how}, {landed.by_patch} of them by their patch")
        return "rebase", first.parents[0]

    def _own_commits(self, parent: str, head: str | None) -> tuple[CommitLine, ...]:
        """Return the commits of the pull request: what its head has that the base branch had not, without merges.

        Where the head is gone, the titles that the forge lists are all that is left of them.
        """
        if head is None:
            return tuple(only_title(title) for title in self.at.commit_titles)
        return commit_lines(self.mirror, "--topo-order", "--reverse", "--no-merges", head, f"^{parent}")

    def _given(self, base: str, head: str | None) -> Endpoints:
        if self.mirror.bring({f"given/{base}": base}):
            raise _Found(Reason.COMMIT_GONE, f"the given base {base} is not there")
        if head is None:
            raise _Found(Reason.COMMIT_GONE, self._gone())
        fork = self._merge_base(base, head)
        if fork == base:
            return self._endpoints("given", base, head, head, None)
        repo = self.mirror.repo
        touched = {change.path for change in repo.changes(fork, head)}
        there = {file.oid for file in repo.entries(base) if file.path in touched and not file.is_submodule}
        self.mirror.bring_blobs(repo.changed_blobs(fork, head) | there)
        made = transplant(repo, repo.diff(fork, head), base, head)
        if made is None:
            raise _Found(Reason.PATCH_NOT_FAITHFUL, f"what {head} changed since {fork} does not apply to {base}")
        self.notes.append(f"the given base is not where {head} left the branch: its change was applied to it")
        return self._endpoints("given", base, made, head, None)

    def _endpoints(self, kind: Kind, base: str, target: str, head: str | None, merge: str | None) -> Endpoints:
        repo = self.mirror.repo
        differs = None if merge is None else repo.tree_of(merge) != repo.tree_of(target)
        return Endpoints(
            kind=kind, base=base, target=target, head=head, merged_tree_differs=differs, notes=tuple(self.notes)
        )

    def _parents(self, commit: str) -> tuple[str, ...]:
        return commit_lines(self.mirror, "--max-count=1", commit)[0].parents

    def _is_ancestor(self, one: str, other: str) -> bool:
        return self.mirror.repo.run("rev-list", "--max-count=1", one, f"^{other}") == b""

    def _merge_base(self, one: str, other: str) -> str:
        """Return the merge base of two commits; of several the newest, and of these the one with the lowest id."""
        status, out, err = self.mirror.repo.attempt("merge-base", "--all", one, other)
        found = out.decode().split() if status == 1 else checked("merge-base", status, out, err).decode().split()
        if not found:
            raise _Found(Reason.NO_MERGE_BASE, f"{one} and {other} have no commit in common")
        if len(found) > 1:
            lines = commit_lines(self.mirror, "--no-walk", *found)
            found = [line.oid for line in sorted(lines, key=lambda line: (-line.committed_at, line.oid))]
            self.notes.append(f"there are {len(found)} merge bases, the newest one was taken: {', '.join(found)}")
        return found[0]
