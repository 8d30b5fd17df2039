"""How a session ends, and what only sends the model back: exceptions that carry a message.

`Unclear` goes back to the model: nothing was run, and the session goes on. An `Ending` ends it:

    Submitted       with a recipe
    GaveUp          the model knows no way
    LimitReached    steps, seconds, tokens, money, containers, or the same call again and again
    Unusable        the model does not speak the protocol, or the endpoint does not take the request
    Capped          a cap of the run leaves too little for the next question
"""

from __future__ import annotations

from typing import Any, ClassVar

from miner.core.reasons import Reason


class Unclear(Exception):
    """A reply that is not exactly one call of a known tool with the right argument."""


class Ending(Exception):
    """A session is over; the message is the sentence for people."""

    reason: ClassVar[Reason | None] = None


class Submitted(Ending):
    """The model wrote a recipe that can be tried.

    Attributes:
        written: what was made of it.
    """

    def __init__(self, written: Any) -> None:
        super().__init__("the model wrote a recipe")
        self.written = written


class GaveUp(Ending):
    """The model says that it knows no way."""

    reason = Reason.MODEL_GAVE_UP


class LimitReached(Ending):
    """A limit of the session was reached before there was a recipe."""

    reason = Reason.MODEL_LIMIT


class Unusable(Ending):
    """Nothing can be made of what the model says."""

    reason = Reason.MODEL_REPLY_UNUSABLE


class Capped(Ending):
    """The next question could cost more than a cap leaves."""

    reason = Reason.MODEL_CAP_REACHED
