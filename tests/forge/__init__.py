"""A GitHub-shaped server for tests, benchmarks and `swe-miner run --forge-url`.

from forge import Forge, Limits, World
"""

from __future__ import annotations

from forge.exchange import Reply
from forge.gitstore import File
from forge.limits import Limits
from forge.records import Actor, ChangedFile, ClosedEvent, Comment, Commit, Edit, Head, Issue, Pull
from forge.repository import Repo
from forge.samples import sample_project
from forge.scale import Scale, big_world
from forge.server import Forge
from forge.storage import load_world, save_world
from forge.world import World

__all__ = [
    "Actor",
    "ChangedFile",
    "ClosedEvent",
    "Comment",
    "Commit",
    "Edit",
    "File",
    "Forge",
    "Head",
    "Issue",
    "Limits",
    "Pull",
    "Reply",
    "Repo",
    "Scale",
    "World",
    "big_world",
    "load_world",
    "sample_project",
    "save_world",
]
