"""What an answer that is no reply means: whose fault it is, whether to ask again, and whether something was charged.

Pure. The shapes of errors are those of OpenAI (https://platform.openai.com/docs/guides/error-codes/api-errors) and of
the servers that speak its protocol: `{"error": {"message", "param", "code", "type"}}`, `{"error": "..."}`,
`{"message": "..."}`, `{"detail": "..."}`, `{"detail": [{"loc", "msg"}]}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from installers.models.address import shown
from installers.models.interface import Request, RequestRefused, ToolsUnsupported, Trouble
from installers.models.waits import asked_wait
from installers.models.wire import Answer
from miner.core.reasons import Reason
from miner.core.records import legible

_LONGEST = 300
_REFUSALS = frozenset({400, 413, 422})
_MAY_HELP = frozenset({408, 409, 425})
_TOOLS_REFUSED = frozenset({400, 404, 422, 500, 501})
_NO_WORK = frozenset({502, 503, 529})
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|insufficient balance|billing", re.IGNORECASE)
_TOO_LONG = re.compile(r"context_length|context length|context window|too long", re.IGNORECASE)
_MODERATED = re.compile(r"moderat|flagged|policy|safety|filter", re.IGNORECASE)
_TOOLS = re.compile(r"\btools?\b|\btool_choice\b|\bfunction call", re.IGNORECASE)
_LACKS = re.compile(
    r"support|require|permitted|allowed|enabled|unknown|unrecogni[sz]ed|unexpected|extra", re.IGNORECASE
)
_YIELDS = (
    ("form", re.compile(r"response_format|json_schema|structured output|guided|grammar", re.IGNORECASE)),
    ("temperature", re.compile(r"\btemperature\b", re.IGNORECASE)),
    ("max_tokens", re.compile(r"\bmax_tokens\b|\bmax_completion_tokens\b", re.IGNORECASE)),
)


class Complaint(NamedTuple):
    """What an error says: its sentence, the parameter that it names, and its code."""

    message: str = ""
    param: str = ""
    code: str = ""

    @property
    def words(self) -> str:
        """Everything that it says."""
        return f"{self.param} {self.code} {self.message}"


def complaint_of(value: Any) -> Complaint:
    """Return what the JSON value of an error says, nothing where it says nothing; what it echoes is not read."""
    if isinstance(value, list) and value:  # some servers wrap it
        value = value[0]
    inner = value.get("error") or value if isinstance(value, Mapping) else value
    if not isinstance(inner, Mapping):
        return Complaint(message=_short(inner))
    said = next((text for name in ("message", "detail", "msg", "error") if (text := _sentence(inner.get(name)))), "")
    code = " ".join(filter(None, (_short(inner.get("code")), _short(inner.get("type")))))
    return Complaint(message=said, param=_short(inner.get("param")), code=code)


def yields(request: Request, answer: Answer, complaint: Complaint) -> str:
    """Return what of a request the endpoint does not take and can be left out or said otherwise, "" where nothing.

    Raises:
        ToolsUnsupported: it knows no calls of tools.
    """
    if _TOO_LONG.search(complaint.words):
        return ""
    if answer.status in (400, 422):
        present = {"form": request.form is not None, "temperature": request.temperature is not None, "max_tokens": True}
        found = next((name for name, said in _YIELDS if present[name] and said.search(complaint.words)), "")
        if found:
            return found
    about_messages = complaint.param.startswith("messages")
    about_tools = _TOOLS.search(complaint.words) and _LACKS.search(complaint.words) and not about_messages
    if request.tools and answer.status in _TOOLS_REFUSED and about_tools:
        raise ToolsUnsupported(_said(answer, complaint))
    return ""


def raised(answer: Answer, complaint: Complaint, model: str, now: float) -> Trouble | RequestRefused:
    """Return the error that an answer with another status than success stands for.

    Args:
        answer: of the endpoint.
        complaint: what it says.
        model: that was asked.
        now: seconds since the epoch.
    """
    status, said = answer.status, _said(answer, complaint)
    if status in _REFUSALS:
        # Some providers charge for a prompt that their filter, or the model's context, refuses.
        named = bool(complaint.param) and not complaint.param.startswith("messages")
        return RequestRefused(said, free=status != 400 or named)
    if status == 403 and _MODERATED.search(complaint.words):
        return RequestRefused(said, free=False)
    if status == 401:
        return Trouble(f"the key is refused: {said}", reason=Reason.MODEL_LOGIN, again=False, free=True)
    if status == 404:
        return Trouble(f"{model} is not known there: {said}", reason=Reason.MODEL_LOGIN, again=False, free=True)
    if status == 402 or (status == 429 and _QUOTA.search(complaint.words)):
        return Trouble(f"there is no money left there: {said}", reason=Reason.MODEL_LIMITED, again=False, free=True)
    wait = asked_wait(answer.headers, now)
    if status == 429:
        return Trouble(f"too many requests: {said}", reason=Reason.MODEL_LIMITED, wait_s=wait, free=True)
    if status >= 500 or status in _MAY_HELP:
        # A gateway, or a server that is too busy, answers before a model has worked.
        free = status in _NO_WORK
        return Trouble(said, reason=Reason.MODEL_ERROR, again=status != 501, wait_s=wait, free=free)
    # A 403 too: a firewall may forbid one text. Whether the endpoint forbids everything, its canary says.
    return Trouble(said, reason=Reason.MODEL_ERROR, again=False, free=True)


def _said(answer: Answer, complaint: Complaint) -> str:
    to = shown(answer.headers.get("location", "")) or "elsewhere"
    moved = f" to {to}" if 300 <= answer.status < 400 else ""
    return f"status {answer.status}{moved}" + (f" ({complaint.message})" if complaint.message else "")


def _sentence(value: Any) -> str:
    """Return a sentence, or those of a list of what is wrong (FastAPI)."""
    if not isinstance(value, list):
        return _short(value)
    wrong = [one for one in value if isinstance(one, Mapping)]
    return _short("; ".join(f"{_place(one.get('loc'))}: {_short(one.get('msg'))}" for one in wrong))


def _place(value: Any) -> str:
    return ".".join(map(str, value)) if isinstance(value, list) else _short(value)


def _short(value: Any) -> str:
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        return ""
    text = " ".join(legible(str(value)).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."
