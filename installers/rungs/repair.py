"""The rung that repairs: it answers the failures of the attempt that came furthest with edits of its recipe.

All independent edits at once, one a signature. Where an attempt came no further for them, the next proposal starts
again from the one before: of several edits each one alone, then the next rules. What was tried is never proposed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from installers.cutoff import cutoffs
from installers.interface import Attempt, Edit, Help, Proposal, Question, Signature
from installers.memory import identity
from installers.models.turns import built
from installers.pythons import admits
from installers.repair.context import Context
from installers.repair.learned import learned_rules
from installers.repair.modules import Index
from installers.repair.packages import package_lookup
from installers.repair.rule import Rule
from installers.repair.rules import RULES, answers
from miner.core.reasons import Reason
from miner.core.records import Recipe
from miner.project.facts import read_project

_MOST_EDITS = 6
"""Edits of one proposal: more at once hide which of them helps."""
_STEPS: dict[str, int] = {
    # how far an attempt came: the code of what ended it
    Reason.SYSTEM_PACKAGE_UNKNOWN.value: 0,
    Reason.NO_PYTHON.value: 0,
    Reason.LOCK_FAILED.value: 1,
    Reason.BUILD_FAILED.value: 2,
    Reason.PROJECT_INSTALL_FAILED.value: 3,
    Reason.REBUILD_NEEDS_NETWORK.value: 3,
    Reason.SUBMODULE_MISSING.value: 3,
    Reason.REBUILD_FAILED.value: 4,
    Reason.PYTEST_UNUSABLE.value: 4,
    Reason.IMPORT_FAILED.value: 4,
    Reason.EDIT_NOT_SEEN.value: 5,
    Reason.NOTHING_COLLECTED.value: 5,
    Reason.COLLECTION_BROKEN.value: 6,
    "ok": 7,
}
_BOUNDED = frozenset({Reason.BUILD_TIMEOUT.value, Reason.BUILD_LIMIT.value})

Progress = tuple[int, int, float, int]
Pair = tuple[str, Signature | None]


def repair(question: Question, help_: Help) -> Proposal | None:
    """Return the best attempt's recipe with edits that answer its failures, None where no rule answers them."""
    best = furthest(built(question.past))
    if best is None:
        return None
    rules = (*RULES, *learned_rules(help_.workshop.settings.measure.ladder.learned))
    return _Search(question, best, _context(question, help_, best), rules).next()


def furthest(past: Sequence[Attempt]) -> Attempt | None:
    """Return the attempt that came furthest: of equals the first, unless the later one has a failure less."""
    best: Attempt | None = None
    for attempt in past:
        if best is None or progress(attempt) > progress(best) or _answered(attempt, best):
            best = attempt
    return best


def progress(attempt: Attempt) -> Progress:
    """Return how far an attempt came: its last step, files that can be collected, share and number of passing tests."""
    step = _STEPS.get(attempt.outcome, 1)
    if attempt.outcome in _BOUNDED:
        step = 1 if attempt.mode is None else 3
    return step, -attempt.broken, attempt.share or 0.0, attempt.passed


def _answered(attempt: Attempt, best: Attempt) -> bool:
    """Whether an attempt that came as far as the best one no longer shows the failures that it was to repair."""
    if progress(attempt) != progress(best) or not set(best.edits) <= set(attempt.edits):
        return False
    asked = {edit.signature for edit in attempt.edits if edit not in best.edits}
    return bool(asked) and not asked & set(attempt.signatures)


@dataclass(frozen=True)
class _Step:
    """One possible edit of the best recipe."""

    rule: Rule
    signature: Signature

    @property
    def edit(self) -> Edit:
        return Edit(rule=self.rule.name, signature=self.signature, why=self.rule.reason(self.signature))


class _Search:
    """The next proposal after what was tried; knowledge of ours comes before what was learned."""

    def __init__(self, question: Question, best: Attempt, context: Context, rules: Sequence[Rule]) -> None:
        self._past = question.past
        self._best = best
        self._context = context
        self._rules = rules
        self._known = {identity(attempt.recipe) for attempt in question.past}
        self._alone, self._together = _tried(question.past, best)

    def next(self) -> Proposal | None:
        """Return the first proposal that is new: what failed together alone, then what was not tried at all."""
        return self._first(self._single()) or self._first(self._bundles())

    def _first(self, bundles: Iterable[list[_Step]]) -> Proposal | None:
        for steps in bundles:
            proposal = self._proposal(steps)
            if proposal is not None:
                return proposal
        return None

    def _single(self) -> Iterator[list[_Step]]:
        """Each edit that was tried together with others only, and did not help that way."""
        for signature in self._best.signatures:
            yield from ([_Step(rule, signature)] for rule in self._rules if (rule.name, signature) in self._together)

    def _bundles(self) -> Iterator[list[_Step]]:
        """For each signature the first rule that is new, all at once; where that is known, one after another."""
        first = [next(self._fresh(signature), None) for signature in self._best.signatures]
        yield [step for step in first if step is not None][:_MOST_EDITS]
        for signature in self._best.signatures:
            yield from ([step] for step in self._fresh(signature))

    def _fresh(self, signature: Signature) -> Iterator[_Step]:
        """The rules that answer a signature and were not tried."""
        for rule, _ in answers(self._best.recipe, signature, self._context, self._rules):
            if (rule.name, signature) not in self._alone | self._together:
                yield _Step(rule, signature)

    def _proposal(self, steps: Sequence[_Step]) -> Proposal | None:
        """Make the edits one after the other; one that an earlier one made needless is left out."""
        recipe, edits = self._best.recipe, []
        for step in steps:
            changed = step.rule.edit(recipe, step.signature, self._context)
            if changed is not None and not _contradicts(self._best.recipe, recipe, changed):
                recipe = changed
                edits.append(step.edit)
        if not edits or identity(recipe) in self._known:
            return None
        return Proposal(recipe=recipe, edits=(*self._best.edits, *edits), written=self._best.written)


def _contradicts(first: Recipe, recipe: Recipe, changed: Recipe) -> bool:
    """Whether an edit would undo another one of the same proposal: both choose the Python, or the date."""
    return any(
        getattr(recipe, name) != getattr(first, name) and getattr(changed, name) != getattr(recipe, name)
        for name in ("python", "fallback")
    )


def _tried(past: Sequence[Attempt], best: Attempt) -> tuple[set[Pair], set[Pair]]:
    """Return the edits of the best recipe that were tried alone, and those that were tried together only."""
    alone: set[Pair] = {(edit.rule, edit.signature) for edit in best.edits}
    together: set[Pair] = set()
    for attempt in past:
        new = [edit for edit in attempt.edits if edit not in best.edits]
        pairs = {(edit.rule, edit.signature) for edit in new}
        if set(best.edits) <= set(attempt.edits):
            (alone if len(new) == 1 else together).update(pairs)
    return alone, together - alone


def _context(question: Question, help_: Help, best: Attempt) -> Context:
    tree, recipe = question.tree, best.recipe
    facts = read_project(tree.files, tree.paths, recipe.project_dir)
    dates = cutoffs(question.created_at, help_.workshop.settings.measure.cutoff)
    index = Index(help_.workshop, help_.memo, best.cutoff, recipe.python)
    return Context(
        cutoff=best.cutoff,
        cutoffs=len(dates),
        pythons=tuple(one for one in help_.pythons if admits(facts.requires_python, one.version)),
        paths=tree.paths,
        test_files=question.test_files,
        provider=index.provider,
        package=package_lookup(help_.workshop, help_.memo),
        releases=index.releases,
        last_with=index.last_with,
    )
