"""Which requirements files of a project are for its tests, for development, for running it, or for something else.

Those for something else matter only where they lie beside the tests that are going to run.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from miner.project.declaration_files import is_requirements
from miner.project.model import Group, GroupKind
from miner.project.requirements import read_requirements_file

TESTS, DEV, RUN, OTHER = "tests", "dev", "run", "other"

_SUFFIX = r"\.(?:txt|in|pip)\Z"
_TEST_WORD = r"(?:tests?|testing|pytest|unit(?:[-_]?tests?)?)"
_DEV_WORD = r"(?:dev(?:el(?:opment|oper)?)?|ci|local|contrib)"
_LIST_WORD = r"(?:req(?:uire(?:ments?|s|d)?|s)?|deps|dependencies|pip[-_]?requirements?|packages)"
_RUN_WORD = r"(?:base|common|main|core|run(?:time)?|install|prod(?:uction)?|default|default[-_]?requirements|all)"
_FILES = {
    TESTS: re.compile(
        rf"(?:(?:.*/)?(?:{_TEST_WORD}[-_.]?{_LIST_WORD}|{_LIST_WORD}[-_.](?:.*[-_.])?{_TEST_WORD}(?:[-_.]py\d*)?)"
        rf"|(?:.*/)?{_TEST_WORD}/(?:{_LIST_WORD}[^/]*|requirements/(?:{_RUN_WORD}|{_TEST_WORD}|py3))|(?:.*/)?(?:requirements?|reqs)/(?:[^/]*[-_.])?{_TEST_WORD}){_SUFFIX}",
        re.I,
    ),
    DEV: re.compile(
        rf"(?:(?:.*/)?(?:{_DEV_WORD}[-_.]?{_LIST_WORD}|{_LIST_WORD}[-_.]?(?:.*[-_.])?{_DEV_WORD})"
        rf"|(?:.*/)?(?:requirements?|reqs)/(?:[^/]*[-_.])?{_DEV_WORD}){_SUFFIX}",
        re.I,
    ),
    RUN: re.compile(rf"(?:{_LIST_WORD}|(?:requirements?|reqs)/(?:{_RUN_WORD}|{_LIST_WORD})){_SUFFIX}", re.I),
    OTHER: re.compile(rf"(?:.*/)?{_LIST_WORD}(?:[-_.][^/]*)?{_SUFFIX}", re.I),
}
_NEAREST = 2  # folders between a project and its requirements files


def requirement_files(files: Mapping[str, bytes], folder: str) -> tuple[Group, ...]:
    """Return one group for each requirements file, called "tests", "dev", "run" or "other" by its path."""
    return tuple(_group(files, name, path) for name, path in _named(files, folder) if not _has_source(files, path))


def _named(files: Mapping[str, bytes], folder: str) -> Iterator[tuple[str, str]]:
    prefix = f"{folder}/" if folder else ""
    for path in sorted(files):
        inner = path.removeprefix(prefix)
        if not path.startswith(prefix) or inner.count("/") > _NEAREST or not is_requirements(path):
            continue
        if "constraint" in posixpath.basename(path).lower() or "docs/" in inner:
            continue
        name = next((name for name, pattern in _FILES.items() if pattern.fullmatch(inner)), None)
        if name is not None:
            yield name, path


def _has_source(files: Mapping[str, bytes], path: str) -> bool:
    """Whether a file is compiled from an `.in` file beside it."""
    return path.endswith(".txt") and f"{path.removesuffix('.txt')}.in" in files


def _group(files: Mapping[str, bytes], name: str, path: str) -> Group:
    read = read_requirements_file(files, path, [])
    return Group(name=name, kind=GroupKind.FILE, requirements=read.requirements, constraints=read.constraints)
