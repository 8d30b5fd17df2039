"""Safe extraction of a source distribution into memory: paths below its one top-level folder, and what stands there.

What a hostile archive tries and what becomes of it: absolute paths, `..`, links that lead out (directly or through
other links), files placed through a link: refused. Devices, pipes, sparse files: refused. Bombs: refused while they
unpack. Names that git refuses (`.git` in any disguise): dropped, with a note. Of a name given twice the last one wins.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from miner.core.reasons import Reason
from miner.core.settings import ArchiveLimits
from miner.crawlers.archive_formats import SUFFIXES, Member, read_members, suffix_of
from miner.crawlers.interface import ArchiveRefused

Mode = Literal["100644", "100755", "120000"]

_MAX_NAME, _MAX_PATH, _MAX_DEPTH, _MAX_HOPS, _MAX_NOTES = 255, 3500, 64, 40, 20
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")

__all__ = ["SUFFIXES", "ArchiveRefused", "Entry", "Tree", "git_refuses", "read_archive", "suffix_of"]


@dataclass(frozen=True)
class Entry:
    """A file or a symbolic link, as git keeps it; `data` of a link is its target."""

    mode: Mode
    data: bytes


@dataclass(frozen=True)
class Tree:
    """What an archive unpacks to: path below the top-level folder (surrogate escapes for bytes) -> entry."""

    top: str
    entries: Mapping[str, Entry]
    notes: tuple[str, ...] = ()


def read_archive(path: Path, filename: str, limits: ArchiveLimits) -> Tree:
    """Unpack a source distribution into memory.

    Args:
        path: the file.
        filename: its name on the index, whose suffix tells the format.
        limits: the bounds of what it may unpack to.

    Raises:
        ArchiveRefused: with the reason and what was found.
    """
    suffix = suffix_of(filename)
    if suffix is None:
        raise ArchiveRefused(Reason.ARCHIVE_CORRUPT, f"{filename}: not one of {', '.join(SUFFIXES)}")
    collector = _Collector()
    for member in read_members(path, suffix, limits):
        collector.add(member)
    return collector.finish()


class _Collector:
    """Takes members in order and ends as a tree."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, ...], Entry] = {}
        self._notes: list[str] = []

    def add(self, member: Member) -> None:
        parts = _parts(member.name)
        if member.kind == "special":
            raise ArchiveRefused(Reason.ARCHIVE_SPECIAL_FILE, f"{member.name!r} is neither file, folder nor link")
        if member.kind == "folder" or not parts:
            return
        if git_refuses(parts, is_link=member.kind == "symlink"):
            self._note(f"dropped {member.name!r}: git refuses this name")
        elif len(parts) == 1 and parts[0].startswith("._"):
            self._note(f"dropped {member.name!r}: a resource fork of macOS")
        else:
            if parts in self._entries:
                self._note(f"{member.name!r} is there more than once; the last one counts")
            self._entries[parts] = self._entry(member)

    def _entry(self, member: Member) -> Entry:
        if member.kind == "symlink":
            if not member.target or "\0" in member.target:
                raise ArchiveRefused(Reason.ARCHIVE_CORRUPT, f"{member.name!r} is a link to {member.target!r}")
            return Entry("120000", member.target.encode("utf-8", "surrogateescape"))
        if member.kind == "hardlink":
            target = self._entries.get(_parts(member.target))
            if target is None:
                detail = f"{member.name!r} is a hard link to {member.target!r}, which is not there"
                raise ArchiveRefused(Reason.ARCHIVE_CORRUPT, detail)
            return target
        return Entry("100755" if member.executable else "100644", member.data)

    def _note(self, text: str) -> None:
        if len(self._notes) < _MAX_NOTES:
            self._notes.append(text)

    def finish(self) -> Tree:
        top = self._top()
        entries = {parts[1:]: entry for parts, entry in self._entries.items()}
        _refuse_conflicts(entries)
        links = {parts: entry.data for parts, entry in entries.items() if entry.mode == "120000"}
        for parts in links:
            _refuse_bad_link(parts, links)
        by_path = {"/".join(parts): entry for parts, entry in sorted(entries.items())}
        if not any(name in by_path for name in _PROJECT_FILES):
            raise ArchiveRefused(Reason.ARCHIVE_NO_PROJECT, f"{top!r} holds none of {', '.join(_PROJECT_FILES)}")
        return Tree(top, by_path, tuple(self._notes))

    def _top(self) -> str:
        tops = sorted({parts[0] for parts in self._entries})
        if len(tops) == 1 and (tops[0],) not in self._entries:
            return tops[0]
        found = ", ".join(repr(top) for top in tops[:5]) or "nothing"
        raise ArchiveRefused(Reason.ARCHIVE_NO_PROJECT, f"expected one top-level folder, found {found}")


def _parts(name: str) -> tuple[str, ...]:
    """Return the components of a member's name, checked."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or any(".." in part.split("\\") for part in parts):
        raise ArchiveRefused(Reason.ARCHIVE_ESCAPES, f"the name {name!r} leads out of the archive")
    if "\0" in name:
        raise ArchiveRefused(Reason.ARCHIVE_CORRUPT, f"the name {name!r} holds a NUL")
    lengths = [len(part.encode("utf-8", "surrogateescape")) for part in parts]
    if len(parts) > _MAX_DEPTH or sum(lengths) > _MAX_PATH or max(lengths, default=0) > _MAX_NAME:
        raise ArchiveRefused(Reason.ARCHIVE_TOO_LARGE, f"the name {name[:80]!r}... is too long or too deep")
    return parts


def git_refuses(parts: tuple[str, ...], *, is_link: bool) -> bool:
    """Whether git would refuse the path, on this file system or another (git's `verify_path`)."""
    pieces = [piece for part in parts for piece in part.split("\\")]
    if any(_is_dot_git(piece) for piece in pieces):
        return True
    return is_link and parts[-1].lower() == ".gitmodules"


def _is_dot_git(piece: str) -> bool:
    """Whether a file system would take this for `.git`: without regard to case, as NTFS or HFS+ fold names."""
    visible = "".join(char for char in piece if unicodedata.category(char) != "Cf").lower()
    return visible.split(":")[0].rstrip(". ") in (".git", "git~1")


def _refuse_conflicts(entries: Mapping[tuple[str, ...], Entry]) -> None:
    """Refuse a path that is both a file or link and the folder of another."""
    for parts in entries:
        for length in range(1, len(parts)):
            above = entries.get(parts[:length])
            if above is None:
                continue
            if above.mode == "120000":
                detail = f"{'/'.join(parts)!r} is placed through the link {'/'.join(parts[:length])!r}"
                raise ArchiveRefused(Reason.ARCHIVE_ESCAPES, detail)
            raise ArchiveRefused(Reason.ARCHIVE_CORRUPT, f"{'/'.join(parts[:length])!r} is both a file and a folder")


def _refuse_bad_link(link: tuple[str, ...], links: Mapping[tuple[str, ...], bytes]) -> None:
    """Follow a link, through all other links: refuse it where it ever leaves the tree, or never arrives."""
    shown = f"{'/'.join(link)!r} is a link to {links[link].decode('utf-8', 'surrogateescape')!r}, which"
    here: list[str] = list(link[:-1])
    ahead = _steps(links[link])
    hops = 0
    while ahead:
        step = ahead.pop(0)
        if step == "/" or (step == ".." and not here):
            raise ArchiveRefused(Reason.ARCHIVE_ESCAPES, f"{shown} leads out of the archive")
        if step == "..":
            here.pop()
        elif (*here, step) in links:
            hops += 1
            if hops > _MAX_HOPS:
                raise ArchiveRefused(Reason.ARCHIVE_CORRUPT, f"{shown} leads in a circle")
            ahead = _steps(links[(*here, step)]) + ahead
        else:
            here.append(step)


def _steps(target: bytes) -> list[str]:
    text = target.decode("utf-8", "surrogateescape")
    return ["/"] * text.startswith("/") + [part for part in text.split("/") if part not in ("", ".")]
