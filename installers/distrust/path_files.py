"""Which `.pth` files of an environment do no more than they should: Python runs their lines when it starts.

Sources: Python, "site" (lines that begin with `import` are executed); setuptools, `setuptools/namespaces.py` in its
versions with `-nspkg.pth` files, whose every statement stands in the table below.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from installers.distrust.runner import GUARDED
from installers.siblings import TESTBED

OWNERS: dict[str, tuple[str, str]] = {
    # file: the distribution that may bring it, and what its line does
    "distutils-precedence.pth": ("setuptools", "has setuptools' own distutils found first"),
    "pytest-cov.pth": ("pytest-cov", "measures coverage in other processes, where COV_CORE_SOURCE is set"),
    "init_cov_core.pth": ("cov-core", "measures coverage in other processes, where COV_CORE_SOURCE is set"),
    "a1_coverage.pth": ("coverage", "measures coverage in other processes, where COVERAGE_PROCESS_START is set"),
    "pywin32.pth": ("pywin32", "adds its folders"),
    "editables.pth": ("editables", "adds its folders"),
}
VIRTUALENV = "_virtualenv"
"""Name of the module and of the `.pth` file that uv lays into an environment: it keeps distutils in it."""

_ANY = r"'[A-Za-z_][\w.]*'"
_FOUND = rf"importlib\.machinery\.PathFinder\.find_spec\({_ANY}, \[os\.path\.dirname\(p\)\]\)"
_SPEC = rf"importlib\.util\.module_from_spec\({_FOUND}\)"
_NEW = rf"sys\.modules\.setdefault\({_ANY}, ?types\.ModuleType\({_ANY}\)\)"
_STATEMENTS = tuple(
    re.compile(text)
    for text in (
        r"import sys, types, os",
        r"import sys, types, os, importlib\.util, importlib\.machinery",
        r"(?:has_mfs|pep420) = sys\.version_info > \(3, [35]\)",
        rf"p = os\.path\.join\(sys\._getframe\(1\)\.f_locals\['sitedir'\], \*\({_ANY}(?:, ?{_ANY})*,?\)\)",
        r"importlib = (?:has_mfs and )?__import__\('importlib\.util'\)",
        r"(?:has_mfs and )?__import__\('importlib\.machinery'\)",
        r"ie = os\.path\.exists\(os\.path\.join\(p,'__init__\.py'\)\)",
        rf"m = (?:has_mfs and )?sys\.modules\.setdefault\({_ANY}, {_SPEC}\)",
        rf"m = (?:m or |not ie and |not ie and not pep420 and ){_NEW}",
        r"mp = \(m or \[\]\) and m\.__dict__\.setdefault\('__path__',\[\]\)",
        r"\(p not in mp\) and mp\.append\(p\)",
        rf"m and setattr\(sys\.modules\[{_ANY}\], {_ANY}, m\)",
    )
)
_LINKED = (
    *_STATEMENTS,
    re.compile(rf"p = os\.path\.join\('{TESTBED}(?:/\w[\w.+-]*)*', \*\({_ANY}(?:, ?{_ANY})*,?\)\)"),
)
"""What `setup.py develop` writes for a namespace package."""
_NAMES = re.compile(r"'([A-Za-z_][\w.]*)'")
_OWN_PLACE = re.compile(rf"(?!.*/\.\.?(?:/|$)){TESTBED}(?:/[\w.+ -]+)*/?")
_FINDER = re.compile(r"import (_\w*(?:editable|finder|loader)\w*)(?:; ?\1\.install\(\))?;?")
_OF_RUNNER = frozenset(module for modules in GUARDED.values() for module in modules)


def is_plain(text: str) -> bool:
    """Whether every line is a comment, or sets a namespace package up.

    A folder is not plain: modules, and metadata of distributions, are then looked for in it as well.
    """
    return all(_is_silent(line) or _is_namespace(line.strip()) for line in re.split(r"[\r\n]+", text))


def is_link(text: str, finders: Collection[str]) -> bool:
    """Whether every line leads to the repository: what an installation that is a link to it writes.

    Args:
        text: of the file.
        finders: modules that the installation brought along for it.
    """
    return all(_is_silent(line) or _leads_back(line.strip(), finders) for line in re.split(r"[\r\n]+", text))


def _leads_back(line: str, finders: Collection[str]) -> bool:
    if (match := _FINDER.fullmatch(line)) is not None:
        return match[1] in finders
    return _OWN_PLACE.fullmatch(line) is not None or _is_namespace(line, _LINKED)


def _is_silent(line: str) -> bool:
    return not line.strip() or line.startswith("#")


def _is_namespace(line: str, statements: tuple[re.Pattern[str], ...] = _STATEMENTS) -> bool:
    if not all(any(one.fullmatch(part) for one in statements) for part in line.rstrip(";").split(";")):
        return False
    return not any(name.partition(".")[0] in _OF_RUNNER for name in _NAMES.findall(line))
