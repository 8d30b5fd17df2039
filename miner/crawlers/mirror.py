"""Mirrors: bare repositories that hold what was fetched from a forge, or from a folder, and nothing else.

One object store serves a whole fork network, so that forks share what they have in common; each repository has names
of its own in it (`refs/repositories/<id>/heads/*`, `tags/*`, `pull/<n>/head`, `pull/<n>/merge`). History comes without
contents (`--filter=blob:none`), contents in batches by their ids. git is told that the store is a partial clone only
while it fetches: so nothing is fetched behind anybody's back, and what is missing is missing. Nothing is checked out.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from miner.core.errors import InfrastructureFault
from miner.core.reasons import Reason
from miner.core.settings import Github
from miner.crawlers.git_repo import GitRepo
from miner.crawlers.git_run import TIMEOUT_S, GitFault
from miner.crawlers.mirror_remote import Missing, Remote, RemoteGit, Unanswered
from miner.crawlers.mirror_store import MirrorStore

__all__ = ["Mirror", "Mirrors", "Remote"]

_FULL_NAME = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_BATCH = 20_000
# Complaints that may come of a damaged store; a remote that is broken sounds much the same.
_SUSPICIOUS = re.compile(
    r"object|corrupt|unable to|missing|mismatch|could not read [0-9a-f]{40}|failed to traverse|broken|pack",
    re.IGNORECASE,
)

_Answer = TypeVar("_Answer")


class Mirrors:
    """The mirrors of a forge, one store for each fork network.

    Args:
        root: their folder.
        forge: where the forge is, and how patient to be.
        stopped: ends what is running.
    """

    def __init__(self, root: Path, forge: Github, *, stopped: threading.Event | None = None) -> None:
        self._root = root
        self._forge = forge
        self._stopped = stopped

    def of(self, full_name: str, repository_id: int, network_id: int = 0) -> Mirror:
        """Return the mirror of a repository; a network that is not known is the repository alone.

        Raises:
            InfrastructureFault: the forge gave a name that is none.
        """
        if not _FULL_NAME.fullmatch(full_name) or {".", ".."} & set(full_name.split("/")):
            raise InfrastructureFault(f"{full_name!r} is no name of a repository", reason=Reason.FORGE_ERROR)
        url = f"{self._forge.url.rstrip('/')}/{full_name}.git"
        return Mirror(
            self._root / f"{network_id or repository_id}.git",
            Remote(url, repository_id, self._forge.ca_bundle),
            timeout_s=self._forge.git_timeout_s,
            tries=self._forge.tries,
            stopped=self._stopped,
        )


class Mirror:
    """The store of a fork network, seen from one of its repositories.

    Args:
        path: the store's git directory; made where it is missing.
        remote: the repository.
        timeout_s: how long one git command may take.
        tries: how often the remote is asked.
        wait_s: the first wait between two tries; it doubles.
        stopped: ends what is running.
    """

    def __init__(
        self,
        path: Path,
        remote: Remote,
        *,
        timeout_s: float = TIMEOUT_S,
        tries: int = 4,
        wait_s: float = 1.0,
        stopped: threading.Event | None = None,
    ) -> None:
        self.path = path.absolute()
        self.remote = remote
        self._timeout_s = timeout_s
        self._tries = tries
        self._wait_s = wait_s
        self._stopped = stopped or threading.Event()
        self._store = MirrorStore(path, self._stopped)

    @property
    def repo(self) -> GitRepo:
        """The store."""
        if not self._store.is_made:
            with self._store.locked():
                pass
        return GitRepo(self.path, timeout_s=self._timeout_s, stopped=self._stopped)

    @cached_property
    def _remote_git(self) -> RemoteGit:
        return RemoteGit(self.repo, self.remote, tries=self._tries, wait_s=self._wait_s, stopped=self._stopped)

    def has(self, oid: str) -> bool:
        """Whether an object is there; a commit comes with its whole history."""
        return self.repo.sizes([oid])[oid] is not None

    def resolve(self, name: str) -> str | None:
        """Return the id of the commit that a name of the repository stands for ("pull/7/head"), None where none."""
        ref = f"{self.remote.space}/{name}^{{commit}}"
        status, out, _ = self.repo.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", ref)
        return None if status else out.decode().strip()

    def names(self) -> dict[str, str]:
        """Return what the remote has names for: full reference -> id, and "HEAD" -> the reference that it points to.

        Raises:
            Refused: the repository is gone.
            InfrastructureFault: it cannot be asked now.
        """
        try:
            return self._remote_git.names()
        except Unanswered as error:
            raise self._fault(str(error)) from error

    def bring(self, wanted: Mapping[str, str], *, also: Mapping[str, str] | None = None) -> frozenset[str]:
        """Fetch history that is not there yet, in one request, and return the names that the remote does not have.

        Args:
            wanted: name -> the id of a commit, or a full reference of the remote, which is asked for every time.
            also: more of the same ("tags/*" -> "refs/tags/*"), fetched only if anything of `wanted` is, or if nothing
                was ever fetched for this repository: others of its network may have brought all of `wanted`.

        Raises:
            Refused: the repository is gone.
            InfrastructureFault: the remote cannot be fetched from now.
            GitFault: the store is damaged.
        """
        repo = self.repo
        with self._store.locked() as lock:
            sizes = repo.sizes(source for source in wanted.values() if not source.startswith("refs/"))
            lacking = {name: source for name, source in wanted.items() if sizes.get(source) is None}
            if not lacking and (not also or self._has_names()):
                return frozenset()
            return self._fetch(lock, {**(also or {}), **lacking}) & lacking.keys()

    def _has_names(self) -> bool:
        return self.repo.run("for-each-ref", "--count=1", f"{self.remote.space}/") != b""

    def _fetch(self, lock: int, sources: dict[str, str]) -> frozenset[str]:
        """Fetch by name -> source, and return the names of those that the remote does not have."""
        gone: set[str] = set()
        while sources:
            try:
                specs = [f"+{source}:{self.remote.space}/{name}" for name, source in sources.items()]
                self._ask(lock, specs)
                break
            except Missing as missing:
                lost = {name for name, source in sources.items() if source == missing.name}
                if not lost:
                    raise self._fault(f"it does not have {missing.name}, which was not asked for") from None
                gone |= lost
                sources = {name: source for name, source in sources.items() if name not in lost}
        return frozenset(gone)

    def bring_blobs(self, oids: Collection[str], *, lenient: bool = False) -> frozenset[str]:
        """Fetch contents that are not there yet, all in one request.

        Args:
            oids: ids of contents.
            lenient: return those that the remote does not have, each of which costs one more request.

        Raises:
            InfrastructureFault: the remote does not have them all, or cannot be fetched from now.
            GitFault: the store is damaged.
        """
        repo, absent = self.repo, set[str]()
        with self._store.locked() as lock:
            lacking = {oid for oid, size in repo.sizes(oids).items() if size is None}
            while lacking:
                batch = sorted(lacking)[:_BATCH]
                try:
                    self._ask(lock, [], batch)
                    lacking.difference_update(batch)
                except Missing as missing:
                    if not lenient or missing.name not in lacking:
                        detail = f"it does not have the object {missing.name}, which its trees name"
                        raise self._fault(detail) from None
                    absent.add(missing.name)
                    lacking.remove(missing.name)
            left = [oid for oid, size in repo.sizes(oids).items() if size is None and oid not in absent]
            if left:
                raise self._fault(f"{len(left)} objects did not come, {left[0]} among them")
        return frozenset(absent)

    def _ask(self, lock: int, specs: list[str], oids: Collection[str] = ()) -> None:
        try:
            self._remote_git.fetch(lock, specs, oids)
        except Unanswered as error:
            if _SUSPICIOUS.search(str(error)) and not self._store.is_sound(self.repo):
                raise GitFault(f"git fetch failed in a damaged mirror: {error}") from error
            raise self._fault(str(error)) from error

    def mending(self, work: Callable[[], _Answer]) -> _Answer:
        """Do some work on the store; where it turns out to be damaged, make the store again and do the work once more.

        Raises:
            InfrastructureFault: it was damaged again.
        """
        try:
            return work()
        except GitFault:
            with self._store.locked():
                self._store.remake()
        try:
            return work()
        except GitFault as fault:
            detail = f"mirror {self.path.name} was made again and is still no good: {fault}"
            raise InfrastructureFault(detail, reason=Reason.MIRROR_FAILED) from fault

    def _fault(self, detail: str) -> InfrastructureFault:
        where = self.remote.url if self.remote.scheme != "file" else "the given folder"
        return InfrastructureFault(f"{where}: {detail}", reason=Reason.MIRROR_FAILED)
