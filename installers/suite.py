"""A candidate's own tests in a healthy environment, at the base commit: what `installers.share` counts.

Run are its test files *as they are at the base commit*, with no patch, once, as the validators run them. A bare
package, which has no patches, is a candidate whose test files are its whole suite (`installers.own_tests`).

Where fewer pass than the ladder looks for, the files that hold failures run once more with the gold patch alone: what
passes then does not speak against the environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from installers.health import TestSide
from installers.image import ensure_image
from installers.reports import outcome
from installers.share import Suite, count, is_below
from installers.workshop import Workshop
from miner.core.blobs import BlobStore
from miner.core.hashing import sha256_bytes
from miner.core.memo import Memo
from miner.core.records import Environment, Fact, Observation, Producer, Recipe, Record, RunOutcome
from miner.core.settings import Limits
from miner.sandbox.interface import TestRequest
from miner.sandbox.profile import profile_of
from miner.sandbox.runner import conditions, run_tests

PRODUCER = Producer(name="installers.suite", epoch=1)
KIND = "install.suite"

_GOLD = "gold-"


class SuiteRequest(Record):
    """Everything that the number of passing tests depends on.

    Attributes:
        gold_patch: sha256 of the patch that tells what the change fixes.
        enough: the share below which that is asked.
    """

    environment: Environment
    project_dir: str
    test_files: tuple[str, ...]
    gold_patch: str
    enough: float
    limits: Limits
    conditions: dict[str, str]


def suite(
    workshop: Workshop, memo: Memo, instance_id: str, environment: Environment, recipe: Recipe, side: TestSide
) -> Fact:
    """Return the fact about a candidate's own tests in a healthy environment, at the base commit."""
    request = SuiteRequest(
        environment=environment,
        project_dir=recipe.project_dir,
        test_files=side.own_tests(recipe.project_dir),
        gold_patch=sha256_bytes(side.gold_patch),
        enough=workshop.settings.measure.ladder.enough,
        limits=workshop.settings.measure.test,
        conditions=conditions(workshop.settings),
    )

    def run() -> Observation:
        image = ensure_image(workshop, environment, instance_id)
        seen = _run(workshop, image, request, request.test_files)
        found = _count(seen.payload, seen.logs, request.test_files, workshop.blobs)
        if not side.gold_patch or found.share is None or found.share >= request.enough or found.timed_out:
            return _merged(request, seen)
        files = with_failures(found, request.test_files)
        return _merged(request, seen, _run(workshop, image, request, files, gold=side.gold_patch))

    return memo.measure(PRODUCER, KIND, instance_id, {"request": request}, run)


def with_failures(found: Suite, test_files: Sequence[str]) -> tuple[str, ...]:
    """Return those of the test files that hold what did not pass."""
    names = {*found.failed, *found.unfinished, *found.uncollected}
    paths = {name.partition("::")[0] for name in names}
    return tuple(file for file in test_files if any(is_below(path, file) for path in paths))


def _run(
    workshop: Workshop, image: str, request: SuiteRequest, files: tuple[str, ...], gold: bytes | None = None
) -> Observation:
    environment = request.environment
    asked = TestRequest(
        test_files=files,
        gold_patch=gold,
        project_dir=request.project_dir,
        rebuild_cmd=environment.rebuild_cmd if gold is not None else None,  # without a patch the image is up to date
        addopts=environment.addopts,
        collections=0,
        env=environment.env,
    )
    profile = profile_of(workshop.settings, request.limits, owner=workshop.owner)
    return run_tests(workshop.client, image, asked, profile, workshop.blobs)


def _merged(request: SuiteRequest, seen: Observation, gold: Observation | None = None) -> Observation:
    """Return one observation of both boxes; names of the second one's logs and measures begin with `gold-`."""
    payload: dict[str, Any] = {"test_files": list(request.test_files), **seen.payload, "gold": None}
    if gold is None:
        return seen.model_copy(update={"payload": payload})
    return seen.model_copy(
        update={
            "payload": {**payload, "gold": gold.payload},
            "logs": {**seen.logs, **{_GOLD + name: digest for name, digest in gold.logs.items()}},
            "measures": {**seen.measures, **{_GOLD + name: value for name, value in gold.measures.items()}},
        }
    )


def run_of_suite(fact: Fact, blobs: BlobStore) -> RunOutcome:
    """Return what the run at the base commit says."""
    return outcome(fact.payload, fact.logs, blobs)


def suite_of(fact: Fact, blobs: BlobStore) -> Suite:
    """Return what a fact about a candidate's own tests says."""
    gold = fact.payload["gold"]
    after = outcome(gold, fact.logs, blobs, _GOLD) if gold is not None else None
    return _count(fact.payload, fact.logs, fact.payload["test_files"], blobs, after)


def _count(
    payload: dict[str, Any],
    logs: dict[str, str],
    files: Sequence[str],
    blobs: BlobStore,
    after: RunOutcome | None = None,
) -> Suite:
    missing = frozenset(payload["missing"])
    there = tuple(path for path in files if path not in missing)
    found = count(outcome(payload, logs, blobs), there, after)
    return found.model_copy(update={"missing": tuple(path for path in files if path in missing)})
