"""What the rest of the installers know of a language model: its records, one protocol, and the errors of a request.

The shapes are those of chat completions (https://platform.openai.com/docs/api-reference/chat), which most endpoints
speak.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

from pydantic import Field

from miner.core.errors import ModelFault
from miner.core.reasons import Reason
from miner.core.records import Record
from miner.core.spending import OverCap

__all__ = [
    "COMPLETE",
    "Form",
    "Message",
    "Model",
    "OverCap",
    "Prompt",
    "Reply",
    "Request",
    "RequestRefused",
    "Tool",
    "ToolCall",
    "ToolsUnsupported",
    "Trouble",
    "Unasked",
    "Usage",
]


COMPLETE = frozenset(
    {
        *("", "stop", "tool_calls", "function_call"),  # chat completions; some endpoints do not say
        *("end_turn", "stop_sequence", "tool_use"),  # messages (https://docs.anthropic.com/en/api/messages)
        *("eos", "eos_token"),  # servers of open weights
        *("complete", "completed"),
    }
)
"""How a reply ends that is whole, in small letters; any other end, also one that is not known, may have cut it off."""


class ToolCall(Record):
    """One call of a tool, as the model wrote it.

    Attributes:
        arguments: JSON text, which may be none.
    """

    id: str
    name: str
    arguments: str


class Message(Record):
    """One message of a conversation.

    Attributes:
        calls: of an assistant's message.
        answers: id of the call that a tool's message answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    answers: str = ""


class Tool(Record):
    """A tool that a model may call.

    Attributes:
        parameters: JSON schema of its arguments.
    """

    name: str
    description: str
    parameters: dict[str, Any] = Field(default_factory=dict)


class Form(Record):
    """The form of a reply.

    Attributes:
        definition: JSON schema, strict: every field required, no other one allowed.
    """

    name: str
    definition: dict[str, Any]


class Request(Record):
    """Everything that a reply depends on, beside chance.

    Attributes:
        form: asks for a reply of this form; None: free text, or calls of tools.
        max_tokens: of the reply.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    form: Form | None = None
    max_tokens: int
    temperature: float | None = None


class Usage(Record):
    """Tokens that an endpoint reports."""

    input_tokens: int = Field(ge=0)
    output_tokens: int = Field(ge=0)


class Reply(Record):
    """What a model said.

    Attributes:
        finish: why it ended: "stop", "length", "tool_calls", "content_filter", or what else the endpoint says.
        refusal: the model's own words where it declines.
        usage: None where the endpoint says nothing, or nonsense.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    refusal: str = ""
    usage: Usage | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing of it is missing."""
        return self.finish.lower() in COMPLETE


class Prompt(Record):
    """A rendered template.

    Attributes:
        name: of the template in `configs/prompts`.
        version: sha256 of the template's own text, and of what it includes.
    """

    name: str
    version: str
    text: str


class Trouble(ModelFault):
    """One request met a fault of the endpoint.

    Attributes:
        again: another try may help.
        wait_s: how long the endpoint asks to wait; None where it does not say.
        free: surely nothing was charged for it (it was refused before a model saw it).
    """

    def __init__(
        self, message: str, *, reason: Reason, again: bool = True, wait_s: float | None = None, free: bool = False
    ) -> None:
        super().__init__(message, reason=reason)
        self.again = again
        self.wait_s = wait_s
        self.free = free


class RequestRefused(Exception):
    """The endpoint does not take this request (too long, against its rules, an unknown parameter): no fault of it.

    Attributes:
        free: surely nothing was charged for it.
        fact: id of the fact that says so, "" where there is none.
    """

    def __init__(self, message: str, *, free: bool = True, fact: str = "") -> None:
        super().__init__(message)
        self.free = free
        self.fact = fact


class Unasked(Exception):
    """No endpoint is asked, and the reply is not known: as if there were no model."""


class ToolsUnsupported(RequestRefused):
    """The endpoint, or the model, knows no calls of tools."""


class Model(Protocol):
    """One endpoint, or what stands for one."""

    def complete(self, request: Request) -> Reply:
        """Return the reply to a request, after one try.

        Raises:
            Trouble: the endpoint was at fault.
            RequestRefused: it does not take this request.
        """
