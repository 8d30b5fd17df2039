"""What of one declaration file matters for an environment, by the kind of file. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable

_LONGEST_LINE = 400
_AROUND = 2
_MARK = "[... left out ...]"
_TABLE = re.compile(r"\s*+\[++([^\[\]]*+)\]++\s*+(?:#.*)?\Z")
_ASIDE = re.compile(
    r"(?:tool[.:]\s*)?(?:black|ruff|isort|mypy|pyright|basedpyright|pylint|flake8|pycodestyle|pydocstyle|pep8|yapf"
    r"|bandit|coverage|towncrier|bumpversion|bumpver|commitizen|semantic_release|cibuildwheel|interrogate|codespell"
    r"|vulture|autoflake|docformatter|pyupgrade|scriv|rstcheck|doc8|check-manifest|build_sphinx|upload_docs|zest"
    r"|wheel|sdist|egg_info|bdist_\w+|project\.urls|project\.scripts|project\.gui-scripts|ty|pyrefly|nbqa|djlint"
    r"|tomlsort|pytest-enabler|jupyter-releaser|repo-review|cruft|git-cliff|tbump|deptry|creosote)(?:[.:\-\s].*)?\Z",
    re.I,
)
"""Tables of tools that have no part in installing or testing."""
_ENTRIES = re.compile(
    r"\s*+(?:authors?|author_email|maintainers?|maintainer_email|keywords|description|long_description\w*|urls?|homepage"
    r"|repository|documentation|download_url|project_urls|license|licence|license_files?|readme)\s*[=:]",
    re.I,
)
_TELLING = re.compile(
    r"install|require|depend|extra|test|tox\b|nox\b|python|conda|apt\b|apt-get|brew|pip\b|setup\(|import |version|env"
    r"|ext_modules|cython|numpy|DJANGO_SETTINGS|export |service",
    re.I,
)
_COMMENT = re.compile(r"\s*+#")
_HASH = re.compile(r"\s*+(?:--hash=|#\s*+via\b)")


def cut(path: str, text: str, budget: int) -> tuple[str, bool]:
    """Return what of a file matters, never longer in UTF-8 than a budget of bytes, and whether anything is left out."""
    lines = [line[:_LONGEST_LINE].rstrip() for line in text.split("\n")]
    kept = "\n".join(_reader(path)(lines))
    kept = re.sub(r"\n{3,}", "\n\n", kept).strip("\n")
    if _bytes(kept) > budget:
        kept = _within(_telling(kept.split("\n")), budget)
    return kept, kept != text.strip("\n")


def _reader(path: str) -> Callable[[list[str]], Iterable[str]]:
    name = posixpath.basename(path)
    if name.endswith((".toml", ".cfg", ".ini")) or name == "Pipfile":
        return _tables
    if name == "PKG-INFO":
        return _header
    if name.endswith((".txt", ".in", ".pip")):
        return _requirements
    if name.endswith((".yml", ".yaml")):
        return _without_comments
    if name.lower().endswith((".md", ".rst")):
        return _telling
    return list


def _tables(lines: list[str]) -> list[str]:
    """Leave out the tables of tools that have no part in it, and what only describes."""
    found: list[str] = []
    aside = False
    for line in lines:
        table = _TABLE.match(line)
        if table is not None:
            aside = _ASIDE.match(table[1].strip().strip("\"'")) is not None
            if aside and found[-1:] != [_MARK]:
                found.append(_MARK)
        if not aside and not _ENTRIES.match(line) and not _COMMENT.match(line):
            found.append(line)
    return found


def _header(lines: list[str]) -> list[str]:
    """Keep the fields of a PKG-INFO: what follows the first empty line is its description."""
    end = next((index for index, line in enumerate(lines) if not line.strip()), len(lines))
    telling = ("Name", "Version", "Requires", "Provides-Extra", "Classifier: Programming Language")
    return [line for line in lines[:end] if line.startswith(telling)]


def _requirements(lines: list[str]) -> list[str]:
    return [line for line in lines if not _HASH.match(line) and not (_COMMENT.match(line) and "==" not in line)]


def _without_comments(lines: list[str]) -> list[str]:
    return [line for line in lines if not _COMMENT.match(line)]


def _telling(lines: list[str]) -> list[str]:
    """Keep the lines that speak of installing or testing, with their neighbours."""
    told = [index for index, line in enumerate(lines) if _TELLING.search(line)]
    kept = sorted({near for index in told for near in range(index - _AROUND, index + _AROUND + 1)})
    found: list[str] = []
    last = -1
    for index in kept:
        if 0 <= index < len(lines):
            if index > last + 1:
                found.append(_MARK)
            found.append(lines[index])
            last = index
    return found


def _within(lines: list[str], budget: int) -> str:
    """Return the first lines that fit, and a mark."""
    found: list[str] = []
    left = budget - _bytes(_MARK) - 1
    for line in lines:
        left -= _bytes(line) + 1
        if left < 0:
            break
        found.append(line)
    return "\n".join([*found, _MARK]) if budget > _bytes(_MARK) else ""


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
