"""What was measured wrongly is taken out of use by a query, measured again, and compared; nothing else is touched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from crawlers.index_server import IndexServer
from planted import BELOW, TERMINAL, TWO, plant, test_run
from world import content, pair, publish, quiet_pair, settings

from miner.core.blobs import BlobStore
from miner.core.errors import DockerUnavailable, UsageError
from miner.core.ledger import Ledger, fact_id
from miner.core.records import Fact, Observation, Producer
from miner.core.settings import Settings
from miner.crawlers.index import IndexClient
from miner.crawlers.pypi import EXTRACT, PypiSource
from miner.jobs import correction, monthly

ALPHA, BETA, QUIET = "pypi__alpha-1.1", "pypi__beta-1.1", "pypi__quiet-1.1"


@dataclass(frozen=True)
class World:
    """A ledger of two accepted candidates, a rejected one and an unknown one."""

    server: IndexServer
    settings: Settings
    ledger: Ledger

    def standing(self) -> dict[str, Fact]:
        """Every fact in use, by id."""
        subjects = {row.instance_id for row in self.ledger.candidates()}
        trails = {name for decision in self.ledger.decisions() for name in decision.trail}
        facts = [fact for subject in subjects for fact in self.ledger.facts_of(subject)]
        gone = {fact_id(fact.key) for fact, _ in self.ledger.tombstoned()}
        shared = [fact for fact in map(self.ledger.get, trails - gone) if fact is not None]
        return {fact_id(fact.key): fact for fact in (*facts, *shared)}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[IndexServer, Settings]]:
    with IndexServer() as server:
        pairs = (publish(server, "alpha"), publish(server, "beta"), quiet_pair(server, "quiet"), pair("gone"))
        chosen = settings(tmp_path_factory.mktemp("template"), server, *pairs)
        plant(chosen)
        monthly.run(chosen, quiet=True)
        yield server, chosen


@pytest.fixture
def world(template: tuple[IndexServer, Settings], tmp_path: Path) -> Iterator[World]:
    server, made = template
    shutil.copytree(made.paths.work.parent, tmp_path, dirs_exist_ok=True)
    chosen = settings(tmp_path, server, *(one.model_dump() for one in made.pairs))
    ledger = Ledger(chosen.paths.ledger)
    yield World(server, chosen, ledger)
    ledger.close()


def extracts(*subjects: str) -> set[tuple[str, str]]:
    return {(subject, "source.extract") for subject in subjects}


RUNS = {"producer": "sandbox.run_tests", "kind": "validate.before"}
QUERIES: dict[str, tuple[dict[str, Any], set[tuple[str, str]]]] = {
    "by-producer": ({"producer": "pypi.extract"}, extracts(ALPHA, BETA, QUIET)),
    "by-subject": ({"producer": "pypi.extract", "subject": BETA}, extracts(BETA)),
    "by-kind": (RUNS, {(ALPHA, "validate.before"), (BETA, "validate.before")}),
    "by-epoch": ({"producer": "pypi.extract", "epoch": EXTRACT.epoch, "subject": QUIET}, extracts(QUIET)),
    "by-an-epoch-that-never-was": ({"producer": "pypi.extract", "epoch": 7}, set()),
}


@pytest.mark.parametrize("name", QUERIES)
def test_query_takes_exactly_these_facts_out_of_use(name: str, world: World) -> None:
    query, expected = QUERIES[name]
    before = world.standing()
    would = correction.invalidate(world.settings, why="a bug", dry_run=True, **query)
    assert world.standing() == before, "a dry run changes nothing"
    did = correction.invalidate(world.settings, why="a bug", **query)
    assert would == did
    assert {(fact.key.subject, fact.key.kind) for fact in did} == expected
    assert set(before) - set(world.standing()) == {fact_id(fact.key) for fact in did}
    assert {why for _, why in world.ledger.tombstoned()} <= {"a bug"}
    assert correction.invalidate(world.settings, why="again", **query) == []


def test_producer_that_measured_nothing_is_a_usage_error_that_names_the_nearest(world: World) -> None:
    with pytest.raises(UsageError, match=r"did you mean pypi\.extract\?"):
        correction.invalidate(world.settings, why="a bug", producer="pypi.extrakt")


def test_remeasure_measures_exactly_that_again_and_finds_it_the_same(world: World) -> None:
    released = content(world.settings.paths.release)
    before = set(world.standing())
    gone = correction.invalidate(world.settings, why="a bug", producer="pypi.extract", subject=ALPHA)
    found = correction.remeasure(world.settings, quiet=True)
    assert [(one.subject, one.kind, one.same) for one in found.changes] == [(ALPHA, "source.extract", True)]
    assert (found.left, found.faulted) == (0, 0)
    [new] = set(world.standing()) - before
    fact = world.ledger.get(new)
    assert fact is not None
    assert fact.key == gone[0].key.model_copy(update={"ordinal": 1})
    now = content(world.settings.paths.release)
    rests_on_ids = {"release.lock", "README.md"}
    assert {path for path in now if now[path] != released[path]} == rests_on_ids, "the rows are the same"


def test_remeasure_shows_what_changed(world: World) -> None:
    world.server.release("quiet", "1.1", archive=b"", filename="Quiet-1.1.tar.gz")  # which is taken instead
    correction.invalidate(world.settings, why="a bug", producer="pypi.look_up", subject=QUIET)
    found = correction.remeasure(world.settings, quiet=True)
    assert [(one.subject, one.kind, one.same) for one in found.changes] == [(QUIET, "source.look_up", False)]
    again = correction.remeasure(world.settings, quiet=True)
    assert (again.changes, again.left) == ((), 0), "what was measured again once is settled"


def test_remeasure_shows_what_a_test_run_says_now(world: World) -> None:
    correction.invalidate(
        world.settings, why="flaky", producer="sandbox.run_tests", kind="validate.after", subject=BETA
    )
    with pytest.raises(DockerUnavailable):
        correction.remeasure(world.settings, quiet=True)
    blobs = BlobStore(world.settings.paths.blobs)

    def fails(_subject: str, kind: str, seen: Observation) -> Observation:
        failed = test_run(blobs, {TWO: "failed", BELOW: "failed"}, TERMINAL)
        return failed if kind == "validate.after" else seen

    plant(world.settings, fails)
    summary = monthly.run(world.settings, quiet=True)
    assert {one.instance_id: str(one.code) for one in summary.decisions}[BETA] in ("fails-after", "pass-to-fail")
    assert (summary.measured, summary.tasks) == (0, 1)


def test_what_no_candidate_of_the_settings_rests_on_is_counted(world: World) -> None:
    correction.invalidate(world.settings, why="a bug", producer="pypi.extract")
    fewer = world.settings.model_copy(update={"pairs": world.settings.pairs[2:]})
    found = correction.remeasure(fewer, quiet=True)
    assert [one.subject for one in found.changes] == [QUIET]
    assert found.left == 2


class Raised(PypiSource):
    """The real source, after somebody corrected how it extracts."""

    extract_producer = Producer(name="pypi.extract", epoch=EXTRACT.epoch + 1)


def test_raised_epoch_keeps_what_its_query_left_valid_and_measures_the_rest_under_its_own_number(world: World) -> None:
    chosen, work = world.settings, world.settings.paths.work
    raised = Raised(
        chosen.pairs,
        IndexClient(chosen.index, work / "downloads"),
        BlobStore(chosen.paths.blobs),
        work / "repos",
        chosen.measure.archive,
    )
    assert monthly.run(chosen, quiet=True, source=raised).measured == 0
    correction.invalidate(chosen, why="a later epoch", producer="pypi.extract", epoch=EXTRACT.epoch, subject=QUIET)
    found = correction.remeasure(chosen, quiet=True, source=raised)
    assert [(one.subject, one.kind, one.same) for one in found.changes] == [(QUIET, "source.extract", True)]
    epochs = {
        fact.key.subject: fact.key.epoch for fact in world.standing().values() if fact.key.kind == "source.extract"
    }
    assert epochs == {ALPHA: EXTRACT.epoch, BETA: EXTRACT.epoch, QUIET: EXTRACT.epoch + 1}
    assert monthly.run(chosen, quiet=True, source=raised).measured == 0
