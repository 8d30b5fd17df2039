"""Documents that are generated from the tables in the code."""

from __future__ import annotations

from miner.core.reasons import MEANINGS, Reason, Stage

_INTRO = """# Reasons

Every rejection and every fault has one of these codes. A code never changes its meaning. Faults of the infrastructure
say nothing about a task: they are retried and reported, never counted as rejections.

This page is generated: `swe-miner docs reasons > docs/reasons.md`.
"""


def reasons_page() -> str:
    """Return `docs/reasons.md`."""
    parts = [_INTRO]
    for stage in Stage:
        rows = [f"| `{reason}` | {MEANINGS[reason][1]} |" for reason in Reason if reason.stage is stage]
        parts.append("\n".join([f"## {stage}", "", "| code | meaning |", "|---|---|", *rows, ""]))
    return "\n".join(parts)
