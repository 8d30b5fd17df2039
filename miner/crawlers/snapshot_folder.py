"""The folder of a snapshot: written beside its name and moved there whole.

A kill at any moment leaves the old one whole: under its name, or, between two renames, beside it, from where the next
call puts it back.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from miner.core.errors import DiskFull, UsageError, is_disk_full
from miner.crawlers.snapshot_manifest import BLOBS, FACTS, GIT, MANIFEST, REPOSITORIES

_OURS = {MANIFEST, FACTS, BLOBS, REPOSITORIES, GIT}


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of a snapshot, or of nothing, when all went well.

    Raises:
        UsageError: something else stands there, or nothing can be written there.
        DiskFull: no space is left; what was there before is whole.
    """
    folder = folder.absolute()
    part, old = (folder.with_name(f".{folder.name}.{suffix}") for suffix in ("part", "old"))
    try:
        shutil.rmtree(part, ignore_errors=True)
        _recover(folder, old)
        _refuse_foreign(folder)
        (part / GIT).mkdir(parents=True)
        yield part
        _sync(part)
        _swap(folder, part, old)
    except OSError as error:
        if is_disk_full(error):
            raise DiskFull(f"no space left while writing {folder}") from error
        raise UsageError(f"{folder} cannot be written: {error.strerror}", next_step="name another folder") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _recover(folder: Path, old: Path) -> None:
    """Undo what a killed process left: put the old snapshot back, or remove it if the new one is in place."""
    if old.exists():
        if folder.exists():
            shutil.rmtree(old)
        else:
            old.rename(folder)


def _refuse_foreign(folder: Path) -> None:
    if not folder.exists():
        return
    foreign = sorted({entry.name for entry in folder.iterdir()} - _OURS) if folder.is_dir() else [folder.name]
    if foreign:
        raise UsageError(
            f"{folder} holds what is not part of a snapshot: {foreign[0]}", next_step="name a folder of its own"
        )


def _swap(folder: Path, part: Path, old: Path) -> None:
    if folder.exists():
        folder.rename(old)
    part.rename(folder)
    _sync_one(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _sync(part: Path) -> None:
    """Have all of it on the disk before it gets its name."""
    for root, _, names in os.walk(part):
        for name in names:
            _sync_one(Path(root, name))
        _sync_one(Path(root))


def _sync_one(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
