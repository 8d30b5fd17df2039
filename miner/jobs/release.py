"""The release job: judge what may leave, write the release of a run, and build one again from its lock."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Row

from exporters import release as exporter
from exporters.interface import ReleaseItem
from exporters.lock import content_versions, read_lock
from exporters.publish import secret_finding
from exporters.release import Release
from installers.dockerfile import render_dockerfile
from installers.image import tag_of
from installers.interface import Attempt
from installers.ladder import steps_of
from installers.lock import KIND as LOCK
from installers.pythons import Python, read_pythons
from miner.core.blobs import BlobStore
from miner.core.errors import ReleaseError
from miner.core.ledger import Ledger
from miner.core.reasons import Stage
from miner.core.records import Decision, Environment, Fact, Finding, Recipe, State, Visibility
from miner.core.settings import Settings
from miner.sandbox.runner import suite_command
from validators.case import Reader

_AT_ONCE = 200


def screen(ledger: Ledger, reader: Reader, decision: Decision, trail: Sequence[Fact]) -> tuple[Finding, ...]:
    """Return what the rules of the export stage say: they judge rows, so only what is accepted and public has one."""
    if decision.state is not State.ACCEPTED:
        return ()
    item = _Loader(ledger, reader)(decision.instance_id, trail, decision)
    return (secret_finding(item),) if item.visibility is Visibility.PUBLIC else ()


def write(settings: Settings, ledger: Ledger, reader: Reader, decisions: Sequence[Decision]) -> Release:
    """Write the release of these decisions, whose findings the ledger holds, to `paths.release`."""
    runs = ledger.runs_of(name for decision in decisions for name in decision.trail)
    items = _items(ledger, reader, decisions)
    return exporter.build(items, settings, content_versions(), settings.paths.release, runs)


def _items(ledger: Ledger, reader: Reader, decisions: Sequence[Decision]) -> Iterator[ReleaseItem]:
    """Yield one item after the other: whole items of a month do not fit into memory."""
    load = _Loader(ledger, reader)
    for start in range(0, len(decisions), _AT_ONCE):
        part = decisions[start : start + _AT_ONCE]
        facts = ledger.get_all(name for decision in part for name in decision.trail)
        findings = ledger.findings_of_all(decision.instance_id for decision in part)
        load.expect(decision.instance_id for decision in part)
        for decision in part:
            trail = [facts[name] for name in decision.trail if name in facts]
            item = load(decision.instance_id, trail, decision)
            yield item.model_copy(update={"findings": tuple(findings.get(decision.instance_id, ()))})


def rebuild(settings: Settings, lock: Path, folder: Path) -> Release:
    """Build a release again from its lock, to the byte, with the interpreters that it names.

    Raises:
        ReleaseError: the ledger does not hold what the lock names, or other bytes come out.
    """
    ledger, blobs = Ledger(settings.paths.ledger, create=False), BlobStore(settings.paths.blobs)
    loader = _Loader(ledger, Reader(blobs, _pythons(lock)))
    return exporter.rebuild(lock, ledger, blobs, loader, folder)


def _pythons(lock: Path) -> tuple[Python, ...]:
    """Return the interpreters that the recipes of a release could choose from."""
    try:
        return read_pythons(read_lock(lock).settings["pythons"])
    except (KeyError, TypeError, ValidationError) as error:
        raise ReleaseError(f"{lock}: its settings name no interpreters") from error


class _Loader:
    """Recomputes a release item from its facts; source and visibility are what the ledger says of the candidate."""

    def __init__(self, ledger: Ledger, reader: Reader) -> None:
        self._ledger = ledger
        self._reader = reader
        self._expected: dict[str, Row[Any]] = {}

    def expect(self, instance_ids: Iterable[str]) -> None:
        """Look up what the ledger says of candidates that are asked for next."""
        self._expected = dict(self._ledger.candidates_of(instance_ids))

    def __call__(self, instance_id: str, trail: Sequence[Fact], decision: Decision) -> ReleaseItem:
        """Return the item of a candidate; of one without a verdict nothing is computed: that may be what failed."""
        seen = self._expected.get(instance_id) or self._ledger.candidate(instance_id)
        if seen is None:
            raise ReleaseError(f"{instance_id} is not among the candidates of the ledger")
        item = ReleaseItem(
            decision=decision,
            visibility=Visibility(seen.visibility),
            source=seen.source,
            repo=json.loads(seen.origin).get("repo"),
            month=seen.month,
            trail=tuple(trail),
        )
        if decision.state in (State.FAULTED, State.PENDING) or decision.stage == Stage.DISCOVER:
            return item
        case = self._reader.case(instance_id, trail)
        environment = case.environment
        computed = {"candidate": case.candidate, "recipe": case.recipe, "verdict": case.verdict}
        item = item.model_copy(update=computed)
        if case.recipe is None or environment is None or case.attempt is None:
            return item
        lock, build_lock = map(self._reader.blobs.get_text, (environment.lock_sha256, _build_lock(trail, case.attempt)))
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


def _build_lock(trail: Sequence[Fact], taken: Attempt) -> str:
    """Return the digest of the lock that the project was built with: the last one of the attempt."""
    return [fact.blobs["lock"] for fact in steps_of(trail, taken) if fact.key.kind == LOCK and fact.ok][-1]


def _test_command(environment: Environment) -> str:
    """Return the command that runs the task's tests in its image: without names of files, without our reporter."""
    return shlex.join(suite_command(environment.addopts, ("-rA",)))
