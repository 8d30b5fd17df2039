"""What every step of an installation works with: the engine, the base image, the blobs, and boxes to run things in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import docker
import uv

from miner.core.blobs import BlobStore
from miner.core.errors import IndexUnreachable
from miner.core.reasons import Reason
from miner.core.records import Observation
from miner.core.settings import Limits, Settings
from miner.sandbox.base_image import BaseImage
from miner.sandbox.container import DockerBox, sandbox_container
from miner.sandbox.interface import Box, ExecResult
from miner.sandbox.network import DockerEgress
from miner.sandbox.profile import CACHE, profile_of

WORK = "/home/miner/work"
UV = "/opt/swe-miner/uv"
_TAIL_CHARS = 1500
_VOLATILE = (
    (re.compile(r"\.tmp\w{6}"), ".tmp"),
    (re.compile(r"/tmp/[\w.-]+"), "/tmp/tmp"),  # noqa: S108 - a pattern, not a path of ours
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "0x"),
    (re.compile(r"\b\d+(\.\d+)?m?s\b"), "some time"),
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
)


_TROUBLE = re.compile(
    r"HTTP status server error|429 Too Many Requests|Request failed after|error sending request|operation timed out"
    r"|error decoding response body|connection (?:reset|closed)|request or response body error"
)


@dataclass(frozen=True)
class Room:
    """What only measuring needs."""

    client: docker.DockerClient
    egress: DockerEgress


@dataclass(frozen=True)
class Workshop:
    """The tools of the installers.

    Attributes:
        owner: id of the ledger on whose behalf boxes exist.
        scratch: a folder for large files in passing.
        base_cache: where the layers of the base image are kept.
        room: opens what only measuring needs, once: where all facts are known, no engine has to answer.
    """

    settings: Settings
    base: BaseImage
    blobs: BlobStore
    owner: str
    scratch: Path
    base_cache: Path
    room: Callable[[], Room]

    @property
    def client(self) -> docker.DockerClient:
        """The engine."""
        return self.room().client

    @property
    def egress(self) -> DockerEgress:
        """The way to the package index."""
        return self.room().egress

    @property
    def limits(self) -> Limits:
        """The bounds of an installation: what exceeds them is measured again when they change."""
        return self.settings.measure.install

    @contextmanager
    def box(self, image: str, *, network: bool, cache: Literal["shared", "private"] = "private") -> Iterator[DockerBox]:
        """Run a locked-down container with the bounds of installations.

        Args:
            image: reference of an image that the engine holds.
            network: whether the package index can be reached.
            cache: "shared" only where no code of packages runs.
        """
        profile = profile_of(self.settings, self.limits, cache=cache, owner=self.owner)
        with sandbox_container(self.client, image, profile, "install", self.egress if network else None) as box:
            if network:
                box.put({UV: (Path(uv.find_uv_bin()).read_bytes(), 0o755)}, uid=0)
            yield box

    def run_uv(self, box: Box, arguments: Sequence[str], *, env: Mapping[str, str] | None = None) -> ExecResult:
        """Run uv in a box with egress; its settings files are not read, it compiles and downloads no Python."""
        index = self.settings.index
        ours = {**_UV_ENV, "UV_HTTP_TIMEOUT": str(max(1, round(index.timeout_s)))}
        if index.url is not None:
            ours["UV_DEFAULT_INDEX"] = index.url
        return box.run([UV, *arguments], env={**(env or {}), **ours}, workdir=WORK)

    def raise_for_faults(self, box: Box, result: ExecResult) -> None:
        """Ask after a command failed in a box with egress: was it the network?

        Raises:
            IndexUnreachable: the index could not be reached, or answered with an error of its own.
            InfrastructureFault: the proxy is gone.
        """
        self.egress.raise_for_faults(box.name)
        if result.limit is None and not self.egress.denied(box.name) and (said := index_trouble(result.text)):
            raise IndexUnreachable(f"the package index failed: {said}", reason=Reason.INDEX_ERROR)

    def refusal(self, box: Box, result: ExecResult, reason: Reason, what: str, **payload: Any) -> Observation:
        """Return the negative observation for a command that failed in a box with egress.

        Raises:
            InfrastructureFault: the network, not the package, was at fault.
        """
        self.raise_for_faults(box, result)
        denied = sorted({event.target for event in self.egress.denied(box.name)})
        found = failed(result, reason, what, self.blobs, **({"denied": denied} if denied else {}), **payload)
        return found.model_copy(update={"network": True})


def uv_version() -> str:
    """Return the version of uv, which enters input hashes."""
    return metadata.version("uv")


_UV_ENV = {
    "NO_COLOR": "1",
    "UV_CACHE_DIR": CACHE,
    "UV_COMPILE_BYTECODE": "0",
    "UV_LINK_MODE": "copy",
    "UV_NO_CONFIG": "1",
    "UV_NO_PROGRESS": "1",
    "UV_PYTHON_DOWNLOADS": "never",
}


def export(box: DockerBox, path: str, to: Path) -> Path:
    """End everything in a box, so that nothing changes any more, and write a folder of it as a tar."""
    box.kill()
    with to.open("wb") as file:
        for chunk in box.fetch(path):
            file.write(chunk)
    return to


def failed(result: ExecResult, reason: Reason, what: str, blobs: BlobStore, **payload: Any) -> Observation:
    """Return the negative observation for a command that failed: a bound that was reached is a reason of its own."""
    if result.timed_out:
        reason, what = Reason.BUILD_TIMEOUT, f"{what} exceeded its time limit"
    elif result.limit is not None:
        reason, what = Reason.BUILD_LIMIT, f"{what} exceeded its limit of {result.limit}"
    else:
        what = f"{what} failed: {explanation(result.text)}"
    return Observation(
        outcome=reason.value,
        payload={"detail": what, **payload},
        logs={"log": blobs.put(result.output)},
    )


def explanation(text: str) -> str:
    """Return what a failed command says about its failure, without what changes from run to run.

    uv ends with `error: ...` and its causes; of other output the last lines must do.
    """
    found = text.rfind("\nerror: ") + 1
    said = text if text.startswith("error: ") and not found else text[found:]
    for pattern, steady in _VOLATILE:
        said = pattern.sub(steady, said)
    said = said.strip()
    return said if len(said) <= _TAIL_CHARS else f"... {said[-_TAIL_CHARS:]}"


def index_trouble(text: str) -> str:
    """Return the line in which uv says that the index failed, "" where it says no such thing."""
    lines = (line.strip() for line in text.splitlines() if line.startswith(("error: ", "  cause: ")))
    return next((line for line in lines if _TROUBLE.search(line)), "")


def as_of(cutoff: datetime, exempt: Mapping[str, datetime]) -> list[str]:
    """Return uv's options for the package index as it was."""
    options = ["--exclude-newer", _rfc3339(cutoff)]
    for name, until in sorted(exempt.items()):
        options += ["--exclude-newer-package", f"{name}={_rfc3339(until)}"]
    return options


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
