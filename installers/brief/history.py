"""What was tried before, and what came of it: a line for each attempt, for a model to read. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from installers.brief.excerpt import steady
from installers.interface import Attempt, Delta

_LEFT_OUT = "[{} earlier attempts left out]"
_LONGEST = 300
_LONGEST_DETAIL = 200
_MOST_ITEMS = 6
_MOST_SIGNATURES = 4


def history(past: Sequence[Attempt], budget_chars: int) -> str:
    """Return a line for each of the last attempts: who proposed it, what it changed, what it came to and why."""
    lines: list[str] = []
    left = budget_chars - len(_LEFT_OUT) - 4
    for attempt in reversed(past):
        line = _line(attempt)
        left -= len(line) + 1
        if left < 0:
            lines.append(_LEFT_OUT.format(len(past) - len(lines)))
            break
        lines.append(line)
    return "\n".join(reversed(lines))[: max(0, budget_chars)]


def came_to(attempt: Attempt) -> str:
    """Return what an attempt came to, in words."""
    if not attempt.ok:
        return attempt.outcome
    tests = "its tests did not run" if attempt.share is None else f"{attempt.passed} of {attempt.total} tests pass"
    broken = f", {attempt.broken} test files cannot be collected" if attempt.broken else ""
    return f"installed, {tests}{broken}"


def left_with(best: Attempt | None) -> str:
    """Say what is left where no model is asked any more: what the attempt that came furthest came to."""
    if best is None:
        return "nothing was tried before"
    said = " ".join(best.detail.split())[:_LONGEST_DETAIL]
    return f"attempt {best.number} ({best.rung}) came furthest: {came_to(best)}{f': {said}' if said else ''}"


def _line(attempt: Attempt) -> str:
    changed = _changed(attempt.delta) or "as declared"
    why = _cut(steady(attempt.detail).replace("\n", " ")) if not attempt.ok else ""
    signatures = "; ".join(map(str, attempt.signatures[:_MOST_SIGNATURES]))
    said = signatures or why
    return f"#{attempt.number} {attempt.rung}: {changed} -> {came_to(attempt)}{f' [{said}]' if said else ''}"


def _changed(delta: Delta) -> str:
    """Return how a recipe differs from the declared one."""
    names = sorted({*delta.added, *delta.removed})
    said = [
        f"{name} {_items(delta.added.get(name, ()), '+')}{_items(delta.removed.get(name, ()), '-')}" for name in names
    ]
    said += [f"{name} = {value}" for name, value in sorted(delta.changed.items())]
    return _cut("; ".join(part.strip() for part in said))


def _items(items: Sequence[str], sign: str) -> str:
    more = f" ({sign}{len(items) - _MOST_ITEMS} more)" if len(items) > _MOST_ITEMS else ""
    return "".join(f" {sign}{item}" for item in items[:_MOST_ITEMS]) + more


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
