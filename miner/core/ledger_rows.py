"""Between the rows of the ledger and records: pure. Statements that are asked all the time are made once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Row, Select, bindparam, select

from miner.core import tables as t
from miner.core.hashing import canonical_json, hash_of
from miner.core.records import Decision, Evidence, Fact, FactKey, Finding, State

_KEY = tuple(FactKey.model_fields)
_JSON = ("payload", "blobs", "measures", "logs")
_FINDING = ("rule", "stage", "outcome", "code", "value", "detail", "evidence")
_SHARED = 4096


def fact_id(key: FactKey) -> str:
    """Return the id of a fact: the hash of its key."""
    return hash_of(key)


def content_hash(fact: Fact) -> str:
    """Return the hash of what a fact says, without its measurements."""
    return hash_of({"key": fact.key, "outcome": fact.outcome, "payload": fact.payload, "blobs": fact.blobs})


def row_of_fact(fact: Fact, run_id: str) -> dict[str, Any]:
    """Return the row that a fact becomes."""
    return {
        "fact_id": fact_id(fact.key),
        **fact.key.model_dump(),
        "observed_at": fact.observed_at.isoformat(),
        "outcome": fact.outcome,
        "network": fact.network,
        "content_hash": content_hash(fact),
        **{name: canonical_json(getattr(fact, name)) for name in _JSON},
        "run_id": run_id,
    }


def rows_of_findings(run_id: str, instance_id: str, findings: Iterable[Finding]) -> Iterable[dict[str, Any]]:
    """Yield the rows that a candidate's findings become, in their order."""
    for position, finding in enumerate(findings):
        yield {
            "run_id": run_id,
            "instance_id": instance_id,
            "position": position,
            **{name: getattr(finding, name) for name in _FINDING},
            "evidence": canonical_json(list(finding.evidence)),
        }


def row_of_decision(run_id: str, policy_hash: str, decision: Decision) -> dict[str, Any]:
    """Return the row that a decision becomes."""
    return {
        "run_id": run_id,
        "policy_hash": policy_hash,
        **decision.model_dump(exclude={"evidence", "trail"}),
        "evidence": canonical_json(list(decision.evidence)),
        "trail": canonical_json(list(decision.trail)),
    }


def fact_of(row: Row[Any]) -> Fact:
    """Return the fact of a row."""
    return Fact(
        key=FactKey(**{name: getattr(row, name) for name in _KEY}),
        observed_at=datetime.fromisoformat(row.observed_at),
        outcome=row.outcome,
        network=row.network,
        **{name: json.loads(getattr(row, name)) for name in _JSON},
    )


def finding_of(row: Row[Any]) -> Finding:
    """Return the finding of a row; equal ones are one and the same: thousands of candidates share most of them."""
    return _finding(*(getattr(row, name) for name in _FINDING))


@lru_cache(_SHARED)
def _finding(*values: Any) -> Finding:
    named = dict(zip(_FINDING, values, strict=True))
    return Finding(**{**named, "evidence": _evidence(named["evidence"])})


def decision_of(row: Row[Any]) -> Decision:
    """Return the decision of a row."""
    names = Decision.model_fields.keys() - {"evidence", "state", "trail"}
    values = {name: getattr(row, name) for name in names}
    evidence, trail = _evidence(row.evidence), tuple(json.loads(row.trail))
    return Decision(**values, state=State(row.state), evidence=evidence, trail=trail)


def _evidence(text: str) -> tuple[Evidence, ...]:
    return tuple(Evidence.model_validate(item) for item in json.loads(text))


def _find(*, of_inputs: bool, standing: bool) -> Select[Any]:
    """Return the statement that finds the facts of a key; its parameters are the key's own names."""
    names = ("kind", "subject", *(("input_hash",) if of_inputs else ()), "producer")
    query = select(t.facts).where(*(t.facts.c[name] == bindparam(name) for name in names))
    query = query.where(t.facts.c.epoch <= bindparam("epoch"))
    if standing:
        query = query.where(t.facts.c.fact_id.not_in(select(t.tombstones.c.fact_id)))
    order = (t.facts.c.epoch, t.facts.c.ordinal) if of_inputs else (t.facts.c.observed_at, t.facts.c.fact_id)
    return query.order_by(*order)


FIND = {
    (of_inputs, standing): _find(of_inputs=of_inputs, standing=standing)
    for of_inputs in (True, False)
    for standing in (True, False)
}
"""(whether the key has an input hash, whether tombstoned facts are left out) -> statement."""
INSERT_CANDIDATE = t.candidates.insert()
UPDATE_CANDIDATE = t.candidates.update().where(t.candidates.c.instance_id == bindparam("of_candidate"))
INSERT_FACT = t.facts.insert()
INSERT_FINDING = t.findings.insert()
INSERT_DECISION = t.decisions.insert()
FORGET = tuple(
    table.delete().where(table.c.run_id == bindparam("of_run"), table.c.instance_id == bindparam("of_candidate"))
    for table in (t.findings, t.decisions)
)
"""Statements that take away what a run has decided on a candidate before."""
