"""What the crawl and git make of a small forge changes with the epochs of their producers only (law 1).

Where a change is meant: raise the epoch, say in docs/producers.md which facts it can alter, and run
`UPDATE_GOLDEN=1 pytest tests/jobs/test_crawl_corpus.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from crawlers.crawl_bench import Bench
from forge.limits import Limits
from forge.samples import sample_project
from forge.server import Forge
from forge.world import World

from miner.core.hashing import canonical_json
from miner.core.records import Fact, Observation

GOLDEN = Path(__file__).with_name("crawl_corpus.json")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Producer -> its epoch, and what it saw in each case; what a forge writes anew each time is left out."""
    folder = tmp_path_factory.mktemp("corpus")
    world = World(folder / "forge")
    sample_project(world, "octo/calc")
    found: dict[str, Any] = {}
    with Forge(world, limits=Limits.none()) as forge:
        bench = Bench(forge, folder)
        bench.on_fact = lambda fact: _note(found, fact, forge.url)
        source = bench.source("octo/calc")
        memo = bench.memo()
        for unit in source.units(memo):
            for item in source.discover(unit, memo).items:
                subject = source.subject(item)

                def look_up(item: Any = item) -> Observation:
                    seen = source.look_up(item)
                    return seen.model_copy(update={"payload": {**item.identity, **seen.payload}})

                looked_up = memo.measure(source.look_up_producer, "source.look_up", subject, item.inputs, look_up)
                inputs = {"looked_up": looked_up.payload}
                memo.measure(
                    source.extract_producer,
                    "source.extract",
                    subject,
                    inputs,
                    lambda item=item, looked_up=looked_up: source.extract(item, looked_up),
                )
        bench.ledger.close()
    return found


def _note(found: dict[str, Any], fact: Fact, url: str) -> None:
    kept: dict[str, Any] = {"outcome": fact.outcome, "payload": fact.payload}
    if fact.key.kind == "source.extract":
        kept["blobs"] = fact.blobs
    case = f"{fact.key.kind} {fact.key.subject} {fact.key.ordinal}"
    cases = found.setdefault(fact.key.producer, {"epoch": fact.key.epoch, "cases": {}})["cases"]
    while case in cases:
        case += "'"
    cases[case] = json.loads(canonical_json(kept).replace(url, "http://forge.invalid"))


def test_output_of_the_crawl_changes_with_its_epoch_only(seen: dict[str, Any]) -> None:
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    for name, now in seen.items():
        before = golden.get(name, {"epoch": 0, "cases": {}})
        if now["epoch"] == before["epoch"]:
            for case, was in before["cases"].items():
                assert now["cases"].get(case) == was, f"{name} sees another thing in {case!r}: raise its epoch"
    if "UPDATE_GOLDEN" in os.environ:
        GOLDEN.write_text(json.dumps(seen, indent=1, sort_keys=True) + "\n")
    assert json.loads(GOLDEN.read_text()) == seen, "run with UPDATE_GOLDEN=1"


def test_corpus_holds_every_way_of_merging(seen: dict[str, Any]) -> None:
    kinds = {one["payload"]["kind"] for one in seen["github.extract"]["cases"].values() if one["outcome"] == "ok"}
    assert {"merge", "squash", "rebase"} <= kinds
