"""A tiny talk with each model: a reply of a form, a call of a tool, and what both have cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from installers.agent.endings import Unclear
from installers.agent.protocol import Blocks
from installers.models.desk import Answer, Desk
from installers.models.interface import (
    Form,
    Message,
    OverCap,
    Prompt,
    Reply,
    Request,
    RequestRefused,
    Tool,
    ToolsUnsupported,
)
from miner.core.errors import ModelFault
from miner.core.hashing import sha256_bytes
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import legible
from miner.sandbox.doctor import Check

_TOKENS = 256
_SAID = 160
_WORD = "ready"
_MARK = "d0c70a"
_FORM = Form(
    name="probe",
    definition={
        "type": "object",
        "properties": {"word": {"type": "string"}, "number": {"type": "integer"}},
        "required": ["word", "number"],
        "additionalProperties": False,
    },
)
_TOOL = Tool(
    name="report",
    description="Reports a word.",
    parameters={
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
        "additionalProperties": False,
    },
)
_ASK_FORM = f"Say the word {_WORD} and the number 7, in JSON."  # its form is told by the request alone
_ASK_TOOL = f'Call the tool report once, with the word "{_WORD}".'
_ASK_TEXT = f"Answer with exactly these three lines and nothing else:\n```call {_MARK} read\n{_WORD}\n```"
_OTHER = "name a model that keeps to a form; replies that do not are attempts that came to nothing"
_NO_TOOLS = "add its name to measure.model.agent.text, so that the agent speaks to it in text"
_NEXT = {
    Reason.MODEL_LOGIN: "put a valid key into the variable that endpoint.key_env names",
    Reason.MODEL_LIMITED: "try again later, or with less at once (run.workers)",
}

_Read = Callable[[Reply], str]
"""Says what is wrong with a reply, "" where nothing is."""


@dataclass
class _Sum:
    """What the check has come to."""

    tokens: int = 0
    money: float = 0.0
    seconds: list[float] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)

    def add(self, model: str, answer: Answer) -> None:
        """Note what an answer has cost."""
        self.tokens += answer.tokens
        self.money += answer.money
        self.seconds.append(answer.seconds)
        if answer.reply.usage is None:
            self.silent.add(model)


def talks(desk: Desk, by_text: Sequence[str], cap: float) -> list[Check]:
    """Ask each model for a reply of a form, and for a call of a tool.

    Args:
        desk: with the models, and a purse of its own.
        by_text: models that are spoken to in text, without native calls of tools.
        cap: US dollars that the purse holds.
    """
    total, found = _Sum(), []
    for model in desk.models:
        form = Request(model=model, messages=_said(_ASK_FORM), form=_FORM, max_tokens=_TOKENS)
        found.append(_talk(desk, total, f"{model}: reply of a form", form, _form_fault, _OTHER))
        found.append(_tool_call(desk, total, model, by_text=model in by_text))
    usage = f"not reported by {', '.join(sorted(total.silent))}: each request counts at its upper bound"
    latency = f"{max(total.seconds):.1f} s at most" if total.seconds else "nothing answered"
    cost = f"{total.tokens} tokens, ${total.money:.6f} of the ${cap:g} that this check may cost"
    return [
        *found,
        Check(name="usage", ok=True, detail=usage if total.silent else "reported"),
        Check(name="latency", ok=True, detail=latency),
        Check(name="cost of this check", ok=True, detail=cost),
    ]


def _tool_call(desk: Desk, total: _Sum, model: str, *, by_text: bool) -> Check:
    text = Request(model=model, messages=_said(_ASK_TEXT), max_tokens=_TOKENS)
    if by_text:
        return _talk(desk, total, f"{model}: call of a tool, in text", text, _text_fault, _OTHER)
    native = Request(model=model, messages=_said(_ASK_TOOL), tools=(_TOOL,), max_tokens=_TOKENS)
    try:
        return _talk(desk, total, f"{model}: call of a tool", native, _tool_fault, _NO_TOOLS)
    except ToolsUnsupported:
        return _talk(desk, total, f"{model}: no tools, call in text", text, _text_fault, _OTHER)


def _said(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=text),)


def _talk(desk: Desk, total: _Sum, name: str, request: Request, read: _Read, how: str) -> Check:
    """Ask once, and say what came of it.

    Raises:
        ToolsUnsupported: the endpoint knows no calls of tools.
    """
    prompt = Prompt(name="doctor", version=sha256_bytes(request.messages[0].content.encode()), text="")
    nothing_known = Memo(lambda _key: [], lambda _fact: None)
    try:
        answer = desk.ask(nothing_known, request, repository="doctor", prompt=prompt)
    except OverCap as error:
        return Check(name=name, ok=False, detail=str(error), next_step="give the check more with --max-cost")
    except ToolsUnsupported:
        raise
    except RequestRefused as error:
        return Check(name=name, ok=False, detail=_short(f"refused: {error}"), next_step=how)
    except ModelFault as error:
        return Check(name=name, ok=False, detail=_short(str(error)), next_step=_NEXT.get(error.reason, error.next_step))
    total.add(request.model, answer)
    wrong = read(answer.reply)
    detail = _short(wrong) if wrong else f"as asked for, after {answer.seconds:.1f} s"
    return Check(name=name, ok=not wrong, detail=detail, next_step=how if wrong else "")


def _form_fault(reply: Reply) -> str:
    if fault := _unfinished(reply):
        return fault
    try:
        value = json.loads(reply.text)
    except (ValueError, RecursionError):
        return f"no JSON: {reply.text!r}"
    fits = isinstance(value, dict) and value.keys() == {"word", "number"}
    if not fits or not isinstance(value["word"], str) or type(value["number"]) is not int:
        return f"not of the form: {reply.text!r}"
    return ""


def _tool_fault(reply: Reply) -> str:
    if fault := _unfinished(reply):
        return fault
    if len(reply.calls) != 1 or reply.calls[0].name != _TOOL.name:
        said = ", ".join(call.name for call in reply.calls) or "none"
        return f"one call was asked for, and it made {said}: {reply.text!r}"
    try:
        value = json.loads(reply.calls[0].arguments)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or value.keys() != {"word"} or not isinstance(value["word"], str):
        return f"the arguments are not those of the tool: {reply.calls[0].arguments!r}"
    return ""


def _text_fault(reply: Reply) -> str:
    try:
        Blocks(_MARK).read(reply)
    except Unclear as unclear:
        return f"{unclear}: {reply.text!r}"
    return ""


def _unfinished(reply: Reply) -> str:
    if reply.refusal:
        return f"it declines: {reply.refusal!r}"
    if reply.finish in ("length", "content_filter"):
        return f"the reply was cut ({reply.finish}, {_TOKENS} tokens): {reply.text!r}"
    return ""


def _short(text: str) -> str:
    said = " ".join(legible(text).split())
    return said if len(said) <= _SAID else f"{said[:_SAID]} ..."
