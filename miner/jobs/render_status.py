"""The status of a run as one screen of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from miner.jobs.render import count, funnel_text
from miner.jobs.status import StageStatus, Status

_WIDTH = 110
_SAID = {
    "none": "no run yet",
    "running": "running",
    "stale": "stale: it holds the ledger and says nothing; end its process, then",
    "done": "done",
    "capped": "stopped at a cap",
    "faulted": "ended by a fault of the infrastructure",
    "interrupted": "stopped",
    "failed": "ended by an error",
    "killed": "killed: its process is gone",
}


def status_text(found: Status) -> str:
    """Return the status, with the next command at its end."""
    heard = "" if found.heard_s is None else f", last heard of {_time(found.heard_s)} ago"
    lines = [f"{_SAID.get(found.state, found.state)}{heard}"]
    if found.began_at is not None:
        month = f" {found.month}" if found.month else ""
        began = f"{found.began_at:%Y-%m-%d %H:%M} UTC"
        lines.append(
            f"{found.command} {found.run_id[:12]}: {found.source}{month}, began {began}, {_hours(found.hours)}"
        )
    for block in (_stages(found), _candidates(found), _yields(found), _rest(found)):
        if block:
            lines += ["", *block]
    return "\n".join([*lines, "", f"next      {found.next}"])


def _stages(found: Status) -> list[str]:
    if not found.stages:
        return []
    return [f"{'stage':<10}{'done':>9}{'total':>9}{'left':>9}{'per hour':>10}   time left", *map(_stage, found.stages)]


def _stage(stage: StageStatus) -> str:
    numbers = ("-" if number is None else f"{number:,}" for number in (stage.done, stage.total, stage.left))
    rate = "-" if stage.per_hour is None else f"{stage.per_hour:,.0f}"
    return f"{stage.stage:<10}{''.join(f'{number:>9}' for number in numbers)}{rate:>10}   " + (
        "-" if stage.eta_s is None else _time(stage.eta_s)
    )


def _candidates(found: Status) -> list[str]:
    """Return the funnel without its reasons, which `swe-miner funnel` shows."""
    if not found.funnel:
        return []
    bare = [stage.model_copy(update={"rejected": {}}) for stage in found.funnel]
    table = funnel_text(bare).splitlines()
    rows = zip(table[1:-1], found.funnel, strict=True)
    return [table[0], *(line[:19] + f"{stage.rejections:>9}" + line[28:] for line, stage in rows), table[-1]]


def _yields(found: Status) -> list[str]:
    if not found.yields:
        return []
    lines = [f"{'yield':<10}{'merged':>9}{'linked':>9}{'accepted':>9}   accepted per 1,000 merged"]
    for one in found.yields:
        so_far = "  so far" if one.month == found.month and found.state != "done" else ""
        share = f"{100 * one.linked_share:.1f} %"
        lines.append(f"{one.month:<10}{one.merged:>9,}{share:>9}{one.accepted:>9,}{one.per_thousand:>8.2f}{so_far}")
    return lines


def _rest(found: Status) -> list[str]:
    lines = []
    if found.moved:
        since = [one.month for one in found.yields if one.month != found.month][:1]
        moved = (f"{one.code} {100 * (one.share - one.before):+.1f}" for one in found.moved)
        lines += _listed("moved", moved, f" (share points since {since[0]})" if since else "")
    if found.faults:
        lines += _listed("faults", (f"{number} x {code}" for code, number in found.faults.items()))
    for breaker in found.breakers:
        suspects = count(breaker.suspects, "suspect")
        said = f"{breaker.name} since {breaker.since:%H:%M} UTC, {suspects}: {breaker.message}"
        lines.append(f"{'breaker':<10}{textwrap.shorten(said, _WIDTH - 10, placeholder=' ...')}")
    if found.spent.requests or found.max_points is not None or found.max_hours is not None:
        lines.append(f"{'spent':<10}{_spent(found)}")
    if found.spent.money or found.max_cost is not None:
        money = f" of ${found.max_cost:,.2f}" if found.max_cost is not None else ""
        lines.append(f"{'models':<10}${found.spent.money:,.4f}{money}")
    if found.capped:
        lines.append(f"{'cap':<10}{found.capped}")
    return lines


def _spent(found: Status) -> str:
    points = f" of {found.max_points:,}" if found.max_points is not None else ""
    hours = f" of {found.max_hours:g} h" if found.max_hours is not None else ""
    return (
        f"{found.spent.points:,}{points} points, {count(found.spent.requests, 'request')}, {_hours(found.hours)}{hours}"
    )


def _listed(head: str, items: Iterable[str], tail: str = "") -> list[str]:
    text = ", ".join(items) + tail
    return textwrap.wrap(text, _WIDTH, initial_indent=f"{head:<10}", subsequent_indent=" " * 10)


def _hours(hours: float) -> str:
    return f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.0f} min"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
