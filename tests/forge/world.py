"""The state of the forge: repositories by id and by every name they ever had.

    world = World(folder)
    repo = world.repository("octo/lib", files={"lib.py": "..."})
    issue = repo.issue("It breaks", "...")
    repo.pull("Fix it", f"Fixes #{issue.number}", files={"lib.py": "...", "test_lib.py": "..."}, merge="squash",
              closes=[issue], at="2025-05-03T10:00:00Z")

With no folder the same things are made without git on disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from forge.gitstore import Content, GitStore
from forge.records import Actor, Head, Issue, Pull, When
from forge.repository import Repo

BOT = "[bot]"
README = {"README.md": "# It works\n"}


class World:
    """All that a forge knows.

    Args:
        folder: where bare repositories are made, `owner/name.git`; None: there are none.

    Attributes:
        url: of the server that shows it.
        lock: held while an answer is made; a test that changes the world while a client reads it may hold it too.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.url = ""
        self.by_id: dict[int, Repo] = {}
        self.lock = threading.RLock()
        self._names: dict[str, Repo] = {}
        self._next_id = 1001

    def __iter__(self) -> Any:
        return iter(self.by_id.values())

    def find(self, full_name: str) -> Repo | None:
        """Return the repository that has or had this name, in any case, or None."""
        found = self._names.get(full_name.lower())
        return None if found is None or found.deleted else found

    def alive(self, repo_id: int) -> Repo:
        """Return the repository with an id.

        Raises:
            KeyError: there is none, or it was deleted.
        """
        repo = self.by_id[repo_id]
        if repo.deleted:
            raise KeyError(repo_id)
        return repo

    def repository(
        self,
        full_name: str,
        *,
        files: Mapping[str, Content] | None = None,
        at: When = "2020-01-01T00:00:00Z",
        git: bool | None = None,
        repo_id: int | None = None,
        **fields: Any,
    ) -> Repo:
        """Make a repository with one commit; `fields` are any of `forge.repository.Repo`.

        Args:
            git: with a bare repository on disk; by default where the world has a folder.
        """
        repo = self._new(full_name, repo_id, git=self.folder is not None if git is None else git, **fields)
        repo.store.head(repo.default_branch)
        repo.commit(README if files is None else files, "Start", at=at)
        return repo

    def mounted(self, full_name: str, path: Path, **fields: Any) -> Repo:
        """Serve a bare repository that exists; its pull requests are added by `put_pull` with real commit ids."""
        repo = self._new(full_name, None, git=False, **fields)
        repo.path = path
        return repo

    def bare(self, full_name: str, *, repo_id: int | None = None, **fields: Any) -> Repo:
        """Make a repository without git and without a commit, for `put_pull` and `lazy`."""
        return self._new(full_name, repo_id, git=False, **fields)

    def fork(self, repo: Repo, owner: str) -> Repo:
        """Return the fork of a repository that an owner has, made where it is missing."""
        known = self.find(f"{owner}/{repo.name}")
        if known is not None:
            return known
        made = self._new(f"{owner}/{repo.name}", None, git=repo.path is not None, parent=repo, stars=0, forks=0)
        made.default_branch, made.trees = repo.default_branch, repo.trees
        made.store.head(made.default_branch)
        made.move(made.default_branch, repo.branches[repo.default_branch])
        return made

    def rename(self, repo: Repo, full_name: str) -> None:
        """Give a repository a new name; git's folder stays where it is."""
        repo.names.append(repo.full_name)
        repo.owner, repo.name = full_name.split("/")
        self._names[full_name.lower()] = repo

    def delete(self, repo: Repo) -> None:
        """Delete a repository: pull requests from it lose their head repository."""
        repo.deleted = True

    def actor(self, who: Actor | str | None) -> Actor | None:
        """Return an actor by login; one that ends in "[bot]" is a program."""
        if isinstance(who, str):
            return Actor(who.removesuffix(BOT), "Bot") if who.endswith(BOT) else Actor(who)
        return who

    def _new(
        self, full_name: str, repo_id: int | None, *, git: bool, parent: Repo | None = None, **fields: Any
    ) -> Repo:
        owner, name = full_name.split("/")
        repo = Repo(self, repo_id or self._next_id, owner, name, parent=parent, **fields)
        if git:
            assert self.folder is not None, "a world without a folder has no git repositories"
            repo.path = self.folder / f"{full_name}.git"
            repo.store = GitStore(repo.path, None if parent is None else repo.root.path)
        self._next_id = max(self._next_id, repo.repo_id) + 1
        self.by_id[repo.repo_id] = self._names[full_name.lower()] = repo
        return repo


def lazy_pulls(repo: Repo, heads: Iterable[Head], make: Callable[[int], Pull]) -> None:
    """Add pull requests that are made when they are asked for."""
    repo.pulls.lazy(heads, make)


def lazy_issues(repo: Repo, heads: Iterable[Head], make: Callable[[int], Issue]) -> None:
    """Add issues that are made when they are asked for."""
    repo.issues.lazy(heads, make)
