"""The git objects of a snapshot: one bundle for each fork network, and mirrors that are made of them.

`git bundle create` packs with whatever deltas the store happens to have, and leaves out either all contents or none. So
the pack is made here, of a list of objects in a fixed order and with deltas of its own, and gets the header of a bundle
(https://git-scm.com/docs/gitformat-bundle): the same objects give the same bytes, as long as git is the same.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from miner.core.errors import InfrastructureFault, SnapshotError
from miner.core.reasons import Reason
from miner.crawlers.endpoints import Coordinates
from miner.crawlers.git_repo import GitRepo
from miner.crawlers.git_run import GitFault
from miner.crawlers.mirror import Mirror
from miner.crawlers.mirror_remote import Remote, RemoteGit
from miner.crawlers.snapshot_manifest import SnapshotFile, checked_file

_HEADER = "# v3 git bundle\n@object-format=sha1\n@filter=blob:none\n"
_NAME = re.compile(r"refs/repositories/[0-9]{1,20}/(?:heads|tags|pull|extracted)/.+")
_PACK = (
    ("-c", "core.bigFileThreshold=32m"),
    ("pack-objects", "--quiet", "--delta-base-offset", "--no-reuse-delta", "--no-reuse-object"),
    ("--threads=1", "--window=10", "--depth=50", "--compression=6"),
)

_Answer = TypeVar("_Answer")


class NotInSnapshot(InfrastructureFault):
    """What is replayed does not hold what would have to be asked of the forge."""

    reason = Reason.NOT_IN_SNAPSHOT
    next_step = (
        "replay with the settings that stand in snapshot.json, write the snapshot again after a run that came to its"
        " end, or mine from the forge: --source github"
    )


@dataclass(frozen=True)
class Extracted:
    """A pull request whose trees were read: where it is, and between which commits its change lies."""

    at: Coordinates
    base: str
    target: str


def names_of(mirror: Mirror, pulls: Iterable[Extracted]) -> dict[str, str]:
    """Return the names that pull requests of one repository need: reference -> object.

    Branches and tags are those of the mirror; each commit that a pull request is about has a name, too, as far as it is
    there.
    """
    repo, space = mirror.repo, mirror.remote.space
    listed = repo.run("for-each-ref", "--format=%(objectname) %(refname)", f"{space}/heads/", f"{space}/tags/")
    found = _names(listed)
    for pull in pulls:
        at, number = pull.at, pull.at.number
        head = at.head_oid if at.head_oid and mirror.has(at.head_oid) else mirror.resolve(f"pull/{number}/head")
        named = {
            f"pull/{number}/head": head,
            f"pull/{number}/merge": at.merge_commit,
            f"pull/{number}/base": at.base_oid,
            f"extracted/{number}/base": pull.base,
            f"extracted/{number}/target": pull.target,
        }
        sizes = repo.sizes(oid for oid in named.values() if oid)
        found |= {f"{space}/{name}": oid for name, oid in named.items() if oid and sizes[oid] is not None}
    return found


def contents_of(repo: GitRepo, pulls: Iterable[Extracted]) -> dict[str, str]:
    """Return the contents of the trees before and after changes, as far as they are there: id -> a path."""
    found: dict[str, str] = {}
    for pull in pulls:
        for file in (*repo.entries(pull.base), *repo.entries(pull.target)):
            if not file.is_submodule:
                found.setdefault(file.oid, file.path)
    sizes = repo.sizes(found)
    return {oid: found[oid] for oid in sorted(found) if sizes[oid] is not None}


def write_bundle(repo: GitRepo, names: Mapping[str, str], contents: Mapping[str, str], path: Path) -> None:
    """Write a bundle of names with their history, and of contents; nothing is fetched for it.

    Args:
        repo: has all of it.
        names: reference -> object.
        contents: id -> a path, which only helps to pack it well.
        path: of the bundle; its folder takes the pack for a while.

    Raises:
        GitFault: an object is missing or damaged.
    """
    tips = "".join(f"{oid}\n" for oid in sorted(set(names.values()))).encode()
    history = repo.run("rev-list", "--objects", "--filter=blob:none", "--stdin", stdin=tips)
    more = b"".join(f"{oid} ".encode() + _hint(path) + b"\n" for oid, path in contents.items())
    scratch = path.with_suffix(".pack")
    scratch.mkdir()
    try:
        repo.run(*(word for part in _PACK for word in part), str(scratch / "pack"), stdin=history + more)
        (index,) = scratch.glob("*.idx")
        repo.run("verify-pack", "--", str(index))  # packing copies what is damaged
        with path.open("wb") as out, index.with_suffix(".pack").open("rb") as pack:
            out.write(_HEADER.encode())
            for name in sorted(names):
                out.write(f"{names[name]} ".encode() + name.encode("utf-8", "surrogateescape") + b"\n")
            out.write(b"\n")
            shutil.copyfileobj(pack, out)
    finally:
        shutil.rmtree(scratch)


def _hint(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape").split(b"\n")[0]


class SnapshotMirror(Mirror):
    """A mirror that is made of a bundle, and that never asks its remote.

    Args:
        path: the store's git directory.
        remote: the bundle, and the repository whose names are looked at.
        name: of that repository.
        folder: the snapshot.
        bundle: of the fork network; None: it has none.
        more: as for `Mirror`.
    """

    def __init__(
        self, path: Path, remote: Remote, name: str, folder: Path, bundle: SnapshotFile | None, **more: Any
    ) -> None:
        super().__init__(path, remote, **more)
        self._name = name
        self._folder = folder
        self._bundle = bundle

    @cached_property
    def _remote_git(self) -> RemoteGit:
        return _Nobody(self._name)

    def mending(self, work: Callable[[], _Answer]) -> _Answer:
        """Do some work on the store, which is made of the bundle before that, and made again where it is damaged.

        Raises:
            InfrastructureFault: it was damaged again, or the bundle lacks something.
            SnapshotError: the bundle is damaged.
        """

        def prepared() -> _Answer:
            self._unbundle()
            return work()

        return super().mending(prepared)

    def _unbundle(self) -> None:
        """Take in the bundle, once; a kill at any moment leaves no mark that it is done."""
        if self._bundle is None:
            return
        mark = self.path / f"snapshot-{self._bundle.sha256[:16]}"
        if mark.is_file():
            return
        bundle = checked_file(self._folder, self._bundle).absolute()
        with self._store.locked():
            if mark.is_file():
                return
            try:
                listed = _names(self.repo.run("bundle", "unbundle", str(bundle)))
            except GitFault as fault:
                raise SnapshotError(f"git cannot take in {self._bundle.path} (2.36 or newer can): {fault}") from fault
            strange = next((name for name in listed if not _NAME.fullmatch(name)), None)
            if strange is not None:
                raise SnapshotError(f"{self._bundle.path} holds the name {strange!r}, which is none of a mirror's")
            known = _names(self.repo.run("for-each-ref", "--format=%(objectname) %(refname)"))
            new = (f"create {name}\0{oid}\0" for name, oid in listed.items() if name not in known)
            feed = "".join(new).encode("utf-8", "surrogateescape")
            self.repo.run("update-ref", "--stdin", "-z", stdin=feed)
            mark.touch()


class _Nobody(RemoteGit):
    """Stands where a remote would be asked, and says what is missing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def fetch(self, _lock: int, specs: Sequence[str], oids: Collection[str] = ()) -> None:
        """Refuse.

        Raises:
            NotInSnapshot: always.
        """
        wanted = [*(spec.partition(":")[0].removeprefix("+") for spec in specs), *oids]
        more = f" and {len(wanted) - 3} more" if len(wanted) > 3 else ""
        raise NotInSnapshot(f"the snapshot does not hold of {self._name}: {', '.join(wanted[:3])}{more}")

    def names(self) -> dict[str, str]:
        """Refuse.

        Raises:
            NotInSnapshot: always.
        """
        raise NotInSnapshot(f"the snapshot does not hold which names {self._name} has now")


def _names(listed: bytes) -> dict[str, str]:
    """Return what lines of "id name" say: name -> id."""
    lines = (line.split(" ", 1) for line in listed.decode("utf-8", "surrogateescape").split("\n") if line)
    return {name: oid for oid, name in lines}
