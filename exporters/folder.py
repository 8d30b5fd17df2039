"""Writing a release folder: all of it or nothing.

The files are written beside the folder, flushed to disk, and moved into place by renames. A kill at any moment leaves
the old release whole: under its name, or, between the two renames, beside it, from where the next call puts it back.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from miner.core.errors import DiskFull, ReleaseError

_FULL = (errno.ENOSPC, errno.EDQUOT)


def write_release(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Make a folder hold exactly these files, by relative path; return whether anything had to be written.

    Raises:
        ReleaseError: the folder holds files that are not a release's, or cannot be written to.
        DiskFull: no space is left; what was there before is whole.
    """
    folder = folder.resolve()
    part, old = (folder.with_name(f".{folder.name}.{suffix}") for suffix in ("part", "old"))
    try:
        shutil.rmtree(part, ignore_errors=True)
        _recover(folder, old)
        _refuse_foreign(folder, files)
        if _holds(folder, files):
            return False
        try:
            _write(part, files)
            _swap(folder, part, old)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise _explain(folder, error) from error
    return True


def _recover(folder: Path, old: Path) -> None:
    """Undo what a killed process left: put the old release back, or remove it if the new one is in place."""
    if not old.exists():
        return
    if folder.exists():
        shutil.rmtree(old)
    else:
        old.rename(folder)


def _refuse_foreign(folder: Path, files: Mapping[str, bytes]) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ReleaseError(f"{folder} is a file, not a folder", next_step="choose another `paths.release`")
    ours = set(files) | {str(parent) for name in files for parent in Path(name).parents}
    names = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")))
    foreign = [name for name in names if name not in ours or (folder / name).is_symlink()]
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        raise ReleaseError(
            f"{folder} holds what is not part of a release: {', '.join(foreign[:3])}{more}",
            next_step="move it away, or choose another `paths.release`: a release replaces its whole folder",
        )


def _holds(folder: Path, files: Mapping[str, bytes]) -> bool:
    return all((folder / name).is_file() and (folder / name).read_bytes() == data for name, data in files.items())


def _write(part: Path, files: Mapping[str, bytes]) -> None:
    part.mkdir(parents=True)
    for name, data in files.items():
        path = part / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    for folder in sorted({part, *(parent for parent in part.rglob("*") if parent.is_dir())}):
        _sync(folder)


def _swap(folder: Path, part: Path, old: Path) -> None:
    if folder.exists():
        folder.rename(old)
    try:
        part.rename(folder)
    except OSError:
        _recover(folder, old)
        raise
    _sync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _explain(folder: Path, error: OSError) -> ReleaseError | DiskFull:
    if error.errno in _FULL:
        return DiskFull(f"no space left while writing the release to {folder}")
    return ReleaseError(
        f"{folder} cannot be written: {error.strerror or error}", next_step="choose another `paths.release`"
    )
