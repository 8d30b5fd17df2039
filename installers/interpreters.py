"""An interpreter as a layer `/opt/python/X.Y`: from the base image, a build that uv installs, or a local folder.

Nothing of a mined project is involved. What was taken is a fact, so that later runs have the same bytes wherever they
are made. The layer is tried in a box before it counts.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal

import structlog
from packaging.version import Version

from installers.ground_cache import kept
from installers.interpreter_tree import HOMES, TRIM, home_of, interpreter_tree, patchelf_version
from installers.layer import TIME, rooted, store
from installers.managed_python import managed_python
from installers.pythons import Python
from installers.workshop import Workshop, export
from miner.core.errors import InfrastructureFault
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, Layer, Observation, Producer
from miner.sandbox.container import DockerBox
from miner.sandbox.image_archive import TarEntry, deterministic_tar, read_tar
from miner.sandbox.interface import Box

PRODUCER = Producer(name="installers.interpreters", epoch=1)
KIND = "install.interpreter"

_PATCHLEVEL = re.compile(rb'#define\s+PY_VERSION\s+"([^"+]+)')
_ESSENTIAL = "bz2, ctypes, hashlib, lzma, readline, sqlite3, ssl, venv, zlib"
_SAY = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
_LDCONFIG = "/sbin/ldconfig"
_NOT_COMPILED = r"/(?:ensurepip|lib2to3|pydoc_data|site-packages|test)/"

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
    made = partial(
        kept, workshop, {"kind": KIND, "epoch": PRODUCER.epoch, **inputs}, partial(_observe, workshop, python)
    )
    return memo.measure(PRODUCER, KIND, f"python-{python.version}", inputs, made)


def interpreter_layer(fact: Fact) -> Layer | None:
    """Return the layer of an interpreter; None where the base image has it."""
    layer = fact.payload["layer"]
    return None if layer is None else Layer.model_validate(layer)


def note_of(python: Python, release: str) -> str:
    """Return what an image's history says of the layer."""
    return f"python {release} in {home_of(python.version)}"


def _observe(workshop: Workshop, python: Python) -> Observation:
    if not python.executable.startswith(f"{HOMES}/"):
        with workshop.box(workshop.base.image, network=False) as box:
            release = _tried(box, python)
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
        managed = managed_python(workshop.settings, workshop.base.architecture, python, folder / "managed")
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
    """Make the layer of an interpreter, after it has shown on the base image that it works."""
    _log.info("making the layer of an interpreter", version=python.version, release=found.release, source=found.source)
    with workshop.box(workshop.base.image, network=False) as box:
        tree = interpreter_tree(found.root, python.version, _libraries(box))
        with tempfile.TemporaryFile(dir=folder) as file:
            deterministic_tar(rooted(tree.entries), file, mtime=TIME)
            file.seek(0)
            box.put_tar("/", file)
        release = _tried(box, python)
        compiled = _compiled(workshop, box, python, folder)
    layer = store([*tree.entries, *compiled], workshop.blobs, folder)
    return Observation(
        payload={
            "source": found.source,
            "release": release,
            "layer": layer.model_dump(),
            "left_out": sorted(tree.left_out),
        },
        blobs={"layer": layer.diff_id.removeprefix("sha256:")},
    )


def _libraries(box: Box) -> frozenset[str]:
    """Return the names of the shared libraries that the base image has."""
    result = box.run([_LDCONFIG, "-p"], workdir="/")
    names = re.findall(r"^\s+(\S+) \(", result.text, re.MULTILINE)
    if not result.ok or not names:
        raise InfrastructureFault(
            f"the base image does not list its libraries: {result.text[-500:]}", reason=Reason.BASE_IMAGE_UNAVAILABLE
        )
    return frozenset(names)


def _tried(box: Box, python: Python) -> str:
    """Return the release of an interpreter in a box, which can do what builds and tests need.

    Raises:
        InfrastructureFault: it does not run there, or is another version.
    """
    result = box.run([python.executable, "-c", f"import {_ESSENTIAL}; {_SAY}"], workdir="/")
    said = result.text.strip()
    if not result.ok or not said.startswith(f"{python.version}."):
        raise InfrastructureFault(
            f"{python.executable} does not work on the base image: {said[-500:]}",
            reason=Reason.INTERPRETER_UNAVAILABLE,
        )
    return said


def _compiled(workshop: Workshop, box: DockerBox, python: Python, folder: Path) -> list[TarEntry]:
    """Compile the standard library where it lies, and return what that adds; the box is ended.

    Without it every start of a program compiles what it imports once more. The byte code names the time of its source,
    which is that of all files of a layer; the hash seed of boxes is fixed.
    """
    home = home_of(python.version)
    library = f"{home}/lib/python{python.version}"
    command = [python.executable, "-m", "compileall", "-q", "-x", _NOT_COMPILED, library]
    result = box.run(command, workdir="/", user="0:0")
    if not result.ok:
        raise InfrastructureFault(
            f"the library of {python.executable} cannot be compiled: {result.text[-500:]}",
            reason=Reason.INTERPRETER_UNAVAILABLE,
        )
    tar = export(box, library, folder / "library.tar", workshop.limits)
    above = str(PurePosixPath(library).parent).lstrip("/")
    found = (replace(entry, path=f"{above}/{entry.path}") for entry in read_tar(tar))
    return [
        replace(entry, mode=0o755 if entry.kind == "dir" else 0o644, uid=0, gid=0)
        for entry in found
        if "__pycache__" in PurePosixPath(entry.path).parts
    ]
