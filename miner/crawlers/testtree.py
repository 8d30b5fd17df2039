"""Which files of a tree are tests: what the test runner would collect, and what only tests use.

A name with "test" in it says little: `src/_pytest/` and `pkg/testing/` are products, `contest.py` and `latest.py` are
ordinary modules. So the anchor is what pytest collects (`python_files`, `testpaths`, `norecursedirs`:
https://docs.pytest.org/en/stable/reference/reference.html#ini-options-ref), and a folder is a test folder only when
collected files are in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import PurePosixPath

DEFAULT_PATTERNS = ("test_*.py", "*_test.py")
_UNITTEST_PATTERN = "test*.py"  # https://docs.python.org/3/library/unittest.html#test-discovery
_NO_RECURSE = ("*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}")
_EXAMPLES = frozenset({"doc", "docs", "example", "examples", "sample", "samples", "demo", "demos"})
_FOLDER = re.compile(
    r"^(?:tests?|testing|testsuites?|testcases?|unittests?|test[-_].+|.+[-_]tests?"
    r"|e2e|acceptance|functional|integration|regressions?|smoke)$",
    re.IGNORECASE,
)
_CERTAIN = re.compile(r"^(?:(?:unit|functional|integration)[-_]?)?tests$|^test[-_]?(?:suites?|cases?)$", re.IGNORECASE)
# The last ones are what syrupy, pytest-image-snapshot, inline-snapshot and vcrpy write beside tests.
_DATA = re.compile(
    r"^(?:test[-_]?(?:data|files|resources|fixtures)|__(?:image_|file_|inline_)?snapshots__|(?:vcr_)?cassettes)$",
    re.IGNORECASE,
)
_CONFIG = frozenset({"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"})
_NOT_TESTS = frozenset({"conftest.py", "__init__.py", "setup.py"})


class TestTree:
    """The tests among the files of a change.

    Args:
        paths: all files of the tree, or of both trees of a change.
        python_files: the project's patterns of test modules.
        testpaths: where the project's test run looks, empty for everywhere.
    """

    __test__ = False

    def __init__(
        self, paths: Collection[str], *, python_files: Sequence[str] = DEFAULT_PATTERNS, testpaths: Sequence[str] = ()
    ) -> None:
        self._paths = frozenset(paths)
        self.patterns = tuple(python_files)
        wanted = tuple(PurePosixPath(path).as_posix() for path in testpaths)
        # pytest looks everywhere where nothing is where it was told to look
        self._testpaths = wanted if any(_below(path, wanted) for path in self._paths) else ()

    @cached_property
    def collected(self) -> dict[str, str]:
        """Test module -> why it is one."""
        found = {path: reason for path in sorted(self._paths) if (reason := self._collects(path))}
        if not found and self.patterns == DEFAULT_PATTERNS:
            found = {path: reason for path in sorted(self._paths) if (reason := self._unittest_collects(path))}
        return found

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """Folders that hold tests and what they need, outermost first; everything in them is theirs."""
        found = {folder for path in self.collected for folder in self._owners(path)}
        if self.collected:
            found |= {top for path in self._paths if (top := path.split("/")[0]) in ("tests", "test") and top != path}
        return tuple(sorted(found, key=lambda folder: (folder.count("/"), folder)))

    def why_support(self, path: str) -> str | None:
        """Return why a file that is no test module belongs to the tests, or None."""
        pure = PurePosixPath(path)
        if pure.name == "conftest.py":
            return "fixtures of pytest"
        if path in _CONFIG:
            return "configures pytest alone"
        for folder in self.folders:
            if path.startswith(folder + "/"):
                return f"in the test folder {folder}/"
        if pure.suffix != ".py" and self.collected:
            for part in pure.parts[:-1]:
                if _DATA.match(part):
                    return f"test data in a folder {part}/"
            return self._companion(pure)
        return None

    def _collects(self, path: str) -> str | None:
        pure = PurePosixPath(path)
        pattern = next((pattern for pattern in self.patterns if _matches(path, pattern)), None)
        if pattern is None or pure.suffix != ".py" or pure.name in _NOT_TESTS or _is_skipped(pure):
            return None
        told = bool(self._testpaths) and self._testpaths != (".",)
        if told and not _below(path, self._testpaths):
            return None
        if not told and pure.parts[0].lower() in _EXAMPLES and len(pure.parts) > 1:
            return None
        if _matches("pkg/core.py", pattern) and not told and not any(map(_FOLDER.match, pure.parts[:-1])):
            return None  # the pattern is so broad that it needs a folder beside it
        return f"pytest collects {pattern}" + (f" in {', '.join(self._testpaths)}" if told else "")

    def _unittest_collects(self, path: str) -> str | None:
        """A tree in which pytest would find nothing by itself may have tests for the standard library's runner."""
        pure = PurePosixPath(path)
        if not fnmatchcase(pure.name, _UNITTEST_PATTERN) or _is_skipped(pure):
            return None
        at_root = len(pure.parts) == 1 and pure.name in ("test.py", "tests.py")
        in_folder = any(_CERTAIN.match(part) for part in pure.parts[:-1]) or pure.parts[0] == "test"
        return f"unittest collects {_UNITTEST_PATTERN}" if at_root or (in_folder and len(pure.parts) > 1) else None

    def _owners(self, path: str) -> Iterator[str]:
        """Yield the folder that a test module makes a test folder, if any: the outermost that is sure to be one."""
        above = [folder for folder in _ancestors(path) if folder.split("/")[0].lower() not in _EXAMPLES]
        like = [folder for folder in above if _FOLDER.match(folder.rpartition("/")[2])]
        for folder in like:
            if self._is_certain(folder) or (folder == like[-1] and self._mostly_tests(folder)):
                yield folder
                return
        for folder in above:
            if folder in self._testpaths and self._mostly_tests(folder):
                yield folder
                return

    def _is_certain(self, folder: str) -> bool:
        """`tests` is; `test` and `testing` are, unless they are parts of a package (numpy.testing, django.test)."""
        parent, _, name = folder.rpartition("/")
        in_package = f"{parent}/__init__.py" in self._paths if parent else False
        return bool(_CERTAIN.match(name)) or (name.lower() in ("test", "testing") and not in_package)

    def _mostly_tests(self, folder: str) -> bool:
        return self._balance.get(folder, 0) > 0

    @cached_property
    def _balance(self) -> dict[str, int]:
        """Folder -> how many more test modules than other modules are below it."""
        balance: dict[str, int] = {}
        for path in self._paths:
            pure = PurePosixPath(path)
            if pure.suffix == ".py" and pure.name not in _NOT_TESTS:
                for folder in _ancestors(path):
                    balance[folder] = balance.get(folder, 0) + (1 if path in self.collected else -1)
        return balance

    def _companion(self, pure: PurePosixPath) -> str | None:
        """`test_x.json` and `test_x/data.json` belong to `test_x.py` beside them."""
        for folder in (pure, *pure.parents):
            module = folder.with_name(folder.name.split(".")[0] + ".py") if folder.name else folder
            if str(module) in self.collected:
                return f"data of {module}"
        return None


def _matches(path: str, pattern: str) -> bool:
    """Match as pytest does: a pattern with a slash looks at the end of the path, another one at the name."""
    return fnmatchcase("/" + path, "*/" + pattern) if "/" in pattern else fnmatchcase(path.rpartition("/")[2], pattern)


def _is_skipped(pure: PurePosixPath) -> bool:
    return any(fnmatchcase(part, pattern) for part in pure.parts[:-1] for pattern in _NO_RECURSE)


def _below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of these paths or below one; they may hold wildcards, as pytest's `testpaths`."""
    starts = (path, *_ancestors(path))
    return any(folder == "." or fnmatchcase(start, folder) for folder in folders for start in starts)


def _ancestors(path: str) -> list[str]:
    """Return the folders above a path, outermost first."""
    return [str(parent) for parent in reversed(PurePosixPath(path).parents) if str(parent) != "."]
