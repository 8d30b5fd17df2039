"""Whether patches lead from one tree to another, tried on an index alone: no work tree, and nothing is kept."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from miner.crawlers.git_repo import IDENTITY, GitRepo
from miner.crawlers.git_run import failed

_APPLY = ("apply", "--cached", "--whitespace=nowarn", "-")


class _Index:
    """An index in a folder that goes away, and the objects that are made with it.

    Args:
        repo: what the objects are that are there already.
        folder: for the index.
        objects: folder for new objects.
    """

    def __init__(self, repo: GitRepo, folder: Path, objects: Path) -> None:
        self._repo = repo
        self._env = {
            "GIT_INDEX_FILE": str(folder / "index"),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repo.path / "objects"),
        }

    def read(self, tree: str) -> None:
        """Take all files of a tree.

        One by one: git would write a tree that it read whole, and that was not changed, as it found it, however odd.
        """
        listed = self._repo.run("ls-tree", "-r", "-z", "--full-tree", tree)
        self._repo.run("read-tree", "--empty", env=self._env)
        self._repo.run("update-index", "-z", "--index-info", stdin=listed, env=self._env)

    def apply(self, patch: bytes) -> str | None:
        """Apply a patch; return what git says where it does not apply."""
        if not patch:
            return None
        status, _, err = self._repo.attempt(*_APPLY, stdin=patch, env=self._env)
        return err.strip() or f"exit code {status}" if failed(status, err) else None

    def write(self) -> str:
        """Return the id of the tree; contents need not be there for that."""
        return self._repo.run("write-tree", "--missing-ok", env=self._env).decode().strip()


@contextmanager
def _index(repo: GitRepo, *, keep: bool = False) -> Iterator[_Index]:
    with tempfile.TemporaryDirectory(prefix="tmp_index_", dir=repo.path) as name:
        folder = Path(name)
        objects = repo.path / "objects" if keep else folder / "objects"
        objects.mkdir(exist_ok=True)
        yield _Index(repo, folder, objects)


def unfaithful(repo: GitRepo, base: str, target: str, patches: Sequence[bytes]) -> str | None:
    """Return why patches do not lead from one commit to another in this order and in the reverse one; None: they do.

    A tree that an old or odd program wrote in another way than git would is compared by what it holds.
    """
    with _index(repo) as index:
        index.read(target)
        wanted = index.write()
        for order in (patches, patches[::-1]):
            index.read(base)
            for patch in order:
                complaint = index.apply(patch)
                if complaint is not None:
                    return f"a patch does not apply: {complaint[-500:]}"
            made = index.write()
            if made != wanted:
                return f"the patches make the tree {made}, and not {wanted}"
    return None


def transplant(repo: GitRepo, patch: bytes, onto: str, like: str) -> str | None:
    """Apply a patch to another commit than the one it was made from, and return the id of the new commit.

    The id depends on the arguments alone.

    Args:
        repo: takes the new commit.
        patch: applied as a whole, without fuzz.
        onto: its parent.
        like: a commit that gives the date.

    Returns:
        None where the patch does not apply.
    """
    with _index(repo, keep=True) as index:
        index.read(onto)
        if index.apply(patch) is not None:
            return None
        tree = index.write()
    date = repo.run("log", "-1", "--format=%ct +0000", like).decode().strip()
    name, email = IDENTITY.rstrip(">").split(" <")
    who = {"NAME": name, "EMAIL": email, "DATE": date}
    env = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    made = repo.run("commit-tree", tree, "-p", onto, stdin=b"The change, on the given base\n", env=env)
    return made.decode().strip()
