"""A locked-down container as a context manager.

Commands are run from outside by the engine's exec; wall time, disk and output are watched from outside too, and a
breach kills the container. Memory and processes are bounded by the kernel, whose counters tell. Files come and go by
the engine's archive calls, so that the engine may be on another machine.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

import docker
import structlog
from docker.errors import APIError, DockerException, NotFound

from miner.core.errors import DiskFull, DockerUnavailable, InfrastructureFault
from miner.core.reasons import Reason
from miner.sandbox.counters import COMMAND, Counters, parse_counters
from miner.sandbox.engine import engine_faults, remove_container
from miner.sandbox.execution import execute
from miner.sandbox.interface import ExecResult, Files, LimitName
from miner.sandbox.profile import KEEPER, USER, Profile, container_options
from miner.sandbox.stream import Capture
from miner.sandbox.tars import first_regular_file, tar_of

if TYPE_CHECKING:
    from miner.sandbox.network import DockerEgress

_MB = 1024 * 1024
# One pipe, so that the order of the two streams is kept. A command's own 126 becomes 125, because the engine says 126
# of a command whose output it could not hand over, and may have ended it (moby, daemon/exec.go).
_MERGED = ("sh", "-c", '"$@" 2>&1; code=$?; [ "$code" != 126 ] || code=125; exit "$code"', "sh")
_CUT_OFF = 126
_KILLED = 137
_NOT_RUNNING = 409
_DISK_EVERY_S = 1.0
_COUNTERS_EVERY_S = 3.0
_COUNTERS_TIMEOUT_S = 15.0
_LOOKS = 5
_BETWEEN_LOOKS_S = 0.3
_NEAR = 0.9
_FLOOD = 8  # a command that prints this many times what is kept of it is stopped
_DISK_FLOOR = 512 * _MB  # with less than this left on the engine's disk, no result is to be trusted
_FILES_FLOOR = 10_000

_log = structlog.get_logger()


@contextmanager
def sandbox_container(
    client: docker.DockerClient,
    image: str,
    profile: Profile,
    name_hint: str,
    egress: DockerEgress | None = None,
) -> Iterator[DockerBox]:
    """Start a box, and remove it whatever happens.

    Args:
        client: the engine.
        image: what to start, by a name or id that the engine has.
        profile: bounds and surroundings.
        name_hint: what a person should see in a list of containers.
        egress: the way to the package index; None for no network at all.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", name_hint.lower()).strip("-")[:40]
    box = DockerBox(client, profile, f"swe-miner-{slug or 'box'}-{secrets.token_hex(6)}")
    try:
        box.start(image, egress)
        yield box
    finally:
        box.remove()


class DockerBox:
    """A box in a Docker engine; made by `sandbox_container`."""

    def __init__(self, client: docker.DockerClient, profile: Profile, name: str) -> None:
        self._client = client
        self._profile = profile
        self._name = name
        self._limit: LimitName | None = None
        self._counters = Counters()

    @property
    def name(self) -> str:
        """Name of the container, unique; also its lane of the egress."""
        return self._name

    def start(self, image: str, egress: DockerEgress | None) -> None:
        """Create and start the container."""
        options = container_options(self._profile)
        if egress is not None:
            options = egress.applied_to(options, lane=self._name)
        with engine_faults():
            self._client.containers.create(image, name=self._name, **options)
            if egress is not None:
                self.put(egress.files, uid=0)
            self._client.api.start(self._name)
        if egress is not None:
            egress.await_forwarder(self)

    def remove(self) -> None:
        """Remove the container, running or not; what fails here is left to the janitor."""
        try:
            remove_container(self._client, self._name)
        except (DockerException, OSError) as error:
            _log.warning("a container could not be removed", container=self._name, error=str(error))

    def put(self, files: Files, uid: int = 1000) -> None:
        """Write files and folders; `/tmp` cannot be written to this way."""
        self.put_tar("/", tar_of(files, uid))

    def put_tar(self, dest: str, stream: bytes | IO[bytes]) -> None:
        """Unpack a tar into an existing folder."""
        with engine_faults():
            self._client.api.put_archive(self._name, dest, stream)

    def fetch(self, path: str) -> Iterator[bytes]:
        """Return a file or folder as a tar; also after the box was killed.

        Raises:
            FileNotFoundError: nothing is there.
        """
        chunks = self._archive(path)
        if chunks is None:
            raise FileNotFoundError(f"there is no {path} in {self._name}")
        with engine_faults():
            yield from chunks

    def _archive(self, path: str) -> Iterator[bytes] | None:
        with engine_faults():
            try:
                chunks: Iterable[bytes] = self._client.api.get_archive(self._name, path, chunk_size=_MB)[0]
            except NotFound:
                return None
            return iter(chunks)

    def read_file(self, path: str, max_bytes: int) -> bytes:
        """Return the first `max_bytes` of a regular file; also after the box was killed.

        Raises:
            FileNotFoundError: nothing is there, or no regular file.
        """
        data = first_regular_file(self.fetch(path), max_bytes)
        if data is None:
            raise FileNotFoundError(f"{path} in {self._name} is no regular file")
        return data

    def run(
        self,
        command: Sequence[str],
        *,
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        workdir: str = "/testbed",
        user: str | None = None,
    ) -> ExecResult:
        """Run a command to its end, or to the bound that it reaches first; on a bound the whole box is killed.

        In a box that was killed already nothing runs, and the result names the same bound again.
        """
        if self._limit is not None:
            return ExecResult(_KILLED, b"", truncated=False, duration_s=0.0, limit=self._limit)
        limits = self._profile.limits
        capture = Capture(limits.output_mb * _MB)
        started = time.monotonic()
        watch = _Watch(self, capture, started + (limits.timeout_s if timeout_s is None else timeout_s))
        with engine_faults():
            exit_code = execute(
                self._client,
                self._name,
                [*_MERGED, *command],
                env=env or {},
                workdir=workdir,
                user=user or USER,
                sink=capture.add,
                stop=watch,
            )
            if exit_code == _CUT_OFF:
                raise DockerUnavailable(f"the connection to the engine was lost while a command ran in {self._name}")
            duration = time.monotonic() - started
            if self._limit is None and (limit := self._judge()) is not None:
                self.stop(limit)
        return ExecResult(
            exit_code=_KILLED if exit_code is None else exit_code,
            output=capture.output(),
            truncated=capture.truncated,
            duration_s=duration,
            limit=self._limit,
            memory_peak=self._counters.memory_peak,
        )

    def _judge(self) -> LimitName | None:
        """Return the bound that a command has reached unseen by the watch."""
        for _ in range(_LOOKS):
            counters = self.read_counters()
            if counters is not None:
                return self._judge_by(counters)
            state = self._client.api.inspect_container(self._name)["State"]
            if state["OOMKilled"]:
                return "memory"
            if not state["Running"]:
                raise InfrastructureFault(
                    f"container {self._name} ended without our doing, exit code {state['ExitCode']}",
                    reason=Reason.DOCKER_ERROR,
                )
            time.sleep(_BETWEEN_LOOKS_S)  # it may be just about to end
        return self._judge_from_outside()

    def _judge_by(self, counters: Counters) -> LimitName | None:
        if counters.oom_kills and not counters.at_memory_limit:
            raise InfrastructureFault(
                f"the host ran out of memory while {self._name} was within its limit", reason=Reason.HOST_OUT_OF_MEMORY
            )
        if counters.oom_kills:
            return "memory"
        if counters.pids_refused:
            return "pids"
        return "disk" if self.is_disk_full() else None

    def _judge_from_outside(self) -> LimitName:
        """Where nothing can be started in a running box: what does the engine measure?"""
        stats = self._client.api.stats(self._name, stream=False, one_shot=True)
        pids, memory = stats["pids_stats"], stats["memory_stats"]
        if pids.get("current", 0) >= _NEAR * self._profile.limits.pids:
            return "pids"
        if memory.get("usage", 0) >= _NEAR * self._profile.limits.memory_mb * _MB:
            return "memory"
        raise InfrastructureFault(f"nothing can be started in {self._name} any more", reason=Reason.DOCKER_ERROR)

    def read_counters(self) -> Counters | None:
        """Read the kernel's counters; None where nothing can be started in the box.

        Raises:
            DiskFull: nearly no space is left where the engine keeps its containers.
        """
        end = time.monotonic() + _COUNTERS_TIMEOUT_S
        output: list[bytes] = []
        try:
            exit_code = execute(
                self._client,
                self._name,
                COMMAND,
                env={},
                workdir="/",
                user=KEEPER,
                sink=output.append,
                stop=lambda: time.monotonic() > end,
            )
        except APIError as error:
            if "no space left" in str(error):
                raise
            return None
        if exit_code != 0:
            return None
        self._counters = parse_counters(b"".join(output).decode("utf-8", "replace"))
        self._check_room(self._counters)
        return self._counters

    def _check_room(self, counters: Counters) -> None:
        """The engine's own disk is full: then nothing that a box says is to be trusted.

        It also stops what the walk over a box's files does not see: deleted files that are still open, empty files.
        """
        space, files = counters.disk_available, counters.files_available
        if (space is not None and space < _DISK_FLOOR) or (files is not None and 0 < files < _FILES_FLOOR):
            self.kill()
            raise DiskFull(f"{space} bytes and {files} files are left where the engine keeps its containers")

    def is_disk_full(self) -> bool:
        """Whether the box has written as much into its own layer as it may."""
        found = self._client.api.containers(all=True, size=True, filters={"name": f"^/{self._name}$"})
        return bool(found) and int(found[0].get("SizeRw") or 0) >= self._profile.limits.disk_mb * _MB

    def stop(self, limit: LimitName) -> None:
        """Kill the box because it reached a bound."""
        self._limit = limit
        self.kill()

    def kill(self) -> None:
        """Kill everything in the box; its files can still be read."""
        with engine_faults(), suppress(NotFound):
            try:
                self._client.api.kill(self._name)
            except APIError as error:
                if error.status_code != _NOT_RUNNING:
                    raise
            self._client.api.wait(self._name, timeout=60)


class _Watch:
    """Asked again and again while a command runs; stops the box at the first bound that can be seen from outside."""

    def __init__(self, box: DockerBox, capture: Capture, deadline: float) -> None:
        self._box = box
        self._capture = capture
        self._flood = _FLOOD * capture.max_bytes
        self._deadline = deadline
        now = time.monotonic()
        self._next_disk, self._next_counters = now + _DISK_EVERY_S, now + _COUNTERS_EVERY_S
        self._refused = 0

    def __call__(self) -> bool:
        limit = self._breached(time.monotonic())
        if limit is not None:
            self._box.stop(limit)
        return limit is not None

    def _breached(self, now: float) -> LimitName | None:
        if now > self._deadline:
            return "time"
        if self._capture.total > self._flood:
            return "output"
        if now > self._next_disk:
            full = self._box.is_disk_full()
            took = time.monotonic() - now  # the engine walks over all files: never more than a tenth of the time
            self._next_disk = now + max(_DISK_EVERY_S, 10 * took)
            return "disk" if full else None
        if now > self._next_counters:
            self._next_counters = now + _COUNTERS_EVERY_S
            return self._runs_wild()
        return None

    def _runs_wild(self) -> LimitName | None:
        """Processes refused at two looks in a row are a process bomb; once may be a program that copes."""
        counters = self._box.read_counters()
        if counters is None:
            return None
        before, self._refused = self._refused, counters.pids_refused
        return "pids" if before and counters.pids_refused > before else None
