"""A merged pull request as a change between two trees: what later stages compute with, read from a mirror."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from miner.core.blobs import BlobStore
from miner.core.errors import InfrastructureFault
from miner.core.hashing import canonical_json
from miner.core.reasons import Reason
from miner.core.records import Observation
from miner.core.text import some
from miner.crawlers.declarations import MAX_BYTES, bounded, is_declaration
from miner.crawlers.endpoints import Coordinates, Endpoints, endpoints
from miner.crawlers.git_repo import GitRepo, TreeFile, hostile_path
from miner.crawlers.interface import Refused, Rejection, negative
from miner.crawlers.landed import commit_lines
from miner.crawlers.mirror import Mirror
from miner.crawlers.patches import unfaithful
from miner.crawlers.split import Split, split_change
from miner.crawlers.tags import read_tags, version_at
from miner.crawlers.texts import is_text_wanted, read_texts
from miner.project.pytest_config import read_pytest_config

__all__ = ["Coordinates", "Endpoints", "endpoints", "extract_pull", "whole_trees"]

_MAX_COMMITS = 250
_LATEST = 253402300799  # the end of the year 9999: a date that somebody set by hand may lie beyond it
_OF_THE_NETWORK = (Reason.COMMIT_GONE, Reason.REPOSITORY_GONE, Reason.REPOSITORY_UNAVAILABLE)


def extract_pull(
    mirror: Mirror, at: Coordinates, blobs: BlobStore, *, given_base: str | None = None, whole: bool = False
) -> Observation:
    """Bring a pull request's history and what it changes into a mirror, and keep what later stages compute with.

    The payload names commits, trees, changed paths and all paths of both trees, as that of a release pair does; blobs
    are git's `diff` and the texts of declaration files (`base_files`, `target_files`). Beside these:

    - `kind`, `merged_tree_differs`: how it was merged, see `miner.crawlers.endpoints`
    - `faithful`, `unfaithful`: whether base, gold patch and test patch make the target tree in either order; why not
    - `version`, `base_version`: of the project after and before the change, by its tags
    - `commit_titles`, `committed_at`: of the commits between base and head, in order
    - `submodules`: path -> commit, of the base
    - `absent`: path -> id of a content that the remote does not have, of both trees, where they are brought whole

    Args:
        mirror: of its repository.
        at: where it is.
        blobs: take the diff and the texts.
        given_base: a base that was chosen by hand.
        whole: bring both trees whole, and say what the remote lacks of them; else that is a fault when it is needed.

    Raises:
        InfrastructureFault: it cannot be fetched from now, or what is fetched is damaged.
    """
    try:
        return mirror.mending(lambda: _extract(mirror, at, blobs, given_base, whole))
    except Refused as refusal:
        return _negative(refusal.reason, refusal.detail)


def whole_trees(
    mirror: Mirror, at: Coordinates, extracted: Mapping[str, Any], *, given_base: str | None = None
) -> GitRepo:
    """Return a repository with the whole base of an extracted pull request, and what the change touches.

    Contents that were absent then are left out.

    Raises:
        InfrastructureFault: it cannot be fetched from now, is damaged, or other commits come out than before.
    """
    base, target = extracted["base_commit"], extracted["target_commit"]
    absent = frozenset(extracted["absent"].values())

    def work() -> GitRepo:
        if not (mirror.has(base) and mirror.has(target)):
            found = endpoints(mirror, at, given_base=given_base)
            if isinstance(found, Rejection) or (found.base, found.target) != (base, target):
                raise _changed(at, f"the change no longer lies between {base} and {target}")
        repo = GitRepo(mirror.path, absent=absent)
        files = repo.entries(base)
        contents = repo.changed_blobs(base, target) | {file.oid for file in files if not file.is_submodule}
        mirror.bring_blobs(contents - repo.absent)
        for _ in repo.blobs(repo.files(base)):
            pass  # each is checked against its name
        return repo

    try:
        return mirror.mending(work)
    except Refused as refusal:
        raise _changed(at, str(refusal)) from refusal


def _changed(at: Coordinates, detail: str) -> InfrastructureFault:
    return InfrastructureFault(f"{at.full_name}#{at.number}: {detail}", reason=Reason.MIRROR_FAILED)


def _negative(reason: Reason, detail: str) -> Observation:
    return negative(reason, detail, network=reason in _OF_THE_NETWORK)


def _extract(mirror: Mirror, at: Coordinates, blobs: BlobStore, given_base: str | None, whole: bool) -> Observation:
    ends = endpoints(mirror, at, given_base=given_base)
    if isinstance(ends, Rejection):
        return _negative(ends.reason, ends.detail)
    repo, base, target = mirror.repo, ends.base, ends.target
    before, after = repo.entries(base), repo.entries(target)
    hostile = hostile_path(before) or hostile_path(after)
    if hostile is not None:
        return negative(Reason.TREE_UNSAFE, hostile)
    declared = {file.oid for file in (*before, *after) if is_text_wanted(file, is_declaration)}
    needed = repo.changed_blobs(base, target) | declared
    absent = _absent(mirror, (*before, *after)) if whole else {}
    lost = sorted(path for path, oid in absent.items() if oid in needed)
    if lost:
        return negative(Reason.MIRROR_INCOMPLETE, f"contents that are needed are not there: {some(lost)}")
    mirror.bring_blobs(needed)
    notes = list(ends.notes)
    texts = [_declared(repo, files, notes) for files in (before, after)]
    diff = repo.diff(base, target)
    wrong = _unfaithful(repo, ends, diff, before, after, texts[1])
    return Observation(
        payload={
            "base_commit": base,
            "target_commit": target,
            "base_tree": repo.tree_of(base),
            "target_tree": repo.tree_of(target),
            "changes": [change.model_dump(mode="json") for change in repo.changes(base, target)],
            "base_paths": _paths(before),
            "target_paths": _paths(after),
            "kind": ends.kind,
            "merged_tree_differs": ends.merged_tree_differs,
            "faithful": wrong is None,
            "unfaithful": wrong,
            "absent": absent,
            "submodules": {file.path: file.oid for file in before if file.is_submodule},
            **_versions(mirror, ends, notes),
            **_commits(mirror, ends),
            "notes": notes,
        },
        blobs={
            "diff": blobs.put(diff),
            "base_files": blobs.put_text(canonical_json(texts[0])),
            "target_files": blobs.put_text(canonical_json(texts[1])),
        },
    )


def _absent(mirror: Mirror, files: Iterable[TreeFile]) -> dict[str, str]:
    oids = {file.path: file.oid for file in files if not file.is_submodule}
    absent = mirror.bring_blobs(frozenset(oids.values()), lenient=True)
    return {path: oid for path, oid in sorted(oids.items()) if oid in absent}


def _declared(repo: GitRepo, files: Iterable[TreeFile], notes: list[str]) -> dict[str, str]:
    sized = repo.sized(file for file in files if is_text_wanted(file, is_declaration))
    return read_texts(repo, bounded(sized, notes), is_declaration, MAX_BYTES, notes)


def _paths(files: Iterable[TreeFile]) -> list[str]:
    return [file.path for file in files if not file.is_submodule]


def _unfaithful(
    repo: GitRepo,
    ends: Endpoints,
    diff: bytes,
    before: Iterable[TreeFile],
    after: Iterable[TreeFile],
    declared: Mapping[str, str],
) -> str | None:
    config = read_pytest_config({path: text.encode("utf-8", "surrogateescape") for path, text in declared.items()})
    split: Split = split_change(
        diff,
        repo.changes(ends.base, ends.target),
        base_paths=_paths(before),
        target_paths=_paths(after),
        python_files=config.python_files,
        testpaths=config.testpaths,
    )
    return unfaithful(repo, ends.base, ends.target, (split.gold_patch, split.test_patch))


def _versions(mirror: Mirror, ends: Endpoints, notes: list[str]) -> dict[str, str]:
    (target,) = commit_lines(mirror, "--max-count=1", ends.target)
    versions, tags = {}, read_tags(mirror.repo, mirror.remote.space)
    for key, commit in (("base_version", ends.base), ("version", ends.target)):
        versions[key], how = version_at(mirror.repo, tags, commit, target.committed_at)
        notes.append(f"{key} {versions[key]}: {how}")
    return versions


def _commits(mirror: Mirror, ends: Endpoints) -> dict[str, list[str]]:
    """Return titles and times of the commits of the pull request; where its head is gone, of those that landed."""
    upto = ends.head or ends.target
    lines = commit_lines(mirror, "--topo-order", "--reverse", upto, f"^{ends.base}")[:_MAX_COMMITS]
    times = [datetime.fromtimestamp(min(line.committed_at, _LATEST), UTC) for line in lines]
    return {
        "commit_titles": [line.title for line in lines],
        "committed_at": [time.isoformat().replace("+00:00", "Z") for time in times],
    }
