"""The one publishing function of law 5: everything that a release says about a candidate passes through `redact`.

    private     ids, codes, numbers and hashes leave: no statement, patch, detail, excerpt or repository name
    hold-out    counts leave
    public      everything leaves that is content, unless it holds a secret

An accepted task with a secret is rejected before a release is made: the job asks `secret_finding` before it decides, so
that ledger, funnel and release say the same. Here the scan is the last line of defence. An accepted candidate that is
not public stays accepted in the ledger, since nothing is wrong with it as a task: that it is `not-public` is what a
release says about it, which shows a private one among the rejected and counts a held-out one.

A fault's own words, evidence excerpts and test ids that change from run to run never leave: content is the same in
every run over the same inputs, and a fault may name this machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel

from exporters.interface import FactNote, LeftOut, PublicItem, Published, ReleaseItem, Task
from exporters.secret_scan import find_secrets
from exporters.text import clean
from installers.image import tag_of
from miner.core.errors import ReleaseError
from miner.core.hashing import hash_of, sha256_bytes
from miner.core.ledger import content_hash, fact_id
from miner.core.reasons import Reason
from miner.core.records import Decision, Evidence, Fact, Finding, Record, State, Visibility

SECRET_RULE = "secrets"  # noqa: S105 - the name of a rule
_EXPORT = Reason.SECRET_FOUND.stage.value
_SHARED = 4096
Part = TypeVar("Part", bound=Record)
_AUTHORED = ("candidate", "verdict")  # parts of a task that hold words of its authors, not of our machinery


def select(items: Iterable[ReleaseItem], sources: Iterable[str]) -> Published:
    """Return what of these candidates a release of these sources may say; nothing is left out without being counted.

    Raises:
        ReleaseError: a candidate stands twice, or an accepted one lacks a part.
    """
    taken = frozenset(sources)
    seen: set[str] = set()
    public: list[PublicItem] = []
    left_out: Counter[tuple[Reason, str, State]] = Counter()
    for item in items:
        if item.instance_id in seen:
            raise ReleaseError(f"{item.instance_id} stands twice in the release")
        seen.add(item.instance_id)
        redacted = redact(item)
        if redacted is None:
            left_out[Reason.NOT_PUBLIC, item.source, item.decision.state] += 1
        elif item.source not in taken:
            left_out[Reason.SOURCE_NOT_RELEASED, item.source, item.decision.state] += 1
        else:
            public.append(redacted)
    counts = (LeftOut(reason=r, source=s, state=t, count=n) for (r, s, t), n in sorted(left_out.items()))
    hides = any(reason is Reason.NOT_PUBLIC for reason, _, _ in left_out)
    return Published(
        items=tuple(sorted(public, key=lambda item: item.instance_id)), left_out=tuple(counts), hides_subjects=hides
    )


def redact(item: ReleaseItem) -> PublicItem | None:
    """Return what of a candidate may leave, None for one of which only the count may. Redacting twice changes nothing.

    Raises:
        ReleaseError: an accepted candidate lacks a part.
    """
    if item.visibility is Visibility.HOLD_OUT:
        return None
    if item.visibility is Visibility.PRIVATE or item.decision.state in (State.FAULTED, State.PENDING):
        return _bare(item)
    return _without_secrets(_whole(item))


def secret_finding(item: ReleaseItem) -> Finding:
    """Return what the rule against secrets says about an accepted candidate: kinds and places, never the secrets.

    Raises:
        ReleaseError: it lacks a part.
    """
    return _judge(_task(item))


def redact_settings(portable: Mapping[str, Any], *, hides_subjects: bool) -> dict[str, Any]:
    """Return the settings as a release may name them: pairs that would name hold-out subjects become their hash.

    Raises:
        ReleaseError: a setting holds what looks like a secret.
    """
    settings = dict(portable)
    for where, text in _texts(settings, "settings"):
        if kinds := find_secrets(text, ours=True):
            raise ReleaseError(
                f"{where} holds what looks like a secret ({', '.join(kinds)}), and a release names all settings",
                next_step="take it out of the configuration: credentials belong into the environment",
            )
    if hides_subjects and "pairs" in settings:
        settings["pairs"] = {"count": len(settings["pairs"]), "sha256": hash_of(settings["pairs"])}
    return settings


def _bare(item: ReleaseItem) -> PublicItem:
    """Ids, codes, numbers and hashes."""
    decision = item.decision
    if decision.state is State.ACCEPTED:
        decision = _rejected(decision, Reason.NOT_PUBLIC)
    findings = tuple(map(_silent, item.findings))
    sentence = decision.code.meaning if decision.code else decision.state.value
    return PublicItem(
        source=item.source,
        visibility=item.visibility,
        decision=decision.model_copy(update={"sentence": sentence, "evidence": ()}),
        findings=findings,
        facts=_notes(item.trail),
        month=item.month,
    )


def _whole(item: ReleaseItem) -> PublicItem:
    """Everything that is content: evidence keeps its references to facts and to blobs that are part of them."""
    content = {digest for fact in item.trail for digest in fact.blobs.values()}
    shaky = item.verdict.unstable if item.verdict else ()
    findings = (
        _changed(f, detail=_steady(f.detail, shaky), evidence=_references(f.evidence, content)) for f in item.findings
    )
    sentence, evidence = _steady(item.decision.sentence, shaky), _references(item.decision.evidence, content)
    return PublicItem(
        source=item.source,
        visibility=item.visibility,
        decision=_changed(item.decision, sentence=sentence, evidence=evidence),
        findings=tuple(findings),
        facts=_notes(item.trail),
        repo=item.candidate.repo if item.candidate else item.repo,
        month=item.month,
        task=_task(item) if item.decision.state is State.ACCEPTED else None,
    )


@lru_cache(_SHARED)
def _silent(finding: Finding) -> Finding:
    return _changed(finding, detail="", evidence=())


@lru_cache(_SHARED)
def _without_secret(finding: Finding) -> Finding:
    return _changed(finding, detail=_withheld(finding.detail))


def _changed(record: Part, **values: Any) -> Part:
    """Return a record with other values; itself where they are the same: thousands of candidates share findings."""
    other = {name: value for name, value in values.items() if getattr(record, name) != value}
    return record.model_copy(update=other) if other else record


def _steady(text: str, shaky: Iterable[str]) -> str:
    """Return text in valid UTF-8, with a mark for each id that changes from run to run."""
    for nodeid in sorted(shaky, key=len, reverse=True):
        text = text.replace(nodeid, f"{nodeid.partition('[')[0]}[...]")
    return clean(text)


def _references(evidence: Iterable[Evidence], content: set[str]) -> tuple[Evidence, ...]:
    kept = (Evidence(fact=e.fact, blob=e.blob if e.blob in content else None) for e in evidence)
    return tuple(reference for reference in kept if reference.fact or reference.blob)


def _notes(trail: Iterable[Fact]) -> tuple[FactNote, ...]:
    notes = {}
    for fact in trail:
        name = fact_id(fact.key)
        notes[name] = FactNote(
            id=name,
            content_hash=content_hash(fact),
            outcome=fact.outcome,
            network=fact.network,
            observed_at=fact.observed_at,
            measures=fact.measures,
            logs=fact.logs,
            **fact.key.model_dump(include={"kind", "subject", "ordinal", "producer", "epoch"}),
        )
    return tuple(notes.values())


def _task(item: ReleaseItem) -> Task:
    texts = ("test_command", "lock_text", "build_lock_text", "dockerfile")
    names = ("candidate", "recipe", "environment", "verdict", *texts)
    parts = {name: getattr(item, name) for name in names}
    if missing := [name for name, part in parts.items() if part is None]:
        raise ReleaseError(f"{item.instance_id} is accepted, but has no {', '.join(missing)}")
    task = Task(**parts, image_name=item.image_name or tag_of(item.instance_id, parts["environment"].image))
    if sha256_bytes(task.lock_text.encode("utf-8", "surrogateescape")) != task.environment.lock_sha256:
        raise ReleaseError(f"{item.instance_id}: its lock is not the one that its environment was installed from")
    return task


def _without_secrets(item: PublicItem) -> PublicItem:
    """A task with a secret is rejected; in any other text a secret is replaced by its kind."""
    decision, findings, task = item.decision, item.findings, item.task
    judged = _judge(task) if task else None
    if judged is not None and judged.outcome == "fail":
        decision, task = _rejected(decision, Reason.SECRET_FOUND), None
        findings = (*(finding for finding in findings if finding.rule != SECRET_RULE), judged)
    return _changed(
        item,
        decision=_changed(decision, sentence=_withheld(decision.sentence)),
        findings=tuple(map(_without_secret, findings)),
        task=task,
    )


def _judge(task: Task) -> Finding:
    found = sorted(set(_secrets_of(task)))
    said = Finding(rule=SECRET_RULE, stage=_EXPORT, outcome="pass", value=len(found))
    if not found:
        return said
    return said.model_copy(update={"outcome": "fail", "code": Reason.SECRET_FOUND, "detail": "; ".join(found)})


def _secrets_of(task: Task) -> Iterator[str]:
    for where, text in _texts(task.model_dump(mode="json"), ""):
        for kind in find_secrets(text, ours=not where.startswith(_AUTHORED)):
            yield f"{where.partition('[')[0]}: {kind}"


def _withheld(text: str) -> str:
    kinds = find_secrets(text, ours=True) if text else ()
    return f"[withheld: looks like {', '.join(kinds)}]" if kinds else text


def _texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Walk every string of a JSON value, keys of objects included."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield where, str(key)
            yield from _texts(part, f"{where}.{key}" if where else str(key))
    elif isinstance(value, (list, tuple)):
        for position, part in enumerate(value):
            yield from _texts(part, f"{where}[{position}]")
    elif isinstance(value, BaseModel):
        yield from _texts(value.model_dump(mode="json"), where)


def _rejected(decision: Decision, reason: Reason) -> Decision:
    return decision.model_copy(
        update={"state": State.REJECTED, "stage": _EXPORT, "code": reason, "sentence": reason.meaning, "evidence": ()}
    )
