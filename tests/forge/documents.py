"""Every GraphQL document that the product may send."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from miner.crawlers.github import queries

MADE = {
    "repositories": (["octo/lib", "octo/app"],),
    "identities": (["octo/lib", "octo/app"],),
    "issues": ([1, 2, 3],),
    "issues_of": ([[1, 2], [3]],),
    "more_of": ([("PullRequest", "commits"), ("Issue", "timelineItems"), ("PullRequest", "closingIssuesReferences")],),
    "touched": ([[1, 2], [3]],),
    "pages": (["walk", "search", "walk"],),
}


def documents() -> dict[str, str]:
    """Return the documents by the name of the constant or function that gives them.

    Raises:
        KeyError: a public function makes documents, and nobody said here with which arguments.
    """
    found: dict[str, str] = {}
    for name, value in vars(queries).items():
        if name.startswith("_"):
            continue
        if inspect.isfunction(value) and value.__module__ == queries.__name__:
            found[name] = value(*MADE[name])
        else:
            found.update(_documents_in(name, value))
    return found


def _documents_in(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and value.startswith("query "):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inside in value.items():
            yield from _documents_in(f"{name}[{key}]", inside)
