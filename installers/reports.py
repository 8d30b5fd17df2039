"""What a fact about pytest says, read back from its blobs: the outcome of the run, and the text that it printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from miner.core.blobs import BlobStore
from miner.core.records import Fact, RunOutcome
from miner.sandbox.outcomes import read_run

_PYTEST = "events"


def outcome(payload: Mapping[str, Any], logs: Mapping[str, str], blobs: BlobStore, prefix: str = "") -> RunOutcome:
    """Return what pytest reported in one box; an outcome that did not start where no step came to it.

    Args:
        payload: of an observation of `miner.sandbox.runner`.
        logs: of the same.
        blobs: hold the logs.
        prefix: before the names of this box's logs.
    """
    steps = {step["name"]: step for step in payload["steps"]}
    ended = payload["ended"]
    report, log = logs.get(f"{prefix}{_PYTEST}.jsonl"), logs.get(prefix + _PYTEST)
    return read_run(
        blobs.get(report) if report is not None else b"",
        log=blobs.get_text(log) if log is not None else "",
        exit_status=steps[_PYTEST]["exit_code"] if _PYTEST in steps else None,
        limit=steps[ended]["limit"] if ended is not None else None,
        truncated=bool(payload["reports_cut"]),
    )


def log_digest(fact: Fact) -> str | None:
    """Return the digest of what the last step of a box printed: pytest, or the step that ended the box before it."""
    return fact.logs.get(fact.payload["ended"] or _PYTEST if "ended" in fact.payload else "log")


def log_of(fact: Fact, blobs: BlobStore) -> str:
    """Return what the last step of a box printed, "" where nothing is kept of it."""
    digest = log_digest(fact)
    return blobs.get_text(digest) if digest is not None else ""
