"""The crawl of one repository's merged pull requests: pages, and the fact that says what they came to.

Every page that was read is a fact: a crawl that was cut goes on after its last page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from miner.core.blobs import BlobStore
from miner.core.hashing import canonical_json
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, Observation, Producer
from miner.crawlers.github import queries
from miner.crawlers.github.client import ForgeClient, GraphReply, HeavyPage
from miner.crawlers.github.coverage import Coverage, Glimpse, newest_sights
from miner.crawlers.github.model import Repository
from miner.crawlers.github.month import Month, merged_in, stamp
from miner.crawlers.github.pages import Node, nodes, nonsense
from miner.crawlers.github.plans import Plan
from miner.crawlers.github.reading import Ask, Page, PageSize, Reading, page_of, payload_of, reading
from miner.crawlers.github.repositories import subject_of
from miner.crawlers.interface import Refused

PAGE = Producer(name="github.page")
WALK = Producer(name="github.walk")
_OK, _NOT_MODIFIED = 200, 304
_BLOCKED = (403, 451)
_SORTED = " sort:created-asc"


class Gone(Refused):
    """The repository was there when it was asked about, and its pages are not."""


@dataclass(frozen=True)
class Desk:
    """What a crawl works with.

    Attributes:
        page: pull requests in a page, at most.
    """

    forge: ForgeClient
    blobs: BlobStore
    memo: Memo
    page: int


def pages_of(desk: Desk, repository: Repository) -> list[Fact]:
    """Return the pages that are known of a repository."""
    return desk.memo.known(PAGE, "crawl.page", subject_of(repository.forge_id))


def walks_of(desk: Desk, repository: Repository) -> list[Fact]:
    """Return the walks, searches and checks that are known of a repository."""
    return desk.memo.known(WALK, "crawl.walk", subject_of(repository.forge_id))


def begun_plan(known: Coverage) -> Plan | None:
    """Return the plan of a walk that was cut."""
    return Plan.model_validate(known.begun[0].payload["plan"]) if known.begun else None


def read(desk: Desk, repository: Repository, plan: Plan, known: Coverage, glimpse: Glimpse) -> None:
    """Read all pages of a plan, those of a walk that was cut included, and measure what they came to.

    Raises:
        Gone: the repository is not there any more.
        InfrastructureFault: the forge does not answer; the pages that were read are kept.
    """
    number = known.next_walk
    facts: list[Fact] = []
    cut = begun_plan(known)
    if cut is not None and cut.serves(plan):
        plan, facts, number = cut, list(known.begun), int(known.begun[0].payload["walk"])
    state = reading(plan, [page_of(fact.payload) for fact in facts])
    size = PageSize(desk.page, facts[-1].payload["limit"] if facts else None)
    while (ask := state.ask(size.now)) is not None:
        fact = _measure(desk, repository, plan, (number, len(facts)), partial(_one, desk, repository, ask, size))
        facts.append(fact)
        size.note(int(fact.payload["size"]))
        state.feed(page_of(fact.payload))
    _measure_end(desk, repository, plan, state, number, facts, known, glimpse)


def read_together(desk: Desk, wanted: Sequence[tuple[Repository, Plan, int]]) -> None:
    """Read the first page of several (repository, plan, number of its walk) by one document, for `read` to go on with.

    Those whose repository is not there are left to `read`, and all of them where the page is too heavy.
    """
    asks = [reading(plan).ask(desk.page) for _, plan, _ in wanted]
    chosen = [(*one, ask) for one, ask in zip(wanted, asks, strict=True) if ask is not None]
    variables: dict[str, Any] = {}
    for i, (repository, _, _, ask) in enumerate(chosen):
        variables |= {f"{name}{i}": value for name, value in _variables(repository, ask).items()}
    try:
        reply = desk.forge.graphql(queries.pages([ask.way for *_, ask in chosen]), variables)
    except HeavyPage:
        return
    shared = {"points": reply.points / len(chosen), "requests": reply.requests / len(chosen)}
    for i, (repository, plan, number, ask) in enumerate(chosen):
        part = {"search" if ask.way == "search" else "repository": reply.data.get(f"p{i}")}
        try:
            seen = _seen(desk, repository, ask, part, canonical_json({"data": part}).encode(), shared)
        except Gone:
            continue
        payload = {**seen.payload, "limit": desk.page, "light": False}
        _measure(desk, repository, plan, (number, 0), partial(_given, seen.model_copy(update={"payload": payload})))


def check(desk: Desk, repository: Repository, known: Coverage) -> None:
    """Ask whether anything was touched; where nothing was since the last time, that costs no point.

    https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api#use-conditional-requests-if-appropriate

    Raises:
        Gone: the repository is not there any more.
    """
    last = next((one for one in reversed(known.glimpses) if one.etag), None)
    subject, inputs = subject_of(repository.forge_id), {"walk": known.next_walk}
    run = partial(_check, desk, repository, known.next_walk, last)
    desk.memo.measure(WALK, "crawl.walk", subject, inputs, run)


def _check(desk: Desk, repository: Repository, number: int, last: Glimpse | None) -> Observation:
    params = {"state": "closed", "sort": "updated", "direction": "desc", "per_page": "1"}
    reply = desk.forge.get(f"/repos/{repository.full_name}/pulls", params, etag=last.etag if last else None)
    if reply.status == _NOT_MODIFIED and last is not None:
        newest = last.newest and stamp(last.newest)
    elif reply.status == _OK and isinstance(reply.data, list):
        for row in reply.data:
            _see_identity(repository, (row.get("base") or {}).get("repo") or {}, "id")
        newest = reply.data[0]["updated_at"] if reply.data else None
    else:
        reason = Reason.REPOSITORY_UNAVAILABLE if reply.status in _BLOCKED else Reason.REPOSITORY_GONE
        raise Gone(reason, f"{repository.full_name}: status {reply.status} for its pull requests")
    return Observation(
        payload={"walk": number, "way": "check", "status": reply.status, "newest": newest, "etag": reply.etag},
        measures={"points": reply.points, "requests": reply.requests},
        network=True,
    )


def _measure(desk: Desk, repository: Repository, plan: Plan, place: tuple[int, int], run: Any) -> Fact:
    """Measure a page; the first one of a walk holds its plan."""
    number, position = place
    head: dict[str, Any] = {"walk": number, "page": position}
    inputs = dict(head)
    if position == 0:
        head["plan"] = plan.model_dump(mode="json")

    def observed() -> Observation:
        seen: Observation = run()
        return seen.model_copy(update={"payload": {**head, **seen.payload}})

    return desk.memo.measure(PAGE, "crawl.page", subject_of(repository.forge_id), inputs, observed)


def _given(seen: Observation) -> Observation:
    return seen


def _one(desk: Desk, repository: Repository, ask: Ask, size: PageSize) -> Observation:
    """Ask for a page; one that is too heavy is asked for at half its size, and a single one with shorter lists.

    What the short lists leave out is completed later, as it is for any list that is longer than its page.
    """
    light = False
    while True:
        documents = (
            (queries.PULLS_LIGHT, queries.SEARCH_PULLS_LIGHT) if light else (queries.PULLS, queries.SEARCH_PULLS)
        )
        try:
            reply = desk.forge.graphql(documents[ask.way == "search"], _variables(repository, ask))
        except HeavyPage:
            if not size.halve(ask.size):
                if light:
                    raise
                light = True
            ask = ask.model_copy(update={"size": min(ask.size, size.now)})
            continue
        costs = {"points": reply.points, "requests": reply.requests}
        seen = _seen(desk, repository, ask, reply.data, reply.raw, costs)
        return seen.model_copy(update={"payload": {**seen.payload, "limit": size.now, "light": light}})


def _variables(repository: Repository, ask: Ask) -> dict[str, Any]:
    if ask.window is not None:
        query = merged_in(repository.full_name, ask.window) + _SORTED
        return {"query": query, "first": ask.size, "after": ask.after}
    owner, _, name = repository.full_name.partition("/")
    return {"owner": owner, "name": name, "first": ask.size, "after": ask.after}


def _seen(
    desk: Desk, repository: Repository, ask: Ask, data: Node, raw: bytes, costs: Mapping[str, float]
) -> Observation:
    """Return what a page says as an observation.

    Raises:
        Gone: it says that there is no such repository.
        InfrastructureFault: it makes no sense.
    """
    if ask.way == "walk":
        owner = data.get("repository")
        if owner is None:
            raise Gone(Reason.REPOSITORY_GONE, f"{repository.full_name} is not there any more")
        _see_identity(repository, owner, "databaseId")
        listed, count = owner.get("pullRequests"), "totalCount"
    else:
        listed, count = data.get("search"), "issueCount"
    if not isinstance(listed, Mapping) or not isinstance(listed.get(count), int):
        raise nonsense(f"a page of {repository.full_name} holds no list")
    info = listed.get("pageInfo") or {}
    page = Page(
        after=ask.after,
        window=ask.window,
        count=listed[count],
        rows=len(listed.get("nodes") or ()),
        next=info.get("endCursor") if info.get("hasNextPage") else None,
        pulls=tuple(_pulls(repository, nodes(listed))),
    )
    return Observation(
        payload={"way": ask.way, "size": ask.size, **payload_of(page)},
        blobs={"page": desk.blobs.put(raw)},
        measures={**costs, "size": ask.size},
        network=True,
    )


def _pulls(repository: Repository, found: Iterable[Node]) -> Iterable[tuple[int, str, str]]:
    for node in found:
        own = (node.get("repository") or {}).get("databaseId")
        if own == repository.forge_id and node.get("mergedAt"):
            yield node["number"], node["updatedAt"], node["mergedAt"]


def _see_identity(repository: Repository, node: Node, key: str) -> None:
    if node.get(key) is not None and node[key] != repository.forge_id:
        detail = f"{repository.full_name} is another repository now ({node[key]}, and was {repository.forge_id})"
        raise Gone(Reason.REPOSITORY_GONE, detail)


def _measure_end(
    desk: Desk,
    repository: Repository,
    plan: Plan,
    state: Reading,
    number: int,
    facts: Sequence[Fact],
    known: Coverage,
    glimpse: Glimpse,
) -> None:
    """Measure what a walk or search came to, compared with what the forge's search counts."""
    month = Month.of(plan.month)
    sights = newest_sights(facts)
    found = sum(
        month.holds(sight.merged_at) for sight in {**known.sights, **sights}.values()
    )  # a merge is never undone, so that any version will do

    def run() -> Observation:
        expected, reply = plan.merged, None
        if expected != found:
            reply = desk.forge.graphql(queries.COUNT_PULLS, {"query": merged_in(repository.full_name, month.window)})
            expected = (reply.data.get("search") or {}).get("issueCount")
        return _end(plan, state, number, facts, glimpse, {"expected": expected, "found": found}, reply)

    desk.memo.measure(WALK, "crawl.walk", subject_of(repository.forge_id), {"walk": number}, run)


def _end(
    plan: Plan,
    state: Reading,
    number: int,
    facts: Sequence[Fact],
    glimpse: Glimpse,
    counts: dict[str, Any],
    reply: GraphReply | None,
) -> Observation:
    began = facts[0].observed_at if facts else glimpse.at
    to = max((at for at in (state.to, plan.to, plan.floor) if at is not None), default=began)
    return Observation(
        payload={
            "walk": number,
            "way": plan.way,
            "month": plan.month,
            "floor": plan.floor and stamp(plan.floor),
            "to": stamp(to),
            "began": began.isoformat(),
            "pages": len(facts),
            "passes": state.passes,
            "bounded": state.bounded,
            "missing": state.missing,
            "estimate": plan.points,
            "why": plan.why,
            **counts,
        },
        measures={
            "points": sum(fact.measures.get("points", 0) for fact in facts) + (reply.points if reply else 0),
            "requests": sum(fact.measures.get("requests", 0) for fact in facts) + (reply.requests if reply else 0),
        },
        network=True,
    )
