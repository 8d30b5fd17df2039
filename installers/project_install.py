"""The project under test into its environment, in one of three ways.

EDITABLE: uv builds it as PEP 660 says, build requirements pinned, index only. NORMAL: the locked build requirements
and pip go to `/opt/build`, and a script there installs `/testbed` into `/opt/env` with no network, at first and after
every patch. NONE: the tree is importable as it lies there. What an installation leaves behind outside `/opt/env`,
`/opt/build` and `/testbed` is lost with its container.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from installers.environment import ENV
from installers.interface import TooLarge
from installers.layer import NORMALISER, TIME, Tree, difference, load, normalise, rooted, store, unpacked
from installers.rebuild import BUILD, REBUILD, dynamic_requirements, rebuild_script
from installers.testbed import merge
from installers.workshop import WORK, Workshop, as_of, export, failed, too_large
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import BuildMode, Fact, Layer, Observation, Producer, Record
from miner.sandbox.container import DockerBox
from miner.sandbox.image_archive import TarEntry, deterministic_tar, read_tar
from miner.sandbox.interface import ExecResult

PRODUCER = Producer(name="installers.project_install", epoch=1)
KIND = "install.project"

_LOCK = f"{WORK}/build.txt"
_WHAT = "installing the project"
_WHAT_BUILD = "installing the build requirements"


class ProjectRequest(Record):
    """Everything that the project's layer depends on.

    Attributes:
        environment: the environment's layer.
        tree: id of the base commit's tree.
        build_lock: sha256 of the lock of the build requirements.
        cutoff: for build requirements that a back end asks for only when it runs.
    """

    mode: BuildMode
    environment: Layer
    tree: str
    project_dir: str
    build_env: dict[str, str]
    build_lock: str
    executable: str
    cutoff: datetime
    exempt: dict[str, datetime]
    base: str
    uv: str
    runtime: str | None = None
    normaliser: int = NORMALISER

    @property
    def source(self) -> str:
        """Where the project lies in a box."""
        return f"/testbed/{self.project_dir}".rstrip("/")


Pack = Callable[[BinaryIO], object]
"""Writes the tar of a repository at its base commit, with its `.git`, paths relative to its root."""


@dataclass(frozen=True)
class Repository:
    """Such a tar, as a file on this machine."""

    tar: Path

    def entries(self) -> Iterable[TarEntry]:
        """Read it."""
        return read_tar(self.tar)

    def put(self, box: DockerBox, folder: Path) -> None:
        """Unpack it in a box, just as it is going to be in the image."""
        _put_entries(box, merge(self.entries(), ()).entries, folder)


def project(workshop: Workshop, memo: Memo, instance_id: str, request: ProjectRequest, pack: Pack) -> Fact:
    """Return the fact about the project's layer in one mode."""
    install = _MODES[request.mode]

    def run() -> Observation:
        with _folder(workshop) as folder:
            tar = folder / "repository.tar"
            with tar.open("wb") as out:
                pack(out)
            return install(workshop, request, Repository(tar))

    return memo.measure(PRODUCER, KIND, instance_id, {"request": request, "limits": workshop.limits}, run)


def install_editable(workshop: Workshop, request: ProjectRequest, repository: Repository) -> Observation:
    """Install with a link back to `/testbed`, so that an edit there is seen at once (PEP 660)."""
    with _folder(workshop) as folder, workshop.box(workshop.base.image, network=True) as box:
        _put_environment(workshop, box, request, folder)
        repository.put(box, folder)
        _put_lock(workshop, box, request)
        result = workshop.run_uv(
            box,
            [
                *("pip", "install", "--python", f"{ENV}/bin/python", "--no-deps", "--no-sources"),
                *("--build-constraints", _LOCK),
                *as_of(request.cutoff, request.exempt),
                *("--editable", request.source),
            ],
            env=request.build_env,
        )
        if not result.ok:
            return workshop.refusal(box, result, Reason.PROJECT_INSTALL_FAILED, _WHAT)
        return _Export(workshop, request, repository).keep(box, result)


def install_normal(workshop: Workshop, request: ProjectRequest, repository: Repository) -> Observation:
    """Install a copy, with the means to do it again offline in `/opt/build`."""
    with _folder(workshop) as folder:
        prepared = folder / "build.tar"
        refusal = _prepare(workshop, request, repository, prepared)
        if refusal is not None:
            return refusal
        build = normalise(read_tar(prepared), "opt")
        script = rebuild_script(request.project_dir, request.build_env).encode()
        build[REBUILD.lstrip("/")] = TarEntry(REBUILD.lstrip("/"), "file", 0o755, 1000, 1000, content=script)
        with workshop.box(workshop.base.image, network=False) as box:
            _put_environment(workshop, box, request, folder)
            repository.put(box, folder)
            _put_entries(box, build.values(), folder)
            result = box.run([REBUILD])
            if not result.ok:
                return failed(result, Reason.PROJECT_INSTALL_FAILED, _WHAT, workshop.blobs)
            return _Export(workshop, request, repository, build).keep(box, result)


def install_none(workshop: Workshop, request: ProjectRequest, repository: Repository) -> Observation:
    """Take the tree as it is: what the tests import lies in their working folder."""
    return _Export(workshop, request, repository).unchanged()


_MODES = {
    BuildMode.EDITABLE: install_editable,
    BuildMode.NORMAL: install_normal,
    BuildMode.NONE: install_none,
}


@contextmanager
def _folder(workshop: Workshop) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=workshop.scratch) as name:
        yield Path(name)


def _put_environment(workshop: Workshop, box: DockerBox, request: ProjectRequest, folder: Path) -> None:
    with unpacked(request.environment, workshop.blobs, folder).open("rb") as stream:
        box.put_tar("/", stream)


def _put_lock(workshop: Workshop, box: DockerBox, request: ProjectRequest) -> None:
    box.put({f"{WORK}/": (b"", 0o755), _LOCK: (workshop.blobs.get(request.build_lock), 0o644)})


def _put_entries(box: DockerBox, entries: Iterable[TarEntry], folder: Path) -> None:
    tar = folder / "put.tar"
    with tar.open("wb") as file:
        deterministic_tar(rooted(entries), file, mtime=TIME)
    with tar.open("rb") as stream:
        box.put_tar("/", stream)


def _prepare(workshop: Workshop, request: ProjectRequest, repository: Repository, to: Path) -> Observation | None:
    """Fill `/opt/build` with the build requirements, those included that the back end names only when asked."""
    with _folder(workshop) as folder, workshop.box(workshop.base.image, network=True) as box:
        repository.put(box, folder)
        _put_lock(workshop, box, request)
        steps: tuple[Callable[[], ExecResult], ...] = (
            lambda: workshop.run_uv(box, ["venv", BUILD, "--allow-existing", "--python", request.executable]),
            lambda: _install(workshop, box, request, ["--require-hashes", "--no-deps", "-r", _LOCK]),
            lambda: dynamic_requirements(box, request.source, request.build_env, f"{WORK}/asked.txt"),
            lambda: _install(workshop, box, request, ["-c", _LOCK, "-r", f"{WORK}/asked.txt"]),
        )
        for step in steps:
            result = step()
            if not result.ok:
                return workshop.refusal(box, result, Reason.PROJECT_INSTALL_FAILED, _WHAT_BUILD)
        try:
            export(box, BUILD, to, workshop.limits)
        except TooLarge:
            return too_large(result, _WHAT_BUILD, workshop.blobs)
    return None


def _install(workshop: Workshop, box: DockerBox, request: ProjectRequest, what: list[str]) -> ExecResult:
    options = ["--python", f"{BUILD}/bin/python", *as_of(request.cutoff, request.exempt)]
    return workshop.run_uv(box, ["pip", "install", *options, *what])


@dataclass(frozen=True)
class _Export:
    """From a box to the project's layer."""

    workshop: Workshop
    request: ProjectRequest
    repository: Repository
    build: Tree | None = None

    def keep(self, box: DockerBox, result: ExecResult) -> Observation:
        """Keep what differs from the environment's layer, and all of `/testbed`."""
        limits, blobs = self.workshop.limits, self.workshop.blobs
        with _folder(self.workshop) as folder:
            try:
                env = normalise(read_tar(export(box, ENV, folder / "env.tar", limits)), "opt")
                tree = list(read_tar(export(box, "/testbed", folder / "testbed.tar", limits)))
            except TooLarge:
                return too_large(result, _WHAT, blobs)
            changes = difference(load(self.request.environment, blobs, folder), env)
            seen = self._store([*changes, *(self.build or {}).values()], tree)
        return seen.model_copy(update={"logs": {"log": blobs.put(result.output)}, "network": True})

    def unchanged(self) -> Observation:
        """Keep the repository alone."""
        return self._store([], [])

    def _store(self, changes: list[TarEntry], exported: list[TarEntry]) -> Observation:
        testbed = merge(self.repository.entries(), exported)
        layer = store([*changes, *testbed.entries], self.workshop.blobs, self.workshop.scratch)
        return Observation(
            payload={
                "layer": layer.model_dump(),
                "mode": self.request.mode.value,
                "rebuild_cmd": REBUILD if self.build is not None else None,
                "added": list(testbed.added),
                "restored": list(testbed.restored) if exported else [],
            },
            blobs={"layer": layer.diff_id.removeprefix("sha256:")},
        )
