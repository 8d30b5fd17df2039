"""Source `pypi`: two releases of a real package, taken as a pull request from the old one to the new one.

look_up    what the index says about both versions                          (network)
extract    both source distributions as commits of a bare repository        (network)
candidate  statement, links, split: computed from those two                 (pure)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

from miner.core.blobs import BlobStore
from miner.core.errors import ConfigError, InfrastructureFault
from miner.core.hashing import canonical_json
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Candidate, Fact, Observation, Producer, ReleasePair, SourceFile
from miner.core.settings import ArchiveLimits
from miner.crawlers.archive import Entry, Tree, read_archive
from miner.crawlers.candidate import compute_candidate
from miner.crawlers.changelog import is_changelog
from miner.crawlers.declarations import MAX_BYTES, bounded, is_declaration
from miner.crawlers.git_repo import GitRepo, make_repo
from miner.crawlers.index import IndexClient
from miner.crawlers.interface import Found, Refused, Rejection, negative
from miner.crawlers.releases import check_pair, instance_id, look_up, source_files
from miner.crawlers.texts import read_texts

LOOK_UP = Producer(name="pypi.look_up", epoch=2)
EXTRACT = Producer(name="pypi.extract", epoch=2)
BASE, TARGET = "base", "target"
_MAX_CHANGELOG = 1 << 20

Payload = Mapping[str, Any]


class PypiSource:
    """The source as `miner.crawlers.interface.Source` asks for it.

    Args:
        pairs: what to look at.
        index: the package index.
        blobs: where large facts are kept.
        repos: folder of bare repositories.
        limits: bounds of an unpacked source distribution.
    """

    name = "pypi"
    look_up_producer = LOOK_UP
    extract_producer = EXTRACT
    notes: tuple[str, ...] = ()

    def __init__(
        self, pairs: Iterable[ReleasePair], index: IndexClient, blobs: BlobStore, repos: Path, limits: ArchiveLimits
    ) -> None:
        self._pairs = tuple(pairs)
        self._index = index
        self._blobs = blobs
        self._repos = repos
        self._limits = limits

    def units(self, _memo: Memo) -> tuple[str, ...]:
        """Return the one unit of this source; none where there are no pairs."""
        return ("pairs",) if self._pairs else ()

    def discover(self, _unit: str, _memo: Memo) -> Found[ReleasePair]:
        """Return the configured pairs, each once.

        Raises:
            ConfigError: a pair names no two releases, one after the other, or two pairs would make one candidate.
        """
        found: dict[tuple[str, Version], ReleasePair] = {}
        for pair in self._pairs:
            check_pair(pair)
            release = canonicalize_name(pair.name), Version(pair.new)  # 3 and 3.0 have two ids, and are one release
            first = found.setdefault(release, pair)
            if Version(first.old) != Version(pair.old):
                raise ConfigError(f"pairs: {pair.name} {pair.new} stands twice, after {first.old} and after {pair.old}")
            if first.visibility != pair.visibility:
                raise ConfigError(f"pairs: {pair.name} {pair.new} stands twice, with one visibility and another")
        return Found(items=tuple(found.values()), merged=len(found))

    def subject(self, item: ReleasePair) -> str:
        """Return the instance id of a pair."""
        return instance_id(item)

    def look_up(self, item: ReleasePair) -> Observation:
        """Ask the index about both versions."""
        return look_up(item, self._index, self._blobs)

    def extract(self, item: ReleasePair, looked_up: Fact) -> Observation:
        """Bring both versions into a repository."""
        files = source_files(looked_up.payload, looked_up.logs, self._blobs)
        return extract(item, files, self._index, self._blobs, self._repos, self._limits)

    def repository(self, item: ReleasePair, looked_up: Fact, extracted: Fact) -> GitRepo:
        """Return the repository of a pair, made again if it was lost."""
        files = partial(source_files, looked_up.payload, looked_up.logs, self._blobs)
        return ensure_repo(item, files, extracted.payload, self._index, self._repos, self._limits)

    @staticmethod
    def candidate(looked_up: Fact, extracted: Fact, blobs: BlobStore) -> Candidate | Rejection:
        """Compute the candidate."""
        pair = ReleasePair.model_validate(looked_up.payload["pair"])
        return compute_candidate(pair, looked_up.payload, extracted.payload, extracted.blobs, blobs)

    @staticmethod
    def crawled(_looked_up: Fact, _blobs: BlobStore) -> None:
        """Return None: there is no forge."""
        return


def repo_path(pair: ReleasePair, repos: Path) -> Path:
    """Return where the repository of a pair is kept."""
    return repos / f"{instance_id(pair)}.git"


def extract(
    pair: ReleasePair,
    files: tuple[SourceFile, SourceFile],
    index: IndexClient,
    blobs: BlobStore,
    repos: Path,
    limits: ArchiveLimits,
) -> Observation:
    """Bring both source distributions into a bare repository, and keep what later stages compute with.

    The payload names commits, trees, changed paths and all paths of both trees; blobs are git's `diff`, the texts of
    declaration files (`base_files`, `target_files`) and of change logs (`changelog`: `old` and `new`).
    """
    notes: list[str] = []
    try:
        repo = _make(pair, files, index, repos, limits, notes)
    except Refused as refusal:
        return negative(refusal.reason, refusal.detail, network=refusal.reason is Reason.HASH_MISMATCH)
    base, target = repo.commit_of(f"refs/heads/{BASE}"), repo.commit_of(f"refs/heads/{TARGET}")
    old, new = (
        _texts(repo, base, is_changelog, _MAX_CHANGELOG, notes),
        _texts(repo, target, is_changelog, _MAX_CHANGELOG, notes),
    )
    return Observation(
        payload={
            "base_commit": base,
            "target_commit": target,
            "base_tree": repo.tree_of(base),
            "target_tree": repo.tree_of(target),
            "changes": [change.model_dump(mode="json") for change in repo.changes(base, target)],
            "base_paths": [file.path for file in repo.files(base)],
            "target_paths": [file.path for file in repo.files(target)],
            "notes": notes,
        },
        blobs={
            "diff": blobs.put(repo.diff(base, target)),
            "base_files": blobs.put_text(canonical_json(_declared(repo, base, notes))),
            "target_files": blobs.put_text(canonical_json(_declared(repo, target, notes))),
            "changelog": blobs.put_text(canonical_json({"old": old, "new": new})),
        },
    )


def ensure_repo(
    pair: ReleasePair,
    files: Callable[[], tuple[SourceFile, SourceFile]],
    extracted: Payload,
    index: IndexClient,
    repos: Path,
    limits: ArchiveLimits,
) -> GitRepo:
    """Return the repository of a pair, made again from the index where it is missing or damaged.

    `files` is asked for the source distributions only if the repository has to be made.

    Raises:
        InfrastructureFault: what the index gives now is not what it gave when the pair was extracted.
    """
    path = repo_path(pair, repos)
    wanted = (extracted["base_commit"], extracted["target_commit"])
    if path.is_dir() and _is_whole(GitRepo(path), wanted):
        return GitRepo(path)
    try:
        repo = _make(pair, files(), index, repos, limits, [])
    except Refused as refusal:
        raise InfrastructureFault(
            f"{path.name} cannot be made again: {refusal}", reason=Reason.INDEX_ERROR
        ) from refusal
    if not _is_whole(repo, wanted):
        raise InfrastructureFault(f"{path.name} was made again, but has other commits than {', '.join(wanted)}")
    return repo


def _is_whole(repo: GitRepo, commits: Iterable[str]) -> bool:
    """Whether every object of these commits is there and has the content that its name says."""
    try:
        repo.run("fsck", "--full", "--no-dangling", *commits)
    except InfrastructureFault:
        return False
    return True


def _make(
    pair: ReleasePair,
    files: tuple[SourceFile, SourceFile],
    index: IndexClient,
    repos: Path,
    limits: ArchiveLimits,
    notes: list[str],
) -> GitRepo:
    def commits() -> Iterable[tuple[str, Mapping[str, Entry], datetime, str]]:
        for branch, version, file in zip((BASE, TARGET), (pair.old, pair.new), files, strict=True):
            tree = _tree(file, index, limits)
            notes.extend(f"{file.filename}: {note}" for note in tree.notes)
            yield branch, tree.entries, file.uploaded_at, f"{pair.name} {version}"

    return make_repo(repo_path(pair, repos), commits())


def _tree(file: SourceFile, index: IndexClient, limits: ArchiveLimits) -> Tree:
    try:
        return read_archive(index.download(file), file.filename, limits)
    except Refused as refusal:
        refusal.detail = f"{file.filename}: {refusal.detail.removeprefix(file.filename + ': ')}"
        raise


def _declared(repo: GitRepo, commit: str, notes: list[str]) -> dict[str, str]:
    return read_texts(repo, bounded(repo.files(commit), notes), is_declaration, MAX_BYTES, notes)


def _texts(repo: GitRepo, commit: str, wanted: Callable[[str], bool], most: int, notes: list[str]) -> dict[str, str]:
    return read_texts(repo, repo.files(commit), wanted, most, notes)
