"""Issues that were touched after they were read: the `updatedAt` of a pull request does not move when one is edited.

One document asks when the issues of several repositories were touched last (`crawl.touched`), and those that were are
read once more (`crawl.renewed`). What was read before stays a fact; the newest reading counts. So it is for numbers of
which the forge has said once that there is no such issue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from miner.core.records import Fact, Observation, Producer
from miner.crawlers.github import queries
from miner.crawlers.github.answers import references_of
from miner.crawlers.github.client import HeavyPage
from miner.crawlers.github.model import Repository
from miner.crawlers.github.month import Month
from miner.crawlers.github.pages import DECODED, Node
from miner.crawlers.github.repositories import subject_of
from miner.crawlers.github.walk import Desk

TOUCHED = Producer(name="github.touched")
RENEWED = Producer(name="github.renewed")
Versions = dict[int, str | None]
"""Number of an issue -> when it was touched last, as the forge writes it; None: there is none any more."""


@dataclass(frozen=True)
class Renewal:
    """An answer that says what issues are now.

    Attributes:
        digest: of the answer.
        nodes: number -> issue, None where there is none any more.
    """

    digest: str
    nodes: Mapping[int, Node | None]


class Renewals:
    """All that was read once more of a repository, oldest first.

    Args:
        found: the answers.
    """

    def __init__(self, found: Iterable[Renewal]) -> None:
        self._found = tuple(found)
        self._last = {number: renewal for renewal in self._found for number in renewal.nodes}

    def version(self, number: int, known: str | None) -> str | None:
        """Return the version of an issue that was read in a version that is known."""
        if number not in self._last:
            return known
        node = self._last[number].nodes[number]
        return None if node is None else max(known or "", str(node.get("updatedAt") or ""))

    def now(self, node: Node) -> Node | None:
        """Return an issue as it was read last, None where there is none any more."""
        number = node["number"]
        if self.version(number, node["updatedAt"]) == node["updatedAt"]:
            return node
        return self._last[number].nodes[number]

    def back(self, gone: Iterable[int]) -> dict[int, Node]:
        """Return, of numbers that were not there when they were looked up, those that an issue has now."""
        found = ((number, self._last[number].nodes[number]) for number in gone if number in self._last)
        return {number: node for number, node in found if node is not None and node.get("__typename") == "Issue"}

    def digests(self, issues: Iterable[Node], back: Iterable[int] = ()) -> list[str]:
        """Return the answers that say something newer of issues, and of numbers that are back, oldest first."""
        newer = {self._last[issue["number"]].digest for issue in issues if self.now(issue) is not issue}
        newer |= {self._last[number].digest for number in back}
        return [renewal.digest for renewal in self._found if renewal.digest in newer]


def renewals_of(desk: Desk, repository: Repository) -> Renewals:
    """Return what was read once more of a repository."""
    facts = desk.memo.known(RENEWED, "crawl.renewed", subject_of(repository.forge_id))
    digests = dict.fromkeys(fact.blobs["issues"] for fact in facts)
    return Renewals(Renewal(digest, dict(references_of(DECODED.read(digest, desk.blobs)))) for digest in digests)


def last_look(desk: Desk, repository: Repository, month: Month) -> Fact | None:
    """Return the fact that says when issues of a month were touched, as it was asked last."""
    looks = _looks(desk, repository)
    return next((fact for fact in reversed(looks) if fact.payload["month"] == month.name), None)


def is_due(last: Fact | None, read_at: Iterable[datetime], since: datetime) -> bool:
    """Whether it has to be asked again for issues that were read at some times: what was seen since then stands."""
    return (last is None or last.observed_at < since) and any(at < since for at in read_at)


def look(desk: Desk, month: Month, wanted: Sequence[tuple[Repository, Versions]]) -> None:
    """Ask when issues of several repositories were touched last; a repository that is gone is passed over."""
    now: dict[int, Versions] = {repository.forge_id: {} for repository, _ in wanted}
    costs = {repository.forge_id: {"points": 0.0, "requests": 0.0} for repository, _ in wanted}
    for part in _packed((repository, sorted(versions)) for repository, versions in wanted):
        variables: dict[str, str] = {}
        for i, (repository, _) in enumerate(part):
            variables[f"owner{i}"], _, variables[f"name{i}"] = repository.full_name.partition("/")
        reply = desk.forge.graphql(queries.touched(numbers for _, numbers in part), variables)
        for i, (repository, numbers) in enumerate(part):
            node = reply.data.get(f"p{i}") or {}
            if node.get("databaseId") == repository.forge_id:
                said = {number: (node.get(f"n{number}") or {}).get("updatedAt") for number in numbers}
                now[repository.forge_id].update(said)
            cost = costs[repository.forge_id]
            cost["points"] += reply.points / len(part)
            cost["requests"] += reply.requests / len(part)
    for repository, versions in wanted:
        said = now[repository.forge_id]
        if len(said) == len(versions) > 0:
            _note(desk, repository, month, versions, said, costs[repository.forge_id])


def renew(desk: Desk, repository: Repository, month: Month) -> None:
    """Read once more what was touched since it was read, as the last look says.

    Raises:
        InfrastructureFault: the forge does not answer.
    """
    last = last_look(desk, repository, month)
    if last is None:
        return
    known, now = ({int(number): at for number, at in last.payload[name].items()} for name in ("known", "now"))
    renewals = renewals_of(desk, repository)
    lacking: Versions = {
        number: at
        for number, at in now.items()
        if _is_newer(at, known[number]) and _is_newer(at, renewals.version(number, known[number]))
    }
    numbers = sorted(lacking)
    for start in range(0, len(numbers), queries.ISSUES_AT_ONCE):
        _read(desk, repository, {number: lacking[number] for number in numbers[start : start + queries.ISSUES_AT_ONCE]})


def _is_newer(at: str | None, known: str | None) -> bool:
    return at != known and (at is None or known is None or at > known)


def _looks(desk: Desk, repository: Repository) -> list[Fact]:
    return desk.memo.known(TOUCHED, "crawl.touched", subject_of(repository.forge_id))


def _note(
    desk: Desk, repository: Repository, month: Month, known: Versions, now: Versions, costs: dict[str, float]
) -> None:
    payload = {
        "month": month.name,
        "known": {str(number): at for number, at in sorted(known.items())},
        "now": {str(number): at for number, at in sorted(now.items())},
    }
    inputs = {"month": month.name, "look": len(_looks(desk, repository))}
    seen = Observation(payload=payload, measures=costs, network=True)
    desk.memo.measure(TOUCHED, "crawl.touched", subject_of(repository.forge_id), inputs, lambda: seen)


def _packed(wanted: Iterable[tuple[Repository, list[int]]]) -> Iterator[list[tuple[Repository, list[int]]]]:
    """Yield what one document asks for each time."""
    part: list[tuple[Repository, list[int]]] = []
    left = queries.TOUCHED_AT_ONCE
    for repository, numbers in wanted:
        while numbers:
            part.append((repository, numbers[:left]))
            numbers, left = numbers[left:], left - len(numbers[:left])
            if not left:
                yield part
                part, left = [], queries.TOUCHED_AT_ONCE
    if part:
        yield part


def _read(desk: Desk, repository: Repository, wanted: Versions) -> None:
    """Read issues; where they are too heavy, half of them at a time."""
    subject = subject_of(repository.forge_id)
    inputs = {"touched": {str(number): at for number, at in wanted.items()}}
    try:
        desk.memo.measure(RENEWED, "crawl.renewed", subject, inputs, partial(_issues, desk, repository, sorted(wanted)))
    except HeavyPage:
        if len(wanted) == 1:
            raise
        numbers = sorted(wanted)
        for part in (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]):
            _read(desk, repository, {number: wanted[number] for number in part})


def _issues(desk: Desk, repository: Repository, numbers: Sequence[int]) -> Observation:
    owner, _, name = repository.full_name.partition("/")
    reply = desk.forge.graphql(queries.issues(numbers), {"owner": owner, "name": name})
    return Observation(
        payload={"numbers": list(numbers)},
        blobs={"issues": desk.blobs.put(reply.raw)},
        measures={"points": reply.points, "requests": reply.requests},
        network=True,
    )
