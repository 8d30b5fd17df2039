"""The rung that remembers: what worked for this repository, then what worked elsewhere for the same failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from installers.interface import Attempt, Edit, Help, Lesson, Proposal, Question, Signature
from installers.memory import apply, fingerprint, identity
from miner.core.hashing import hash_of

_NAME = "memory"


def memory(question: Question, help_: Help) -> Proposal | None:
    """Return the next remembered recipe that was not tried yet."""
    tried = {identity(attempt.recipe) for attempt in question.past}
    for proposal in (*_of_repository(question, help_), *_of_signatures(question, help_)):
        if identity(proposal.recipe) not in tried:
            return proposal
    return None


def _of_repository(question: Question, help_: Help) -> Iterator[Proposal]:
    """Propose the lessons of the repository: with the same declarations first, then the nearest in time."""
    declared = fingerprint(question.declared)
    own = [lesson for lesson in _of_others(question, help_) if lesson.repository == question.repository]
    for lesson in sorted(
        own,
        key=lambda one: (
            one.fingerprint != declared,
            abs(one.cutoff - question.created_at),
            -(one.share or 0.0),
            one.fact,
        ),
    ):
        why = f"worked for this repository as of {lesson.cutoff:%Y-%m-%d}"
        yield _proposal(question, lesson, Edit(rule=_NAME, why=why))


def _of_signatures(question: Question, help_: Help) -> Iterator[Proposal]:
    """Propose what most repositories answered the failures of the last attempt with."""
    last = question.past[-1] if question.past else None
    for signature in _signatures(last):
        known = [lesson for lesson in _of_others(question, help_) if lesson.answers == signature]
        counts = Counter(hash_of(lesson.delta) for lesson in known)
        first = {hash_of(lesson.delta): lesson for lesson in reversed(known)}
        for digest, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            why = f"answered {signature} in {count} attempt{'s' if count > 1 else ''} elsewhere"
            yield _proposal(question, first[digest], Edit(rule=_NAME, signature=signature, why=why))


def _of_others(question: Question, help_: Help) -> list[Lesson]:
    """Return what other candidates teach: of its own a candidate learns nothing that its next climb will not find."""
    return [lesson for lesson in help_.memory.lessons if not lesson.candidate or lesson.candidate != question.candidate]


def _signatures(last: Attempt | None) -> tuple[Signature, ...]:
    return last.signatures if last is not None else ()


def _proposal(question: Question, lesson: Lesson, edit: Edit) -> Proposal:
    name = hash_of(lesson.model_dump(mode="json", exclude=set() if lesson.written else {"written"}))
    return Proposal(recipe=apply(lesson.delta, question.declared), edits=(edit,), memory=name, written=lesson.written)
