"""Which of a project's own pytest options are kept: all that say what a test is, none that steer the run or its output.

Options: https://docs.pytest.org/en/stable/reference/reference.html#command-line-flags, pytest-cov, pytest-xdist.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Dropped = tuple[str, str]

_PARALLEL = "runs tests in parallel"
_COVERAGE = "measures coverage"
_EARLY = "ends the run early"
_STATE = "depends on earlier runs"
_OUTPUT = "changes the output only"
_REPORT = "writes a report"
_DEBUG = "waits for a person"
_ORDER = "changes the order of the tests"

_DROPPED = {
    **dict.fromkeys(
        ("-n", "--numprocesses", "--dist", "--tx", "--maxprocesses", "--max-worker-restart", "-d"), _PARALLEL
    ),
    **dict.fromkeys(("--parallel-threads", "--workers", "--tests-per-worker", "--boxed", "--forked", "-f"), _PARALLEL),
    **dict.fromkeys(("--no-cov", "--no-cov-on-fail", "--cov"), _COVERAGE),
    **dict.fromkeys(("-x", "--exitfirst", "--maxfail", "--stepwise-skip"), _EARLY),
    **dict.fromkeys(("--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first", "--sw"), _STATE),
    **dict.fromkeys(
        ("--stepwise", "--sw-skip", "--lfnf", "--last-failed-no-failures", "--cache-clear", "--testmon"), _STATE
    ),
    **dict.fromkeys(("-q", "--quiet", "-v", "--verbose", "-r", "--tb", "--color", "-s", "--capture", "-l"), _OUTPUT),
    **dict.fromkeys(("--showlocals", "--durations", "--durations-min", "--show-capture", "--no-header"), _OUTPUT),
    **dict.fromkeys(("--no-summary", "--verbosity", "--full-trace", "--code-highlight", "--instafail"), _OUTPUT),
    **dict.fromkeys(("--disable-warnings", "--disable-pytest-warnings", "--setup-show", "--no-showlocals"), _OUTPUT),
    **dict.fromkeys(("--force-sugar", "--old-summary", "--tap-stream", "--force-short-summary", "--pretty"), _OUTPUT),
    **dict.fromkeys(
        ("--junitxml", "--junit-xml", "--junitprefix", "--junit-prefix", "--html", "--result-log"), _REPORT
    ),
    **dict.fromkeys(
        ("--resultlog", "--report-log", "--self-contained-html", "--json-report", "--md", "--csv"), _REPORT
    ),
    **dict.fromkeys(("--json-report-file", "--alluredir", "--pastebin", "--log-file", "--debug", "--profile"), _REPORT),
    **dict.fromkeys(("--pdb", "--trace", "--pdbcls", "--looponfail"), _DEBUG),
    **dict.fromkeys(("--random-order", "--random-order-bucket", "--random-order-seed", "--reverse"), _ORDER),
    **dict.fromkeys(("--collect-only", "--co", "--fixtures", "--markers", "--setup-plan", "--version"), "runs no test"),
}
_DROPPED_PREFIXES = {"--cov-": _COVERAGE, "--flake8": "runs a linter"}
_LINTERS = (
    "--mypy",
    "--black",
    "--pylint",
    "--ruff",
    "--ruff-format",
    "--isort",
    "--pep8",
    "--pycodestyle",
    "--codestyle",
)
_DROPPED |= dict.fromkeys((*_LINTERS, "--flakes", "--checkdocs", "--pydocstyle", "--enabler"), "runs a linter")

# Options that take the next word as their value, whatever it is.
_WITH_VALUE = frozenset(
    {
        *("-n", "--numprocesses", "--dist", "--tx", "--maxprocesses", "--max-worker-restart", "--workers"),
        *("--parallel-threads", "--tests-per-worker", "--cov-report", "--cov-config", "--cov-fail-under"),
        *("--cov-context", "--maxfail", "--last-failed-no-failures", "--lfnf", "-r", "--tb", "--color", "--capture"),
        *("--durations", "--durations-min", "--show-capture", "--verbosity", "--code-highlight", "--junitxml"),
        *("--junit-xml", "--junitprefix", "--junit-prefix", "--html", "--result-log", "--resultlog", "--report-log"),
        *("--json-report-file", "--alluredir", "--pastebin", "--log-file", "--pdbcls", "--random-order-bucket"),
        *("--random-order-seed", "--csv", "--md", "-p", "-m", "-k", "-o", "--override-ini", "-c", "--config-file"),
        *("-W", "--pythonwarnings", "--import-mode", "--ignore", "--ignore-glob", "--deselect", "--rootdir"),
        *("--confcutdir", "--basetemp", "--doctest-glob", "--doctest-report", "--asyncio-mode", "--timeout"),
        *("--timeout-method", "--ds", "--dc", "--log-level", "--log-cli-level", "--log-format", "--assert"),
        *("--hypothesis-profile", "--hypothesis-seed", "--reruns", "--reruns-delay", "--log-date-format"),
    }
)
# Options that take none. Of an option in neither list, a word that follows is its value unless it looks like a path.
_WITHOUT_VALUE = frozenset(
    {
        *("--strict", "--strict-markers", "--strict-config", "--doctest-modules", "--doctest-continue-on-failure"),
        *("--doctest-ignore-import-errors", "--noconftest", "--keep-duplicates", "--pyargs", "--runxfail"),
        *("--continue-on-collection-errors", "--collect-in-virtualenv", "--reuse-db", "--create-db", "--nomigrations"),
        *("--no-migrations", "--benchmark-disable", "--benchmark-skip", "--benchmark-only"),
    }
)
_PATH = re.compile(r"(?:.*/.*|.*\.(?:py|rst|md|txt)|\.|tests?|testing|src|docs?|examples?)\Z")
_CLUSTER = re.compile(r"-[qvsxl]+\Z")
_UNRECOGNISED = re.compile(r"error: unrecognized arguments: (.*)")
_MISSING_PLUGIN = re.compile(r'Error importing plugin "([^"]+)"')
_UNRECOGNISED_REASON = "pytest does not know this option here"
_PLUGIN_REASON = "the plug-in is not installed"


def split_addopts(addopts: Sequence[str]) -> tuple[tuple[str, ...], tuple[Dropped, ...]]:
    """Part a project's options into the ones that are kept, in order, and the dropped ones with a reason each.

    An option and its value stay together: as two words of the kept ones, as one text of the dropped ones.
    """
    kept: list[str] = []
    dropped: list[Dropped] = []
    for option in _options(addopts):
        reason = _reason(option[0])
        if reason is None:
            kept.extend(option)
        else:
            dropped.append((" ".join(option), reason))
    return tuple(kept), tuple(dropped)


def drop_unrecognised(kept: Sequence[str], stderr: str) -> tuple[tuple[str, ...], tuple[Dropped, ...]]:
    """Take out the options that pytest refuses, by its own words: unknown arguments, a plug-in that cannot be imported.

    Where nothing is taken out, the error has another cause.
    """
    refused = {word for line in _UNRECOGNISED.findall(stderr) for word in line.split()}
    plugins = set(_MISSING_PLUGIN.findall(stderr))
    still: list[str] = []
    dropped: list[Dropped] = []
    for option in _options(kept):
        if _plugin(option) in plugins:
            dropped.append((" ".join(option), _PLUGIN_REASON))
        elif refused and option[0].startswith("-") and option[0].split()[0] in refused:
            dropped.append((" ".join(option), _UNRECOGNISED_REASON))
        else:
            still.extend(option)
    return tuple(still), tuple(dropped)


def _options(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Group words to options: one word, or an option and its value."""
    found: list[tuple[str, ...]] = []
    index = 0
    while index < len(words):
        takes = index + 1 < len(words) and _takes_value(words[index], words[index + 1])
        found.append((words[index], words[index + 1]) if takes else (words[index],))
        index += 2 if takes else 1
    return found


def _takes_value(word: str, following: str) -> bool:
    if word in _WITH_VALUE:
        return True
    known = not word.startswith("--") or "=" in word or word in _WITHOUT_VALUE or _reason(word) is not None
    return not known and not following.startswith("-") and not _PATH.match(following)


def _reason(word: str) -> str | None:
    """Return why an option is dropped, or None."""
    if not word.startswith("-") or word == "--":
        return "a path: which tests run is decided elsewhere"
    if _CLUSTER.match(word):
        return _EARLY if "x" in word else _OUTPUT
    name = word.split("=", 1)[0] if word.startswith("--") else word[:2]
    prefixed = next((reason for prefix, reason in _DROPPED_PREFIXES.items() if name.startswith(prefix)), None)
    return _DROPPED.get(name, prefixed)


def _plugin(option: tuple[str, ...]) -> str | None:
    """Return the plug-in that `-p NAME` or `-pNAME` asks for."""
    if option[0] == "-p" and len(option) > 1:
        return option[1]
    return option[0][2:].strip() if option[0].startswith("-p") and not option[0].startswith("--") else None
