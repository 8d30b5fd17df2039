"""Search as GitHub's qualifiers say, on what the forge knows; free words are not looked at.

https://docs.github.com/en/search-github/searching-on-github/searching-issues-and-pull-requests
https://docs.github.com/en/search-github/searching-on-github/searching-for-repositories
https://docs.github.com/en/search-github/getting-started-with-searching-on-github/understanding-the-search-syntax
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from forge.records import Head, Issue, Pull, stamp
from forge.repository import Repo
from forge.world import World

MOST = 1000
_TERM = re.compile(r'(-?)([a-z]+):("[^"]*"|\S+)')
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class BadQuery(Exception):
    """The query cannot be parsed: REST answers 422."""


@dataclass
class Query:
    """A query, by qualifier; several `repo:` and `user:` are alternatives."""

    terms: dict[str, list[str]] = field(default_factory=dict)
    without: dict[str, list[str]] = field(default_factory=dict)

    def last(self, name: str) -> str | None:
        return self.terms[name][-1] if name in self.terms else None


def parse_query(text: str) -> Query:
    """Read the qualifiers of a query."""
    query = Query()
    for minus, name, value in _TERM.findall(text):
        (query.without if minus else query.terms).setdefault(name, []).append(value.strip('"').lower())
    return query


def search_repositories(world: World, text: str) -> list[Repo]:
    """Return the repositories that a query finds, by stars (most first) unless it sorts otherwise."""
    query = parse_query(text)
    tests = list(_repository_tests(query))
    found = [repo for repo in world if not repo.deleted and all(test(repo) for test in tests)]
    key, descending = {
        "updated": (lambda repo: (repo.pushed_at, repo.repo_id), True),
        "updated-desc": (lambda repo: (repo.pushed_at, repo.repo_id), True),
        "updated-asc": (lambda repo: (repo.pushed_at, repo.repo_id), False),
        "stars-asc": (lambda repo: (repo.stars, repo.repo_id), False),
    }.get(query.last("sort") or "", (lambda repo: (repo.stars, repo.repo_id), True))
    return sorted(found, key=key, reverse=descending)


def search_issues(world: World, text: str) -> list[tuple[Repo, Head, bool]]:
    """Return (repository, head, whether it is a pull request) that a query finds, the newest first unless it sorts."""
    query = parse_query(text)
    kinds = set(query.terms.get("is", []) + query.terms.get("type", []))
    wanted = [(True, "pr"), (False, "issue")]
    if {"merged", "pr"} & kinds:
        wanted = wanted[:1]
    elif "issue" in kinds:
        wanted = wanted[1:]
    tests = list(_head_tests(query, kinds))
    found = [
        (repo, head, pull)
        for repo in _scope(world, query)
        for pull, _ in wanted
        for head in (repo.pulls.heads if pull else repo.issues.heads)
        if all(test(head) for test in tests)
    ]
    by, _, direction = (query.last("sort") or "created-desc").partition("-")
    return sorted(found, key=_sort_key(by), reverse=direction != "asc")


def item_of(repo: Repo, head: Head, pull: bool) -> Issue | Pull:
    """Return the item of a search result."""
    return repo.pulls[head.number] if pull else repo.issues[head.number]


def _sort_key(by: str) -> Callable[[tuple[Repo, Head, bool]], tuple[str, int, int]]:
    def key(found: tuple[Repo, Head, bool]) -> tuple[str, int, int]:
        repo, head, _ = found
        return (head.updated_at if by == "updated" else head.created_at, repo.repo_id, head.number)

    return key


def _scope(world: World, query: Query) -> Iterable[Repo]:
    owners = set(query.terms.get("user", []) + query.terms.get("org", []))
    if "repo" in query.terms:
        named = {repo.repo_id: repo for name in query.terms["repo"] if (repo := world.find(name)) is not None}
        if not named and not owners:
            raise BadQuery(
                "The listed users and repositories cannot be searched either because the resources do not exist "
                "or you do not have permission to view them."
            )
        return named.values()
    return [repo for repo in world if not repo.deleted and (not owners or repo.owner.lower() in owners)]


def _head_tests(query: Query, kinds: set[str]) -> Iterator[Callable[[Head], bool]]:
    if "merged" in kinds:
        yield lambda head: head.state == "MERGED"
    if "unmerged" in kinds:
        yield lambda head: head.state == "CLOSED"
    states = kinds | set(query.terms.get("state", []))
    if "open" in states:
        yield lambda head: head.state == "OPEN"
    if "closed" in states:
        yield lambda head: head.state != "OPEN"
    for name in ("merged", "closed", "created", "updated"):
        for window in query.terms.get(name, []):
            yield _at(name, within(window))


def _at(name: str, holds: Callable[[str], bool]) -> Callable[[Head], bool]:
    def test(head: Head) -> bool:
        value = getattr(head, f"{name}_at")
        return value is not None and holds(value)

    return test


def _repository_tests(query: Query) -> Iterator[Callable[[Repo], bool]]:
    owners = set(query.terms.get("user", []) + query.terms.get("org", []))
    if owners:
        yield lambda repo: repo.owner.lower() in owners
    if names := set(query.terms.get("repo", [])):
        yield lambda repo: repo.full_name.lower() in names
    for language in query.terms.get("language", []):
        yield _of_language(language)
    for name in query.terms.get("license", []):
        yield _of_license(name)
    for name, value in (("stars", "stars"), ("forks", "forks"), ("size", "disk_kb")):
        for window in query.terms.get(name, []):
            yield _counted(value, between(window))
    for name in ("pushed", "created"):
        for window in query.terms.get(name, []):
            yield _timed(f"{name}_at", within(window))
    forks = query.last("fork")
    if forks != "true":
        yield lambda repo: (repo.parent is not None) == (forks == "only")
    for name in ("archived", "template", "mirror"):
        if name in query.terms:
            yield _flagged(f"is_{name}", query.last(name) == "true")
    yield lambda repo: not repo.is_private


def _of_language(language: str) -> Callable[[Repo], bool]:
    return lambda repo: bool(repo.languages) and max(repo.languages, key=repo.languages.__getitem__).lower() == language


def _of_license(key: str) -> Callable[[Repo], bool]:
    return lambda repo: repo.license is not None and repo.license.lower() == key


def _counted(name: str, holds: Callable[[int], bool]) -> Callable[[Repo], bool]:
    return lambda repo: holds(getattr(repo, name))


def _timed(name: str, holds: Callable[[str], bool]) -> Callable[[Repo], bool]:
    return lambda repo: holds(getattr(repo, name))


def _flagged(name: str, wanted: bool) -> Callable[[Repo], bool]:
    return lambda repo: getattr(repo, name) == wanted


def within(window: str) -> Callable[[str], bool]:
    """Return a test for a window of times: `A..B` (both in it), `*..B`, `A..*`, `>A`, `>=A`, `<A`, `<=A`, or a day."""
    first, last = _ends(window)
    low = None if first is None else _edge(first[0], late=first[1])
    high = None if last is None else _edge(last[0], late=not last[1])
    return lambda at: (
        (low is None or (at > low if first is not None and first[1] else at >= low))
        and (high is None or (at < high if last is not None and last[1] else at <= high))
    )


def between(window: str) -> Callable[[int], bool]:
    """Return a test for a window of numbers."""
    first, last = _ends(window)
    try:
        low = None if first is None else int(first[0]) + first[1]
        high = None if last is None else int(last[0]) - last[1]
    except ValueError as error:
        raise BadQuery(f"{window} is no number") from error
    return lambda number: (low is None or number >= low) and (high is None or number <= high)


def _ends(window: str) -> tuple[tuple[str, bool] | None, tuple[str, bool] | None]:
    """Return both ends of a window, each as (value, whether it is outside)."""
    if ".." in window:
        low, _, high = window.partition("..")
        return (None if low == "*" else (low, False)), (None if high == "*" else (high, False))
    for sign, low_end in ((">=", True), ("<=", False), (">", True), ("<", False)):
        if window.startswith(sign):
            end = (window.removeprefix(sign), len(sign) == 1)
            return (end, None) if low_end else (None, end)
    return (window, False), (window, False)


def _edge(value: str, *, late: bool) -> str:
    """Return the first second of a day, or its last one (`late`); a time with seconds is itself."""
    value = value.upper()
    if _DAY.fullmatch(value):
        return f"{value}T23:59:59Z" if late else f"{value}T00:00:00Z"
    try:
        return stamp(value)
    except ValueError as error:
        raise BadQuery(f"{value} is no time") from error
