"""A lock to the layer of an environment, and before that what of the lock has to be built to wheels.

A wheel that was built once is built nowhere again, whatever environment asks for it. It is built without network from a
lock of its own; only where its set-up script wants more than it declares, and says so, it is built once more with the
package index as of the date in reach, which the fact tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from installers.boxes import BUILD
from installers.hooks import is_setuptools
from installers.lock import LockRequest, lock
from installers.sources import Source
from installers.steps import StepRequest, subject_of
from installers.undeclared import lacking, same_numpy
from installers.venv_layer import ENV, VenvRequest, Wheel, make_venv
from installers.wheels import WheelRequest, build_wheel
from installers.workshop import Workshop
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, Layer, Observation, Producer

if TYPE_CHECKING:
    from installers.ground import Ground

PRODUCER = Producer(name="installers.environment", epoch=1)
WHEELS = Producer(name="installers.wheels", epoch=1)
KIND = "install.env"
WHEEL = "install.wheel"

_ROUNDS = 5  # a build may lack more once it has what it lacked before
_DEPTH = 3  # what builds a package may have to be built itself


class EnvironmentRequest(StepRequest):
    """Everything that an environment depends on.

    Attributes:
        lock: sha256 of the lock.
        packages: name -> version of what it holds.
        sources: what of it has to be built.
        constraints: bounds on versions of what that is built with.
        path: where the environment lies.
    """

    lock: str
    packages: dict[str, str]
    sources: tuple[Source, ...] = ()
    constraints: tuple[str, ...] = ()
    path: str = ENV


def environment_request(plan: LockRequest, locked: Fact, path: str = ENV) -> EnvironmentRequest:
    """Return the request for the environment of a lock.

    Args:
        plan: what was locked.
        locked: the positive answer.
        path: where the environment lies.
    """
    return EnvironmentRequest(
        lock=locked.blobs["lock"],
        packages=locked.payload["packages"],
        sources=tuple(Source.model_validate(source) for source in locked.payload["sources"]),
        constraints=plan.build_constraints if plan.purpose == "run" else plan.constraints,
        path=path,
        **plan.common,
    )


def layer_of(seen: Fact | Observation) -> Layer:
    """Return the layer that a positive fact of this kind holds."""
    return Layer.model_validate(seen.payload["layer"])


def environment(workshop: Workshop, memo: Memo, ground: Ground, request: EnvironmentRequest) -> list[Fact]:
    """Return the facts that lead to the layer of an environment; the last one is the answer, `install.env`.

    Raises:
        InfrastructureFault: the index or the engine was at fault.
    """
    made = _Environments(workshop, memo, ground).make(request, _DEPTH)
    return list({fact.key: fact for fact in made}.values())


@dataclass(frozen=True)
class _Environments:
    """Makes environments, and those that their packages are built in."""

    workshop: Workshop
    memo: Memo
    ground: Ground

    def make(self, request: EnvironmentRequest, depth: int) -> list[Fact]:
        facts: list[Fact] = []
        wheels = []
        for source in request.sources:
            facts += self._wheel(request, source, depth)
            if not facts[-1].ok:
                return [*facts, self._failed(request, facts[-1])]
            wheels.append(_wheel_of(source, facts[-1]))
        asked = VenvRequest(
            lock=request.lock,
            wheels=tuple(wheels),
            path=request.path,
            executable=request.executable,
            base=request.base,
            uv=request.uv,
            runtime=request.runtime,
        )
        inputs = {"request": asked, "limits": self.workshop.limits}
        subject = subject_of("env", asked)

        def run() -> Observation:
            return make_venv(self.workshop, self.ground.task, asked)

        return [*facts, self.memo.measure(PRODUCER, KIND, subject, inputs, run)]

    def _failed(self, request: EnvironmentRequest, fact: Fact) -> Fact:
        """An environment that lacks a wheel is a negative one, with the log of that build."""
        inputs = {"request": request, "refused": fact.key}

        def run() -> Observation:
            payload = {"detail": fact.payload["detail"], "wheel": fact.key.subject}
            code = fact.outcome if fact.key.kind == WHEEL or _is_bound(fact) else Reason.BUILD_FAILED.value
            return Observation(outcome=code, payload=payload, logs=fact.logs, network=fact.network)

        return self.memo.measure(PRODUCER, KIND, subject_of("env", request), inputs, run)

    def _wheel(self, request: EnvironmentRequest, source: Source, depth: int) -> list[Fact]:
        """Return the facts that lead to a wheel; the last one is the answer."""
        facts: list[Fact] = []
        wanted = build_requirements_of(source)
        for _ in range(_ROUNDS):
            plan, locked = self._build_lock(request, wanted)
            facts += locked
            if not facts[-1].ok:
                return facts
            tools = environment_request(plan, facts[-1], BUILD)
            if tools.sources and depth == 0:
                return [*facts, self._measure(source, tools, None, None)]
            facts += self.make(tools, depth - 1)
            if not facts[-1].ok:
                return facts
            layer = layer_of(facts[-1])
            facts.append(self._measure(source, tools, layer, None))
            asked = tuple(text for text in self._wanted_more(facts[-1]) if text not in wanted)
            if not asked:
                break
            wanted = tuple(dict.fromkeys((*wanted, *asked)))
        if facts[-1].payload.get("wants_network"):
            facts.append(self._measure(source, tools, layer, request.cutoff))
        return facts

    def _build_lock(self, request: EnvironmentRequest, wanted: tuple[str, ...]) -> tuple[LockRequest, list[Fact]]:
        """Lock what a package is built with; with the numpy that it will run with, where that can be."""
        same = same_numpy(wanted, request.packages)
        facts: list[Fact] = []
        for bounds in dict.fromkeys((same, ())):
            constraints = (*request.constraints, *bounds)
            plan = LockRequest(purpose="build", requirements=wanted, constraints=constraints, **request.common)
            facts += lock(self.workshop, self.memo, self.ground, plan, name="", version=None)
            if facts[-1].ok:
                break
        return plan, facts

    def _wanted_more(self, fact: Fact) -> tuple[str, ...]:
        """Return what a build lacks: what its back end asks for, or what its set-up script imports."""
        if fact.ok:
            return ()
        if asked := fact.payload.get("asked"):
            return tuple(asked)
        needed = lacking(self.workshop.blobs.get_text(fact.logs["log"])) if "log" in fact.logs else None
        return (needed,) if needed else ()

    def _measure(self, source: Source, tools: EnvironmentRequest, layer: Layer | None, cutoff: datetime | None) -> Fact:
        asked = WheelRequest(
            source=source,
            build_env=layer or Layer(diff_id="", size=0),
            packages=tools.packages,
            python=tools.python,
            executable=tools.executable,
            base=tools.build,
            runtime=tools.runtime,
            cutoff=cutoff,
        )
        inputs: dict[str, Any] = {"request": asked, "limits": self.workshop.limits}

        def run() -> Observation:
            if layer is None:
                detail = f"building {source.name} {source.version} from source failed: what builds it has to be built"
                return Observation(outcome=Reason.BUILD_FAILED.value, payload={"detail": f"{detail} itself, and so on"})
            return build_wheel(self.workshop, self.ground.build, asked)

        return self.memo.measure(WHEELS, WHEEL, subject_of("wheel", asked), inputs, run)


def build_requirements_of(source: Source) -> tuple[str, ...]:
    """Return what is locked for building a source distribution; setuptools asks for `wheel` only when it runs."""
    wheel = ("wheel",) if is_setuptools(source.backend) else ()
    return tuple(dict.fromkeys((*source.requires, *wheel)))


def _wheel_of(source: Source, fact: Fact) -> Wheel:
    return Wheel(name=source.name, filename=fact.payload["filename"], sha256=fact.payload["sha256"])


def _is_bound(fact: Fact) -> bool:
    return fact.outcome in (Reason.BUILD_TIMEOUT, Reason.BUILD_LIMIT)
