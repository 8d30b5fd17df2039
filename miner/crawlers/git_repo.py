"""Bare repositories, written and read by git's plumbing alone: no checkout, hook, filter, attribute or user setting.

Renames are never detected: a rename split into a deletion and an addition can go to two patches, a rename cannot, and
what git calls a rename depends on a threshold and on the other files of the diff.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from miner.core.records import Record
from miner.crawlers.archive import Entry, git_refuses
from miner.crawlers.git_run import TIMEOUT_S, GitFault, GitRunner, checked, command_of

IDENTITY = "swe-miner <swe-miner@localhost>"
ATTRIBUTES = b"* -text !eol !ident !filter !diff !working-tree-encoding !whitespace\n"  # wins over the tree's own
_BATCH_BYTES = 64 << 20
_CHANGES = ("diff-tree", "-r", "--no-renames", "--full-index")
_PATCH = (
    "--patch",
    "--binary",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--diff-algorithm=myers",
    "--unified=3",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--submodule=short",
    "--ignore-submodules=none",
)
GITLINK = "160000"
"""Mode of a submodule: a folder that stands empty, and the id of a commit of another repository."""
LINK = "120000"
NOTHING = "0" * 40


class Change(Record):
    """One path that differs between two commits. Status: A, D, M, or T where a file became a link or the reverse."""

    status: str
    path: str
    old_mode: str
    new_mode: str


@dataclass(frozen=True)
class TreeFile:
    """One file or link of a commit, or a submodule, which has no content."""

    path: str
    mode: str
    oid: str
    size: int

    @property
    def is_submodule(self) -> bool:
        """Whether a commit of another repository stands here."""
        return self.mode == GITLINK


class GitRepo:
    """A bare repository.

    Args:
        path: its git directory, which exists.
        timeout_s: how long one command may take.
        stopped: ends the command that is running, and lets no other begin.
        absent: contents that are nowhere to be had: files that have them are left out.
    """

    def __init__(
        self,
        path: Path,
        *,
        timeout_s: float = TIMEOUT_S,
        stopped: threading.Event | None = None,
        absent: frozenset[str] = frozenset(),
    ) -> None:
        self.path = path = path.absolute()  # git runs in this folder
        self.absent = absent
        self._runner = GitRunner(path, timeout_s=timeout_s, stopped=stopped)

    @classmethod
    def create(cls, path: Path) -> GitRepo:
        """Make an empty bare repository; its HEAD stays unborn, so that no version of git reads attributes from it."""
        path.mkdir(parents=True)
        repo = cls(path)
        options = ("--bare", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=none")
        repo.run("init", *options)
        (path / "info").mkdir(exist_ok=True)
        (path / "info" / "attributes").write_bytes(ATTRIBUTES)
        return repo

    def run(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """Run one git command and return its output.

        Raises:
            GitFault: it failed, or it complained on its error output while its exit code said success.
        """
        status, out, err = self.attempt(*args, stdin=stdin, env=env)
        return checked(command_of(args), status, out, err)

    def attempt(
        self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, keep_open: Sequence[int] = ()
    ) -> tuple[int, bytes, str]:
        """Run one git command that may fail, and return its exit code, its output and its error output."""
        return self._runner.run(args, stdin=stdin, env=env, keep_open=keep_open)

    def write_commit(
        self, branch: str, entries: Mapping[str, Entry], *, when: datetime, message: str, parent: str | None = None
    ) -> str:
        """Write a tree as the next commit of a branch and return its id, which depends on the arguments alone."""
        feed = b"".join(_fast_import(branch, entries, when, message, parent))
        self.run("-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", "--done", "--date-format=raw", stdin=feed)
        return self.commit_of(f"refs/heads/{branch}")

    def commit_of(self, ref: str) -> str:
        """Return the id of the commit that a reference names."""
        return self.run("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}").decode().strip()

    def tree_of(self, commit: str) -> str:
        """Return the id of a commit's tree."""
        return self.run("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}").decode().strip()

    def entries(self, commit: str) -> tuple[TreeFile, ...]:
        """Return every file, link and submodule of a commit, sorted by the bytes of its path; sizes are not known.

        No content has to be there for that.
        """
        listed = self.run("ls-tree", "-r", "-z", "--full-tree", commit)
        return tuple(_tree_file(line) for line in listed.split(b"\0") if line)

    def files(self, commit: str) -> tuple[TreeFile, ...]:
        """Return every file, link and submodule of a commit with its size, sorted by the bytes of its path.

        Raises:
            GitFault: an object is missing, and is none of those that are absent.
        """
        if self.absent:
            return self.sized(file for file in self.entries(commit) if file.oid not in self.absent)
        listed = self.run("ls-tree", "-r", "-z", "-l", "--full-tree", commit)
        return tuple(_sized_file(line) for line in listed.split(b"\0") if line)

    def sized(self, files: Iterable[TreeFile]) -> tuple[TreeFile, ...]:
        """Return files with their sizes; submodules have none.

        Raises:
            GitFault: an object is missing.
        """
        taken = list(files)
        sizes = self.sizes(file.oid for file in taken if not file.is_submodule)
        missing = [oid for oid, size in sizes.items() if size is None]
        if missing:
            raise GitFault(f"object {missing[0]} is missing from {self.path.name}")
        return tuple(replace(file, size=sizes.get(file.oid) or 0) for file in taken)

    def sizes(self, oids: Iterable[str]) -> dict[str, int | None]:
        """Return the size of each object, None where it is missing."""
        asked = list(dict.fromkeys(oids))
        feed = "".join(f"{oid}\n" for oid in asked).encode()
        found = self.run("cat-file", "--batch-check=%(objectsize)", stdin=feed).split(b"\n") if asked else []
        sizes = (None if line.endswith(b"missing") else int(line) for line in found[: len(asked)])
        return dict(zip(asked, sizes, strict=True))

    def blobs(self, files: Iterable[TreeFile]) -> Iterator[tuple[TreeFile, bytes]]:
        """Yield files with their content, in order; submodules have none and are left out.

        Raises:
            GitFault: an object is missing or damaged.
        """
        batch: list[TreeFile] = []
        for file in files:
            if file.is_submodule:
                continue
            batch.append(file)
            if sum(item.size for item in batch) > _BATCH_BYTES:
                yield from zip(batch, self.objects([item.oid for item in batch]), strict=True)
                batch = []
        yield from zip(batch, self.objects([item.oid for item in batch]), strict=True)

    def objects(self, oids: Sequence[str]) -> list[bytes]:
        """Return the raw content of objects, in order, each checked against its id: git itself does not on reading.

        Raises:
            GitFault: an object is missing or damaged.
        """
        if not oids:
            return []
        out = self.run("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in oids).encode())
        found, at = [], 0
        for oid in oids:
            end = out.find(b"\n", at)
            head = out[at:end].split(b" ")
            if end < 0 or len(head) != 3 or head[0].decode() != oid:
                raise GitFault(f"object {oid} is missing from {self.path.name}")
            size = int(head[2])
            data = out[end + 1 : end + 1 + size]
            if object_id(head[1].decode(), data) != oid:
                raise GitFault(f"object {oid} in {self.path.name} is damaged")
            found.append(data)
            at = end + 1 + size + 1
        return found

    def read(self, commit: str, path: str) -> bytes | None:
        """Return one file of a commit, or None where there is none."""
        file = next((file for file in self.entries(commit) if file.path == path and not file.is_submodule), None)
        return None if file is None else self.objects([file.oid])[0]

    def changes(self, base: str, target: str) -> tuple[Change, ...]:
        """Return the paths that differ, in the order in which the diff shows them."""
        return tuple(_change(meta, path) for meta, path in self._raw_changes(base, target))

    def changed_blobs(self, base: str, target: str) -> frozenset[str]:
        """Return the ids of all contents, old and new, that a diff of two commits has to read."""
        found: set[str] = set()
        for meta, _ in self._raw_changes(base, target):
            old_mode, new_mode, old, new, _ = meta.decode().lstrip(":").split(" ")
            found.update(oid for mode, oid in ((old_mode, old), (new_mode, new)) if mode != GITLINK and oid != NOTHING)
        return frozenset(found)

    def _raw_changes(self, base: str, target: str) -> Iterator[tuple[bytes, bytes]]:
        fields = self.run(*_CHANGES, "--raw", "-z", base, target).split(b"\0")
        return zip(fields[0::2], fields[1::2], strict=False)

    def diff(self, base: str, target: str) -> bytes:
        """Return git's own binary-safe diff of two commits."""
        return self.run(*_CHANGES, *_PATCH, base, target)


def make_repo(path: Path, fill: Iterable[tuple[str, Mapping[str, Entry], datetime, str]]) -> GitRepo:
    """Make a repository with one commit after another, each with a branch of its own, and move it to its name whole.

    Args:
        path: its git directory; a repository that is there already is replaced.
        fill: branch, entries, date and message of each commit.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        repo = GitRepo.create(part / "new")
        parent = None
        for branch, entries, when, message in fill:
            parent = repo.write_commit(branch, entries, when=when, message=message, parent=parent)
        if path.exists():
            path.rename(part / "old")
        repo.path.rename(path)
    finally:
        shutil.rmtree(part)
    return GitRepo(path)


def object_id(kind: str, data: bytes) -> str:
    """Return the id of an object, computed from its bytes."""
    return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()


def hostile_path(files: Iterable[TreeFile]) -> str | None:
    """Return what is wrong with the paths of a commit that a forge would not have taken, or None.

    A tree can be written that leads out of its folder, into `.git` in a disguise that some file system sees through, or
    through a link; git itself refuses to check it out.
    """
    ends: set[str] = set()
    folders: set[str] = set()
    for file in files:
        parts = tuple(file.path.split("/"))
        if {"", ".", ".."} & set(parts) or git_refuses(parts, is_link=file.mode == LINK):
            return f"git refuses the path {file.path!r}"
        if file.path in ends:
            return f"a path stands twice: {file.path!r}"
        ends.add(file.path)
        folders.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
    both = min(ends & folders, default=None)
    return None if both is None else f"a path is a file and a folder: {both!r}"


def _fast_import(
    branch: str, entries: Mapping[str, Entry], when: datetime, message: str, parent: str | None
) -> Iterator[bytes]:
    """Yield a stream for `git fast-import` (https://git-scm.com/docs/git-fast-import#_input_format)."""
    date = f"{int(when.timestamp())} +0000"
    text = message.encode() + b"\n"
    yield f"commit refs/heads/{branch}\nauthor {IDENTITY} {date}\ncommitter {IDENTITY} {date}\n".encode()
    yield b"data %d\n%s\n" % (len(text), text)
    if parent is not None:
        yield f"from {parent}\n".encode()
    yield b"deleteall\n"
    for path, entry in entries.items():
        yield b"M %s inline %s\n" % (entry.mode.encode(), quote_path(path, always=True))
        yield b"data %d\n" % len(entry.data)
        yield entry.data
        yield b"\n"
    yield b"done\n"


_ESCAPES = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}


def quote_path(path: str, *, always: bool = False) -> bytes:
    """Quote a path as git does with `core.quotePath=true`: only where it must, unless told always."""
    raw = path.encode("utf-8", "surrogateescape")
    quoted = b"".join(_quoted_byte(byte) for byte in raw)
    return b'"' + quoted + b'"' if always or quoted != raw else raw


def _quoted_byte(byte: int) -> bytes:
    if byte in _ESCAPES:
        return b"\\" + _ESCAPES[byte]
    return b"\\%03o" % byte if byte < 32 or byte >= 127 else bytes([byte])


def _path(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _tree_file(line: bytes) -> TreeFile:
    meta, _, path = line.partition(b"\t")
    mode, _kind, oid = meta.split()
    return TreeFile(_path(path), mode.decode(), oid.decode(), 0)


def _sized_file(line: bytes) -> TreeFile:
    meta, _, path = line.partition(b"\t")
    mode, _kind, oid, size = meta.split()
    if size == b"BAD":  # git's word for an object that is not there; its exit code says success
        raise GitFault(f"object {oid.decode()} is missing")
    return TreeFile(_path(path), mode.decode(), oid.decode(), 0 if size == b"-" else int(size))


def _change(meta: bytes, path: bytes) -> Change:
    old_mode, new_mode, _old, _new, status = meta.decode().lstrip(":").split(" ")
    return Change(status=status[0], path=_path(path), old_mode=old_mode, new_mode=new_mode)
