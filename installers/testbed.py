"""What becomes of `/testbed` when a project has been installed from it.

The repository is a layer of its own, as the crawler made it, byte for byte, whatever an installation did to it: a build
script cannot rewrite a tracked file, plant history or leave a hook. Only what the installation added is kept, and named
in `.git/info/exclude`, so that the working tree is clean (gitignore documentation, "PATTERN FORMAT").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from installers.layer import OWNER, Tree, content_digest, plain, read
from miner.sandbox.image_archive import TarEntry

TESTBED = "testbed"

_EXCLUDE = f"{TESTBED}/.git/info/exclude"
_BRANCH = f"{TESTBED}/.git/refs/heads/main"
_TAG = re.compile(r"(?!.*\.lock$)[A-Za-z0-9][A-Za-z0-9+!_-]*(?:\.[A-Za-z0-9+!_-]+)*")
_SPECIAL = re.compile(r"([\\*?\[\] ])")
_LEFT_OUT = frozenset({"__pycache__", ".pytest_cache"})


@dataclass(frozen=True)
class Testbed:
    """What an installation has made of `/testbed`.

    Attributes:
        entries: what is new in it, for a layer on top of the repository's.
        added: topmost paths that the installation added, relative to the repository; a folder ends with "/".
        restored: tracked paths that the installation had changed or removed.
    """

    __test__ = False

    entries: tuple[TarEntry, ...]
    added: tuple[str, ...]
    restored: tuple[str, ...]


def repository_tree(entries: Iterable[TarEntry], tags: Iterable[str] = ()) -> Tree:
    """Return `/testbed` as the crawler made it.

    Args:
        entries: the tree with its `.git`, paths relative to the repository.
        tags: names that its one commit gets, for what takes a version from git.
    """
    tree = _with_folders({f"{TESTBED}/{entry.path}": entry for entry in entries})
    plain_tree: Tree = {path: plain(_at(entry, path)) for path, entry in tree.items()}
    if _BRANCH in plain_tree:
        commit = read(plain_tree[_BRANCH])
        for tag in tags:
            _put(plain_tree, f"{TESTBED}/.git/refs/tags/{tag}", commit)
    return plain_tree


def version_tags(version: str | None) -> tuple[str, ...]:
    """Return the tags that say a version, with and without the "v" that most projects put before it.

    Git describes a commit by either; tools that strip a prefix (versioneer's `tag_prefix`) find the one they know.
    """
    return (version, f"v{version}") if version and _TAG.fullmatch(version) else ()


def merge(repository: Tree, left: Mapping[str, TarEntry]) -> Testbed:
    """Return what an installation added to the repository.

    Args:
        repository: `/testbed` as it was.
        left: `/testbed` as it is after the installation; entries that it left alone may be the very same ones.
    """
    merged = dict(repository)
    fresh: Tree = {}
    added: list[str] = []
    for path in sorted(left):
        if path in merged or not _is_kept(path, left[path]) or not _fits(path, merged):
            continue
        merged[path] = fresh[path] = plain(_own_bytes(left, path))
        if str(PurePosixPath(path).parent) in repository:
            added.append(path.removeprefix(f"{TESTBED}/") + ("/" if left[path].kind == "dir" else ""))
    if added:
        before = read(repository[_EXCLUDE]) if _EXCLUDE in repository else b""
        lines = "".join(f"{pattern(path)}\n" for path in added).encode("utf-8", "surrogateescape")
        _put(fresh, _EXCLUDE, before + lines)
    _with_parents(fresh, repository)
    restored = (path.removeprefix(f"{TESTBED}/") for path in repository if _changed(path, repository[path], left))
    return Testbed(tuple(fresh.values()), tuple(added), tuple(sorted(restored)))


def _with_parents(tree: Tree, repository: Tree) -> None:
    """Add the repository's folders that entries lie in: an engine that has to make them up gives them to root."""
    for path in list(tree):
        for parent in map(str, PurePosixPath(path).parents):
            if parent in repository and parent not in tree:
                tree[parent] = repository[parent]


def _with_folders(tree: Tree) -> Tree:
    """Add the folders that the entries lie in, where they are not entries themselves."""
    folders = {str(parent) for path in tree for parent in PurePosixPath(path).parents} - {"."}
    made = {folder: TarEntry(folder, "dir") for folder in folders if folder not in tree}
    return {**made, **tree}


def _at(entry: TarEntry, path: str) -> TarEntry:
    link = f"{TESTBED}/{entry.link}" if entry.kind == "hardlink" else entry.link
    return TarEntry(path, entry.kind, entry.mode, link=link, content=entry.content, size=entry.size)


def _own_bytes(left: Mapping[str, TarEntry], path: str) -> TarEntry:
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


def _changed(path: str, entry: TarEntry, left: Mapping[str, TarEntry]) -> bool:
    if _in_git(path):
        return False
    now = left.get(path)
    if now is entry:
        return False
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
