"""The installation of a project in its box, and what is kept of it: the layer above the repository's."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from installers.boxes import build_variables, put_entries, put_layer, wants_network
from installers.changes import apply, changed_below, changed_layer
from installers.hooks import unsatisfied
from installers.image import TREE, above, ensure_layers, ensure_shared, remove_image
from installers.interface import TooLarge
from installers.layer import NORMALISER, load, store
from installers.rebuild import KEPT, REBUILD, ask_command, offline_entries, rebuild_script
from installers.testbed import TESTBED, merge
from installers.venv_layer import ENV
from installers.workshop import Workshop, failed, too_large
from miner.core.reasons import Reason
from miner.core.records import BuildMode, Layer, Observation, Record
from miner.sandbox.base_image import BaseImage
from miner.sandbox.container import DockerBox
from miner.sandbox.image_archive import TarEntry
from miner.sandbox.interface import ExecResult

_ASKED = "/home/miner/asked.json"
_COPY = "/home/miner/copy"
_WHAT = "installing the project"
_MAX_NOTE = 1 << 20


class InstallRequest(Record):
    """Everything that the layer of an installed project depends on: no date, where it has no network.

    Attributes:
        build_env: the layer of `/opt/build`; None where nothing is built.
        packages: name -> version of what it holds.
        tree_layer: the repository's layer.
        base: digest of the image that it stands on.
        cutoff: where it is let to the package index, what that is taken as of.
    """

    mode: BuildMode
    environment: Layer
    build_env: Layer | None = None
    packages: dict[str, str]
    tree: str
    tree_layer: Layer
    tags: tuple[str, ...]
    project_dir: str
    variables: dict[str, str]
    backend: str
    backend_path: tuple[str, ...]
    python: str
    base: str
    runtime: str | None = None
    cutoff: datetime | None = None
    normaliser: int = NORMALISER

    @property
    def script(self) -> str:
        """What installs it."""
        return rebuild_script(
            mode=self.mode,
            python=self.python,
            project_dir=self.project_dir,
            build_env=self.variables,
            backend=self.backend,
            backend_path=self.backend_path,
            online=self.cutoff is not None,
        )

    @property
    def source(self) -> str:
        """Where the project lies in a box."""
        return f"/testbed/{self.project_dir}".rstrip("/")

    @property
    def keeps_build(self) -> bool:
        """Whether the image keeps `/opt/build`."""
        return self.mode in KEPT


def install_in_box(workshop: Workshop, ground: BaseImage, request: InstallRequest) -> Observation:
    """Install in the sandbox. A negative answer may hold `asked`: build requirements that are missing.

    Args:
        workshop: the tools.
        ground: what the environment stands on.
        request: what to install, and into what.

    Raises:
        InfrastructureFault: the engine or the disk was at fault.
    """
    if request.build_env is None:
        raise ValueError(f"mode {request.mode} builds nothing")
    shared, notes = [request.environment], ["environment"]
    if request.keeps_build:
        shared, notes = [*shared, request.build_env], [*notes, "build"]
    ensure_shared(workshop, ground, shared, notes)
    below = above(workshop.base, ground)
    own, every = (*below, *shared, request.tree_layer), (*["ground"] * len(below), *notes, "tree")
    image = ensure_layers(workshop, TREE, own, every, held=len(own) - 1)
    seen = _install(workshop, image, request, request.build_env)
    if seen.outcome != "ok":
        remove_image(workshop.client, image)  # else it goes when the candidate's own image is there
    return seen


def _install(workshop: Workshop, image: str, request: InstallRequest, build_env: Layer) -> Observation:
    online = request.cutoff is not None
    with workshop.box(image, network=online, cutoff=request.cutoff) as box:
        if not request.keeps_build:
            put_layer(workshop, box, build_env)
        tools = offline_entries(request.script)
        put_entries(workshop, box, tools)
        result = _ask(box, request)
        if not result.ok:
            return _refused(workshop, box, request, result)
        if missing := unsatisfied(_asked(box), request.packages, request.python):
            return _asks_for(workshop, missing, result)
        result = box.run([REBUILD])
        if not result.ok:
            return _refused(workshop, box, request, result)
        return _Kept(workshop, request, tools if request.keeps_build else []).of(box, result)


def _ask(box: DockerBox, request: InstallRequest) -> ExecResult:
    """Ask the back end what else it needs; where it builds a copy, of a copy: it may leave something behind."""
    folder = request.source
    if request.mode is BuildMode.NORMAL:
        copied = box.run(["cp", "-a", "/testbed", _COPY])
        folder = f"{_COPY}{request.source.removeprefix('/testbed')}"
        if not copied.ok:
            return copied
    variables = build_variables(request.variables, online=request.cutoff is not None)
    ask = ask_command(request.mode, request.backend, request.backend_path, _ASKED)
    return box.run(ask, env=variables, workdir=folder)


def _refused(workshop: Workshop, box: DockerBox, request: InstallRequest, result: ExecResult) -> Observation:
    reason = Reason.PROJECT_INSTALL_FAILED
    if request.cutoff is not None:
        seen = workshop.refusal(box, result, reason, _WHAT)
        return seen.model_copy(update={"network": seen.network and "denied" not in seen.payload})
    wants = wants_network(result)
    if wants and request.mode is BuildMode.COMPILED:
        reason = Reason.REBUILD_NEEDS_NETWORK
    return failed(result, reason, _WHAT, workshop.blobs, **({"wants_network": True} if wants else {}))


def _asked(box: DockerBox) -> list[Any]:
    found: Any = []
    with suppress(FileNotFoundError, ValueError):
        found = json.loads(box.read_file(_ASKED, _MAX_NOTE))
    return found if isinstance(found, list) else []


def _asks_for(workshop: Workshop, missing: tuple[str, ...], result: ExecResult) -> Observation:
    return Observation(
        outcome=Reason.PROJECT_INSTALL_FAILED.value,
        payload={"detail": f"{_WHAT}: its back end asks for more: {', '.join(missing)}", "asked": list(missing)},
        logs={"log": workshop.blobs.put(result.output)},
    )


@dataclass(frozen=True)
class _Kept:
    """From a box to the project's layer: what differs from the environment's layer and from the repository's."""

    workshop: Workshop
    request: InstallRequest
    tools: list[TarEntry]

    def of(self, box: DockerBox, result: ExecResult) -> Observation:
        shop, request = self.workshop, self.request
        with tempfile.TemporaryDirectory(dir=shop.scratch) as name:
            folder = Path(name)
            try:
                env, tree = changed_below(shop, box, (ENV, f"/{TESTBED}"), folder)
            except TooLarge:
                return too_large(result, _WHAT, shop.blobs)
            repository = load(request.tree_layer, shop.blobs, folder)
            testbed = merge(repository, apply(repository, tree))
            environment = changed_layer(env, ENV, lambda: load(request.environment, shop.blobs, folder))
            entries = [*environment, *self.tools, *testbed.entries]
            layer = store(entries, shop.blobs, folder)
        kept = (request.build_env,) if request.build_env is not None and request.keeps_build else ()
        return Observation(
            payload={
                "layers": [one.model_dump() for one in (*kept, request.tree_layer, layer)],
                "mode": request.mode.value,
                "rebuild_cmd": REBUILD if request.keeps_build else None,
                "offline": request.cutoff is None,
                "added": list(testbed.added),
                "restored": list(testbed.restored),
            },
            blobs={"layer": layer.diff_id.removeprefix("sha256:")},
            logs={"log": shop.blobs.put(result.output)},
            network=request.cutoff is not None,
        )
