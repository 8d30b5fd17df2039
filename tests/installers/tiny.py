"""Environments of a few files, put together without a package index: the pytest of this machine on the base image."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import distribution

from installers.layer import store
from installers.rebuild import KEPT
from installers.workshop import Workshop
from miner.core.records import BuildMode, Environment, Recipe
from miner.sandbox.image_archive import TarEntry

_SITE = "opt/env/lib/python3.11/site-packages"
_OWNER = 1000


def environment_of(
    workshop: Workshop, files: Mapping[str, str], mode: BuildMode = BuildMode.EDITABLE, rebuild_cmd: str | None = None
) -> Environment:
    """Return an environment in which `/testbed` holds these files and `src` is importable."""
    link = TarEntry("opt/env/bin/python", "symlink", 0o777, _OWNER, _OWNER, link="/usr/bin/python3")
    python = {**_pytest(), "opt/env/pyvenv.cfg": b"home = /usr/bin\n", f"{_SITE}/project.pth": b"/testbed/src\n"}
    parts = (
        [*_entries(python), link],
        *([_entries({"opt/build/.keep": b""})] if mode in KEPT else ()),
        _entries({f"testbed/{path}": text.encode() for path, text in files.items()}),
        _entries({"testbed/.keep": b""}),
    )
    own = tuple(store(entries, workshop.blobs, workshop.scratch) for entries in parts)
    return Environment(
        image="",
        base_digest=workshop.base.digest,
        layers=(*workshop.base.layers, *own),
        lock_sha256="0" * 64,
        mode=mode,
        rebuild_cmd=rebuild_cmd,
    )


def recipe_of(**changes) -> Recipe:
    plain = Recipe(python="3.11", build_backend="x", distribution="shop", top_level=("shop",), source_root="src")
    return plain.model_copy(update=changes)


def patch_of(before: Mapping[str, str], after: Mapping[str, str]) -> bytes:
    """Return git's diff from one set of files to another, each replaced as a whole."""
    parts = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old != new:
            parts.append(_diff(path, old, new))
    return "".join(parts).encode()


def _diff(path: str, old: str | None, new: str | None) -> str:
    lines = [f"-{line}" for line in (old or "").splitlines()], [f"+{line}" for line in (new or "").splitlines()]
    kind = "new file mode 100644\n" if old is None else "deleted file mode 100644\n" if new is None else ""
    names = "/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}"
    counts = f"@@ -{min(len(lines[0]), 1)},{len(lines[0])} +{min(len(lines[1]), 1)},{len(lines[1])} @@"
    head = f"diff --git a/{path} b/{path}\n{kind}--- {names[0]}\n+++ {names[1]}\n{counts}\n"
    return head + "".join(f"{line}\n" for line in (*lines[0], *lines[1]))


def _pytest() -> dict[str, bytes]:
    """Pytest of this environment; pure Python, so that it runs in the image as well."""
    found: dict[str, bytes] = {}
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        for path in distribution(name).files or ():
            if ".." not in path.parts and path.suffix != ".pyc":
                found[f"{_SITE}/{path}"] = path.read_binary()
    return found


def _entries(files: Mapping[str, bytes]) -> list[TarEntry]:
    """Return the entries of files and of the folders above them that are not root's."""
    folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
    own = [TarEntry(path, "dir", 0o755, _OWNER, _OWNER) for path in sorted(folders - {"opt"})]
    return [*own, *(TarEntry(path, "file", 0o644, _OWNER, _OWNER, content=data) for path, data in files.items())]
