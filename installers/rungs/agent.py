"""The rung that lets a language model look around in a throw-away container."""

from __future__ import annotations

from installers.interface import Help, Proposal, Question
from installers.models.turns import turn


def agent(question: Question, help_: Help) -> Proposal | None:
    """Return the next recipe that a session came to, or why it came to none; None where no model is to be asked."""
    if turn(question, help_, "agent", help_.workshop.settings.measure.model.agent.attempts) is None:
        return None
    raise NotImplementedError
