"""The few files of a tree that matter for an environment, best first, each cut to what matters, within a budget. Pure.

Tokens are estimated as a third of the bytes: on code, tables and English text, byte-pair encodings need fewer; only
texts of mostly other scripts need more.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence

from installers.brief.cutting import cut
from installers.interface import Tree
from miner.core.records import Recipe, Record, legible
from miner.project.ci import is_ci
from miner.project.ci.paths import is_script
from miner.project.declaration_files import is_conda, is_lock, is_requirements

_BYTES = 3
_SHARE = 0.4
_NEXT = 1.5
"""The second file of a kind stands behind the first of the next kind, so that no kind takes all the room."""
_SMALLEST = 60
_FRAME = 60
_MOST_ENTRIES = 48
_MOST_TESTS = 8
_LONGEST_PATH = 200
_READABLE = re.compile(r"[^\"\n\r<>]+\Z")
_TESTS = re.compile(rb"pytest|tox|nox|\btests?\b|unittest|nosetests|run_?tests", re.I)
_FOR_TESTS = re.compile(r"test|dev|ci(?![a-z])", re.I)
_FOR_OTHERS = re.compile(
    r"(?:^|[/_.-])(?:docs?(?![a-z])|documentation|lint|pre-?commit|release|publish|deploy|example|bench|stale|codeql|label"
    r"|sphinx|readthedocs|rtd)",
    re.I,
)
_WORKFLOW = re.compile(r"\.github/(?:workflows|actions)/|\.circleci/|\.azure|\.ci/|ci/|\.travis/")
_DECLARATIONS = ("pyproject.toml", "setup.py", "setup.cfg")
_RUNNERS = ("tox.ini", "tox.toml", "noxfile.py", "hatch.toml", "pytest.ini", ".pytest.ini", "Pipfile")
_SILENT = ("MANIFEST.in", ".gitmodules", ".gitattributes", "top_level.txt", "entry_points.txt")
_HINTS = (".python-version", "runtime.txt")
_CONTRIBUTING = re.compile(r"(?:CONTRIBUTING|README|INSTALL|HACKING|DEVELOPMENT)[^/]*\Z", re.I)


class Shown(Record):
    """A file as a model is shown it.

    Attributes:
        cut: something of it is left out.
        tokens: by estimate, with its fence.
    """

    path: str
    text: str
    cut: bool
    tokens: int


def tokens_of(text: str) -> int:
    """Return how many tokens a text has at most, by estimate."""
    return -(-len(text.encode("utf-8", "surrogateescape")) // _BYTES)


def select(tree: Tree, declared: Recipe, budget_tokens: int) -> tuple[Shown, ...]:
    """Return the files that matter most, within a budget of tokens.

    Args:
        tree: the tree; only its declaration files are at hand.
        declared: names the project's folder.
        budget_tokens: of all files together, by estimate.
    """
    shown: list[Shown] = []
    left = budget_tokens
    for path in _ranked(tree, declared.project_dir):
        room = min(left, max(_SMALLEST, int(budget_tokens * _SHARE))) - _FRAME
        if room < _SMALLEST:
            continue
        text, is_cut = cut(path, _text(tree.files[path]), room * _BYTES)
        if _says_something(text):
            shown.append(Shown(path=path, text=text, cut=is_cut, tokens=tokens_of(text) + _FRAME))
            left -= shown[-1].tokens
    return tuple(shown)


def _says_something(text: str) -> bool:
    """Whether anything is left of a file beside headings of tables and marks."""
    return any(line.strip() and not line.lstrip().startswith("[") for line in text.split("\n"))


def outline(tree: Tree, test_files: Sequence[str] = (), most: int = _MOST_ENTRIES) -> str:
    """Return the top of a tree, bounded: files of the root, folders with how many files are below them.

    Args:
        tree: the tree.
        test_files: that have to run; the first few are told.
        most: entries.
    """
    paths = [path for path in tree.paths if _READABLE.match(path) and path.isprintable() and len(path) < _LONGEST_PATH]
    files = sorted(path for path in paths if "/" not in path)
    below = Counter(
        "/".join(parts[:depth]) for parts in (path.split("/") for path in paths) for depth in _depths(parts)
    )
    top, inner = (
        sorted((folder for folder in below if ("/" in folder) == deep), key=lambda one: (-below[one], one))
        for deep in (False, True)
    )
    folders = sorted(top[: most // 3] + inner[: most // 3])
    shown = files[: most - len(folders)]
    tests = [path for path in test_files if path in paths][:_MOST_TESTS]
    lines = [*(f"{folder}/ ({below[folder]} files)" for folder in folders), *shown]
    lines += [f"{path} (a test that has to run)" for path in tests]
    more = len(below) + len(files) - len(folders) - len(shown)
    return "\n".join([*lines, *([f"[{more} more entries]"] if more else [])])


def _depths(parts: Sequence[str]) -> range:
    return range(1, min(len(parts), 3))


def _text(content: bytes) -> str:
    return legible(content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n"))


def _ranked(tree: Tree, folder: str) -> list[str]:
    """Return the paths of the files that may be shown, the most telling first, and of no kind too many at once."""
    kinds: dict[int, list[str]] = {}
    for path in sorted(tree.files, key=lambda path: (path.count("/"), len(path), path)):
        rank = _rank(path, tree.files[path], folder) if _is_fit(path, tree.files[path]) else None
        if rank is not None:
            kinds.setdefault(rank, []).append(path)
    order = {path: rank + _NEXT * place for rank, paths in kinds.items() for place, path in enumerate(paths)}
    return sorted(order, key=lambda path: (order[path], path.count("/"), len(path), path))


def _is_fit(path: str, content: bytes) -> bool:
    fits = len(path) < _LONGEST_PATH and path.isprintable() and _READABLE.match(path)
    return bool(content.strip()) and b"\0" not in content and bool(fits)


def _rank(path: str, content: bytes, folder: str) -> int | None:
    """Return how telling a file is, the smaller the more; None for one that is not worth its tokens."""
    where, name = posixpath.split(path)
    near = where in (folder, "")
    inside = near or posixpath.dirname(where) in (folder, "")
    if is_lock(path) or _FOR_OTHERS.search(path) or name in _SILENT or not (inside or _WORKFLOW.match(path)):
        return None
    if name in _DECLARATIONS:
        return 0 if where == folder else 4 if near else None
    if name in _RUNNERS:
        return 2 if near else None
    if is_requirements(path):
        return 1 if near or _FOR_TESTS.search(name) else 6
    if is_conda(path) or name in ("meta.yaml", "meta.yml"):
        return 5
    if is_ci(path) and not is_script(path):
        if not _TESTS.search(content) or (path.startswith(".github/") and not _WORKFLOW.match(path)):
            return None
        return 3 if name.endswith((".yml", ".yaml")) else 4
    return _rank_of_rest(path, content, near)


def _rank_of_rest(path: str, content: bytes, near: bool) -> int | None:
    where, name = posixpath.split(path)
    if name in _HINTS:
        return 2
    if _CONTRIBUTING.match(name):
        return 7 if near else None
    if is_script(path):
        return 7 if _TESTS.search(content) else None
    if where.endswith(".egg-info") or name == "PKG-INFO":
        return 8 if name == "requires.txt" else 9 if name == "PKG-INFO" and b"\nRequires-Dist:" in content else None
    return 9 if near else None
