"""Trees in memory: what changed between two of them, and what a merge makes of three."""

from __future__ import annotations

import difflib

from forge.gitstore import File, Tree
from forge.records import Change, ChangedFile

_NO_NEWLINE = "\\ No newline at end of file"


def changed_files(old: Tree, new: Tree) -> list[ChangedFile]:
    """Return the files that differ, as the forge lists them; a file that moved unchanged is a rename."""
    gone = {(old[path].data, old[path].mode): path for path in sorted(old.keys() - new.keys())}
    renamed = {
        gone[key]: path for path in sorted(new.keys() - old.keys()) if (key := (new[path].data, new[path].mode)) in gone
    }
    files: list[ChangedFile] = []
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        if before == after or path in renamed:
            continue
        change: Change = "ADDED" if before is None else "DELETED" if after is None else "MODIFIED"
        if path in renamed.values():
            files.append(ChangedFile(path, 0, 0, "RENAMED"))
        else:
            files.append(_changed(path, before, after, change))
    return files


def merge(base: Tree, ours: Tree, theirs: Tree) -> dict[str, File]:
    """Return ours with every file that theirs changed since the base."""
    merged = dict(ours)
    for path in base.keys() | theirs.keys():
        if base.get(path) == theirs.get(path):
            continue
        if path in theirs:
            merged[path] = theirs[path]
        else:
            merged.pop(path, None)
    return merged


def _changed(path: str, before: File | None, after: File | None, change: Change) -> ChangedFile:
    old, new = _lines(before), _lines(after)
    if old is None or new is None:
        return ChangedFile(path, 0, 0, change)
    hunks = list(difflib.unified_diff(old, new, lineterm="\n"))[2:]
    added = sum(line.startswith("+") for line in hunks)
    removed = sum(line.startswith("-") for line in hunks)
    patch = "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}\n" for line in hunks)
    return ChangedFile(path, added, removed, change, patch.removesuffix("\n"))


def _lines(file: File | None) -> list[str] | None:
    """Return the lines of a text, None for what git calls binary."""
    if file is None:
        return []
    if b"\0" in file.data[:8000]:
        return None
    return file.data.decode(errors="surrogateescape").splitlines(keepends=True) if file.data else []
