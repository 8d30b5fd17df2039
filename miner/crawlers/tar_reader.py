"""Members of an uncompressed tar file, read in order: what their headers say, and where their content is.

The standard library's reader changed with security updates, within minor versions too: what one machine reads, another
refuses and a third takes for the end of the archive. A source has to give the same tree on every machine, so headers
are read here. Formats: ustar and pax (https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html), GNU and
version 7 (https://www.gnu.org/software/tar/manual/html_node/Standard.html).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO

from miner.core.reasons import Reason
from miner.crawlers.interface import ArchiveRefused

BLOCK = 512
FILES, HARD_LINK, SYMBOLIC_LINK, FOLDER = (b"0", b"\0", b"7"), b"1", b"2", b"5"

_SHARED, _LONG_NAME, _LONG_TARGET = b"g", b"L", b"K"
_EXTENDED = (b"x", b"X", _SHARED, _LONG_NAME, _LONG_TARGET)  # X: an early pax, of Solaris
_MAX_EXTENDED = 8 << 10  # twice the longest path
_MAX_EXTENDED_IN_ALL = 16 << 20
_USED = ("path", "linkpath", "size")
_SPARSE = "GNU.sparse."
_OCTAL = re.compile(rb" *([0-7]*) *")
_DECIMAL = re.compile(rb"[0-9]{1,19}")
_RECORD = re.compile(rb"([1-9][0-9]{0,4}) ([^=]+)=")


@dataclass(frozen=True)
class TarHeader:
    """One member as the archive states it.

    Attributes:
        kind: the type flag.
        size: of the content, in bytes.
        start: where the content is.
        is_sparse: the content is not the file, but a map of it.
    """

    name: str
    kind: bytes
    size: int
    mode: int
    target: str
    start: int
    is_sparse: bool


def read_headers(plain: IO[bytes]) -> Iterator[TarHeader]:
    """Yield the members in order; the caller may move the position of the file.

    Raises:
        ArchiveRefused: a header is damaged, contradicts another, or is too large.
    """
    shared: dict[str, bytes] = {}
    own: dict[str, bytes] = {}
    seen: set[bytes] = set()
    at = in_all = 0
    end = plain.seek(0, io.SEEK_END)
    while (block := _block(plain, at, end)) is not None:
        kind = block[156:157]
        at += BLOCK
        if kind not in _EXTENDED:
            header = _header(block, at, {**shared, **own})
            yield header
            at += _padded(header.size)
            own, seen = {}, set()
            continue
        size = _number(block[124:136], at)
        in_all += size
        if size > _MAX_EXTENDED or in_all > _MAX_EXTENDED_IN_ALL:
            detail = f"an extended header of {size} bytes, {in_all} bytes of them in all"
            raise ArchiveRefused(Reason.ARCHIVE_TOO_LARGE, detail)
        fields = _fields(kind, _read(plain, at, size), at)
        if kind != _SHARED and (kind in seen or own.keys() & fields.keys()):
            raise _damaged(at, "a second extended header of one member")
        (shared if kind == _SHARED else own).update(fields)
        seen.add(kind)
        at += _padded(size)
    if seen - {_SHARED}:
        raise _damaged(at, "an extended header of no member")


def read_content(plain: IO[bytes], header: TarHeader, chunk: int) -> Iterator[bytes]:
    """Yield the content of a file in chunks.

    Raises:
        ArchiveRefused: it ends too early.
    """
    end = header.start + header.size
    for start in range(header.start, end, chunk):
        yield _read(plain, start, min(chunk, end - start))


def _block(plain: IO[bytes], at: int, end: int) -> bytes | None:
    """Return the header at a place, checked against its checksum; None at the end of the archive."""
    if at > end:
        raise _damaged(end, "an unexpected end")
    plain.seek(at)
    block = plain.read(BLOCK)
    if at + len(block) and not block.strip(b"\0"):
        return None
    if len(block) < BLOCK:
        raise _damaged(at, "an unexpected end")
    counted = block[:148] + b" " * 8 + block[156:]
    as_signed = sum(counted) - 256 * sum(byte > 127 for byte in counted)  # so some old writers count
    if _number(block[148:156], at) not in (sum(counted), as_signed):
        raise _damaged(at, "a damaged header")
    return block


def _read(plain: IO[bytes], at: int, size: int) -> bytes:
    plain.seek(at)
    data = plain.read(size)
    if len(data) < size:
        raise _damaged(at + len(data), "an unexpected end")
    return data


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _header(block: bytes, start: int, fields: Mapping[str, bytes]) -> TarHeader:
    name, target = _until_nul(block[:100]), _until_nul(block[157:257])
    if block[257:263] == b"ustar\0" and block[345]:
        name = _until_nul(block[345:500]) + b"/" + name
    name, target = fields.get("path") or name, fields.get("linkpath") or target
    kind, size = block[156:157], _number(block[124:136], start)
    if stated := fields.get("size"):
        if not _DECIMAL.fullmatch(stated):
            raise _damaged(start, f"a damaged header, whose size is {stated!r}")
        size = int(stated)
    if kind in FILES and name.endswith(b"/"):  # so version 7 writes a folder
        kind = FOLDER
    if kind in (HARD_LINK, SYMBOLIC_LINK, FOLDER):  # of these the size is no more than a remark
        size = 0
    mode = _number(block[100:108], start)
    return TarHeader(_decoded(name), kind, size, mode, _decoded(target), start, _SPARSE in fields)


def _fields(kind: bytes, data: bytes, at: int) -> dict[str, bytes]:
    """Return what an extended header states, as far as it is of use here."""
    if kind in (_LONG_NAME, _LONG_TARGET):
        return {"path" if kind == _LONG_NAME else "linkpath": _until_nul(data)}
    fields: dict[str, bytes] = {}
    place, end = 0, len(data.rstrip(b"\0"))
    while place < end:
        record = _RECORD.match(data, place)
        after = place + int(record[1]) if record else 0
        if record is None or not record.end() < after <= end or data[after - 1 : after] != b"\n":
            raise _damaged(at + place, "a damaged extended header")
        name = _decoded(record[2])
        if name in _USED or name.startswith(_SPARSE):
            fields[name if name in _USED else _SPARSE] = data[record.end() : after - 1]
        place = after
    return fields


def _number(field: bytes, at: int) -> int:
    """Return a number in octal digits, or, after the mark that GNU tar sets, in base 256."""
    if field[0] & 0x80:
        if field[0] & 0x40:
            raise _damaged(at, "a damaged header, which holds a negative number")
        return int.from_bytes(bytes([field[0] & 0x3F]) + field[1:], "big")
    digits = _OCTAL.fullmatch(_until_nul(field))
    if digits is None:
        raise _damaged(at, f"a damaged header, which holds {field!r} as a number")
    return int(digits[1] or b"0", 8)


def _until_nul(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _decoded(raw: bytes) -> str:
    """Decode UTF-8; other bytes stay as surrogate escapes."""
    return raw.decode("utf-8", "surrogateescape")


def _damaged(at: int, what: str) -> ArchiveRefused:
    return ArchiveRefused(Reason.ARCHIVE_CORRUPT, f"{what}, at byte {at}")
