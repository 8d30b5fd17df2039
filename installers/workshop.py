"""What every step of an installation works with: the engine, the base image, the blobs, and boxes to run things in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import docker

from installers.index_trouble import index_trouble, is_refusal
from installers.interface import TooLarge
from miner.core.blobs import BlobStore
from miner.core.errors import IndexUnreachable, InfrastructureFault
from miner.core.excerpt import explanation
from miner.core.index_access import chosen_index, index_url, pair_of_url, without_login
from miner.core.reasons import Reason
from miner.core.records import Observation
from miner.core.settings import Limits, Settings
from miner.sandbox.base_image import BaseImage
from miner.sandbox.container import DockerBox, sandbox_container
from miner.sandbox.interface import Box, ExecResult
from miner.sandbox.network import UV, DockerEgress
from miner.sandbox.profile import CACHE, profile_of

WORK = "/home/miner/work"
_MB = 1024 * 1024
_EXPORT_SLACK_MB = 256  # what a tar adds to the files that it holds
_HOOK = re.compile(r"^(?:error|  cause): The build backend returned an error$|/offline\.py\", line", re.MULTILINE)


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
    def box(
        self,
        image: str,
        *,
        network: bool,
        cache: Literal["shared", "private"] = "private",
        cutoff: datetime | None = None,
    ) -> Iterator[DockerBox]:
        """Run a locked-down container with the bounds of installations.

        Args:
            image: reference of an image that the engine holds.
            network: whether the package index can be reached.
            cache: "shared" only where no code of packages runs.
            cutoff: what any pip or uv in it takes the index as of, also one that a set-up script starts.
        """
        profile = profile_of(self.settings, self.limits, cache=cache, owner=self.owner)
        if cutoff is not None:
            index = self._index()
            named = {} if index is None else {"PIP_INDEX_URL": index, "UV_DEFAULT_INDEX": index}
            profile = profile.model_copy(update={"env": {**profile.env, **named, **dated(cutoff)}})
        with sandbox_container(self.client, image, profile, "install", self.egress if network else None) as box:
            yield box

    def run_uv(
        self,
        box: Box,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> ExecResult:
        """Run uv in a box with egress; its settings files are not read, it compiles and downloads no Python."""
        ours = {**_UV_ENV, "UV_HTTP_TIMEOUT": str(max(1, round(self.settings.index.timeout_s)))}
        if (index := self._index()) is not None:
            ours["UV_DEFAULT_INDEX"] = index
        return box.run([UV, *arguments], env={**(env or {}), **ours}, workdir=WORK, timeout_s=timeout_s)

    def _index(self) -> str | None:
        """Return the index that is chosen, without its login: builds run code of packages, which would see it."""
        chosen = chosen_index(self.settings.index)
        return None if chosen is None else without_login(chosen)[0]

    def raise_for_faults(self, box: Box, result: ExecResult) -> None:
        """Ask after a command failed in a box with egress: was it the network?

        Raises:
            IndexUnreachable: the index could not be reached, or answered with an error of its own.
            InfrastructureFault: the proxy is gone, or the index and we do not agree on who may ask for what.
        """
        self.egress.raise_for_faults(box.name)
        index = pair_of_url(index_url(self.settings.index)) or ""
        denied = {event.target: event.why for event in self.egress.denied(box.name)}
        if index in denied:
            raise _refused(f"boxes cannot reach the package index: {index}: {denied[index]}")
        said = index_trouble(result.text, index, denied) if result.limit is None else ""
        if said and is_refusal(said):
            raise _refused(f"the package index refuses: {said}")
        if said:
            raise IndexUnreachable(f"the package index failed: {said}", reason=Reason.INDEX_ERROR)

    def refusal(self, box: Box, result: ExecResult, reason: Reason, what: str, **payload: Any) -> Observation:
        """Return the negative observation for a command that failed in a box with egress.

        Raises:
            InfrastructureFault: the network, not the package, was at fault.
        """
        self.raise_for_faults(box, result)
        denied = sorted({event.target for event in self.egress.denied(box.name)})
        found = failed(result, reason, what, self.blobs, **({"denied": denied} if denied else {}), **payload)
        return found.model_copy(update={"network": depends_on_index(result)})


def _refused(message: str) -> InfrastructureFault:
    step = "check `index.url`, and that `index.extra_hosts` names every host that its files lie on"
    return InfrastructureFault(message, reason=Reason.INDEX_ERROR, next_step=step)


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


def export(box: DockerBox, path: str, to: Path, limits: Limits) -> Path:
    """End everything in a box, so that nothing changes any more, and write a folder of it as a tar.

    Raises:
        TooLarge: it is larger than a box may be: sparse files take no room there, and all of it here.
    """
    box.kill()
    left = (limits.disk_mb + _EXPORT_SLACK_MB) * _MB
    with to.open("wb") as file:
        for chunk in box.fetch(path):
            left -= len(chunk)
            if left < 0:
                raise TooLarge(f"{path} is larger than {limits.disk_mb} MiB")
            file.write(chunk)
    return to


def too_large(result: ExecResult, what: str, blobs: BlobStore) -> Observation:
    """Return the negative observation for a command that left more behind than is kept."""
    return failed(replace(result, limit="disk"), Reason.BUILD_LIMIT, what, blobs)


def depends_on_index(result: ExecResult) -> bool:
    """Whether a command that failed could end otherwise with another answer of the package index.

    A hook of a build back end that fails does so by itself, and of the bounds only that of time has to do with it.
    """
    if result.limit is not None:
        return result.timed_out
    return _HOOK.search(result.text) is None


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


def as_of(cutoff: datetime, exempt: Mapping[str, datetime | None]) -> list[str]:
    """Return uv's options for the package index as it was; None exempts a package from any date."""
    options = ["--exclude-newer", _rfc3339(cutoff)]
    for name, until in sorted(exempt.items()):
        options += ["--exclude-newer-package", f"{name}={'false' if until is None else _rfc3339(until)}"]
    return options


def dated(cutoff: datetime) -> dict[str, str]:
    """Return the variables by which uv, and pip from 26.0 on, take the package index as it was."""
    return {"UV_EXCLUDE_NEWER": _rfc3339(cutoff), "PIP_UPLOADED_PRIOR_TO": _rfc3339(cutoff)}


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
