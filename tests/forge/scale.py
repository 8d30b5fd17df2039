"""A world of thousands of repositories whose pull requests are made when they are asked for: for figures.

Always the same for the same arguments; `forge.mix` says what the pull requests are like. Nothing is on disk;
`/owner/name/pull/N.diff` is made from the files' hunks.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from forge import mix
from forge.mix import Dice, Way
from forge.nodes import url_of
from forge.records import Actor, ChangedFile, ClosedEvent, Comment, Commit, Edit, Head, Issue, Pull, moment, stamp
from forge.repository import Repo
from forge.world import World, lazy_issues, lazy_pulls

_WORDS = (
    "parser",
    "cache",
    "index",
    "reader",
    "writer",
    "client",
    "token",
    "table",
    "column",
    "buffer",
    "socket",
    "signal",
)
_UNMERGED = 0.15
_TOUCHED = 0.12


@dataclass(frozen=True)
class Scale:
    """What is in a world.

    Attributes:
        pulls: merged in the month, over all repositories; a few of them have most.
        counts: merged in the month by each repository, instead of `repositories` and `pulls`.
        earlier: months before it, as busy as it.
        later: months after it.
        as_of: the world is shown as it is then; None: a week after the month.
        linked: share of pull requests that close an issue.
        refused: share of repositories whose licence is none that a dataset may take.
    """

    repositories: int = 5000
    pulls: int = 100_000
    counts: tuple[int, ...] | None = None
    month: str = "2025-05"
    earlier: int = 1
    later: int = 0
    as_of: str | None = None
    linked: float = 0.25
    refused: float = 0.03
    seed: int = 0

    @property
    def start(self) -> datetime:
        """When the month begins."""
        return datetime.fromisoformat(f"{self.month}-01").replace(tzinfo=UTC)

    @property
    def seen_at(self) -> str:
        """When the world is looked at."""
        return self.as_of or stamp(_month(self.start, 1) + timedelta(days=8))


def big_world(scale: Scale) -> World:
    """Return the world."""
    world = World()
    chance = random.Random(scale.seed)
    for rank, _ in enumerate(_counts(scale)):
        world.bare(
            f"org{rank % 500}/project{rank}",
            stars=max(1, 50_000 // (rank + 1)),
            license="GPL-3.0" if chance.random() < scale.refused else chance.choice(["MIT", "Apache-2.0"]),
            languages={"Python": 90_000, "C": 5_000},
        )
    show(world, scale)
    return world


def show(world: World, scale: Scale) -> None:
    """Show a world as it is at another time, not an earlier one."""
    for repo, count in zip(list(world), _counts(scale), strict=True):
        _fill(repo, scale, count)


def truth(world: World, scale: Scale) -> dict[str, dict[int, set[int]]]:
    """Return by repository the pull requests that were merged in the month, each with the issues that it closes."""
    return {
        repo.full_name: {
            head.number: set(_closed_by(repo, scale, head.number))
            for head in repo.pulls.heads
            if (head.merged_at or "").startswith(scale.month)
        }
        for repo in world
    }


def _counts(scale: Scale) -> Iterator[int]:
    if scale.counts is not None:
        yield from scale.counts
        return
    weights = [1 / (rank + 10) for rank in range(scale.repositories)]
    total, left = sum(weights), scale.pulls
    for rank, weight in enumerate(weights):
        last = rank == scale.repositories - 1
        count = left if last else min(left, round(scale.pulls * weight / total))
        left -= count
        yield count


def _month(start: datetime, after: int) -> datetime:
    months = start.year * 12 + start.month - 1 + after
    return start.replace(year=months // 12, month=months % 12 + 1)


def _fill(repo: Repo, scale: Scale, count: int) -> None:
    """Number issues and pull requests: 2n+1 is an issue, and 2n+2 the pull request that may close it."""
    chance = random.Random(f"{scale.seed}/{repo.repo_id}")
    ends: list[tuple[datetime, bool]] = []
    for after in range(-scale.earlier, scale.later + 1):
        start, end = _month(scale.start, after), _month(scale.start, after + 1)
        unmerged = round(count * _UNMERGED / (1 - _UNMERGED))
        ends += [(start + (end - start) * chance.random(), n < count) for n in range(count + unmerged)]
    heads = [
        _head(repo, scale, 2 * index + 2, stamp(at), merged=merged) for index, (at, merged) in enumerate(sorted(ends))
    ]
    shown = [head for head in heads if head is not None]
    lazy_pulls(repo, shown, partial(_pull, repo, scale))
    lazy_issues(repo, [_issue_head(repo, scale, head) for head in shown], partial(_issue, repo, scale))


def _head(repo: Repo, scale: Scale, number: int, at: str, *, merged: bool) -> Head | None:
    """Return what is known of a pull request that was merged, or closed; None while it is still open."""
    if at > scale.seen_at:
        return None
    dice = _dice(repo, scale, number)
    open_for = timedelta(days=(2, 25, 300)[dice.length("open", ((0, 0, 70), (1, 1, 22), (2, 2, 8)))])
    opened = stamp(moment(at) - open_for * (0.02 + 0.98 * dice.chance("opened")))
    touched = stamp(moment(at) + timedelta(days=60 * dice.chance("touched at")))
    updated = touched if dice.chance("touched") < _TOUCHED and touched <= scale.seen_at else at
    return Head(number, "MERGED" if merged else "CLOSED", opened, updated, at, at if merged else None)


def _issue_head(repo: Repo, scale: Scale, pull: Head) -> Head:
    number, opened = pull.number - 1, stamp(moment(pull.created_at) - timedelta(days=5))
    closes = pull.state == "MERGED" and _way(repo, scale, pull.number) is not None
    if not closes:
        return Head(number, "OPEN", opened, opened)
    return Head(number, "CLOSED", opened, pull.closed_at or opened, pull.closed_at)


def _way(repo: Repo, scale: Scale, number: int) -> Way | None:
    """Return how a pull request is linked; None where it is not."""
    dice = _dice(repo, scale, number)
    return dice.way("way", mix.LINKED) if dice.chance("linked") < scale.linked else None


def _closed_by(repo: Repo, scale: Scale, number: int) -> list[int]:
    """Return the issues that a pull request closes: its own, and for some ways of it earlier ones beside that."""
    way = _way(repo, scale, number)
    if way is None:
        return []
    own = number - 1
    many = _dice(repo, scale, number).length("closes", mix.CLOSED) if way.listed else 1
    return [own - 2 * back for back in range(many) if own - 2 * back > 0]


def _pull(repo: Repo, scale: Scale, number: int) -> Pull:
    key, dice, word = repo.pulls.head_of(number), _dice(repo, scale, number), _WORDS[number % len(_WORDS)]
    way = _way(repo, scale, number) or dice.way("no way", mix.UNLINKED)
    words = {"word": word, "issue": number - 1, "other": max(2, number - 2), "repo": repo.full_name}
    words["url"] = url_of(repo)
    body = way.body.format(**words)
    oids = [_oid(repo, number, str(index)) for index in range(dice.length("commits", mix.COMMITS))]
    message = f"Change the {word}" + way.message.format(**words)
    versions = dice.length("edits", mix.EDITS)
    merge = Commit(
        _oid(repo, number, "merge"),
        f"{way.title.format(**words)} (#{number})",
        key.updated_at,
        key.closed_at or key.updated_at,
        (_oid(repo, number, "base"),),
    )
    return Pull(
        repo,
        number,
        way.title.format(**words),
        body,
        key.created_at,
        key.updated_at,
        "main",
        _oid(repo, number, "base"),
        f"change-{word}-{number}",
        oids[-1],
        state=key.state,
        merged_at=key.merged_at,
        closed_at=key.closed_at,
        last_edited_at=key.created_at if versions else None,
        author=Actor(f"author{number % 50}"),
        labels=["bug"] if number % 3 == 0 else [],
        commits=[Commit(oid, message, key.created_at, key.created_at) for oid in oids],
        files=[_file(number, index, word) for index in range(dice.length("files", mix.FILES))],
        edits=[Edit(key.created_at, body) for _ in range(versions)],
        closing=[(repo.repo_id, issue) for issue in _closed_by(repo, scale, number)] if way.listed else [],
        head_repo=repo.repo_id,
        merge_commit=merge if key.merged_at is not None else None,
    )


def _issue(repo: Repo, scale: Scale, number: int) -> Issue:
    key, dice, word = repo.issues.head_of(number), _dice(repo, scale, number), _WORDS[(number + 1) % len(_WORDS)]
    return Issue(
        repo,
        number,
        f"The {word} does not work",
        f"When I use the {word} with an empty name, it fails:\n\n```python\n{word}('')\n```\n" * 4,
        key.created_at,
        key.updated_at,
        key.state,
        "COMPLETED" if key.closed_at else None,
        key.closed_at,
        author=Actor(f"user{number % 90}"),
        labels=["bug"],
        comments=[
            Comment(index, f"I see it too, with {word} {index}.", key.created_at, Actor(f"user{index}"))
            for index in range(1, 1 + dice.length("comments", mix.COMMENTS))
        ],
        closed_events=[] if key.closed_at is None else [_closed(repo, scale, number + 1, key.closed_at)],
    )


def _closed(repo: Repo, scale: Scale, pull: int, at: str) -> ClosedEvent:
    """Return the event of the pull request with the next number, however that closed the issue."""
    way = _way(repo, scale, pull)
    closer = way.closer if way is not None else None
    if closer == "pull":
        return ClosedEvent(at, "COMPLETED", (repo.repo_id, pull))
    return ClosedEvent(at, "COMPLETED", None, (repo.repo_id, _oid(repo, pull, "0" if closer == "commit" else "merge")))


def _file(number: int, index: int, word: str) -> ChangedFile:
    path = f"tests/test_{word}_{index}.py" if index % 2 else f"src/{word}_{index}.py"
    return ChangedFile(path, 1, 1, "MODIFIED", f"@@ -1,1 +1,1 @@\n-value = {number - 1}\n+value = {number}")


def _dice(repo: Repo, scale: Scale, number: int) -> Dice:
    return Dice(f"{scale.seed}/{repo.repo_id}/{number}")


def _oid(repo: Repo, number: int, what: str) -> str:
    return hashlib.sha1(f"{repo.repo_id}/{number}/{what}".encode(), usedforsecurity=False).hexdigest()
