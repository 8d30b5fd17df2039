"""Which declaration files of a tree are kept, so that recipes can be computed: `is_declaration`, within bounds."""

from __future__ import annotations

from collections.abc import Iterable

from miner.crawlers.git_repo import TreeFile
from miner.crawlers.texts import is_text_wanted
from miner.project.declaration_files import is_declaration, is_lock

__all__ = ["MAX_BYTES", "MAX_TOTAL", "bounded", "is_declaration"]

MAX_BYTES = 1 << 20
MAX_TOTAL = 6 << 20


def bounded(files: Iterable[TreeFile], notes: list[str], total: int = MAX_TOTAL) -> list[TreeFile]:
    """Return the declaration files that fit into a bound, the nearest to the root first, locks last.

    Args:
        files: with their sizes.
        notes: takes how many are left out.
        total: the bound. Files that are too large on their own, which nobody reads, do not count.
    """
    wanted = [file for file in files if is_text_wanted(file, is_declaration)]
    kept: list[TreeFile] = []
    left, used = 0, 0
    for file in sorted(wanted, key=lambda file: (is_lock(file.path), file.path.count("/"), file.path)):
        size = file.size if file.size <= MAX_BYTES else 0
        if used + size > total:
            left += 1
            continue
        used += size
        kept.append(file)
    if left:
        notes.append(f"{left} of {len(wanted)} declaration files are not kept: they are more than {total} bytes")
    return sorted(kept, key=lambda file: file.path)
