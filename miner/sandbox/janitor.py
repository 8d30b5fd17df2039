"""Removes what a killed run has left in the engine."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import docker
from docker.errors import NotFound

from miner.core.hashing import hash_of
from miner.sandbox.engine import engine_faults, remove_container
from miner.sandbox.interface import LABEL


def owner_of(ledger_id: str, work: Path) -> str:
    """Return on whose behalf a run makes things in the engine: a copy of a ledger elsewhere is somebody else.

    Args:
        ledger_id: id of the ledger.
        work: the run's folder for large files, which no two runs share.
    """
    return hash_of([ledger_id, str(work.resolve())])[:32]


def clean(client: docker.DockerClient, owner: str) -> int:
    """Remove all containers and volumes of an owner and return how many there were.

    Call it while holding the owner's ledger: then nobody alive uses them.
    """
    removed = stop_boxes(client, owner)
    with engine_faults():
        for volume in client.volumes.list(filters=_of(owner)):
            with suppress(NotFound):
                volume.remove()
            removed += 1
    return removed


def stop_boxes(client: docker.DockerClient, owner: str) -> int:
    """Remove all containers of an owner and return how many there were: what waits for them goes on at once."""
    removed = 0
    with engine_faults():
        for container in client.api.containers(all=True, filters=_of(owner)):
            remove_container(client, container["Id"])
            removed += 1
    return removed


def _of(owner: str) -> dict[str, str]:
    return {"label": f"{LABEL}={owner}"}
