"""What of a repository goes into an image, as a tar file: the same bytes for the same commit on every machine.

The pack and the index are written here and not by git: git's own depend on the versions of git and zlib.
Formats: https://git-scm.com/docs/gitformat-pack and https://git-scm.com/docs/gitformat-index.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from miner.core.errors import InfrastructureFault
from miner.crawlers.git_repo import ATTRIBUTES, GitRepo, TreeFile, hostile_path, object_id

BRANCH = "main"
_STORED = 0xFFFF  # the longest stored block of DEFLATE (RFC 1951, 3.2.4)
_LATEST = 2**31 - 2  # the index holds times in 32 bits, and the file system of an image may have 31 of them
_ASSUME_VALID = 0x8000
_COMMITTED = re.compile(rb"^committer .* (-?\d+) [-+]\d+$", re.MULTILINE)
_TYPES = {"commit": 1, "tree": 2, "blob": 3}
# Only time and size of a file are compared, whole seconds: all that a tar file can carry into an image.
_GIT_CONFIG = b"""[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
\ttrustctime = false
\tcheckStat = minimal
"""
# What installing and testing leave behind; a tracked file is never ignored.
_EXCLUDE = b"""__pycache__/
*.py[cod]
*.so
*.egg-info/
.eggs/
/build/
.pytest_cache/
.hypothesis/
.coverage
"""


@dataclass(frozen=True)
class _Object:
    kind: str
    data: bytes


class _Tar:
    """A deterministic tar file: sorted by its writer, one owner, one time."""

    def __init__(self, out: BinaryIO, owner: tuple[int, int]) -> None:
        self._owner = owner
        # GNU: a name keeps its bytes, whatever they are
        self._tar = tarfile.open(  # noqa: SIM115 - closed by `close`
            fileobj=out, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
        )
        self._folders: set[str] = set()

    def add(self, path: str, mode: str, data: bytes, mtime: int) -> None:
        """Write a file or link, and before it the folders above it that are not written yet."""
        self.folder(path.rpartition("/")[0], mtime)
        info = self._info(path, mtime, 0o755 if mode == "100755" else 0o644)
        if mode == "120000":
            info.type, info.mode = tarfile.SYMTYPE, 0o777
            info.linkname = data.decode("utf-8", "surrogateescape")
            self._tar.addfile(info)
        else:
            info.size = len(data)
            self._tar.addfile(info, io.BytesIO(data))

    def folder(self, path: str, mtime: int) -> None:
        """Write a folder and those above it."""
        if not path or path in self._folders:
            return
        self.folder(path.rpartition("/")[0], mtime)
        self._folders.add(path)
        info = self._info(path, mtime, 0o755)
        info.type = tarfile.DIRTYPE
        self._tar.addfile(info)

    def _info(self, path: str, mtime: int, mode: int) -> tarfile.TarInfo:
        info = tarfile.TarInfo(path)
        info.uid, info.gid = self._owner
        info.mtime, info.mode = mtime, mode
        return info

    def close(self) -> None:
        """Write the end of the archive."""
        self._tar.close()


def pack_single_commit(repo: GitRepo, commit: str, out: BinaryIO, *, owner: tuple[int, int] = (0, 0)) -> None:
    """Write a work tree and its `.git` as a tar file: this one commit, no remote, no reflog, nothing before or after.

    A commit that has parents is the first one of a shallow repository
    (https://git-scm.com/docs/gitrepository-layout#Documentation/gitrepository-layout.txt-shallow).
    `git status` is clean at once where the files keep the times that the tar file gives them. The tree's own attributes
    are overruled by `.git/info/attributes`, so that a patch meets the exact bytes. A submodule is an empty folder.
    Files whose contents are absent from the repository are left out, and git does not look for them.

    Args:
        repo: where the commit is.
        commit: its id.
        out: takes the bytes.
        owner: user and group id of everything in the tar file.

    Raises:
        InfrastructureFault: an object is missing or damaged, or a path leads out of the work tree or into `.git`.
    """
    files, listed = repo.files(commit), repo.entries(commit)
    hostile = hostile_path(listed)
    if hostile is not None:
        raise InfrastructureFault(f"commit {commit} cannot be unpacked: {hostile}")
    objects = _objects(repo, commit, files)
    header = objects[commit].data.partition(b"\n\n")[0]
    when = _time_of(header)
    tar = _Tar(out, owner)
    pack, pack_index, name = _pack(objects)
    inside = {
        "HEAD": f"ref: refs/heads/{BRANCH}\n".encode(),
        "config": _GIT_CONFIG,
        "index": _index(listed, objects, when),
        "info/attributes": ATTRIBUTES,
        "info/exclude": _EXCLUDE,
        f"objects/pack/pack-{name}.idx": pack_index,
        f"objects/pack/pack-{name}.pack": pack,
        f"refs/heads/{BRANCH}": f"{commit}\n".encode(),
    }
    if b"\nparent " in header:
        inside["shallow"] = f"{commit}\n".encode()
    # One second younger than the files: an index as old as a file makes git read that file again.
    for path, data in inside.items():
        tar.add(f".git/{path}", "100644", data, when + 1)
    for file in files:
        if file.is_submodule:
            tar.folder(file.path, when)
        else:
            tar.add(file.path, file.mode, objects[file.oid].data, when)
    tar.close()


def _time_of(header: bytes) -> int:
    """Return when a commit was made, as far as an index can hold it."""
    found = _COMMITTED.search(header)
    return min(max(int(found[1]), 0), _LATEST) if found else 0


def _objects(repo: GitRepo, commit: str, files: Iterable[TreeFile]) -> Mapping[str, _Object]:
    """Return every object of a commit by its id, which the kind and the bytes to be packed are checked against."""
    listed = repo.run("ls-tree", "-r", "-t", "-d", "-z", "--full-tree", commit).split(b"\0")
    kinds = (line.split()[1:3] for line in listed if line)
    trees = [repo.tree_of(commit), *(oid.decode() for kind, oid in kinds if kind == b"tree")]
    found = {commit: _Object("commit", repo.objects([commit])[0])}
    found.update({oid: _Object("tree", data) for oid, data in zip(trees, repo.objects(trees), strict=True)})
    found.update({file.oid: _Object("blob", data) for file, data in repo.blobs(files)})
    for oid, item in found.items():
        if object_id(item.kind, item.data) != oid:
            raise InfrastructureFault(f"object {oid} in {repo.path.name} is no {item.kind}")
    return found


def _pack(objects: Mapping[str, _Object]) -> tuple[bytes, bytes, str]:
    """Return a pack, its index (version 2) and the name of both."""
    pack = bytearray(b"PACK" + struct.pack(">LL", 2, len(objects)))
    offsets: dict[str, int] = {}
    checks: dict[str, int] = {}
    for oid in sorted(objects):
        item = objects[oid]
        packed = _size_header(_TYPES[item.kind], len(item.data)) + _stored(item.data)
        offsets[oid], checks[oid] = len(pack), zlib.crc32(packed)
        pack += packed
    pack += hashlib.sha1(pack, usedforsecurity=False).digest()
    counts = [sum(int(oid[:2], 16) <= first for oid in objects) for first in range(256)]
    index = bytearray(b"\377tOc" + struct.pack(">L", 2) + struct.pack(">256L", *counts))
    index += b"".join(bytes.fromhex(oid) for oid in offsets)
    index += b"".join(struct.pack(">L", check) for check in checks.values())
    index += b"".join(struct.pack(">L", offset) for offset in offsets.values())
    index += pack[-20:]
    index += hashlib.sha1(index, usedforsecurity=False).digest()
    return bytes(pack), bytes(index), pack[-20:].hex()


def _size_header(kind: int, size: int) -> bytes:
    """Return the head of a packed object: its type and size in groups of 4, then 7 bits."""
    byte, size = kind << 4 | size & 15, size >> 4
    head = bytearray()
    while size:
        head.append(byte | 128)
        byte, size = size & 127, size >> 7
    head.append(byte)
    return bytes(head)


def _stored(data: bytes) -> bytes:
    """Return a zlib stream (RFC 1950) that holds the data as it is."""
    return b"\x78\x01" + b"".join(_blocks(data)) + struct.pack(">L", zlib.adler32(data))


def _blocks(data: bytes) -> Iterator[bytes]:
    for start in range(0, max(len(data), 1), _STORED):
        block = data[start : start + _STORED]
        last = start + _STORED >= len(data)
        yield struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF) + block


def _index(files: Iterable[TreeFile], objects: Mapping[str, _Object], when: int) -> bytes:
    """Return an index (version 2) that says of each file what the tar file makes true."""
    ordered = sorted(files, key=lambda file: file.path.encode("utf-8", "surrogateescape"))
    index = bytearray(b"DIRC" + struct.pack(">LL", 2, len(ordered)))
    for file in ordered:
        path = file.path.encode("utf-8", "surrogateescape")
        size = len(objects[file.oid].data) if file.oid in objects else 0
        flags = min(len(path), 0xFFF)
        if file.oid not in objects and not file.is_submodule:
            flags |= _ASSUME_VALID
        stat = (when, 0, when, 0, 0, 0, int(file.mode, 8), 0, 0, size)
        entry = struct.pack(">10L", *stat) + bytes.fromhex(file.oid) + struct.pack(">H", flags) + path
        index += entry + b"\0" * (8 - len(entry) % 8)
    index += hashlib.sha1(index, usedforsecurity=False).digest()
    return bytes(index)
