"""The ledger's tables. Measured values that rules compare sit in typed columns; times are ISO texts in UTC."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

schema_version = Table("schema_version", metadata, Column("version", Integer, primary_key=True))

identity = Table("identity", metadata, Column("ledger_id", String(32), primary_key=True))

runs = Table(
    "runs",
    metadata,
    Column("run_id", String(40), primary_key=True),
    Column("command", Text, nullable=False),
    Column("settings_hash", String(64), nullable=False),
    Column("settings", Text, nullable=False),
    Column("policy_hash", String(64), nullable=False),
    Column("policy", Text, nullable=False),
    Column("versions", Text, nullable=False),
    Column("started_at", String(40), nullable=False),
    Column("ended_at", String(40)),
    Column("status", String(16), nullable=False),
)

candidates = Table(
    "candidates",
    metadata,
    Column("instance_id", String(255), primary_key=True),
    Column("source", String(32), nullable=False, index=True),
    Column("origin", Text, nullable=False),
    Column("visibility", String(16), nullable=False),
    Column("first_run", String(40), ForeignKey("runs.run_id"), nullable=False),
    Column("month", String(7), index=True),
    Column("unit_id", String(32), nullable=False, server_default=""),
)

intake = Table(
    "intake",
    metadata,
    Column("run_id", String(40), ForeignKey("runs.run_id"), primary_key=True),
    Column("unit", String(255), primary_key=True),
    Column("unit_id", String(32), nullable=False),
    Column("month", String(7)),
    Column("merged", Integer, nullable=False),
    Column("linked", Integer, nullable=False),
    Column("unlinked", Integer, nullable=False),
    Column("refused", String(64)),
    Column("fault", String(64)),
    Column("detail", Text, nullable=False),
    Column("notes", Text, nullable=False),
    Index("ix_intake_month", "month", "unit"),
)

facts = Table(
    "facts",
    metadata,
    Column("fact_id", String(64), primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("subject", String(255), nullable=False),
    Column("input_hash", String(64), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("producer", String(64), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("observed_at", String(40), nullable=False),
    Column("outcome", String(64), nullable=False),
    Column("network", Boolean, nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("payload", Text, nullable=False),
    Column("blobs", Text, nullable=False),
    Column("measures", Text, nullable=False),
    Column("logs", Text, nullable=False),
    Column("run_id", String(40), ForeignKey("runs.run_id"), nullable=False),
    UniqueConstraint("kind", "subject", "input_hash", "ordinal", "producer", "epoch", name="uq_fact_key"),
    Index("ix_facts_subject", "subject", "kind"),
)

tombstones = Table(
    "tombstones",
    metadata,
    Column("fact_id", String(64), ForeignKey("facts.fact_id"), primary_key=True),
    Column("why", Text, nullable=False),
    Column("at", String(40), nullable=False),
)

faults = Table(
    "faults",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("run_id", String(40), ForeignKey("runs.run_id"), nullable=False),
    Column("instance_id", String(255), nullable=False, index=True),
    Column("reason", String(64), nullable=False),
    Column("message", Text, nullable=False),
    Column("at", String(40), nullable=False),
)

findings = Table(
    "findings",
    metadata,
    Column("run_id", String(40), ForeignKey("runs.run_id"), primary_key=True),
    Column("instance_id", String(255), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("rule", String(64), nullable=False),
    Column("stage", String(32), nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("code", String(64)),
    Column("value", Float),
    Column("detail", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Index("ix_findings_rule", "rule", "value"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("run_id", String(40), ForeignKey("runs.run_id"), primary_key=True),
    Column("instance_id", String(255), primary_key=True),
    Column("state", String(16), nullable=False),
    Column("stage", String(32), nullable=False),
    Column("code", String(64)),
    Column("sentence", Text, nullable=False),
    Column("final", Boolean, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("trail", Text, nullable=False),
    Column("policy_hash", String(64), nullable=False),
    Index("ix_decisions_state", "state", "code"),
)

spending = Table(
    "spending",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("run_id", String(40), ForeignKey("runs.run_id"), nullable=False),
    Column("month", String(7), nullable=False, index=True),
    Column("repository", String(255), nullable=False),
    Column("model", String(255), nullable=False),
    Column("at", String(40), nullable=False),
    Column("bound", BigInteger, nullable=False),
    Column("money", BigInteger),
    Index("ix_spending_run", "run_id", "repository"),
)
"""Requests to language models, in nano-dollars: their bounds, and what they have cost once that is known."""
