"""The rung that asks a language model for a recipe by schema, and refines it from what its attempt failed with."""

from __future__ import annotations

from installers.interface import Help, Proposal, Question
from installers.models.turns import turn


def structured(question: Question, help_: Help) -> Proposal | None:
    """Return the next recipe of a language model, or why there is none; None where no model is to be asked."""
    use = help_.workshop.settings.measure.model.structured
    if turn(question, help_, "structured", use.candidates * (1 + use.rounds)) is None:
        return None
    raise NotImplementedError
