"""What becomes of `/testbed` when a project has been installed from it.

The repository is taken as the crawler made it, byte for byte, whatever an installation did to it: a build script cannot
rewrite a tracked file, plant history or leave a hook. Only what the installation added is kept, and named in
`.git/info/exclude`, so that the working tree is clean (gitignore documentation, "PATTERN FORMAT").
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from installers.layer import OWNER, Tree, content_digest, plain, read
from miner.sandbox.image_archive import TarEntry

TESTBED = "testbed"

_EXCLUDE = f"{TESTBED}/.git/info/exclude"
_SPECIAL = re.compile(r"([\\*?\[\] ])")
_LEFT_OUT = frozenset({"__pycache__", ".pytest_cache"})


@dataclass(frozen=True)
class Testbed:
    """The `/testbed` of an image.

    Attributes:
        entries: all of it, for a layer.
        added: topmost paths that the installation added, relative to the repository; a folder ends with "/".
        restored: tracked paths that the installation had changed or removed.
    """

    __test__ = False

    entries: tuple[TarEntry, ...]
    added: tuple[str, ...]
    restored: tuple[str, ...]


def merge(repository: Iterable[TarEntry], exported: Iterable[TarEntry]) -> Testbed:
    """Combine the repository with what an installation added to it.

    Args:
        repository: the tree with its `.git`, paths relative to the repository.
        exported: the folder as it was after the installation, paths beginning with `testbed`.
    """
    tracked = _with_folders({f"{TESTBED}/{entry.path}": entry for entry in repository})
    left = {entry.path: entry for entry in exported}
    merged: Tree = {path: plain(_at(entry, path)) for path, entry in tracked.items()}
    added: list[str] = []
    for path in sorted(left):
        if path in merged or not _is_kept(path, left[path]) or not _fits(path, merged):
            continue
        merged[path] = plain(_own_bytes(left, path))
        if str(PurePosixPath(path).parent) in tracked:
            added.append(path.removeprefix(f"{TESTBED}/") + ("/" if left[path].kind == "dir" else ""))
    before = read(merged[_EXCLUDE]) if _EXCLUDE in merged else b""
    _put(
        merged,
        _EXCLUDE,
        before + "".join(f"{pattern(path)}\n" for path in added).encode("utf-8", "surrogateescape"),
    )
    restored = (path.removeprefix(f"{TESTBED}/") for path in tracked if _changed(path, tracked[path], left))
    return Testbed(tuple(merged.values()), tuple(added), tuple(sorted(restored)))


def _with_folders(tree: Tree) -> Tree:
    """Add the folders that the entries lie in, where they are not entries themselves."""
    folders = {str(parent) for path in tree for parent in PurePosixPath(path).parents} - {"."}
    made = {folder: TarEntry(folder, "dir") for folder in folders if folder not in tree}
    return {**made, **tree}


def _at(entry: TarEntry, path: str) -> TarEntry:
    link = f"{TESTBED}/{entry.link}" if entry.kind == "hardlink" else entry.link
    return TarEntry(path, entry.kind, entry.mode, link=link, content=entry.content, size=entry.size)


def _own_bytes(left: Tree, path: str) -> TarEntry:
    """A hard link that was added becomes a file of its own: what it points to may be replaced by the tracked file."""
    entry = left[path]
    return _at(left[entry.link], path) if entry.kind == "hardlink" and entry.link in left else entry


def _is_kept(path: str, entry: TarEntry) -> bool:
    parts = PurePosixPath(path).parts
    return (
        not _in_git(path)
        and _LEFT_OUT.isdisjoint(parts)
        and not any(part.startswith(".wh.") or "\n" in part or "\r" in part for part in parts)
        and entry.kind in ("file", "dir", "symlink", "hardlink")
    )


def _in_git(path: str) -> bool:
    return PurePosixPath(path).parts[1:2] == (".git",)


def _fits(path: str, merged: Tree) -> bool:
    """Whether an added path lies in a folder; what was put in the place of a tracked file does not."""
    parent = str(PurePosixPath(path).parent)
    return parent in merged and merged[parent].kind == "dir"


def _changed(path: str, entry: TarEntry, left: Tree) -> bool:
    if _in_git(path):
        return False
    now = left.get(path)
    if now is None or now.kind != entry.kind:
        return True
    return entry.kind == "file" and (entry.length != now.length or content_digest(entry) != content_digest(now))


def _put(tree: Tree, path: str, data: bytes) -> None:
    for parent in PurePosixPath(path).parents:
        if str(parent) != "." and str(parent) not in tree:
            tree[str(parent)] = plain(TarEntry(str(parent), "dir"))
    tree[path] = TarEntry(path, "file", 0o644, OWNER, OWNER, content=data)


def pattern(path: str) -> str:
    """Return the line of an exclude file that means this path and nothing else."""
    return "/" + _SPECIAL.sub(r"\\\1", path)
