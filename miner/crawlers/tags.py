"""The version of a project at a commit, by the tags of its repository: the nearest one, much as `git describe` does."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from miner.crawlers.git_repo import GitRepo

UNKNOWN = "0.0.0"
_NEAREST_OF = 10  # what `git describe` looks at (https://git-scm.com/docs/git-describe#_search_strategy)
_START = re.compile(r"(?:^|[-_/+@])[A-Za-z]*(?=\d)")
_SEVERAL = re.compile(r"\d{1,4}\.\d")
_ONE = re.compile(r"(?:v|r|rel|release|version)?[-_/]?(\d{1,3})", re.IGNORECASE)
_FORMAT = "%(refname)%00%(objectname)%00%(*objectname)%00%(creatordate:unix)"


@dataclass(frozen=True)
class Tag:
    """A tag that names a version."""

    name: str
    commit: str
    made_at: int
    version: Version


def tag_version(tag: str) -> Version | None:
    """Return the version that a tag names ("v1.2", "release-1.2", "rel_1_2", "pkg/1.2rc1"), or None.

    Dates, counters and ids are no versions: one number alone has three digits at most, the first of several has four.
    """
    alone = _ONE.fullmatch(tag)
    texts = [alone[1]] if alone else [tag[found.end() :].replace("_", ".") for found in _START.finditer(tag)]
    for text in texts:
        if not (alone or _SEVERAL.match(text)):
            continue
        try:
            return Version(text)
        except InvalidVersion:
            continue
    return None


def read_tags(repo: GitRepo, space: str) -> tuple[Tag, ...]:
    """Return the tags of a repository that name a version.

    Args:
        repo: where they are.
        space: what their names begin with.
    """
    found = []
    for line in repo.run("for-each-ref", f"--format={_FORMAT}", f"{space}/tags/").split(b"\n"):
        if not line:
            continue
        ref, oid, peeled, made_at = line.decode("utf-8", "replace").split("\0")
        name = ref.removeprefix(f"{space}/tags/")
        version = tag_version(name)
        if version is not None and made_at:  # what is no commit has no date
            found.append(Tag(name, peeled or oid, int(made_at), version))
    return tuple(found)


def version_at(repo: GitRepo, tags: Sequence[Tag], commit: str, before: int) -> tuple[str, str]:
    """Return the version at a commit, and how it was found.

    Args:
        repo: where the history is.
        tags: of the repository.
        commit: the nearest tag that it can reach decides.
        before: else the newest tag that is older than this (seconds since 1970).
    """
    nearest = _nearest(repo, {tag.commit for tag in tags}, commit)
    if nearest is not None:
        oid, distance = nearest
        tag = max((tag for tag in tags if tag.commit == oid), key=lambda tag: (tag.version, tag.name))
        return str(tag.version), f"tag {tag.name}, {distance} commits before"
    older = [tag for tag in tags if tag.made_at < before]
    if older:
        newest = max(older, key=lambda tag: (tag.made_at, tag.version, tag.name))
        return str(newest.version), f"tag {newest.name}, the newest one at that time, on another line of history"
    return UNKNOWN, "no tag names a version"


def _nearest(repo: GitRepo, tagged: Collection[str], commit: str) -> tuple[str, int] | None:
    """Return the tagged commit with the fewest commits between, of those that are met first, and how many there are."""
    best: tuple[str, int] | None = None
    for oid in _met_first(repo, tagged, commit):
        most = [] if best is None else [f"--max-count={best[1]}"]
        distance = int(repo.run("rev-list", "--count", *most, commit, f"^{oid}"))
        if best is None or distance < best[1]:
            best = oid, distance
    return best


def _met_first(repo: GitRepo, tagged: Collection[str], commit: str) -> list[str]:
    """Return tagged commits in the order in which a walk back in time meets them; it goes far only where it must."""
    for most in (["--max-count=3000"], []):
        walked = repo.run("rev-list", *most, commit).decode().split() if tagged else []
        met = [oid for oid in walked if oid in tagged][:_NEAREST_OF]
        if met:
            return met
    return []
