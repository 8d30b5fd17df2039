"""One request and its answer, as the server, the faults and the log see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from forge.limits import Resource

JSON = "application/json; charset=utf-8"


@dataclass
class Reply:
    """An answer.

    Attributes:
        wire: "cut" sends half of the body that was announced, "closed" nothing at all, "reset" breaks the connection.
        delay_s: before anything is sent.
    """

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    wire: Literal["", "cut", "closed", "reset"] = ""
    delay_s: float = 0.0

    @property
    def value(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


def encode(value: Any) -> bytes:
    """Write a JSON value; what is no text (half of a surrogate pair) becomes a question mark."""
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def reply_json(status: int, value: Any, **headers: str) -> Reply:
    """Return an answer that holds a JSON value; `x_github_sso` is the header X-GitHub-SSO."""
    names = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(status, encode(value), {"content-type": JSON, **names})


@dataclass
class Call:
    """A request that is being answered.

    Attributes:
        token: its number in order of first sight, 0 for none; the token itself is not kept.
        document: name of the operation of a GraphQL document, "" for REST and git.
        about: lower-case full names of the repositories that it asks about, as far as its path or variables say.
        nodes: that its document may return.
        points: what it costs if it is answered.
        spent: what it did cost: nothing where a limit or a fault stood before the answer.
    """

    method: str
    path: str
    query: str = ""
    resource: Resource | Literal["git", "web"] = "core"
    token: int = 0
    document: str = ""
    about: frozenset[str] = frozenset()
    variables: Mapping[str, Any] = field(default_factory=dict)
    nodes: int = 0
    points: int = 0
    spent: int = 0
    proceed: Callable[[], Reply] = lambda: Reply(500, b"")


@dataclass(frozen=True)
class Entry:
    """A line of the request log; it holds no token and no header."""

    method: str
    path: str
    query: str
    document: str
    token: int
    status: int
    points: int
    nodes: int
    resource: str
    size: int
    fault: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)


class Log:
    """What was asked, in order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self.entries))

    def __len__(self) -> int:
        return len(self.entries)

    def of(self, where: str = "", **wanted: Any) -> list[Entry]:
        """Return the requests for a document or path, with some values: `log.of("pulls", status=200, token=1)`."""
        return [
            entry
            for entry in self
            if matches(where, entry.document, entry.path, entry.resource)
            and all(getattr(entry, name) == value for name, value in wanted.items())
        ]

    @property
    def points(self) -> int:
        """GraphQL points that were spent."""
        return sum(entry.points for entry in self if entry.resource == "graphql")

    @property
    def requests(self) -> int:
        """API requests, those that cost nothing too; git and pages of the web are none."""
        return sum(entry.resource not in ("git", "web") for entry in self)

    def clear(self) -> None:
        self.entries.clear()


def matches(where: str, document: str, path: str, resource: str) -> bool:
    """Whether a request is meant: "" every API request, "git", "rest", "graphql", a document's name, part of a path."""
    if where == "":
        return resource not in ("git", "web")
    if where == "rest":
        return resource in ("core", "search")
    if where in ("git", "graphql", "web"):
        return resource == where
    return document == where or (where.startswith("/") and where in path)
