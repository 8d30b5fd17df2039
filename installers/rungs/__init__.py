"""The rungs of the ladder, by name; `measure.ladder.order` says which are climbed, and in which order."""

from __future__ import annotations

from installers.interface import Rung
from installers.rungs.agent import agent
from installers.rungs.ci import ci
from installers.rungs.declared import declared
from installers.rungs.memory import memory
from installers.rungs.repair import repair
from installers.rungs.structured import structured

RUNGS: dict[str, Rung] = {
    "declared": declared,
    "ci": ci,
    "memory": memory,
    "repair": repair,
    "structured": structured,
    "agent": agent,
}
