"""From a recipe to a healthy environment: lock, environment layer, then one mode after another until one is healthy.

Every attempt is a fact, and the ladder returns them in order; whether it came to an environment is computed from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from installers.environment import EnvironmentRequest, environment, layer_of
from installers.health import KIND as HEALTH
from installers.health import TestSide, health, health_request
from installers.image import image_config
from installers.lock import LockRequest, exemptions, lock
from installers.project_install import Pack, ProjectRequest, project
from installers.pythons import load_pythons
from installers.rebuild import PIP, PIP_UNTIL
from installers.workshop import Workshop, uv_version
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import BuildMode, Candidate, Environment, Fact, Recipe
from miner.core.text import patch_bytes

_WHEEL = "wheel"
_SETTLED = (Reason.NOTHING_COLLECTED, Reason.PATCH_DOES_NOT_APPLY)  # another mode would not change it
_ORDER = ("install.lock", "install.env", "install.project", HEALTH)


@dataclass(frozen=True)
class InstallCase:
    """One candidate as the installers see it.

    Attributes:
        created_at: when the change was proposed; the package index is taken as of `measure.cutoff.days_after` later.
        pack: writes a tar of the base commit with its `.git`, paths relative to its root.
        tree: id of the base commit's tree.
    """

    instance_id: str
    recipe: Recipe
    created_at: datetime
    pack: Pack
    tree: str
    side: TestSide

    @classmethod
    def of(cls, candidate: Candidate, recipe: Recipe, pack: Pack) -> InstallCase:
        """Return the case of a candidate."""
        side = TestSide(candidate.test_files, patch_bytes(candidate.test_patch), patch_bytes(candidate.patch))
        created, tree = candidate.created_at, candidate.base_tree
        return cls(candidate.instance_id, recipe, created, pack, tree, side)


@dataclass(frozen=True)
class Installed:
    """What the ladder came to: all attempts, in order."""

    facts: tuple[Fact, ...]

    @property
    def environment(self) -> Environment | None:
        """The healthy environment; None where no mode is healthy."""
        return environment_of(self.facts)

    @property
    def refusal(self) -> Fact | None:
        """Why there is no environment; None where there is one."""
        return refusal_of(self.facts)


def environment_of(trail: Iterable[Fact]) -> Environment | None:
    """Return the healthy environment that a trail of facts came to, or None."""
    healthy = [fact for fact in trail if fact.key.kind == HEALTH and fact.ok]
    return Environment.model_validate(healthy[-1].payload["environment"]) if healthy else None


def refusal_of(trail: Iterable[Fact]) -> Fact | None:
    """Return the negative fact that says why a trail came to no environment, or None.

    It is that of the attempt that came furthest; the last of equals.
    """
    facts = list(trail)
    if environment_of(facts) is not None:
        return None
    refused = [fact for fact in facts if fact.key.kind in _ORDER and not fact.ok]
    return max(reversed(refused), key=lambda fact: _ORDER.index(fact.key.kind), default=None)


def install(workshop: Workshop, memo: Memo, case: InstallCase) -> Installed:
    """Climb the ladder for one candidate.

    Only where known answers come to no environment are those of the network asked for a second time: a refusal that a
    later attempt has made good says nothing more.

    Raises:
        InfrastructureFault: the engine, the index or the disk was at fault: try again.
    """
    found = _climb(workshop, memo.patient(), case)
    return found if found.environment is not None else _climb(workshop, memo, case)


def _climb(workshop: Workshop, memo: Memo, case: InstallCase) -> Installed:
    climb = _Climb(workshop, memo, case)
    climb.run()
    return Installed(tuple(climb.facts))


class _Climb:
    """One candidate's way up the ladder."""

    def __init__(self, workshop: Workshop, memo: Memo, case: InstallCase) -> None:
        self._workshop = workshop
        self._memo = memo
        self._case = case
        self._recipe = case.recipe
        self.facts: list[Fact] = []
        rule = workshop.settings.measure.cutoff
        cutoff = (case.created_at + timedelta(days=rule.days_after)).astimezone(UTC).replace(microsecond=0)
        python = next(python for python in load_pythons() if python.version == case.recipe.python)
        self._inputs: dict[str, Any] = {
            "executable": python.executable,
            "cutoff": cutoff,
            "exempt": exemptions(cutoff, rule, python.released),
            "base": workshop.base.digest,
            "uv": uv_version(),
            "runtime": workshop.settings.docker.runtime,
        }

    def run(self) -> None:
        """Lock, install the dependencies, then try the modes until one is healthy."""
        locked = self._lock("run", self._recipe.requirements, self._inputs)
        if not locked.ok:
            return
        request = EnvironmentRequest(lock=locked.blobs["lock"], **self._inputs)
        built = self._seen(environment(self._workshop, self._memo, request))
        if not built.ok:
            return
        for mode in self._recipe.modes:
            last = self._try(mode, locked, built)
            if last.ok or last.outcome in _SETTLED:
                return

    def _try(self, mode: BuildMode, locked: Fact, built: Fact) -> Fact:
        """Install the project in one mode and examine it; the last fact says what came of it."""
        inputs = self._inputs if mode is not BuildMode.NORMAL else {**self._inputs, "exempt": _for_pip()}
        build_lock = self._lock("build", build_requirements(self._recipe, mode), inputs, mode)
        if not build_lock.ok:
            return build_lock
        request = ProjectRequest(
            mode=mode,
            environment=layer_of(built),
            tree=self._case.tree,
            project_dir=self._recipe.project_dir,
            build_env=self._recipe.build_env,
            build_lock=build_lock.blobs["lock"],
            **inputs,
        )
        done = self._seen(project(self._workshop, self._memo, self._case.instance_id, request, self._case.pack))
        return self._examine(locked, built, done) if done.ok else done

    def _examine(self, locked: Fact, built: Fact, done: Fact) -> Fact:
        own, base = (layer_of(built), layer_of(done)), self._workshop.base
        plain = Environment(
            image=image_config(base, own).image_id,
            base_digest=base.digest,
            layers=(*base.layers, *own),
            lock_sha256=locked.blobs["lock"],
            mode=BuildMode(done.payload["mode"]),
            rebuild_cmd=done.payload["rebuild_cmd"],
        )
        request = health_request(self._workshop, self._recipe, plain, self._case.side)
        return self._seen(health(self._workshop, self._memo, self._case.instance_id, request, self._case.side))

    def _lock(
        self, purpose: Any, requirements: Sequence[str], inputs: dict[str, Any], mode: BuildMode | None = None
    ) -> Fact:
        """Lock; build requirements that stay in the image must not hold a later version of the project itself."""
        request = LockRequest(purpose=purpose, requirements=tuple(requirements), **inputs)
        own = self._recipe.distribution if mode in (None, BuildMode.NORMAL) else ""
        found = lock(self._workshop, self._memo, request, name=own, version=self._recipe.version_hint)
        self.facts += found
        return found[-1]

    def _seen(self, fact: Fact) -> Fact:
        self.facts.append(fact)
        return fact


def build_requirements(recipe: Recipe, mode: BuildMode) -> tuple[str, ...]:
    """Return what is locked for building the project in a mode.

    setuptools asks for `wheel` only when it runs (before 70.1), so it is locked along; the re-install needs pip.
    """
    if mode is BuildMode.NONE:
        return ()
    wheel = (_WHEEL,) if recipe.build_backend.startswith("setuptools") else ()
    pip = (PIP,) if mode is BuildMode.NORMAL else ()
    return tuple(dict.fromkeys((*recipe.build_requirements, *wheel, *pip)))


def _for_pip() -> dict[str, datetime]:
    """A normal installation needs no back end from after the cut-off, but a pip that installs into another Python."""
    return {"pip": datetime.fromisoformat(PIP_UNTIL)}
