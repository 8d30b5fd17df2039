"""A lock to a normalised layer that holds `/opt/env`: two builds from one lock have one digest.

First with wheels only and the shared cache; where a locked package has no wheel, once more with a private cache, since
building runs code of the package.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from installers.interface import TooLarge
from installers.layer import NORMALISER, normalise, store
from installers.lock import subject_of
from installers.workshop import WORK, Workshop, as_of, export, too_large
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, Layer, Observation, Producer, Record
from miner.sandbox.container import DockerBox
from miner.sandbox.image_archive import read_tar
from miner.sandbox.interface import ExecResult

PRODUCER = Producer(name="installers.environment", epoch=1)
KIND = "install.env"
ENV = "/opt/env"

_LOCK = f"{WORK}/lock.txt"
_WHAT = "installing the locked dependencies"


class EnvironmentRequest(Record):
    """Everything that an environment layer depends on.

    Attributes:
        lock: sha256 of the lock.
        cutoff: for the build requirements of locked packages without a wheel.
    """

    lock: str
    executable: str
    cutoff: datetime
    exempt: dict[str, datetime]
    base: str
    uv: str
    runtime: str | None = None
    normaliser: int = NORMALISER


def environment(workshop: Workshop, memo: Memo, request: EnvironmentRequest) -> Fact:
    """Return the fact about the environment layer of a lock."""
    inputs = {"request": request, "limits": workshop.limits}
    return memo.measure(PRODUCER, KIND, subject_of(request), inputs, lambda: build_environment(workshop, request))


def layer_of(fact: Fact) -> Layer:
    """Return the layer that a positive fact of this kind holds."""
    return Layer.model_validate(fact.payload["layer"])


def build_environment(workshop: Workshop, request: EnvironmentRequest, *, wheels_first: bool = True) -> Observation:
    """Install a lock in the sandbox and keep what it left behind.

    Args:
        workshop: the tools.
        request: what to install.
        wheels_first: try without builds, and with the shared cache, first.

    Raises:
        InfrastructureFault: the index or the engine was at fault.
    """
    if wheels_first:
        with workshop.box(workshop.base.image, network=True, cache="shared") as box:
            result = _install(workshop, box, request, ["--no-build"])
            if result.ok:
                return _kept(workshop, box, result, builds=False)
            if result.limit is not None:
                return _refused(workshop, box, result)
            workshop.raise_for_faults(box, result)
    with workshop.box(workshop.base.image, network=True) as box:
        result = _install(workshop, box, request, [])
        return _kept(workshop, box, result, builds=True) if result.ok else _refused(workshop, box, result)


def _install(workshop: Workshop, box: DockerBox, request: EnvironmentRequest, extra: Sequence[str]) -> ExecResult:
    text = workshop.blobs.get(request.lock)
    box.put({f"{WORK}/": (b"", 0o755), _LOCK: (text, 0o644)})
    made = workshop.run_uv(box, ["venv", ENV, "--allow-existing", "--quiet", "--python", request.executable])
    if not made.ok or not text.strip():
        return made
    options = ["--python", f"{ENV}/bin/python", "--require-hashes", "--no-deps", "-r", _LOCK]
    return workshop.run_uv(box, ["pip", "install", *options, *as_of(request.cutoff, request.exempt), *extra])


def _refused(workshop: Workshop, box: DockerBox, result: ExecResult) -> Observation:
    return workshop.refusal(box, result, Reason.BUILD_FAILED, _WHAT)


def _kept(workshop: Workshop, box: DockerBox, result: ExecResult, *, builds: bool) -> Observation:
    with tempfile.TemporaryDirectory(dir=workshop.scratch) as folder:
        try:
            tar = export(box, ENV, Path(folder) / "env.tar", workshop.limits)
        except TooLarge:
            return too_large(result, _WHAT, workshop.blobs)
        layer = store(normalise(read_tar(tar), "opt").values(), workshop.blobs, Path(folder))
    return Observation(
        payload={"layer": layer.model_dump(), "builds": builds},
        blobs={"layer": layer.diff_id.removeprefix("sha256:")},
        logs={"log": workshop.blobs.put(result.output)},
        network=True,
    )
