"""Is an environment fit for its task? Pytest starts, the project imports, an edit in `/testbed` is seen, tests collect.

Measured is what one pytest process reports with both patches applied: a module that cannot be collected before the fix
is normal, one that cannot be collected after it is not. Where the gold patch takes away a module whose edit should be
seen, a second process tells of the tree without it. What the reports mean is computed from them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.utils import canonicalize_name

from installers.addopts import drop_unrecognised, split_addopts
from installers.broken import is_import_error
from installers.image import ensure_image, remove_image
from installers.own_tests import own_tests
from installers.reports import outcome
from installers.workshop import Workshop
from miner.core.blobs import BlobStore
from miner.core.excerpt import explanation, last_error
from miner.core.hashing import sha256_bytes
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import BuildMode, Environment, Fact, Observation, Producer, Recipe, Record, RunOutcome
from miner.core.settings import Limits
from miner.sandbox.interface import ProbeRequest
from miner.sandbox.outcomes import parse_events
from miner.sandbox.profile import profile_of
from miner.sandbox.runner import VALUE, conditions, probe

PRODUCER = Producer(name="installers.health", epoch=2)
KIND = "install.health"

_MAX_ROUNDS = 8
_SHOWN = 5
_TESTBED = "/testbed"
_SEEN_AT_ONCE = (".py", ".pyi", ".md", ".rst", ".txt")
_BUILD_FILES = ("setup.py",)
_CHANGED = re.compile(rb'^diff --git "?a/(.+?)"? "?b/(.+?)"?$', re.MULTILINE)
_NO_NETWORK = re.compile(
    r"Temporary failure in name resolution|Could not resolve host|Name or service not known|NewConnectionError"
    r"|No matching distribution found|Network is unreachable|failed to lookup address|dns error"
)


@dataclass(frozen=True)
class TestSide:
    """What is going to be tested.

    Attributes:
        test_files: the changed test files that are there after the test patch; of a bare package, which has no
            patches, all.
    """

    __test__ = False

    test_files: tuple[str, ...]
    test_patch: bytes
    gold_patch: bytes

    def own_tests(self, project_dir: str) -> tuple[str, ...]:
        """Return what pytest is given to run them."""
        return own_tests(self.test_files, project_dir, whole=not self.test_patch and not self.gold_patch)


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
        test_files=side.own_tests(recipe.project_dir),
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
        """Probe with both patches, and with the test patch alone where the gold patch takes a module away."""
        look, refusal = self._judged(with_gold=True)
        moved = refusal is not None and refusal[0] in (Reason.IMPORT_FAILED, Reason.EDIT_NOT_SEEN)
        if moved and self._side.gold_patch and not all(look.seen.payload["files"].values()):
            look, refusal = self._judged(with_gold=False)
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
            rebuild_cmd=self._rebuild_cmd(),
            addopts=self._kept,
            env=request.environment.env,
        )
        shop = self._workshop
        profile = profile_of(shop.settings, shop.settings.measure.test, owner=shop.owner)
        seen = probe(shop.client, self._image, asked, profile, shop.blobs)
        report = shop.blobs.get(seen.logs["events.jsonl"]) if "events.jsonl" in seen.logs else b""
        modules = {str(item["module"]): item for item in parse_events(report).items if item["event"] == "probe"}
        ended = seen.payload["ended"] or "events"
        log = shop.blobs.get_text(seen.logs[ended]) if ended in seen.logs else ""
        return _Look(seen, outcome(seen.payload, seen.logs, shop.blobs), modules, log)

    def _rebuild_cmd(self) -> str | None:
        """A compiled project shows edits of Python files at once; only a patch of something else has to be built."""
        environment, side = self._request.environment, self._side
        if environment.mode is BuildMode.COMPILED and not needs_build(side.test_patch, side.gold_patch):
            return None
        return environment.rebuild_cmd

    def _observation(self, look: _Look, refusal: tuple[Reason, str] | None) -> Observation:
        payload = {
            **{name: look.seen.payload[name] for name in ("steps", "ended", "missing", "reports_cut")},
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
    unseen = [item for item in imported if files.get(item["module"]) and not _is_seen(item, files[item["module"]])]
    if unseen:
        where = "; ".join(f"{item['module']} is imported from {item['file']}" for item in unseen[:_SHOWN])
        return Reason.EDIT_NOT_SEEN, f"mode {request.environment.mode}: an edit in /testbed is not seen: {where}"
    if not any(files.get(item["module"]) for item in imported) and not _is_built(imported, request.environment):
        return (
            Reason.EDIT_NOT_SEEN,
            f"mode {request.environment.mode}: no file of {', '.join(request.top_level)} was found to edit",
        )
    return None if look.outcome.collected[0] else _nothing_collected(look.outcome)


def _is_seen(item: Mapping[str, Any], edited: str) -> bool:
    """Whether a module shows the edit, or is the edited file itself: one may put another object in its own place."""
    return item.get("value") == repr(VALUE) or item.get("file") == posixpath.join(_TESTBED, edited)


def _is_built(imported: Sequence[Mapping[str, Any]], environment: Environment) -> bool:
    """Whether all there is to edit are sources of extension modules, which the re-install builds after every patch."""
    return environment.rebuild_cmd is not None and all(str(item["file"]).endswith(".so") for item in imported)


def needed_modules(distribution: str, top_level: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    """Return the modules that must be importable: the one named like the distribution, else all public ones.

    A helper beside the main package proves nothing; a private module may be there for another interpreter or platform.
    """
    named = tuple(module for module in top_level if canonicalize_name(module) == canonicalize_name(distribution))
    return named or tuple(module for module in there if not module.startswith("_"))


def needs_build(*patches: bytes) -> bool:
    """Whether patches touch more than Python modules and documents: it may be a source of an extension module."""
    paths = {path.decode("utf-8", "replace") for patch in patches for pair in _CHANGED.findall(patch) for path in pair}
    return any(posixpath.basename(path) in _BUILD_FILES or not path.endswith(_SEEN_AT_ONCE) for path in paths)


def _step_failed(step: Mapping[str, Any], look: _Look) -> tuple[Reason, str]:
    name, why = step["name"], explanation(look.log)
    if step["limit"] is not None:
        return Reason.PYTEST_UNUSABLE, f"the step {name} of a mere collection exceeded its limit of {step['limit']}"
    if name.startswith("apply-"):
        return Reason.PATCH_DOES_NOT_APPLY, f"git apply refuses the {name.removeprefix('apply-')} patch in the image"
    if name == "rebuild":
        reason = Reason.REBUILD_NEEDS_NETWORK if _NO_NETWORK.search(look.log) else Reason.REBUILD_FAILED
        return reason, f"the offline re-install failed with exit code {step['exit_code']}: {why}"
    return Reason.PYTEST_UNUSABLE, f"the step {name} failed with exit code {step['exit_code']}: {why}"


def _nothing_collected(run: RunOutcome) -> tuple[Reason, str]:
    """Say why there is no test with both patches applied: they explain no import that fails then."""
    broken = any(is_import_error(text) for text in run.collect_errors.values())
    reason = Reason.COLLECTION_BROKEN if broken else Reason.NOTHING_COLLECTED
    errors = [f"{name or 'conftest'}: {last_error(text)}" for name, text in sorted(run.collect_errors.items())]
    said = "; ".join(errors[:_SHOWN]) or "no test is found"
    return reason, f"pytest collects no test, with the gold patch neither: {said}"


def run_of_health(fact: Fact, blobs: BlobStore) -> RunOutcome:
    """Return what the collection that decided says; with both patches unless the gold patch moves the modules."""
    return outcome(fact.payload, fact.logs, blobs)
