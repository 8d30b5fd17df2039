"""What the supervisor in a box prints, read with distrust, and as a model is shown it. Pure."""

from __future__ import annotations

import errno
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from installers.agent.supervise import FAULTS
from installers.distrust.fence import fence
from miner.core.records import legible

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_VOLATILE = (
    # of what tools print: what it is, what it becomes, so that the same command is answered alike
    (re.compile(r"\bin (?:\d+m ?)?\d+(?:\.\d+)?m?s\b"), "in some time"),
    (re.compile(r"\b\d+\.\d\ds\b"), "some time"),
    (re.compile(r"\b0x[0-9a-f]{8,}\b"), "0x"),
    (re.compile(r"\.tmp\w{6}\b"), ".tmp"),
    (re.compile(r"/tmp/(?:tmp|build-env-|pip-\w+-)\w{6,}"), "/tmp/tmp"),  # noqa: S108 - a pattern, no path of ours
)
_LONGEST = 200
_LONGEST_LINE = 4096
_WHY = frozenset({*FAULTS, *map(os.strerror, errno.errorcode)})
"""What the supervisor says of a file that it cannot read; anything else is said by whoever poses as it."""


@dataclass(frozen=True)
class Seen:
    """What a command printed, or what a file holds.

    Attributes:
        known: the supervisor says how it ended; where it was killed itself, it does not.
        code: exit code of the command; None where it was killed because it took too long.
        head: the beginning.
        tail: the end; `left_out` bytes are missing between the two.
        size: of a file; None where it could not be read.
        error: why not.
    """

    head: bytes
    tail: bytes = b""
    left_out: int = 0
    known: bool = False
    code: int | None = None
    size: int | None = None
    error: str = ""

    def shown(self, most: int) -> str:
        """Return output as a model is shown it: legible, steady, and cut to its head and tail."""
        if self.left_out:
            head, tail = steady(clean(self.head)), steady(clean(self.tail))
        else:
            head = tail = steady(clean(self.head + self.tail))
            if len(head) <= most:
                return head
        half = most // 2
        about = max(1, self.left_out + len(self.head) + len(self.tail) - most)
        return f"{head[:half]}\n[... about {about} characters left out ...]\n{tail[-half:]}"

    def beginning(self, most: int) -> str:
        """Return a file as a model is shown it."""
        text = clean(self.head)
        if len(text) <= most and (self.size or 0) <= len(self.head):
            return text
        return f"{text[:most]}\n[... the file goes on: it has {self.size} bytes ...]"

    def unread(self) -> str:
        """Return why a file could not be read, as a model is told it."""
        if not self.error:
            return "The file cannot be read."
        if self.error in _WHY:
            return f"The file cannot be read: {self.error}."
        return f"The file cannot be read. The container says:\n{fence('reason', self.error)}"


def seen_of(printed: bytes) -> Seen:
    """Read what the supervisor printed: a line of JSON, then bytes; of anything else, all is output.

    What runs in the box may have written that line: it may say nonsense, and deceives nobody but the model.
    """
    line, _, rest = printed.partition(b"\n")
    said: Any = None
    if len(line) <= _LONGEST_LINE:
        with suppress(ValueError, RecursionError):
            said = json.loads(line)
    head = _number(said, "head")
    if head is None:
        return Seen(printed)
    return Seen(
        head=rest[:head],
        tail=rest[head:],
        left_out=_number(said, "left_out") or 0,
        known="exit" in said,
        code=_number(said, "exit"),
        size=_number(said, "size"),
        error=legible(str(said.get("error", "")))[:_LONGEST],
    )


def _number(said: Any, name: str) -> int | None:
    value = said.get(name) if isinstance(said, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53 else None


def clean(data: bytes) -> str:
    """Return legible text without colours; what a program wrote over its own line stands on a line of its own."""
    text = _ANSI.sub("", data.decode("utf-8", "surrogateescape"))
    return legible(text.replace("\r\n", "\n").replace("\r", "\n"))


def steady(text: str) -> str:
    """Return output of tools without times, addresses and names that are other ones each time."""
    for pattern, said in _VOLATILE:
        text = pattern.sub(said, text)
    return text
