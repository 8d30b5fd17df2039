"""What a session in a box did to the repository: tracked files that it changed, new files that could steer tests.

Compared are two archives, here, outside of the box. Git is not asked: in the box its program, index flags
(`assume-unchanged`, `skip-worktree`), excludes, filters, hooks and `core.fsmonitor` are the agent's to bend, and out
here its filters and hooks would run. What lies in `.git` does not matter, and neither does anything outside of the
repository: of a session only a recipe comes out, and that is built from scratch.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from installers.distrust.rewritten import is_generated, is_rewritten
from installers.distrust.tar_members import Member, TarUnreadable, members_of
from miner.core.records import Legible, Record

EditKind = Literal["changed", "deleted", "mode-changed", "type-changed", "added", "unsafe", "unreadable"]

EDITS: dict[EditKind, str] = {
    # kind of an edit: what it says
    "changed": "a tracked file that no build writes anew has another content, or a tracked symlink another target",
    "deleted": "a tracked file is gone",
    "mode-changed": "a tracked file is executable and was not, or the other way round",
    "type-changed": "a tracked file or folder is something else: a link, a folder, a pipe",
    "added": "a new file that could steer tests: code, settings, data of tests, a link",
    "unsafe": "the archive names a path outside of the repository, or one twice",
    "unreadable": "the archive is damaged, or holds what no honest program writes",
}

_CHUNK = 1 << 20
_ARTEFACTS = re.compile(
    r"""(?sx)
    (?:.*/)?(?:
        __pycache__ | build | dist | target | wheelhouse | node_modules | \.eggs | \.venv | venv | env | \.env
      | virtualenv | \.tox | \.nox | \.cache | \.pytest_cache | \.mypy_cache | \.ruff_cache | \.hypothesis
      | \.benchmarks | htmlcov | \.uv-cache | \.pdm-build | \.ipynb_checkpoints | \.scikit-build
      | _skbuild | \.mesonpy[^/]* | builddir | \.swp
      | [^/]+\.egg-info | [^/]+\.dist-info | [^/]+\.egg | cmake-build-[^/]*
    )/.*
    | (?:.*/)?(?:
        [^/]+\.(?:pyc|pyo|so|o|a|obj|lo|la|pyd|dylib|dll|exe|whl|gz|zip|log|lock|pid|tmp|swp|c|cc|cpp|cxx|h|hpp|html|prof)
      | [^/]+\.so\.[\d.]+ | [^/]+\.egg-link | \.coverage(?:\.[^/]*)? | coverage\.xml | junit[^/]*\.xml
    )
    """
)
"""What builds, installations and runs of tests leave behind."""
_STEERING = re.compile(
    r"""(?sx)
    (?:.*/)?(?:
        [^/]+\.(?:py|pyi|pyx|pxd|pth|ipynb|toml|ini|cfg)
      | \.(?:env|coveragerc|pytest|flaskenv)[^/]* | pytest\.[^/]+ | tox\.[^/]+ | setup\.[^/]+ | Makefile
      | \.python-version
    )
    """
)
"""Code, and settings of pytest, of Python and of what they read."""
_TESTS = re.compile(r"(?s)(?:.*/)?(?:tests?|testing|testdata|test_[^/]+|fixtures|snapshots|__snapshots__|cassettes)/.*")
_DATA = re.compile(r"(?s).*\.(?:json|jsonl|ya?ml|csv|tsv|txt|xml|sql|rst|md|ambr|raw|bin|npy|npz|pkl|pickle)")
_OUTPUT = re.compile(r"(?i)output|result|report|tmp|temp|cache|coverage|junit|actual|log")


class TreeEdit(Record):
    """One thing that a session did to the repository.

    Attributes:
        path: relative to the repository; "" where the archive as a whole is meant.
    """

    path: Legible
    kind: EditKind


@dataclass(frozen=True)
class _Node:
    """What git knows of a path.

    Attributes:
        content: sha256 of a file, target of a symlink.
    """

    kind: str
    executable: bool
    size: int
    content: str


def edits(base: Path, left: Path, *, base_root: str = "", left_root: str = "testbed") -> tuple[TreeEdit, ...]:
    """Return what a session did to a repository, sorted by path.

    Args:
        base: tar of the base commit, or of the box before the session.
        left: tar of the repository after it, as exported from the box; it may hold anything.
        base_root: folder of the first archive that is the repository.
        left_root: folder of the second one that is.

    Raises:
        ValueError: the first archive, which is ours, cannot be read.
    """
    try:
        tracked = _tracked(base, base_root)
    except TarUnreadable as error:
        raise ValueError(f"the archive of the base commit cannot be read: {error}") from error
    try:
        return tuple(sorted(_edits(tracked, left, left_root), key=lambda edit: (edit.path, edit.kind)))
    except TarUnreadable:
        return (TreeEdit(path="", kind="unreadable"),)


def _tracked(base: Path, root: str) -> dict[str, _Node]:
    members = {path: member for member in members_of(base) if (path := _relative(member.path, root)) is not None}
    files = _resolved(members, root)
    return {
        path: _Node(member.kind, bool(member.mode & 0o100), member.size, _content(base, member))
        for path, member in files.items()
        if member.kind in ("file", "symlink") and not _in_git(path)
    }


def _edits(tracked: Mapping[str, _Node], left: Path, root: str) -> Iterator[TreeEdit]:
    there: dict[str, Member] = {}
    for member in members_of(left):
        path = _relative(member.path, root)
        if path is None or path in there:
            yield TreeEdit(path=member.path, kind="unsafe")
        elif path and not _in_git(path):
            there[path] = member
    folders = {str(parent) for path in tracked for parent in PurePosixPath(path).parents}
    found = _resolved(there, root)
    for path, node in tracked.items():
        if path not in found:
            yield TreeEdit(path=path, kind="deleted")
        elif (kind := _difference(node, found[path], left)) is not None:
            built = kind == "changed" and node.kind == "file" and is_rewritten(path, tracked)
            if not built:
                yield TreeEdit(path=path, kind=kind)
    for path, member in found.items():
        if path not in tracked and (kind := _new(path, member, folders)) is not None:
            yield TreeEdit(path=path, kind=kind)


def _relative(name: str, root: str) -> str | None:
    """Return a path relative to the repository, "" for itself; None for one that is not in it."""
    parts = name.removesuffix("/").split("/")
    parts = parts[1:] if parts[0] == "." else parts
    own = root.split("/") if root else []
    if parts[: len(own)] != own or name.startswith("/"):
        return None
    rest = parts[len(own) :]
    return None if any(part in ("", ".", "..") or "\0" in part for part in rest) else "/".join(rest)


def _resolved(members: Mapping[str, Member], root: str) -> dict[str, Member]:
    """Return the members, hard links as the file that they are another name of; one that leads nowhere is special."""
    return {
        path: _target(member, members, root) if member.kind == "hardlink" else member
        for path, member in members.items()
    }


def _target(member: Member, members: Mapping[str, Member], root: str) -> Member:
    path = _relative(member.link, root)
    found = members.get(path) if path is not None else None
    if found is None or found.kind != "file":
        return Member(member.path, "special", member.mode, 0, member.link, member.offset)
    return found


def _difference(node: _Node, now: Member, archive: Path) -> EditKind | None:
    if now.kind != node.kind:
        return "type-changed"
    if now.size != node.size or _content(archive, now) != node.content:
        return "changed"
    return "mode-changed" if now.kind == "file" and bool(now.mode & 0o100) != node.executable else None


def _content(archive: Path, member: Member) -> str:
    """Return the hash of a file, read piece by piece, or the target of a symlink."""
    if member.kind != "file":
        return member.link
    digest, left = hashlib.sha256(), member.size
    with archive.open("rb") as file:
        file.seek(member.offset)
        while left and (chunk := file.read(min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    return digest.hexdigest()


def _new(path: str, member: Member, folders: set[str]) -> EditKind | None:
    """Return what a path is that the base does not have: nothing, where it is left of a build or a run."""
    if path in folders:
        return None if member.kind == "dir" else "type-changed"
    if member.kind == "dir" or _ARTEFACTS.fullmatch(path):
        return None
    if member.kind != "file":
        return "added"
    if _STEERING.fullmatch(path):
        return None if is_generated(path) else "added"
    is_data = _TESTS.fullmatch(path) and _DATA.fullmatch(path)
    return "added" if is_data and not _OUTPUT.search(path.rpartition("/")[2]) else None


def _in_git(path: str) -> bool:
    return ".git" in path.split("/")
