"""The disk of a run: between candidates goes what can be had again, before it all goes in the middle of one."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import docker
import structlog

from installers.eviction import GB, Evicted, evict, needed, regained
from installers.ladder import environment_of
from miner.core.blobs import BlobStore
from miner.core.ledger import Ledger
from miner.core.records import Environment, State

_KINDS = ("interpreter", "ground", "wheel", "env", "tree", "project")
"""Kinds of facts that may hold a layer or a wheel, "install." aside."""
_log = structlog.get_logger()
_EVERY_S = 300.0
_PARTS = ("blobs/*/*.part", "downloads/*/.part-*", "repos/.*.git.*")


class Disk:
    """Keeps layers, images and cached packages within `run.max_disk_gb`.

    Args:
        budget_gb: the bound; None: none.
        ledger: knows the layers, and what was accepted.
        blobs: where layers are kept.
        client: the engine, None while this run has not used it.
    """

    def __init__(
        self,
        budget_gb: float | None,
        ledger: Ledger,
        blobs: BlobStore,
        client: Callable[[], docker.DockerClient | None],
        *,
        every_s: float = _EVERY_S,
    ) -> None:
        self._budget_gb = budget_gb
        self._ledger = ledger
        self._blobs = blobs
        self._client = client
        self._every_s = every_s
        self._looked_at = float("-inf")
        self._guard = threading.Lock()
        self._running: dict[object, float] = {}

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """What is used while this block runs is not evicted."""
        me = object()
        with self._guard:
            self._running[me] = time.time()
        try:
            yield
        finally:
            with self._guard:
                del self._running[me]

    def look(self) -> Evicted | None:
        """Bring the disk within its bound, if that was not done a moment ago; call it in the ledger's own thread.

        Raises:
            InfrastructureFault: the engine is gone.
        """
        if self._budget_gb is None or time.monotonic() - self._looked_at < self._every_s:
            return None
        client = self._client()
        if client is None:
            return None
        self._looked_at = time.monotonic()
        known = regained(fact for kind in _KINDS for fact in self._ledger.standing(f"install.{kind}"))
        with self._guard:
            since = min(self._running.values(), default=float("inf"))
        kept = needed(self._accepted())
        done = evict(client, self._blobs, known, self._budget_gb, kept=kept, since=since)
        if done.removed or done.over:
            removed, left = sum(thing.size for thing in done.removed) / GB, done.left / GB
            _log.info(
                "evicted",
                things=len(done.removed),
                removed_gb=round(removed, 1),
                left_gb=round(left, 1),
                over=done.over,
            )
        return done

    def _accepted(self) -> Iterator[Environment]:
        for decision in self._ledger.decisions():
            if decision.state is State.ACCEPTED:
                known = self._ledger.get_all(decision.trail)
                environment = environment_of(known[name] for name in decision.trail if name in known)
                if environment is not None:
                    yield environment


def sweep(work: Path) -> int:
    """Remove what a killed run has left half written in its folder, and return how many files and folders that were.

    Call it while holding the ledger: then nobody writes there.
    """
    removed = 0
    for pattern in _PARTS:
        for path in work.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(FileNotFoundError):
                    path.unlink()
            removed += 1
    return removed
