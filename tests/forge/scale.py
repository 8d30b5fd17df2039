"""A world of thousands of repositories whose pull requests are made when they are asked for: for figures.

Always the same for the same arguments. Nothing is on disk; `/owner/name/pull/N.diff` is made from the files' hunks.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from forge.records import Actor, ChangedFile, ClosedEvent, Comment, Commit, Head, Issue, Pull, stamp
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


@dataclass(frozen=True)
class Scale:
    """What is in a world.

    Attributes:
        pulls: merged in the month, over all repositories.
        around: merged in the months before and after, for each one in the month.
        linked: share of pull requests that close an issue.
    """

    repositories: int = 5000
    pulls: int = 100_000
    month: str = "2025-05"
    around: float = 0.2
    linked: float = 0.5
    seed: int = 0


def big_world(scale: Scale) -> World:
    """Return the world; a few repositories have most of the pull requests, as on GitHub."""
    world = World()
    chance = random.Random(scale.seed)
    weights = [1 / (rank + 10) for rank in range(scale.repositories)]
    total = sum(weights)
    left = scale.pulls
    for rank, weight in enumerate(weights):
        last = rank == scale.repositories - 1
        count = left if last else min(left, round(scale.pulls * weight / total))
        left -= count
        repo = world.bare(
            f"org{rank % 500}/project{rank}",
            stars=max(1, 50_000 // (rank + 1)),
            license=chance.choice(["MIT", "Apache-2.0", "BSD-3-Clause", "GPL-3.0", None]),
            languages={"Python": 90_000, "C": 5_000},
        )
        _fill(repo, scale, count)
    return world


def _fill(repo: Repo, scale: Scale, count: int) -> None:
    """Number issues and pull requests: 2n+1 is an issue, and 2n+2 the pull request that may close it."""
    start = datetime.fromisoformat(f"{scale.month}-01").replace(tzinfo=UTC)
    end = (start + timedelta(days=32)).replace(day=1)
    chance = random.Random(f"{scale.seed}/{repo.repo_id}")
    around = round(count * scale.around)
    times = [start + (end - start) * chance.random() for _ in range(count)]
    times += [start - timedelta(days=60 * chance.random()) for _ in range(around // 2)]
    times += [end + timedelta(days=20 * chance.random()) for _ in range(around - around // 2)]
    times.sort()
    merged = {2 * index + 2: stamp(time) for index, time in enumerate(times)}
    opened = {number: stamp(times[number // 2 - 1] - timedelta(days=3, minutes=number)) for number in merged}
    lazy_pulls(
        repo,
        [Head(n, "MERGED", opened[n], merged[n], merged[n], merged[n]) for n in merged],
        partial(_pull, repo, scale),
    )
    lazy_issues(
        repo,
        [Head(n - 1, "CLOSED", _before(opened[n]), merged[n], merged[n]) for n in merged if _is_linked(repo, scale, n)],
        partial(_issue, repo),
    )


def _pull(repo: Repo, scale: Scale, number: int) -> Pull:
    key = repo.pulls.head_of(number)
    word = _WORDS[number % len(_WORDS)]
    linked = _is_linked(repo, scale, number)
    head, merge = _oid(repo, number, "head"), _oid(repo, number, "merge")
    commits = [
        Commit(_oid(repo, number, str(index)), f"Fix {word}, part {index}", key.created_at, key.created_at)
        for index in range(1 + number % 3)
    ]
    commits[-1].oid = head
    assert key.merged_at is not None
    return Pull(
        repo,
        number,
        f"Fix the {word}",
        f"This mends the {word}.\n\nFixes #{number - 1}\n" if linked else f"This changes the {word}.\n",
        key.created_at,
        key.updated_at,
        "main",
        _oid(repo, number, "base"),
        f"fix-{word}-{number}",
        head,
        state="MERGED",
        merged_at=key.merged_at,
        closed_at=key.closed_at,
        author=Actor(f"author{number % 50}"),
        commits=commits,
        files=[_file(f"src/{word}.py", number), _file(f"tests/test_{word}.py", number)],
        closing=[(repo.repo_id, number - 1)] if linked else [],
        head_repo=repo.repo_id,
        merge_commit=Commit(
            merge, f"Fix the {word} (#{number})", key.merged_at, key.merged_at, (_oid(repo, number, "base"),)
        ),
    )


def _issue(repo: Repo, number: int) -> Issue:
    key = repo.issues.head_of(number)
    word = _WORDS[(number + 1) % len(_WORDS)]
    closed = key.closed_at or key.updated_at
    return Issue(
        repo,
        number,
        f"The {word} does not work",
        f"When I use the {word} with an empty name, it fails:\n\n```python\n{word}('')\n```\n" * 4,
        key.created_at,
        key.updated_at,
        "CLOSED",
        "COMPLETED",
        closed,
        author=Actor(f"user{number % 90}"),
        labels=["bug"],
        comments=[
            Comment(index, f"I see it too, with {word} {index}.", key.created_at, Actor(f"user{index}"))
            for index in range(1, 1 + number % 4)
        ],
        closed_events=[ClosedEvent(closed, "COMPLETED", (repo.repo_id, number + 1))],
    )


def _file(path: str, number: int) -> ChangedFile:
    return ChangedFile(path, 1, 1, "MODIFIED", f"@@ -1,1 +1,1 @@\n-value = {number - 1}\n+value = {number}")


def _is_linked(repo: Repo, scale: Scale, number: int) -> bool:
    return int(_oid(repo, number, "linked")[:8], 16) < scale.linked * 0xFFFFFFFF


def _oid(repo: Repo, number: int, what: str) -> str:
    return hashlib.sha1(f"{repo.repo_id}/{number}/{what}".encode(), usedforsecurity=False).hexdigest()


def _before(opened: str) -> str:
    return stamp(datetime.fromisoformat(opened) - timedelta(days=5))
