"""Names of tox environments, their factors and conditions on them.

Format: https://tox.wiki/en/latest/config.html. A factor that names a Python becomes an environment marker; another one
(`cov`, `django42`) holds where the environment has it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

_PYTHON = re.compile(r"py(\d)\.?(\d*)$")
_BARE_PYTHON = re.compile(r"(\d)\.(\d+)$")
_LIST = re.compile(r",(?![^{]*\})|\s+")
_MOST = 300

# Factors of environments that are no ordinary run of the tests: later selection takes another one if it can.
_UNUSUAL = re.compile(
    r"(?:.*(?:dev|devel|main|master|latest|nightly|head|pre|alpha|beta|rc|tip|trunk|upstream)"
    r"|(?:low|old|min).*|.*(?:minimal|lowest|oldest|downstream|nodeps|pure)"
    r"|cov.*|.*cover.*|flake8|lint.*|mypy|typ.*|docs?|pep8|style|black|isort|bench.*|profile|qa|build|package"
    r"|pypy.*|jython.*|graalpy.*|win.*|mac.*|darwin)",
    re.I,
)


def expand_braces(text: str) -> list[str]:
    """Expand `py{37,38}-{a,b}` and top-level commas to every combination."""
    parts = re.split(r"\{([^{}]*)\}", text)
    choices = [part.split(",") if index % 2 else [part] for index, part in enumerate(parts)]
    if any(len(choice) > 50 for choice in choices) or len(parts) > 9:
        return []
    combined = ["\0".join(item) for item in itertools.islice(itertools.product(*choices), 1000)]
    return [piece for item in combined for piece in item.replace("\0", "").split(",") if piece]


def environments(envlist: str) -> tuple[str, ...]:
    """Return the names that an `envlist` holds, braces expanded, in order."""
    without_comments = "\n".join(line.partition("#")[0] for line in envlist.splitlines())
    parts = (part.strip() for part in _LIST.split(re.sub(r"\s*,\s*", ",", without_comments)))
    names = (re.sub(r"\s+", "", name) for part in parts if part for name in expand_braces(part))
    return tuple(itertools.islice(dict.fromkeys(name for name in names if name), _MOST))


def python_of(factor: str) -> str | None:
    """Return the version that a factor names ("3.8" for py38 and for 3.8), None where it names none."""
    if python := _PYTHON.fullmatch(factor):
        major, minor = python.groups()
        return f"{major}.{minor}" if minor else None
    return factor if _BARE_PYTHON.fullmatch(factor) else None


def pythons_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the versions that the names of environments hold, each once, in order."""
    found = (python_of(factor) for name in names for factor in name.split("-"))
    return tuple(dict.fromkeys(version for version in found if version is not None))


def other_factors(name: str) -> frozenset[str]:
    """Return the factors of an environment's name that name no Python."""
    return frozenset(factor for factor in name.split("-") if factor and not _is_python(factor))


def is_ordinary(factors: Iterable[str]) -> bool:
    """Whether nothing in the factors says that an environment is for something else than an ordinary run of tests."""
    return not any(_UNUSUAL.fullmatch(factor) for factor in factors)


def _is_python(factor: str) -> bool:
    return bool(_PYTHON.fullmatch(factor) or _BARE_PYTHON.fullmatch(factor)) or factor in ("py", "python")


def factor_marker(condition: str, holding: frozenset[str] = frozenset()) -> str | bool:
    """Return the marker of a factor condition such as `py{37,38}-!cov`; True and False where it needs none.

    Args:
        condition: as it stands before the colon.
        holding: factors of the environment beside that of its Python.
    """
    alternatives = [_conjunction(part, holding) for part in expand_braces(condition)]
    if True in alternatives:
        return True
    return " or ".join(part for part in alternatives if isinstance(part, str)) or False


def _conjunction(factors: str, holding: frozenset[str]) -> str | bool:
    markers = [_factor(factor, holding) for factor in factors.split("-") if factor]
    if False in markers:
        return False
    return " and ".join(marker for marker in markers if isinstance(marker, str)) or True


def _factor(factor: str, holding: frozenset[str]) -> str | bool:
    negated, name = factor.startswith("!"), factor.lstrip("!")
    if python := _PYTHON.fullmatch(name) or _BARE_PYTHON.fullmatch(name):
        major, minor = python.groups()
        if minor:
            return f"python_version {'!=' if negated else '=='} '{major}.{minor}'"
        return f"python_version {'<' if negated == (major == '3') else '>='} '3'"
    if name in ("py", "python", "test", "tests", "unit", "linux") or name in holding:
        return not negated
    if name.startswith(("pypy", "cpython")):
        return f"implementation_name {'!=' if negated else '=='} '{'pypy' if name.startswith('pypy') else 'cpython'}'"
    return negated
