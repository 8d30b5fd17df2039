"""A release folder is written whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from release_items import tree

from exporters.folder import write_release
from miner.core.errors import DiskFull, ReleaseError

# The children only write files, so what a fork of a process with threads may break is not in use.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")

OLD = {"README.md": b"old", "data/rows.parquet": b"1" * 1000}
NEW = {"README.md": b"new", "data/rows.parquet": b"2" * 3000}


def beside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.parent.iterdir() if path != folder)


def test_release_is_written_with_its_folders(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "down" / "release"
    assert write_release(folder, OLD)
    assert tree(folder) == OLD
    assert beside(folder) == []


def test_same_bytes_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    write_release(folder, OLD)
    before = (folder.stat().st_ino, (folder / "README.md").stat().st_mtime_ns)
    assert not write_release(folder, OLD)
    assert (folder.stat().st_ino, (folder / "README.md").stat().st_mtime_ns) == before


def test_other_bytes_replace_the_whole_release(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    write_release(folder, OLD)
    assert write_release(folder, NEW)
    assert tree(folder) == NEW
    assert beside(folder) == []


def test_empty_folder_becomes_the_release(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    assert write_release(folder, NEW)
    assert tree(folder) == NEW


def test_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link = tmp_path / "release"
    link.symlink_to(tmp_path / "disk")
    write_release(link, NEW)
    assert link.is_symlink()
    assert tree(tmp_path / "disk") == NEW


@pytest.mark.parametrize("foreign", ["notes.txt", "data/mine.parquet", "thesis/chapter.md", ".git/HEAD"])
def test_folder_with_foreign_files_is_refused_and_untouched(tmp_path: Path, foreign: str) -> None:
    folder = tmp_path / "release"
    write_release(folder, OLD)
    (folder / foreign).parent.mkdir(exist_ok=True)
    (folder / foreign).write_bytes(b"precious")
    with pytest.raises(ReleaseError, match="not part of a release") as caught:
        write_release(folder, NEW)
    assert foreign.split("/")[0] in str(caught.value)
    assert tree(folder) == {**OLD, foreign: b"precious"}


def test_link_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    write_release(folder, OLD)
    (folder / "README.md").unlink()
    (folder / "README.md").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ReleaseError, match=r"not part of a release: README\.md"):
        write_release(folder, NEW)


def test_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "release").write_bytes(b"precious")
    with pytest.raises(ReleaseError, match="is a file"):
        write_release(tmp_path / "release", NEW)
    assert (tmp_path / "release").read_bytes() == b"precious"


def test_file_on_the_way_to_the_folder_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"")
    with pytest.raises(ReleaseError, match="cannot be written: Not a directory"):
        write_release(tmp_path / "out" / "release", NEW)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that another user of the machine can come to."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def _write_as_nobody(folder: Path, said: multiprocessing.Queue[str]) -> None:
    if os.getuid() == 0:
        os.setuid(65534)
    try:
        write_release(folder, NEW)
        said.put("written")
    except ReleaseError as error:
        said.put(str(error))


def test_read_only_folder_is_a_clear_error_and_the_old_release_is_whole(shared: Path) -> None:
    folder = shared / "release"
    write_release(folder, OLD)
    shared.chmod(0o555)
    context = multiprocessing.get_context("fork")
    said = context.Queue()
    child = context.Process(target=_write_as_nobody, args=(folder, said))
    child.start()
    assert "cannot be written: Permission denied" in said.get(timeout=20)
    child.join()
    assert tree(folder) == OLD


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB, made by the system call: a small machine has no `mount` command."""
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform != "linux" or libc.mount(b"none", bytes(tmp_path), b"tmpfs", ctypes.c_ulong(0), b"size=256k"):
        pytest.skip("needs the right to mount a small disk")
    yield tmp_path
    assert libc.umount2(bytes(tmp_path), 0) == 0, os.strerror(ctypes.get_errno())


def test_full_disk_is_a_fault_and_the_old_release_is_whole(small_disk: Path) -> None:
    folder = small_disk / "release"
    write_release(folder, OLD)
    with pytest.raises(DiskFull, match="no space left while writing the release"):
        write_release(folder, {**NEW, "big": b"3" * 1_000_000})
    assert tree(folder) == OLD
    assert beside(folder) == []
    assert write_release(folder, NEW)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("moment", range(4))  # two files and two folders are brought to the disk
def test_space_that_ends_at_any_moment_leaves_the_old_release_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int, code: int
) -> None:
    folder = tmp_path / "release"
    write_release(folder, OLD)
    sync, ahead = os.fsync, iter(range(moment, -1, -1))

    def fsync(handle: int) -> None:
        if next(ahead) == 0:
            raise OSError(code, os.strerror(code))
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(DiskFull):
            write_release(folder, NEW)
    assert tree(folder) == OLD
    assert beside(folder) == []
    assert write_release(folder, NEW)


def _write_for_ever(folder: Path) -> None:
    while True:
        write_release(folder, NEW)
        write_release(folder, OLD)


@pytest.mark.parametrize("moment", range(12))
def test_killed_writer_leaves_a_whole_release(tmp_path: Path, moment: int) -> None:
    folder = tmp_path / "release"
    write_release(folder, OLD)
    child = multiprocessing.get_context("fork").Process(target=_write_for_ever, args=(folder,))
    child.start()
    time.sleep(0.05 + 0.0037 * moment)
    child.kill()
    child.join()

    kept = folder if folder.exists() else folder.with_name(".release.old")
    assert tree(kept) in (OLD, NEW)
    write_release(folder, NEW)
    assert tree(folder) == NEW
    assert beside(folder) == []


def test_old_release_that_a_kill_left_aside_is_put_back_before_anything_else(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    write_release(folder, OLD)
    folder.rename(tmp_path / ".release.old")
    with pytest.raises(ReleaseError, match="not part of a release"):
        write_release(folder, {"README.md": b"only"})
    assert tree(folder) == OLD
