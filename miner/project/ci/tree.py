"""A tree as the readers of CI files see it."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from miner.project.commands import Meaning
from miner.project.shell import ROOT, Budget, Shell
from miner.project.text import decode

if TYPE_CHECKING:
    from miner.project.ci.reading import Reading

_T = TypeVar("_T")

_MAX_STEPS = 15_000
_MAX_SCRIPT = 100_000

Follower = Callable[["Reading", Meaning, Shell, bool], bool]
"""Reads what a command starts; whether it was found. The last argument: it stands under an unknown condition."""


@dataclass(frozen=True)
class Tree:
    """A tree, as the readers of CI files see it.

    Attributes:
        folders: all folders of the tree.
        folder: of the project.
        followers: tool -> what reads the things that it starts.
        parsed: kind and path -> what a file holds.
        whole: how much of all files together is read.
    """

    files: Mapping[str, bytes]
    paths: frozenset[str]
    folders: frozenset[str]
    folder: str
    followers: Mapping[str, Follower]
    whole: Budget
    parsed: dict[tuple[str, str], Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, files: Mapping[str, bytes], paths: Iterable[str], folder: str, followers: Mapping[str, Follower]
    ) -> Tree:
        """Return the tree of these paths."""
        every = frozenset(paths)
        folders: set[str] = {""}
        for path in every:
            above = posixpath.dirname(path)
            while above and above not in folders:
                folders.add(above)
                above = posixpath.dirname(above)
        return cls(files, every, frozenset(folders), folder, followers, Budget(_MAX_STEPS))

    def inside(self, path: str) -> str | None:
        """Return an absolute path as a path of the tree, None where it is outside."""
        normal = posixpath.normpath(path)
        if normal == ROOT:
            return ""
        return normal.removeprefix(f"{ROOT}/") if normal.startswith(f"{ROOT}/") else None

    def once(self, kind: str, path: str, parse: Callable[[], _T]) -> _T:
        """Return what a file of the tree holds, parsed once."""
        if (kind, path) not in self.parsed:
            self.parsed[kind, path] = parse()
        found: _T = self.parsed[kind, path]
        return found

    def text(self, path: str, notes: list[str]) -> str | None:
        """Return the text of a file that is small enough to be followed."""
        data = self.files.get(path)
        if data is None:
            return None
        if len(data) > _MAX_SCRIPT:
            notes.append(f"{path}: is too long to be followed")
            return None
        return decode(data, path, notes)
