"""What a box has changed below a folder of its image, without reading the rest: exact, from the engine's own list.

The engine lists what lies in a container's own layer (engine API, "Get changes on a container's filesystem"): 0 for
what was there and is another now, 1 for what is new, 2 for what is gone; a folder that was removed and made again is
"gone" too. What of a list cannot be relied on (a name that is no UTF-8) or is too long makes the whole folder be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from docker.errors import NotFound

from installers.interface import TooLarge
from installers.layer import OWNER, Tree, difference, normalise
from installers.workshop import Workshop, export
from miner.core.errors import InfrastructureFault
from miner.core.reasons import Reason
from miner.sandbox.container import DockerBox
from miner.sandbox.engine import engine_faults
from miner.sandbox.image_archive import TarEntry, read_tar

_MODIFIED, _ADDED, _DELETED = 0, 1, 2
_DIRECTORY = 1 << 31  # Go's os.ModeDir, as the engine gives modes
_MOST = 48  # paths that are read one by one
_MB = 1024 * 1024
_CHUNK = 1 << 20


@dataclass
class Changed:
    """What was changed below a folder.

    Attributes:
        entries: what is new or other than in the image, as it is now, paths from the root.
        gone: topmost paths of the image that are there no more, or are there again as they stand in `entries`.
        other: paths of the image that `entries` has anew.
        whole: `entries` is all that the folder holds.
    """

    entries: list[TarEntry] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    whole: bool = False


def changed_below(
    workshop: Workshop, box: DockerBox, roots: Sequence[str], folder: Path, *, most: int = _MOST
) -> list[Changed]:
    """Return what a box has changed below each of some absolute paths; everything in the box is ended by this.

    Args:
        workshop: the tools; its limits bound what is read.
        box: the box.
        roots: folders in the box.
        folder: keeps what is read, for as long as the entries are used.
        most: how many paths are read one by one.

    Raises:
        TooLarge: it is more than a box may hold.
    """
    box.kill()
    with engine_faults():
        listed = {item["Path"]: int(item["Kind"]) for item in workshop.client.api.diff(box.name) or ()}
    reader = _Reader(workshop, box, folder)
    return [reader.changed(root, listed, most) for root in roots]


class _Unreliable(Exception):
    """The engine does not know a path that it has listed."""


def _topmost(listed: Mapping[str, int]) -> list[str]:
    """Return the listed paths that have to be looked at: what lies in a new folder comes with it."""
    parents = {str(parent) for path in listed for parent in PurePosixPath(path).parents}
    inside = [path for path, kind in listed.items() if kind != _MODIFIED]
    covered = set(inside)
    return [
        path
        for path, kind in listed.items()
        if not any(str(parent) in covered for parent in PurePosixPath(path).parents)
        and (kind != _MODIFIED or path not in parents)
    ]


class _Reader:
    """Reads paths of an ended box within a bound."""

    def __init__(self, workshop: Workshop, box: DockerBox, folder: Path) -> None:
        self._workshop = workshop
        self._box = box
        self._folder = folder
        self._left = workshop.limits.disk_mb * _MB
        self._count = 0

    def changed(self, root: str, listed: Mapping[str, int], most: int) -> Changed:
        mine = {path: kind for path, kind in listed.items() if path.startswith(f"{root}/")}
        found, wanted = Changed(), sorted(_topmost(mine))
        if len(wanted) > most:
            return self._whole(root)
        try:
            for path in wanted:
                self._take(path, mine[path], found)
        except _Unreliable:
            return self._whole(root)
        return found

    def _whole(self, root: str) -> Changed:
        try:
            archive = export(self._box, root, self._next(), self._workshop.limits)
        except FileNotFoundError as error:  # nobody in a box may remove it: the box itself is gone
            raise InfrastructureFault(f"a box is gone: {error}", reason=Reason.DOCKER_ERROR) from error
        return Changed(entries=_at(read_tar(archive), root.rpartition("/")[0]), whole=True)

    def _take(self, path: str, kind: int, found: Changed) -> None:
        entries = self._fetch(path, folders=kind != _MODIFIED)
        if kind == _DELETED:
            found.gone.append(path.lstrip("/"))
        elif entries is None:
            raise _Unreliable
        elif kind == _MODIFIED:
            found.other += [entry.path for entry in entries]
        found.entries += entries or []

    def _fetch(self, path: str, *, folders: bool) -> list[TarEntry] | None:
        """Return what is there; of a folder that was only touched, nothing."""
        with engine_faults():
            try:
                chunks, stat = self._workshop.client.api.get_archive(self._box.name, path, chunk_size=_CHUNK)
            except NotFound:
                return None
            if stat["mode"] & _DIRECTORY and not folders:
                _close(chunks)
                return []
            archive = self._next()
            self._write(chunks, archive, path)
        return _at(read_tar(archive), path.rpartition("/")[0])

    def _write(self, chunks: Iterable[bytes], archive: Path, path: str) -> None:
        with archive.open("wb") as out:
            for chunk in chunks:
                self._left -= len(chunk)
                if self._left < 0:
                    raise TooLarge(f"{path} and what else was changed is larger than a box may be")
                out.write(chunk)

    def _next(self) -> Path:
        self._count += 1
        return self._folder / f"changed-{self._count}.tar"


def _close(chunks: object) -> None:
    close: Callable[[], None] | None = getattr(chunks, "close", None)
    if close is not None:
        close()


def _at(entries: Iterable[TarEntry], parent: str) -> list[TarEntry]:
    """Return entries of an archive whose root lies in a folder, with paths from the root."""
    prefix = parent.strip("/")
    return [_moved(entry, prefix) for entry in entries]


def _moved(entry: TarEntry, prefix: str) -> TarEntry:
    if not prefix:
        return entry
    link = f"{prefix}/{entry.link}" if entry.kind == "hardlink" else entry.link
    path = f"{prefix}/{entry.path}"
    return TarEntry(path, entry.kind, entry.mode, entry.uid, entry.gid, link, entry.content, entry.size)


def apply(below: Tree, changed: Changed) -> Tree:
    """Return a tree after the changes."""
    if changed.whole:
        return {entry.path: entry for entry in changed.entries}
    gone = set(changed.gone)
    left = {
        path: entry
        for path, entry in below.items()
        if path not in gone and not any(str(parent) in gone for parent in PurePosixPath(path).parents)
    }
    return {**left, **{entry.path: entry for entry in changed.entries}}


def changed_layer(changed: Changed, root: str, below: Callable[[], Tree]) -> list[TarEntry]:
    """Return the normalised layer that turns a folder of an image into what it is now.

    Args:
        changed: what was changed below the folder.
        root: the folder, an absolute path.
        below: reads what the image has there, normalised; only called where something of it was touched.
    """
    now = normalise(changed.entries)
    if changed.whole:
        return difference(below(), now)
    region = below() if changed.gone or changed.other else {}
    touched = {path: entry for path, entry in region.items() if _is_touched(path, changed)}
    folders = _folders((*now, *changed.gone), root.lstrip("/"))
    return difference({**folders, **touched}, {**folders, **now})


def _is_touched(path: str, changed: Changed) -> bool:
    own = (path, *map(str, PurePosixPath(path).parents))
    return path in changed.other or any(part in changed.gone for part in own)


def _folders(paths: Iterable[str], root: str) -> Tree:
    """Return the folders that paths lie in, from the root on: they are written along with what is in them."""
    inside = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
    mine = (path for path in inside if path == root or path.startswith(f"{root}/"))
    return {path: TarEntry(path, "dir", 0o755, OWNER, OWNER) for path in mine}
