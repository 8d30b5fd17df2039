"""What language models have found out about installing: which edit answers which failure. A pure fold.

What answered a failure of several projects is cut down to what they have in common, as long as that has not been
tried in vain as often. A repository and its forks are one project. The order of the attempts does not matter.
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
from miner.jobs.learn_evidence import Candidate, Evidence, Tried, Vain, project_of
from miner.jobs.learn_spelling import Changes, abouts, names, spellings, spelt

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
        habits: parts of the edit that were never an answer by themselves, but part of answers to other failures, too.
    """

    signature: Signature
    edit: tuple[Change, ...]
    worked: tuple[str, ...]
    failed: tuple[str, ...]
    repositories: tuple[str, ...]
    facts: tuple[str, ...]
    portable: bool
    habits: tuple[Change, ...] = ()

    @property
    def projects(self) -> int:
        """Number of the repositories, where forks count as one."""
        return len({project_of(name) for name in self.repositories})


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
    return -row.projects, -len(row.worked), len(row.failed), str(row.signature), row.edit


class _Known:
    """All evidence, by failure and by change; for one failure, changes that say the same are spelt in one way."""

    def __init__(self, found: Iterable[Evidence]) -> None:
        self._own: dict[Signature, list[Evidence]] = defaultdict(list)
        self._with: dict[Change, set[str]] = defaultdict(set)
        for one in found:
            self._own[one.signature].append(one)
            for about in abouts(one.changes).values():
                self._with[about].add(one.subject)

    @property
    def signatures(self) -> list[Signature]:
        """All failures that something answered."""
        return sorted(self._own, key=str)

    def own(self, signature: Signature) -> tuple[list[Evidence], dict[Change, Change]]:
        """Return the evidence for answers to a failure, and how it is spelt."""
        own = self._own[signature]
        known = spellings((one.project, one.changes) for one in own)
        return [replace(one, changes=spelt(one.changes, known)) for one in own], known

    def habits(self, edit: Changes, own: Sequence[Evidence]) -> Changes:
        """Return the parts of an edit that were changed, too, for candidates which did not have this failure.

        What made this failure go away by itself is no habit.
        """
        here, alone = {one.subject for one in own}, {one.changes for one in own}
        also = {change for change, about in abouts(edit).items() if self._with[about] - here}
        return frozenset(change for change in also if frozenset({change}) not in alone)


def _rows(signature: Signature, known: _Known, failed: Iterable[Vain]) -> Iterator[Answer]:
    """Yield the answers to one failure."""
    own, spelling = known.own(signature)
    failed = [replace(one, changes=spelt(one.changes, spelling)) for one in failed]
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
            habits=tuple(sorted(known.habits(edit, own))),
        )


def _candidates(own: Sequence[Evidence]) -> set[Changes]:
    """Return what may be an answer: what worked, and what is common to that of different projects."""
    of: dict[Changes, set[str]] = defaultdict(set)
    for one in own:
        of[one.changes].add(one.project)
    for _ in range(_ROUNDS):
        known = [(changes, frozenset(projects)) for changes, projects in of.items()]
        for (left, here), (right, there) in combinations(known, 2):
            common = left & right
            if names(left - common) & names(right - common):
                continue  # the same distribution, but contrary versions: what they have in common is no answer
            if common and len(here | there) > 1 and all(change.is_portable for change in common):
                of[common] |= here | there
    return set(of)


def _stands(edit: Changes, own: Sequence[Evidence], known: _Known, failed: Iterable[Vain]) -> bool:
    """Whether a part of what worked can be an answer: it was not in vain as often, and is no mere habit."""
    supported = {one.subject for one in own if edit <= one.changes}
    in_vain = _failed(edit, failed) - supported
    return len(in_vain) < len(supported) and not edit <= known.habits(edit, own)


def _explanation(one: Evidence, edits: Iterable[Changes], own: Sequence[Evidence]) -> Changes:
    """Return the part of what worked that most projects have in common."""

    def rank(edit: Changes) -> tuple[int, int, list[Change]]:
        return -len({other.project for other in own if edit <= other.changes}), len(edit), sorted(edit)

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
    about = set(abouts(edit).values())
    return any(
        about <= set(abouts(changes(recipe, changed)).values())
        for _, changed in answers(recipe, one.signature, context)
    )
