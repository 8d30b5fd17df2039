"""Tracked files that a build writes anew: source distributions track what was generated. Pure.

Whoever builds the project in a session's container changes them, and means nothing by it; what the recipe leads to is
built from the base commit in any case.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from installers.distrust.tree import TreeEdit

_GENERATED = (
    # path, what writes it
    (re.compile(r"(?:.*/)?[^/]+\.egg-info/[^/]+"), "setuptools writes its metadata with every build"),
    (
        re.compile(r"(?:.*/)?(?:_version|__version__|version|_version_info|_scm_version|_versions)\.py"),
        "setuptools-scm, hatch-vcs, pdm-backend and others write the version with every build",
    ),
    (re.compile(r"(?:.*/)?(?:uv|poetry|pdm|Cargo)\.lock"), "uv, poetry, pdm and cargo bring their lock up to date"),
)
_COMPILED = re.compile(r"(.+)\.(?:c|cc|cpp|cxx)")
_SOURCES = (".pyx", ".py", ".pyx.in")


def is_rewritten(edit: TreeEdit, tracked: Collection[str]) -> bool:
    """Whether an edit is what a build does: new content of a file that tools generate.

    Args:
        edit: what was found.
        tracked: paths of the base commit.
    """
    if edit.kind != "changed":
        return False
    if any(pattern.fullmatch(edit.path) for pattern, _ in _GENERATED):
        return True
    compiled = _COMPILED.fullmatch(edit.path)  # by Cython, from what lies beside it
    return compiled is not None and any(f"{compiled[1]}{ending}" in tracked for ending in _SOURCES)
