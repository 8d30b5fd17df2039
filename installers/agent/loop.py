"""A session, the whole of it: ask, read exactly one call, do it, tell what came of it, until something ends it.

Limits are exceptions that carry a message. The transcript is saved whatever happens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from installers.agent.endings import Capped, Ending, GaveUp, LimitReached, Submitted, Unclear, Unusable
from installers.agent.protocol import Speech
from installers.agent.tools import Call
from installers.agent.transcript import Transcript
from installers.interface import Refusal
from installers.models.desk import Answer
from installers.models.interface import Message, OverCap, Reply, Request, RequestRefused, ToolsUnsupported
from miner.core.settings import Agent

UNCLEAR_IN_A_ROW = 5
"""Replies that are no call: a model that does not speak the protocol by then will not learn it."""
SAME_IN_A_ROW = 4
"""Calls that are the same: a model that goes round in circles is stopped before it has used up its steps."""
_LAST_STEPS = 3
_NEARLY = 0.8


class Hands(Protocol):
    """What does calls in the container."""

    def run(self, command: str, timeout_s: float) -> Done:
        """Run a command to its end, or for so long."""

    def read(self, path: str) -> Done:
        """Read the beginning of a file."""


@dataclass(frozen=True)
class Done:
    """What came of a call.

    Attributes:
        told: what the model is shown: cut, and fenced.
        exit_code: of a command that came to its end.
        seconds: that it took.
    """

    told: str
    exit_code: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Frame:
    """What is the same for all requests of a session."""

    model: str
    max_tokens: int
    temperature: float | None


@dataclass
class Spent:
    """What a session has used so far."""

    steps: int = 0
    tokens: int = 0
    money: float = 0.0
    asked: list[str] = field(default_factory=list)


class Session:
    """One conversation with one model about one container.

    Args:
        ask: puts a request to the model.
        hands: do its calls.
        judge: what is made of a recipe that it writes, or why nothing can be; the latter goes back to it.
        save: takes the transcript when the session is over, whatever has ended it.
    """

    def __init__(
        self,
        ask: Callable[[Request], Answer],
        hands: Hands,
        judge: Callable[[str], Any],
        save: Callable[[Transcript], None],
        *,
        speech: Speech,
        frame: Frame,
        limits: Agent,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask, self._hands, self._judge, self._save = ask, hands, judge, save
        self._speech, self._frame, self._limits, self._clock = speech, frame, limits, clock
        self._began = clock()
        self._messages: list[Message] = []
        self._last: list[Call] = []
        self._unclear = 0
        self.spent = Spent()
        self.transcript = Transcript()

    def run(self, messages: Sequence[Message]) -> Ending:
        """Hold the conversation from its first messages to its end, and return what ended it.

        Raises:
            InfrastructureFault: the endpoint, the engine or the package index was at fault.
            ToolsUnsupported: the endpoint takes no native calls: nothing was said yet.
        """
        try:
            self._tell(messages)
            while True:
                self._step()
        except Ending as ending:
            reason = "ok" if ending.reason is None else ending.reason.value
            self.transcript.note("end", outcome=reason, detail=str(ending))
            return ending
        except BaseException as error:
            self.transcript.note("end", outcome=type(error).__name__, detail=str(error))
            raise
        finally:
            self._save(self.transcript)

    def _step(self) -> None:
        self._check_limits()
        reply = self._next_reply()
        try:
            told = self._do(self._speech.read(reply))
            self._unclear = 0
        except Unclear as unclear:
            self._unclear += 1
            told = f"Your reply was not executed: {unclear}."
            self.transcript.note("refused", why=str(unclear))
        said, *answers = self._speech.answered(reply, f"{told}\n{self._left()}")
        self._messages.append(said)
        self._tell(answers)
        if self._unclear == UNCLEAR_IN_A_ROW:
            raise Unusable(f"{UNCLEAR_IN_A_ROW} replies in a row were no call: the last one: {told}")

    def _next_reply(self) -> Reply:
        request = Request(
            model=self._frame.model,
            messages=tuple(self._messages),
            tools=self._speech.tools,
            max_tokens=self._frame.max_tokens,
            temperature=self._frame.temperature,
        )
        try:
            answer = self._ask(request)
        except OverCap as over:
            self.transcript.note("capped", why=str(over))
            raise Capped(over.sentence) from over
        except RequestRefused as refused:
            if isinstance(refused, ToolsUnsupported) and self.spent.steps == 0:
                raise
            raise Unusable(f"the endpoint does not take the request: {refused}") from refused
        spent, reply = self.spent, answer.reply
        spent.steps += 1
        spent.tokens += answer.tokens
        spent.money += answer.money
        spent.asked.append(answer.fact)
        cost = {"fact": answer.fact, "tokens": answer.tokens, "money": answer.money, "seconds": answer.seconds}
        self.transcript.note("reply", step=spent.steps, **reply.model_dump(mode="json", exclude={"usage"}), **cost)
        return reply

    def _do(self, call: Call) -> str:
        self._last = [*(one for one in self._last if one == call), call]
        if len(self._last) == SAME_IN_A_ROW:
            raise LimitReached(f"the model made the same call {SAME_IN_A_ROW} times in a row: {call.tool}")
        self.transcript.note("call", tool=call.tool, argument=call.argument)
        if call.tool == "give_up":
            raise GaveUp(f"the model gave up: {call.argument.strip()}")
        if call.tool == "write_recipe":
            written = self._judge(call.argument)
            if not isinstance(written, Refusal):
                raise Submitted(written)
            done = Done(f"The recipe cannot be tried: {written.detail}")
        elif call.tool == "read":
            done = self._hands.read(call.argument)
        else:
            done = self._hands.run(call.argument, min(self._limits.command_s, max(1.0, self._seconds_left())))
        self.transcript.note("result", exit_code=done.exit_code, seconds=round(done.seconds, 3), output=done.told)
        return done.told

    def _tell(self, messages: Sequence[Message]) -> None:
        self._messages += messages
        for message in messages:
            self.transcript.told(message)

    def _check_limits(self) -> None:
        spent, limits = self.spent, self._limits
        if spent.steps >= limits.steps:
            raise LimitReached(f"no recipe after {limits.steps} steps")
        if self._seconds_left() <= 0:
            raise LimitReached(f"no recipe after {limits.seconds:g} seconds")
        if spent.tokens >= limits.tokens:
            raise LimitReached(f"no recipe after {spent.tokens} tokens (the limit is {limits.tokens})")
        if spent.money > 0 and spent.money >= limits.money:
            raise LimitReached(f"no recipe for ${spent.money:.4f} (the limit is ${limits.money:g})")

    def _seconds_left(self) -> float:
        return self._limits.seconds - (self._clock() - self._began)

    def _left(self) -> str:
        """Return how much is left, in words that are the same when the session is held again."""
        spent, limits = self.spent, self._limits
        used = max(spent.tokens / limits.tokens, spent.money / limits.money if limits.money else 0.0)
        late = limits.steps - spent.steps <= _LAST_STEPS or used >= _NEARLY
        return f"[step {spent.steps} of {limits.steps}{': write the recipe now, or give up' if late else ''}]"
