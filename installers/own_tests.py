"""Which paths pytest is given for a candidate's own tests, and for the whole suite of a package; pure."""

from __future__ import annotations

import posixpath
from collections.abc import Collection

_MAX_NAMES = 1_000_000  # bytes: the kernel takes two million for arguments and environment together (execve(2))


def suite_paths(test_files: Collection[str], project_dir: str = "") -> tuple[str, ...]:
    """Return the topmost folders of a suite's files, and the files that lie in no folder below the project's.

    Within a folder the project's own configuration says what is collected (`collect_ignore`, `norecursedirs`), which a
    file that is named is not asked for.
    """
    root = project_dir.strip("/")
    folders = sorted({posixpath.dirname(path) for path in test_files} - {"", root})
    top = [one for one in folders if not any(one.startswith(f"{other}/") for other in folders)]
    return (*top, *sorted(path for path in test_files if posixpath.dirname(path) in ("", root)))


def own_tests(test_files: tuple[str, ...], project_dir: str, *, whole: bool) -> tuple[str, ...]:
    """Return what pytest is given: a candidate's test files by name; folders where they are a whole suite."""
    short = sum(len(path.encode()) + 1 for path in test_files) <= _MAX_NAMES
    return test_files if short and not whole else suite_paths(test_files, project_dir)
