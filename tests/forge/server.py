"""A GitHub-shaped server on loopback: GraphQL, REST, git and the pages that collectors read.

    with Forge(world) as forge:
        forge.fail("pulls", "server-error", times=2, status=502)
        client(f"{forge.url}", f"{forge.url}/api/v3", f"{forge.url}/api/graphql", token="any text")
        assert forge.log.of("pulls", status=200)

Tokens are numbered in the order in which they are first seen; nothing keeps a token itself.
"""

from __future__ import annotations

import base64
import hashlib
import re
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import cast

from forge import rest
from forge.endpoint import Endpoint
from forge.exchange import Call, Entry, Log, Reply, reply_json
from forge.faults import Faults, bad_credentials, no_token, rate_limited, secondary
from forge.githttp import serve_git
from forge.handler import Http, handler_of
from forge.limits import Budgets, Limits, Resource
from forge.world import World

GRAPHQL = ("/api/graphql", "/graphql")
_GIT = re.compile(r"/([^/]+)/([^/]+?)(?:\.git)?(/info/refs|/git-upload-pack|/git-receive-pack|/HEAD|/objects/.*)")
_PAGE = re.compile(r"/([^/]+)/([^/]+)/pull/(\d+)\.(diff|patch)")
_REPOSITORY = re.compile(r"/repos/([^/]+/[^/]+)")
_QUALIFIER = re.compile(r"repo(?::|%3A)([\w.-]+)(?:/|%2F)([\w.-]+)")


class Forge:
    """The server; a context manager.

    Args:
        world: what it shows.
        limits: of each token.
        clock: seconds since the epoch; a test may let time pass.
        tokens: those that are accepted; None: any.
        port: 0 for any free one.

    Attributes:
        log: what was asked.
        mistakes: errors of the forge itself; the first of them is raised when it is left.
    """

    def __init__(
        self,
        world: World,
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
        tokens: tuple[str, ...] | None = None,
        port: int = 0,
    ) -> None:
        self.world = world
        self.log = Log()
        self.mistakes: list[Exception] = []
        self.faults = Faults()
        self.fail, self.after, self.heal = self.faults.fail, self.faults.after, self.faults.heal
        self.budgets = Budgets(limits or Limits(), clock)
        self._endpoint = Endpoint(world)
        self._accepted = None if tokens is None else {_digest(token) for token in tokens}
        self._numbers: dict[bytes, int] = {}
        self._lock = threading.Lock()
        self._http = Http(("127.0.0.1", port), handler_of(self.handle))

    @property
    def url(self) -> str:
        """What `--forge-url` is given."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def api_url(self) -> str:
        return f"{self.url}{rest.ROOT}"

    @property
    def graphql_url(self) -> str:
        return f"{self.url}{GRAPHQL[0]}"

    def start(self) -> Forge:
        self.world.url = self.url
        self._http.start()
        return self

    def stop(self) -> None:
        self._http.stop()

    def __enter__(self) -> Forge:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self.mistakes and error is None:
            raise self.mistakes[0]

    def exhaust(self, resource: Resource = "graphql", *, token: int = 1, reset_s: float = 60) -> None:
        """Use up what a token has, until so many seconds from now."""
        self.budgets.exhaust(token, resource, reset_s)

    def handle(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer one request; a mistake of the forge itself is kept, and answered with 500."""
        try:
            return self._handle(method, path, query, headers, body)
        except Exception as error:  # noqa: BLE001 - a test shall see it, wherever it comes from
            self.mistakes.append(error)
            return reply_json(500, {"message": "the forge has a mistake"})

    def _handle(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Reply:
        given = headers.get("authorization", "")
        call = Call(method, path, query, token=self._number(given))
        self._route(call, headers, body)
        rule = self.faults.rule_of(call)
        if rule is None:
            fault, reply = "", self._guarded(call, given)
        else:
            fault, reply = rule[0], rule[1](call)
        if call.resource not in ("git", "web"):
            self._finish(call, reply, headers)
        self.log.entries.append(
            Entry(
                method,
                path,
                query,
                call.document,
                call.token,
                reply.status,
                call.spent,
                call.nodes,
                call.resource,
                len(reply.body),
                fault,
                dict(call.variables),
            )
        )
        self.faults.answered(call)
        return reply

    def _route(self, call: Call, headers: Mapping[str, str], body: bytes) -> None:
        """Find out what a call is about and what would answer it."""
        if call.path in GRAPHQL:
            self._route_graphql(call, body)
        elif call.path.startswith(rest.ROOT):
            self._route_rest(call, headers)
        elif match := _GIT.fullmatch(call.path):
            call.resource, call.about = "git", frozenset({f"{match[1]}/{match[2]}".lower()})
            call.proceed = partial(self._git, call, match, headers, body)
        elif match := _PAGE.fullmatch(call.path):
            call.resource, call.about = "web", frozenset({f"{match[1]}/{match[2]}".lower()})
            call.proceed = partial(self._diff_page, match)
        else:
            call.proceed = rest.missing

    def _route_graphql(self, call: Call, body: bytes) -> None:
        call.resource = "graphql"
        query = self._endpoint.read(body)
        if query is None or call.method != "POST":
            call.proceed = lambda: reply_json(400, {"message": "Problems parsing JSON"})
            return
        cost = self._endpoint.cost(query)
        call.document, call.variables, call.about = query.name, query.variables, query.about
        call.nodes, call.points = cost.nodes, cost.points

        def proceed() -> Reply:
            if not (query.errors or cost.errors):
                self._spend(call)
            return self._endpoint.answer(query, cost, call, self.budgets)

        call.proceed = proceed

    def _route_rest(self, call: Call, headers: Mapping[str, str]) -> None:
        path = call.path.removeprefix(rest.ROOT)
        call.resource = "search" if path.startswith("/search/") else "core"
        call.points = 0 if path == "/rate_limit" else 1
        call.about = frozenset(name.lower() for name in _REPOSITORY.findall(path))
        call.about |= {f"{owner}/{name}".lower() for owner, name in _QUALIFIER.findall(call.query)}

        def proceed() -> Reply:
            reply = rest.answer(self.world, path, call.query, headers.get("accept", ""), self.budgets, call.token)
            if reply.status == 200:
                _conditional(reply, headers.get("if-none-match", ""))
            if reply.status != 304:
                self._spend(call)
            return reply

        call.proceed = proceed

    def _spend(self, call: Call) -> None:
        self.budgets.spend(call.token, cast(Resource, call.resource), call.points)
        call.spent += call.points

    def _guarded(self, call: Call, given: str) -> Reply:
        """Answer a call that no fault meets, if its token and the limits let it."""
        if call.resource in ("git", "web"):
            return call.proceed()
        resource = cast(Resource, call.resource)
        if self._refuses(given) or (resource == "graphql" and call.token == 0):
            return bad_credentials(call) if given else no_token(call)
        try:
            if not self.budgets.enter(call.token, resource):
                return secondary(call, retry_after=60)
            if call.points > 0 and self.budgets.window(call.token, resource).remaining == 0:
                return self._exceeded(call, resource)
            return call.proceed()
        finally:
            self.budgets.leave(call.token)

    def _exceeded(self, call: Call, resource: Resource) -> Reply:
        if resource == "graphql":
            reply = rate_limited(call)
        else:
            message = f"API rate limit exceeded for user ID {1000 + call.token}."
            reply = reply_json(403, {"message": message, "documentation_url": f"{rest.DOCS}/rate-limits"})
        reply.headers = {name: text for name, text in reply.headers.items() if not name.startswith("x-ratelimit")}
        return reply

    def _finish(self, call: Call, reply: Reply, headers: Mapping[str, str]) -> None:
        """Add the headers that every answer of the API has."""
        resource = cast(Resource, call.resource)
        window = self.budgets.window(call.token, resource)
        stated = {
            "x-ratelimit-limit": str(window.limit),
            "x-ratelimit-remaining": str(window.remaining),
            "x-ratelimit-used": str(window.used),
            "x-ratelimit-reset": str(int(-(-window.reset // 1))),
            "x-ratelimit-resource": resource,
            "x-github-request-id": "C0FE:1A2B:3C4D5E:6F7081:68160A2B",
            "x-github-media-type": "github.v3; format=json",
        }
        if call.token:
            stated |= {"x-oauth-scopes": "public_repo", "x-accepted-oauth-scopes": "repo"}
        reply.headers = {**stated, **reply.headers}

    def _git(self, call: Call, match: re.Match[str], headers: Mapping[str, str], body: bytes) -> Reply:
        repo = self.world.find(f"{match[1]}/{match[2]}")
        if repo is None or repo.path is None:
            return Reply(404, b"Not Found", {"content-type": "text/plain"})
        if repo.blocked is not None:
            return Reply(403, b"Repository unavailable due to DMCA takedown.\n", {"content-type": "text/plain"})
        if repo.full_name.lower() != f"{match[1]}/{match[2]}".lower():
            query = f"?{call.query}" if call.query else ""
            return Reply(301, b"", {"location": f"{self.url}/{repo.full_name}.git{match[3]}{query}"})
        return serve_git(repo.path, match[3], call.method, call.query, headers, body)

    def _diff_page(self, match: re.Match[str]) -> Reply:
        repo = self.world.find(f"{match[1]}/{match[2]}")
        pull = None if repo is None or repo.blocked is not None else repo.pulls.get(int(match[3]))
        if pull is None:
            return Reply(404, b"Not Found", {"content-type": "text/plain"})
        return Reply(200, rest.diff_text(pull, match[4]), {"content-type": "text/plain; charset=utf-8"})

    def _refuses(self, given: str) -> bool:
        return bool(given) and self._accepted is not None and _digest(_token(given)) not in self._accepted

    def _number(self, given: str) -> int:
        if not given:
            return 0
        with self._lock:
            return self._numbers.setdefault(_digest(_token(given)), len(self._numbers) + 1)


def _token(given: str) -> str:
    """Return the token of a header: behind "Bearer" or "token", or the password that git gives."""
    kind, _, value = given.partition(" ")
    if kind.lower() == "basic":
        return base64.b64decode(value).decode(errors="replace").partition(":")[2]
    return value


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _conditional(reply: Reply, known: str) -> None:
    """https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api#use-conditional-requests-if-appropriate"""
    etag = f'"{hashlib.sha256(reply.body).hexdigest()}"'
    reply.headers["etag"] = f"W/{etag}"
    if etag in known:
        reply.status, reply.body = 304, b""
