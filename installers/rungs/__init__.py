"""The rungs of the ladder, by name; `measure.ladder.order` says which are climbed, and in which order."""

from __future__ import annotations

from installers.interface import Rung
from installers.rungs.declared import declared
from installers.rungs.memory import memory

RUNGS: dict[str, Rung] = {"declared": declared, "memory": memory}
