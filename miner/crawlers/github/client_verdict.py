"""What an answer of the forge means: something about its subject, or something that is wrong. Pure.

Sources: the pages on limits (see `miner.crawlers.github.limits`),
https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api, and error types that client libraries
have recorded (`RATE_LIMIT` beside `RATE_LIMITED`, `RESOURCE_LIMITS_EXCEEDED` and `MAX_NODE_LIMIT_EXCEEDED`).
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from pydantic import Field

from miner.core.records import Record
from miner.crawlers.github.client_wire import Answer, Silence
from miner.crawlers.github.limits import retry_after_s

_OK, _NOT_MODIFIED, _UNAUTHORISED, _FORBIDDEN, _TOO_MANY, _SERVER_ERROR = 200, 304, 401, 403, 429, 500
_GONE = frozenset({404, 410, 451})
_TIMEOUTS = frozenset({502, 503, 504})
_SAID = 300

_SECONDARY = re.compile(r"secondary rate|secondary-rate|abuse|submitted too quickly", re.IGNORECASE)
_PRIMARY = re.compile(r"rate limit", re.IGNORECASE)
_TIMED_OUT = re.compile(
    r"something went wrong while executing your query|couldn't respond to your request in time|timed?\s?out|timeout",
    re.IGNORECASE,
)
_RATE_TYPES = frozenset({"RATE_LIMITED", "RATE_LIMIT"})
_TOO_LARGE_TYPES = frozenset({"RESOURCE_LIMITS_EXCEEDED", "MAX_NODE_LIMIT_EXCEEDED"})
_OF_SUBJECT = frozenset({"NOT_FOUND", "FORBIDDEN"})


class Kind(StrEnum):
    """What is to be done with an answer."""

    VALUE = "value"
    PASSING = "passing"
    HEAVY = "heavy"
    TOO_LARGE = "too large"
    PRIMARY = "primary limit"
    SECONDARY = "secondary limit"
    LOGIN = "token refused"
    SCOPE = "token lacks a permission"
    REFUSED = "request refused"


class Verdict(Record):
    """What an answer means.

    Attributes:
        detail: what was seen, for people.
        wait_s: how long the forge asks to wait, None where it does not say.
        data: a value's JSON.
        errors: of a GraphQL value: what it says about parts of it.
    """

    kind: Kind
    detail: str = ""
    wait_s: float | None = None
    data: Any = Field(default=None, repr=False)
    errors: tuple[dict[str, Any], ...] = ()


def judge_rest(answer: Answer | Silence) -> Verdict:
    """Judge the answer to a GET."""
    if isinstance(answer, Silence):
        return Verdict(kind=Kind.PASSING, detail=answer.detail)
    known = isinstance(answer.body, dict)
    if answer.status == _NOT_MODIFIED or (answer.status == _OK and isinstance(answer.body, dict | list)):
        return Verdict(kind=Kind.VALUE, data=answer.body)
    if known and (answer.status in _GONE or (answer.status == _FORBIDDEN and "block" in answer.body)):
        return Verdict(kind=Kind.VALUE, data=answer.body)
    return _fault(answer)


def judge_graphql(answer: Answer | Silence) -> Verdict:
    """Judge the answer to a query."""
    if isinstance(answer, Silence):
        return Verdict(kind=Kind.HEAVY if answer.timed_out else Kind.PASSING, detail=answer.detail)
    if answer.status != _OK or not isinstance(answer.body, dict):
        fault = _fault(answer)
        if fault.kind is Kind.PASSING and (answer.status in _TIMEOUTS or _TIMED_OUT.search(answer.message)):
            return fault.model_copy(update={"kind": Kind.HEAVY})
        return fault
    errors = answer.body.get("errors") or []
    if not isinstance(errors, list) or not all(isinstance(error, dict) for error in errors):
        return Verdict(kind=Kind.PASSING, detail=f"errors of an unknown shape: {_seen(answer)}")
    data = answer.body.get("data")
    others = tuple(error for error in errors if not _is_of_subject(error))
    if isinstance(data, dict) and not others:
        return Verdict(kind=Kind.VALUE, data=data, errors=tuple(errors))
    return _of_errors(answer, others)


def _is_of_subject(error: dict[str, Any]) -> bool:
    return str(error.get("type")) in _OF_SUBJECT and bool(error.get("path"))


def _of_errors(answer: Answer, errors: tuple[dict[str, Any], ...]) -> Verdict:
    """Judge what stands in a 200 that is no value; the worst of its errors decides."""
    types = {str(error.get("type")) for error in errors}
    codes = {str(error.get("code")) for error in errors}
    words = " ".join([answer.message, *(str(error.get("message", "")) for error in errors)])
    seen = _seen(answer)
    if _SECONDARY.search(words):
        return Verdict(kind=Kind.SECONDARY, detail=seen, wait_s=retry_after_s(answer.headers))
    if types & _RATE_TYPES or "graphql_rate_limit" in codes or (not types - {"None"} and _PRIMARY.search(words)):
        return Verdict(kind=Kind.PRIMARY, detail=seen, wait_s=retry_after_s(answer.headers))
    if "INSUFFICIENT_SCOPES" in types:
        return Verdict(kind=Kind.SCOPE, detail=_scopes(answer))
    if types & _TOO_LARGE_TYPES:
        return Verdict(kind=Kind.TOO_LARGE, detail=seen)
    if _TIMED_OUT.search(words):
        return Verdict(kind=Kind.HEAVY, detail=seen)
    if types - {"None"} or any(isinstance(error.get("extensions"), dict) for error in errors):
        return Verdict(kind=Kind.REFUSED, detail=seen)
    return Verdict(kind=Kind.PASSING, detail=seen)


def _fault(answer: Answer) -> Verdict:
    """Judge an answer that says nothing about its subject; what is no JSON object did not come from the forge's API."""
    seen = _seen(answer)
    wait_s = retry_after_s(answer.headers)
    if answer.status in (_FORBIDDEN, _TOO_MANY):
        return _of_limit(answer, seen, wait_s)
    if answer.status >= _SERVER_ERROR or not isinstance(answer.body, dict):
        return Verdict(kind=Kind.PASSING, detail=seen, wait_s=wait_s)
    if answer.status == _UNAUTHORISED:
        return Verdict(kind=Kind.LOGIN, detail=seen)
    return Verdict(kind=Kind.REFUSED if answer.status > _NOT_MODIFIED else Kind.PASSING, detail=seen)


def _of_limit(answer: Answer, seen: str, wait_s: float | None) -> Verdict:
    """Tell a primary limit, a secondary limit and a missing permission apart, which share two status codes."""
    words = f"{answer.message} {answer.text[:_SAID] if not isinstance(answer.body, dict) else answer.body}"
    spent = answer.headers.get("x-ratelimit-remaining") == "0"
    if _SECONDARY.search(words):
        return Verdict(kind=Kind.SECONDARY, detail=seen, wait_s=wait_s)
    if spent:
        return Verdict(kind=Kind.PRIMARY, detail=seen, wait_s=wait_s)
    if wait_s is not None or answer.status == _TOO_MANY or _PRIMARY.search(words):
        return Verdict(kind=Kind.SECONDARY, detail=seen, wait_s=wait_s)
    if isinstance(answer.body, dict):
        return Verdict(kind=Kind.SCOPE, detail=_scopes(answer))
    return Verdict(kind=Kind.PASSING, detail=seen)


def _scopes(answer: Answer) -> str:
    """Say what a token would need, as the forge's headers name it, and what the forge says itself."""
    names = {
        "x-accepted-oauth-scopes": "scopes that would do",
        "x-accepted-github-permissions": "permissions that would do",
        "x-oauth-scopes": "scopes of the token",
        "x-github-sso": "single sign-on",
    }
    needs = [f"{words}: {answer.headers[name]}" for name, words in names.items() if answer.headers.get(name)]
    return "; ".join([_seen(answer), *needs])


def _seen(answer: Answer) -> str:
    """Say what an answer looks like: its status, and what it says or the beginning of its body."""
    body = answer.body if isinstance(answer.body, dict) else {}
    errors = body["errors"][:3] if isinstance(body.get("errors"), list) else []
    parts = [f"{error.get('type') or 'error'}: {error.get('message')}" for error in errors if isinstance(error, dict)]
    said = answer.message or "; ".join(parts)
    kind = answer.headers.get("content-type", "no content type").partition(";")[0]
    words = " ".join((said or answer.text[: 10 * _SAID]).split())
    return f"status {answer.status}, {kind}: {words if len(words) <= _SAID else words[:_SAID] + ' ...'}"
