"""One request to the forge and its answer, over PyGithub's requester: nothing retried, nothing lost, nothing leaked.

What the requester would do by itself is kept from it, because it cannot be bounded or loses something: waiting two
seconds and asking again on every 202, following a 301 without its query, decoding bodies with replacement characters,
and sharing one connection's request between threads. Its exceptions hold the headers of the request, the token among
them, so that none leaves this module: a request without an answer is a value.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from functools import cached_property
from http.client import HTTPException
from http.cookiejar import DefaultCookiePolicy
from importlib.metadata import version
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
import urllib3.exceptions
from github import Auth, Github
from github.Requester import HTTPRequestsConnectionClass, Requester, RequestsResponse
from pydantic import Field

from miner.core.errors import ConfigError
from miner.core.records import Record
from miner.core.settings import Github as Settings
from miner.crawlers.github.tokens import redact

_API_VERSION = "2022-11-28"
_ACCEPT = "application/vnd.github+json"
_USER_AGENT = f"swe-miner/{version('swe-miner')}"
_HOPS = 5
_REDIRECTS = frozenset({301, 302, 307, 308})
_PROCESSING = 202
_PORTS = {"http": 80, "https": 443}
_FAULTS = (requests.RequestException, urllib3.exceptions.HTTPError, HTTPException, OSError, ValueError, OverflowError)


class Answer(Record):
    """What came back for one request: `text` holds every byte of the body, as UTF-8 with surrogate escapes.

    Attributes:
        headers: by lower-case name.
        sent: requests that it took, redirects included.
        echoed: a token stood in it, and has been taken out.
    """

    status: int
    headers: dict[str, str]
    text: str = Field(repr=False)
    sent: int = 1
    echoed: bool = False

    @property
    def raw(self) -> bytes:
        """The body as it came, after its content encoding."""
        return self.text.encode("utf-8", "surrogateescape")

    @cached_property
    def body(self) -> Any:
        """The body's JSON value, None where it is none: HTML, half a text, bytes that are not UTF-8."""
        try:
            self.text.encode("utf-8")
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return None

    @property
    def message(self) -> str:
        """What the forge says beside an error, "" where it says nothing."""
        said = self.body.get("message") if isinstance(self.body, dict) else None
        return said if isinstance(said, str) else ""


class Silence(Record):
    """No answer came: the connection failed, broke, or took too long; `sent` may still have reached the forge."""

    detail: str
    timed_out: bool = False
    sent: int = 1


class Origin(Record):
    """Scheme, host and port: what a token may be sent to."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin:
        """Read the origin of a URL.

        Raises:
            ConfigError: it is no http(s) URL, or it holds a login.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            host = port = None
        if not host or not port or parts.scheme not in _PORTS or "@" in parts.netloc:
            raise ConfigError(
                "an address of the forge is no plain http(s) URL, or holds a login",
                next_step="check github.url, github.api_url and github.graphql_url; tokens come from the environment",
            )
        return cls(scheme=parts.scheme, host=f"[{host}]" if ":" in host else host, port=port)


def same_origin(url: str, other: str) -> bool:
    """Whether two URLs have one origin; what is no plain http(s) URL has none."""
    try:
        return Origin.of(url) == Origin.of(other)
    except ConfigError:
        return False


class Wire:
    """Sends requests with any of the tokens; safe to share between threads.

    Args:
        settings: where the forge is, and how long to wait for it.
        tokens: each gets a `Github` of its own in each thread, since its requester is not made for many.
    """

    def __init__(self, settings: Settings, tokens: tuple[str, ...]) -> None:
        self._settings = settings
        self._tokens = tokens
        self._origins = {url: Origin.of(url) for url in (settings.api_url, settings.graphql)}
        self._mine = threading.local()
        logging.getLogger("github.Requester").setLevel(logging.WARNING)  # at DEBUG it writes whole requests

    def post(self, token: int, value: Any) -> Answer | Silence:
        """Send a JSON value to the GraphQL endpoint with the token of this index."""
        return self._send(token, "POST", self._settings.graphql, self._settings.graphql, None, {}, value)

    def get(self, token: int, path: str, params: Mapping[str, str], headers: Mapping[str, str]) -> Answer | Silence:
        """Ask for a path below the REST root with the token of this index."""
        return self._send(token, "GET", self._settings.api_url, path, params, headers, None)

    def _send(
        self,
        token: int,
        verb: str,
        base: str,
        url: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str],
        value: Any,
    ) -> Answer | Silence:
        requester, connection = self._requester(token), self._connection(base)
        before = connection.sent
        try:
            status, received, text = requester.requestJson(
                verb, url, dict(params or {}), {"Accept": _ACCEPT, **headers}, value, connection
            )
        except (*_FAULTS, _NotFollowed) as error:
            detail, timed_out = redact(_told(error), self._tokens), _is_read_timeout(error)
            return Silence(detail=detail, timed_out=timed_out, sent=connection.sent - before)
        clean = redact(text, self._tokens)
        return Answer(
            status=status,
            headers={name: redact(value, self._tokens) for name, value in received.items()},
            text=clean,
            sent=connection.sent - before,
            echoed=clean != text,
        )

    def _requester(self, token: int) -> Requester:
        """Return this thread's requester of one token."""
        held: dict[int, Github] = self._mine.__dict__.setdefault("clients", {})
        if token not in held:
            held[token] = Github(
                auth=Auth.Token(self._tokens[token]),
                base_url=self._settings.api_url.rstrip("/"),
                timeout=max(1, round(self._settings.timeout_s)),
                user_agent=_USER_AGENT,
                retry=None,
                seconds_between_requests=None,
                seconds_between_writes=None,
                api_version=_API_VERSION,
            )
        return held[token].requester

    def _connection(self, base: str) -> _Connection:
        """Return this thread's connection to the REST root or the GraphQL endpoint."""
        held: dict[str, _Connection] = self._mine.__dict__.setdefault("connections", {})
        if base not in held:
            bundle = self._settings.ca_bundle
            verify = True if bundle is None else str(bundle)
            held[base] = _Connection(self._origins[base], self._settings.timeout_s, verify, self._tokens)
        return held[base]


class _NotFollowed(Exception):
    """A redirect that leads elsewhere, or nowhere; or an answer that is still being made."""


class _Response(RequestsResponse):
    """An answer whose body is read without loss."""

    def read(self) -> str:
        return self.response.content.decode("utf-8", "surrogateescape")


class _Connection(HTTPRequestsConnectionClass):
    """One thread's connection to one origin; follows redirects there, with the same verb, body and query."""

    def __init__(self, origin: Origin, timeout_s: float, verify: bool | str, tokens: tuple[str, ...]) -> None:
        super().__init__(origin.host, origin.port, retry=0, verify=verify)
        self.sent = 0
        self._origin = origin
        self._timeout_s = timeout_s
        self._tokens = tokens
        self.session.mount("https://", self.adapter)
        self.session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    def getresponse(self) -> RequestsResponse:
        root = f"{self._origin.scheme}://{self._origin.host}:{self._origin.port}"
        url = f"{root}{self.url}"
        for _ in range(_HOPS):
            if redact(url, self._tokens) != url:
                raise _NotFollowed("redirected to an address that holds a token")
            if not same_origin(url, root):
                raise _NotFollowed(f"redirected to {urlsplit(url).hostname}, and no token is sent to another server")
            self.sent += 1
            response = self.session.request(
                self.verb,
                url,
                headers=self.headers,
                data=self.input,
                timeout=self._timeout_s,
                verify=self.verify,
                allow_redirects=False,
            )
            if response.status_code == _PROCESSING:
                raise _NotFollowed("status 202: the answer is still being made")
            if response.status_code not in _REDIRECTS or "location" not in response.headers:
                return _Response(response)
            url = urljoin(url, response.headers["location"])
        raise _NotFollowed(f"more than {_HOPS} redirects")


def _is_read_timeout(error: Exception) -> bool:
    """Whether the forge was reached and did not answer in time; requests wraps what urllib3 says of a body."""
    inside = error.args[0] if error.args else None
    return isinstance(error, requests.ReadTimeout) or isinstance(inside, urllib3.exceptions.ReadTimeoutError)


def _told(error: Exception) -> str:
    """Say what went wrong: the kind of the outermost error, the words of the innermost."""
    inner: BaseException = error
    while (deeper := inner.__cause__ or inner.__context__) is not None:
        inner = deeper
    words = str(inner)
    return words if isinstance(error, _NotFollowed) else f"{type(error).__name__}: {words}".removesuffix(": ")
