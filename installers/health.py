"""Is an environment fit for its task? Pytest starts, the project imports, an edit in `/testbed` is seen, tests collect.

Measured is what pytest reports with the test patch applied, and, where that is not enough, with the gold patch too: a
module that cannot be collected before the fix is normal. What the reports mean is computed from them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.utils import canonicalize_name

from installers.addopts import drop_unrecognised, split_addopts
from installers.image import ensure_image, remove_image
from installers.workshop import Workshop
from miner.core.excerpt import explanation, last_error
from miner.core.hashing import sha256_bytes
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Environment, Fact, Observation, Producer, Recipe, Record, RunOutcome
from miner.core.settings import Limits
from miner.sandbox.interface import ProbeRequest
from miner.sandbox.outcomes import parse_events, read_run
from miner.sandbox.profile import profile_of
from miner.sandbox.runner import VALUE, conditions, probe

PRODUCER = Producer(name="installers.health", epoch=1)
KIND = "install.health"

_MAX_ROUNDS = 8
_SHOWN = 5


@dataclass(frozen=True)
class TestSide:
    """What is going to be tested.

    Attributes:
        test_files: the changed test files that are there after the test patch.
    """

    __test__ = False

    test_files: tuple[str, ...]
    test_patch: bytes
    gold_patch: bytes


class HealthRequest(Record):
    """Everything that the health of an environment depends on; patches by their sha256.

    Attributes:
        environment: without the options for pytest, which are found out here.
    """

    environment: Environment
    distribution: str
    top_level: tuple[str, ...]
    source_root: str
    project_dir: str
    addopts: tuple[str, ...]
    test_files: tuple[str, ...]
    test_patch: str
    gold_patch: str
    limits: Limits
    conditions: dict[str, str]


def health_request(workshop: Workshop, recipe: Recipe, environment: Environment, side: TestSide) -> HealthRequest:
    """Return the request for an environment that was made from a recipe."""
    return HealthRequest(
        environment=environment,
        distribution=recipe.distribution,
        top_level=recipe.top_level,
        source_root=recipe.source_root,
        project_dir=recipe.project_dir,
        addopts=recipe.addopts,
        test_files=side.test_files,
        test_patch=sha256_bytes(side.test_patch),
        gold_patch=sha256_bytes(side.gold_patch),
        limits=workshop.settings.measure.test,
        conditions=conditions(workshop.settings),
    )


def health(workshop: Workshop, memo: Memo, instance_id: str, request: HealthRequest, side: TestSide) -> Fact:
    """Return the fact about the health of an environment."""

    def run() -> Observation:
        image = ensure_image(workshop, request.environment, instance_id)
        seen = _Examination(workshop, image, request, side).observe()
        if seen.outcome != "ok":
            remove_image(workshop.client, image)
        return seen

    return memo.measure(PRODUCER, KIND, instance_id, {"request": request}, run)


@dataclass(frozen=True)
class _Look:
    """One probe and what it says."""

    seen: Observation
    outcome: RunOutcome
    modules: dict[str, dict[str, Any]]
    log: str

    @property
    def stopped_at(self) -> dict[str, Any] | None:
        """The step that ended the probe before pytest ran to its end."""
        name = self.seen.payload["ended"]
        return next((step for step in self.seen.payload["steps"] if step["name"] == name), None)


class _Examination:
    """The probes of one image, from the first to the one that decides."""

    def __init__(self, workshop: Workshop, image: str, request: HealthRequest, side: TestSide) -> None:
        self._workshop = workshop
        self._image = image
        self._request = request
        self._side = side
        self._kept, self._dropped = split_addopts(request.addopts)

    def observe(self) -> Observation:
        """Probe with the test patch; where nothing is collected or pytest does not start, with the gold patch too."""
        look, refusal = self._judged(with_gold=False)
        if refusal is not None and refusal[0] in (Reason.PYTEST_UNUSABLE, Reason.IMPORT_FAILED):
            look, refusal = self._judged(with_gold=True)
        elif refusal is None and not look.outcome.collected[0]:
            look, refusal = self._judged(with_gold=True)
            if refusal is None and not look.outcome.collected[0]:
                refusal = (Reason.NOTHING_COLLECTED, _collect_errors(look.outcome))
        return self._observation(look, refusal)

    def _judged(self, *, with_gold: bool) -> tuple[_Look, tuple[Reason, str] | None]:
        look = self._look(with_gold=with_gold)
        for _ in range(_MAX_ROUNDS):
            if look.outcome.started or look.stopped_at is not None:
                break
            self._kept, dropped = drop_unrecognised(self._kept, look.log)
            if not dropped:
                break
            self._dropped += dropped
            look = self._look(with_gold=with_gold)
        return look, _judge(look, self._request)

    def _look(self, *, with_gold: bool) -> _Look:
        request = self._request
        asked = ProbeRequest(
            modules=request.top_level,
            root=posixpath.join(request.project_dir, request.source_root),
            test_files=request.test_files,
            test_patch=self._side.test_patch or None,
            gold_patch=(self._side.gold_patch or None) if with_gold else None,
            project_dir=request.project_dir,
            rebuild_cmd=request.environment.rebuild_cmd,
            addopts=self._kept,
        )
        shop = self._workshop
        profile = profile_of(shop.settings, shop.settings.measure.test, owner=shop.owner)
        seen = probe(shop.client, self._image, asked, profile, shop.blobs)
        report = shop.blobs.get(seen.logs["events.jsonl"]) if "events.jsonl" in seen.logs else b""
        log = shop.blobs.get_text(seen.logs["events"]) if "events" in seen.logs else ""
        events = parse_events(report)
        modules = {str(item["module"]): item for item in events.items if item["event"] == "probe"}
        return _Look(seen, read_run(report, log=log), modules, log)

    def _observation(self, look: _Look, refusal: tuple[Reason, str] | None) -> Observation:
        payload = {
            "addopts": list(self._kept),
            "dropped": [list(item) for item in self._dropped],
            "collected": len(look.outcome.collected[0]),
            "pytest": look.outcome.pytest_version,
            "modules": {
                name: {key: item[key] for key in ("file", "value", "error") if key in item}
                for name, item in look.modules.items()
            },
        }
        seen = look.seen.model_copy(update={"payload": payload})
        if refusal is None:
            fit = self._request.environment.model_copy(
                update={"addopts": self._kept, "dropped_addopts": tuple(": ".join(item) for item in self._dropped)}
            )
            return seen.model_copy(update={"payload": {"environment": fit.model_dump(mode="json"), **payload}})
        return seen.model_copy(update={"outcome": refusal[0].value, "payload": {"detail": refusal[1], **payload}})


def _judge(look: _Look, request: HealthRequest) -> tuple[Reason, str] | None:
    """Return why a probe speaks against an environment, or None."""
    step = look.stopped_at
    if step is not None:
        return _step_failed(step, look)
    if not request.top_level:
        return Reason.EDIT_NOT_SEEN, "the tree has no top-level module whose edit could be looked for"
    if not look.modules:
        return Reason.PYTEST_UNUSABLE, f"pytest does not come to the end of a collection: {explanation(look.log)}"
    files = look.seen.payload["files"]
    imported = [item for item in look.modules.values() if not item.get("error")]
    there = [module for module in request.top_level if files.get(module)]
    needed = needed_modules(request.distribution, request.top_level, there)
    broken = [item for item in look.modules.values() if item.get("error") and item["module"] in needed]
    if broken or not imported:
        errors = "; ".join(f"{item['module']}: {item['error']}" for item in broken or look.modules.values())
        return Reason.IMPORT_FAILED, f"a top-level module cannot be imported: {errors}"
    unseen = [item for item in imported if files.get(item["module"]) and item.get("value") != repr(VALUE)]
    if unseen:
        where = "; ".join(f"{item['module']} is imported from {item['file']}" for item in unseen[:_SHOWN])
        return Reason.EDIT_NOT_SEEN, f"mode {request.environment.mode}: an edit in /testbed is not seen: {where}"
    if not any(files.get(item["module"]) for item in imported):
        return (
            Reason.EDIT_NOT_SEEN,
            f"mode {request.environment.mode}: no file of {', '.join(request.top_level)} was found to edit",
        )
    return None


def needed_modules(distribution: str, top_level: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    """Return the modules that must be importable: the one named like the distribution, else all public ones.

    A helper beside the main package proves nothing; a private module may be there for another interpreter or platform.
    """
    named = tuple(module for module in top_level if canonicalize_name(module) == canonicalize_name(distribution))
    return named or tuple(module for module in there if not module.startswith("_"))


def _step_failed(step: Mapping[str, Any], look: _Look) -> tuple[Reason, str]:
    name = step["name"]
    if step["limit"] is not None:
        return Reason.PYTEST_UNUSABLE, f"the step {name} of a mere collection exceeded its limit of {step['limit']}"
    if name.startswith("apply-"):
        return Reason.PATCH_DOES_NOT_APPLY, f"git apply refuses the {name.removeprefix('apply-')} patch in the image"
    if name == "rebuild":
        return Reason.REBUILD_FAILED, f"the offline re-install failed with exit code {step['exit_code']}"
    return Reason.PYTEST_UNUSABLE, f"the step {name} failed with exit code {step['exit_code']}: {explanation(look.log)}"


def _collect_errors(outcome: RunOutcome) -> str:
    errors = [f"{nodeid or 'conftest'}: {last_error(text)}" for nodeid, text in sorted(outcome.collect_errors.items())]
    return f"pytest collects no test, with the gold patch neither: {'; '.join(errors[:_SHOWN]) or 'no test is found'}"
