"""What an attempt failed with, as a model is shown it: the log that decides, cut to what tells.

Which log decides is what `installers.attempt` says: of a refused attempt that of the step that came furthest, of a
healthy one the collection where test files are broken, and the run of its tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from installers.attempt import furthest
from installers.brief.excerpt import relevant, steady
from installers.health import KIND as HEALTH
from installers.health import run_of_health
from installers.interface import Attempt, Help, Signature
from installers.models.turns import built
from installers.project_install import KIND as PROJECT
from installers.repair.kinds import Kind
from installers.repair.signatures import signatures_of_log
from installers.reports import log_of
from installers.suite import KIND as SUITE
from installers.suite import run_of_suite
from miner.core.blobs import BlobStore
from miner.core.ledger import fact_id
from miner.core.records import BuildMode, Fact, RunOutcome, TestStatus

_STEPS = {
    "install.ground": "interpreter and Debian packages",
    "install.lock": "lock",
    "install.wheel": "build of a dependency",
    "install.env": "installation of the dependencies",
    PROJECT: "installation of the project",
    HEALTH: "collection of the tests",
    SUITE: "tests",
}
_MOST_READ = 300
_MOST_GROUPS = 8
_SMALLEST = 200
_LONGEST = 1000
_OF_OTHERS = 600
_FIRST_SHARE = 0.6
_NAMED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Warning|Failure|Exit|Failed)\b")
_OF_BUILDS = (Kind.MISSING_HEADER, Kind.MISSING_LIBRARY, Kind.MISSING_TOOL)
_FAILED = (TestStatus.FAILED, TestStatus.ERROR)


@dataclass(frozen=True)
class Deciding:
    """One log that says why an attempt came no further.

    Attributes:
        step: what ran, in words.
        log: what it printed.
        run: what pytest reported, where it ran.
    """

    step: str
    log: str
    run: RunOutcome | None = None


def deciding(attempt: Attempt, help_: Help) -> tuple[Deciding, ...]:
    """Return the logs that decide about an attempt, the most telling first; none where no log says why it is void."""
    if not built([attempt]):
        return ()
    known = {fact_id(fact.key): fact for fact in help_.memo.used}
    facts = [known[step] for step in attempt.steps if step in known]
    blobs = help_.workshop.blobs
    if attempt.ok:
        return tuple(_healthy(attempt, facts, blobs))
    try:
        return (_refused(furthest(facts), blobs),)
    except ValueError:
        return ()


def failure(attempt: Attempt, help_: Help, budget_chars: int) -> str:
    """Return what an attempt failed with: the relevant part of the logs that decide, else its own words."""
    found = deciding(attempt, help_)
    if not found:
        return relevant(attempt.detail, attempt.signatures, budget_chars)
    return failure_of(found, attempt.signatures, budget_chars)


def failure_of(found: Sequence[Deciding], signatures: Sequence[Signature], budget_chars: int) -> str:
    """Return the relevant parts of logs, a line before each that says what ran; nothing of it twice."""
    parts: list[str] = []
    told: set[str] = set()
    left = budget_chars
    for number, one in enumerate(found):
        room = left if number == len(found) - 1 else int(left * _FIRST_SHARE)
        if one.run is not None and one.run.started and not one.run.stopped:
            text = _of_run(one.run, one.step, one.log, signatures, room - 1, told)
        else:
            head = f"== {one.step[:_LONGEST]}\n"
            text = (head + relevant(one.log, signatures, max(0, room - 1 - len(head))))[: max(0, room - 1)]
        parts.append(text)
        left -= len(text) + 1
    return "\n".join(part for part in parts if part)


def _healthy(attempt: Attempt, facts: Iterable[Fact], blobs: BlobStore) -> Iterable[Deciding]:
    lacked = attempt.mode is BuildMode.COMPILED and any(one.kind in _OF_BUILDS for one in attempt.signatures)
    for fact in facts:
        if fact.key.kind == PROJECT and fact.ok and lacked and "log" in fact.logs:
            yield Deciding("build of the extension modules, which went on", blobs.get_text(fact.logs["log"]))
        elif fact.key.kind == HEALTH and fact.ok and attempt.broken:
            yield Deciding(_STEPS[HEALTH], log_of(fact, blobs), run_of_health(fact, blobs))
        elif fact.key.kind == SUITE and attempt.share != 1.0:
            yield Deciding(_STEPS[SUITE], log_of(fact, blobs), run_of_suite(fact, blobs))


def _refused(fact: Fact, blobs: BlobStore) -> Deciding:
    said = str(fact.payload.get("detail", ""))
    if fact.key.kind == HEALTH:
        return Deciding(f"{_STEPS[HEALTH]}: {steady(said)}", log_of(fact, blobs), run_of_health(fact, blobs))
    log = blobs.get_text(fact.logs["log"]) if "log" in fact.logs else ""
    step = _STEPS.get(fact.key.kind, fact.key.kind)
    if fact.key.kind == "install.lock" and fact.payload.get("purpose") == "build":
        step = "lock of what builds the project"
    return Deciding(step, log if log.strip() else said)


@dataclass(frozen=True)
class _Case:
    """One test or file that fails."""

    name: str
    text: str
    is_file: bool


def _of_run(run: RunOutcome, step: str, log: str, signatures: Sequence[Signature], budget: int, told: set[str]) -> str:
    """Return a run's failures by what they show, the most telling kind first, with one example each."""
    cases = _cases(run)
    parts = [f"== {step[:_LONGEST]}\n{_summary(run)}"]
    read = _sample(cases)
    if len(read) < len(cases):
        parts[0] += f"; {len(read)} of the failures were looked at"
    left = budget - len(parts[0])
    for kind, same in _groups(read, signatures):
        head = f"-- {kind} ({_count(same)}), for instance {steady(same[0].name)[:_SMALLEST]}\n"
        known = [signature for signature in signatures if str(signature) == kind]
        if kind in told or left - len(head) < _SMALLEST:
            continue
        most = min(_LONGEST if known else _OF_OTHERS, left - len(head) - 1)
        parts.append(head + relevant(same[0].text, known, most))
        left -= len(parts[-1]) + 1
        told.add(kind)
    if not cases and left > _SMALLEST:
        parts.append(relevant(log, signatures, left - 1))
    return "\n".join(parts)[: max(0, budget)]


def _cases(run: RunOutcome) -> list[_Case]:
    files = [_Case(name or "the session", text, True) for name, text in sorted(run.collect_errors.items())]
    failed = [one for one in run.results if one.status in _FAILED]
    return files + [_Case(one.nodeid, _with_message(one.text, one.message), False) for one in failed]


def _sample(cases: Sequence[_Case]) -> list[_Case]:
    """Return a bounded number of cases: of very many, some from everywhere."""
    return list(cases[:: -(-len(cases) // _MOST_READ) or 1])


def _with_message(text: str, message: str) -> str:
    """Add the message of a failure where the text that pytest printed, which is cut, lacks it."""
    printed = " ".join(re.sub(r"^E +", "", text, flags=re.MULTILINE).split())
    return text if " ".join(message.split()) in printed else f"{text}\nE   {message}"


def _groups(cases: Sequence[_Case], signatures: Sequence[Signature]) -> list[tuple[str, list[_Case]]]:
    """Part cases by the most telling signature of each; what shows none, by its last line."""
    found: dict[str, list[_Case]] = {}
    for case in cases:
        found.setdefault(_kind(case, signatures), []).append(case)
    order = {str(signature): rank for rank, signature in enumerate(signatures)}
    ranked = sorted(found, key=lambda kind: (order.get(kind, len(order)), -len(found[kind])))
    return [(kind, found[kind]) for kind in ranked[:_MOST_GROUPS]]


def _kind(case: _Case, signatures: Sequence[Signature]) -> str:
    shown = set(signatures_of_log("suite", case.text))
    first = next((str(signature) for signature in signatures if signature in shown), None)
    if first is not None:
        return first
    said = [line[1:].strip() for line in case.text.splitlines() if line.startswith("E ")]
    named = [line for line in said if _NAMED.match(line)]
    return steady((named[-1:] or said[:1] or [""])[0])[:_SMALLEST] or "failure"


def _count(cases: Sequence[_Case]) -> str:
    files = sum(case.is_file for case in cases)
    tests = len(cases) - files
    said = [f"{files} file{'s' if files > 1 else ''}"] if files else []
    return " and ".join([*said, *([f"{tests} test{'s' if tests > 1 else ''}"] if tests else [])])


def _summary(run: RunOutcome) -> str:
    """Return how many tests did what, and what ended the run early."""
    counts = {status: sum(one.status is status for one in run.results) for status in TestStatus}
    said = [f"{count} {status.value}" for status, count in counts.items() if count]
    if not run.results and run.collected:
        said.append(f"{len(run.collected[0])} tests collected")
    if run.collect_errors:
        said.append(f"{len(run.collect_errors)} of the files cannot be collected")
    reached = {"time": run.timed_out, "memory": run.out_of_memory, run.limit: bool(run.limit)}
    said += [f"the limit of {name} was reached" for name, is_so in reached.items() if is_so]
    if not run.finished:
        said.append(f"the run did not come to its end{f' (in {run.running})' if run.running else ''}")
    return steady(", ".join(said) or "no test ran")[:_LONGEST]
