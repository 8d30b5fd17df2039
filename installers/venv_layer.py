"""A lock to a normalised layer that holds a virtual environment: two builds from one lock have one digest.

Everything comes from wheels: those of the index, and those that were built here from source distributions of the lock.
No code of packages runs, so the shared cache is used.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from packaging.utils import canonicalize_name

from installers.ground_image import hold
from installers.interface import TooLarge
from installers.layer import NORMALISER, normalise, store
from installers.workshop import WORK, Workshop, export, too_large
from miner.core.reasons import Reason
from miner.core.records import Observation, Record
from miner.sandbox.base_image import BaseImage
from miner.sandbox.container import DockerBox
from miner.sandbox.image_archive import read_tar
from miner.sandbox.interface import ExecResult

ENV = "/opt/env"

_LOCK = f"{WORK}/lock.txt"
_PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==(\S+)", re.MULTILINE)
_BLOCK = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==.*\n(?:[ \t].*\n)*", re.MULTILINE)


class Wheel(Record):
    """A wheel that was built here; its bytes are a blob."""

    name: str
    filename: str
    sha256: str


class VenvRequest(Record):
    """Everything that the layer depends on: no date, for the lock says it all.

    Attributes:
        lock: sha256 of the lock.
        wheels: of its packages that the index has no wheel of.
        path: where the environment lies.
        base: digest of the image in which it is made.
    """

    lock: str
    wheels: tuple[Wheel, ...] = ()
    path: str = ENV
    executable: str
    base: str
    uv: str
    runtime: str | None = None
    normaliser: int = NORMALISER


def make_venv(workshop: Workshop, image: BaseImage, request: VenvRequest) -> Observation:
    """Install a lock in the sandbox and keep what comes of it.

    Raises:
        InfrastructureFault: the index or the engine was at fault.
    """
    what = "installing the locked dependencies" if request.path == ENV else "installing the build requirements"
    with workshop.box(hold(workshop, image), network=True, cache="shared") as box:
        result = _install(workshop, box, request)
        if not result.ok:
            return workshop.refusal(box, result, Reason.BUILD_FAILED, what)
        with tempfile.TemporaryDirectory(dir=workshop.scratch) as folder:
            try:
                tar = export(box, request.path, Path(folder) / "env.tar", workshop.limits)
            except TooLarge:
                return too_large(result, what, workshop.blobs)
            layer = store(normalise(read_tar(tar), "opt").values(), workshop.blobs, Path(folder))
    return Observation(
        payload={"layer": layer.model_dump(), "packages": packages(workshop.blobs.get_text(request.lock))},
        blobs={"layer": layer.diff_id.removeprefix("sha256:")},
        logs={"log": workshop.blobs.put(result.output)},
        network=True,
    )


def _install(workshop: Workshop, box: DockerBox, request: VenvRequest) -> ExecResult:
    text = with_wheels(workshop.blobs.get(request.lock).decode(), request.wheels)
    files = {f"{WORK}/": (b"", 0o755), _LOCK: (text.encode(), 0o644)}
    for wheel in request.wheels:
        path = path_of(wheel)
        files |= {f"{path.rpartition('/')[0]}/": (b"", 0o755), path: (workshop.blobs.get(wheel.sha256), 0o644)}
    box.put(files)
    made = workshop.run_uv(box, ["venv", request.path, "--allow-existing", "--quiet", "--python", request.executable])
    if not made.ok or not text.strip():
        return made
    options = ["--python", f"{request.path}/bin/python", "--require-hashes", "--no-deps", "--no-build", "-r", _LOCK]
    return workshop.run_uv(box, ["pip", "install", *options])


def path_of(wheel: Wheel) -> str:
    """Return where a wheel lies in a box: uv's cache goes by paths, and no two wheels may share one."""
    return f"{WORK}/wheels-{wheel.sha256}/{wheel.filename}"


def with_wheels(lock: str, wheels: Sequence[Wheel]) -> str:
    """Return a lock that takes these wheels, by their own hash, in the place of what it has for their packages."""
    ours = {wheel.name for wheel in wheels}
    kept = _BLOCK.sub(lambda found: "" if canonicalize_name(found[1]) in ours else found[0], lock)
    return kept + "".join(f"{one.name} @ file://{path_of(one)} --hash=sha256:{one.sha256}\n" for one in wheels)


def packages(lock: str) -> dict[str, str]:
    """Return name -> version of every pin in a lock."""
    return {canonicalize_name(name): version for name, version in _PINNED.findall(lock)}
