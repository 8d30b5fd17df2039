"""From the bytes of an archive hour to whole lines, in constant memory: gzip members, damage, lines of any length.

What came before a cut or a damage is used, and the tally says so: the archive had such hours (its issues 136, 221, 225,
241). A gzip file may have several members (RFC 1952, 2.2), and zeros behind the last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, cast

from isal import igzip_lib

CHUNK = 1 << 16
_BLOCK = 1 << 18  # so that a block is still in the processor's cache when it is searched
_MAGIC = b"\x1f\x8b"  # RFC 1952, 2.3.1
_LONGEST_LINE = 32 << 20
_Damaged = cast("type[Exception]", igzip_lib.IsalError)  # its stub takes the class for an instance


@dataclass
class Tally:
    """What was seen while an hour was read.

    Attributes:
        size: bytes after decompression.
        pulls: lines that are events of a pull request.
        merges: those that say that it was merged.
        undecided: those that say that it was closed, and not whether it was merged.
        bad: lines that cannot be read as the event that they seem to be, or are far too long.
        damage: where and how the hour ends early, "" where it does not.
        foreign: whether it is no gzip file at all.
    """

    size: int = 0
    pulls: int = 0
    merges: int = 0
    undecided: int = 0
    bad: int = 0
    damage: str = ""
    foreign: bool = False


class Span(NamedTuple):
    """A part of a block that begins and ends with a line; a block is not copied for it."""

    block: bytes
    start: int
    end: int


def inflate(chunks: Iterable[bytes], tally: Tally) -> Iterator[bytes]:
    """Yield what the gzip members hold, in blocks of bounded size; what cannot be read ends it and is noted."""
    reader, members, inside, head = _reader(), 0, False, b""
    try:
        for chunk in chunks:
            data, head = chunk, head or chunk[:2]
            if not _MAGIC.startswith(head):
                tally.damage, tally.foreign = f"begins with {chunk[:40]!r}", True
                return
            while data or (inside and not reader.needs_input):
                if members and not inside:
                    data = data.lstrip(b"\0")
                    if not data:
                        break
                block, data, inside = reader.decompress(data, _BLOCK), b"", True
                tally.size += len(block)
                if block:
                    yield block
                if reader.eof:
                    data, reader, members, inside = reader.unused_data, _reader(), members + 1, False
    except _Damaged as error:
        tally.damage = f"damaged after {tally.size} bytes ({error})"
        return
    if inside:
        tally.damage = f"cut after {tally.size} bytes"


def _reader() -> igzip_lib.IgzipDecompressor:
    return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)


def whole_lines(blocks: Iterable[bytes], tally: Tally) -> Iterator[Span]:
    """Yield every line once; the last one may lack its end, unless the hour is damaged there."""
    parts: list[bytes] = []
    held = 0
    for block in blocks:
        first = block.find(b"\n") + 1
        if not first:
            held += len(block)
            parts = [*parts, block] if held <= _LONGEST_LINE else []
            continue
        if held:
            yield from _joined(parts, block[:first], held, tally)
        else:
            first = 0
        last = block.rfind(b"\n") + 1
        if last > first:
            yield Span(block, first, last)
        parts, held = [block[last:]], len(block) - last
    if held and not tally.damage:
        yield from _joined(parts, b"\n", held, tally)


def _joined(parts: list[bytes], rest: bytes, held: int, tally: Tally) -> Iterator[Span]:
    if held > _LONGEST_LINE:
        tally.bad += 1
        return
    line = b"".join([*parts, rest])
    yield Span(line, 0, len(line))
