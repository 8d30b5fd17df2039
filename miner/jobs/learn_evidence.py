"""What the attempts for one candidate say: which change of a recipe answered which failure. Pure.

Two attempts of one climb are compared: an earlier one that shows a failure, and a later one that got at least as far
without showing it. What differs between their recipes is evidence for an answer; of several such pairs that one counts
which differs least.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

from installers.interface import Attempt, Signature
from installers.repair.kinds import Kind
from installers.repair.portable import Change, changes
from installers.rungs.repair import progress
from miner.core.reasons import Reason
from miner.jobs.learn_spelling import Changes

MODEL_RUNGS = frozenset({"structured", "agent"})
_UNBUILT = frozenset(
    {
        Reason.MODEL_REPLY_UNUSABLE.value,
        Reason.MODEL_GAVE_UP.value,
        Reason.MODEL_LIMIT.value,
        Reason.MODEL_CAP_REACHED.value,
        Reason.MODEL_EDITS_SOURCE.value,
        Reason.MODEL_WEAKENS_TESTS.value,
    }
)
"""Attempts of which nothing was built: what they do not show is not gone."""
VAGUE = frozenset({Kind.TIME_OUT.value, Kind.MEMORY_LIMIT.value, Kind.LIMIT.value})
"""Kinds that say nothing of a cause: an answer to one is none to another."""


def project_of(repository: str) -> str:
    """Return what the forks of a repository have in common with it: its name without the owner's."""
    return repository.rpartition("/")[2].lower()


@dataclass(frozen=True)
class Tried:
    """An attempt, and where it stands.

    Attributes:
        subject: the candidate.
        fact: id of the attempt.
        at: when it was made.
    """

    subject: str
    fact: str
    at: datetime
    attempt: Attempt

    @property
    def built(self) -> bool:
        """Whether anything was built of its recipe."""
        return self.attempt.outcome not in _UNBUILT

    @property
    def of_model(self) -> bool:
        """Whether a language model proposed it."""
        return self.attempt.rung in MODEL_RUNGS


@dataclass(frozen=True)
class Evidence:
    """What answered a failure of one candidate: the least that is known to have."""

    signature: Signature
    changes: Changes
    subject: str
    repository: str
    facts: tuple[str, ...]
    before: Attempt

    @property
    def project(self) -> str:
        """The name of the repository: a fork has it, too."""
        return project_of(self.repository)

    @property
    def rank(self) -> tuple[int, list[Change], tuple[str, ...]]:
        """The less is changed, the better; then any order that stays."""
        return len(self.changes), sorted(self.changes), self.facts


@dataclass(frozen=True)
class Vain:
    """Changes after which a failure was still there, or which did harm by themselves (`alone`)."""

    signature: Signature
    changes: Changes
    subject: str
    alone: bool


class Candidate:
    """All attempts for one candidate, of all of its climbs."""

    def __init__(self, tried: Iterable[Tried]) -> None:
        self._ordered = sorted(tried, key=lambda one: (one.attempt.number, one.at, one.fact))
        self._changes: dict[tuple[str, str], Changes] = {}

    def _between(self, first: Tried, then: Tried) -> Changes:
        key = first.fact, then.fact
        if key not in self._changes:
            self._changes[key] = changes(first.attempt.recipe, then.attempt.recipe)
        return self._changes[key]

    def _before(self, one: Tried) -> list[Tried]:
        """Return the earlier attempts of an attempt's climb, in order: of each number the last one made before it.

        What was not built is left out.
        """
        last: dict[int, Tried] = {}
        for other in self._ordered:
            if other.attempt.number < one.attempt.number and other.at <= one.at:
                last[other.attempt.number] = other  # they are sorted by time
        return [last[number] for number in sorted(last) if last[number].built]

    def evidence(self) -> list[Evidence]:
        """Return for each failure that a good attempt of a model no longer shows the least that answered it.

        Where another rung had made the same change before, it is no model's.
        """
        best: dict[Signature, tuple[Evidence, bool]] = {}
        for good in self._ordered:
            if not (good.of_model and good.attempt.ok and good.attempt.good):
                continue
            for first, then in combinations([*self._before(good), good], 2):
                made = self._between(first, then)
                if not made or not made <= self._between(first, good):
                    continue
                for signature in _gone(first, then, good):
                    facts = good.fact, first.fact
                    one = Evidence(signature, made, good.subject, good.attempt.repository, facts, first.attempt)
                    known = best.get(signature)
                    if known is None or (one.rank, then.of_model) < (known[0].rank, known[1]):
                        best[signature] = one, then.of_model
        return [one for one, of_model in best.values() if of_model]

    def in_vain(self) -> Iterator[Vain]:
        """Yield the changes of every later attempt that still shows a failure of an earlier one, or fell behind it."""
        for then in self._ordered:
            for first in self._before(then) if then.built else ():
                made = self._between(first, then) if first.attempt.signatures else frozenset()
                if not made:
                    continue
                behind = progress(then.attempt) < progress(first.attempt)
                for signature in first.attempt.signatures:
                    if signature in then.attempt.signatures or behind:
                        yield Vain(signature, made, then.subject, alone=signature not in then.attempt.signatures)


def _gone(first: Tried, then: Tried, good: Tried) -> Iterator[Signature]:
    """Yield the failures of an attempt that a later one, which got as far, does not show, nor the good one."""
    if progress(then.attempt) < progress(first.attempt):
        return
    left = {*then.attempt.signatures, *good.attempt.signatures}
    for signature in first.attempt.signatures:
        vague = signature.kind in VAGUE or (signature.kind == Kind.BUILD_FAILED.value and not signature.subject)
        if signature not in left and not vague:
            yield signature
