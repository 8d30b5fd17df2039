"""What a test run says, computed from the raw lines of `plugin/swe_miner_reporter.py` (its docstring is the format).

The lines are the fact; this module is a pure fold of them. It takes any bytes: a process may be killed in the middle of
a line, and a test may write into the report. The line numbers that the reporter counts show what is lost or foreign.

Status of a test, first match wins: call failed, or a subtest of it -> failed; setup or teardown failed, or the run
ended inside the test -> error; skipped or passed as expected to fail -> xfailed, xpassed; skipped -> skipped; passed ->
passed. A strict xpass is a failed call for pytest itself.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from miner.core.records import RunOutcome, TestResult, TestStatus

_TEXT_LIMIT = 6000
_MAX_GAP = 1_000_000
_CONFTEST = re.compile(r"^(?:ImportError|\w+Error) while loading conftest '.*'", re.MULTILINE)
_XDIST_CRASH = "???"


@dataclass(frozen=True)
class Events:
    """The lines of one report that the reporter wrote, in order, and how many other or lost lines there are."""

    items: tuple[dict[str, Any], ...]
    damaged: int


@dataclass
class _Test:
    """What is known of one node id while lines are folded."""

    starts: int = 0
    phases: dict[str, dict[str, Any]] = field(default_factory=dict)
    subtest: dict[str, Any] | None = None
    repeated: bool = False


def parse_events(data: bytes) -> Events:
    """Split a report into events.

    A last line without its end is a kill in the middle of a write, which is no damage. A number that is not the next
    one is: a repeated or missing number is a foreign line (left out), a skipped number is a lost line.
    """
    lines = data.split(b"\n")
    lines.pop()
    items: list[dict[str, Any]] = []
    damaged, expected = 0, 0
    for line in lines:
        event = _parse_line(line)
        number = event.get("n")
        if not isinstance(event.get("event"), str) or type(number) is not int or not 0 <= number - expected < _MAX_GAP:
            damaged += 1
            continue
        damaged += number - expected
        expected = number + 1
        items.append(event)
    return Events(tuple(items), damaged)


def _parse_line(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read_run(
    events: bytes,
    collect0: bytes | None = None,
    collect1: bytes | None = None,
    *,
    log: str = "",
    exit_status: int | None = None,
    limit: str | None = None,
    truncated: bool = False,
) -> RunOutcome:
    """Compute the outcome of one test run.

    Args:
        events: the report of the run.
        collect0: the report of a `--collect-only` process at another second; None if none was made.
        collect1: the report of one more such process.
        log: what the run printed: the only place where pytest says why it did not start a session.
        exit_status: exit status of the process; the session's own one wins where it reported its end.
        limit: the bound that the run reached, as the sandbox names it ("time", "memory", "pids", ...).
        truncated: the report was cut because it exceeded its size limit.
    """
    parsed = parse_events(events)
    tests, order = _fold_tests(parsed)
    results = {nodeid: _result(nodeid, test) for nodeid, test in tests.items()}
    unfinished = [nodeid for nodeid in order if _is_unfinished(tests[nodeid])]
    session = _first(parsed, "session")
    finish = _first(parsed, "finish")
    own = collected_ids(parsed)
    others = [collected_ids(parse_events(data)) for data in (collect0, collect1) if data is not None]
    errors = _collectors(parsed, "failed")
    if not session and _CONFTEST.search(log):
        errors[""] = _cut(log[_start_of(log) :])
    status = finish.get("exitstatus", exit_status)
    return RunOutcome(
        results=tuple(results[nodeid] for nodeid in sorted(results)),
        collected=tuple(frozenset(ids) for ids in (own, *others)),
        collect_errors=errors,
        collect_skips=_collectors(parsed, "skipped"),
        exit_status=status if type(status) is int else None,
        started=bool(session),
        finished=bool(finish),
        timed_out=limit == "time",
        out_of_memory=limit == "memory",
        limit="" if limit in (None, "time", "memory") else limit,
        truncated=truncated,
        running=unfinished[-1] if unfinished else None,
        unfinished=frozenset(unfinished),
        repeated=frozenset(_repeated(tests, own)),
        stopped=_stopped(parsed) if session else log[-_TEXT_LIMIT:].strip(),
        damaged=parsed.damaged,
        pytest_version=_str(session.get("pytest")),
        python_version=_str(session.get("python")),
    )


def collected_ids(parsed: Events) -> list[str]:
    """Return the node ids that a report says were selected, in order, with repeats; empty if it never came to it."""
    ids: list[str] = []
    for event in parsed.items:
        listed = event.get("ids")
        if event["event"] == "collected" and isinstance(listed, list):
            ids.extend(_str(nodeid) for nodeid in listed)
    return ids


def _first(parsed: Events, name: str) -> dict[str, Any]:
    return next((event for event in parsed.items if event["event"] == name), {})


def _fold_tests(parsed: Events) -> tuple[dict[str, _Test], list[str]]:
    """Group the lines by node id; also return the ids in the order in which they began."""
    tests: dict[str, _Test] = {}
    order: list[str] = []
    for event in parsed.items:
        if event["event"] not in ("start", "report") or "nodeid" not in event:
            continue
        nodeid = _str(event["nodeid"])
        if nodeid not in tests:
            tests[nodeid] = _Test()
            order.append(nodeid)
        _add(tests[nodeid], event)
    return tests, order


def _add(test: _Test, event: dict[str, Any]) -> None:
    if event["event"] == "start":
        test.starts += 1
        test.repeated |= test.starts > 1
    elif "subtest" in event:
        if event.get("outcome") == "failed":
            test.subtest = event
    elif event.get("outcome") == "rerun":  # pytest-rerunfailures: the phases begin anew, without a start
        test.repeated = True
        test.phases.clear()
    else:
        when = _str(event.get("when"))
        test.repeated |= when in test.phases
        test.phases[when] = event


def _is_unfinished(test: _Test) -> bool:
    return test.starts > 0 and "teardown" not in test.phases


def _result(nodeid: str, test: _Test) -> TestResult:
    """Apply the rule in the module's docstring to one test."""
    failed = {when: event for when, event in test.phases.items() if event.get("outcome") == "failed"}
    if "call" in failed:
        return _build(nodeid, TestStatus.FAILED, "call", failed["call"])
    if test.subtest is not None:
        return _build(nodeid, TestStatus.FAILED, "call", test.subtest)
    for when in ("setup", "teardown"):
        if when in failed:
            return _build(nodeid, TestStatus.ERROR, when, failed[when])
    if _XDIST_CRASH in failed:
        return _build(nodeid, TestStatus.ERROR, "crash", failed[_XDIST_CRASH])
    if _is_unfinished(test):
        text = "the run ended while this test was running"
        return TestResult(nodeid=nodeid, status=TestStatus.ERROR, phase="crash", message=text)
    return _unfailed(nodeid, test)


def _unfailed(nodeid: str, test: _Test) -> TestResult:
    for when in ("setup", "call"):
        event = test.phases.get(when, {})
        expected = "wasxfail" in event
        if event.get("outcome") == "skipped":
            return _build(nodeid, TestStatus.XFAILED if expected else TestStatus.SKIPPED, when, event)
        if event.get("outcome") == "passed" and expected and when == "call":
            return _build(nodeid, TestStatus.XPASSED, when, event)
    if test.phases.get("call", {}).get("outcome") == "passed":
        return TestResult(nodeid=nodeid, status=TestStatus.PASSED, phase="call")
    text = "the call of this test was not reported"
    return TestResult(nodeid=nodeid, status=TestStatus.SKIPPED, phase="call", message=text)


def _build(nodeid: str, status: TestStatus, phase: str, event: dict[str, Any]) -> TestResult:
    names = event.get("exc")
    text = _str(event.get("longrepr"))
    return TestResult(
        nodeid=nodeid,
        status=status,
        phase=phase,
        message=_str(event.get("message") or event.get("wasxfail")) or _last_line(text),
        text=_cut(text),
        exceptions=tuple(_str(name) for name in names) if isinstance(names, list) else (),
    )


def _repeated(tests: dict[str, _Test], own: list[str]) -> set[str]:
    """Return the ids that stand for more than one test or run."""
    twice = {nodeid for nodeid, count in Counter(own).items() if count > 1}
    return twice | {nodeid for nodeid, test in tests.items() if test.repeated}


def _collectors(parsed: Events, outcome: str) -> dict[str, str]:
    """Return the collectors with an outcome, and their texts."""
    found: dict[str, str] = {}
    for event in parsed.items:
        if event["event"] == "collect" and event.get("outcome") == outcome:
            text = _str(event.get("longrepr")) or _str(event.get("message"))
            found[_str(event.get("nodeid"))] = _cut(text)
    return found


def _stopped(parsed: Events) -> str:
    """Return why the session ended before its time."""
    parts = [_str(_first(parsed, name).get("message")) for name in ("internalerror", "interrupt")]
    interrupt = _first(parsed, "interrupt").get("exc")
    if isinstance(interrupt, list) and interrupt and not parts[1]:
        parts[1] = _str(interrupt[0])
    parts.append(_str(_first(parsed, "finish").get("stopped")))
    return "\n".join(dict.fromkeys(part for part in parts if part))


def _start_of(log: str) -> int:
    match = _CONFTEST.search(log)
    return match.start() if match else 0


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def _cut(text: str) -> str:
    if len(text) <= _TEXT_LIMIT:
        return text
    half = _TEXT_LIMIT // 2
    return f"{text[:half]}\n[...]\n{text[-half:]}"


def _str(value: Any) -> str:
    """Return a JSON value as text that can be stored anywhere: lone surrogates become escapes."""
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
