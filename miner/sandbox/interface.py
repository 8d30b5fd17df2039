"""What the rest of the program knows of the sandbox: its records and two protocols.

A `Box` is one locked-down container. An `Egress` is the only way out of it: an allow-listing proxy for the package
index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Literal, Protocol

LABEL = "swe-miner"
"""Label of everything that the sandbox makes in the engine; its value is the owner (`janitor.owner_of`)."""

LimitName = Literal["memory", "pids", "disk", "output", "time"]

Files = Mapping[str, tuple[bytes, int]]
"""Absolute path in the container -> (bytes, mode); a path that ends with "/" is a folder."""


@dataclass(frozen=True)
class ExecResult:
    """How one command in a box ended.

    Attributes:
        exit_code: of the command; 137 where it was killed.
        output: standard output and error in the order of writing; of too much, the head and the tail.
        truncated: whether the middle of the output was left out.
        limit: which bound of the profile was reached; None if none was.
        memory_peak: most bytes that the box has used so far, where the engine tells.
    """

    exit_code: int
    output: bytes
    truncated: bool
    duration_s: float
    limit: LimitName | None = None
    memory_peak: int | None = None

    @property
    def ok(self) -> bool:
        """Whether the command ended with 0 and within all bounds."""
        return self.exit_code == 0 and self.limit is None

    @property
    def timed_out(self) -> bool:
        """Whether the command was killed because its time was over."""
        return self.limit == "time"

    @property
    def out_of_memory(self) -> bool:
        """Whether a process of the box was killed because the box reached its memory limit."""
        return self.limit == "memory"

    @property
    def text(self) -> str:
        """The output as text; bytes that are not UTF-8 become surrogate escapes."""
        return self.output.decode("utf-8", "surrogateescape")


class Box(Protocol):
    """One locked-down container; a fault of the engine in any method is an `InfrastructureFault`."""

    @property
    def name(self) -> str:
        """Name of the container, unique; also its lane of the egress."""

    def put(self, files: Files, uid: int = 1000) -> None:
        """Write files and folders; `/tmp` cannot be written to this way."""

    def put_tar(self, dest: str, stream: bytes | IO[bytes]) -> None:
        """Unpack a tar into an existing folder."""

    def run(
        self,
        command: Sequence[str],
        *,
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        workdir: str = "/testbed",
        user: str | None = None,
    ) -> ExecResult:
        """Run a command to its end, or to the bound that it reaches first; on a bound the whole box is killed."""

    def fetch(self, path: str) -> Iterator[bytes]:
        """Return a file or folder as a tar; also after the box was killed.

        Raises:
            FileNotFoundError: nothing is there.
        """

    def read_file(self, path: str, max_bytes: int) -> bytes:
        """Return the first `max_bytes` of a regular file; also after the box was killed.

        Raises:
            FileNotFoundError: nothing is there, or no regular file.
        """


@dataclass(frozen=True)
class ProxyEvent:
    """What the proxy says about one request that it did not serve.

    Attributes:
        event: "denied" is the sandbox's doing, "failed" is the network's or the index's.
        lane: the box that asked.
        target: host and port, or the request line where it made no sense.
        why: one sentence.
    """

    event: Literal["denied", "failed"]
    lane: str
    target: str
    why: str


class Egress(Protocol):
    """The only way out of a box: hand it to `sandbox_container`, which does the rest."""

    def denied(self, lane: str | None = None) -> list[ProxyEvent]:
        """Return the requests that were refused: evidence of a need for the network; of one box, or of all."""

    def failed(self, lane: str | None = None) -> list[ProxyEvent]:
        """Return the allowed requests for which the index could not be reached."""

    def raise_for_faults(self, lane: str) -> None:
        """Ask after a command in a box failed: was it the network?

        Raises:
            IndexUnreachable: an allowed host could not be reached for this box.
            InfrastructureFault: the proxy itself is gone.
        """


@dataclass(frozen=True)
class TestRequest:
    """One run of the tests in a fresh box, network off.

    Attributes:
        test_files: paths relative to the repository's root; those that are not there are left out and named.
        test_patch: applied first; None for the tree as it is in the image.
        gold_patch: applied second; None for the side before.
        project_dir: folder to run in, relative to the repository's root.
        rebuild_cmd: offline re-install after the patches (bash).
        addopts: pytest options that replace the project's own.
        collections: how often the tests are collected, in processes of different seconds, before they run.
        env: variables of the run; of those of the image only `PYTHONPATH` is said again: our plug-in uses it too.
    """

    __test__ = False

    test_files: tuple[str, ...]
    test_patch: bytes | None = None
    gold_patch: bytes | None = None
    project_dir: str = ""
    rebuild_cmd: str | None = None
    addopts: tuple[str, ...] = ()
    collections: int = 2
    env: Mapping[str, str] | None = None


@dataclass(frozen=True)
class ProbeRequest:
    """Asks whether an edit of each of these modules in the working tree is seen by a pytest process.

    Attributes:
        modules: names of modules, dotted.
        root: folder that holds them, relative to the repository's root.
        test_files: collected in the same process, so that the project's own conftest files have run.
        test_patch: applied before the edit.
        gold_patch: applied second.
        env: as of a `TestRequest`.
    """

    modules: tuple[str, ...]
    root: str = ""
    test_files: tuple[str, ...] = ()
    test_patch: bytes | None = None
    gold_patch: bytes | None = None
    project_dir: str = ""
    rebuild_cmd: str | None = None
    addopts: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
