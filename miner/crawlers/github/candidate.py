"""The candidate that the facts of a merged pull request make: links, statement and split, computed from them."""

from __future__ import annotations

from datetime import UTC, datetime

from miner.core.blobs import BlobStore
from miner.core.records import Candidate, Fact
from miner.crawlers.candidate import checked_split, versions_of
from miner.crawlers.github.answers import assemble
from miner.crawlers.github.linking import judge_links
from miner.crawlers.github.statement import first_public_at, statement_of
from miner.crawlers.interface import Rejection


def instance_id(repo: str, number: int) -> str:
    """Return the id of a pull request, by the name that its repository had when it was first seen."""
    return f"{repo.replace('/', '__')}-{number}"


def month_of(merged_at: datetime) -> str:
    """Return the month that a merge belongs to, in UTC: "2025-05"."""
    return f"{merged_at.astimezone(UTC):%Y-%m}"


def compute_pull_candidate(looked_up: Fact, extracted: Fact, blobs: BlobStore) -> Candidate | Rejection:
    """Return the candidate that the two facts of a pull request make, or why they make none.

    A missing issue is no reason here: the statement is empty then, and a rule says so.
    """
    split = checked_split(extracted.payload, extracted.blobs, blobs)
    if isinstance(split, Rejection):
        return split
    crawled = assemble(looked_up, blobs)
    pull, judged = crawled.pull, judge_links(crawled)
    statement = statement_of(pull, judged.issues)
    patch = split.gold_patch.decode("utf-8", "surrogateescape")
    repo = looked_up.payload["origin"]["repo"]
    version, base_version = versions_of(extracted.payload, extracted.blobs, blobs)
    return Candidate(
        instance_id=instance_id(repo, pull.number),
        source="github",
        repo=repo,
        version=version,
        base_version=base_version,
        base_commit=extracted.payload["base_commit"],
        base_tree=extracted.payload["base_tree"],
        target_tree=extracted.payload["target_tree"],
        created_at=pull.created_at,
        patch=patch,
        test_patch=split.test_patch.decode("utf-8", "surrogateescape"),
        statement=statement.text,
        hints=statement.hints,
        links=judged.links,
        test_files=split.test_files,
        gold_files=split.gold_files,
        pull=pull.number,
        month=month_of(pull.merged_at),
        merged_at=pull.merged_at,
        closed_at=pull.closed_at,
        first_public_at=first_public_at(pull, judged.issues, patch),
        issues=statement.issues,
    )
