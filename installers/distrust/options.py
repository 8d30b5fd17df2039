"""Which options a model may give to pytest, and what each of the others would do.

Sources: pytest, "Command-line flags" and "Configuration options"
(https://docs.pytest.org/en/stable/reference/reference.html), and the documentation of the plug-ins that are named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from installers.distrust.changed import Changed
from installers.distrust.mechanism import Mechanism
from installers.distrust.words import Option

_MODULE = r"[A-Za-z_][\w.]*"
_NUMBER = r"\d{1,4}"
_LITERAL = (
    r"ignore:(?=(?:[^\w:]*\w){8})[\w.`'()/-][\w .`'()/-]{7,}:"  # pytest strips it: of blanks nothing would be left
)
_CATEGORY = (
    r"(?:Pending)?DeprecationWarning|FutureWarning|ImportWarning|SyntaxWarning|ResourceWarning|RuntimeWarning"
    r"|EncodingWarning"
)


@dataclass(frozen=True)
class Allowed:
    """An option or a setting that a model may choose.

    Attributes:
        value: what its value looks like; None where it takes none.
        reason: why no test is the weaker for it.
    """

    value: str | None
    reason: str


_PRINTS = "changes the output only, and is left out of the runs"
_STRICTER = "is stricter, never less"
_DJANGO = "says where the settings or the tables of a Django project come from"
_LOOP = "says what runs asynchronous tests"

OPTIONS_ALLOWED: dict[str, Allowed] = {
    # option: what its value looks like, why no test is the weaker for it
    "--ds": Allowed(_MODULE, _DJANGO),
    "--dc": Allowed(_MODULE, _DJANGO),
    "--django-db": Allowed(None, _DJANGO),
    "--reuse-db": Allowed(None, _DJANGO),
    "--create-db": Allowed(None, _DJANGO),
    "--nomigrations": Allowed(None, _DJANGO),
    "--no-migrations": Allowed(None, _DJANGO),
    "--migrations": Allowed(None, _DJANGO),
    "--asyncio-mode": Allowed("auto|strict|legacy", _LOOP),
    "--import-mode": Allowed("prepend|append|importlib", "says how test files are imported, never which"),
    "--strict-markers": Allowed(None, _STRICTER),
    "--strict-config": Allowed(None, _STRICTER),
    "--strict": Allowed(None, _STRICTER),
    "--continue-on-collection-errors": Allowed(None, "is what every run is given"),
    "--benchmark-disable": Allowed(None, "runs what is measured once instead of often"),
    "--no-cov": Allowed(None, _PRINTS),
    "-n": Allowed("0", "runs everything in one process, as every run does"),
    "--numprocesses": Allowed("0", "runs everything in one process, as every run does"),
    "-p": Allowed("pytester", "is pytest's own, for tests of plug-ins, and is not loaded by itself"),
    "-W": Allowed(f"{_LITERAL}(?:{_CATEGORY})", "takes back one warning by its own words, of a category that ages"),
    "-q": Allowed(None, _PRINTS),
    "-v": Allowed(None, _PRINTS),
    "-l": Allowed(None, _PRINTS),
    "-r": Allowed(r"\w+", _PRINTS),
    "--quiet": Allowed(None, _PRINTS),
    "--verbose": Allowed(None, _PRINTS),
    "--no-header": Allowed(None, _PRINTS),
    "--tb": Allowed("auto|long|short|line|native|no", _PRINTS),
    "--color": Allowed("yes|no|auto", _PRINTS),
    "--durations": Allowed(_NUMBER, _PRINTS),
}
SETTINGS_ALLOWED: dict[str, Allowed] = {
    # setting of `-o`: what its value looks like, why no test is the weaker for it
    "asyncio_mode": Allowed("auto|strict|legacy", _LOOP),
    "asyncio_default_fixture_loop_scope": Allowed("function|class|module|package|session", _LOOP),
    "asyncio_default_test_loop_scope": Allowed("function|class|module|package|session", _LOOP),
    "anyio_mode": Allowed("auto|strict", _LOOP),
    "trio_mode": Allowed("true|false", _LOOP),
    "DJANGO_SETTINGS_MODULE": Allowed(_MODULE, _DJANGO),
    "django_find_project": Allowed("true|false", _DJANGO),
    "qt_api": Allowed("pyqt5|pyqt6|pyside2|pyside6", "says which of several equal libraries draws"),
    "console_output_style": Allowed("classic|progress|count", _PRINTS),
    "junit_family": Allowed("xunit1|xunit2|legacy", _PRINTS),
}
_OVERRIDE = ("-o", "--override-ini")


def is_allowed(option: Option) -> bool:
    """Whether a model may give this option to pytest."""
    if option.name in _OVERRIDE:
        name, _, value = (option.value or "").partition("=")
        return _fits(SETTINGS_ALLOWED.get(name), value)
    return _fits(OPTIONS_ALLOWED.get(option.name), option.value)


def _fits(allowed: Allowed | None, value: str | None) -> bool:
    if allowed is None or (allowed.value is None) != (value is None):
        return False
    return allowed.value is None or re.fullmatch(allowed.value, value or "") is not None


@dataclass(frozen=True)
class _Row:
    """A mechanism by the names of its options.

    Attributes:
        only: which of them are meant, by their value.
    """

    name: str
    reason: str
    options: tuple[str, ...]
    only: Callable[[Option], bool] = lambda _: True


def _unloads(option: Option) -> bool:
    return (option.value or "").strip().startswith("no:")


_ROWS = (
    _Row("select-by-keyword", "runs only tests whose names fit an expression", ("-k",)),
    _Row("select-by-marker", "runs only tests whose markers fit an expression", ("-m",)),
    _Row("ignored-path", "leaves files or folders out", ("--ignore", "--ignore-glob")),
    _Row("deselected-test", "leaves tests out by their ids", ("--deselect",)),
    _Row("plugin-unloaded", "takes a plug-in away: its fixtures, markers or checks", ("-p",), _unloads),
    _Row(
        "plugin-loaded",
        "loads a module as a plug-in, which may change everything",
        ("-p",),
        lambda one: not _unloads(one),
    ),
    _Row("plugin-autoload-off", "takes all plug-ins away", ("--disable-plugin-autoload",)),
    _Row("other-configuration", "reads another file of settings than the project's", ("-c", "--config-file")),
    _Row("other-root", "changes which settings and conftest files are found, and the ids of tests", ("--rootdir",)),
    _Row("conftest-cut", "keeps conftest files above a folder from being read", ("--confcutdir",)),
    _Row("conftest-off", "reads no conftest file: no fixtures and no hooks of the project", ("--noconftest",)),
    _Row(
        "setting-overridden",
        "overrides a setting that is not known to leave selection and outcomes alone "
        "(addopts, testpaths, python_files, markers, xfail_strict, filterwarnings, ...)",
        _OVERRIDE,
    ),
    _Row(
        "nothing-runs",
        "collects, sets up or explains, and runs no test",
        (
            *("--collect-only", "--co", "--collectonly", "--setup-plan", "--setup-only", "--fixtures", "--funcargs"),
            *("--fixtures-per-test", "--markers", "--version", "-V", "--help", "-h", "--cache-show", "--trace-config"),
        ),
    ),
    _Row("early-end", "ends the run at a failure", ("-x", "--exitfirst", "--maxfail")),
    _Row(
        "earlier-runs",
        "chooses or orders tests by what earlier runs did",
        (
            *("--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first", "--lfnf", "--sw", "--stepwise"),
            *("--last-failed-no-failures", "--stepwise-skip", "--sw-skip", "--stepwise-reset", "--sw-reset"),
            *("--cache-clear", "--testmon", "--picked"),
        ),
    ),
    _Row("xfail-off", "reports tests that are expected to fail as if they were not", ("--runxfail",)),
    _Row("installed-tests", "takes arguments for modules: tests of what is installed are run", ("--pyargs",)),
    _Row(
        "retries",
        "runs a test that failed again until it passes",
        (
            *("--reruns", "--reruns-delay", "--only-rerun", "--rerun-except", "--fail-on-flaky", "--force-flaky"),
            *("--max-runs", "--min-passes", "--retries", "--retry-delay", "--cumulative-timing"),
        ),
    ),
    _Row(
        "parallel",
        "runs tests in several processes",
        ("-n", "--numprocesses", "--dist", "--tx", "-d", "-f", "--forked", "--boxed", "--maxprocesses"),
    ),
    _Row("warnings", "takes more warnings back than one by its own words", ("-W", "--pythonwarnings")),
)
_KNOWN = (*OPTIONS_ALLOWED, *(name for row in _ROWS for name in row.options))


def _is(option: Option, names: tuple[str, ...]) -> bool:
    """Whether an option is one of these, or an abbreviation of one that is none of another."""
    if option.name in _KNOWN or not option.name.startswith("--") or len(option.name) < 4:
        return option.name in names
    return any(name.startswith(option.name) for name in names)


def _finder(row: _Row) -> Callable[[Changed], Iterable[str]]:
    def find(changed: Changed) -> Iterable[str]:
        for option in changed.options:
            if _is(option, row.options) and row.only(option) and not is_allowed(option):
                yield option.text

    return find


def _from_file(changed: Changed) -> Iterable[str]:
    return (option.text for option in changed.options if not option.name and option.text.startswith("@"))


def _named(changed: Changed) -> Iterable[str]:
    return (option.text for option in changed.options if not option.name and not option.text.startswith("@"))


def _unknown(changed: Changed) -> Iterable[str]:
    for option in changed.options:
        if option.name and not is_allowed(option) and not any(_is(option, row.options) for row in _ROWS):
            yield option.text


OPTIONS: tuple[Mechanism, ...] = (
    *(Mechanism(row.name, row.reason, _finder(row)) for row in _ROWS),
    Mechanism("arguments-from-file", "reads more options from a file (`@file`)", _from_file),
    Mechanism("named-tests", "names what is run: files, folders, ids", _named),
    Mechanism("unknown-option", "is an option that is not known to be harmless", _unknown),
)
