"""The members of a tar that nobody vouches for, one after another, in bounded memory.

`tarfile` keeps a header of any length, follows the maps of sparse files and believes sizes; here whatever is no plain
member ends the reading. Formats: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header"; GNU tar,
"Basic Tar Format" (names of type `L` and `K`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

Kind = Literal["file", "dir", "symlink", "hardlink", "special"]

_BLOCK = 512
_MAX_HEADER = 1 << 20
_MAX_MEMBERS = 1_000_000
_MAX_NAMES = 64 << 20
_MAX_DIGITS = 19
_SHOWN = 200
_SPARSE = "GNU.sparse"
_WANTED = ("path", "linkpath", "size")
_KINDS: dict[bytes, Kind] = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"1": "hardlink",
    b"2": "symlink",
    b"5": "dir",
}


class TarUnreadable(Exception):
    """An archive that no honest program writes; the message says what of it."""


@dataclass(frozen=True)
class Member:
    """One member.

    Attributes:
        path: as written.
        offset: where its content begins.
    """

    path: str
    kind: Kind
    mode: int
    size: int
    link: str
    offset: int


def members_of(archive: Path) -> Iterator[Member]:
    """Yield the members of an uncompressed tar, in order.

    Raises:
        TarUnreadable: it is damaged, cut, or holds what no honest program writes.
    """
    with archive.open("rb") as file:
        end, names = archive.stat().st_size, 0
        extra: dict[str, str] = {}
        for _ in range(_MAX_MEMBERS):
            header = file.read(_BLOCK)
            if not header.strip(b"\0"):
                return
            size = _checked(header, end - file.tell())
            kind = header[156:157]
            if kind in (b"x", b"g", b"L", b"K"):
                extra |= _extra(kind, file, size)
                continue
            member = _member(header, extra, file.tell())
            if member.size > end - member.offset:
                raise TarUnreadable(f"{member.path[:_SHOWN]!r} is cut")
            names += _bytes(member.path) + _bytes(member.link)
            if names > _MAX_NAMES:
                raise TarUnreadable("its names are longer than those of any tree")
            yield member
            extra = {}
            file.seek(member.offset + _padded(member.size))
    raise TarUnreadable("it has more members than any tree")


def _checked(header: bytes, left: int) -> int:
    """Return the size that a header says; it is whole, and so is what follows."""
    if len(header) < _BLOCK:
        raise TarUnreadable("it is cut in a header")
    plain = header[:148] + b" " * 8 + header[156:]
    if _number(header[148:156]) != sum(plain):
        raise TarUnreadable("a header has a wrong sum")
    size = _number(header[124:136])
    if header[156:157] in b"xgLK" and size > min(left, _MAX_HEADER):
        raise TarUnreadable("a header is too long")
    return size


def _member(header: bytes, extra: dict[str, str], offset: int) -> Member:
    kind = _KINDS.get(header[156:157], "special")
    if _SPARSE in extra:
        kind = "special"
    prefix = _text(header[345:500]) if header[257:262] == b"ustar" and header[263:265] == b"00" else ""
    name = _text(header[:100])
    size = _decimal(extra["size"]) if "size" in extra else _number(header[124:136])
    return Member(
        path=extra.get("path", f"{prefix}/{name}" if prefix else name),
        kind=kind,
        mode=_number(header[100:108]) & 0o7777,
        size=0 if kind in ("dir", "symlink", "hardlink") else size,
        link=extra.get("linkpath", _text(header[157:257])),
        offset=offset,
    )


def _extra(kind: bytes, file: BinaryIO, size: int) -> dict[str, str]:
    data = file.read(_padded(size))[:size]
    if kind == b"g":
        return {}
    if kind in (b"L", b"K"):
        return {"path" if kind == b"L" else "linkpath": _text(data)}
    found: dict[str, str] = {}
    for key, value in _records(data):  # of any other one, as many as there are, nothing is kept
        if key in _WANTED:
            found[key] = value
        elif key.startswith(_SPARSE):
            found[_SPARSE] = ""
    return found


def _records(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the records of a pax header: `LENGTH KEY=VALUE` and a line end, the length of all of it."""
    begin, end = 0, len(data.rstrip(b"\0"))
    while begin < end:
        blank = data.find(b" ", begin, begin + _MAX_DIGITS + 1)
        length = _decimal(data[begin : max(begin, blank)].decode("ascii", "replace"))
        record = data[blank + 1 : begin + length]
        if begin + length > end or not record.endswith(b"\n") or b"=" not in record:
            raise TarUnreadable("a pax header is damaged")
        key, _, value = record[:-1].partition(b"=")
        yield key.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape")
        begin += length


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise TarUnreadable("a number is none")
    return int(text)


def _number(field: bytes) -> int:
    """Return a number in octal digits, or in base 256 where the first bit is set (GNU); no negative one."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    if digits.strip(b"01234567"):
        raise TarUnreadable("a number is none")
    return int(digits or b"0", 8)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
