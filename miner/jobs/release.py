"""The release job: write the release of a run, and build one again from its lock."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from exporters import release as exporter
from exporters.interface import ReleaseItem
from exporters.lock import content_versions
from exporters.release import Release
from installers.dockerfile import render_dockerfile
from installers.image import tag_of
from installers.lock import KIND as LOCK
from installers.pythons import load_pythons
from miner.core.blobs import BlobStore
from miner.core.ledger import Ledger, fact_id
from miner.core.records import Decision, Environment, Fact, Finding, Recipe, State, Visibility
from miner.core.settings import Settings
from validators.case import Reader


def write(
    settings: Settings, ledger: Ledger, reader: Reader, decided: Iterable[tuple[Decision, Sequence[Finding]]]
) -> Release:
    """Write the release of these decisions to `paths.release`."""
    load = _Loader(reader, "pypi", settings.release.visibility)
    items = []
    for decision, findings in decided:
        trail = [fact for fact in map(ledger.get, decision.trail) if fact is not None]
        item = load(decision.instance_id, trail, decision)
        items.append(item.model_copy(update={"findings": tuple(findings)}))
    runs = ledger.runs_of(fact_id(fact.key) for item in items for fact in item.trail)
    return exporter.build(items, settings, content_versions(), settings.paths.release, runs)


def rebuild(settings: Settings, lock: Path, folder: Path) -> Release:
    """Build a release again from its lock, to the byte.

    Raises:
        ReleaseError: the ledger does not hold what the lock names, or other bytes come out.
    """
    ledger, blobs = Ledger(settings.paths.ledger, create=False), BlobStore(settings.paths.blobs)
    loader = _Loader(Reader(blobs, load_pythons()), "pypi", settings.release.visibility)
    return exporter.rebuild(lock, ledger, blobs, loader, folder)


class _Loader:
    """Recomputes a release item from its facts; source and visibility are the release's, frozen in its lock."""

    def __init__(self, reader: Reader, source: str, visibility: Visibility) -> None:
        self._reader = reader
        self._source = source
        self._visibility = visibility

    def __call__(self, instance_id: str, trail: Sequence[Fact], decision: Decision) -> ReleaseItem:
        """Return the item of a candidate; of one without a verdict nothing is computed: that may be what failed."""
        if decision.state in (State.FAULTED, State.PENDING):
            return ReleaseItem(decision=decision, visibility=self._visibility, source=self._source, trail=tuple(trail))
        case = self._reader.case(instance_id, trail)
        environment = case.environment
        item = ReleaseItem(
            decision=decision,
            visibility=self._visibility,
            source=self._source,
            trail=tuple(trail),
            candidate=case.candidate,
            recipe=case.recipe,
            verdict=case.verdict,
        )
        if case.recipe is None or environment is None:
            return item
        lock, build_lock = map(self._reader.blobs.get_text, (environment.lock_sha256, _build_lock(trail)))
        return item.model_copy(
            update={
                "environment": environment,
                "test_command": _test_command(environment),
                "lock_text": lock,
                "build_lock_text": build_lock,
                "dockerfile": _dockerfile(case.recipe, environment, lock, build_lock),
                "image_name": tag_of(instance_id, environment.image),
            }
        )


def _dockerfile(recipe: Recipe, environment: Environment, lock: str, build_lock: str) -> str:
    """Return the recipe for people."""
    return render_dockerfile(
        recipe,
        lock=lock,
        build_lock=build_lock,
        base_digest=environment.base_digest,
        mode=environment.mode,
        rebuild_cmd=environment.rebuild_cmd,
    )


def _build_lock(trail: Sequence[Fact]) -> str:
    """Return the digest of the lock that the project was built with: the last one of the ladder."""
    return [fact.blobs["lock"] for fact in trail if fact.key.kind == LOCK and fact.ok][-1]


def _test_command(environment: Environment) -> str:
    """Return the command that runs the task's tests in its image: without names of files, without our reporter."""
    options = ("--rootdir=/testbed", "-rA", "-o", f"addopts={shlex.join(environment.addopts)}")
    return shlex.join(("python", "-m", "pytest", *options))
