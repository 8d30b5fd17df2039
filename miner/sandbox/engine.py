"""The connection to the container engine, and what its errors mean: faults of the infrastructure, never of a task."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import docker
import requests
import urllib3
from docker.errors import APIError, DockerException, NotFound

from miner.core.errors import DiskFull, DockerUnavailable, InfrastructureFault
from miner.core.reasons import Reason
from miner.core.settings import Docker

_TIMEOUT_S = 120
_POOL = 32
_REMOVAL_S = 60.0
_BETWEEN_TRIES_S = 0.05

_ENGINE_ERRORS = (DockerException, requests.RequestException, urllib3.exceptions.HTTPError, OSError)
_GONE = (
    requests.ConnectionError,
    requests.exceptions.ChunkedEncodingError,
    urllib3.exceptions.ProtocolError,
    ConnectionError,
)


def connect(settings: Docker) -> docker.DockerClient:
    """Return a client of the configured engine, which has answered a ping; the caller closes it.

    Raises:
        DockerUnavailable: nothing answers at the configured or default address, or not like an engine.
    """
    try:
        if settings.host is None:
            client = docker.from_env(timeout=_TIMEOUT_S, max_pool_size=_POOL)
        else:
            client = docker.DockerClient(
                base_url=settings.host, version="auto", timeout=_TIMEOUT_S, max_pool_size=_POOL
            )
    except _ENGINE_ERRORS as error:
        raise _unavailable(settings, error) from error
    try:
        client.ping()
    except _ENGINE_ERRORS as error:
        client.close()
        raise _unavailable(settings, error) from error
    return client


def _unavailable(settings: Docker, error: BaseException) -> DockerUnavailable:
    where = settings.host or "DOCKER_HOST or the default socket"
    return DockerUnavailable(f"no container engine answers at {where}: {error}")


def translate(error: Exception) -> InfrastructureFault:
    """Return what an error of the docker SDK, of its transport or of a local file means for the run."""
    if isinstance(error, InfrastructureFault):
        return error
    text = " | ".join(dict.fromkeys(str(link) for link in _chain(error)))
    if any(getattr(link, "errno", None) == errno.ENOSPC for link in _chain(error)) or "no space left on device" in text:
        return DiskFull(f"no space left on device: {text}")
    if "cannot allocate memory" in text:
        return InfrastructureFault(f"the host is out of memory: {text}", reason=Reason.HOST_OUT_OF_MEMORY)
    if isinstance(error, _GONE):
        return DockerUnavailable(f"the container engine is gone: {text}")
    if type(error) is DockerException:  # the SDK's own wrapper of "cannot connect"
        return DockerUnavailable(f"the container engine does not answer: {text}")
    return InfrastructureFault(
        f"the container engine refused or broke an operation: {text}", reason=Reason.DOCKER_ERROR
    )


def remove_container(client: docker.DockerClient, name: str) -> None:
    """Remove a container, running or not; when this returns it is gone, whoever has removed it."""
    end = time.monotonic() + _REMOVAL_S
    while True:
        try:
            client.api.remove_container(name, v=True, force=True)
        except NotFound:
            return
        except APIError as error:  # a conflict: somebody else is removing it, and is not done
            if error.status_code != HTTPStatus.CONFLICT or time.monotonic() > end:
                raise
            time.sleep(_BETWEEN_TRIES_S)
        else:
            return


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Walk an error and its causes; the SDK keeps the engine's words in any one of them."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


@contextmanager
def engine_faults() -> Iterator[None]:
    """Turn every engine error that leaves the block into an `InfrastructureFault`."""
    try:
        yield
    except _ENGINE_ERRORS as error:
        raise translate(error) from error
