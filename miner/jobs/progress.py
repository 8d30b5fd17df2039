"""Progress of a run: a bar on a terminal, plain lines otherwise, nothing with `--json`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from miner.core.records import Decision, Fact, Intake
from miner.jobs.render import decision_line, intake_line


class Reporter(Protocol):
    """Is told what happens in a run."""

    def begin(self, stage: str, total: int) -> None:
        """A stage begins, with so many pieces of work."""
        ...

    def discovered(self, intake: Intake) -> None:
        """A unit of discovery was looked into."""
        ...

    def fact(self, fact: Fact) -> None:
        """A fact was stored."""
        ...

    def decided(self, decision: Decision) -> None:
        """A candidate has its decision."""
        ...


class Silent:
    """Says nothing."""

    def begin(self, stage: str, total: int) -> None:
        """Say nothing."""

    def discovered(self, intake: Intake) -> None:
        """Say nothing."""

    def fact(self, fact: Fact) -> None:
        """Say nothing."""

    def decided(self, decision: Decision) -> None:
        """Say nothing."""


class Lines:
    """One plain line for each fact, unit and decision, for logs and pipes."""

    def begin(self, stage: str, total: int) -> None:
        """Say nothing: what follows speaks for itself."""

    def discovered(self, intake: Intake) -> None:
        """Print what a repository came to; release pairs are no news."""
        if line := intake_line(intake):
            print(line, flush=True)

    def fact(self, fact: Fact) -> None:
        """Print what was measured and how long it took."""
        seconds = fact.measures.get("wall_s", 0.0)
        print(f"  {fact.key.subject} {fact.key.kind} {fact.outcome} {seconds:.1f}s", flush=True)

    def decided(self, decision: Decision) -> None:
        """Print the decision."""
        print(decision_line(decision), flush=True)


class Bar:
    """A progress bar over units, then over candidates; decisions scroll by above it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("")

    def begin(self, stage: str, total: int) -> None:
        """Start the bar again."""
        self._progress.reset(self._task, total=total, description=stage)

    def discovered(self, intake: Intake) -> None:
        """Show what a repository came to and move on."""
        if line := intake_line(intake):
            self._progress.console.print(line, markup=False, highlight=False)
        self._progress.advance(self._task)

    def fact(self, fact: Fact) -> None:
        """Show what was measured last."""
        self._progress.update(self._task, description=f"{fact.key.kind} {fact.key.subject}"[:60])

    def decided(self, decision: Decision) -> None:
        """Show the decision and move on."""
        self._progress.console.print(decision_line(decision), markup=False, highlight=False)
        self._progress.advance(self._task)


@contextmanager
def reporter(*, quiet: bool) -> Iterator[Reporter]:
    """Yield the reporter that fits where the output goes."""
    if quiet:
        yield Silent()
    elif not sys.stdout.isatty():
        yield Lines()
    else:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console()) as progress:
            yield Bar(progress)
