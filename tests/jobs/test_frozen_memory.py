"""What a run remembers is what ended runs have learned, whenever a run before it was killed."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from installers.attempt import ATTEMPT, PRODUCER, observation_of
from installers.interface import Attempt, Delta
from miner.core.blobs import BlobStore
from miner.core.ledger import Ledger
from miner.core.records import Fact, FactKey, Recipe
from miner.core.settings import Settings, load_settings
from miner.jobs.context import Context

DAY = datetime(2023, 4, 1, tzinfo=UTC)


def learned(name: str) -> Fact:
    """An attempt that needed another bound than the project declares."""
    made = Attempt(
        repository=f"octo/{name}",
        rung="repair",
        number=1,
        recipe=Recipe(python="3.11", build_backend="x"),
        cutoff=DAY,
        outcome="ok",
        good=True,
        delta=Delta(added={"constraints": ("markupsafe<2.1",)}),
    )
    key = FactKey(kind=ATTEMPT, subject=name, input_hash=name, producer=PRODUCER.name, epoch=PRODUCER.epoch)
    return Fact(key=key, observed_at=DAY, **observation_of(made, BlobStore("memory://frozen")).model_dump())


def remembered(settings: Settings) -> list[str]:
    with ExitStack() as closing:
        context = Context(settings, closing)
        closing.callback(context.ledger.close)
        return [lesson.repository for lesson in context.memory.lessons]


def test_runs_since_the_last_ended_one_teach_nothing_until_one_ends(tmp_path: Path) -> None:
    settings = load_settings(overrides=[f"paths.work={tmp_path}", "mine.source=pypi"], environ={})
    ledger = Ledger(settings.paths.ledger)
    for run, status in (("first", "done"), ("second", "interrupted"), ("third", "faulted")):
        ledger.begin_run(run, "run", settings, {})
        ledger.add(learned(run), run)
        ledger.end_run(run, status)
    assert remembered(settings) == ["octo/first"]
    ledger.begin_run("fourth", "run", settings, {})
    assert remembered(settings) == ["octo/first"]
    ledger.end_run("fourth", "done")
    ledger.close()
    assert sorted(remembered(settings)) == ["octo/first", "octo/second", "octo/third"]
