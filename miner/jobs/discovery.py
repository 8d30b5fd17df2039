"""Discovery: what the source holds, unit by unit, noted in the ledger; what comes out is what to mine, shuffled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from miner.core.errors import InfrastructureFault
from miner.core.hashing import hash_of
from miner.core.ledger import fact_id
from miner.core.memo import Emit
from miner.core.reasons import Stage
from miner.core.records import Fact, Intake
from miner.core.settings import Mine
from miner.crawlers.interface import Found, Item
from miner.jobs.context import Context
from miner.jobs.faults import fault_from, infrastructure_fault
from miner.jobs.rounds import in_rounds
from miner.jobs.watch import Watch
from validators.interface import Fault

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Discovered:
    """What one unit came to, or the fault that it met.

    Attributes:
        negatives: facts of this run that it was refused by, and that depended on a network service.
        seconds: how long it took to measure what it rests on, in this run or in earlier ones.
        points: what that cost.
    """

    unit: str
    found: Found[Any] | None = None
    fault: Fault | None = None
    error: InfrastructureFault | None = None
    negatives: tuple[Fact, ...] = ()
    seconds: float = 0.0
    points: float = 0.0

    @property
    def name(self) -> str:
        """The unit."""
        return self.unit

    @property
    def group(self) -> str:
        """The unit is a repository."""
        return self.unit

    def in_doubt(self) -> Discovered:
        """Return it as it is: a later run looks into every unit again."""
        return self

    def suspected(self, fault: InfrastructureFault) -> Discovered:
        """Return it as faulted: what it was refused by says nothing."""
        met = Fault(code=fault.reason, stage=Stage.DISCOVER, detail=f"suspect: {fault}")
        return replace(self, found=None, fault=met, error=fault, negatives=())


def discover(context: Context, units: Sequence[str], watch: Watch) -> list[Discovered]:
    """Look into all units and return what those that were reached came to.

    Those of a month are shuffled by the run's seed: a run that is cut leaves a sample, not the head of a list. A list
    that a person wrote keeps its order.
    """
    settings = context.settings
    seen: dict[str, Discovered] = {}
    watch.report.begin("discover", len(units))
    rounds = in_rounds(
        context,
        watch,
        partial(_look_into, context),
        order(units, str, settings.mine),
        context.store,
        name=str,
        workers=settings.run.crawl_workers,
    )
    with closing(rounds) as results:
        for one in results:
            intake = _intake(one, settings.mine.month)
            context.ledger.add_intake(intake, context.run_id)
            if one.found is not None:
                context.register(one.found.items, month=settings.mine.month, unit_id=one.found.unit_id)
            seen[one.unit] = one
            watch.report.discovered(intake)
    return list(seen.values())


def items_of(context: Context, discovered: Iterable[Discovered]) -> list[Item]:
    """Return what to mine, each once, in the order in which it is to be mined."""
    items = {context.source.subject(item): item for one in discovered if one.found for item in one.found.items}
    return order(list(items.values()), context.source.subject, context.settings.mine)


def order(things: Sequence[Thing], name: Callable[[Thing], str], settings: Mine) -> list[Thing]:
    """Return things in the order in which they are worked on."""
    return list(things) if settings.month is None else shuffled(things, name, settings.seed)


def shuffled(things: Sequence[Thing], name: Callable[[Thing], str], seed: int) -> list[Thing]:
    """Return things in an order that depends on a seed and on their names alone."""
    return sorted(things, key=lambda thing: hash_of([seed, name(thing)]))


def _look_into(context: Context, unit: str, emit: Emit) -> Discovered:
    memo = context.memo(emit)
    try:
        found = context.source.discover(unit, memo)
    except Exception as caught:  # noqa: BLE001 - a bug must not end the other units' crawl
        fault = fault_from(caught, Stage.DISCOVER, context.settings)
        return Discovered(unit, fault=fault, error=infrastructure_fault(caught))
    seconds, points = (sum(fact.measures.get(name, 0.0) for fact in memo.used) for name in ("wall_s", "points"))
    return Discovered(
        unit, found=found, negatives=_negatives(context, found, memo.used), seconds=seconds, points=points
    )


def _negatives(context: Context, found: Found[Any], used: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return what a unit was refused by just now, if a network service said so."""
    new = tuple(fact for fact in used if not fact.ok and fact.network and fact_id(fact.key) in context.new_facts)
    return new if found.refused and any(fact.outcome == found.refused.reason for fact in new) else ()


def _intake(seen: Discovered, month: str | None) -> Intake:
    found = seen.found
    if found is None:
        fault = seen.fault
        return Intake(
            unit=seen.unit, month=month, fault=fault.code if fault else None, detail=fault.detail if fault else ""
        )
    return Intake(
        unit=seen.unit,
        unit_id=found.unit_id,
        month=month,
        merged=found.merged,
        linked=len(found.items),
        unlinked=found.unlinked,
        refused=found.refused.reason if found.refused else None,
        detail=found.refused.detail if found.refused else "",
        notes=found.notes,
    )
