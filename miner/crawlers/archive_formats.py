"""Members of a source distribution, read in order under limits; nothing is written under a member's own name.

Formats: tar, plain or packed, and zip (APPNOTE 6.3).
What PyPI takes today is `.tar.gz` (PEP 625) and `.zip`; the others are in old releases.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

from miner.core.errors import DiskFull, InfrastructureFault
from miner.core.reasons import Reason
from miner.core.settings import ArchiveLimits
from miner.crawlers.interface import ArchiveRefused
from miner.crawlers.tar_reader import (
    BLOCK,
    FILES,
    FOLDER,
    HARD_LINK,
    SYMBOLIC_LINK,
    TarHeader,
    read_content,
    read_headers,
)

_OPENERS: dict[str, Callable[[Path], Any]] = {
    ".tar.gz": gzip.open,
    ".tgz": gzip.open,
    ".tar.bz2": bz2.open,
    ".tbz": bz2.open,
    ".tar.xz": lzma.open,
    ".tar": lambda path: path.open("rb"),
}
SUFFIXES = (*_OPENERS, ".zip")

_CHUNK = 1 << 14
_TAR_RECORD = 20 * BLOCK  # a tar file is padded to a multiple of this
_SPOOL = 32 << 20
_RATIO_FLOOR = 10 << 20  # what unpacks to less than this is no bomb, however well it was packed
_MAX_LINK = 4096
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ZIP_HEADER = 30  # the least that stands before the content of a file

Kind = Literal["file", "folder", "symlink", "hardlink", "special"]


@dataclass(frozen=True)
class Member:
    """One member as the archive states it; its name and target are not checked yet."""

    name: str
    kind: Kind
    data: bytes = b""
    executable: bool = False
    target: str = ""


def suffix_of(filename: str) -> str | None:
    """Return the suffix of a source distribution that can be read here, or None."""
    return next((suffix for suffix in SUFFIXES if filename.lower().endswith(suffix)), None)


def read_members(path: Path, suffix: str, limits: ArchiveLimits) -> Iterator[Member]:
    """Yield the members of an archive in its order.

    Raises:
        ArchiveRefused: the archive is damaged, or larger than the limits.
        InfrastructureFault: the file system failed.
    """
    with _faults_named(path):
        meter = _Meter(limits, path.stat().st_size)
        if suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                yield from _zip_members(archive, meter)
        else:
            with _unpacked(path, suffix, meter) as plain:
                yield from _tar_members(plain, meter)


@contextmanager
def _faults_named(path: Path) -> Iterator[None]:
    """Tell damage of the archive from faults of the file system."""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile) as error:
        raise _corrupt(error) from error
    except (RuntimeError, ValueError) as error:
        # of a zip: an encrypted member, an unknown method, nonsense in a field
        raise _corrupt(error) from error
    except OSError as error:
        if error.errno is None:  # so bz2 reports damage
            raise _corrupt(error) from error
        if error.errno == errno.ENOSPC:
            raise DiskFull(f"no space left while reading {path.name}") from error
        raise InfrastructureFault(f"{path.name} cannot be read: {error.strerror}") from error


def _corrupt(error: Exception) -> ArchiveRefused:
    return ArchiveRefused(Reason.ARCHIVE_CORRUPT, f"{type(error).__name__}: {error}")


def _too_large(detail: str) -> ArchiveRefused:
    return ArchiveRefused(Reason.ARCHIVE_TOO_LARGE, detail)


class _Meter:
    """Counts what an archive unpacks to, and refuses at the first byte too many."""

    def __init__(self, limits: ArchiveLimits, packed: int) -> None:
        self._limits = limits
        self._by_ratio = max(limits.max_ratio * packed, _RATIO_FLOOR)
        self._packed = packed
        self._members = 0
        self._bytes = 0

    def member(self) -> None:
        self._members += 1
        if self._members > self._limits.max_files:
            raise _too_large(f"more than {self._limits.max_files} members")

    def unpacked(self, size: int) -> None:
        """Check a size that was unpacked in all, headers and padding of a tar file included."""
        headers = 4 * BLOCK * self._limits.max_files + _TAR_RECORD
        if size > self._limits.max_bytes + headers:
            raise _too_large(f"unpacks to more than {self._limits.max_bytes} bytes")
        if size > self._by_ratio:
            raise _too_large(f"unpacks to more than {self._limits.max_ratio} times its {self._packed} bytes")

    def read(self, name: str, chunks: Iterable[bytes]) -> bytes:
        """Return the content of one file."""
        data = bytearray()
        for chunk in chunks:
            data += chunk
            self._bytes += len(chunk)
            if len(data) > self._limits.max_file_bytes:
                raise _too_large(f"{name!r} has more than {self._limits.max_file_bytes} bytes")
            if self._bytes > self._limits.max_bytes:
                raise _too_large(f"unpacks to more than {self._limits.max_bytes} bytes")
            self.unpacked(self._bytes)
        return bytes(data)


@contextmanager
def _unpacked(path: Path, suffix: str, meter: _Meter) -> Iterator[IO[bytes]]:
    """Undo the outer compression to its very end, so that its checksum is checked too."""
    with (
        tempfile.SpooledTemporaryFile(max_size=_SPOOL, dir=str(path.parent)) as plain,
        _OPENERS[suffix](path) as packed,
    ):
        while chunk := packed.read(1 << 16):
            plain.write(chunk)
            meter.unpacked(plain.tell())
        plain.seek(0)
        yield plain


def _tar_members(plain: IO[bytes], meter: _Meter) -> Iterator[Member]:
    for header in read_headers(plain):
        meter.member()
        yield _tar_member(plain, header, meter)


def _tar_member(plain: IO[bytes], header: TarHeader, meter: _Meter) -> Member:
    if header.kind == FOLDER:
        return Member(header.name, "folder")
    if header.kind == SYMBOLIC_LINK:
        return Member(header.name, "symlink", target=header.target)
    if header.kind == HARD_LINK:
        return Member(header.name, "hardlink", target=header.target)
    if header.kind not in FILES or header.is_sparse:
        return Member(header.name, "special")
    data = meter.read(header.name, read_content(plain, header, _CHUNK))
    return Member(header.name, "file", data, bool(header.mode & stat.S_IXUSR))


def _zip_members(archive: zipfile.ZipFile, meter: _Meter) -> Iterator[Member]:
    _refuse_overlaps(archive)
    for info in archive.infolist():
        meter.member()
        yield _zip_member(archive, info, meter)


def _refuse_overlaps(archive: zipfile.ZipFile) -> None:
    """Refuse files that share bytes, as only newer versions of the standard library do."""
    end = archive.start_dir
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset, reverse=True):
        if info.header_offset + _ZIP_HEADER + info.compress_size > end:
            raise ArchiveRefused(Reason.ARCHIVE_CORRUPT, f"{info.filename!r} shares bytes with what follows it")
        end = info.header_offset


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, meter: _Meter) -> Member:
    mode = info.external_attr >> 16  # the Unix mode, where the archive was made on Unix
    if info.is_dir():
        return Member(info.filename, "folder")
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFLNK):
        return Member(info.filename, "special")
    if info.compress_type not in _ZIP_METHODS:  # older versions of the standard library unpack these without bounds
        raise ArchiveRefused(Reason.ARCHIVE_CORRUPT, f"{info.filename!r} is packed by method {info.compress_type}")
    with archive.open(info) as stream:
        data = meter.read(info.filename, iter(partial(stream.read, _CHUNK), b""))
    if not stat.S_ISLNK(mode):
        return Member(info.filename, "file", data, bool(mode & stat.S_IXUSR))
    if len(data) > _MAX_LINK:
        raise _too_large(f"the target of the link {info.filename!r} has {len(data)} bytes")
    return Member(info.filename, "symlink", target=data.decode("utf-8", "surrogateescape"))
