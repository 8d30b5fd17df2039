"""The ladder: rung after rung proposes a recipe, each is attempted, until an environment is good enough.

Every step of an attempt is a fact, and so is the attempt; whether they came to an environment is computed from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from installers.attempt import ATTEMPT, InstallCase, attempt, attempt_of, furthest
from installers.interface import Attempt, Help, Memory, Proposal, Question
from installers.models.desk import Desk
from installers.models.interface import Unasked
from installers.pythons import chosen_among
from installers.rungs import RUNGS
from installers.workshop import Workshop
from miner.core.errors import BlobLost, ConfigError
from miner.core.ledger import fact_id
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Environment, Fact

_SETTLED = (Reason.PATCH_DOES_NOT_APPLY,)  # no other environment would change it


@dataclass(frozen=True)
class Installed:
    """What the ladder came to: all facts, in the order in which they were used."""

    facts: tuple[Fact, ...]

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts, in order."""
        return attempts_of(self.facts)

    @property
    def environment(self) -> Environment | None:
        """The environment of the best attempt; None where none is healthy."""
        return environment_of(self.facts)

    @property
    def refusal(self) -> Fact | None:
        """Why there is no environment; None where there is one."""
        return refusal_of(self.facts)


def attempts_of(trail: Iterable[Fact]) -> tuple[Attempt, ...]:
    """Return the attempts in a trail of facts, in order."""
    return tuple(attempt_of(fact) for fact in trail if fact.key.kind == ATTEMPT)


def chosen(attempts: Sequence[Attempt]) -> Attempt | None:
    """Return the best healthy attempt, the first of equals; None without one.

    That in which every test file can be collected comes before one with the higher share of passing tests.
    """
    healthy = [one for one in attempts if one.ok]
    return max(healthy, key=lambda one: (not one.broken, -1.0 if one.share is None else one.share), default=None)


def environment_of(trail: Iterable[Fact]) -> Environment | None:
    """Return the environment that a trail of facts came to, or None."""
    best = chosen(attempts_of(trail))
    return best.environment if best is not None else None


def steps_of(trail: Iterable[Fact], taken: Attempt) -> tuple[Fact, ...]:
    """Return the facts of one attempt's steps, in order."""
    by_id = {fact_id(fact.key): fact for fact in trail}
    return tuple(by_id[step] for step in taken.steps if step in by_id)


def refusal_of(trail: Iterable[Fact]) -> Fact | None:
    """Return the negative fact that says why a trail came to no environment, or None.

    It is that of the attempt that came furthest; the last of equals. Where a cap kept a language model from being
    asked, that comes first: with a higher one there may be an environment.
    """
    facts = list(trail)
    if environment_of(facts) is not None:
        return None
    capped = [fact for fact in _last_climb(facts) if fact.outcome == Reason.MODEL_CAP_REACHED.value]
    if capped:
        return capped[-1]
    try:
        return furthest(facts)
    except ValueError:  # nothing was built: what is left is why no recipe was tried
        return next((fact for fact in reversed(facts) if fact.key.kind == ATTEMPT), None)


def _last_climb(facts: Sequence[Fact]) -> list[Fact]:
    """Return the attempts of the last climb: one that came to nothing may have been climbed once more."""
    attempts = [fact for fact in facts if fact.key.kind == ATTEMPT]
    begins = [index for index, fact in enumerate(attempts) if fact.payload["number"] == 0]
    return attempts[begins[-1] :] if begins else attempts


def install(
    workshop: Workshop, memo: Memo, case: InstallCase, memory: Memory | None = None, models: Desk | None = None
) -> Installed:
    """Climb the ladder for one candidate.

    Only where known answers come to no environment are those of the network asked for a second time: a refusal that a
    later attempt has made good says nothing more.

    Args:
        workshop: the tools.
        memo: known facts.
        case: the candidate.
        memory: what earlier runs learned.
        models: language models; None: none is asked.

    Raises:
        InfrastructureFault: the engine, the index or the disk was at fault: try again.
    """
    help_ = Help(
        workshop=workshop,
        memo=memo.patient(),
        memory=memory or Memory(),
        pythons=chosen_among(workshop.settings),
        pack=case.pack,
        models=models,
    )
    begun = len(memo.used)
    found = _climb(help_, case, begun)
    return found if found.environment is not None else _climb(replace(help_, memo=memo), case, begun)


def _climb(help_: Help, case: InstallCase, begun: int) -> Installed:
    try:
        return _climbed(help_, case, begun)
    except BlobLost:  # it was evicted, and is needed after all
        help_.memo.used.cut(begun)
        return _climbed(replace(help_, memo=help_.memo.strict()), case, begun)


def _climbed(help_: Help, case: InstallCase, begun: int) -> Installed:
    past: list[Attempt] = []
    for name in help_.workshop.settings.measure.ladder.order:
        if _rung(name, case, help_, past):
            break
    return Installed(tuple(help_.memo.used[begun:]))


def _rung(name: str, case: InstallCase, help_: Help, past: list[Attempt]) -> bool:
    """Try what one rung proposes, within its budget; return whether the climb is over."""
    ladder = help_.workshop.settings.measure.ladder
    if name not in RUNGS or name not in ladder.budgets:
        raise ConfigError(f"measure.ladder: no rung {name!r} with a budget; there are: {', '.join(RUNGS)}")
    budget, spent = ladder.budgets[name], 0.0
    for _ in range(budget.attempts):
        proposal = _proposed(name, _question(case, past), help_) if spent < budget.seconds else None
        if proposal is None:
            return False
        made = attempt(help_, case, proposal, rung=name, past=past)
        past.append(made)
        spent += made.seconds
        if made.outcome in _SETTLED or made.good:
            return True
    return False


def _proposed(name: str, question: Question, help_: Help) -> Proposal | None:
    try:
        return RUNGS[name](question, help_)
    except Unasked:  # a run is repeated without its endpoint, and comes to what it never asked
        return None


def _question(case: InstallCase, past: Sequence[Attempt]) -> Question:
    return Question(
        candidate=case.instance_id,
        repository=case.repository,
        tree=case.files,
        declared=case.recipe,
        created_at=case.created_at,
        test_files=case.side.test_files,
        past=tuple(past),
    )
