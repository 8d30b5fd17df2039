"""The steps of mining one candidate. Each looks at the case so far and returns the facts that it adds to the trail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO

from installers.attempt import InstallCase
from installers.image import ensure_image
from installers.ladder import install
from miner.core.errors import BlobLost
from miner.core.hashing import sha256_bytes
from miner.core.memo import Memo
from miner.core.reasons import Stage
from miner.core.records import Fact, Observation, Producer
from miner.core.text import patch_bytes
from miner.crawlers.git_image import pack_single_commit
from miner.crawlers.interface import Item
from miner.jobs.context import Context
from miner.sandbox.interface import TestRequest
from miner.sandbox.profile import profile_of
from miner.sandbox.runner import conditions, run_tests
from validators.case import AFTER, BEFORE, EXTRACT, LOOK_UP, tree_of
from validators.interface import Case

RUNNER = Producer(name="sandbox.run_tests", epoch=2)


@dataclass(frozen=True)
class Bench:
    """What a step works with: the run's context, the memo of this unit, and the item in hand."""

    context: Context
    memo: Memo
    item: Item
    instance_id: str


Step = Callable[[Bench, Case, tuple[Fact, ...]], tuple[Fact, ...]]


def look_up(bench: Bench, _case: Case, _trail: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Ask the source what it says about the candidate."""
    source = bench.context.source

    def run() -> Observation:
        seen = source.look_up(bench.item)
        return seen.model_copy(update={"payload": {**bench.item.identity, **seen.payload}})

    return (bench.memo.measure(source.look_up_producer, LOOK_UP, bench.instance_id, bench.item.inputs, run),)


def extract(bench: Bench, _case: Case, trail: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Bring base and target into a repository."""
    source, looked_up = bench.context.source, _of(trail, LOOK_UP)
    inputs = {"looked_up": looked_up.payload, "limits": bench.context.settings.measure.archive}
    run = partial(source.extract, bench.item, looked_up)
    memo = bench.memo.patient() if bench.context.settings.source == "snapshot" else bench.memo  # nobody can be asked
    return (memo.measure(source.extract_producer, EXTRACT, bench.instance_id, inputs, run),)


def build(bench: Bench, case: Case, trail: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Build an environment and see that it is healthy."""
    if case.candidate is None or case.declared is None:
        return ()
    context, commit = bench.context, case.candidate.base_commit
    looked_up, extracted = _of(trail, LOOK_UP), _of(trail, EXTRACT)

    def pack(out: BinaryIO) -> None:
        repo = context.source.repository(bench.item, looked_up, extracted)
        pack_single_commit(repo, commit, out)

    files = tree_of(extracted, context.blobs)
    wanted = InstallCase.of(case.candidate, case.declared, files, pack)
    models = context.models_for(bench.instance_id)
    return install(context.workshop(), bench.memo, wanted, context.memory_for(bench.instance_id), models).facts


def run_before(bench: Bench, case: Case, trail: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Run the tests of the test patch before the gold patch."""
    return _run_tests(bench, case, BEFORE, trail)


def run_after(bench: Bench, case: Case, trail: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Run the tests of the test patch after the gold patch."""
    return _run_tests(bench, case, AFTER, trail)


STEPS: tuple[tuple[Stage, Step], ...] = (
    (Stage.DISCOVER, look_up),
    (Stage.EXTRACT, extract),
    (Stage.INSTALL, build),
    (Stage.VALIDATE, run_before),
    (Stage.VALIDATE, run_after),
)


def _of(trail: tuple[Fact, ...], kind: str) -> Fact:
    return next(fact for fact in trail if fact.key.kind == kind)


def _run_tests(bench: Bench, case: Case, kind: str, trail: tuple[Fact, ...]) -> tuple[Fact, ...]:
    if case.candidate is None or case.recipe is None or case.environment is None:
        return ()
    candidate, environment, measure = case.candidate, case.environment, bench.context.settings.measure
    request = TestRequest(
        test_files=candidate.test_files,
        test_patch=patch_bytes(candidate.test_patch),
        gold_patch=patch_bytes(candidate.patch) if kind == AFTER else None,
        project_dir=case.recipe.project_dir,
        rebuild_cmd=environment.rebuild_cmd,
        addopts=environment.addopts,
        env=environment.env,
    )
    inputs = {
        "image": environment.image,
        "test_files": request.test_files,
        "test_patch": sha256_bytes(request.test_patch or b""),
        "gold_patch": None if request.gold_patch is None else sha256_bytes(request.gold_patch),
        "project_dir": request.project_dir,
        "rebuild_cmd": request.rebuild_cmd,
        "addopts": request.addopts,
        "limits": measure.test,
        "conditions": conditions(bench.context.settings),
    }

    def run() -> Observation:
        workshop = bench.context.workshop()
        try:
            image = ensure_image(workshop, environment, bench.instance_id)
        except BlobLost:  # it was evicted: made again from its lock
            build(replace(bench, memo=bench.memo.strict()), case, trail)
            image = ensure_image(workshop, environment, bench.instance_id)
        profile = profile_of(workshop.settings, measure.test, owner=workshop.owner)
        return run_tests(workshop.client, image, request, profile, workshop.blobs)

    return (bench.memo.measure(RUNNER, kind, bench.instance_id, inputs, run),)
