"""A pilot: a sample of a month's candidates goes through all stages, and says what all of them would come to.

Its facts are kept: the whole run measures none of them again. It writes no release.

Strata are repositories by their number of candidates (1, 2-4, 5-16, more). Candidates of one repository share
environments, and so succeed or fail together; without strata a few busy repositories would stand for all. The number is
known for every source when discovery is done, and asks for nothing. Within a stratum candidates are drawn evenly over
repositories.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from installers.attempt import ATTEMPT
from miner.core.hashing import hash_of
from miner.core.records import Decision, Fact, State
from miner.crawlers.github.source import GithubSource
from miner.jobs.context import Context
from miner.jobs.discovery import Discovered, discover, items_of, shuffled
from miner.jobs.done import Done
from miner.jobs.estimate import Extrapolation, Interval, mean, share
from miner.jobs.mining import mine_all
from miner.jobs.watch import Watch

MOST_UNITS = 200
_GB = 1e9


def fly(context: Context, units: Sequence[str], watch: Watch) -> Done:
    """Take a sample through all stages, and extrapolate."""
    settings = context.settings
    looked_into = shuffled(units, str, settings.mine.seed)[:MOST_UNITS]
    if isinstance(context.source, GithubSource):
        context.source.focus(looked_into)
    found = discover(context, looked_into, watch)
    items = {context.source.subject(item): item for item in items_of(context, found)}
    strata = stratify(items)
    chosen = draw(strata, settings.mine.pilot or len(items), settings.mine.seed)
    decisions = mine_all(context, [items[name] for names in chosen.values() for name in names], watch)
    return Done(len(items), decisions, pilot=extrapolate(context, len(units), found, strata, decisions))


def repository_of(instance_id: str) -> str:
    """Return what an instance id says of the repository."""
    return instance_id.rpartition("-")[0]


def stratify(names: Iterable[str]) -> dict[str, list[str]]:
    """Return candidates by stratum."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[repository_of(name)].append(name)
    strata: dict[str, list[str]] = defaultdict(list)
    for group in groups.values():
        strata[_size_class(len(group))].extend(group)
    return dict(sorted(strata.items()))


def _size_class(number: int) -> str:
    for low, high in ((1, 1), (2, 4), (5, 16)):
        if number <= high:
            return f"repositories with {low}" if low == high else f"repositories with {low}-{high}"
    return "repositories with more than 16"


def allocate(sizes: Mapping[str, int], number: int) -> dict[str, int]:
    """Return how many to take of each stratum: in proportion, at least one of each where that is possible."""
    total = sum(sizes.values())
    number = min(number, total)
    if number <= len(sizes):
        largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:number]
        return {name: int(name in largest) for name in sizes}
    exact = {name: number * size / total for name, size in sizes.items()}
    taken = {name: max(1, math.floor(part)) for name, part in exact.items()}
    while sum(taken.values()) > number:
        name = max((one for one in taken if taken[one] > 1), key=lambda one: (taken[one] - exact[one], one))
        taken[name] -= 1
    while sum(taken.values()) < number:
        name = max((one for one in taken if taken[one] < sizes[one]), key=lambda one: (exact[one] - taken[one], one))
        taken[name] += 1
    return taken


def draw(strata: Mapping[str, Sequence[str]], number: int, seed: int) -> dict[str, list[str]]:
    """Return a sample of each stratum, evenly over its repositories; the same for the same seed and names."""
    taken = allocate({name: len(found) for name, found in strata.items()}, number)
    return {name: _evenly(found, taken[name], seed) for name, found in strata.items()}


def _evenly(names: Sequence[str], number: int, seed: int) -> list[str]:
    """Return every k-th of the names, put in a seeded order of repositories, from a seeded start."""
    line = sorted(names, key=lambda name: (hash_of([seed, repository_of(name)]), hash_of([seed, name])))
    start = int(hash_of([seed, "start"])[:8], 16) / 16**8
    return [line[int((place + start) * len(line) / number)] for place in range(number)]


def extrapolate(
    context: Context,
    units: int,
    found: Sequence[Discovered],
    strata: Mapping[str, Sequence[str]],
    decisions: Sequence[Decision],
) -> Extrapolation:
    """Return what all would come to. A candidate that met a fault says nothing, and is left out."""
    run = context.settings.run
    of_stratum = {name: stratum for stratum, names in strata.items() for name in names}
    judged = [one for one in decisions if one.state in (State.ACCEPTED, State.REJECTED)]
    sizes = {stratum: len(names) for stratum, names in strata.items()}
    taken = Counter(of_stratum[one.instance_id] for one in judged)
    hits = Counter(of_stratum[one.instance_id] for one in judged if one.state is State.ACCEPTED)
    costs = _costs(context, judged)
    candidates = _over_units(units, [len(one.found.items) for one in found if one.found])
    hours = {
        "mining": _by_stratum(costs, of_stratum, sizes, "seconds").times(candidates).scaled(1 / run.workers / 3600),
        "crawl": _over_units(units, [one.seconds for one in found]).scaled(1 / run.crawl_workers / 3600),
    }
    stages = ("source", "install", "validate")
    return Extrapolation(
        units=units,
        units_seen=len(found),
        candidates=candidates,
        sampled={stratum: (taken[stratum], size) for stratum, size in sizes.items()},
        seconds={stage: round(_by_stratum(costs, of_stratum, sizes, stage).estimate, 1) for stage in stages},
        tasks=share(hits, taken, sizes).times(candidates),
        hours=hours["mining"].plus(hours["crawl"]),
        disk_gb=_by_stratum(costs, of_stratum, sizes, "bytes").times(candidates).scaled(1 / _GB),
        points=_over_units(units, [one.points for one in found]),
        money=_by_stratum(costs, of_stratum, sizes, "money").times(candidates),
        assumptions=_assumptions(units, len(found), len(decisions) - len(judged)),
    )


def _by_stratum(
    costs: Mapping[str, Mapping[str, float]], of_stratum: Mapping[str, str], sizes: Mapping[str, int], what: str
) -> Interval:
    values: dict[str, list[float]] = defaultdict(list)
    for name, cost in costs.items():
        values[of_stratum[name]].append(cost.get(what, 0.0))
    return mean(values, sizes)


def _over_units(units: int, values: Sequence[float]) -> Interval:
    """Return the sum over all units, by those that were looked into."""
    return mean({"all": values}, {"all": units}).scaled(units)


def _costs(context: Context, decisions: Iterable[Decision]) -> dict[str, dict[str, float]]:
    """Return what each candidate took: seconds by stage, bytes of layers; what several share counts for the first."""
    seen: set[str] = set()
    costs: dict[str, dict[str, float]] = {}
    for decision in decisions:
        cost: dict[str, float] = defaultdict(float)
        facts = [context.ledger.get(name) for name in decision.trail if name not in seen]
        seen.update(decision.trail)
        for fact in (fact for fact in facts if fact is not None):
            seconds = fact.measures.get("wall_s", 0.0)
            cost[fact.key.kind.partition(".")[0]] += seconds
            cost["seconds"] += seconds
            cost["bytes"] += _layer_bytes(fact)
            cost["money"] += fact.measures.get("money", 0.0) if fact.key.kind == ATTEMPT else 0.0
        costs[decision.instance_id] = cost
    return costs


def _layer_bytes(fact: Fact) -> float:
    layer = fact.payload.get("layer")
    return float(layer["size"]) if isinstance(layer, dict) else 0.0


def _assumptions(units: int, seen: int, faulted: int) -> tuple[str, ...]:
    said = [
        "intervals of 95 %; strata are repositories by their number of candidates",
        "hours are those of this machine with its present workers; whoever shares an environment makes them fewer",
        "disk counts the layers of images alone, each once",
        "money is what the attempts of the sample cost when their models were asked, whatever the caps",
    ]
    if seen < units:
        said.insert(1, f"{seen} of {units} repositories were looked into: a seeded sample")
    if faulted:
        said.append(f"{faulted} of the sample met a fault and are left out")
    return tuple(said)
