"""One request to an endpoint and its answer, over the openai SDK: nothing retried, bounded in time and size.

The SDK's exceptions hold the headers of the request, the key among them, so that none leaves this module: a request
without an answer is a value. Each request has an event loop and a connection of its own, so that it can be ended at any
moment: a server that sends a byte now and then holds nobody longer than the deadline.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple

import httpx2
import openai

from installers.models.address import address_of, trusted
from miner.core.errors import Interrupted
from miner.core.settings import Endpoint

LARGEST = 8 * 1024 * 1024
"""Bytes of an answer: the longest replies have a few hundred thousand."""
_CONNECT_S = 20.0
_LOOK_S = 0.2
_ENDING_S = 1.0
_SHORTEST_KEY = 8
_NO_KEY = "none"
_UNSENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)


class Answer(NamedTuple):
    """What came back: any status, and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Silence(NamedTuple):
    """No whole answer came.

    Attributes:
        detail: what happened.
        sent: the request may have reached a model.
        begun: an answer had begun, and broke off or was too large.
    """

    detail: str
    sent: bool = True
    begun: bool = False


_Ask = Callable[[openai.AsyncOpenAI], Coroutine[Any, Any, Answer]]


class Wire:
    """Sends requests to one endpoint; threads share it.

    Args:
        endpoint: how long to wait, and whom to trust.
        environ: holds its base URL and its key, and names certificates where the settings do not.
        stopped: ends what is under way.

    Raises:
        ConfigError: the URL, the key or the file of certificates cannot be used.
    """

    def __init__(self, endpoint: Endpoint, environ: Mapping[str, str], stopped: threading.Event) -> None:
        self._url, self._key = address_of(endpoint, environ)
        self._headers = {} if self._key else {"Authorization": openai.omit}
        self._stopped = stopped
        self._trusted = trusted(endpoint, environ)
        for name in ("openai", "httpx2", "httpcore2"):  # at DEBUG they write whole requests
            logging.getLogger(name).setLevel(logging.WARNING)

    def redact(self, text: str) -> str:
        """Return a text without the key, which an endpoint may echo."""
        return text.replace(self._key, "[key]") if len(self._key) >= _SHORTEST_KEY else text

    def post(self, payload: dict[str, Any], seconds: float) -> Answer | Silence:
        """Ask for a chat completion, for so long altogether.

        Raises:
            Interrupted: the run is to end.
        """

        async def ask(sdk: openai.AsyncOpenAI) -> Answer:
            raw = await sdk.chat.completions.with_raw_response.create(**payload, extra_headers=self._headers)
            return _answer(raw.http_response)

        return self._exchange(ask, max(seconds, 0.0))

    def listed(self, seconds: float) -> Answer | Silence:
        """Ask for the list of models, for so long altogether.

        Raises:
            Interrupted: the run is to end.
        """

        async def ask(sdk: openai.AsyncOpenAI) -> Answer:
            raw = await sdk.models.with_raw_response.list(extra_headers=self._headers)
            return _answer(raw.http_response)

        return self._exchange(ask, max(seconds, 0.0))

    def _exchange(self, ask: _Ask, seconds: float) -> Answer | Silence:
        found: Answer | Silence
        made = False
        try:
            sdk = self._sdk(seconds)
            made = True
            found = asyncio.run(self._heard(sdk, ask, seconds))
        except Interrupted:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is: its message may show the login of a proxy
            hint = "" if made else ": is the address, or that of a proxy (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY), a URL?"
            found = Silence(f"{type(error).__name__}{hint}", sent=made)
        if isinstance(found, Silence):
            return found._replace(detail=self.redact(found.detail))
        return found._replace(headers={name.lower(): self.redact(value) for name, value in found.headers.items()})

    def _sdk(self, seconds: float) -> openai.AsyncOpenAI:
        timeout = httpx2.Timeout(None, connect=min(seconds, _CONNECT_S))  # all of it: `_within`
        http = _Client(verify=self._trusted, timeout=timeout)
        return openai.AsyncOpenAI(
            api_key=self._key or _NO_KEY, base_url=self._url, max_retries=0, timeout=timeout, http_client=http
        )

    async def _heard(self, sdk: openai.AsyncOpenAI, ask: _Ask, seconds: float) -> Answer | Silence:
        async with sdk:
            try:
                return await self._within(seconds, ask(sdk))
            except TimeoutError:
                return Silence(f"nothing, or not all of it, within {seconds:.1f} s")
            except openai.APIStatusError as error:
                return _answer(error.response)
            except openai.APIConnectionError as error:
                cause = error.__cause__ or error
                return Silence(_told(cause), sent=not isinstance(cause, _UNSENT))
            except (_Broken, openai.OpenAIError) as error:
                return Silence(_told(error), begun=True)

    async def _within(self, seconds: float, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Do something for so long, or until the run is to end."""
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
        end = loop.time() + seconds
        try:
            while not task.done():
                left = end - loop.time()
                if left <= 0:
                    raise TimeoutError
                if self._stopped.is_set():
                    raise Interrupted("stopped before a language model has answered")
                await asyncio.wait({task}, timeout=min(left, _LOOK_S))
        finally:
            task.cancel()
            await asyncio.wait({task}, timeout=_ENDING_S)
        return task.result()


class _Broken(Exception):
    """A body that broke off, cannot be decoded, or is too large."""


class _Client(httpx2.AsyncClient):
    """Reads bodies up to a bound, whatever their status; follows no redirect, so that no key gets elsewhere."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        request.headers["Accept-Encoding"] = "identity"
        response = await super().send(request, **{**options, "stream": True, "follow_redirects": False})
        try:
            body = await _read(response)
        finally:
            await response.aclose()
        kept = [(name, value) for name, value in response.headers.multi_items() if not name.startswith("content-")]
        return httpx2.Response(response.status_code, headers=kept, content=body, request=request)


async def _read(response: httpx2.Response) -> bytes:
    body = bytearray()
    try:
        async for part in response.aiter_bytes():
            body += part
            if len(body) > LARGEST:
                raise _Broken(f"an answer of more than {LARGEST} bytes")
    except httpx2.RequestError as error:
        raise _Broken(f"the answer broke off after {len(body)} bytes ({_told(error)})") from None
    return bytes(body)


def _answer(response: httpx2.Response) -> Answer:
    return Answer(response.status_code, dict(response.headers), response.content)


def _told(error: BaseException) -> str:
    """Return what happened; of what comes from elsewhere the type alone, since its message may hold anything."""
    if isinstance(error, _Broken):
        return str(error)
    known = isinstance(error, (httpx2.RequestError, openai.OpenAIError))
    return f"{type(error).__name__}: {error}".removesuffix(": ") if known else type(error).__name__
