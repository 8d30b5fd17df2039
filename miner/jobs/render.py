"""What a person sees on a terminal: plain text, made by pure functions."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from miner.core.records import Decision, Intake, State
from miner.jobs.funnel import FunnelStage
from miner.jobs.summary import Correction, Summary
from miner.sandbox.doctor import Check

_SENTENCE_CHARS = 240
_MARK = {State.ACCEPTED: "+", State.REJECTED: "-", State.FAULTED: "!", State.PENDING: "?"}


def decision_line(decision: Decision) -> str:
    """Return one line on one candidate; `swe-miner why` has the whole sentence."""
    code = f" [{decision.code}]" if decision.code else ""
    sentence = textwrap.shorten(decision.sentence, _SENTENCE_CHARS, placeholder=" ...")
    return f"{_MARK[decision.state]} {decision.instance_id}{code} {sentence}"


def intake_line(intake: Intake) -> str:
    """Return one line on one repository, "" for what is none."""
    if intake.month is None:
        return ""
    if intake.fault or intake.refused:
        return f"{'!' if intake.fault else '-'} {intake.unit} [{intake.fault or intake.refused}] {intake.detail}"
    notes = f" ({'; '.join(intake.notes)})" if intake.notes else ""
    return f"  {intake.unit}: {count(intake.merged, 'merged pull request')}, {intake.linked} linked to issues{notes}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def funnel_text(stages: Sequence[FunnelStage]) -> str:
    """Return the funnel as a table whose rows add up."""
    columns = ("entered", "rejected", "faulted", "pending", "passed")
    lines = [f"{'stage':<10}" + "".join(f"{column:>9}" for column in columns)]
    for stage in stages:
        numbers = (stage.entered, stage.rejections, stage.faulted, stage.pending, stage.passed)
        lines.append(f"{stage.stage:<10}" + "".join(f"{number:>9}" for number in numbers))
        lines += [f"    {number:>3} x {code}" for code, number in stage.rejected.items()]
    lines.append(f"{stages[-1].passed} of {stages[0].entered} accepted")
    return "\n".join(lines)


def summary_text(summary: Summary) -> str:
    """Return the end of a run: every decision, the funnel, what was measured, and where the release is."""
    lines = ["", *map(decision_line, summary.decisions), "", funnel_text(summary.funnel), ""]
    lines.append(f"{count(summary.measured, 'fact')} measured, {summary.known} known, {summary.seconds:.0f} s")
    lines.append(f"release: {summary.release} ({count(summary.tasks, 'task')})")
    return "\n".join([*lines, *_faulted(summary.faulted)])


def _faulted(number: int) -> list[str]:
    return [f"{count(number, 'candidate')} met a fault: run the same command again"] if number else []


def correction_text(correction: Correction) -> str:
    """Return what measuring again changed, one line a fact, and what stays open."""
    changes = correction.changes
    lines = [f"{change.subject} {change.kind}: {change.old} -> {change.new} ({change.verdict})" for change in changes]
    lines.append(f"{count(len(changes), 'fact')} measured again, {sum(not change.same for change in changes)} changed")
    if correction.left:
        lines.append(f"{count(correction.left, 'fact')} still out of use: no candidate of these settings came to them")
    return "\n".join([*lines, *_faulted(correction.faulted)])


def checks_text(checks: Sequence[Check]) -> str:
    """Return the doctor's report."""
    lines = []
    for check in checks:
        lines.append(f"{'ok    ' if check.ok else 'NOT OK'} {check.name}: {check.detail}")
        if not check.ok:
            lines.append(f"       -> {check.next_step}")
    return "\n".join(lines)
