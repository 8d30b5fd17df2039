"""What a page of pull requests leaves out: lists that are longer, and issues that only texts name.

Of every pull request the lists are completed that say whether it closes an issue; the others only where it may.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from miner.core.hashing import canonical_json
from miner.core.records import Fact, Observation, Producer
from miner.crawlers.github import queries
from miner.crawlers.github.answers import ISSUE_LISTS, Rest, references_of, rest_of
from miner.crawlers.github.client import HeavyPage
from miner.crawlers.github.model import Repository
from miner.crawlers.github.pages import DECODED, Node, lists_of, nodes
from miner.crawlers.github.repositories import subject_of
from miner.crawlers.github.walk import Desk

MORE = Producer(name="github.more")
ISSUES = Producer(name="github.issues")
LINKING = ("commits", "closingIssuesReferences")
OTHERS = ("labels", "files", "userContentEdits")
MOST = 30
"""Lists are completed up to so many further pages: https://docs.github.com/en/rest/pulls/pulls#list-pull-requests-files
lists at most 3,000 files."""


@dataclass(frozen=True)
class OpenList:
    """A list of a node that is longer than what is known of it.

    Attributes:
        kind: type of the node.
        node: its id.
        version: when the node was touched last, as it was read.
        after: cursor of what is known.
    """

    kind: str
    node: str
    version: str
    name: str
    after: str | None

    @property
    def inputs(self) -> dict[str, str | None]:
        """What the fact that goes on with it depends on."""
        return {"node": self.node, "list": self.name, "after": self.after, "updated_at": self.version}


def open_lists(kind: str, node: Node, names: Iterable[str]) -> Iterator[OpenList]:
    """Yield those lists of a node, as a page holds it, that are longer."""
    for name, found in lists_of(node, names):
        info = found.get("pageInfo") or {}
        if info.get("hasNextPage"):
            yield OpenList(kind, node["id"], node["updatedAt"], name, info.get("endCursor"))


class Completion:
    """What completes one pull request or issue: digests of answers, in order, and what they hold.

    Attributes:
        notes: lists that are longer than what was read of them.
    """

    def __init__(self, desk: Desk, repository: Repository) -> None:
        self._desk = desk
        self._subject = subject_of(repository.forge_id)
        self._done: set[tuple[str, str]] = set()
        self.digests: list[str] = []
        self.notes: list[str] = []

    @property
    def rest(self) -> Rest:
        """What the answers hold."""
        return rest_of(DECODED.read(digest, self._desk.blobs) for digest in self.digests)

    def pull(self, node: Node, names: Iterable[str]) -> None:
        """Complete lists of a pull request."""
        self._complete("PullRequest", node, names)

    def issue(self, node: Node) -> None:
        """Complete the lists of an issue."""
        self._complete("Issue", node, ISSUE_LISTS)

    def _complete(self, kind: str, node: Node, names: Iterable[str]) -> None:
        for name, found in lists_of(node, names):
            if (node["id"], name) in self._done:
                continue
            self._done.add((node["id"], name))
            info, pages = found.get("pageInfo") or {}, 0
            while info.get("hasNextPage"):
                if pages == MOST:
                    self.notes.append(f"#{node['number']}: of {found['totalCount']} {name} only the first were read")
                    break
                fact = self._more(kind, node, name, info.get("endCursor"))
                self.digests.append(fact.blobs["more"])
                info, pages = fact.payload["pageInfo"], pages + 1

    def _more(self, kind: str, node: Node, name: str, after: str | None) -> Fact:
        wanted = OpenList(kind, node["id"], node["updatedAt"], name, after)
        run = partial(_more, self._desk, wanted)
        return self._desk.memo.measure(MORE, "crawl.more", self._subject, wanted.inputs, run)


def _more(desk: Desk, wanted: OpenList) -> Observation:
    first = _first(wanted.name)
    while True:
        try:
            variables = {"id": wanted.node, "after": wanted.after, "first": first}
            reply = desk.forge.graphql(queries.MORE[wanted.kind, wanted.name], variables)
            break
        except HeavyPage:
            if first == 1:
                raise
            first //= 2
    costs = {"points": reply.points, "requests": reply.requests, "size": first}
    return _gone_on(desk, wanted, reply.data.get("node"), reply.raw, costs)


def _gone_on(desk: Desk, wanted: OpenList, node: Node | None, raw: bytes, costs: Mapping[str, float]) -> Observation:
    found: dict[str, Any] = (node or {}).get(wanted.name) or {}
    payload = {"node": wanted.node, "list": wanted.name, "after": wanted.after}
    return Observation(
        payload={**payload, "pageInfo": found.get("pageInfo") or {}},
        blobs={"more": desk.blobs.put(raw)},
        measures=dict(costs),
        network=True,
    )


def _first(name: str) -> int:
    """Return how many to ask for of a list that is gone on with."""
    return queries.MORE_ISSUES if name == "closingIssuesReferences" else queries.MORE_FIRST


def complete_together(desk: Desk, wanted: Iterable[tuple[Repository, Iterable[OpenList]]]) -> None:
    """Go on with lists of several repositories by few documents, for `Completion` to find them known.

    Lists that are longer than that, and those of a document that is too heavy, are left to `Completion`.
    """
    every = dict.fromkeys((subject_of(repository.forge_id), one) for repository, lists in wanted for one in lists)
    unknown = [
        (subject, one) for subject, one in every if desk.memo.peek(MORE, "crawl.more", subject, one.inputs) is None
    ]
    for start in range(0, len(unknown), queries.LISTS_AT_ONCE):
        part = unknown[start : start + queries.LISTS_AT_ONCE]
        if len(part) > 1:
            _complete_together(desk, part)


def _complete_together(desk: Desk, wanted: Sequence[tuple[str, OpenList]]) -> None:
    variables: dict[str, Any] = {}
    for i, (_, one) in enumerate(wanted):
        variables |= {f"id{i}": one.node, f"after{i}": one.after, f"first{i}": _first(one.name)}
    try:
        reply = desk.forge.graphql(queries.more_of((one.kind, one.name) for _, one in wanted), variables)
    except HeavyPage:
        return
    costs = {"points": reply.points / len(wanted), "requests": reply.requests / len(wanted)}
    for i, (subject, one) in enumerate(wanted):
        node = reply.data.get(f"p{i}")
        raw = canonical_json({"data": {"node": node}}).encode()
        run = partial(_gone_on, desk, one, node, raw, {**costs, "size": _first(one.name)})
        desk.memo.measure(MORE, "crawl.more", subject, one.inputs, run)


def closing_nodes(node: Node, rest: Rest) -> Iterator[Node]:
    """Yield the issues of a pull request's closing references, as pages hold them."""
    yield from nodes(node.get("closingIssuesReferences"))
    for issue in rest.get((node.get("id") or "", "closingIssuesReferences"), ()):
        if issue is not None:
            yield issue


def look_up(desk: Desk, repository: Repository, numbers: Iterable[int]) -> dict[int, str]:
    """Return for each number the digest of the answer that says what it is; many are asked for at once."""
    known = _looked_up(desk, repository)
    wanted = sorted(set(numbers))
    missing = [number for number in wanted if number not in known]
    for start in range(0, len(missing), queries.ISSUES_AT_ONCE):
        for fact in _look_up(desk, repository, missing[start : start + queries.ISSUES_AT_ONCE]):
            known.update(dict.fromkeys(map(int, fact.payload["numbers"]), fact.blobs["issues"]))
    return {number: known[number] for number in wanted}


def look_up_together(desk: Desk, wanted: Iterable[tuple[Repository, Iterable[int]]]) -> None:
    """Ask for numbers of several repositories by few documents, for `look_up` to find them known.

    Those of a document that is too heavy are left to `look_up`.
    """
    part: list[tuple[Repository, list[int]]] = []
    left = queries.ISSUES_AT_ONCE
    for repository, numbers in wanted:
        missing = sorted(set(numbers) - _looked_up(desk, repository).keys())
        if not 0 < len(missing) <= queries.ISSUES_AT_ONCE:
            continue
        if len(missing) > left:
            _look_up_together(desk, part)
            part, left = [], queries.ISSUES_AT_ONCE
        part.append((repository, missing))
        left -= len(missing)
    _look_up_together(desk, part)


def _look_up_together(desk: Desk, chosen: Sequence[tuple[Repository, list[int]]]) -> None:
    if len(chosen) < 2:
        return
    variables: dict[str, str] = {}
    for i, (repository, _) in enumerate(chosen):
        variables[f"owner{i}"], _, variables[f"name{i}"] = repository.full_name.partition("/")
    try:
        reply = desk.forge.graphql(queries.issues_of(numbers for _, numbers in chosen), variables)
    except HeavyPage:
        return
    costs = {"points": reply.points / len(chosen), "requests": reply.requests / len(chosen)}
    for i, (repository, numbers) in enumerate(chosen):
        part = reply.data.get(f"p{i}") or {}
        if part.get("databaseId") == repository.forge_id:
            raw = canonical_json({"data": {"repository": part}}).encode()
            subject, inputs = subject_of(repository.forge_id), {"numbers": numbers}
            run = partial(_answered, desk, numbers, raw, costs)
            desk.memo.measure(ISSUES, "crawl.issues", subject, inputs, run)


def _looked_up(desk: Desk, repository: Repository) -> dict[int, str]:
    known: dict[int, str] = {}
    for fact in desk.memo.known(ISSUES, "crawl.issues", subject_of(repository.forge_id)):
        for number in fact.payload["numbers"]:
            known.setdefault(int(number), fact.blobs["issues"])
    return known


def referenced(desk: Desk, digest: str, number: int) -> Node | None:
    """Return what an answer of `look_up` holds for a number, if that is an issue."""
    for other, node in references_of(DECODED.read(digest, desk.blobs)):
        if other == number and node is not None and node.get("__typename") == "Issue":
            return node
    return None


def is_gone(desk: Desk, digest: str, number: int) -> bool:
    """Whether an answer of `look_up` says that there is nothing of a number."""
    return any(other == number and node is None for other, node in references_of(DECODED.read(digest, desk.blobs)))


def _look_up(desk: Desk, repository: Repository, numbers: Sequence[int]) -> Iterator[Fact]:
    subject, inputs = subject_of(repository.forge_id), {"numbers": list(numbers)}
    run = partial(_issues, desk, repository, numbers)
    try:
        fact = desk.memo.measure(ISSUES, "crawl.issues", subject, inputs, run)
    except HeavyPage:
        if len(numbers) == 1:
            raise
        half = len(numbers) // 2
        yield from _look_up(desk, repository, numbers[:half])
        yield from _look_up(desk, repository, numbers[half:])
    else:
        yield fact


def _issues(desk: Desk, repository: Repository, numbers: Sequence[int]) -> Observation:
    owner, _, name = repository.full_name.partition("/")
    reply = desk.forge.graphql(queries.issues(numbers), {"owner": owner, "name": name})
    return _answered(desk, numbers, reply.raw, {"points": reply.points, "requests": reply.requests})


def _answered(desk: Desk, numbers: Sequence[int], raw: bytes, costs: Mapping[str, float]) -> Observation:
    return Observation(
        payload={"numbers": list(numbers)}, blobs={"issues": desk.blobs.put(raw)}, measures=dict(costs), network=True
    )
