"""One session from its prompts to what is kept of it: its transcript, how it ended, and the recipe, if there is one."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from installers.agent.endings import Capped, Ending, LimitReached, Submitted
from installers.agent.loop import Frame, Session, Spent
from installers.agent.plan import Plan, Written
from installers.agent.protocol import Speech
from installers.agent.room import Room, room
from installers.agent.transcript import Transcript
from installers.distrust.tree import TreeEdit
from installers.models.desk import Answer
from installers.models.interface import Message, Prompt, Request, ToolsUnsupported, Unasked
from miner.core.errors import InfrastructureFault, Interrupted
from miner.core.reasons import Reason
from miner.core.records import Observation, legible

_DETAIL = 2000

_log = structlog.get_logger()


@dataclass(frozen=True)
class Held:
    """A session that is over.

    Attributes:
        capped: a cap has ended it: with a higher one it may come to something.
    """

    seen: Observation
    capped: bool


def held(plan: Plan, note: Callable[[Observation], object]) -> Held:
    """Hold a session and return what came of it.

    Args:
        plan: what it is about.
        note: takes what is known of a session that a fault or a stop has ended.

    Raises:
        InfrastructureFault: the endpoint, the engine or the package index was at fault.
    """
    use = plan.help.workshop.settings.measure.model.agent
    if plan.whose.model not in use.text:
        with suppress(ToolsUnsupported):
            return _Holding(plan, plan.speech(native=True)).hold(note)
    return _Holding(plan, plan.speech(native=False)).hold(note)


class _Holding:
    """One session while it is held."""

    def __init__(self, plan: Plan, speech: Speech) -> None:
        self._plan = plan
        self._speech = speech
        self._memo = plan.help.memo.apart()  # a known session is used without its replies, so that a new one is as well
        self._transcript = ""
        self._session: Session | None = None
        self._began = time.monotonic()

    def hold(self, note: Callable[[Observation], object]) -> Held:
        plan = self._plan
        try:
            with room(plan.help.workshop, plan.stand, plan.pack, plan.question.candidate) as hands:
                ending = self._talk(hands)
                changed, ending = _changed(hands, ending)
        except BaseException as error:
            if self._transcript and not isinstance(error, ToolsUnsupported | Unasked):
                reason = error.reason if isinstance(error, InfrastructureFault) else Reason.INTERNAL_ERROR
                with suppress(Interrupted):
                    note(self._observed(reason.value, str(error)))
                _log.warning("a session of a model was broken off", transcript=self._transcript, error=str(error))
            raise
        return Held(self._outcome(ending, changed), isinstance(ending, Capped))

    def _talk(self, hands: Room) -> Ending:
        shop, use = self._plan.help.workshop, self._plan.help.workshop.settings.measure.model
        prompts = self._plan.prompts(self._speech)
        self._session = Session(
            partial(self._ask, prompts[0]),
            hands,
            self._plan.judged,
            self._save,
            speech=self._speech,
            frame=Frame(self._plan.whose.model, use.max_tokens, use.temperature),
            limits=shop.settings.measure.model.agent,
        )
        system, task = prompts
        return self._session.run([Message(role="system", content=system.text), Message(role="user", content=task.text)])

    def _ask(self, prompt: Prompt, request: Request) -> Answer:
        desk, question = self._plan.help.models, self._plan.question
        if desk is None:
            raise ValueError("no desk")
        return desk.ask(
            self._memo,
            request,
            repository=question.repository,
            prompt=prompt,
            ordinal=self._plan.whose.number,
        )

    def _save(self, transcript: Transcript) -> None:
        self._transcript = self._plan.help.workshop.blobs.put_text(transcript.text())

    def _outcome(self, ending: Ending, changed: tuple[TreeEdit, ...]) -> Observation:
        tree = [f"{edit.kind}: {edit.path}" for edit in changed]
        if not isinstance(ending, Submitted):
            reason = ending.reason or Reason.MODEL_REPLY_UNUSABLE
            return self._observed(reason.value, str(ending), tree=tree)
        written: Written = ending.written
        recipe = written.recipe.model_dump(mode="json")
        edits = [edit.model_dump(mode="json") for edit in written.edits]
        if changed:
            said = f"the model changed the repository, so that its recipe is void: {', '.join(tree)}"
            return self._observed(Reason.MODEL_EDITS_SOURCE.value, said, tree=tree, recipe=recipe, edits=edits)
        return self._observed("ok", "", recipe=recipe, edits=edits)

    def _observed(self, outcome: str, detail: str, **payload: Any) -> Observation:
        spent = Spent() if self._session is None else self._session.spent
        return Observation(
            outcome=outcome,
            payload={
                "model": self._plan.whose.model,
                "session": self._plan.whose.number,
                "detail": legible(detail)[:_DETAIL],
                "steps": spent.steps,
                "asked": list(spent.asked),
                **payload,
            },
            measures={
                "tokens": spent.tokens,
                "money": spent.money,
                "seconds": round(time.monotonic() - self._began, 3),
            },
            logs={"transcript": self._transcript},
        )


def _changed(hands: Room, ending: Ending) -> tuple[tuple[TreeEdit, ...], Ending]:
    """Return what was changed in the repository; where it cannot be looked at, that is how the session ended."""
    try:
        return hands.edits(), ending
    except LimitReached as reached:
        return (), reached if isinstance(ending, Submitted) else ending
