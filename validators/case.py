"""From the facts of a candidate's trail to its case: everything here is recomputed, nothing is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from installers.broken import broken_collections
from installers.describe import describe
from installers.health import KIND as HEALTH
from installers.health import run_of_health
from installers.interface import Refusal, Tree
from installers.ladder import attempts_of, chosen, refusal_of, steps_of
from installers.pythons import Python
from installers.repair.rules import final_reason
from installers.repair.signatures import signatures_of_run
from installers.suite import KIND as SUITE
from installers.suite import run_of_suite, suite_of
from installers.target import with_target
from miner.core.blobs import BlobStore
from miner.core.excerpt import error_excerpt
from miner.core.ledger import fact_id
from miner.core.reasons import Reason
from miner.core.records import Candidate, Evidence, Fact, Recipe, RunOutcome
from miner.crawlers import source_of
from miner.crawlers.candidate import declared_files
from miner.crawlers.github.linking import judge_links
from miner.crawlers.interface import Rejection
from miner.sandbox.outcomes import read_run
from validators.interface import Case, Negative
from validators.verdict import verdict

LOOK_UP = "source.look_up"
EXTRACT = "source.extract"
BEFORE = "validate.before"
AFTER = "validate.after"

_STEP_REASONS = {
    "apply-test": Reason.PATCH_DOES_NOT_APPLY,
    "apply-gold": Reason.PATCH_DOES_NOT_APPLY,
    "rebuild": Reason.REBUILD_FAILED,
}


@dataclass(frozen=True)
class Reader:
    """What reading a trail needs beside the facts: their blobs, and the interpreters that a recipe may choose."""

    blobs: BlobStore
    pythons: tuple[Python, ...]
    _known: dict[str, Recipe | Refusal] = field(default_factory=dict, init=False, repr=False, compare=False)

    def case(self, instance_id: str, trail: Sequence[Fact]) -> Case:
        """Return the case that a trail makes, however far it goes."""
        facts = {fact.key.kind: fact for fact in trail}
        negatives = [self._negative(facts[kind]) for kind in (LOOK_UP, EXTRACT) if kind in facts and not facts[kind].ok]
        looked_up = facts.get(LOOK_UP)
        source = source_of(looked_up) if looked_up is not None else None
        crawled = source.crawled(looked_up, self.blobs) if source is not None and looked_up is not None else None
        candidate = self._candidate(facts)
        if isinstance(candidate, Rejection):
            negatives.append(Negative(code=candidate.reason, detail=candidate.detail))
            candidate = None
        declared = self._declared(candidate, facts) if candidate is not None else None
        if isinstance(declared, Refusal):
            negatives.append(Negative(code=declared.reason, detail=declared.detail))
            declared = None
        attempts = attempts_of(trail)
        best = chosen(attempts)
        refusal = refusal_of(trail)
        if refusal is not None:
            negatives.append(self._negative(refusal))
        steps = {fact.key.kind: fact for fact in steps_of(trail, best)} if best is not None else {}
        before, after = (self._run(facts.get(kind), negatives) for kind in (BEFORE, AFTER))
        return Case(
            instance_id=instance_id,
            source=source.name if source is not None else None,
            crawled=crawled,
            links=judge_links(crawled) if crawled is not None else None,
            negatives=tuple(negatives),
            candidate=candidate,
            declared=declared,
            recipe=declared if best is None else best.recipe,
            attempts=attempts,
            attempt=best,
            environment=None if best is None else best.environment,
            **self._own_tests(steps),
            before=before,
            after=after,
            verdict=verdict(before, after) if before is not None and after is not None else None,
            before_evidence=_where(facts.get(BEFORE)),
            after_evidence=_where(facts.get(AFTER)),
        )

    def _candidate(self, facts: dict[str, Fact]) -> Candidate | Rejection | None:
        looked_up, extracted = facts.get(LOOK_UP), facts.get(EXTRACT)
        if looked_up is None or extracted is None or not extracted.ok:
            return None
        return source_of(looked_up).candidate(looked_up, extracted, self.blobs)

    def _declared(self, candidate: Candidate, facts: dict[str, Fact]) -> Recipe | Refusal:
        """Return what a candidate's base tree declares, and what the change adds to it; computed once."""
        extracted = facts[EXTRACT]
        key = fact_id(extracted.key)
        if key not in self._known:
            base, target = (
                describe(
                    tree.files,
                    tree.paths,
                    self.pythons,
                    candidate.created_at,
                    candidate.test_files,
                    version=version,
                )
                for tree, version in (
                    (tree_of(extracted, self.blobs), candidate.base_version),
                    (tree_of(extracted, self.blobs, "target"), candidate.version),
                )
            )
            self._known.clear()  # a worker asks for one candidate again and again, and then for another one
            self._known[key] = base if isinstance(base, Refusal) else with_target(base, target)
        return self._known[key]

    def _own_tests(self, steps: Mapping[str, Fact]) -> dict[str, Any]:
        """Return the fields that say how the candidate's own tests do in the environment that was chosen."""
        if SUITE not in steps:
            return {}
        found, run = suite_of(steps[SUITE], self.blobs), run_of_suite(steps[SUITE], self.blobs)
        broken = broken_collections(run if found.total else None, run_of_health(steps[HEALTH], self.blobs))
        needs = final_reason(signatures_of_run(run, "")) if found.failed or found.uncollected else None
        return {"suite": found, "broken": broken, "needs": needs, "suite_evidence": _where(steps[SUITE])}

    def _negative(self, fact: Fact) -> Negative:
        log = fact.logs.get("log") or fact.logs.get("events")
        excerpt = error_excerpt(self.blobs.get_text(log)) if log is not None else ""
        evidence = Evidence(fact=fact_id(fact.key), blob=log, excerpt=excerpt)
        return Negative(code=Reason(fact.outcome), detail=str(fact.payload.get("detail", "")), evidence=(evidence,))

    def _run(self, fact: Fact | None, negatives: list[Negative]) -> RunOutcome | None:
        """Return what a run says; a patch or re-install that failed makes it a negative observation instead."""
        if fact is None:
            return None
        ended = fact.payload["ended"]
        steps = {step["name"]: step for step in fact.payload["steps"]}
        if ended in _STEP_REASONS:
            log = fact.logs[ended]
            excerpt = error_excerpt(self.blobs.get_text(log))
            side = fact.key.kind.removeprefix("validate.")
            detail = f"step {ended} of the run {side} the gold patch ended with exit status {steps[ended]['exit_code']}"
            evidence = Evidence(fact=fact_id(fact.key), blob=log, excerpt=excerpt)
            negatives.append(Negative(code=_STEP_REASONS[ended], detail=detail, evidence=(evidence,)))
            return None
        events, first, second = (self._report(fact, name) for name in ("events", "collect-0", "collect-1"))
        return read_run(
            events or b"",
            first,
            second,
            log=self.blobs.get_text(fact.logs["events"]) if "events" in fact.logs else "",
            exit_status=steps["events"]["exit_code"] if "events" in steps else None,
            limit=steps[ended]["limit"] if ended is not None else None,
            truncated=bool(fact.payload["reports_cut"]),
        )

    def _report(self, fact: Fact, name: str) -> bytes | None:
        digest = fact.logs.get(f"{name}.jsonl")
        return self.blobs.get(digest) if digest is not None else None


def tree_of(extracted: Fact, blobs: BlobStore, side: Literal["base", "target"] = "base") -> Tree:
    """Return one side of an extracted change as rungs read it."""
    return Tree(declared_files(blobs, extracted.blobs[f"{side}_files"]), extracted.payload[f"{side}_paths"])


def _where(fact: Fact | None) -> tuple[Evidence, ...]:
    """Return where a run's terminal output is."""
    return () if fact is None else (Evidence(fact=fact_id(fact.key), blob=fact.logs.get("events")),)
