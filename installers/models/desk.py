"""The desk where rungs ask language models: each question once, within the caps, and everything is a fact."""

from __future__ import annotations

from dataclasses import dataclass

from installers.models.interface import Prompt, Reply, Request
from miner.core.memo import Memo


@dataclass(frozen=True)
class Answer:
    """A reply, the fact that holds it, and what it cost when it was asked for.

    Attributes:
        fact: id of the fact `model.reply`.
        tokens: of all its tries.
        money: of all its tries, in US dollars.
    """

    reply: Reply
    fact: str
    tokens: int
    money: float
    seconds: float


class Desk:
    """Asks models for rungs; threads share it."""

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in the order in which they are asked."""
        raise NotImplementedError

    def ask(self, memo: Memo, request: Request, *, repository: str, prompt: Prompt, ordinal: int = 0) -> Answer:
        """Return the reply to a request: the known one, where it was asked before with this ordinal.

        Args:
            memo: known facts.
            request: what is asked.
            repository: on whose behalf: a cap counts by it.
            prompt: the template that the request was made from.
            ordinal: tells tries of the same request apart, so that ten tries are ten.

        Raises:
            OverCap: it could cost more than a cap leaves.
            RequestRefused: the endpoint does not take this request.
            ModelFault: the endpoint was at fault, for all tries.
        """
        raise NotImplementedError
