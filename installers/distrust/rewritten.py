"""Files that a build writes: source distributions track some of them, and other repositories gain them. Pure.

Whoever builds the project in a session's container writes them, and means nothing by it; what the recipe leads to is
built from the base commit in any case.
"""

from __future__ import annotations

import re
from collections.abc import Collection

MODULES: tuple[tuple[str, str], ...] = (
    # name of a module, what writes it
    (
        r"(?:_version|__version__|version|_version_info|_scm_version|_versions)\.py",
        "setuptools-scm, hatch-vcs, pdm-backend and others write the version with every build",
    ),
    (r"(?:parsetab|lextab|yacctab)\.py", "PLY writes the tables of its parsers and lexers, pycparser those of its own"),
    (r"(?:aliastab|manytab|opt2tab)\.py", "PLY's own tests, which others carry along, write these"),
    (r"(?!test_)[^/]+_pb2(?:_grpc)?\.pyi?", "protoc and the generator of gRPC write a module for each .proto"),
    (r"__config__\.py", "numpy.distutils, and the builds of numpy and scipy, write what they were built with"),
)
"""Modules that tools generate, by names that nobody gives to a test, a plug-in or settings."""
_OTHERS: tuple[tuple[str, str], ...] = (
    # path of what is no module, what writes it
    (r"[^/]+\.egg-info/[^/]+", "setuptools writes its metadata with every build"),
    (r"(?:uv|poetry|pdm|Cargo)\.lock", "uv, poetry, pdm and cargo bring their lock up to date"),
)
_COMPILED = re.compile(r"(.+)\.(?:c|cc|cpp|cxx)")
_SOURCES = (".pyx", ".py", ".pyx.in")


def is_generated(path: str) -> bool:
    """Whether a path is that of a module that a build writes, tracked or not."""
    return _is_one_of(path, MODULES)


def is_rewritten(path: str, tracked: Collection[str]) -> bool:
    """Whether new content of a tracked file is what a build does.

    Args:
        path: of the file.
        tracked: paths of the base commit.
    """
    if is_generated(path) or _is_one_of(path, _OTHERS):
        return True
    compiled = _COMPILED.fullmatch(path)  # by Cython, from what lies beside it
    return compiled is not None and any(f"{compiled[1]}{ending}" in tracked for ending in _SOURCES)


def _is_one_of(path: str, table: tuple[tuple[str, str], ...]) -> bool:
    return any(re.fullmatch(rf"(?:.*/)?{pattern}", path) for pattern, _ in table)
