"""The folder of a mirror: who may change it, how it is made, and what is cleared away after a process was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from miner.core.errors import Interrupted
from miner.crawlers.git_repo import GitRepo
from miner.crawlers.git_run import failed

_POLL_S = 0.05


class MirrorStore:
    """A bare repository in a folder of its own, which one process at a time changes; reading needs no lock.

    Args:
        path: its git directory.
        stopped: ends waiting.
    """

    def __init__(self, path: Path, stopped: threading.Event) -> None:
        self.path = path.absolute()
        self._stopped = stopped

    @property
    def is_made(self) -> bool:
        """Whether it is there."""
        return (self.path / "HEAD").is_file()

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the store alone, among the threads of all processes, and yield the file that is locked.

        A child process that keeps this file open holds the lock, too, when its parent is killed. After one that was
        killed while it held it, the store is tidied up.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with Path(f"{self.path}.lock").open("wb") as lock:
            while not _lock(lock.fileno()):
                if self._stopped.wait(_POLL_S):
                    raise Interrupted(f"stopped while mirror {self.path.name} was in use")
            busy = Path(f"{self.path}.busy")
            if busy.exists():
                self._tidy()
            busy.touch()
            if not self.is_made:
                self._make()
            yield lock.fileno()
            busy.unlink()  # not reached on an error: then the next one tidies up

    def remake(self) -> None:
        """Put the store away and make an empty one; the lock is held."""
        old = self.path.with_name(f".{self.path.name}.{time.monotonic_ns()}")
        with suppress(FileNotFoundError):
            self.path.rename(old)
        self._make()
        shutil.rmtree(old, ignore_errors=True)

    def is_sound(self, repo: GitRepo) -> bool:
        """Whether all history that names lead to can be read, and all packs are what they were."""
        packs = [str(path) for path in (self.path / "objects" / "pack").glob("*.idx")]
        checks = [("rev-list", "--all", "--quiet"), *([("verify-pack", "--", *packs)] if packs else [])]
        return not any(failed(status, err) for status, _, err in (repo.attempt(*check) for check in checks))

    def _make(self) -> None:
        """Make an empty store, whole or not at all."""
        part = self.path.with_name(f".{self.path.name}.new")
        shutil.rmtree(part, ignore_errors=True)
        GitRepo.create(part)
        shutil.rmtree(self.path, ignore_errors=True)
        part.rename(self.path)

    def _tidy(self) -> None:
        """Remove what a command that was killed has left: locks of files, parts of packs, stores that were put away."""
        for root, _, names in os.walk(self.path):
            for name in names:
                if name.endswith(".lock") or name.startswith("tmp_"):
                    with suppress(FileNotFoundError):
                        (Path(root) / name).unlink()
        for part in self.path.parent.glob(f".{self.path.name}.*"):
            shutil.rmtree(part, ignore_errors=True)


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
