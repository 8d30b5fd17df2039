"""One source distribution to a wheel, in a box of its own: what comes of it is kept by all that went into it.

The box has the build requirements from a lock, the tool chain, and no network. Paths and times in it are always the
same, so that a compiler writes the same bytes.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import datetime
from typing import Any

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from installers.boxes import BUILD, build_variables, put_layer, wants_network
from installers.ground_image import hold
from installers.hooks import PROGRAM, unsatisfied
from installers.sources import Source
from installers.workshop import WORK, Workshop, failed
from miner.core.hashing import sha256_bytes
from miner.core.reasons import Reason
from miner.core.records import Layer, Observation, Record
from miner.sandbox.base_image import BaseImage
from miner.sandbox.container import DockerBox

_SOURCE, _OUT, _ASKED, _HOOKS = f"{WORK}/source", f"{WORK}/dist", f"{WORK}/asked.json", f"{WORK}/offline.py"
_MAX_NOTE = 1 << 20
_WHEEL = re.compile(r"[A-Za-z0-9._+!-]+\.whl\Z")
_UNPACK = """\
import os, shutil, sys
shutil.unpack_archive(sys.argv[1], sys.argv[2])
inside = os.listdir(sys.argv[2])
print(os.path.join(sys.argv[2], inside[0]) if len(inside) == 1 else sys.argv[2], end="")
"""


class WheelRequest(Record):
    """Everything that a wheel depends on.

    Attributes:
        build_env: the layer of `/opt/build`.
        packages: name -> version of what it holds.
        base: digest of the image with the tool chain.
        cutoff: where the build is let to the package index, what that is taken as of; None: it has no network.
        program: sha256 of the build front end.
    """

    source: Source
    build_env: Layer
    packages: dict[str, str]
    python: str
    executable: str
    base: str
    runtime: str | None = None
    cutoff: datetime | None = None
    program: str = sha256_bytes(PROGRAM.encode())


def build_wheel(workshop: Workshop, image: BaseImage, request: WheelRequest) -> Observation:
    """Build in the sandbox. A negative answer may hold `asked`: build requirements that its build environment lacks."""
    online = request.cutoff is not None
    with workshop.box(hold(workshop, image), network=online, cutoff=request.cutoff) as box:
        return _Build(workshop, box, request).run()


class _Build:
    """One build in one box."""

    def __init__(self, workshop: Workshop, box: DockerBox, request: WheelRequest) -> None:
        self._workshop = workshop
        self._box = box
        self._request = request
        self._what = f"building {request.source.name} {request.source.version} from source"
        self._output = b""

    def run(self) -> Observation:
        request, box = self._request, self._box
        source = request.source
        archive = f"{WORK}/{source.filename}"
        put_layer(self._workshop, box, request.build_env)
        data = self._workshop.blobs.get(source.sha256)
        box.put({f"{WORK}/": (b"", 0o755), archive: (data, 0o644), _HOOKS: (PROGRAM.encode(), 0o644)})
        unpacked = box.run([request.executable, "-c", _UNPACK, archive, _SOURCE], workdir=WORK)
        if not unpacked.ok:
            return failed(unpacked, Reason.BUILD_FAILED, self._what, self._workshop.blobs)
        folder = unpacked.text
        if (refused := self._call("ask", _ASKED, folder)) is not None:
            return refused
        missing = unsatisfied(self._note(_ASKED), request.packages, request.python)
        if missing:
            return self._refused(f"its back end asks for more: {', '.join(missing)}", asked=list(missing))
        if (refused := self._call("build", _OUT, folder)) is not None:
            return refused
        return self._keep()

    def _call(self, action: str, to: str, folder: str) -> Observation | None:
        """Run the front end; return why that failed, or None."""
        source = self._request.source
        told = [action, "build_wheel", source.backend, json.dumps(source.backend_path), to]
        variables = build_variables({}, online=self._request.cutoff is not None)
        result = self._box.run([f"{BUILD}/bin/python", _HOOKS, *told], env=variables, workdir=folder)
        self._output += result.output
        if result.ok:
            return None
        if self._request.cutoff is not None:
            return self._workshop.refusal(self._box, result, Reason.BUILD_FAILED, self._what)
        wanted = {"wants_network": True} if wants_network(result) else {}
        return failed(result, Reason.BUILD_FAILED, self._what, self._workshop.blobs, **wanted)

    def _note(self, path: str) -> list[Any]:
        """Return a list that the front end has written; what is no list of JSON stands for an empty one."""
        found: Any = []
        with suppress(FileNotFoundError, ValueError):
            found = json.loads(self._box.read_file(path, _MAX_NOTE))
        return found if isinstance(found, list) else []

    def _keep(self) -> Observation:
        source, name = self._request.source, ""
        with suppress(FileNotFoundError, ValueError):
            name = str(json.loads(self._box.read_file(f"{_OUT}/built.json", _MAX_NOTE)))
        if not _is_wheel_of(source, name):
            return self._refused(f"its back end names {name!r} as the wheel")
        try:
            data = self._box.read_file(f"{_OUT}/{name}", self._workshop.settings.measure.archive.max_bytes)
        except FileNotFoundError:
            return self._refused("its back end leaves no wheel")
        digest = self._workshop.blobs.put(data)
        return Observation(
            payload={"filename": name, "sha256": digest, "offline": self._request.cutoff is None},
            blobs={"wheel": digest},
            logs={"log": self._workshop.blobs.put(self._output)},
            network=self._request.cutoff is not None,
        )

    def _refused(self, why: str, **more: Any) -> Observation:
        return Observation(
            outcome=Reason.BUILD_FAILED.value,
            payload={"detail": f"{self._what} failed: {why}", **more},
            logs={"log": self._workshop.blobs.put(self._output)},
        )


def _is_wheel_of(source: Source, name: str) -> bool:
    if not _WHEEL.match(name):
        return False
    try:
        return parse_wheel_filename(name)[0] == canonicalize_name(source.name)
    except InvalidWheelFilename:
        return False
