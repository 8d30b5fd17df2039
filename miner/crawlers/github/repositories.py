"""Which repositories there are to crawl, and what the forge says of each: one fact `crawl.repository` for a name.

Identity is the forge's numeric id: names are aliases, and two names of one id are one repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from miner.core.blobs import BlobStore
from miner.core.hashing import canonical_json
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, Observation, Producer
from miner.crawlers.github import queries
from miner.crawlers.github.client import ForgeClient, GraphReply, HeavyPage
from miner.crawlers.github.coverage import Glimpse
from miner.crawlers.github.month import Month, merged_in, moment, touched_since
from miner.crawlers.github.pages import Node, nodes
from miner.crawlers.github.plans import Counts
from miner.crawlers.interface import negative

REPOSITORY = Producer(name="github.repository")
IDENTITY = Producer(name="github.identity")


def measure_repositories(
    names: Iterable[str], month: Month, forge: ForgeClient, memo: Memo, blobs: BlobStore
) -> Iterator[Fact]:
    """Yield what the forge says of each name for a month: many are asked for at once, known ones not again."""
    waiting: dict[str, Fact | None] = {}
    unknown: list[str] = []
    for name in names:
        waiting[name] = memo.peek(REPOSITORY, "crawl.repository", name, {"month": month.name})
        if waiting[name] is None:
            unknown.append(name)
        if not unknown or len(unknown) == queries.REPOSITORIES_AT_ONCE:
            yield from _measured(waiting, unknown, month, forge, memo, blobs)
            waiting, unknown = {}, []
    yield from _measured(waiting, unknown, month, forge, memo, blobs)


def _measured(
    facts: dict[str, Fact | None],
    unknown: Sequence[str],
    month: Month,
    forge: ForgeClient,
    memo: Memo,
    blobs: BlobStore,
) -> Iterator[Fact]:
    asked = _ask(unknown, month, forge)
    for name, fact in facts.items():
        run = partial(_observation, asked.get(name, {}), blobs)
        yield fact or memo.measure(REPOSITORY, "crawl.repository", name, {"month": month.name}, run)


def repository_fact(name: str, month: Month, forge: ForgeClient, memo: Memo, blobs: BlobStore) -> Fact:
    """Return what the forge says of one name."""
    return next(measure_repositories([name], month, forge, memo, blobs))


def name_at_first_sight(repository_id: int, name: str, memo: Memo) -> str:
    """Return the name that a repository had when it was first seen: it stands in instance ids ever after."""
    fact = memo.measure(
        IDENTITY,
        "crawl.identity",
        subject_of(repository_id),
        {},
        lambda: Observation(payload={"repository_id": repository_id, "full_name": name}),
    )
    return str(fact.payload["full_name"])


def subject_of(repository_id: int) -> str:
    """Return the subject of a repository's crawl facts."""
    return f"repo-{repository_id}"


def counts_of(fact: Fact) -> Counts:
    """Return what a fact of a repository counts."""
    last = next(nodes(fact.payload["repository"].get("lastMerged")), None)
    newest = None if last is None else moment(last["updatedAt"])
    return Counts(
        glimpse=Glimpse(at=fact.observed_at, newest=newest),
        merged=fact.payload["merged"],
        touched=fact.payload["touched"],
    )


def ids_of_names(names: Sequence[str], forge: ForgeClient) -> dict[str, int]:
    """Return the ids of the repositories that names lead to now, for those that lead to one."""
    found: dict[str, int] = {}
    for start in range(0, len(names), queries.IDENTITIES_AT_ONCE):
        batch = names[start : start + queries.IDENTITIES_AT_ONCE]
        reply = forge.graphql(queries.identities(batch), _names(batch))
        for i, name in enumerate(batch):
            node = reply.data.get(f"r{i}")
            if node is not None and node.get("databaseId") is not None:
                found[name] = int(node["databaseId"])
    return found


def _names(names: Sequence[str]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for i, full_name in enumerate(names):
        variables[f"o{i}"], _, variables[f"n{i}"] = full_name.partition("/")
    return variables


def _ask(names: Sequence[str], month: Month, forge: ForgeClient) -> dict[str, dict[str, Any]]:
    """Ask for names; those that were renamed are counted once more by their new name, which the search wants."""
    found = _ask_once(dict(zip(names, names, strict=True)), month, forge)
    renamed = {name: said for name, answer in found.items() if (said := _other_name(name, answer)) is not None}
    for name, answer in _ask_once(renamed, month, forge).items():
        measures = {key: found[name]["measures"][key] + value for key, value in answer["measures"].items()}
        found[name] = {**answer, "measures": measures}
    return found


def _other_name(name: str, answer: Node) -> str | None:
    node = answer["repository"]
    return None if node is None or node["nameWithOwner"].lower() == name else str(node["nameWithOwner"])


def _ask_once(names: dict[str, str], month: Month, forge: ForgeClient) -> dict[str, dict[str, Any]]:
    """Ask for the values of a mapping, and return what is said under its keys."""
    if not names:
        return {}
    variables = _names(list(names.values()))
    for i, full_name in enumerate(names.values()):
        variables[f"m{i}"] = merged_in(full_name, month.window)
        variables[f"u{i}"] = touched_since(full_name, month.start)
    try:
        reply = forge.graphql(queries.repositories(names), variables)
    except HeavyPage:
        if len(names) == 1:
            raise
        pairs, half = list(names.items()), len(names) // 2
        return _ask_once(dict(pairs[:half]), month, forge) | _ask_once(dict(pairs[half:]), month, forge)
    return {name: _answer(name, i, len(names), reply) for i, name in enumerate(names)}


def _answer(name: str, i: int, of: int, reply: GraphReply) -> dict[str, Any]:
    own = {f"r{i}", f"m{i}", f"u{i}"}
    return {
        "asked": name,
        "repository": reply.data.get(f"r{i}"),
        "merged": (reply.data.get(f"m{i}") or {}).get("issueCount"),
        "touched": (reply.data.get(f"u{i}") or {}).get("issueCount"),
        "errors": [error for error in reply.errors if own & {str(part) for part in error.get("path") or ()}],
        "measures": {"points": round(reply.points / of, 3), "requests": round(reply.requests / of, 3)},
    }


def _observation(answer: dict[str, Any], blobs: BlobStore) -> Observation:
    measures, said = answer["measures"], {key: value for key, value in answer.items() if key != "measures"}
    if said["repository"] is None:
        types = {str(error.get("type")) for error in said["errors"]}
        words = "; ".join(str(error.get("message")) for error in said["errors"]) or "the forge shows nothing"
        reason = Reason.REPOSITORY_UNAVAILABLE if "FORBIDDEN" in types else Reason.REPOSITORY_GONE
        seen = negative(reason, f"{said['asked']}: {words}", network=True)
        return seen.model_copy(update={"payload": {**said, **seen.payload}, "measures": measures})
    digest = blobs.put_text(canonical_json(said))
    return Observation(payload=said, blobs={"repository": digest}, measures=measures, network=True)
