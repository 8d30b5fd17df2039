"""Source `snapshot`: a month of the forge as it was crawled, replayed from a folder, with no network.

It is the source `github` over what is known already: the same facts make the same candidates. The forge is not asked,
time stands still, so that nothing is too old, and a no that somebody else was told is not asked for again.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import structlog

from miner.core.blobs import BlobStore
from miner.core.errors import SnapshotError
from miner.core.ledger import Ledger
from miner.core.memo import Memo
from miner.core.records import Fact
from miner.core.settings import Github, Settings, configs_dir
from miner.crawlers.github.client import ForgeClient
from miner.crawlers.github.items import PullItem
from miner.crawlers.github.optout import OptOut, full_name, read_list, read_optout
from miner.crawlers.github.source import OPTOUT, GithubSource
from miner.crawlers.interface import Found
from miner.crawlers.merged import Coordinates
from miner.crawlers.mirror import Mirror, Remote
from miner.crawlers.snapshot_facts import take_in
from miner.crawlers.snapshot_git import NotInSnapshot, SnapshotMirror
from miner.crawlers.snapshot_manifest import GIT, REPOSITORIES, checked_file, read_manifest

_QUERY = re.compile(r"\bquery\s+(\w+)")
_log = structlog.get_logger()


class ClosedForge(ForgeClient):
    """A forge that is not asked: what a question would have been says what is missing."""

    def __init__(self, settings: Github) -> None:
        super().__init__(settings, tokens=())

    def graphql(self, document: str, variables: Mapping[str, Any]) -> NoReturn:
        """Refuse.

        Raises:
            NotInSnapshot: always.
        """
        query = _QUERY.search(document)
        named = f"{variables.get('owner', variables.get('o0', ''))}/{variables.get('name', variables.get('n0', ''))}"
        about = named if named != "/" else str(variables.get("id") or variables.get("query") or "the forge")
        raise NotInSnapshot(f"not known, and not asked for: {query[1] if query else 'a query'} of {about}")

    def get(self, path: str, *_args: Any, **_more: Any) -> NoReturn:
        """Refuse.

        Raises:
            NotInSnapshot: always.
        """
        raise NotInSnapshot(f"not known, and not asked for: {path}")


class OfflineSource(GithubSource):
    """The source `github` over what a ledger knows.

    Args:
        settings: of the run.
        names: the repositories.
        blobs: where answers are kept.
        mirrors: folder of git mirrors.
        opted_out: repositories that asked not to be mined, beside those that lists on this machine name.
        stopped: ends what git is doing.
    """

    def __init__(
        self,
        settings: Settings,
        names: Iterable[str],
        blobs: BlobStore,
        mirrors: Path,
        *,
        opted_out: Iterable[str] = (),
        stopped: threading.Event | None = None,
    ) -> None:
        forge = ClosedForge(settings.github)
        super().__init__(settings, forge, blobs, mirrors, clock=self._then, stopped=stopped)
        self._units = tuple(names)
        self._others = frozenset(opted_out)

    def units(self, _memo: Memo, /) -> tuple[str, ...]:
        """Return the repositories."""
        return self._units

    def discover(self, unit: str, memo: Memo, /) -> Found[PullItem]:
        """Return the pull requests of the month that are known of one repository.

        Raises:
            NotInSnapshot: the crawl of it did not come to its end, or these settings ask for more.
        """
        return super().discover(unit, memo.patient())

    def mirror_at(self, at: Coordinates) -> Mirror:
        """Return the mirror of the repository of a pull request."""
        return self._mirrors.of(at.full_name, at.repository_id, at.network_id)

    def _mirror(self, looked_up: Fact) -> tuple[Mirror, Coordinates]:
        at = Coordinates.model_validate(looked_up.payload["coordinates"])
        return self.mirror_at(at), at

    def _then(self) -> datetime:
        return self._month.start

    def _opted_out(self, memo: Memo) -> OptOut:
        """Return who is never mined: by the lists of this machine, and by what was found of them when it was asked."""
        with self._locks.of("optout"):
            if self._optout is None:
                said = read_optout(configs_dir() / "optout.toml").joined(OptOut(names=self._others))
                if self._settings.mine.optout is not None:
                    said = said.joined(read_optout(self._settings.mine.optout))
                facts = memo.known(OPTOUT, "crawl.optout", "optout")
                ids = frozenset(int(number) for fact in facts for number in fact.payload["ids"])
                self._optout = said.joined(OptOut(ids=ids))
            return self._optout


class SnapshotSource(OfflineSource):
    """A snapshot; its facts are taken into the ledger when the run asks for its units.

    Args:
        settings: of the run, as `miner.jobs.sources.settled` has them.
        folder: of the snapshot.
        ledger: takes its facts; it is held by the run.
        blobs: take its blobs.
        mirrors: folder of git mirrors.
        stopped: ends what git is doing.

    Raises:
        SnapshotError: it is damaged, or newer than this program.
        ConfigError: no month is named.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        ledger: Ledger,
        blobs: BlobStore,
        mirrors: Path,
        *,
        stopped: threading.Event | None = None,
    ) -> None:
        self._manifest = manifest = read_manifest(folder)
        self._folder = folder
        self._ledger = ledger
        self._mirrors_folder = mirrors
        self._stopped = stopped
        names = self._chosen(settings)
        super().__init__(settings, names, blobs, mirrors, opted_out=manifest.opted_out, stopped=stopped)

    def units(self, memo: Memo, /) -> tuple[str, ...]:
        """Take in what the ledger lacks, and return the repositories.

        Raises:
            SnapshotError: it is damaged, or the ledger holds another crawl of the same repositories.
        """
        taken = take_in(self._folder, self._manifest, self._ledger, self._blobs, self._settings)
        if taken.facts or taken.blobs:
            _log.info("snapshot taken in", facts=taken.facts, blobs=taken.blobs, month=self._manifest.month)
        return super().units(memo)

    def mirror_at(self, at: Coordinates) -> Mirror:
        """Return the mirror of the repository of a pull request, which is made of the snapshot's bundle."""
        network = at.network_id or at.repository_id
        bundle = f"{GIT}/{network}.bundle"
        return SnapshotMirror(
            self._mirrors_folder / f"{network}.git",
            Remote((self._folder / bundle).absolute().as_uri(), at.repository_id),
            at.full_name,
            self._folder,
            self._manifest.file(bundle),
            timeout_s=self._settings.github.git_timeout_s,
            stopped=self._stopped,
        )

    def _chosen(self, settings: Settings) -> tuple[str, ...]:
        """Return all repositories of the snapshot, or those that the settings pick."""
        file, chosen = self._manifest.file(REPOSITORIES), settings.mine.repositories
        if file is None:
            raise SnapshotError(f"the snapshot lacks {REPOSITORIES}")
        if chosen != self._manifest.mine.repositories:
            return tuple(full_name(name, where="mine.repositories") for name in chosen)
        return read_list(checked_file(self._folder, file))
