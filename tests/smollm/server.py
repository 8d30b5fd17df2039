"""The endpoint of the small model, as long as a test needs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from smollm.set_up import HERE, node, ready

NAME = "smollm2-135m-instruct"
CONTEXT = 4096
_SERVER = "serve.mjs"
_START_S = 60


@dataclass(frozen=True)
class Served:
    """One request that the model answered, in its own tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    seconds: float


@dataclass(frozen=True)
class Small:
    """The running endpoint.

    Attributes:
        url: base URL, as OPENAI_BASE_URL takes it.
        log: what it prints.
    """

    url: str
    log: Path

    @property
    def served(self) -> list[Served]:
        """All requests that were answered, in order."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [Served(**json.loads(line)) for line in lines if line.startswith("{")]


@contextmanager
def serving(folder: Path, log: Path) -> Iterator[Small]:
    """Serve the model that is installed in a folder.

    Raises:
        NotToBeHad: it is not installed there, or there is no node.
    """
    model = ready(folder)
    shutil.copyfile(HERE / _SERVER, folder / _SERVER)  # node looks for packages beside the file that wants them
    command = [node(), _SERVER, str(model)]
    with log.open("w", encoding="utf-8") as printed:
        server = subprocess.Popen(command, cwd=folder, stdout=printed, stderr=subprocess.STDOUT)
        try:
            yield Small(_url(server, log), log)
        finally:
            server.terminate()
            server.wait(10)


def _url(server: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the server says where it is."""
    end = time.monotonic() + _START_S
    while time.monotonic() < end and server.poll() is None:
        first, newline, _ = log.read_text(encoding="utf-8").partition("\n")
        if newline and first.startswith("http://"):
            return first
        time.sleep(0.1)
    raise AssertionError(f"the small model does not start: {log.read_text(encoding='utf-8')[-2000:]}")
