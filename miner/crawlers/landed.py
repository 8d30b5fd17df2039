"""Which commits of a branch are those of a pull request that was rebased onto it, or squashed into one of them.

A rebase keeps the title, the author and the author's date of a commit, and mostly its patch; a squash makes a commit
of its own title and date. Both leave one parent, so that the number of parents does not tell them apart. The walk goes
back from the last landed commit as long as a commit is the twin of one of the pull request's: by title and author's
date, else by patch id (https://git-scm.com/docs/git-patch-id), which a commit needs that was worded anew. So commits
that were dropped on the way (their change was there already) or put in another order do no harm.

A pull request that was built on another one holds the commits of that one, too, which landed before it. So the walk
ends at a commit that was made long before the one after it (what lands together is committed together), and a title
that names another pull request, as that of a squash does, says whose commit it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from miner.crawlers.mirror import Mirror

_UNKNOWN = -1
_TOGETHER_S = 300
_NAMES_A_PULL = re.compile(r"\(#([1-9]\d*)\)$")
_LOG = "--format=%H%x00%P%x00%at%x00%ct%x00%s"


@dataclass(frozen=True)
class CommitLine:
    """What one line says of a commit; times in seconds since 1970."""

    oid: str
    parents: tuple[str, ...]
    authored_at: int
    committed_at: int
    title: str


@dataclass(frozen=True)
class Landed:
    """The commits of a pull request on its base branch, last first: none where they were squashed.

    Attributes:
        by_patch: how many of them only their patch gave away.
    """

    commits: tuple[CommitLine, ...]
    by_patch: int = 0


def commit_lines(mirror: Mirror, *revisions: str) -> tuple[CommitLine, ...]:
    """Return what `git log` says of some commits, in its order."""
    out = mirror.repo.run("log", _LOG, "--no-show-signature", "--no-decorate", *revisions, "--")
    lines = (line.split("\0") for line in out.decode("utf-8", "replace").split("\n") if line)
    return tuple(
        CommitLine(oid, tuple(parents.split()), int(authored or 0), int(committed or 0), title)
        for oid, parents, authored, committed, title in lines
    )


def only_title(title: str) -> CommitLine:
    """Return what is left of a commit that is gone, as far as the forge lists it."""
    return CommitLine("", (), _UNKNOWN, _UNKNOWN, title)


def find_landed(mirror: Mirror, last: str, pull: Sequence[CommitLine], stop: str | None, number: int) -> Landed:
    """Walk back from the last commit that a pull request brought to its base branch.

    Args:
        mirror: where all of them are.
        last: the merge commit, as the forge calls it.
        pull: the commits of the pull request.
        stop: a commit that was on the base branch before, where it is known.
        number: of the pull request.
    """
    chain = commit_lines(mirror, "--first-parent", f"--max-count={len(pull)}", last)
    rest = list(pull)
    landed: list[CommitLine] = []
    by_patch = 0
    for commit in chain:
        if commit.oid == stop or len(commit.parents) != 1 or (landed and not _together(commit, landed[-1])):
            break
        twin = next((one for one in rest if _is_twin(one, commit)), None)
        if twin is None and _names(commit) in (None, number):
            twin = _same_patch(mirror, commit, rest)
            by_patch += twin is not None
        if twin is None:
            break
        rest.remove(twin)
        landed.append(commit)
    return Landed(tuple(landed), by_patch)


def _is_twin(one: CommitLine, other: CommitLine) -> bool:
    return one.title == other.title and one.authored_at in (other.authored_at, _UNKNOWN)


def _together(one: CommitLine, after: CommitLine) -> bool:
    return after.committed_at - one.committed_at <= _TOGETHER_S


def _names(commit: CommitLine) -> int | None:
    """Return the number of the pull request that a title names at its end, as the forge writes it for a squash."""
    found = _NAMES_A_PULL.search(commit.title)
    return int(found[1]) if found else None


def _same_patch(mirror: Mirror, commit: CommitLine, among: Iterable[CommitLine]) -> CommitLine | None:
    """Return the one with the same patch; contents are fetched only where the same paths were changed."""
    paths = _paths(mirror, commit)
    alike = [one for one in among if len(one.parents) == 1 and _paths(mirror, one) == paths]
    if not alike or not paths:
        return None
    repo = mirror.repo
    mirror.bring_blobs(frozenset().union(*(repo.changed_blobs(one.parents[0], one.oid) for one in (commit, *alike))))
    wanted = _patch_id(mirror, commit)
    return next((one for one in alike if _patch_id(mirror, one) == wanted), None)


def _paths(mirror: Mirror, commit: CommitLine) -> frozenset[tuple[str, str]]:
    changes = mirror.repo.changes(commit.parents[0], commit.oid)
    return frozenset((change.status, change.path) for change in changes)


def _patch_id(mirror: Mirror, commit: CommitLine) -> bytes:
    diff = mirror.repo.diff(commit.parents[0], commit.oid)
    return mirror.repo.run("patch-id", "--stable", stdin=diff).split(b" ")[0]
