"""What a path alone says about a changed file: could it be a test, could it be code, is it a list of dependencies.

Each answer is on the safe side of the split that is made later with the project's own configuration
(`miner.crawlers.testtree`): a path that could be a test by any configuration could be a test here.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from miner.crawlers.testtree import DEFAULT_PATTERNS

_NEVER_A_TEST = frozenset({"conftest.py", "__init__.py", "setup.py"})
_DOC_FOLDERS = frozenset({"doc", "docs", "documentation"})
_DOC_SUFFIXES = frozenset({".adoc", ".markdown", ".md", ".rst"})
_DOC_NAMES = ("authors", "change", "citation", "contribut", "history", "licen", "news", "readme", "security")
# Fragments of change logs (https://towncrier.readthedocs.io, https://scriv.readthedocs.io).
_FRAGMENT_FOLDERS = frozenset({"changelog.d", "newsfragments"})
# What the tools that raise versions edit (https://docs.github.com/en/code-security/reference/supply-chain-security/
# supported-ecosystems-and-repositories, https://docs.renovatebot.com/modules/manager/).
_DEPENDENCY_FILES = (
    *("*requirement*.txt", "*requirement*.in", "*constraint*.txt", "*constraint*.in", "*.lock", "pipfile"),
    *("pyproject.toml", "setup.cfg", "setup.py", "environment*.yml", "environment*.yaml", "conda-lock*.yml"),
    *("package.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.mod", "go.sum", "cargo.toml"),
    *("gemfile", "dockerfile*", "*.dockerfile", "docker-compose*.yml", ".pre-commit-config.yaml", "tox.ini"),
    *(".python-version", ".tool-versions", "renovate.json", "action.yml", "action.yaml"),
)


def could_be_test(path: str) -> bool:
    """Whether some configuration of pytest makes a file a test module.

    `python_files` may hold any pattern, so that any Python file could be one, except those that never are.
    """
    name = PurePosixPath(path).name
    return name.endswith(".py") and name not in _NEVER_A_TEST


def is_named_as_test(path: str) -> bool:
    """Whether pytest would take a file for a test module by its name, with no configuration at all."""
    return any(fnmatchcase(PurePosixPath(path).name, pattern) for pattern in DEFAULT_PATTERNS)


def could_be_code(path: str) -> bool:
    """Whether a file could be what tests test: it is no document, is in no test folder, and is not written by a build.

    `test` is a test folder at the root only: `django/test/` and `src/twisted/test/` are products.
    """
    pure = PurePosixPath(path)
    folders = [part.lower() for part in pure.parts[:-1]]
    in_tests = "tests" in folders or folders[:1] == ["test"]
    generated = path == "PKG-INFO" or any(part.endswith(".egg-info") for part in pure.parts)
    return not (in_tests or generated or pure.name == "conftest.py" or _is_document(pure, folders))


def _is_document(pure: PurePosixPath, folders: list[str]) -> bool:
    """A text file inside a package is none: it may be a template that the code reads."""
    if pure.suffix.lower() == ".py":
        return False
    if _DOC_FOLDERS.intersection(folders[:1]) or _FRAGMENT_FOLDERS.intersection(folders):
        return True
    if folders:
        return False
    return pure.suffix.lower() in _DOC_SUFFIXES or (
        pure.suffix.lower() in ("", ".txt") and pure.name.lower().startswith(_DOC_NAMES)
    )


def holds_dependencies(path: str) -> bool:
    """Whether a file is where versions of dependencies stand: requirements, locks, workflows, build declarations."""
    lowered = path.lower()
    pure = PurePosixPath(lowered)
    if lowered.startswith(".github/"):
        return True
    if pure.suffix in (".txt", ".in") and pure.parent.name in ("requirements", "constraints"):
        return True
    return any(fnmatchcase(pure.name, pattern) for pattern in _DEPENDENCY_FILES)
