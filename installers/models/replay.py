"""Replies that were recorded: they stand for an endpoint, so that a run can be repeated without one.

A file holds one JSON object a line: `request` (its hash), `ordinal`, and either `reply`, or `refused` and `tools` where
the endpoint did not take the request.

Calls in text are marked with what is another one in each ledger (`installers.agent.protocol`): in a file, a fixed text
stands in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from installers.models.interface import Reply, Request, RequestRefused, ToolsUnsupported, Trouble
from installers.models.kept import REPLY
from miner.core.blobs import BlobStore
from miner.core.errors import ConfigError
from miner.core.hashing import canonical_json, sha256_bytes
from miner.core.ledger import Ledger
from miner.core.reasons import Reason
from miner.core.records import Record

_MARKED = re.compile(r"```call ([0-9a-f]{8}) ")
_ANY = "<mark>"


class Recorded(Record):
    """One line of a file.

    Attributes:
        request: hash of the request.
        ordinal: of the try.
        model: its name, for people.
        prompt: name of the template, for people.
        reply: None where the endpoint refused the request.
        refused: what it said then.
        tools: it refused since it knows no calls of tools.
    """

    request: str
    ordinal: int
    model: str = ""
    prompt: str = ""
    reply: Reply | None = None
    refused: str = ""
    tools: bool = False


class ReplayModel:
    """Says what a file holds; stands for every model.

    Raises:
        ConfigError: the file cannot be read, or is none of recorded replies.
    """

    def __init__(self, file: Path) -> None:
        self._name = file.name
        self._known = {(one.request, one.ordinal): one for one in read(file)}

    def complete(self, request: Request) -> Reply:
        """Return what was said to a request when it was asked first; see `recall`."""
        return self.recall(request, 0)

    def recall(self, request: Request, ordinal: int) -> Reply:
        """Return what was said to a request with this ordinal.

        Raises:
            Trouble: the file does not hold it.
            RequestRefused: the endpoint refused it.
        """
        mark = _mark_of(request)
        found = self._known.get((_name_of(request, mark), ordinal))
        if found is None:
            raise Trouble(
                f"{self._name} holds no reply of {request.model} to this request (try {ordinal}): it was recorded from "
                "other inputs, settings or prompts",
                reason=Reason.MODEL_UNREACHABLE,
                again=False,
                free=True,
            )
        if found.reply is None:
            raise (ToolsUnsupported if found.tools else RequestRefused)(found.refused)
        return _marked(found.reply, _ANY, mark)


def read(file: Path) -> Iterable[Recorded]:
    """Yield the lines of a file.

    Raises:
        ConfigError: it cannot be read, or a line is no recorded reply.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read ({error})", next_step="check `endpoint.replay`") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield Recorded.model_validate(json.loads(line))
        except (ValueError, ValidationError, RecursionError) as error:
            raise ConfigError(
                f"{file}:{number}: no recorded reply", next_step="record the file again: `swe-miner recipes record`"
            ) from error


def record(ledger: Ledger, blobs: BlobStore, file: Path) -> int:
    """Write all replies that stand in a ledger to a file, ordered by request, and return their number.

    They quote what the models were shown: a file from a ledger with candidates that are not public is not public.
    """
    found: dict[tuple[str, int], Recorded] = {}
    for outcome in (Reason.MODEL_REPLY_UNUSABLE.value, "ok"):
        for fact in ledger.standing(REPLY, outcome):
            request = Request.model_validate_json(blobs.get_text(fact.blobs["request"]))
            one = _recorded(request, fact.payload, _reply(fact.blobs, blobs))
            found[one.request, one.ordinal] = one
    lines = [canonical_json(found[key]) + "\n" for key in sorted(found)]
    part = file.with_name(f"{file.name}.part")
    part.write_text("".join(lines), encoding="utf-8")
    part.replace(file)
    return len(lines)


def _reply(names: dict[str, str], blobs: BlobStore) -> Reply | None:
    return Reply.model_validate_json(blobs.get_text(names["reply"])) if "reply" in names else None


def _mark_of(request: Request) -> str:
    """Return what calls in text are marked with, "" where there are none: by the first message, which is ours."""
    found = _MARKED.search(request.messages[0].content) if request.messages else None
    return found[1] if found is not None else ""


def _name_of(request: Request, mark: str) -> str:
    """Return the hash of a request, whatever the mark in it."""
    text = canonical_json(request)
    return sha256_bytes((text.replace(mark, _ANY) if mark else text).encode())


def _marked(reply: Reply, old: str, new: str) -> Reply:
    return reply.model_copy(update={"text": reply.text.replace(old, new)}) if old and new else reply


def _recorded(request: Request, payload: dict[str, Any], reply: Reply | None) -> Recorded:
    mark = _mark_of(request)
    return Recorded(
        request=_name_of(request, mark),
        ordinal=payload["ordinal"],
        model=payload["model"],
        prompt=payload["prompt"],
        reply=None if reply is None else _marked(reply, mark, _ANY),
        refused=payload.get("detail", ""),
        tools=payload.get("tools", False),
    )
