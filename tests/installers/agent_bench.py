"""A session without a container and without an endpoint: hands that remember, and a model that follows a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from installers.agent.loop import Done, Frame, Session
from installers.agent.protocol import Blocks, Native, Speech
from installers.agent.transcript import Transcript
from installers.interface import Refusal
from installers.models.desk import Answer
from installers.models.interface import Message, Reply, Request, ToolCall
from installers.models.scripted import ScriptedModel
from miner.core.reasons import Reason
from miner.core.settings import Agent

MARK = "0badc0de"
LIMITS = Agent(
    attempts=2, steps=10, seconds=100.0, tokens=100_000, money=0.25, command_s=30.0, output_chars=1000, text=()
)
FRAME = Frame(model="m", max_tokens=100, temperature=None)
BEGIN = (Message(role="system", content="how"), Message(role="user", content="what"))


def called(tool: str, arguments: object, number: int = 0, text: str = "", **changes) -> Reply:
    """Return a reply with one native call; arguments that are no text are written as JSON."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = ToolCall(id=f"call-{number}", name=tool, arguments=written)
    return Reply(text=text, calls=(call,), finish="tool_calls").model_copy(update=changes)


def ran(command: str, **changes) -> Reply:
    return called("run", {"command": command}, **changes)


def gave_up(reason: str = "no way") -> Reply:
    return called("give_up", {"reason": reason})


def said(text: str, **changes) -> Reply:
    return Reply(text=text, finish="stop").model_copy(update=changes)


def block(tool: str, argument: str, before: str = "", mark: str = MARK) -> str:
    return f"{before}```call {mark} {tool}\n{argument}\n```"


@dataclass
class FakeHands:
    """Does nothing, and remembers what it was asked to do.

    Attributes:
        does: makes what comes of a command; may raise.
    """

    does: Callable[[str], Done] = lambda command: Done(f"ran {command}", exit_code=0)
    done: list[tuple[str, str]] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)

    def run(self, command: str, timeout_s: float) -> Done:
        self.done.append(("run", command))
        self.timeouts.append(timeout_s)
        return self.does(command)

    def read(self, path: str) -> Done:
        self.done.append(("read", path))
        return self.does(path)


@dataclass
class FakeTime:
    """A clock that each reply moves on."""

    now: float = 0.0
    each: float = 0.0

    def __call__(self) -> float:
        return self.now


def judge_all(text: str) -> object:
    """Take every recipe but one that says that it is bad."""
    if "bad" in text:
        return Refusal(reason=Reason.MODEL_REPLY_UNUSABLE, detail="it is bad")
    return json.loads(text)


class Held:
    """A session and everything around it."""

    def __init__(
        self,
        script: Sequence[Reply | Exception] | Callable[[Request], Reply | Exception],
        *,
        speech: Speech | None = None,
        limits: Agent = LIMITS,
        hands: FakeHands | None = None,
        tokens: int = 10,
        money: float = 0.001,
        clock: FakeTime | None = None,
    ) -> None:
        self.model = ScriptedModel(script)
        self.hands = hands or FakeHands()
        self.saved: list[Transcript] = []
        self._cost = tokens, money
        self._clock = clock or FakeTime()
        self.session = Session(
            self._ask,
            self.hands,
            judge_all,
            self.saved.append,
            speech=speech or Native(("3.11",)),
            frame=FRAME,
            limits=limits,
            clock=self._clock,
        )

    def _ask(self, request: Request) -> Answer:
        reply = self.model.complete(request)
        self._clock.now += self._clock.each
        return Answer(reply, f"fact-{len(self.model.requests)}", *self._cost, seconds=1.0)

    def run(self):
        return self.session.run(BEGIN)

    @property
    def events(self) -> list[dict]:
        """The transcript as it was saved, which happens exactly once."""
        (saved,) = self.saved
        return [json.loads(line) for line in saved.text().splitlines()]

    def told(self, number: int) -> str:
        """Return what the model was told last before its reply of this number."""
        return self.model.requests[number].messages[-1].content


def in_text() -> Blocks:
    return Blocks(MARK)
