"""From what may leave about candidates to the rows of the tables: pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from exporters.interface import FactNote, PublicItem, Task
from exporters.text import clean, encode_patch
from miner.core.records import Candidate, Finding, State
from miner.core.settings import Measure
from miner.sandbox.image_archive import ImageConfig
from miner.sandbox.profile import suite_env

Row = dict[str, Any]

_IMAGE = ImageConfig(architecture="", created=0, diff_ids=(), notes=())
_NETWORK = "none"


def task_rows(items: Iterable[PublicItem], measure: Measure) -> list[Row]:
    """Return the rows of the accepted tasks; `measure` is what their test runs were made with."""
    return [_task_row(item.source, item.task, measure) for item in items if item.task]


def rejected_rows(items: Iterable[PublicItem]) -> list[Row]:
    """Return the rows of the rejected candidates."""
    return [_rejected_row(item) for item in items if item.decision.state is State.REJECTED]


def unmeasured_rows(items: Iterable[PublicItem]) -> list[Row]:
    """Return the rows of the candidates without a verdict."""
    return [_unmeasured_row(item) for item in items if item.decision.state in (State.FAULTED, State.PENDING)]


def measurement_rows(items: Iterable[PublicItem], runs: Mapping[str, str]) -> list[Row]:
    """Return one row per fact of these candidates; `runs` maps a fact to the run that measured it."""
    facts: dict[str, FactNote] = {}
    users: dict[str, list[str]] = {}
    for item in items:
        for fact in item.facts:
            facts[fact.id] = fact
            users.setdefault(fact.id, []).append(item.instance_id)
    return [_measurement_row(facts[name], sorted(users[name]), runs.get(name)) for name in sorted(facts)]


def _task_row(source: str, task: Task, measure: Measure) -> Row:
    candidate, verdict = task.candidate, task.verdict
    patch, patch_encoding = encode_patch(candidate.patch)
    test_patch, test_patch_encoding = encode_patch(candidate.test_patch)
    return {
        "instance_id": candidate.instance_id,
        "repo": clean(candidate.repo),
        "base_commit": candidate.base_commit,
        "patch": patch,
        "test_patch": test_patch,
        "problem_statement": clean(candidate.statement),
        "hints_text": clean(candidate.hints),
        "created_at": candidate.created_at,
        "version": clean(candidate.version),
        "environment_setup_commit": candidate.base_commit,
        "FAIL_TO_PASS": _clean_all(verdict.fail_to_pass),
        "PASS_TO_PASS": _clean_all(verdict.pass_to_pass),
        "FAIL_TO_FAIL": _clean_all(verdict.fail_to_fail),
        "fail_to_pass_causes": _causes(task),
        "patch_encoding": patch_encoding,
        "test_patch_encoding": test_patch_encoding,
        "test_files": _clean_all(candidate.test_files),
        "source": source,
        **_pull(candidate),
        **_environment(task),
        **_conditions(measure),
    }


def _pull(candidate: Candidate) -> Row:
    """Return what a row says of the pull request and its issues, or of the release pair that stands for one."""
    return {
        "month": candidate.month,
        "pull_number": candidate.pull,
        "merged_at": candidate.merged_at,
        "closed_at": candidate.closed_at,
        "first_public_at": candidate.first_public_at or candidate.created_at,
        "issues": [
            {
                "number": issue.number,
                "title": clean(issue.title),
                "body": clean(issue.body),
                "created_at": issue.created_at,
            }
            for issue in candidate.issues
        ],
        "links": [
            {
                "repository": link.repository,
                "number": link.number,
                "provenance": link.provenance,
                "confidence": link.confidence,
                "where": clean(link.where),
                "text": clean(link.text),
            }
            for link in candidate.links
        ],
    }


def _environment(task: Task) -> Row:
    environment = task.environment
    return {
        "test_cmd": clean(task.test_command),
        "test_workdir": posixpath.join(_IMAGE.working_dir, task.recipe.project_dir).rstrip("/"),
        "rebuild_cmd": environment.rebuild_cmd,
        "image": task.image_name,
        "image_digest": environment.image,
        "image_size": sum(layer.size for layer in environment.layers),
        "base_image_digest": environment.base_digest,
        "python": task.recipe.python,
        "requirements": clean(task.lock_text),
        "build_requirements": clean(task.build_lock_text),
        "dockerfile": clean(task.dockerfile),
        "lock_sha256": environment.lock_sha256,
        "install_mode": environment.mode.value,
        "dropped_addopts": _clean_all(environment.dropped_addopts),
    }


def _conditions(measure: Measure) -> Row:
    limits = measure.test
    return {
        "workdir": _IMAGE.working_dir,
        "user": _IMAGE.user,
        "network": _NETWORK,
        "test_env": [f"{name}={value}" for name, value in sorted(suite_env(measure).items())],
        "timeout_s": limits.timeout_s,
        "memory_mb": limits.memory_mb,
        "cpus": limits.cpus,
    }


def _causes(task: Task) -> list[Row]:
    causes = task.verdict.causes
    return [
        {"nodeid": clean(name), "cause": causes[name].value} for name in task.verdict.fail_to_pass if name in causes
    ]


def _clean_all(texts: Iterable[str]) -> list[str]:
    return [clean(text) for text in texts]


def _rejected_row(item: PublicItem) -> Row:
    decision = item.decision
    decisive = next((f for f in item.findings if f.outcome == "fail" and f.code == decision.code), None)
    return {
        "instance_id": item.instance_id,
        "source": item.source,
        "repo": item.repo,
        "month": item.month,
        "visibility": item.visibility.value,
        "stage": decision.stage,
        "code": decision.code,
        "sentence": decision.sentence,
        "detail": decisive.detail if decisive else "",
        "final": decision.final,
        "findings": [_finding(finding) for finding in item.findings],
        "facts": [fact.id for fact in item.facts],
    }


@lru_cache(4096)
def _finding(finding: Finding) -> Row:
    """Return a finding as it stands in rows; thousands of candidates share most of them."""
    return finding.model_dump(mode="json", exclude={"evidence"})


def _unmeasured_row(item: PublicItem) -> Row:
    decision = item.decision
    return {
        "instance_id": item.instance_id,
        "source": item.source,
        "state": decision.state.value,
        "stage": decision.stage,
        "code": decision.code,
        "sentence": decision.sentence,
    }


def _measurement_row(fact: FactNote, users: list[str], run_id: str | None) -> Row:
    return {
        "fact": fact.id,
        "instance_ids": users,
        "run_id": run_id,
        "wall_s": fact.measures.get("wall_s"),
        "measures": [{"name": name, "value": fact.measures[name]} for name in sorted(fact.measures)],
        "logs": [{"name": name, "sha256": fact.logs[name]} for name in sorted(fact.logs)],
        **fact.model_dump(exclude={"id", "measures", "logs"}),
    }
