"""The split of a change into gold patch and test patch, file by file: base + gold + test = target, in either order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Literal

from miner.core.errors import InfrastructureFault
from miner.core.reasons import Reason
from miner.core.text import some
from miner.crawlers.git_repo import Change, quote_path
from miner.crawlers.interface import Rejection
from miner.crawlers.testtree import DEFAULT_PATTERNS, TestTree

Side = Literal["gold", "test", "support", "generated"]


@dataclass(frozen=True)
class Split:
    """Two patches, and which file went where and why.

    Attributes:
        gold_patch: git's diff of everything that is not a test, as bytes.
        test_patch: the same of tests and what only they use.
        gold_files: files of the gold patch, those without that a build writes (PKG-INFO, *.egg-info).
        test_files: files of the test patch that the runner collects and that are there after the change.
        support_files: the other files of the test patch.
        generated_files: files of the gold patch that a build writes.
        reasons: path -> why it went where it is.
        tree: the tests of both trees.
        target_tests: every test module of the tree after the change.
    """

    gold_patch: bytes
    test_patch: bytes
    gold_files: tuple[str, ...]
    test_files: tuple[str, ...]
    support_files: tuple[str, ...]
    generated_files: tuple[str, ...]
    reasons: Mapping[str, str]
    tree: TestTree
    target_tests: tuple[str, ...]


def split_change(
    diff: bytes,
    changes: Sequence[Change],
    *,
    base_paths: Collection[str],
    target_paths: Collection[str],
    python_files: Sequence[str] = DEFAULT_PATTERNS,
    testpaths: Sequence[str] = (),
) -> Split:
    """Split git's diff.

    Args:
        diff: as `GitRepo.diff` gives it.
        changes: as `GitRepo.changes` gives them, for the same two commits.
        base_paths: all files before the change.
        target_paths: all files after it.
        python_files: pytest's patterns of test modules.
        testpaths: where pytest looks, empty for everywhere.

    Raises:
        InfrastructureFault: the diff is not that of these changes.
    """
    tree = TestTree({*base_paths, *target_paths}, python_files=python_files, testpaths=testpaths)
    sides = _keep_together({change.path: _side(change.path, tree) for change in changes})
    parts = list(zip(changes, _sections(diff, changes), strict=True))
    after = frozenset(target_paths)

    def files(*wanted: Side) -> tuple[str, ...]:
        return tuple(sorted(path for path, (side, _) in sides.items() if side in wanted))

    tests = files("test")
    return Split(
        gold_patch=b"".join(section for change, section in parts if sides[change.path][0] in ("gold", "generated")),
        test_patch=b"".join(section for change, section in parts if sides[change.path][0] in ("test", "support")),
        gold_files=files("gold"),
        test_files=tuple(path for path in tests if path in after),
        support_files=tuple(sorted({*files("support"), *(path for path in tests if path not in after)})),
        generated_files=files("generated"),
        reasons={path: reason for path, (_, reason) in sorted(sides.items())},
        tree=tree,
        target_tests=tuple(path for path in tree.collected if path in after),
    )


def reject_split(split: Split, target_paths: Collection[str]) -> Rejection | None:
    """Return why a split makes no task, or None where it may make one."""
    if not split.target_tests:
        return Rejection(reason=Reason.NO_TEST_FILES, detail=_nothing_found(split, target_paths))
    if not split.test_files:
        detail = f"{len(split.target_tests)} test files ({some(split.target_tests)}), none of them changed"
        if split.support_files:
            detail += f"; of what only tests use, changed: {some(split.support_files)}"
        return Rejection(reason=Reason.NO_TEST_CHANGE, detail=detail)
    if not split.gold_files:
        detail = f"changed: {some(split.test_files + split.support_files + split.generated_files)}"
        return Rejection(reason=Reason.NO_GOLD_CHANGE, detail=detail)
    return None


def _side(path: str, tree: TestTree) -> tuple[Side, str]:
    if path == "PKG-INFO" or any(part.endswith(".egg-info") for part in PurePosixPath(path).parts):
        return "generated", "written by the build of the source distribution"
    if path in tree.collected:
        return "test", tree.collected[path]
    support = tree.why_support(path)
    return ("support", support) if support else ("gold", "no test")


def _keep_together(sides: dict[str, tuple[Side, str]]) -> dict[str, tuple[Side, str]]:
    """Put a file that makes way for a folder, or a folder for a file, on one side with what takes its place.

    Else the patches would apply in one order only. The gold side wins: a solution must never be in the test patch.
    """
    groups: dict[str, list[str]] = {}
    for path in sides:
        parents = [str(parent) for parent in PurePosixPath(path).parents]
        top = min((parent for parent in parents if parent in sides), key=len, default=path)
        groups.setdefault(top, []).append(path)
    together = dict(sides)
    for top, members in groups.items():
        if len({sides[path][0] in ("gold", "generated") for path in members}) > 1:
            together.update(dict.fromkeys(members, ("gold", f"{top} is a file on one side and a folder on the other")))
    return together


def _sections(diff: bytes, changes: Sequence[Change]) -> list[bytes]:
    """Cut a diff into one piece for each change.

    Only a header can begin with `diff --git`: lines of text begin with a space, a sign or a backslash, and lines of a
    binary patch hold no space.
    """
    starts = [0] if diff else []
    at = diff.find(b"\ndiff --git ")
    while at >= 0:
        starts.append(at + 1)
        at = diff.find(b"\ndiff --git ", at + 1)
    pieces = [diff[start:end] for start, end in pairwise([*starts, len(diff)])]
    sections = []
    for change in changes:
        header = b"diff --git %s %s\n" % (quote_path(f"a/{change.path}"), quote_path(f"b/{change.path}"))
        count = 2 if change.status == "T" else 1  # a change of type is a deletion and an addition
        taken, pieces = pieces[:count], pieces[count:]
        if len(taken) != count or not all(piece.startswith(header) for piece in taken):
            raise InfrastructureFault(f"the diff does not go on with {change.path!r}, as the changed paths say")
        sections.append(b"".join(taken))
    if pieces:
        raise InfrastructureFault(f"the diff holds {len(pieces)} sections more than there are changed paths")
    return sections


def _nothing_found(split: Split, target_paths: Collection[str]) -> str:
    modules = [path for path in target_paths if path.endswith(".py")]
    tops = sorted({path.split("/")[0] + "/" for path in target_paths if "/" in path})
    looked = f"looked for {', '.join(split.tree.patterns)} (and a tests folder with test*.py)"
    found = f"found {len(modules)} Python modules, none of these, in {some(tops) or 'no folder'}"
    before = [path for path in split.tree.collected if path not in target_paths]
    return f"{looked}; {found}" + (f"; only the tree before the change has {some(before)}" if before else "")
