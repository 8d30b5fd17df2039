"""What language models have found out about installing: which edit answers which failure. A pure fold.

What answered a failure of several repositories is cut down to what they have in common, as long as that has not been
tried in vain as often. The order of the attempts does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from installers.interface import Signature
from installers.repair.aliases import candidates
from installers.repair.edits import name_of
from installers.repair.learned import probe
from installers.repair.portable import Change, changes
from installers.repair.rules import answers
from miner.core.records import Record
from miner.jobs.learn_evidence import Candidate, Changes, Evidence, Tried, Vain

EXAMPLES = 3
_ROUNDS = 3


class Answer(Record):
    """An edit that answered a failure.

    Attributes:
        worked: candidates for which it did.
        failed: candidates for which it was tried and did not.
        repositories: of the former.
        facts: examples: ids of attempts.
        portable: other recipes can take the edit over.
    """

    signature: Signature
    edit: tuple[Change, ...]
    worked: tuple[str, ...]
    failed: tuple[str, ...]
    repositories: tuple[str, ...]
    facts: tuple[str, ...]
    portable: bool


def answers_of(tried: Iterable[Tried]) -> tuple[Answer, ...]:
    """Return what language models found that the built-in rules do not know, best known first."""
    climbs: dict[str, dict[str, Tried]] = defaultdict(dict)
    for one in tried:
        climbs[one.subject][one.fact] = one
    found: list[Evidence] = []
    vain: dict[Signature, set[Vain]] = defaultdict(set)
    for subject in sorted(climbs):
        candidate = Candidate(climbs[subject].values())
        found += candidate.evidence()
        for failed in candidate.in_vain():
            vain[failed.signature].add(failed)
    everything = _Known(found)
    rows = [row for signature in everything.signatures for row in _rows(signature, everything, vain[signature])]
    return tuple(sorted(rows, key=_order))


def _order(row: Answer) -> tuple[int, int, int, str, tuple[Change, ...]]:
    return -len(row.repositories), -len(row.worked), len(row.failed), str(row.signature), row.edit


class _Known:
    """All evidence, by failure and by change."""

    def __init__(self, found: Sequence[Evidence]) -> None:
        self._found = found
        self._own: dict[Signature, list[Evidence]] = defaultdict(list)
        self._with: dict[Change, set[int]] = defaultdict(set)
        for number, one in enumerate(found):
            self._own[one.signature].append(one)
            for change in one.changes:
                self._with[change].add(number)

    @property
    def signatures(self) -> list[Signature]:
        """All failures that something answered."""
        return sorted(self._own, key=str)

    def own(self, signature: Signature) -> list[Evidence]:
        """Return the evidence for answers to a failure."""
        return self._own[signature]

    def elsewhere(self, edit: Changes, own: Sequence[Evidence]) -> set[str]:
        """Return the candidates for which the same was changed, and that did not have this failure."""
        numbers = set.intersection(*(self._with[change] for change in edit))
        return {self._found[number].subject for number in numbers} - {one.subject for one in own}


def _rows(signature: Signature, known: _Known, failed: Iterable[Vain]) -> Iterator[Answer]:
    """Yield the answers to one failure."""
    own = known.own(signature)
    edits = [edit for edit in _candidates(own) if _stands(edit, own, known, failed)]
    grouped: dict[Changes, list[Evidence]] = defaultdict(list)
    for one in own:
        grouped[_explanation(one, edits, own)].append(one)
    for edit, some in sorted(grouped.items(), key=lambda item: sorted(item[0])):
        if any(_is_built_in(one, edit) for one in some):
            continue
        subjects = sorted({one.subject for one in some})
        yield Answer(
            signature=signature,
            edit=tuple(sorted(edit)),
            worked=tuple(subjects),
            failed=tuple(sorted(_failed(edit, failed) - set(subjects))),
            repositories=tuple(sorted({one.repository for one in some})),
            facts=tuple(sorted({one.facts[0] for one in some})[:EXAMPLES]),
            portable=all(change.is_portable for change in edit),
        )


def _candidates(own: Sequence[Evidence]) -> set[Changes]:
    """Return what may be an answer: what worked, and what is common to that of different repositories."""
    of: dict[Changes, set[str]] = defaultdict(set)
    for one in own:
        of[one.changes].add(one.repository)
    for _ in range(_ROUNDS):
        known = [(changes, frozenset(repositories)) for changes, repositories in of.items()]
        for (left, here), (right, there) in combinations(known, 2):
            common = left & right
            if common and len(here | there) > 1 and all(change.is_portable for change in common):
                of[common] |= here | there
    return set(of)


def _stands(edit: Changes, own: Sequence[Evidence], known: _Known, failed: Iterable[Vain]) -> bool:
    """Whether a part of what worked can be an answer: it was not in vain as often, and is no mere habit."""
    supported = {one.subject for one in own if edit <= one.changes}
    in_vain = _failed(edit, failed) - supported
    return len(in_vain) < len(supported) and len(known.elsewhere(edit, own)) <= len(supported)


def _explanation(one: Evidence, edits: Iterable[Changes], own: Sequence[Evidence]) -> Changes:
    """Return the part of what worked that most repositories have in common."""

    def rank(edit: Changes) -> tuple[int, int, list[Change]]:
        return -len({other.repository for other in own if edit <= other.changes}), len(edit), sorted(edit)

    return min((edit for edit in {one.changes, *edits} if edit <= one.changes), key=rank)


def _failed(edit: Changes, vain: Iterable[Vain]) -> set[str]:
    """Return the candidates for which an edit was tried in vain."""
    return {one.subject for one in vain if (edit == one.changes if one.alone else edit <= one.changes)}


def _is_built_in(one: Evidence, edit: Changes) -> bool:
    """Whether a built-in rule makes this edit for this failure; what it would look up is taken to be what was added."""
    added = {name_of(change.item) for change in edit if change.how == "added"}

    def provider(module: str) -> str | None:
        return next((name for name in candidates(module) if name in added), None)

    context = replace(probe(), cutoff=one.before.cutoff, provider=provider)
    recipe = one.before.recipe
    return any(edit <= changes(recipe, changed) for _, changed in answers(recipe, one.signature, context))
