"""Discovery: what the source holds, unit by unit, noted in the ledger; what comes out is what to mine, shuffled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from miner.core.errors import InfrastructureFault
from miner.core.hashing import hash_of
from miner.core.memo import Emit
from miner.core.reasons import Stage
from miner.core.records import Intake
from miner.core.settings import Mine
from miner.crawlers.interface import Found, Item
from miner.engines.local import LocalEngine
from miner.jobs.breakers import Breaker
from miner.jobs.context import Context
from miner.jobs.faults import fault_from, infrastructure_fault
from miner.jobs.progress import Reporter
from validators.interface import Fault

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Discovered:
    """What one unit came to, or the fault that it met."""

    unit: str
    found: Found[Any] | None = None
    fault: Fault | None = None
    error: InfrastructureFault | None = None


def discover(context: Context, units: Sequence[str], report: Reporter) -> list[Item]:
    """Look into all units and return their items in the order in which they are to be mined.

    Those of a month are shuffled by the run's seed: a run that is cut leaves a sample, not the head of a list. A list
    that a person wrote keeps its order.
    """
    settings = context.settings
    engine: LocalEngine[str, Discovered] = LocalEngine(settings.run.crawl_workers, context.stop, context.abort)
    breaker = Breaker()
    items: list[Item] = []
    with closing(engine.map(partial(_look_into, context), order(units, str, settings.mine), context.store)) as all_seen:
        for seen in all_seen:
            intake = _intake(seen, settings.mine.month)
            context.ledger.add_intake(intake, context.run_id)
            if seen.found is not None:
                context.register(seen.found.items, month=settings.mine.month, unit_id=seen.found.unit_id)
                items.extend(seen.found.items)
            report.discovered(intake)
            breaker.note(seen.error)
    return order(items, context.source.subject, settings.mine)


def order(things: Sequence[Thing], name: Callable[[Thing], str], settings: Mine) -> list[Thing]:
    """Return things in the order in which they are worked on, which depends on the seed and on their names alone."""
    if settings.month is None:
        return list(things)
    return sorted(things, key=lambda thing: hash_of([settings.seed, name(thing)]))


def _look_into(context: Context, unit: str, emit: Emit) -> Discovered:
    try:
        return Discovered(unit, found=context.source.discover(unit, context.memo(emit)))
    except Exception as caught:  # noqa: BLE001 - a bug must not end the other units' crawl
        fault = fault_from(caught, Stage.DISCOVER, context.settings)
        return Discovered(unit, fault=fault, error=infrastructure_fault(caught))


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
