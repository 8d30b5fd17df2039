"""Members of a source distribution, read in order under limits; nothing is written under a member's own name.

Formats: tar (https://www.gnu.org/software/tar/manual/html_node/Standard.html), plain or packed, and zip (APPNOTE 6.3).
What PyPI takes today is `.tar.gz` (PEP 625) and `.zip`; the others are in old releases.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from miner.core.errors import DiskFull, InfrastructureFault
from miner.core.reasons import Reason
from miner.core.settings import ArchiveLimits
from miner.crawlers.interface import Refused

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
_SPOOL = 32 << 20
_RATIO_FLOOR = 10 << 20  # what unpacks to less than this is no bomb, however well it was packed
_MAX_LINK = 4096
_MAX_TAR_HEADER = 8 << 10  # twice the longest path; the standard library takes quadratic time to parse such a header
_MAX_TAR_HEADERS = 16 << 20
_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)

Kind = Literal["file", "folder", "symlink", "hardlink", "special"]


class ArchiveRefused(Refused):
    """The archive is corrupt, hostile or too large."""


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
    except (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile) as error:
        raise _corrupt(error) from error
    except (RecursionError, RuntimeError, ValueError) as error:
        # a long chain of extended headers; an encrypted member or an unknown method; nonsense in a field
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
        headers = 4 * tarfile.BLOCKSIZE * self._limits.max_files + tarfile.RECORDSIZE
        if size > self._limits.max_bytes + headers:
            raise _too_large(f"unpacks to more than {self._limits.max_bytes} bytes")
        if size > self._by_ratio:
            raise _too_large(f"unpacks to more than {self._limits.max_ratio} times its {self._packed} bytes")

    def read(self, name: str, stream: IO[bytes]) -> bytes:
        """Return the content of one file."""
        data = bytearray()
        while chunk := stream.read(_CHUNK):
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
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL) as plain, _OPENERS[suffix](path) as packed:
        while chunk := packed.read(1 << 16):
            plain.write(chunk)
            meter.unpacked(plain.tell())
        plain.seek(0)
        yield plain


def _header_class() -> type[tarfile.TarInfo]:
    """Return a header class that refuses extended headers which take the standard library very long to parse."""
    total = 0

    class Header(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Header:
            nonlocal total
            header = super().frombuf(buf, encoding, errors)
            if header.type in _EXTENDED:
                total += abs(header.size)
                if abs(header.size) > _MAX_TAR_HEADER or total > _MAX_TAR_HEADERS:
                    raise _too_large(f"an extended header of {header.size} bytes, {total} bytes of them in all")
            return header

    return Header


def _tar_members(plain: IO[bytes], meter: _Meter) -> Iterator[Member]:
    # errors: a name that is not UTF-8 keeps its bytes
    options: dict[str, Any] = {"tarinfo": _header_class(), "encoding": "utf-8", "errors": "surrogateescape"}
    with tarfile.open(fileobj=plain, mode="r:", **options) as archive:
        while (header := archive.next()) is not None:
            meter.member()
            yield _tar_member(archive, header, meter)
        # The standard library takes a damaged header for the end of the archive.
        plain.seek(archive.offset)
        if plain.read(tarfile.BLOCKSIZE).strip(b"\0"):
            raise ArchiveRefused(Reason.ARCHIVE_CORRUPT, f"a damaged header at byte {archive.offset}")


def _tar_member(archive: tarfile.TarFile, header: tarfile.TarInfo, meter: _Meter) -> Member:
    if header.size < 0:
        raise ArchiveRefused(Reason.ARCHIVE_CORRUPT, f"{header.name!r} has a negative size")
    if header.isdir():
        return Member(header.name, "folder")
    if header.issym():
        return Member(header.name, "symlink", target=header.linkname)
    if header.islnk():
        return Member(header.name, "hardlink", target=header.linkname)
    stream = archive.extractfile(header) if header.isreg() and not header.issparse() else None
    if stream is None:
        return Member(header.name, "special")
    return Member(header.name, "file", meter.read(header.name, stream), bool(header.mode & stat.S_IXUSR))


def _zip_members(archive: zipfile.ZipFile, meter: _Meter) -> Iterator[Member]:
    for info in archive.infolist():
        meter.member()
        yield _zip_member(archive, info, meter)


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, meter: _Meter) -> Member:
    mode = info.external_attr >> 16  # the Unix mode, where the archive was made on Unix
    if info.is_dir():
        return Member(info.filename, "folder")
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFLNK):
        return Member(info.filename, "special")
    with archive.open(info) as stream:
        data = meter.read(info.filename, stream)
    if not stat.S_ISLNK(mode):
        return Member(info.filename, "file", data, bool(mode & stat.S_IXUSR))
    if len(data) > _MAX_LINK:
        raise _too_large(f"the target of the link {info.filename!r} has {len(data)} bytes")
    return Member(info.filename, "symlink", target=data.decode("utf-8", "surrogateescape"))
