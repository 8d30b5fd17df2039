"""The rung that lets a language model look around in a throw-away container: one session a turn, one fact a session.

What a session comes to is only ever a recipe, which is then built from scratch like any other. A session that was held
is never held again, so that a run that is repeated needs neither container nor endpoint; but one that a cap has ended
is, for with a higher cap it may come to something.
"""

from __future__ import annotations

from typing import Any

from installers.agent.plan import Plan
from installers.agent.session import Held, held
from installers.agent.stand import stand_of
from installers.brief.history import left_with
from installers.interface import Edit, Help, Proposal, Question, Refusal
from installers.memory import identity
from installers.models.interface import Unasked
from installers.models.turns import built, turn
from installers.rungs.repair import furthest
from miner.core.hashing import hash_of, sha256_bytes
from miner.core.ledger import fact_id
from miner.core.reasons import Reason
from miner.core.records import Fact, Observation, Producer, Recipe

PRODUCER = Producer(name="installers.agent", epoch=1)
KIND = "install.agent"


def agent(question: Question, help_: Help) -> Proposal | None:
    """Return the next recipe that a session came to, or why it came to none; None where no model is to be asked.

    Raises:
        InfrastructureFault: the endpoint, the engine or the package index was at fault.
        Unasked: the session was not held before, and no endpoint is set.
    """
    whose = turn(question, help_, "agent", help_.workshop.settings.measure.model.agent.attempts)
    if whose is None or help_.pack is None:
        return None
    stand = stand_of(question, help_, furthest(built(question.past)))
    plan = Plan(question, help_, whose, stand, help_.pack)
    return _proposal(question, _session(plan))


class _Capped(Exception):
    """A cap has ended a session."""

    def __init__(self, held: Held) -> None:
        super().__init__("a cap has ended a session")
        self.held = held


def _session(plan: Plan) -> Fact:
    """Return the fact about a session."""
    memo, subject, inputs = plan.help.memo, plan.question.candidate, _inputs(plan)
    broken_off = {**inputs, "broken_off": True}  # never the answer to anything

    def note(seen: Observation) -> Fact:
        return memo.record(PRODUCER, KIND, subject, broken_off, seen)

    def run() -> Observation:
        if not plan.answers:
            raise Unasked("this session was not held before, and no endpoint is set")
        done = held(plan, note)
        if done.capped:
            raise _Capped(done)
        return done.seen

    try:
        return memo.measure(PRODUCER, KIND, subject, inputs, run)
    except _Capped as capped:
        fact = note(capped.held.seen)
        memo.used.note(fact)
        return fact


def _inputs(plan: Plan) -> dict[str, Any]:
    """Return what a session depends on, beside chance and the replies of the model."""
    question, shop = plan.question, plan.help.workshop
    use = shop.settings.measure.model
    native = plan.whose.model not in use.agent.text
    return {
        "model": plan.whose.model,
        "session": plan.whose.number,
        "limits": use.agent,
        "max_tokens": use.max_tokens,
        "temperature": use.temperature,
        "box": shop.limits,
        "prompts": [prompt.version for prompt in plan.prompts(plan.speech(native=native))],
        "pythons": plan.pythons,
        "declared": identity(question.declared),
        "tried": [(identity(one.recipe), one.rung, one.outcome) for one in question.past],
        "tree": _tree(question),
        "stand": plan.stand.identity,
    }


def _tree(question: Question) -> str:
    """Return what stands for the tree, as far as it is at hand here; the candidate's name says the rest."""
    files = {path: sha256_bytes(data) for path, data in question.tree.files.items()}
    return hash_of([sorted(question.tree.paths), files])


def _proposal(question: Question, fact: Fact) -> Proposal:
    payload, measures = fact.payload, fact.measures
    refused = None if fact.ok else Refusal(reason=Reason(fact.outcome), detail=payload["detail"])
    if refused is not None and refused.reason is Reason.MODEL_CAP_REACHED:
        left = left_with(furthest(built(question.past)))
        refused = refused.model_copy(update={"detail": f"{refused.detail}; {left}"})
    return Proposal(
        recipe=Recipe.model_validate(payload["recipe"]) if fact.ok else question.declared,
        edits=tuple(Edit.model_validate(edit) for edit in payload["edits"]) if fact.ok else (),
        asked=(fact_id(fact.key), *payload["asked"]),
        tokens=int(measures["tokens"]),
        money=measures["money"],
        seconds=measures["seconds"],
        refused=refused,
    )
