"""Which variables of the environment change what Python, pytest or the tools around them do.

Sources: Python, "Environment variables" (https://docs.python.org/3/using/cmdline.html#environment-variables); pytest,
"Environment Variables"; ld.so(8); bash(1), "Shell Variables"; git(1), "Environment Variables"; pip and uv,
"Environment variables".
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from installers.distrust.changed import Changed
from installers.distrust.mechanism import Mechanism
from installers.siblings import TESTBED

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ILLEGIBLE = re.compile(r"[\x00-\x1f\x7f]")
_MAX_VALUE = 2000
_DJANGO = "DJANGO_SETTINGS_MODULE"
_TAKEN = re.compile(
    r"(?:sitecustomize|usercustomize|pytest|_pytest|py|pluggy|iniconfig|packaging|exceptiongroup|tomli|attr"
    r"|attrs|colorama|pygments|six|site|os|sys|json|re|unittest|importlib|encodings|swe_miner_reporter)(?:\.py|\.pyi|/|\Z)"
)
"""Modules that a place of PYTHONPATH must not hold: it comes before everything that is installed."""
_STANDARD = re.compile(rf"(?:{'|'.join(sorted(sys.stdlib_module_names))})(?:\.py|(?:\.[\w-]+)?\.so|/__init__\.py)")
"""Modules of the standard library, which comes after it as well."""


@dataclass(frozen=True)
class _Row:
    """A mechanism by the names of its variables.

    Attributes:
        but: names that are meant by no row.
        builds: also where something is built.
    """

    name: str
    reason: str
    names: str
    but: str = "(?!)"
    builds: bool = True


_ROWS = (
    _Row(
        "pytest-variable",
        "steers pytest or a plug-in of it past its options",
        r"_?PYTEST_\w*|PY_COLORS",
        "PYTEST_QT_API",
    ),
    _Row(
        "python-variable",
        "changes how Python starts, what it imports, or whether `assert` is there at all",
        r"_?PYTHON\w*|__PYVENV\w*|VIRTUAL_ENV|CONDA_\w+|PYENV_\w+",
        "PYTHONPATH|PYTHONUTF8|PYTHONIOENCODING",
    ),
    _Row(
        "loader-variable",
        "loads or replaces shared libraries in every process",
        r"LD_\w+|GLIBC_TUNABLES|MALLOC_\w+|GCONV_PATH",
    ),
    _Row("path-variable", "chooses other programs", "PATH|PATHEXT|SHELL|EDITOR|PAGER|CDPATH|PROMPT_COMMAND"),
    _Row(
        "home-variable",
        "moves the folder of the user's own settings, which pip, git, Python and plug-ins read",
        r"HOME|USERPROFILE|XDG_\w+|TMPDIR|TEMP|TMP",
    ),
    _Row("shell-variable", "has a shell run a file when it starts", r"BASH_\w+|ENV|IFS|SHELLOPTS|BASHOPTS|PS4|ZDOTDIR"),
    _Row("git-variable", "moves git's repository, settings or programs", r"GIT_\w+|SSH_\w+|GPG_\w+"),
    _Row(
        "installer-variable",
        "takes packages from another index, of another date, or as something else",
        r"(?:PIP|UV|POETRY|PDM|HATCH|PIPENV|CONDA|TWINE|SETUPTOOLS_USE|DISTUTILS)_\w+",
        "SETUPTOOLS_USE_DISTUTILS|POETRY_DYNAMIC_VERSIONING_BYPASS|UV_DYNAMIC_VERSIONING_BYPASS|PDM_BUILD_SCM_VERSION",
    ),
    _Row(
        "proxy-variable",
        "sends what goes over the network elsewhere, or trusts others",
        r"(?i:(?:\w+_)?(?:https?|ftp|all|no)_proxy|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_\w+|SSLKEYLOGFILE)",
    ),
    _Row("coverage-variable", "starts a measurement in every process", r"COVERAGE_\w+|COV_CORE_\w+"),
    _Row("hypothesis-variable", "changes how many examples are tried, or which", r"HYPOTHESIS_\w+"),
    _Row(
        "clock-variable",
        "changes the time, the time zone or the seed that runs are given",
        r"TZ|TZDIR|FAKETIME\w*|SOURCE_DATE_EPOCH",
        builds=False,
    ),
    _Row("reporter-variable", "is the reporter's own", r"SWE_MINER_\w*"),
    _Row(
        "skipping-variable",
        "says by its name that tests are left out",
        r"(?i:(?:\w+_)?(?:SKIP|SKIPS|IGNORE|EXCLUDE|DESELECT|XFAIL|RERUN|RERUNS|FLAKY|QUICK|FAST|ONLY|SLOW|NIGHTLY)(?:_\w+)?"
        r"|(?:\w+_)?(?:NO|DISABLE|WITHOUT)_(?:\w+_)?TESTS?(?:_\w+)?)",
        builds=False,
    ),
    _Row(
        "ci-variable",
        "says that a CI service or a builder of packages runs the tests, where many projects skip some of theirs",
        r"CI|CI_\w+|CONTINUOUS_INTEGRATION|(?:GITHUB|GITLAB|TRAVIS|CIRCLE|CIRCLECI|APPVEYOR|JENKINS|BUILDKITE|BUILDBOT"
        r"|DRONE|BITBUCKET|CODEBUILD|SEMAPHORE|TEAMCITY|AZURE|CIRRUS|WERCKER|READTHEDOCS|RTD|TOX|NOX|CIBUILDWHEEL"
        r"|AUTOPKGTEST)(?:_\w+)?|GITLAB_CI|TF_BUILD|SYSTEM_TEAMFOUNDATION\w+|BUILD_(?:NUMBER|ID|TAG)|TOXENV|RPM_\w+"
        r"|DEB_\w+|NIX_\w+",
        builds=False,
    ),
    _Row(
        "implementation-variable",
        "switches compiled code off: tests of it are skipped, and another implementation is tested",
        r"\w*(?:DISABLE|NO)_(?:JIT|CUDA|EXTENSIONS|CYTHON|NUMBA|SPEEDUPS)|\w*PURE_PYTHON|NUMBA_DISABLE_\w+|PYTORCH_JIT"
        r"|TORCH_COMPILE_DISABLE|TORCHDYNAMO_DISABLE",
        builds=False,
    ),
)


def _finder(row: _Row) -> Callable[[Changed], Iterable[str]]:
    names, but = re.compile(row.names), re.compile(row.but)

    def find(changed: Changed) -> Iterable[str]:
        for name, value in (*changed.variables, *(changed.build_variables if row.builds else ())):
            if names.fullmatch(name) and not but.fullmatch(name):
                yield f"{name}={value}"

    return find


def _no_variable(changed: Changed) -> Iterable[str]:
    for name, value in (*changed.variables, *changed.build_variables):
        if not _NAME.fullmatch(name) or _ILLEGIBLE.search(value) or len(value) > _MAX_VALUE:
            yield f"{name[:80]!r}={value[:80]!r}"


def _python_path(changed: Changed) -> Iterable[str]:
    """Yield places that are not in the repository, or hold what would come before pytest or Python itself."""
    for name, value in changed.build_variables:
        if name == "PYTHONPATH":
            yield f"{name}={value} (builds)"
    known = {part for one in changed.trusted for part in one.env.get("PYTHONPATH", "").split(":")}
    for name, value in changed.variables:
        if name == "PYTHONPATH":
            yield from (
                part or "an empty part" for part in value.split(":") if part not in known and not _safe(part, changed)
            )


def _safe(place: str, changed: Changed) -> bool:
    if changed.paths is None or posixpath.normpath(place) != place or not f"{place}/".startswith(f"{TESTBED}/"):
        return False
    folder = f"{place}/".removeprefix(f"{TESTBED}/")
    below = [path.removeprefix(folder) for path in changed.paths if path.startswith(folder)]
    return bool(below) and not any(_TAKEN.match(path) or _STANDARD.fullmatch(path) for path in below)


def _settings_module(changed: Changed) -> Iterable[str]:
    """Yield modules of settings that are not in the tree."""
    named = [(f"{name}={value}", value) for name, value in changed.variables if name == _DJANGO]
    for option in changed.options:
        value = option.value or ""
        if option.name == "--ds":
            named.append((option.text, value))
        elif option.name in ("-o", "--override-ini") and value.partition("=")[0] == _DJANGO:
            named.append((option.text, value.partition("=")[2]))
    yield from (text for text, module in named if not _is_in_tree(module, changed.paths or ()))


def _is_in_tree(module: str, paths: Iterable[str]) -> bool:
    stem = f"/{module.replace('.', '/')}"
    return bool(module) and any(f"/{path}".endswith((f"{stem}.py", f"{stem}/__init__.py")) for path in paths)


VARIABLES: tuple[Mechanism, ...] = (
    *(Mechanism(row.name, row.reason, _finder(row)) for row in _ROWS),
    Mechanism(
        "python-path",
        "has modules imported from outside the repository, or from a folder with a `pytest`, a `sitecustomize` or a "
        "module of Python's own",
        _python_path,
    ),
    Mechanism(
        "settings-module", "takes Django's settings from a module that is not in the repository", _settings_module
    ),
    Mechanism(
        "no-variable", "is no name of a variable, or no value for one: it could end a line of a script", _no_variable
    ),
)
