"""Files of a commit as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from miner.crawlers.changelog import decode
from miner.crawlers.git_repo import LINK, GitRepo, TreeFile


def is_text_wanted(file: TreeFile, wanted: Callable[[str], bool]) -> bool:
    """Whether a file is read: its path is wanted, and it is neither a link nor a submodule."""
    return wanted(file.path) and file.mode != LINK and not file.is_submodule


def read_texts(
    repo: GitRepo, files: Iterable[TreeFile], wanted: Callable[[str], bool], most: int, notes: list[str]
) -> dict[str, str]:
    """Return files as text, with surrogate escapes where their bytes are not UTF-8.

    Args:
        repo: where they are.
        files: with their sizes.
        wanted: which paths are read.
        most: the size of the largest one that is read.
        notes: takes what is odd.
    """
    taken = [file for file in files if is_text_wanted(file, wanted)]
    notes.extend(f"{file.path}: {file.size} bytes, too large to read" for file in taken if file.size > most)
    texts: dict[str, str] = {}
    for file, data in repo.blobs(file for file in taken if file.size <= most):
        texts[file.path] = data.decode("utf-8", "surrogateescape")
        _, note = decode(data)
        if note is not None:
            notes.append(f"{file.path}: {note}")
    return texts
