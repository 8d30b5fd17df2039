"""Progress of a run, as a person sees it: a bar on a terminal, plain lines otherwise, nothing with `--json`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from miner.core.records import Decision, Fact, Intake
from miner.jobs.breakers import OpenBreaker
from miner.jobs.render import decision_line, intake_line, paused_line


class Reporter:
    """Is told what happens in a run; by default it does nothing about it."""

    def begin(self, stage: str, total: int) -> None:
        """A stage begins, with so many pieces of work."""

    def discovered(self, intake: Intake) -> None:
        """A unit of discovery was looked into."""

    def fact(self, fact: Fact) -> None:
        """A fact was stored."""

    def decided(self, decision: Decision) -> None:
        """A candidate has its decision; a later one on the same candidate replaces it."""

    def paused(self, breaker: OpenBreaker) -> None:
        """A breaker opened."""

    def resumed(self, breaker: OpenBreaker) -> None:
        """A breaker closed."""

    def again(self, number: int) -> None:
        """So many suspects are worked on again."""


class All(Reporter):
    """Tells several reporters."""

    def __init__(self, reporters: Sequence[Reporter]) -> None:
        self._reporters = reporters

    def begin(self, stage: str, total: int) -> None:
        """Tell all of them."""
        for one in self._reporters:
            one.begin(stage, total)

    def discovered(self, intake: Intake) -> None:
        """Tell all of them."""
        for one in self._reporters:
            one.discovered(intake)

    def fact(self, fact: Fact) -> None:
        """Tell all of them."""
        for one in self._reporters:
            one.fact(fact)

    def decided(self, decision: Decision) -> None:
        """Tell all of them."""
        for one in self._reporters:
            one.decided(decision)

    def paused(self, breaker: OpenBreaker) -> None:
        """Tell all of them."""
        for one in self._reporters:
            one.paused(breaker)

    def resumed(self, breaker: OpenBreaker) -> None:
        """Tell all of them."""
        for one in self._reporters:
            one.resumed(breaker)

    def again(self, number: int) -> None:
        """Tell all of them."""
        for one in self._reporters:
            one.again(number)


class Lines(Reporter):
    """One plain line for each fact, unit and decision, for logs and pipes."""

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

    def paused(self, breaker: OpenBreaker) -> None:
        """Print what is waited for."""
        print(paused_line(breaker.name, breaker.message), flush=True)

    def resumed(self, breaker: OpenBreaker) -> None:
        """Print that it goes on."""
        print(f"  goes on: {breaker.name}", flush=True)

    def again(self, number: int) -> None:
        """Print how many are worked on again."""
        print(f"  {number} suspects are worked on again", flush=True)


class Bar(Reporter):
    """A progress bar over units, then over candidates; decisions scroll by above it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("")

    def _print(self, line: str) -> None:
        self._progress.console.print(line, markup=False, highlight=False)

    def begin(self, stage: str, total: int) -> None:
        """Start the bar again."""
        self._progress.reset(self._task, total=total, description=stage)

    def discovered(self, intake: Intake) -> None:
        """Show what a repository came to and move on."""
        if line := intake_line(intake):
            self._print(line)
        self._progress.advance(self._task)

    def fact(self, fact: Fact) -> None:
        """Show what was measured last."""
        self._progress.update(self._task, description=f"{fact.key.kind} {fact.key.subject}"[:60])

    def decided(self, decision: Decision) -> None:
        """Show the decision and move on."""
        self._print(decision_line(decision))
        self._progress.advance(self._task)

    def paused(self, breaker: OpenBreaker) -> None:
        """Show what is waited for."""
        self._print(paused_line(breaker.name, breaker.message))

    def resumed(self, breaker: OpenBreaker) -> None:
        """Show that it goes on."""
        self._print(f"  goes on: {breaker.name}")

    def again(self, number: int) -> None:
        """Move the bar back by what is worked on again."""
        self._print(f"  {number} suspects are worked on again")
        self._progress.advance(self._task, -number)


@contextmanager
def reporter(*, quiet: bool) -> Iterator[Reporter]:
    """Yield the reporter that fits where the output goes."""
    if quiet:
        yield Reporter()
    elif not sys.stdout.isatty():
        yield Lines()
    else:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console()) as progress:
            yield Bar(progress)
