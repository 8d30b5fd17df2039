"""From what mmdebstrap writes to the file system of the base image: pure, and the same bytes for the same packages.

Left out is what differs from machine to machine (host name, resolver, machine id, locks, logs) and what no task needs
(lists and caches of apt, translations, manuals). Licences stay. No file keeps a set-user-id bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from miner.sandbox.image_archive import TarEntry

BUILDER = 1
"""Raise when a change here changes the bytes of the image."""

UID = GID = 1000

_EMPTIED = (
    "dev",
    "proc",
    "run",
    "sys",
    "tmp",
    "usr/share/bug",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "var/cache/apt",
    "var/cache/ldconfig",
    "var/lib/apt/lists",
    "var/log",
    "var/tmp",
)
_REMOVED = frozenset(
    {
        "etc/.pwd.lock",
        "etc/apt/apt.conf.d/99mmdebstrap",
        "etc/group-",
        "etc/gshadow-",
        "etc/hostname",
        "etc/passwd-",
        "etc/resolv.conf",
        "etc/shadow-",
        "etc/subgid-",
        "etc/subuid-",
        "var/cache/debconf/config.dat-old",
        "var/cache/debconf/templates.dat-old",
        "var/lib/dbus/machine-id",
        "var/lib/dpkg/diversions-old",
        "var/lib/dpkg/lock",
        "var/lib/dpkg/lock-frontend",
        "var/lib/dpkg/status-old",
        "var/lib/dpkg/triggers/Lock",
    }
)
_DOC = "usr/share/doc/"
_STATUS = "var/lib/dpkg/status"
_ACCOUNTS = {
    "etc/passwd": f"miner:x:{UID}:{GID}::/home/miner:/bin/bash\n",
    "etc/group": f"miner:x:{GID}:\n",
    "etc/shadow": "miner:!::0:99999:7:::\n",
    "etc/gshadow": "miner:!::\n",
}
_OWNED = ("cache", "home/miner", "opt/build", "opt/env", "report", "testbed")
_GITCONFIG = b"[safe]\n\tdirectory = *\n"
_PYC_HEADER = 16
_UNCHECKED = (1).to_bytes(4, "little")


def keep(path: str) -> bool:
    """Whether a path of the fresh system belongs into the image."""
    if path in _REMOVED or any(path.startswith(f"{folder}/") for folder in _EMPTIED):
        return False
    in_package_doc = path.startswith(_DOC) and "/" in path.removeprefix(_DOC)
    return not in_package_doc or path.endswith("/copyright")


def base_entries(fresh: Iterable[TarEntry]) -> Iterator[TarEntry]:
    """Return the entries of the base image's layer, made from those that `keep` left of a fresh system."""
    ours = {entry.path: entry for entry in _additions()}
    for entry in fresh:
        if entry.path not in ours:
            yield _normalised(entry)
    yield from ours.values()


def grown_entries(fresh: Iterable[TarEntry]) -> Iterator[TarEntry]:
    """Return the entries of a system that was made from the base image's own tree by installing more packages."""
    return map(_plain, fresh)


def _normalised(entry: TarEntry) -> TarEntry:
    entry = _plain(entry)
    if entry.path in _ACCOUNTS:
        return replace(entry, content=_bytes(entry) + _ACCOUNTS[entry.path].encode())
    return entry


def _plain(entry: TarEntry) -> TarEntry:
    if entry.kind in ("file", "hardlink"):
        entry = replace(entry, mode=entry.mode & 0o1777)
    if entry.kind == "file" and entry.path.endswith(".pyc"):
        return replace(entry, content=_unchecked(_bytes(entry)))
    return entry


def _additions() -> Iterator[TarEntry]:
    yield TarEntry("etc/gitconfig", "file", content=_GITCONFIG)
    yield TarEntry("etc/machine-id", "file", mode=0o444)
    for path in _OWNED:
        yield TarEntry(path, "dir", mode=0o755, uid=UID, gid=GID)


def _bytes(entry: TarEntry) -> bytes:
    with entry.open() as stream:
        return stream.read()


def _unchecked(pyc: bytes) -> bytes:
    """Return byte code that is taken without a look at the source's time, which the layer does not keep (PEP 552)."""
    if len(pyc) < _PYC_HEADER:
        return pyc
    return pyc[:4] + _UNCHECKED + bytes(8) + pyc[_PYC_HEADER:]


def package_versions(entries: Iterable[TarEntry]) -> str:
    """Return `name version architecture` of each installed package, one a line, sorted, from dpkg's status file."""
    status = next(entry for entry in entries if entry.path == _STATUS)
    lines = []
    for paragraph in _bytes(status).decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        if "Package" in fields:
            lines.append(f"{fields['Package']} {fields['Version']} {fields['Architecture']}\n")
    return "".join(sorted(lines))
