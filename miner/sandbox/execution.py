"""One command in a running container, from its start to its end, watched from outside."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import docker
import requests
from docker.errors import APIError

from miner.core.errors import InfrastructureFault
from miner.core.reasons import Reason
from miner.sandbox.stream import Frames

_CHUNK = 65536
_POLL_S = 0.25
_DRAIN_S = 5.0
_START_TIMEOUT_S = 60


def execute(
    client: docker.DockerClient,
    container: str,
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    workdir: str,
    user: str,
    sink: Callable[[bytes], None],
    stop: Callable[[], bool],
) -> int | None:
    """Run a command and return its exit code, or None where `stop` ended it.

    Args:
        client: the engine.
        container: a running container.
        command: program and arguments.
        env: added to the container's environment.
        workdir: an existing folder.
        user: `uid:gid`.
        sink: takes the output, piece by piece.
        stop: asked several times a second; once it says yes, it has done what ends the command (or gives it up), and
            only what is still on its way is read.
    """
    api = client.api
    made = api.exec_create(container, list(command), environment=dict(env), workdir=workdir, user=user)
    reader = _Reader(_start(api, made["Id"]), sink)
    reader.start()
    while not reader.ended.wait(_POLL_S):
        if stop():
            reader.finish(_DRAIN_S)
            return None
    if reader.error is not None:
        raise reader.error
    while (state := api.exec_inspect(made["Id"]))["Running"]:  # it has closed its output and goes on
        if stop():
            return None
        time.sleep(_POLL_S)
    return _exit_code(state, container)


def _exit_code(state: Mapping[str, Any], container: str) -> int:
    if state["ExitCode"] is None:
        raise InfrastructureFault(f"the engine lost a command in {container}", reason=Reason.DOCKER_ERROR)
    return int(state["ExitCode"])


def _start(api: docker.APIClient, exec_id: str) -> requests.Response:
    """Start an exec; the answer's body is its framed output.

    The call is made without `Upgrade`, so that the answer is an ordinary body up to the end of the connection: the
    SDK's own way of reading it can lose what arrives together with the headers.
    """
    url = f"{api.base_url}/v{api.api_version}/exec/{exec_id}/start"
    body = {"Detach": False, "Tty": False}
    response = api.post(url, json=body, stream=True, timeout=(_START_TIMEOUT_S, None))
    if response.status_code != HTTPStatus.OK:
        raise APIError(response.text, response=response)
    return response


class _Reader(threading.Thread):
    """Reads the output in a thread, so that a command can be stopped whether it prints nothing or without end.

    It never waits for anything but the engine: one whose output is not taken cannot kill the container either. Only it
    closes the connection: to close one that another thread reads from would wait for an engine that hangs.
    """

    def __init__(self, response: requests.Response, sink: Callable[[bytes], None]) -> None:
        super().__init__(daemon=True)
        self._response = response
        self._sink: Callable[[bytes], None] | None = sink
        self._guard = threading.Lock()
        self.error: Exception | None = None
        self.ended = threading.Event()

    def run(self) -> None:
        """Read to the end."""
        frames = Frames()
        try:
            with self._response:
                while chunk := self._response.raw.read1(_CHUNK):
                    self._take(frames.feed(chunk))
        except Exception as error:  # noqa: BLE001 - kept, and raised in the thread that asked
            self.error = error
        self.ended.set()

    def _take(self, pieces: Iterable[bytes]) -> None:
        with self._guard:
            for piece in pieces:
                if self._sink is not None:
                    self._sink(piece)

    def finish(self, wait_s: float) -> None:
        """Wait a little for what is still on its way, then take nothing more."""
        self.ended.wait(wait_s)
        with self._guard:
            self._sink = None
