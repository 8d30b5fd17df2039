"""The container of a session, and what does the model's calls in it.

It is a box like all others: not root, no capability, no mount but the proxy's, no network but the package index as of
the date. Nothing of it is kept but what the model was shown. A command that reaches a bound of the box itself (memory,
processes, disk) ends the box; the model is told, and goes on in a fresh one, a few times. Whatever a box did to the
repository is looked at when it ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from installers.agent.endings import LimitReached
from installers.agent.loop import Done
from installers.agent.seen import Seen, seen_of
from installers.agent.stand import Stand
from installers.distrust.fence import fence
from installers.distrust.tree import TreeEdit, edits
from installers.ground_image import hold
from installers.image import ensure_layers, ensure_shared, remove_image
from installers.interface import TooLarge
from installers.layer import load
from installers.project_install import Pack, Repository
from installers.testbed import version_tags
from installers.venv_layer import ENV
from installers.workshop import WORK, Workshop, export
from miner.core.errors import InfrastructureFault
from miner.core.reasons import Reason
from miner.core.records import Layer
from miner.core.settings import Agent
from miner.sandbox.container import DockerBox
from miner.sandbox.interface import ExecResult
from miner.sandbox.network import UV
from miner.sandbox.profile import CACHE

BOXES = 3
"""Containers of one session, at most."""
TESTBED = "/testbed"

_PROGRAM = "/opt/swe-miner/supervise.py"
_SUPERVISOR = Path(__file__).with_name("supervise.py")
_LOCAL = "localhost,127.0.0.1,::1"  # servers that tests start are not to be looked for by way of the proxy
_SLACK_S = 60.0
_READ_S = 30.0
_BYTES = 4  # that a character may have


@contextmanager
def room(workshop: Workshop, stand: Stand, pack: Pack, name: str) -> Iterator[Room]:
    """Open the room of a session; its boxes and its image are gone afterwards, whatever happens.

    Args:
        workshop: the tools.
        stand: what its boxes are made of.
        pack: writes the base commit's tar.
        name: of the candidate.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=workshop.scratch)))
        yield Room(workshop, stand, pack, f"agent-{name}", folder, stack)


class Room:
    """Boxes of one image, one at a time; the first one is made when it is needed."""

    def __init__(self, workshop: Workshop, stand: Stand, pack: Pack, name: str, folder: Path, stack: ExitStack) -> None:
        self._workshop = workshop
        self._stand = stand
        self._name = name
        self._stack = stack
        self._image = ""
        self._current = ExitStack()
        self._box: DockerBox | None = None
        self._made = 0
        self._edits: list[TreeEdit] = []
        self._tree = _Tree(pack, folder)

    @property
    def limits(self) -> Agent:
        """The limits of the session."""
        return self._workshop.settings.measure.model.agent

    def run(self, command: str, timeout_s: float) -> Done:
        """Run a command to its end, or for so long: then it is killed, and the box stays."""
        result, seen = self._supervised("run", command, timeout_s)
        told = fence("output", seen.shown(self.limits.output_chars))
        if result.limit is not None:
            return Done(f"{told}\n{self._ended(result)}", seconds=result.duration_s)
        code = seen.code if seen.known else result.exit_code
        if code is None:
            how = f"The command was killed, with all that it had started: it took longer than {timeout_s:g} seconds."
        else:
            how = f"The command ended with exit code {code}."
            if code != 0:
                self._workshop.egress.raise_for_faults(self._known().name)
        return Done(f"{told}\n{how}", exit_code=code, seconds=result.duration_s)

    def read(self, path: str) -> Done:
        """Read the beginning of a regular file, whatever it is called and wherever it points to."""
        place = str(PurePosixPath(TESTBED) / path)
        result, seen = self._supervised("read", place, _READ_S)
        if result.limit is not None:
            return Done(self._ended(result), seconds=result.duration_s)
        if seen.size is None:
            return Done(seen.unread(), seconds=result.duration_s)
        return Done(fence("file", seen.beginning(self.limits.output_chars)), seconds=result.duration_s)

    def edits(self) -> tuple[TreeEdit, ...]:
        """End the box, and return what the session did to the repository, as far as it could change what is tested.

        Raises:
            LimitReached: the repository has grown too large to be looked at.
        """
        self._close()
        return tuple(dict.fromkeys(self._edits))

    def _supervised(self, what: str, argument: str, timeout_s: float) -> tuple[ExecResult, Seen]:
        box = self._known()
        most = _BYTES * self.limits.output_chars
        python = self._stand.ground.python.executable  # not the one on PATH, which commands may have replaced
        command = [python, "-I", _PROGRAM, what, f"{timeout_s:.1f}", str(most), argument]
        result = box.run(command, env=self._variables(), workdir=TESTBED, timeout_s=timeout_s + _SLACK_S)
        return result, seen_of(result.output)

    def _known(self) -> DockerBox:
        if self._box is None:
            if self._made == BOXES:
                raise LimitReached(f"no recipe, and {BOXES} containers came to a bound of theirs")
            self._box = self._opened()
            self._made += 1
        return self._box

    def _opened(self) -> DockerBox:
        if not self._image:
            self._image = self._ensure_image()
            self._stack.callback(remove_image, self._workshop.client, self._image)
            self._stack.push(self._current)  # boxes go before their image
        box = self._current.enter_context(self._workshop.box(self._image, network=True, cutoff=self._stand.cutoff))
        box.put({_PROGRAM: (_SUPERVISOR.read_bytes(), 0o644)}, uid=0)
        box.put({f"{WORK}/": (b"", 0o755)})
        if self._stand.environment is None:
            executable = self._stand.ground.python.executable
            made = self._workshop.run_uv(box, ["venv", ENV, "--allow-existing", "--quiet", "--python", executable])
            if not made.ok:
                raise InfrastructureFault(f"no environment in {box.name}: {made.text}", reason=Reason.DOCKER_ERROR)
        return box

    def _ended(self, result: ExecResult) -> str:
        """Do away with a box that came to a bound; return what the model is told."""
        self._close()
        return (
            f"The container came to its limit of {result.limit} and is gone. The next call is made in a fresh one, in "
            "which nothing of what was done so far is there."
        )

    def _close(self) -> None:
        if self._box is None:
            return
        box, self._box = self._box, None
        with self._current:
            try:
                left = export(box, TESTBED, self._tree.left, self._workshop.limits)
            except TooLarge as error:
                raise LimitReached(f"no recipe, and {error}") from error
            found = edits(self._tree.base, left)
        mine = self._installed()
        self._edits += [edit for edit in found if not (edit.kind == "added" and edit.path in mine)]

    def _installed(self) -> frozenset[str]:
        """Return the paths that the installation of the project had added to the repository before the session."""
        if not self._stand.project:
            return frozenset()
        tree = load(self._stand.project[-1], self._workshop.blobs, self._tree.folder)
        return frozenset(path.removeprefix(f"{TESTBED[1:]}/") for path in tree)

    def _ensure_image(self) -> str:
        """Return the tag of the image, which the engine holds."""
        shop, stand = self._workshop, self._stand
        below, tree = stand.below(shop), stand.project or (self._tree.layer(shop, stand),)
        shared = [*([stand.environment] if stand.environment else ()), *tree[:-2]]
        notes = ["environment", "build"][: len(shared)]
        if shared:
            ensure_shared(shop, stand.ground.build, shared, notes)
        else:
            hold(shop, stand.ground.build)
        own = (*below, *shared, *tree[-2:])
        every = [*["ground"] * len(below), *notes, "tree", "project"][: len(own)]
        return ensure_layers(shop, self._name, own, every, stand.recipe.env, held=len(below) + len(shared))

    def _variables(self) -> dict[str, str]:
        python, uv = (PurePosixPath(path).parent for path in (self._stand.ground.python.executable, UV))
        return {
            **self._stand.recipe.build_env,
            "GIT_PAGER": "cat",
            "NO_COLOR": "1",
            "NO_PROXY": _LOCAL,
            "PAGER": "cat",
            "PATH": f"{ENV}/bin:{python}:/usr/local/bin:/usr/bin:/bin:{uv}",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "TERM": "dumb",
            "UV_CACHE_DIR": CACHE,
            "UV_LINK_MODE": "copy",
            "UV_NO_CONFIG": "1",
            "UV_NO_PROGRESS": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "VIRTUAL_ENV": ENV,
            "no_proxy": _LOCAL,
        }


@dataclass
class _Tree:
    """The repository at its base commit, and as a box leaves it, as files on this machine that nothing unpacks."""

    pack: Pack
    folder: Path

    @property
    def left(self) -> Path:
        """Where the tar of what a box leaves is written."""
        return self.folder / "left.tar"

    @property
    def base(self) -> Path:
        """The tar of the base commit."""
        path = self.folder / "base.tar"
        if not path.exists():
            with path.open("wb") as out:
                self.pack(out)
        return path

    def layer(self, workshop: Workshop, stand: Stand) -> Layer:
        """Keep the base commit as a layer."""
        return Repository(self.base, version_tags(stand.recipe.version_hint)).layer(workshop)
