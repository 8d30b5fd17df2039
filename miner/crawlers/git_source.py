"""Source `git`: pull requests that were given by hand, from repositories in a folder, which is only read.

look_up    the row as it was given, and which commits it means     (the folder)
extract    base and target in a mirror of our own                  (the folder)
candidate  statement, links, split: computed from those two        (pure)
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from miner.core.blobs import BlobStore
from miner.core.errors import ConfigError
from miner.core.hashing import canonical_json
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Candidate, Fact, Observation, Producer, Record, Visibility
from miner.core.text import some
from miner.crawlers.candidate import checked_split, versions_of
from miner.crawlers.git_repo import GitRepo
from miner.crawlers.given import GivenPull, find_mirror, looked_for, read_pulls
from miner.crawlers.interface import Found, Refused, Rejection, negative
from miner.crawlers.merge_search import find_merge
from miner.crawlers.merged import Coordinates, extract_pull, whole_trees
from miner.crawlers.mirror import Mirror, Remote

LOOK_UP = Producer(name="git.look_up", epoch=1)
EXTRACT = Producer(name="git.extract", epoch=2)
_BETWEEN = "\n\n---\n\n"


class GivenItem(Record):
    """A given pull request, and what its repository says of it now.

    Attributes:
        folder: where its repository lies, below the folder of mirrors; None: nowhere.
        head: what `refs/pull/N/head` is, None where there is none.
        branch: the default branch.
        may_lack_files: whether it is taken where its repository lacks contents.
    """

    row: GivenPull
    folder: str | None = None
    head: str | None = None
    branch: str = ""
    may_lack_files: bool = False

    @property
    def visibility(self) -> Visibility | None:
        """Who may read what about it."""
        return self.row.visibility

    @property
    def origin(self) -> dict[str, Any]:
        """What identifies it, as the ledger keeps it."""
        return {"repo": self.row.repo, "number": self.row.pull}

    @property
    def identity(self) -> dict[str, Any]:
        """The origin as it stands in the payload of its first fact."""
        return {"origin": self.origin}

    @property
    def inputs(self) -> dict[str, Any]:
        """What its first fact depends on."""
        return {"item": self.model_dump(mode="json", exclude={"row": {"visibility"}})}


class GitSource:
    """The source as `miner.crawlers.interface.Source` asks for it.

    Args:
        pulls: file of JSON lines, one pull request each.
        folder: of repositories, which is only read.
        blobs: where large facts are kept.
        mirrors: folder of our own mirrors.
        may_lack_files: take trees of which the folder lacks contents, without these files: for trying known tasks.
        month: only pull requests that were merged then, by their rows; None: all.
        timeout_s: how long one git command may take.
        stopped: ends what is running.
    """

    name = "git"
    look_up_producer = LOOK_UP
    extract_producer = EXTRACT
    notes: tuple[str, ...] = ()

    def __init__(
        self,
        pulls: Path,
        folder: Path,
        blobs: BlobStore,
        mirrors: Path,
        *,
        may_lack_files: bool = False,
        month: str | None = None,
        timeout_s: float = 1800.0,
        stopped: threading.Event | None = None,
    ) -> None:
        self._pulls = pulls
        self._folder = folder
        self._blobs = blobs
        self._mirrors = mirrors
        self._may_lack_files = may_lack_files
        self._month = month
        self._timeout_s = timeout_s
        self._stopped = stopped

    @cached_property
    def _rows(self) -> tuple[GivenPull, ...]:
        return read_pulls(self._pulls)

    def units(self, _memo: Memo) -> tuple[str, ...]:
        """Return the repositories, as the rows name them.

        Raises:
            ConfigError: the folder is not there, or the file cannot be read.
        """
        if not self._folder.is_dir():
            raise ConfigError(f"mine.git_mirrors: there is no folder {self._folder}")
        return tuple(sorted({row.repo.lower() for row in self._rows}))

    def discover(self, unit: str, _memo: Memo) -> Found[GivenItem]:
        """Return the pull requests of a repository, with what it says of them now."""
        rows = [row for row in self._rows if row.repo.lower() == unit]
        taken = [row for row in rows if self._month is None or _month(row) == self._month]
        notes = [f"{len(rows) - len(taken)} rows are not of {self._month}"] if len(taken) < len(rows) else []
        names: dict[str, dict[str, str]] = {}
        items = []
        for row in taken:
            place = find_mirror(self._folder, row)
            folder = None if place is None else place.as_posix()
            if folder is not None and folder not in names:
                names[folder] = self._names(row, folder)
            said = names[folder] if folder is not None else {}
            items.append(self._item(row, folder, said))
        return Found(items=tuple(items), merged=len(rows), notes=tuple(notes))

    def _names(self, row: GivenPull, folder: str) -> dict[str, str]:
        try:
            return self._mirror(row, folder).names()
        except Refused:
            return {}  # it is refused again, with its reason, when it is looked up

    def _item(self, row: GivenPull, folder: str | None, said: Mapping[str, str]) -> GivenItem:
        head = said.get(f"refs/pull/{row.pull}/head")
        branch = said.get("HEAD", "").removeprefix("refs/heads/")
        return GivenItem(row=row, folder=folder, head=head, branch=branch, may_lack_files=self._may_lack_files)

    def subject(self, item: GivenItem) -> str:
        """Return the instance id of an item."""
        return f"{item.row.repo.replace('/', '__')}-{item.row.pull}"

    def look_up(self, item: GivenItem) -> Observation:
        """Note the row, and find the commits that it means."""
        row = item.row
        if item.folder is None:
            what = f"{row.path} is no repository" if row.path else f"there is no {looked_for(row.repo)}"
            return negative(Reason.MIRROR_MISSING, f"in the folder of mirrors, {what}")
        mirror, notes = self._mirror(row, item.folder), list[str]()
        try:
            coordinates = mirror.mending(lambda: _coordinates(mirror, item, notes))
        except Refused as refusal:
            return negative(refusal.reason, refusal.detail)
        return Observation(
            payload={
                "coordinates": coordinates.model_dump(mode="json"),
                "may_lack_files": item.may_lack_files,
                "notes": notes,
            },
            blobs={"row": self._blobs.put_text(canonical_json(row.model_dump(mode="json", exclude={"visibility"})))},
        )

    def extract(self, item: GivenItem, looked_up: Fact) -> Observation:
        """Bring base and target into a mirror."""
        mirror = self._mirror(item.row, item.folder or "")
        return extract_pull(mirror, _of(looked_up), self._blobs, given_base=item.row.base_commit, whole=True)

    def repository(self, item: GivenItem, looked_up: Fact, extracted: Fact) -> GitRepo:
        """Return the repository with both trees, fetched again if it was lost."""
        mirror = self._mirror(item.row, item.folder or "")
        return whole_trees(mirror, _of(looked_up), extracted.payload, given_base=item.row.base_commit)

    @staticmethod
    def candidate(looked_up: Fact, extracted: Fact, blobs: BlobStore) -> Candidate | Rejection:
        """Compute the candidate."""
        absent = sorted(extracted.payload["absent"])
        if absent and not looked_up.payload["may_lack_files"]:
            detail = f"contents of {len(absent)} files are not there: {some(absent)}"
            return Rejection(reason=Reason.MIRROR_INCOMPLETE, detail=detail)
        split = checked_split(extracted.payload, extracted.blobs, blobs)
        if isinstance(split, Rejection):
            return split
        row = GivenPull.model_validate_json(blobs.get(looked_up.blobs["row"]))
        version, base_version = versions_of(extracted.payload, extracted.blobs, blobs)
        return Candidate(
            instance_id=looked_up.key.subject,
            source="git",
            repo=row.repo,
            version=version,
            base_version=base_version,
            base_commit=extracted.payload["base_commit"],
            base_tree=extracted.payload["base_tree"],
            target_tree=extracted.payload["target_tree"],
            created_at=row.created_at or row.merged_at or _last_commit(extracted),
            patch=split.gold_patch.decode("utf-8", "surrogateescape"),
            test_patch=split.test_patch.decode("utf-8", "surrogateescape"),
            statement=_statement(row),
            links=row.links,
            test_files=split.test_files,
            gold_files=split.gold_files,
            pull=row.pull,
            month=_month(row),
            merged_at=row.merged_at,
            closed_at=row.closed_at,
            issues=row.issues,
        )

    @staticmethod
    def crawled(_looked_up: Fact, _blobs: BlobStore) -> None:
        """Return None: there is no forge."""
        return

    def _mirror(self, row: GivenPull, folder: str) -> Mirror:
        """Return our own mirror of a repository: one for each place that repositories were given at."""
        place = hashlib.sha256(folder.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        path = self._mirrors / f"{row.repo.lower().replace('/', '__')}-{place}.git"
        remote = Remote((self._folder / folder).absolute().as_uri(), repository_id=0)
        return Mirror(path, remote, timeout_s=self._timeout_s, stopped=self._stopped)


def _coordinates(mirror: Mirror, item: GivenItem, notes: list[str]) -> Coordinates:
    """Return where a pull request is; the merge commit is looked for where the row names neither it nor a base."""
    row, head = item.row, item.row.head_commit or item.head or ""
    merge = row.merge_commit
    if row.base_commit is None and merge is None and head and item.branch:
        wanted = {f"pull/{row.pull}/head": head, f"heads/{item.branch}": f"refs/heads/{item.branch}"}
        gone = mirror.bring(wanted, also={"tags/*": "refs/tags/*"})
        if not gone:
            tip = mirror.repo.commit_of(f"{mirror.remote.space}/heads/{item.branch}")
            merge, how = find_merge(mirror, head, row.pull, tip)
            notes.append(f"merge commit {merge}: {how}")
    return Coordinates(
        repository_id=0,
        network_id=0,
        full_name=row.repo,
        number=row.pull,
        base_branch=item.branch,
        base_oid="",
        head_oid=head,
        merge_commit=merge,
    )


def _of(looked_up: Fact) -> Coordinates:
    return Coordinates.model_validate(looked_up.payload["coordinates"])


def _month(row: GivenPull) -> str | None:
    return None if row.merged_at is None else f"{row.merged_at.astimezone(UTC):%Y-%m}"


def _last_commit(extracted: Fact) -> datetime:
    return datetime.fromisoformat(extracted.payload["committed_at"][-1])


def _statement(row: GivenPull) -> str:
    if row.statement is not None:
        return row.statement
    return _BETWEEN.join("\n\n".join(filter(None, (issue.title, issue.body))) for issue in row.issues)
