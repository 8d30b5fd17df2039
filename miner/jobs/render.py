"""What a person sees on a terminal: plain text, made by pure functions."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from miner.core.records import Decision, Intake, State
from miner.jobs.caps import Spent
from miner.jobs.estimate import Extrapolation
from miner.jobs.funnel import DiscoveryCount, FunnelStage
from miner.jobs.summary import Correction, Summary
from miner.sandbox.doctor import Check

_SENTENCE_CHARS = 240
_ALL_DECISIONS = 200
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


def paused_line(name: str, message: str) -> str:
    """Return one line on a breaker that opened."""
    return f"! paused: {name}: {textwrap.shorten(message, _SENTENCE_CHARS, placeholder=' ...')}"


def discovery_text(found: DiscoveryCount) -> str:
    """Return what discovery came to, in rows that add up."""
    lines = [f"{count(found.units, 'unit')} looked into, {found.taken} of them taken"]
    lines += [f"    {number:>3} x {code}" for code, number in {**found.refused, **found.faulted}.items()]
    lines.append(
        f"{count(found.merged, 'merged pull request')}: {found.unlinked} without an issue, {found.linked} linked"
    )
    for number, sentence in (
        (found.twice, "found twice"),
        (found.others, "others, from earlier runs or other sources"),
        (found.left, "not come to"),
    ):
        if number:
            lines.append(f"    {number:>3} {sentence}")
    return "\n".join(lines)


def funnel_text(stages: Sequence[FunnelStage], found: DiscoveryCount | None = None) -> str:
    """Return the funnel as a table whose rows add up."""
    columns = ("entered", "rejected", "faulted", "pending", "passed")
    lines = [] if found is None else [discovery_text(found), ""]
    lines.append(f"{'stage':<10}" + "".join(f"{column:>9}" for column in columns))
    for stage in stages:
        numbers = (stage.entered, stage.rejections, stage.faulted, stage.pending, stage.passed)
        lines.append(f"{stage.stage:<10}" + "".join(f"{number:>9}" for number in numbers))
        lines += [f"    {number:>3} x {code}" for code, number in stage.rejected.items()]
    lines.append(f"{stages[-1].passed} of {stages[0].entered} accepted")
    return "\n".join(lines)


def summary_text(summary: Summary) -> str:
    """Return the end of a run: decisions, funnel, what was measured and spent, and where the release is."""
    shown, few = summary.decisions, len(summary.decisions) <= _ALL_DECISIONS
    if not few:
        shown = tuple(one for one in shown if one.state in (State.ACCEPTED, State.FAULTED))
    lines = ["", *map(decision_line, shown), "", funnel_text(summary.funnel, summary.discovery), ""]
    if not few:
        lines[1:1] = [f"{len(summary.decisions)} decisions; those accepted or faulted (`swe-miner funnel --ids`: all):"]
    lines.append(f"{count(summary.measured, 'fact')} measured, {summary.known} known, {summary.seconds:.0f} s")
    if summary.spent.requests:
        lines.append(spent_line(summary.spent))
    if summary.models:
        lines.append(summary.models)
    lines += [f"note: {note}" for note in summary.notes]
    if summary.pilot is not None:
        lines += ["", pilot_text(summary.pilot)]
    elif summary.capped:
        lines.append(f"stopped at a cap: {summary.capped}; no release: what it came to is a sample")
        lines.append("run the same command again: it goes on where it stopped")
    else:
        lines.append(f"release: {summary.release} ({count(summary.tasks, 'task')})")
    return "\n".join([*lines, *_faulted(summary.faulted, summary.units_faulted)])


def spent_line(spent: Spent) -> str:
    """Return what was asked of the forge."""
    waited = f", {spent.waited_s:.0f} s waited for its limits" if spent.waited_s else ""
    return f"forge: {count(spent.requests, 'request')}, {count(spent.points, 'point')}{waited}"


def pilot_text(pilot: Extrapolation) -> str:
    """Return what all candidates would come to."""
    taken, found = (sum(pair[place] for pair in pilot.sampled.values()) for place in (0, 1))
    lines = [f"pilot: {taken} of {found} candidates; all of them would come to (95 %)"]
    for name, value, digits in (
        ("candidates", pilot.candidates, 0),
        ("tasks", pilot.tasks, 0),
        ("hours", pilot.hours, 1),
        ("disk, GB", pilot.disk_gb, 1),
        ("points", pilot.points, 0),
        ("money, $", pilot.money, 2),
    ):
        numbers = (f"{number:>12,.{digits}f}" for number in (value.estimate, value.low, value.high))
        lines.append("  {:<12}{}   {} to{}".format(name, *numbers))
    each = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in pilot.seconds.items())
    lines.append(f"  each candidate: {each}")
    lines += [f"  sampled {taken} of {size}: {stratum}" for stratum, (taken, size) in pilot.sampled.items()]
    return "\n".join([*lines, *(f"  {said}" for said in pilot.assumptions)])


def _faulted(candidates: int, units: int = 0) -> list[str]:
    met = [count(number, noun) for number, noun in ((units, "unit"), (candidates, "candidate")) if number]
    return [f"{' and '.join(met)} met a fault: run the same command again"] if met else []


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
