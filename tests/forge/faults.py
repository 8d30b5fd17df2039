"""Misbehaviour on demand. Every fault is a function of a call; `call.proceed()` gives what would have been answered.

`behaviours.toml` says where each of them is documented or was recorded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from forge.exchange import Call, Reply, encode, matches, reply_json

DOCS = "https://docs.github.com"
RATE_PAGE = f"{DOCS}/rest/overview/resources-in-the-rest-api#rate-limiting"
SECONDARY_PAGE = f"{DOCS}/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
WRONG = "Something went wrong while executing your query."
REPORT = "Please include `C0FE:1A2B:3C4D5E:6F7081:68160A2B` when reporting this issue."
PAGE = b"<!DOCTYPE html>\n<html><head><title>Unicorn! &middot; GitHub</title></head><body>Error</body></html>\n"


def primary(call: Call, *, status: int = 403, reset_s: float = 60) -> Reply:
    """The primary limit is used up."""
    return reply_json(
        status,
        {"message": "API rate limit exceeded for user ID 1001.", "documentation_url": RATE_PAGE},
        x_ratelimit_remaining="0",
        x_ratelimit_reset=str(int(time.time() + reset_s)),
    )


def rate_limited(call: Call, *, reset_s: float = 60, kind: str = "RATE_LIMITED") -> Reply:
    """The primary limit of GraphQL is used up: the status stays 200. `kind` was also seen as "RATE_LIMIT"."""
    return reply_json(
        200,
        {"errors": [{"type": kind, "message": "API rate limit exceeded for user ID 1001."}]},
        x_ratelimit_remaining="0",
        x_ratelimit_reset=str(int(time.time() + reset_s)),
    )


def secondary(call: Call, *, status: int = 403, retry_after: int | None = None) -> Reply:
    """A secondary limit is reached, with or without the header that says how long to wait."""
    headers = {} if retry_after is None else {"retry_after": str(retry_after)}
    message = (
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach out to "
        "GitHub Support for help, please include the request ID C0FE:1A2B:3C4D5E:6F7081:68160A2B."
    )
    return reply_json(status, {"message": message, "documentation_url": SECONDARY_PAGE}, **headers)


def bad_credentials(call: Call) -> Reply:
    """The token is wrong, expired or revoked."""
    return reply_json(401, {"message": "Bad credentials", "documentation_url": f"{DOCS}/rest", "status": "401"})


def no_token(call: Call) -> Reply:
    """GraphQL is for those who say who they are."""
    return reply_json(401, {"message": "Requires authentication", "documentation_url": f"{DOCS}/rest", "status": "401"})


def under_scoped(call: Call) -> Reply:
    """The token lacks a scope or permission."""
    if call.resource == "graphql":
        message = (
            "Your token has not been granted the required scopes to execute this query. The 'id' field requires one of "
            "the following scopes: ['read:org'], but your token has only been granted the: [''] scopes."
        )
        return reply_json(200, {"errors": [{"type": "INSUFFICIENT_SCOPES", "message": message}]})
    message = "Resource not accessible by personal access token"
    return reply_json(
        403,
        {"message": message, "documentation_url": f"{DOCS}/rest", "status": "403"},
        x_accepted_github_permissions="metadata=read",
    )


def sso(call: Call) -> Reply:
    """The organisation asks for a token that was authorised for single sign-on: GraphQL leaves its repositories out."""
    message = (
        "Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this "
        "organization."
    )
    header = "required; url=https://forge.example/orgs/octo/sso?authorization_request=A1B2"
    if call.resource == "graphql":
        reply = call.proceed()
        value = reply.value
        hidden = [name for name, inside in (value.get("data") or {}).items() if inside and name != "rateLimit"]
        value["errors"] = [
            {"type": "FORBIDDEN", "path": [name], "extensions": {"saml_failure": True}, "message": message}
            for name in hidden
        ]
        value["data"].update(dict.fromkeys(hidden))
        reply.headers["x-github-sso"] = header
        return _with_body(reply, value)
    page = f"{DOCS}/articles/authenticating-to-a-github-organization-with-saml-single-sign-on/"
    return reply_json(403, {"message": message, "documentation_url": page}, x_github_sso=header)


def not_found(call: Call) -> Reply:
    """There is no such thing, or the token may not see it."""
    return reply_json(404, {"message": "Not Found", "documentation_url": f"{DOCS}/rest", "status": "404"})


def gone(call: Call) -> Reply:
    """It was deleted, or its feature was turned off."""
    return reply_json(410, {"message": "This issue was deleted", "documentation_url": f"{DOCS}/rest", "status": "410"})


def blocked(call: Call) -> Reply:
    """It may not be shown, for legal reasons."""
    return reply_json(451, blocked_value("dmca"))


def blocked_value(reason: str) -> dict[str, Any]:
    """Return the body of an answer 451."""
    block = {"reason": reason, "created_at": "2024-05-01T00:00:00Z", "html_url": "https://github.com/github/dmca"}
    return {"message": "Repository access blocked", "block": block}


def server_error(call: Call, *, status: int = 500) -> Reply:
    """The forge fails: JSON where its application did, a page where the proxy before it did."""
    if status in (502, 503):
        return Reply(status, PAGE, {"content-type": "text/html; charset=utf-8"})
    message = (
        "Server Error"
        if status == 500
        else (
            "We couldn't respond to your request in time. Sorry about that. Please try resubmitting your request and "
            "contact us if the problem persists."
        )
    )
    return reply_json(status, {"message": message})


def heavy(call: Call, *, nodes: int = 5000) -> Reply:
    """A page that may return more nodes than this is not finished in time."""
    if call.nodes <= nodes:
        return call.proceed()
    error = {"message": f"{WRONG} This may be the result of a timeout, or it could be a GitHub bug. {REPORT}"}
    return reply_json(502, {"data": None, "errors": [error]})


def went_wrong(call: Call, *, timeout: bool = False) -> Reply:
    """A query fails inside an answer with status 200."""
    why = " This may be the result of a timeout, or it could be a GitHub bug." if timeout else ""
    return reply_json(200, {"data": None, "errors": [{"message": f"{WRONG}{why} {REPORT}"}]})


def resource_limits(call: Call, *, kept: int = 0, nodes: int = 0) -> Reply:
    """A query reached the limits of resources: nodes after the first `kept` of a list are null, each with its error."""
    reply = call.proceed()
    value = reply.value
    if call.nodes <= nodes:
        return reply
    lost = list(_lost(value.get("data"), kept, ()))
    message = "Resource limits for this query exceeded."
    value["errors"] = [
        {"type": "RESOURCE_LIMITS_EXCEEDED", "path": list(path), "message": message} for path in lost or [()]
    ]
    return _with_body(reply, value)


def partly(call: Call, *, path: tuple[str | int, ...], kind: str = "NOT_FOUND", message: str = "") -> Reply:
    """One field is null and has an error, beside the data of the others."""
    reply = call.proceed()
    value = reply.value
    at = value["data"]
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = None
    error = {"type": kind, "path": list(path), "message": message or f"Could not resolve {path[-1]}."}
    value.setdefault("errors", []).append(error)
    return _with_body(reply, value)


def null_users(call: Call) -> Reply:
    """Every account was deleted."""
    return _nulled(call.proceed(), {"author", "user", "actor", "committer"})


def null_head_repository(call: Call) -> Reply:
    """Every head repository was deleted."""
    reply = _nulled(call.proceed(), {"headRepository"})
    value = reply.value
    for pull in value if isinstance(value, list) else [value]:
        if isinstance(pull, dict) and isinstance(pull.get("head"), dict):
            pull["head"]["repo"] = None
    return _with_body(reply, value)


def null_lists(call: Call) -> Reply:
    """Every list of GraphQL that the schema allows to be null is null."""
    names = {"labels", "files", "userContentEdits", "closingIssuesReferences", "languages"}
    return _nulled(call.proceed(), names) if call.resource == "graphql" else call.proceed()


def html(call: Call) -> Reply:
    """A page of a proxy, with status 200."""
    return Reply(200, PAGE, {"content-type": "text/html; charset=utf-8"})


def truncated(call: Call) -> Reply:
    """The connection ends in the middle of the body."""
    reply = call.proceed()
    reply.wire = "cut"
    return reply


def half(call: Call) -> Reply:
    """Half of the JSON text, announced as if it were all of it."""
    reply = call.proceed()
    reply.body = reply.body[: len(reply.body) // 2]
    return reply


def slow(call: Call, *, seconds: float = 5) -> Reply:
    """The answer takes long."""
    reply = call.proceed()
    reply.delay_s = seconds
    return reply


def closed(call: Call) -> Reply:
    """The connection is closed without an answer."""
    return Reply(0, b"", wire="closed")


def reset(call: Call) -> Reply:
    """The connection breaks."""
    return Reply(0, b"", wire="reset")


FAULTS: dict[str, Callable[..., Reply]] = {
    "primary": primary,
    "rate-limited": rate_limited,
    "secondary": secondary,
    "bad-credentials": bad_credentials,
    "no-token": no_token,
    "under-scoped": under_scoped,
    "sso": sso,
    "not-found": not_found,
    "gone": gone,
    "blocked": blocked,
    "server-error": server_error,
    "heavy": heavy,
    "went-wrong": went_wrong,
    "resource-limits": resource_limits,
    "partial": partly,
    "null-users": null_users,
    "null-head-repository": null_head_repository,
    "null-lists": null_lists,
    "html": html,
    "truncated": truncated,
    "half": half,
    "slow": slow,
    "closed": closed,
    "reset": reset,
}


@dataclass
class _Rule:
    where: str
    fault: str
    times: int
    after: int
    about: str | None
    token: int | None
    options: dict[str, Any] = field(default_factory=dict)

    def meets(self, call: Call) -> bool:
        return (
            matches(self.where, call.document, call.path, call.resource)
            and (self.about is None or self.about.lower() in call.about)
            and (self.token is None or self.token == call.token)
        )


@dataclass
class _Hook:
    where: str
    after: int
    action: Callable[[], Any]


class Faults:
    """Rules in the order in which they were made: the first that meets a call and is not used up is taken."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._hooks: list[_Hook] = []
        self._lock = threading.Lock()

    def fail(
        self,
        where: str,
        fault: str,
        *,
        times: int = 1_000_000_000,
        after: int = 0,
        about: str | None = None,
        token: int | None = None,
        **options: Any,
    ) -> None:
        """Misbehave for the next `times` requests that are meant, after the first `after` of them.

        Args:
            where: "" (any API request), "rest", "graphql", "git", the name of a document, or part of a path ("/pulls").
            fault: a key of `FAULTS`; `options` are its own.
            about: only requests about this repository.
            token: only requests with the token of this number.
        """
        if fault not in FAULTS:
            raise ValueError(f"{fault} is none of {', '.join(FAULTS)}")
        with self._lock:
            self._rules.append(_Rule(where, fault, times, after, about, token, options))

    def after(self, where: str, count: int, action: Callable[[], Any]) -> None:
        """Do something once, right after the `count`-th of these requests from now on was answered."""
        with self._lock:
            self._hooks.append(_Hook(where, count, action))

    def heal(self) -> None:
        """Forget all rules and hooks."""
        with self._lock:
            self._rules.clear()
            self._hooks.clear()

    def rule_of(self, call: Call) -> tuple[str, Callable[[Call], Reply]] | None:
        """Take the rule of a call: the name of its fault, and what answers."""
        with self._lock:
            for rule in self._rules:
                if not rule.meets(call) or rule.times <= 0:
                    continue
                if rule.after > 0:
                    rule.after -= 1
                    continue
                rule.times -= 1
                return rule.fault, partial(FAULTS[rule.fault], **rule.options)
        return None

    def answered(self, call: Call) -> None:
        """Run the hooks whose time has come."""
        due: list[_Hook] = []
        with self._lock:
            for hook in self._hooks:
                if matches(hook.where, call.document, call.path, call.resource):
                    hook.after -= 1
                    if hook.after == 0:
                        due.append(hook)
        for hook in due:
            hook.action()


def _nulled(reply: Reply, names: Iterable[str]) -> Reply:
    wanted = set(names)

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: None if key in wanted else walk(inside) for key, inside in value.items()}
        return [walk(inside) for inside in value] if isinstance(value, list) else value

    return _with_body(reply, walk(reply.value))


def _lost(value: Any, kept: int, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Put null in the place of all but the first nodes of the outermost lists; return the path of each."""
    if isinstance(value, dict):
        for name, inside in value.items():
            yield from _lost(inside, kept, (*path, name))
    elif isinstance(value, list):
        for index in range(kept, len(value)):
            value[index] = None
            yield (*path, index)


def _with_body(reply: Reply, value: Any) -> Reply:
    reply.body = encode(value)
    return reply
