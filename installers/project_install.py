"""The project under test into its environment, in one of four ways, from a lock of its build requirements, offline.

EDITABLE: a link back to `/testbed` (PEP 660), so that an edit there is seen at once. NORMAL: a copy. COMPILED: a link,
and extension modules that are built in the tree. NONE: the tree is importable as it lies there. The build requirements
lie in `/opt/build`; where the project is installed anew after every patch (NORMAL, COMPILED), the image keeps them.

What an installation leaves behind outside `/opt/env` and `/testbed` is lost with its container. Only an EDITABLE one
whose set-up script wants more than it declares, and says so, is tried once more with the package index as of the date
in reach.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from installers.boxes import BUILD
from installers.environment import environment, environment_request, layer_of
from installers.layer import NORMALISER, store
from installers.lock import LockRequest, link_exemptions, lock
from installers.project_box import InstallRequest, install_in_box
from installers.rebuild import KEPT, build_requirements, program_of
from installers.steps import StepRequest
from installers.testbed import repository_tree, version_tags
from installers.undeclared import same_numpy
from installers.workshop import Workshop
from miner.core.memo import Memo
from miner.core.records import BuildMode, Fact, Layer, Observation, Producer, Recipe
from miner.sandbox.image_archive import read_tar

if TYPE_CHECKING:
    from installers.ground import Ground

PRODUCER = Producer(name="installers.project_install", epoch=1)
TREES = Producer(name="installers.tree", epoch=1)
KIND = "install.project"
TREE = "install.tree"

_ROUNDS = 3  # a back end may ask for more once it has what it asked for before

Pack = Callable[[BinaryIO], object]
"""Writes the tar of a repository at its base commit, with its `.git`, paths relative to its root."""


class ProjectRequest(StepRequest):
    """Everything that the installation of a project depends on.

    Attributes:
        environment: the environment's layer.
        tree: id of the base commit's tree.
        tags: of the repository's one commit.
        packages: name -> version of what the environment holds.
        requirements: of the build.
        constraints: bounds on versions of what these lead to.
        distribution: name of the project and its version, for build requirements that ask for the project itself.
    """

    mode: BuildMode
    environment: Layer
    packages: dict[str, str]
    tree: str
    tags: tuple[str, ...] = ()
    project_dir: str = ""
    build_env: dict[str, str]
    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    backend: str
    backend_path: tuple[str, ...] = ()
    distribution: str = ""
    version: str | None = None


def project_request(
    plan: LockRequest, recipe: Recipe, mode: BuildMode, *, built: Fact | Observation, tree: str
) -> ProjectRequest:
    """Return the request for a recipe's project in one mode.

    Args:
        plan: what the environment was locked from.
        recipe: what is installed.
        mode: how.
        built: the environment's layer (`install.env`).
        tree: id of the base commit's tree.
    """
    return ProjectRequest(
        mode=mode,
        environment=layer_of(built),
        packages=built.payload.get("packages", {}),
        tree=tree,
        tags=version_tags(recipe.version_hint),
        project_dir=recipe.project_dir,
        build_env=recipe.build_env,
        requirements=build_requirements(recipe, mode),
        constraints=recipe.build_constraints,
        backend=recipe.build_backend,
        backend_path=recipe.backend_path,
        distribution=recipe.distribution,
        version=recipe.version_hint,
        **plan.common,
    )


def project(
    workshop: Workshop, memo: Memo, ground: Ground, instance_id: str, request: ProjectRequest, pack: Pack
) -> list[Fact]:
    """Return the facts that lead to the project's layers in one mode; the last one is the answer.

    That is `install.project`, or the negative fact about what it is built with (`install.lock`, `install.env`).

    Raises:
        InfrastructureFault: the index, the engine or the disk was at fault.
    """
    return _Installation(workshop, memo, ground, instance_id, request, pack).run()


@dataclass(frozen=True)
class Repository:
    """A repository's tar, as a file on this machine."""

    tar: Path
    tags: tuple[str, ...]

    def layer(self, workshop: Workshop) -> Layer:
        """Keep it as a layer."""
        return store(repository_tree(read_tar(self.tar), self.tags).values(), workshop.blobs, workshop.scratch)


class _Installation:
    """One project in one mode."""

    def __init__(
        self, workshop: Workshop, memo: Memo, ground: Ground, instance_id: str, request: ProjectRequest, pack: Pack
    ) -> None:
        self._workshop = workshop
        self._memo = memo
        self._ground = ground
        self._instance_id = instance_id
        self._request = request
        self._pack = pack
        self._facts: list[Fact] = []

    def run(self) -> list[Fact]:
        """Lock and make what it is built with, then install; again where its back end asks for more."""
        if self._request.mode is BuildMode.NONE:
            self._install(None, {}, None)
            return self._facts
        wanted = self._request.requirements
        for _ in range(_ROUNDS):
            tools = self._tools(wanted)
            if tools is None:
                return self._facts
            layer, packages = tools
            last = self._install(layer, packages, None)
            asked = tuple(last.payload.get("asked", ()))
            if not asked:
                break
            wanted = tuple(dict.fromkeys((*wanted, *asked)))
        if last.payload.get("wants_network") and self._request.mode is BuildMode.EDITABLE:
            self._install(layer, packages, self._request.cutoff)
        return self._facts

    def _tools(self, wanted: tuple[str, ...]) -> tuple[Layer, dict[str, str]] | None:
        """Return the layer of `/opt/build` and what it holds, None where there is none.

        What stays in the image must not hold a later version of the project itself.
        """
        request = self._request
        own = request.distribution if request.mode in KEPT else ""
        for bounds in dict.fromkeys((same_numpy(wanted, request.packages), ())):
            constraints = (*request.constraints, *bounds)
            plan = LockRequest(purpose="build", requirements=wanted, constraints=constraints, **self._common())
            self._facts += lock(self._workshop, self._memo, self._ground, plan, name=own, version=request.version)
            locked = self._facts[-1]
            if locked.ok:
                break
        if not locked.ok:
            return None
        tools = environment_request(plan, locked, BUILD)
        self._facts += environment(self._workshop, self._memo, self._ground, tools)
        return (layer_of(self._facts[-1]), tools.packages) if self._facts[-1].ok else None

    def _common(self) -> dict[str, Any]:
        """Return what all steps share, with what links the project to its tree exempt from the cut-off."""
        request, rule = self._request, self._workshop.settings.measure.cutoff
        links = {} if request.mode is BuildMode.NORMAL else link_exemptions(request.cutoff, rule)
        return {**request.common, "exempt": {**links, **request.exempt}}

    def _install(self, build_env: Layer | None, packages: dict[str, str], cutoff: datetime | None) -> Fact:
        request, shop = self._request, self._workshop
        tree = self._tree()
        asked = InstallRequest(
            mode=request.mode,
            environment=request.environment,
            build_env=build_env,
            packages=packages,
            tree=request.tree,
            tree_layer=tree,
            tags=request.tags,
            project_dir=request.project_dir,
            variables=request.build_env,
            backend=request.backend,
            backend_path=request.backend_path,
            python=request.python,
            base=request.base,
            runtime=request.runtime,
            cutoff=cutoff,
        )

        def run() -> Observation:
            if asked.build_env is None:
                return _unchanged(shop, asked)
            return install_in_box(shop, self._ground.task, asked)

        inputs = {"request": asked, "limits": shop.limits, "program": program_of(asked.script)}
        self._facts.append(self._memo.measure(PRODUCER, KIND, self._instance_id, inputs, run))
        return self._facts[-1]

    def _tree(self) -> Layer:
        """Return the repository's layer, a fact of its own: every mode has the same one."""
        inputs: Mapping[str, Any] = {
            "tree": self._request.tree,
            "tags": self._request.tags,
            "normaliser": NORMALISER,
        }

        def run() -> Observation:
            layer = self._packed()
            return Observation(
                payload={"layer": layer.model_dump()}, blobs={"layer": layer.diff_id.removeprefix("sha256:")}
            )

        fact = self._memo.measure(TREES, TREE, self._instance_id, inputs, run)
        if fact not in self._facts:
            self._facts.append(fact)
        return layer_of(fact)

    def _packed(self) -> Layer:
        with _folder(self._workshop) as folder:
            tar = folder / "repository.tar"
            with tar.open("wb") as out:
                self._pack(out)
            return Repository(tar, self._request.tags).layer(self._workshop)


def _unchanged(workshop: Workshop, request: InstallRequest) -> Observation:
    """The tree as it is: what the tests import lies in their working folder."""
    layer = store((), workshop.blobs, workshop.scratch)
    return Observation(
        payload={
            "layers": [request.tree_layer.model_dump(), layer.model_dump()],
            "mode": request.mode.value,
            "rebuild_cmd": None,
            "offline": True,
            "added": [],
            "restored": [],
        },
        blobs={"layer": layer.diff_id.removeprefix("sha256:")},
    )


@contextmanager
def _folder(workshop: Workshop) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=workshop.scratch) as name:
        yield Path(name)
