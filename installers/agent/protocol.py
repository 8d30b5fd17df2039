"""The two ways in which a model calls a tool: native tool calls, and a text protocol for endpoints without them.

The text protocol: a reply holds exactly one block, at its end, of the form

    ```call MARK TOOL
    the argument, as it is
    ```

The first line is exactly this, the last one exactly three backticks. MARK is made anew for every session, so that
text of a repository that is quoted is never a call. A block that is quoted itself (within another code fence, indented,
behind ">") is none, and with any trace of a second one the reply is ambiguous: nothing of it is run. Fences are those
of CommonMark 0.31.2, section 4.5.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from installers.agent.endings import Unclear
from installers.agent.tools import ARGUMENTS, Call, call, call_of, tools
from installers.models.interface import Message, Reply, Tool

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_NOTHING = "(no text)"


class Speech(Protocol):
    """How calls are written and answered."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What a request offers."""

    @property
    def mark(self) -> str:
        """What a call in the text protocol is marked with; "" where calls are native."""

    def read(self, reply: Reply) -> Call:
        """Return the one call of a reply.

        Raises:
            Unclear: there is none, or more than one, or one that cannot be done as it stands.
        """

    def answered(self, reply: Reply, told: str) -> tuple[Message, ...]:
        """Return a reply and its answer as messages of the conversation."""


class Native:
    """Tool calls of the endpoint's own."""

    mark = ""

    def __init__(self, pythons: Sequence[str]) -> None:
        self.tools = tools(pythons)

    def read(self, reply: Reply) -> Call:
        """Return the one call of a reply; text beside it is no call, whatever it looks like."""
        _complete(reply)
        if len(reply.calls) != 1:
            said = "it has no tool call" if not reply.calls else f"it has {len(reply.calls)} tool calls"
            raise Unclear(f"{said}: a reply is exactly one call of one tool")
        if "```call" in reply.text:
            raise Unclear("it has a tool call and a block that looks like a second one")
        return call_of(reply.calls[0])

    def answered(self, reply: Reply, told: str) -> tuple[Message, ...]:
        """Return the messages; every call gets an answer, since endpoints refuse a conversation without."""
        said = Message(role="assistant", content=reply.text or ("" if reply.calls else _NOTHING), calls=reply.calls)
        if not reply.calls:
            return said, Message(role="user", content=told)
        return said, *(Message(role="tool", content=told, answers=one.id) for one in reply.calls)


class Blocks:
    """One marked block of text.

    Args:
        mark: of this session.
    """

    tools: tuple[Tool, ...] = ()

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def read(self, reply: Reply) -> Call:
        """Return the call in the one block of a reply."""
        _complete(reply)
        if reply.calls:
            raise Unclear("it has native tool calls, which are not offered here")
        name, argument = block_of(reply.text, self.mark)
        return call(name, argument)

    def answered(self, reply: Reply, told: str) -> tuple[Message, ...]:
        """Return the messages."""
        return Message(role="assistant", content=reply.text or _NOTHING), Message(role="user", content=told)


def _complete(reply: Reply) -> None:
    """Refuse what is only a part of a reply: the rest of it might have said something else."""
    if reply.finish == "length":
        raise Unclear("it was cut off at the longest reply that is allowed")
    if reply.finish == "content_filter":
        raise Unclear("it was cut off by the endpoint's filter")
    if not reply.complete:
        raise Unclear(f"it was cut off: the endpoint says that it ended with {reply.finish[:60]!r}")
    if reply.refusal:
        raise Unclear("it declines; call give_up if there is no way")


def block_of(text: str, mark: str) -> tuple[str, str]:
    """Return the tool and the argument of the one block of a reply.

    Raises:
        Unclear: there is none, more than one, or one that may be no call but a quotation.
    """
    lines = text.replace("\r\n", "\n").rstrip().split("\n")
    opens = f"```call {mark} "
    starts = [number for number, line in enumerate(lines) if line.startswith(opens)]
    traces = text.count("```call")
    if not starts:
        raise Unclear(f"it has no block that begins with a line ```call {mark} TOOL")
    if len(starts) > 1 or traces > 1:
        raise Unclear("it has more than one block, or a quotation of one: a reply is exactly one call")
    begin = starts[0]
    if _in_fence(lines[:begin]):
        raise Unclear("its block stands within another code block: that may be a quotation")
    ends = [number for number, line in enumerate(lines) if number > begin and line.startswith("```")]
    if not ends or lines[ends[0]] != "```":
        raise Unclear("its block does not end with a line of exactly three backticks")
    if ends[0] != len(lines) - 1:
        raise Unclear("something follows its block: the block has to be the end of the reply")
    name = lines[begin].removeprefix(opens)
    if name not in ARGUMENTS:
        raise Unclear(f"there is no tool {name[:60]!r}; there are {', '.join(ARGUMENTS)}")
    return name, "\n".join(lines[begin + 1 : ends[0]])


def _in_fence(lines: Sequence[str]) -> bool:
    """Whether lines leave a code block open."""
    opened = ""
    for line in lines:
        found = _FENCE.fullmatch(line)
        if found is None:
            continue
        fence, info = found[1], found[2]
        if not opened:
            opened = "" if fence[0] == "`" and "`" in info else fence
        elif fence[0] == opened[0] and len(fence) >= len(opened) and not info.strip():
            opened = ""
    return bool(opened)
