"""What the rungs of the installer's ladder answer where they have no recipe and no environment."""

from __future__ import annotations

from miner.core.reasons import Reason
from miner.core.records import Record


class Refusal(Record):
    """Why a rung has no recipe for a tree: a property of the project, never a fault of the infrastructure."""

    reason: Reason
    detail: str


class TooLarge(Exception):
    """An installation left more behind than is kept."""
