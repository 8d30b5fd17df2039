"""One attempt: a recipe to a lock, to layers, to an image, to what its tests say; every step is a fact."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from installers.broken import broken_collections
from installers.cutoff import cutoffs
from installers.distrust.after_install import installation
from installers.distrust.integrity import admitted, alterations, trusted_locks
from installers.distrust.mechanism import Weakening
from installers.distrust.site_packages import Asked
from installers.distrust.weakening import weakenings
from installers.environment import environment, environment_request
from installers.ground import Ground, ground
from installers.health import KIND as HEALTH
from installers.health import TestSide, health, health_request, run_of_health
from installers.image import assembled
from installers.interface import Attempt, Help, Proposal, Refusal, Signature, Tree
from installers.lock import LockRequest, lock, lock_request
from installers.memory import delta, fingerprint
from installers.project_install import Pack, project, project_request
from installers.repair.kinds import Kind
from installers.repair.signatures import signatures_of_log, signatures_of_run
from installers.reports import log_of
from installers.share import is_good
from installers.suite import run_of_suite, suite, suite_of
from miner.core.blobs import BlobStore
from miner.core.ledger import fact_id
from miner.core.reasons import Reason
from miner.core.records import BuildMode, Candidate, Environment, Fact, Observation, Producer, Recipe
from miner.core.text import patch_bytes

PRODUCER = Producer(name="installers.attempt", epoch=1)
ATTEMPT = "install.attempt"
ORDER = ("install.ground", "install.lock", "install.env", "install.project", HEALTH)
"""The steps of an attempt that can refuse it, in the order in which they are come to."""

_NUMBERS = ("share", "passed", "total", "skipped", "good", "broken", "seconds", "tokens", "money")
_OF_BUILDS = (Kind.MISSING_HEADER, Kind.MISSING_LIBRARY, Kind.MISSING_TOOL)
_SETTLED = (Reason.PATCH_DOES_NOT_APPLY, Reason.NOTHING_COLLECTED)
_NAMES = {
    "install.lock": "lock",
    "install.wheel": "environment",
    "install.env": "environment",
    "install.project": "project",
}


@dataclass(frozen=True)
class InstallCase:
    """One candidate as the installers see it.

    Attributes:
        recipe: what its tree declares.
        created_at: when the change was proposed; `installers.cutoff` says what the index is taken as of.
        pack: writes a tar of the base commit with its `.git`, paths relative to its root.
        tree: id of the base commit's tree.
        files: the tree itself, as far as rungs read it.
    """

    instance_id: str
    repository: str
    recipe: Recipe
    created_at: datetime
    pack: Pack
    tree: str
    files: Tree
    side: TestSide

    @classmethod
    def of(cls, candidate: Candidate, recipe: Recipe, files: Tree, pack: Pack) -> InstallCase:
        """Return the case of a candidate."""
        return cls(
            instance_id=candidate.instance_id,
            repository=candidate.repo,
            recipe=recipe,
            created_at=candidate.created_at,
            pack=pack,
            tree=candidate.base_tree,
            files=files,
            side=TestSide(candidate.test_files, patch_bytes(candidate.test_patch), patch_bytes(candidate.patch)),
        )


def attempt(help_: Help, case: InstallCase, proposal: Proposal, *, rung: str, past: Sequence[Attempt] = ()) -> Attempt:
    """Try a proposal and return what came of it, which is a fact as well.

    Args:
        help_: the tools.
        case: the candidate.
        proposal: the recipe; one that a language model wrote is looked at before and after its environment is built.
        rung: that proposes it.
        past: all attempts before this one.

    Raises:
        InfrastructureFault: the engine, the index or the disk was at fault: try again.
    """
    written = proposal.written or bool(proposal.asked)
    trusted = (case.recipe, *(one.recipe for one in past if not one.written)) if written else None
    known = admitted(trusted, trusted_locks(help_.memo.used, past)) if trusted else frozenset()
    tried = _Try(help_, case, proposal.recipe, trusted, known)
    refused = proposal.refused or (_distrusted(proposal, case, trusted) if trusted else None)
    if refused is None:
        tried.run()
        refused = tried.void
    made = Attempt(
        repository=case.repository,
        rung=rung,
        number=len(past),
        recipe=proposal.recipe,
        edits=proposal.edits,
        fingerprint=fingerprint(proposal.recipe),
        declared=fingerprint(case.recipe),
        delta=delta(case.recipe, proposal.recipe),
        memory=proposal.memory,
        cutoff=tried.cutoff,
        mode=tried.mode,
        steps=_in_order(tried.facts),
        seconds=round(proposal.seconds + sum(fact.measures.get("wall_s", 0.0) for fact in tried.facts), 3),
        asked=proposal.asked,
        written=written,
        tokens=proposal.tokens,
        money=proposal.money,
        **(tried.result() if refused is None else _as_refused(refused)),
    )
    seen = observation_of(made, help_.workshop.blobs)
    help_.memo.measure(PRODUCER, ATTEMPT, case.instance_id, {"attempt": seen.payload}, lambda: seen)
    return made


def _distrusted(proposal: Proposal, case: InstallCase, trusted: Sequence[Recipe]) -> Refusal | None:
    """Return why a model's recipe is void before anything is built, None where it may be tried."""
    return _void(weakenings(proposal.recipe, case.recipe, trusted=trusted, paths=case.files.paths), "the recipe")


def _void(found: Sequence[Weakening], what: str) -> Refusal | None:
    if not found:
        return None
    said = "; ".join(f"{one.mechanism}: {one.detail}" for one in found)
    return Refusal(reason=Reason.MODEL_WEAKENS_TESTS, detail=f"{what} would weaken the tests: {said}")


def _as_refused(refused: Refusal) -> dict[str, Any]:
    return {"outcome": refused.reason.value, "detail": refused.detail}


def observation_of(made: Attempt, blobs: BlobStore) -> Observation:
    """Return an attempt as it is kept. What its tests did is no content: a test may do something else next time."""
    numbers = {name: float(value) for name in _NUMBERS if (value := getattr(made, name)) is not None}
    shown = "".join(f"{signature.model_dump_json()}\n" for signature in made.signatures)
    return Observation(
        outcome=made.outcome,
        payload=made.model_dump(mode="json", exclude={*_NUMBERS, "signatures", *_unused(made)}),
        measures=numbers,
        logs={"signatures": blobs.put_text(shown)} if shown else {},
    )


def _unused(made: Attempt) -> list[str]:
    """Return the fields that came later and say nothing here, so that facts of before stay the same."""
    return [name for name in ("asked", "written") if not getattr(made, name)]


def attempt_of(fact: Fact, blobs: BlobStore | None = None) -> Attempt:
    """Return the attempt that a fact holds; its signatures only where the blobs are at hand."""
    shown = blobs.get_text(fact.logs["signatures"]) if blobs is not None and "signatures" in fact.logs else ""
    numbers = {name: value for name, value in fact.measures.items() if name in _NUMBERS}
    signatures = [json.loads(line) for line in shown.splitlines()]
    return Attempt.model_validate({**fact.payload, **numbers, "signatures": signatures})


class _Try:
    """One recipe's way from its lock to what its tests say.

    Args:
        trusted: of a recipe that a language model wrote: those of the same candidate that none did; else None.
        known: what these ask for.

    Attributes:
        void: why its environment is not to be trusted.
    """

    def __init__(
        self,
        help_: Help,
        case: InstallCase,
        recipe: Recipe,
        trusted: Sequence[Recipe] | None,
        known: frozenset[Asked],
    ) -> None:
        self._workshop = help_.workshop
        self._memo = help_.memo
        self._case = case
        self._recipe = recipe
        self._trusted = trusted
        self._known = known
        dates = cutoffs(case.created_at, help_.workshop.settings.measure.cutoff)
        self.cutoff = dates[min(recipe.fallback, len(dates) - 1)]
        self.mode: BuildMode | None = None
        self.void: Refusal | None = None
        self.facts: list[Fact] = []
        self._examined: Fact | None = None
        self._healthy: tuple[Fact, Fact] | None = None  # what was examined, and how its tests do

    def run(self) -> None:
        """Lock, install the dependencies, try the modes until one is healthy; then see how its tests do."""
        shop, memo, recipe = self._workshop, self._memo, self._recipe
        on = ground(shop, memo, recipe)
        if not self._went_well(on.facts):
            return
        plan = lock_request(shop, on, recipe, self.cutoff)
        if not self._went_well(lock(shop, memo, on, plan, name=recipe.distribution, version=recipe.version_hint)):
            return
        locked = self.facts[-1]
        if not self._went_well(environment(shop, memo, on, environment_request(plan, locked))):
            return
        built = self.facts[-1]
        if self._trusted is not None:
            altered = alterations(shop.blobs, locked, built, self._known, shop.scratch, executable=plan.executable)
            self.void = _void(altered, "the environment")
            if self.void is not None:
                return
        for mode in recipe.modes:
            self.mode = mode
            examined = self._in_mode(mode, on, plan, locked, built)
            if examined is not None:
                found = Environment.model_validate(examined.payload["environment"])
                tested = suite(shop, memo, self._case.instance_id, found, recipe, self._case.side)
                self.facts.append(tested)
                self._healthy = examined, tested
            if self.void is not None or examined is not None or self.facts[-1].outcome in _settled(mode):
                return

    def _in_mode(self, mode: BuildMode, on: Ground, plan: LockRequest, locked: Fact, built: Fact) -> Fact | None:
        """Install the project in one mode and examine it; return what says that it is healthy."""
        shop, memo, recipe, name = self._workshop, self._memo, self._recipe, self._case.instance_id
        request = project_request(plan, recipe, mode, built=built, tree=self._case.tree)
        steps = project(shop, memo, on, name, request, self._case.pack)
        if not self._went_well(steps):
            return None
        if self._trusted is not None:
            known = (self._recipe, self._trusted), self._known, (locked, built, steps)
            self.void = _void(installation(shop.blobs, shop.scratch, *known, executable=plan.executable), "the project")
            if self.void is not None:
                return None
        made = assembled(shop, on, recipe, locked=locked, built=built, installed=self.facts[-1])
        asked = health_request(shop, recipe, made, self._case.side)
        self._examined = health(shop, memo, name, asked, self._case.side)
        self.facts.append(self._examined)
        return self._examined if self._examined.ok else None

    def _went_well(self, facts: Iterable[Fact]) -> bool:
        """Note the facts of a step; the last one says whether it came to something."""
        found = tuple(facts)
        self.facts += found
        return not found or found[-1].ok

    def result(self) -> dict[str, Any]:
        """Return the fields of an attempt that say what it came to."""
        if self._healthy is None:
            refused = furthest(self.facts)
            return {
                "outcome": refused.outcome,
                "detail": refused.payload.get("detail", ""),
                "signatures": self._signatures_of_refusal(refused),
            }
        blobs, (examined, tested) = self._workshop.blobs, self._healthy
        found, run = suite_of(tested, blobs), run_of_suite(tested, blobs)
        broken = broken_collections(run if found.total else None, run_of_health(examined, blobs))
        return {
            "outcome": "ok",
            "environment": Environment.model_validate(examined.payload["environment"]),
            "share": found.share,
            "passed": found.passed,
            "total": found.total,
            "skipped": found.skipped,
            "good": is_good(found, broken, self._workshop.settings.measure.ladder.enough),
            "broken": sum(one.counts for one in broken),
            "signatures": self._signatures_of_run(found.share, tested, examined, any(one.counts for one in broken)),
        }

    def _signatures_of_refusal(self, refused: Fact) -> tuple[Signature, ...]:
        blobs = self._workshop.blobs
        if refused is self._examined:
            return signatures_of_run(run_of_health(refused, blobs), log_of(refused, blobs))
        text = blobs.get_text(refused.logs["log"]) if "log" in refused.logs else ""
        name = _NAMES.get(refused.key.kind, refused.key.kind)
        if name == "lock" and refused.payload.get("purpose") == "build":
            name = "build-lock"
        return signatures_of_log(name, f"{text}\n{refused.payload.get('detail', '')}")

    def _signatures_of_run(
        self, share: float | None, tested: Fact, examined: Fact, broken: bool
    ) -> tuple[Signature, ...]:
        """Return what the failing tests show; nothing where all pass.

        Of a compiled project also what its build lacked: an extension module that is optional fails without a word.
        """
        if share == 1.0 and not broken:
            return ()
        blobs = self._workshop.blobs
        found = [*self._lacked()]
        if broken:
            found += signatures_of_run(run_of_health(examined, blobs), log_of(examined, blobs))
        if share != 1.0:
            found += signatures_of_run(run_of_suite(tested, blobs), log_of(tested, blobs))
        return tuple(dict.fromkeys(found))

    def _lacked(self) -> list[Signature]:
        if self.mode is not BuildMode.COMPILED:
            return []
        built = [fact for fact in self.facts if fact.key.kind == "install.project" and fact.ok]
        text = self._workshop.blobs.get_text(built[-1].logs["log"]) if built and "log" in built[-1].logs else ""
        return [one for one in signatures_of_log("project", text) if one.kind in _OF_BUILDS]


def _settled(mode: BuildMode) -> tuple[Reason, ...]:
    """Return the refusals that another mode would not change; what is not built is imported the same way in all."""
    return _SETTLED if mode is BuildMode.COMPILED else (*_SETTLED, Reason.COLLECTION_BROKEN)


def _in_order(facts: Iterable[Fact]) -> tuple[str, ...]:
    """Return the ids of facts, each where it was used last."""
    ids = [fact_id(fact.key) for fact in facts]
    return tuple(reversed(dict.fromkeys(reversed(ids))))


def deciding(steps: Sequence[Fact], made: Attempt) -> Fact | None:
    """Return the step that says most about an attempt: the one that refused it, or how the tests of a healthy one do.

    Args:
        steps: facts of its steps, in order.
        made: the attempt.
    """
    if made.ok:
        return steps[-1] if steps else None
    try:
        return furthest(steps)
    except ValueError:  # nothing was built
        return None


def furthest(facts: Iterable[Fact]) -> Fact:
    """Return the negative fact of the step that came furthest, the last of equals.

    Raises:
        ValueError: none is negative.
    """
    refused = [fact for fact in facts if fact.key.kind in ORDER and not fact.ok]
    refused = [fact for fact in refused if not fact.payload.get("asked")] or refused  # a question that was answered
    if not refused:
        raise ValueError("no step has refused")
    return max(reversed(refused), key=lambda fact: ORDER.index(fact.key.kind))
