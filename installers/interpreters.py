"""An interpreter as a layer `/opt/python/X.Y`: from the base image, a build that uv installs, or a local folder.

Nothing of a mined project is involved. What was taken is a fact, so that later runs have the same bytes wherever they
are made. The layer is tried in a box before it counts.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import structlog
from packaging.version import Version

from installers.ground_image import hold, stand_on
from installers.interpreter_tree import HOMES, TRIM, home_of, interpreter_tree, patchelf_version
from installers.layer import store
from installers.managed_python import managed_python
from installers.pythons import Python
from installers.workshop import Workshop
from miner.core.errors import InfrastructureFault
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, Layer, Observation, Producer

PRODUCER = Producer(name="installers.interpreters", epoch=1)
KIND = "install.interpreter"

_PATCHLEVEL = re.compile(rb'#define\s+PY_VERSION\s+"([^"+]+)')
_ESSENTIAL = "bz2, ctypes, hashlib, lzma, readline, sqlite3, ssl, venv, zlib"
_SAY = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
_LDCONFIG = "/sbin/ldconfig"

_log = structlog.get_logger()


@dataclass(frozen=True)
class _Found:
    """An interpreter on this machine."""

    root: Path
    source: Literal["uv", "folder"]
    release: str


def interpreter(workshop: Workshop, memo: Memo, python: Python) -> Fact:
    """Return the fact about an interpreter: its release, where it came from and, unless the base has it, its layer.

    Raises:
        InfrastructureFault: it is not to be had here (`Reason.INTERPRETER_UNAVAILABLE`), or the engine failed.
    """
    inputs = {
        "version": python.version,
        "executable": python.executable,
        "managed": python.managed,
        "base": workshop.base.digest,
        "architecture": workshop.base.architecture,
        "trim": TRIM,
        "patchelf": patchelf_version(),
    }
    return memo.measure(PRODUCER, KIND, f"python-{python.version}", inputs, lambda: _observe(workshop, python))


def interpreter_layer(fact: Fact) -> Layer | None:
    """Return the layer of an interpreter; None where the base image has it."""
    layer = fact.payload["layer"]
    return None if layer is None else Layer.model_validate(layer)


def note_of(python: Python, release: str) -> str:
    """Return what an image's history says of the layer."""
    return f"python {release} in {home_of(python.version)}"


def _observe(workshop: Workshop, python: Python) -> Observation:
    if not python.executable.startswith(f"{HOMES}/"):
        release = _tried(workshop, workshop.base.image, python)
        return Observation(payload={"source": "base", "release": release, "layer": None, "left_out": []})
    faults: list[str] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=workshop.scratch)))
        for found in _candidates(workshop, python, folder, faults):
            try:
                return _layered(workshop, python, found, folder)
            except InfrastructureFault as fault:
                if fault.reason is not Reason.INTERPRETER_UNAVAILABLE:
                    raise
                faults.append(f"{found.source}: {fault}")
    raise InfrastructureFault(
        f"Python {python.version} is not to be had: {'; '.join(faults)}",
        reason=Reason.INTERPRETER_UNAVAILABLE,
        next_step="let uv reach its mirror (UV_PYTHON_INSTALL_MIRROR), or set paths.pythons to a folder of them",
    )


def _candidates(workshop: Workshop, python: Python, folder: Path, faults: list[str]) -> Iterator[_Found]:
    """Return where an interpreter can be taken from, in order; what is not there is noted."""
    if python.managed is None:
        faults.append("uv has no build of it")
    else:
        managed = managed_python(workshop, python, folder / "managed")
        if isinstance(managed, Path):
            yield _Found(managed, "uv", python.managed.release)
        else:
            faults.append(f"uv cannot download it: {managed}")
    local = local_pythons(workshop.settings.paths.pythons, python.version)
    if not local:
        faults.append("`paths.pythons` holds none" if workshop.settings.paths.pythons else "`paths.pythons` is not set")
    yield from (_Found(root, "folder", release) for release, root in local)


def local_pythons(folder: Path | None, version: str) -> Sequence[tuple[str, Path]]:
    """Return the releases of an interpreter in a folder of installations, the newest first, as (release, folder)."""
    found = []
    for program in sorted(folder.glob(f"*/bin/python{version}")) if folder is not None else ():
        root = program.parents[1].resolve()
        headers = (header.read_bytes() for header in root.glob(f"include/python{version}*/patchlevel.h"))
        found += [(match[1].decode(), root) for header in headers if (match := _PATCHLEVEL.search(header))]
    return sorted(set(found), key=lambda one: (Version(one[0]), str(one[1])), reverse=True)


def _layered(workshop: Workshop, python: Python, found: _Found, folder: Path) -> Observation:
    """Make the layer of an interpreter, and see that it works on the base image."""
    _log.info("making the layer of an interpreter", version=python.version, release=found.release, source=found.source)
    tree = interpreter_tree(found.root, python.version, _libraries(workshop))
    layer = store(tree.entries, workshop.blobs, folder)
    image = stand_on(workshop.base, [(layer, note_of(python, found.release))])
    release = _tried(workshop, hold(workshop, image), python)
    return Observation(
        payload={
            "source": found.source,
            "release": release,
            "layer": layer.model_dump(),
            "left_out": sorted(tree.left_out),
        },
        blobs={"layer": layer.diff_id.removeprefix("sha256:")},
    )


def _libraries(workshop: Workshop) -> frozenset[str]:
    """Return the names of the shared libraries that the base image has."""
    with workshop.box(workshop.base.image, network=False) as box:
        result = box.run([_LDCONFIG, "-p"], workdir="/")
    names = re.findall(r"^\s+(\S+) \(", result.text, re.MULTILINE)
    if not result.ok or not names:
        raise InfrastructureFault(
            f"the base image does not list its libraries: {result.text[-500:]}", reason=Reason.BASE_IMAGE_UNAVAILABLE
        )
    return frozenset(names)


def _tried(workshop: Workshop, image: str, python: Python) -> str:
    """Return the release of an interpreter in an image, which can do what builds and tests need.

    Raises:
        InfrastructureFault: it does not run there, or is another version.
    """
    with workshop.box(image, network=False) as box:
        result = box.run([python.executable, "-c", f"import {_ESSENTIAL}; {_SAY}"], workdir="/")
    said = result.text.strip()
    if not result.ok or not said.startswith(f"{python.version}."):
        raise InfrastructureFault(
            f"{python.executable} does not work on the base image: {said[-500:]}",
            reason=Reason.INTERPRETER_UNAVAILABLE,
        )
    return said
