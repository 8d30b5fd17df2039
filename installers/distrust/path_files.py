"""Which `.pth` files of an environment do no more than they should: Python runs their lines when it starts.

Sources: Python, "site" (lines that begin with `import` are executed); setuptools, `setuptools/namespaces.py` in its
versions with `-nspkg.pth` files, whose every statement stands in the table below.
"""

from __future__ import annotations

import re

from installers.distrust.runner import RUNNER

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
_NAMES = re.compile(r"'([A-Za-z_][\w.]*)'")
_PLACE = re.compile(r"(?!.*(?:^|/)\.\.(?:/|$))[\w.+-][\w.+/ -]*")
_OF_RUNNER = frozenset(module for modules in RUNNER.values() for module in modules)


def is_plain(text: str) -> bool:
    """Whether every line is a folder below the environment, a comment, or sets a namespace package up."""
    return all(_is_plain(line) for line in re.split(r"[\r\n]+", text))


def _is_plain(line: str) -> bool:
    if not line.strip() or line.startswith("#"):
        return True
    if line.startswith(("import ", "import\t")):
        return _is_namespace(line.strip())
    return _PLACE.fullmatch(line.strip()) is not None


def _is_namespace(line: str) -> bool:
    if not all(any(one.fullmatch(part) for one in _STATEMENTS) for part in line.rstrip(";").split(";")):
        return False
    return not any(name.partition(".")[0] in _OF_RUNNER for name in _NAMES.findall(line))
