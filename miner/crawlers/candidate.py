"""The candidate that the facts of a release pair make: statement, links and split, computed from what was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

from miner.core.blobs import BlobStore
from miner.core.reasons import Reason
from miner.core.records import Candidate, ReleasePair
from miner.crawlers.changelog import Statement, decode, find_statement
from miner.crawlers.git_repo import Change
from miner.crawlers.interface import Rejection
from miner.crawlers.links import find_links, repositories_of
from miner.crawlers.releases import instance_id, sdists
from miner.crawlers.split import Split, reject_split, split_change
from miner.crawlers.tags import UNKNOWN
from miner.project.facts import project_folder, read_project
from miner.project.pytest_config import read_pytest_config
from miner.project.versions import version_of

Payload = Mapping[str, Any]


def declared_files(blobs: BlobStore, digest: str) -> dict[str, bytes]:
    """Return the declaration files of a tree, path -> bytes, from the blob `base_files` or `target_files`."""
    return {path: text.encode("utf-8", "surrogateescape") for path, text in _json_blob(blobs, digest).items()}


def _json_blob(blobs: BlobStore, digest: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(blobs.get(digest))
    return value


def split_of(extracted: Payload, digests: Mapping[str, str], blobs: BlobStore) -> Split:
    """Compute the split of an extracted pair."""
    config = read_pytest_config(declared_files(blobs, digests["target_files"]))
    return split_change(
        blobs.get(digests["diff"]),
        [Change.model_validate(change) for change in extracted["changes"]],
        base_paths=extracted["base_paths"],
        target_paths=extracted["target_paths"],
        python_files=config.python_files,
        testpaths=config.testpaths,
    )


def checked_split(extracted: Payload, digests: Mapping[str, str], blobs: BlobStore) -> Split | Rejection:
    """Compute the split of an extracted change, or why it makes no task."""
    if not extracted.get("faithful", True):
        return Rejection(reason=Reason.PATCH_NOT_FAITHFUL, detail=extracted["unfaithful"])
    split = split_of(extracted, digests, blobs)
    return reject_split(split, extracted["target_paths"]) or split


def versions_of(extracted: Payload, digests: Mapping[str, str], blobs: BlobStore) -> tuple[str, str]:
    """Return the versions of a project after and before a change: by its tags, else as its own files declare them."""
    after, before = (
        _version(extracted[version], blobs, digests[f"{side}_files"], extracted[f"{side}_paths"])
        for version, side in (("version", "target"), ("base_version", "base"))
    )
    return after, before


def _version(by_tags: str, blobs: BlobStore, declared: str, paths: Sequence[str]) -> str:
    if by_tags != UNKNOWN:
        return by_tags
    said = read_project(declared_files(blobs, declared), paths, project_folder(paths)).version
    return str(version_of(said) or UNKNOWN)


def statement_of(pair: ReleasePair, digests: Mapping[str, str], blobs: BlobStore) -> Statement | None:
    """Compute the statement of an extracted pair."""
    texts = _json_blob(blobs, digests["changelog"])
    old, new = (
        {path: decode(text.encode("utf-8", "surrogateescape"))[0] for path, text in texts[key].items()}
        for key in ("old", "new")
    )
    return find_statement(new, old, pair.new)


def compute_candidate(
    pair: ReleasePair, looked_up: Payload, extracted: Payload, digests: Mapping[str, str], blobs: BlobStore
) -> Candidate | Rejection:
    """Return the candidate that the two facts of a pair make, or why they make none.

    A missing statement is no reason here: the candidate's is empty then, and a rule says so.
    """
    split = checked_split(extracted, digests, blobs)
    if isinstance(split, Rejection):
        return split
    statement = statement_of(pair, digests, blobs)
    metadata = declared_files(blobs, digests["target_files"]).get("PKG-INFO", b"").decode("utf-8", "replace")
    return Candidate(
        instance_id=instance_id(pair),
        source="pypi",
        repo=f"pypi/{canonicalize_name(pair.name)}",
        version=str(Version(pair.new)),
        base_version=str(Version(pair.old)),
        base_commit=extracted["base_commit"],
        base_tree=extracted["base_tree"],
        target_tree=extracted["target_tree"],
        created_at=sdists(looked_up)[1].uploaded_at,
        patch=split.gold_patch.decode("utf-8", "surrogateescape"),
        test_patch=split.test_patch.decode("utf-8", "surrogateescape"),
        statement=statement.text if statement else "",
        links=find_links(statement.text, statement.path, first_line=statement.line, own=repositories_of(metadata))
        if statement
        else (),
        test_files=split.test_files,
        gold_files=split.gold_files,
    )
