"""How findings about test runs speak: counts, names, and quotes of the tests' own error texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from miner.core.excerpt import error_excerpt
from miner.core.records import Evidence, RunOutcome, TestResult, TestStatus

FAILING = (TestStatus.FAILED, TestStatus.ERROR)
_MAX_QUOTES = 3


def summary(run: RunOutcome) -> str:
    """Return the counts of a run as pytest would say them: "10 failed, 283 passed, 1 collection error"."""
    counts = Counter(result.status for result in run.results)
    order = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")
    parts = [f"{counts[TestStatus(name)]} {name}" for name in order if counts[TestStatus(name)]]
    errors = len(run.collect_errors)
    if errors:
        parts.append(f"{errors} collection error{'s' if errors > 1 else ''}")
    return ", ".join(parts) or "no test"


def tests(ids: Sequence[str]) -> str:
    """Return "1 test" or "2 tests"."""
    return f"{len(ids)} test{'' if len(ids) == 1 else 's'}"


def error_texts(run: RunOutcome, ids: Iterable[str]) -> list[str]:
    """Return the error texts of the first failing tests among some ids."""
    wanted = frozenset(ids)
    found = [result for result in run.results if result.nodeid in wanted and result.status in FAILING]
    return [_text(result) for result in found[:_MAX_QUOTES]]


def _text(result: TestResult) -> str:
    return f"{result.nodeid}\n{error_excerpt(result.text) or result.message}"


def collect_texts(errors: dict[str, str]) -> list[str]:
    """Return the error texts of the first collectors."""
    return [f"{name or 'conftest'}\n{error_excerpt(errors[name])}" for name in sorted(errors)[:_MAX_QUOTES]]


def quotes(where: tuple[Evidence, ...], texts: Iterable[str]) -> tuple[Evidence, ...]:
    """Return evidence that quotes texts from the first of the places, then all of the places."""
    first = where[0] if where else Evidence()
    return (*(first.model_copy(update={"excerpt": text}) for text in texts), *where)
