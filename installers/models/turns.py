"""Whose turn it is: which model is asked, and the how-manieth attempt it is; and what one may start from. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from installers.interface import Attempt, Help, Question
from miner.core.reasons import Reason

_VOID = (Reason.MODEL_WEAKENS_TESTS.value, Reason.MODEL_EDITS_SOURCE.value)


class Turn(NamedTuple):
    """A model, and the number of its attempts on this rung so far."""

    model: str
    number: int


def turn(question: Question, help_: Help, rung: str, each: int) -> Turn | None:
    """Return whose turn it is on a rung; None where no model is to be asked.

    Every attempt of the rung was one turn, also one that came to no recipe. A healthy environment in which every test
    file can be collected ends the asking, and so does a cap.

    Args:
        question: with what was tried before.
        help_: with the models.
        rung: the rung that asks.
        each: turns of each model.
    """
    if help_.models is None or each == 0:
        return None
    enough = help_.workshop.settings.measure.model.enough
    for past in question.past:
        if past.ok and not past.broken and (past.share is None or past.share >= enough):
            return None
        if past.outcome == Reason.MODEL_CAP_REACHED.value:
            return None
    index, number = divmod(sum(past.rung == rung for past in question.past), each)
    models = help_.models.models
    return Turn(models[index], number) if index < len(models) else None


def built(past: Iterable[Attempt]) -> list[Attempt]:
    """Return the attempts that another one may start from: something was built for them, and they are not void."""
    return [attempt for attempt in past if attempt.steps and attempt.outcome not in _VOID]
