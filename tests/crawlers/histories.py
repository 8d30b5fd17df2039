"""Repositories with history that tests make, commit by commit."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

from miner.crawlers.archive import Entry
from miner.crawlers.git_repo import GitRepo, quote_path

START = 1_700_000_000
Tree = Mapping[str, Entry | str | bytes]


def submodule(oid: str) -> Entry:
    """Return what stands for a submodule at a commit."""
    return Entry("160000", oid.encode())  # type: ignore[arg-type] # which no archive holds


class Upstream:
    """A repository as a forge has it: anything can be written into it."""

    def __init__(self, path: Path) -> None:
        self.repo = GitRepo.create(path)
        self.path = path
        self._clock = itertools.count(START, 60)
        with (path / "config").open("a") as config:
            config.write("[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n")

    def config(self, key: str, value: str) -> None:
        self.repo.run("config", key, value)

    def commit(
        self, tree: Tree, *parents: str, title: str = "Change", at: int | None = None, authored: int | None = None
    ) -> str:
        """Write a commit that no reference names; each is a minute younger than the one before."""
        at = next(self._clock) if at is None else at
        authored = at if authored is None else authored
        lines = [
            b"commit refs/heads/scratch\nauthor A U Thor <a@example.org> %d +0000\n" % authored,
            b"committer C O Mitter <c@example.org> %d +0000\n" % at,
            b"data %d\n%s\n" % (len(title.encode()), title.encode()),
        ]
        lines += [b"from %s\n" % parents[0].encode()] if parents else []
        lines += [b"merge %s\n" % parent.encode() for parent in parents[1:]]
        lines.append(b"deleteall\n")
        for path, entry in tree.items():
            lines.append(_modify(path, _entry(entry)))
        self.repo.run("fast-import", "--quiet", "--force", "--date-format=raw", stdin=b"".join(lines))
        return (self.path / "refs/heads/scratch").read_text().strip()

    def ref(self, name: str, oid: str) -> str:
        """Let a name stand for a commit: "heads/main", "pull/7/head", "tags/v1"."""
        place = self.path / "refs" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{oid}\n")
        return oid

    def head(self, branch: str) -> None:
        """Make a branch the default one."""
        self.repo.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")

    def drop(self, *names: str) -> None:
        """Forget names, and whatever only they lead to."""
        for name in (*names, "heads/scratch"):
            self.repo.run("update-ref", "-d", f"refs/{name}")
        self.repo.run("reflog", "expire", "--expire=now", "--all")
        self.repo.run("repack", "-a", "-d", "-q")
        self.repo.run("prune", "--expire=now")

    def raw_tree(self, *entries: tuple[str, str, str]) -> str:
        """Write a tree that git would not: (mode, name, object), as they are, in this order."""
        data = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(oid) for mode, name, oid in entries)
        return self.repo.run("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=data).decode().strip()

    def blob(self, data: bytes) -> str:
        return self.repo.run("hash-object", "-w", "--stdin", stdin=data).decode().strip()

    def commit_tree(self, tree: str, *parents: str) -> str:
        env = {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in (("NAME", "x"), ("EMAIL", "x@example.org"), ("DATE", f"{next(self._clock)} +0000"))
        }
        words = [word for parent in parents for word in ("-p", parent)]
        return self.repo.run("commit-tree", tree, *words, stdin=b"Odd tree\n", env=env).decode().strip()


def _entry(value: Entry | str | bytes) -> Entry:
    if isinstance(value, Entry):
        return value
    return Entry("100644", value.encode() if isinstance(value, str) else value)


def _modify(path: str, entry: Entry) -> bytes:
    name = quote_path(path, always=True)
    if entry.mode == "160000":
        return b"M 160000 %s %s\n" % (entry.data, name)
    return b"M %s inline %s\ndata %d\n%s\n" % (entry.mode.encode(), name, len(entry.data), entry.data)
