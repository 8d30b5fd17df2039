"""Which commit merged a pull request, where no forge says it: found by history, else by titles."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from miner.crawlers.landed import CommitLine, commit_lines
from miner.crawlers.mirror import Mirror


def find_merge(mirror: Mirror, head: str, number: int, tip: str) -> tuple[str | None, str]:
    """Return the commit that merged a pull request, as a forge would name it, and how it was found.

    Args:
        mirror: where all of it is.
        head: the last commit of the pull request.
        number: the number of the pull request, which titles of merges name.
        tip: the last commit of the default branch; a branch that was merged into it counts, too.
    """
    chain = commit_lines(mirror, "--first-parent", tip)
    named = re.compile(rf"\(#{number}\)$|^Merge (?:pull request|PR) #{number}\b")
    if not mirror.repo.run("rev-list", "--max-count=1", head, f"^{tip}"):
        return _holding(mirror, head, tip, chain, named)
    (last,) = commit_lines(mirror, "--max-count=1", head)
    for lines in (chain, commit_lines(mirror, tip)):
        later = [line for line in lines if line.committed_at >= last.committed_at]
        found = _oldest(later, lambda line: bool(named.search(line.title)))
        if found is not None:
            return found, "its title names the pull request"
        found = _oldest(later, lambda line: (line.title, line.authored_at) == (last.title, last.authored_at))
        if found is not None:
            return found, "it has the title and the date of the head"
    return None, "no commit names the pull request or looks like its head"


def _oldest(lines: Sequence[CommitLine], wanted: Callable[[CommitLine], bool]) -> str | None:
    """Return the last one of lines that go back in time."""
    return next((line.oid for line in reversed(lines) if wanted(line)), None)


def _holding(
    mirror: Mirror, head: str, tip: str, chain: Sequence[CommitLine], named: re.Pattern[str]
) -> tuple[str, str]:
    """Return the commit that brought a head into a branch: one that merged it, or else the first that holds it."""
    later = commit_lines(mirror, "--ancestry-path", f"{head}..{tip}")
    merges = [line for line in later if head in line.parents[1:]]
    own = {line.oid for line in chain}
    for wanted in (lambda line: bool(named.search(line.title)), lambda line: line.oid in own, lambda _line: True):
        found = _oldest(merges, wanted)
        if found is not None:
            return found, "it merged the head"
    holding = {line.oid for line in later} | {head}
    first = next(line.oid for line in reversed(chain) if line.oid in holding)
    return first, "it is the first of the default branch that holds the head"
