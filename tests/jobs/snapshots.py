"""What tests of snapshots work with: replays, and what ledgers and snapshots hold."""

from __future__ import annotations

import io
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import forge_month
import planted
import zstandard
from forge_month import EXTRACT, MONTH, facts_in, run
from sqlalchemy import select
from world import files

from miner.core import tables as t
from miner.core.ledger import Ledger, content_hash
from miner.core.records import Fact
from miner.core.settings import Settings, load_settings
from miner.jobs.mining import mine
from miner.jobs.sources import settled

NOBODY = "http://127.0.0.1:1"
UP_TO_EXTRACTION = {"policy__max_patch_lines": 0}
"""A policy by which no engine is needed."""


def plant(chosen: Settings) -> None:
    """Bring all candidates as far as an image and two test runs."""
    planted.know_base_image(chosen)
    with ExitStack() as leaving:
        context = planted._Planter(settled(chosen), leaving, lambda _subject, _kind, seen: seen)
        leaving.callback(context.ledger.close)
        context.ledger.begin_run(context.run_id, "planted", context.settings, {})
        memo = context.memo(context.store)
        for unit in context.source.units(memo):
            found = context.source.discover(unit, memo)
            context.register(found.items, month=context.settings.mine.month, unit_id=found.unit_id)
            for item in found.items:
                assert mine(context, item, context.store).fault is None
        context.ledger.end_run(context.run_id, "done")


def replay(folder: Path, written: Path, **changes: Any) -> Settings:
    """Settings of a replay: a forge that does not answer, no engine, and the policy of the run."""
    values = {
        "mine.source": "snapshot",
        "mine.snapshot": written,
        "mine.month": MONTH,
        "paths.work": folder / "var",
        "measure.pythons": '["3.11"]',  # which the base image has on any machine
        "paths.release": folder / "out",
        "github.url": NOBODY,
        "github.api_url": NOBODY,
        "github.tries": 1,
        "run.pause_max_s": 0,
        "docker.host": forge_month.NOWHERE,
        "policy.max_patch_lines": 5000,
        "policy.pulls.gate_sample": 0,
        **{name.replace("__", "."): value for name, value in changes.items()},
    }
    return load_settings(overrides=[f"{name}={value}" for name, value in values.items()], environ={})


def all_facts(chosen: Settings) -> dict[str, Fact]:
    with closing(Ledger(chosen.paths.ledger, create=False)) as ledger:
        names = [row.fact_id for row in ledger.rows(select(t.facts.c.fact_id))]
        return {name: fact for name in names if (fact := ledger.get(name)) is not None}


def of_the_crawl(facts: dict[str, Fact]) -> dict[str, Fact]:
    return {name: fact for name, fact in facts.items() if fact.key.producer.startswith("github.")}


def extract_again(chosen: Settings) -> None:
    """Run once more, after what was read from mirrors was taken out of use."""
    with closing(Ledger(chosen.paths.ledger)) as ledger:
        assert ledger.invalidate(why="to be measured again", producer="github.extract")
    assert run(chosen).faulted == 0


def extracted(chosen: Settings) -> dict[str, str]:
    """What was read from mirrors, as often as it may have been: hash of the content by candidate."""
    facts = facts_in(chosen, EXTRACT)
    first = (fact.model_copy(update={"key": fact.key.model_copy(update={"ordinal": 0})}) for fact in facts)
    return {fact.key.subject: content_hash(fact) for fact in first}


def plain(folder: Path) -> dict[str, bytes]:
    """All files of a snapshot, unpacked; bundles as what git shows of them."""
    found = {}
    for path, data in files(folder).items():
        if path.endswith(".zst"):
            data = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
        found[path] = data
    return found
