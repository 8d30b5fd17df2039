"""Which repositories are taken: pure rules of `policy.repositories` over what the forge says of a repository."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from miner.core.hashing import hash_of
from miner.core.reasons import Reason
from miner.core.settings import Repositories
from miner.crawlers.github.model import Repository
from miner.crawlers.interface import Rejection

_LEGAL = frozenset({Reason.REPOSITORY_UNAVAILABLE, Reason.REPOSITORY_LICENCE})
"""Rules that no sample passes."""


def refuse(repository: Repository, policy: Repositories, *, as_of: datetime) -> Rejection | None:
    """Return why a repository is not taken, by the first rule that says so; None where none does."""
    return next(_objections(repository, policy, as_of), None)


def sampled(
    repository: Repository, policy: Repositories, *, as_of: datetime, share: float, seed: int
) -> tuple[Rejection | None, tuple[str, ...]]:
    """Return the same, but let a share of the repositories pass each rule that is not a legal one, and say so.

    Whether one is in the sample of a rule depends on the seed, its forge id and the rule alone.
    """
    notes: list[str] = []
    for rejection in _objections(repository, policy, as_of):
        if rejection.reason in _LEGAL or not _in_sample(repository, rejection.reason, share, seed):
            return rejection, tuple(notes)
        notes.append(f"passes {rejection.reason} as part of the sample: {rejection.detail}")
    return None, tuple(notes)


def python_share(repository: Repository) -> float:
    """Return the share of Python in the bytes of a repository's languages."""
    whole = sum(repository.languages.values())
    return repository.languages.get("Python", 0) / whole if whole else 0.0


def _in_sample(repository: Repository, rule: Reason, share: float, seed: int) -> bool:
    return int(hash_of([seed, repository.forge_id, rule.value])[:8], 16) < share * 16**8


def _objections(repository: Repository, policy: Repositories, as_of: datetime) -> Iterator[Rejection]:
    """Yield every rule that a repository does not keep: what nobody may see, then the licence, then the others."""
    checks = (
        _unavailable(repository),
        _licence(repository, policy),
        _kind(repository, policy),
        _numbers(repository, policy, as_of),
    )
    for check in checks:
        for reason, detail in check:
            yield Rejection(reason=reason, detail=f"{repository.full_name} {detail}")


def _unavailable(repository: Repository) -> Iterator[tuple[Reason, str]]:
    if repository.is_private:
        yield Reason.REPOSITORY_UNAVAILABLE, "is private"
    if repository.is_unavailable:
        yield Reason.REPOSITORY_UNAVAILABLE, "is disabled or locked"


def _licence(repository: Repository, policy: Repositories) -> Iterator[tuple[Reason, str]]:
    if repository.spdx not in policy.licences:
        stated = repository.spdx or "none"
        yield Reason.REPOSITORY_LICENCE, f"has the licence {stated}; allowed are {', '.join(policy.licences)}"


def _kind(repository: Repository, policy: Repositories) -> Iterator[tuple[Reason, str]]:
    if repository.is_fork and not policy.forks:
        yield Reason.REPOSITORY_FORK, f"is a fork of {repository.parent or 'a repository that nobody may see'}"
    if repository.is_archived and not policy.archived:
        yield Reason.REPOSITORY_ARCHIVED, "is archived"
    if repository.is_template and not policy.templates:
        yield Reason.REPOSITORY_TEMPLATE, "is a template"


def _numbers(repository: Repository, policy: Repositories, as_of: datetime) -> Iterator[tuple[Reason, str]]:
    share = python_share(repository)
    if share < policy.min_python_share:
        yield (
            Reason.REPOSITORY_NOT_PYTHON,
            f"is {share:.1%} Python; at least {policy.min_python_share:.0%} is asked for",
        )
    if repository.stars < policy.min_stars:
        yield (
            Reason.REPOSITORY_TOO_FEW_STARS,
            f"has {repository.stars} stars; at least {policy.min_stars} are asked for",
        )
    size_mb = repository.disk_kb / 1024
    if size_mb > policy.max_disk_mb:
        yield Reason.REPOSITORY_TOO_LARGE, f"takes {size_mb:.0f} MB; at most {policy.max_disk_mb} are allowed"
    pushed = repository.pushed_at
    if pushed is None or pushed < as_of - timedelta(days=policy.active_within_days):
        when = "never" if pushed is None else f"last on {pushed:%Y-%m-%d}"
        yield (
            Reason.REPOSITORY_INACTIVE,
            f"was pushed to {when}; asked for are {policy.active_within_days} days before {as_of:%Y-%m-%d}",
        )
