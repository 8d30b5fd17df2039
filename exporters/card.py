"""The dataset card: `README.md` with the header that the Hugging Face Hub reads (Hub docs, "Dataset Cards")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from exporters.interface import PublicItem, Task
from exporters.lock import ReleaseLock
from exporters.schema import MEASUREMENTS, REJECTED, SCHEMA_VERSION, TABLES, TASKS, UNMEASURED, Table
from miner.core.reasons import Reason
from miner.core.records import State

_TEMPLATE = "card.md.j2"


def card_bytes(lock: ReleaseLock, items: Sequence[PublicItem]) -> bytes:
    """Return the dataset card of a release."""
    environment = Environment(
        loader=PackageLoader("exporters"),
        autoescape=select_autoescape(),  # no HTML here, so nothing is escaped
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(_TEMPLATE).render(_values(lock, items)).encode("utf-8")


def _values(lock: ReleaseLock, items: Sequence[PublicItem]) -> dict[str, Any]:
    tasks = [item.task for item in items if item.task]
    states = Counter(item.decision.state for item in items)
    considered = len(items) + sum(row.count for row in lock.left_out)
    return {
        "name": lock.name,
        "tables": TABLES,
        "filled": _filled(items, states),
        "accepted": states[State.ACCEPTED],
        "rejected": states[State.REJECTED],
        "unmeasured": _unmeasured(states),
        "left_out": lock.left_out,
        "considered": considered,
        "split": _split(items),
        "reasons": _reasons(items),
        "version": lock.versions.get("swe-miner", "unknown"),
        "schema": SCHEMA_VERSION,
        "facts_root": lock.facts_root,
        "policy_hash": lock.policy_hash,
        **_sums(tasks),
    }


def _filled(items: Sequence[PublicItem], states: Counter[State]) -> list[Table]:
    """Return the tables that have rows: the `datasets` library cannot load a split without any."""
    rows = {
        TASKS.name: states[State.ACCEPTED],
        REJECTED.name: states[State.REJECTED],
        MEASUREMENTS.name: sum(len(item.facts) for item in items),
        UNMEASURED.name: _unmeasured(states),
    }
    return [table for table in TABLES if rows[table.name]]


def _unmeasured(states: Counter[State]) -> int:
    return states[State.FAULTED] + states[State.PENDING]


def _split(items: Sequence[PublicItem]) -> list[tuple[str, str, int, int, int]]:
    """Return source, month, and how many were accepted, rejected and are unmeasured; what has no month comes last."""
    states: dict[tuple[str, str], Counter[State]] = {}
    for item in items:
        states.setdefault((item.source, item.month or ""), Counter())[item.decision.state] += 1
    rows = sorted(states.items(), key=lambda row: (row[0][0], row[0][1] == "", row[0][1]))
    return [
        (source, month or "-", found[State.ACCEPTED], found[State.REJECTED], _unmeasured(found))
        for (source, month), found in rows
    ]


def _reasons(items: Sequence[PublicItem]) -> list[tuple[Reason, int]]:
    codes = (item.decision.code for item in items if item.decision.state is State.REJECTED)
    counts = Counter(code for code in codes if code is not None)
    order = list(Reason)
    return sorted(counts.items(), key=lambda pair: order.index(pair[0]))


def _sums(tasks: Sequence[Task]) -> dict[str, Any]:
    days = sorted(task.candidate.created_at.astimezone(UTC).date().isoformat() for task in tasks)
    return {
        "first": days[0] if days else "",
        "last": days[-1] if days else "",
        "fail_to_pass": sum(len(task.verdict.fail_to_pass) for task in tasks),
        "pass_to_pass": sum(len(task.verdict.pass_to_pass) for task in tasks),
        "image_bytes": sum(layer.size for layer in {layer for task in tasks for layer in task.environment.layers}),
    }
