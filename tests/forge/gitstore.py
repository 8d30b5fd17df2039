"""Git objects and references, written directly: no process for each of them, and no working tree.

https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from forge.records import moment

_CONFIG = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
[uploadpack]
\tallowFilter = true
\tallowAnySHA1InWant = true
[gc]
\tauto = 0
"""


@dataclass(frozen=True, slots=True)
class File:
    """A file, link (mode 120000) or submodule (160000, its data being the id of a commit)."""

    data: bytes
    mode: str = "100644"


Tree: TypeAlias = Mapping[str, File]
Content: TypeAlias = "str | bytes | File | None"


def as_file(content: str | bytes | File) -> File:
    """Return what a test wrote as a file."""
    if isinstance(content, File):
        return content
    return File(content.encode() if isinstance(content, str) else content)


class GitStore:
    """A bare repository, or with no path only the ids that one would have.

    Args:
        path: its git directory, made where it is missing.
        shared: git directory of the fork network's root, whose objects are used and added to.
    """

    def __init__(self, path: Path | None, shared: Path | None = None) -> None:
        self.path = path
        self._objects = None if path is None else (shared or path) / "objects"
        self._known: set[str] = set()
        if path is not None and not (path / "HEAD").exists():
            _initialise(path, shared)

    def blob(self, data: bytes) -> str:
        return self._put("blob", data)

    def tree(self, files: Tree) -> str:
        """Write a tree with all its folders."""
        here: list[tuple[bytes, str, str]] = []
        folders: dict[str, dict[str, File]] = {}
        for path, file in files.items():
            top, sep, rest = path.partition("/")
            if sep:
                folders.setdefault(top, {})[rest] = file
            else:
                oid = file.data.decode() if file.mode == "160000" else self.blob(file.data)
                here.append((_bytes(path), file.mode, oid))
        here += [(_bytes(name), "40000", self.tree(inside)) for name, inside in folders.items()]
        here.sort(key=lambda entry: entry[0] + (b"/" if entry[1] == "40000" else b""))
        return self._put("tree", b"".join(b"%b %b\0%b" % (m.encode(), n, bytes.fromhex(o)) for n, m, o in here))

    def commit(
        self, tree: str, parents: Sequence[str], message: str, author: str, authored_at: str, committed_at: str
    ) -> str:
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
        for role, at in (("author", authored_at), ("committer", committed_at)):
            lines.append(f"{role} {author} <{author}@users.noreply.example> {int(moment(at).timestamp())} +0000")
        return self._put("commit", "\n".join([*lines, "", message]).encode(errors="surrogateescape"))

    def ref(self, name: str, oid: str | None) -> None:
        """Set a reference, or remove it (None)."""
        if self.path is None:
            return
        file = self.path / name
        if oid is None:
            file.unlink(missing_ok=True)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{oid}\n")

    def head(self, branch: str) -> None:
        """Name the default branch."""
        if self.path is not None:
            (self.path / "HEAD").write_text(f"ref: refs/heads/{branch}\n")

    def _put(self, kind: str, data: bytes) -> str:
        whole = b"%b %d\0%b" % (kind.encode(), len(data), data)
        oid = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        if self._objects is None or oid in self._known:
            return oid
        self._known.add(oid)
        file = self._objects / oid[:2] / oid[2:]
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(zlib.compress(whole, 1))
        return oid


def _initialise(path: Path, shared: Path | None) -> None:
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (path / folder).mkdir(parents=True, exist_ok=True)
    (path / "HEAD").write_text("ref: refs/heads/main\n")
    (path / "config").write_text(_CONFIG)
    if shared is not None:
        (path / "objects" / "info" / "alternates").write_text(f"{(shared / 'objects').absolute()}\n")


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogateescape")
