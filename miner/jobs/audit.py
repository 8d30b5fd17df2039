"""The audit job: why a candidate was rejected, in the order in which it was found out, with evidence that opens."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable, Sequence
from datetime import datetime

from pydantic import Field

from installers.attempt import ATTEMPT, attempt_of, deciding
from installers.interface import Attempt
from installers.ladder import steps_of
from installers.reports import log_digest
from miner.core.blobs import BlobStore
from miner.core.errors import InfrastructureFault, UsageError
from miner.core.ledger import Ledger, fact_id
from miner.core.reasons import Stage
from miner.core.records import Decision, Evidence, Fact, Finding, Legible, Record, State
from miner.jobs.render import count
from miner.jobs.uncounted import uncounted
from validators.case import Reader

ID_CHARS = 12
_DETAIL_CHARS = 240
_TALKS = ("request", "reply", "transcript")


class Seen(Record):
    """One fact of a candidate's trail, by reference: content and logs open by their digests."""

    id: str
    kind: str
    subject: str
    outcome: str
    observed_at: datetime
    seconds: float
    blobs: dict[str, str]
    logs: dict[str, str]


class Met(Record):
    """One fault of the infrastructure that the candidate met."""

    reason: str
    message: str
    at: str


class Tried(Record):
    """One attempt at an environment, in short.

    Attributes:
        edits: what was changed of the declared recipe, and why.
        tokens: that language models read and wrote for it.
        money: that they cost, in US dollars.
        logs: what says most about it, by name: a digest that `--log` opens.
    """

    rung: str
    number: int
    python: str
    outcome: str
    detail: Legible
    share: float | None
    seconds: float
    signatures: tuple[str, ...]
    edits: tuple[Legible, ...]
    tokens: int = 0
    money: float = 0.0
    logs: dict[str, str] = Field(default_factory=dict)


class Account(Record):
    """Everything that is known about one candidate.

    Attributes:
        attempts: of the ladder, in order.
        notes: what was noticed about its recipe, and the pytest options that its environment cannot keep.
    """

    decision: Decision
    findings: tuple[Finding, ...]
    attempts: tuple[Tried, ...] = ()
    notes: tuple[Legible, ...] = ()
    facts: tuple[Seen, ...]
    faults: tuple[Met, ...]


def decisions(ledger: Ledger) -> list[Decision]:
    """Return the newest decision on every candidate ever seen; those on which no run has decided yet are pending."""
    decided = {decision.instance_id: decision for decision in ledger.decisions()}
    return [decided.get(row.instance_id) or _undecided(ledger, row.instance_id) for row in ledger.candidates()]


def _undecided(ledger: Ledger, instance_id: str) -> Decision:
    trail = tuple(fact_id(fact.key) for fact in ledger.facts_of(instance_id))
    sentence = "seen, but no run has come to a decision on it yet"
    return Decision(instance_id=instance_id, state=State.PENDING, stage=Stage.DISCOVER, sentence=sentence, trail=trail)


def why(ledger: Ledger, reader: Reader, instance_id: str) -> Account:
    """Return the account of a candidate, or of a merged pull request that is none.

    Raises:
        UsageError: never seen; names the nearest known ids.
    """
    known = {decision.instance_id: decision for decision in decisions(ledger)}
    decision = known.get(instance_id) or uncounted(ledger, instance_id)
    if decision is None:
        raise UsageError(_never_seen(known, instance_id), next_step="`swe-miner funnel --ids` lists what is known")
    facts = [fact for fact in map(ledger.get, decision.trail) if fact is not None]
    return Account(
        decision=decision,
        findings=tuple(ledger.findings_of(instance_id)),
        attempts=tuple(_tried(attempt_of(fact, reader.blobs), facts) for fact in facts if fact.key.kind == ATTEMPT),
        notes=_notes(reader, decision, facts),
        facts=tuple(_seen(fact) for fact in facts),
        faults=tuple(Met(reason=row.reason, message=row.message, at=row.at) for row in ledger.faults_of(instance_id)),
    )


def _notes(reader: Reader, decision: Decision, facts: Sequence[Fact]) -> tuple[str, ...]:
    """Return what no finding says; nothing of a candidate without a verdict: computing it may be what failed."""
    if decision.state in (State.FAULTED, State.PENDING):
        return ()
    try:
        case = reader.case(decision.instance_id, facts)
    except InfrastructureFault as fault:  # a blob is gone: the account of the ledger is as good without
        return (f"its facts cannot be read: {fault}",)
    notes = case.recipe.notes if case.recipe else ()
    dropped = case.environment.dropped_addopts if case.environment else ()
    return (*notes, *(f"pytest option left out: {option}" for option in dropped))


def _tried(made: Attempt, trail: Sequence[Fact]) -> Tried:
    return Tried(
        rung=made.rung,
        number=made.number,
        python=made.recipe.python,
        outcome=made.outcome,
        detail=made.detail,
        share=made.share,
        seconds=made.seconds,
        signatures=tuple(map(str, made.signatures)),
        edits=tuple(f"{edit.rule}: {edit.why}" for edit in made.edits),
        tokens=made.tokens,
        money=made.money,
        logs=_logs_of(made, trail),
    )


def _logs_of(made: Attempt, trail: Sequence[Fact]) -> dict[str, str]:
    """Return what was said to and by a language model, and the log of the step that decided."""
    known = {fact_id(fact.key): fact for fact in trail}
    asked = [known[name] for name in made.asked if name in known]
    logs = {name: digest for fact in asked for name, digest in {**fact.blobs, **fact.logs}.items() if name in _TALKS}
    decisive = deciding(steps_of(trail, made), made)
    if decisive is not None and (digest := log_digest(decisive)) is not None:
        logs["log"] = digest
    return logs


def _never_seen(known: Iterable[str], instance_id: str) -> str:
    near = difflib.get_close_matches(instance_id, known, n=3, cutoff=0.4)
    return f"{instance_id} was never seen" + (f"; did you mean {', '.join(near)}?" if near else "")


def _seen(fact: Fact) -> Seen:
    return Seen(
        id=fact_id(fact.key),
        kind=fact.key.kind,
        subject=fact.key.subject,
        outcome=fact.outcome,
        observed_at=fact.observed_at,
        seconds=fact.measures.get("wall_s", 0.0),
        blobs=fact.blobs,
        logs=fact.logs,
    )


def account_text(account: Account) -> str:
    """Return the account as a person reads it: the verdict, every finding in order, the facts, where the logs are."""
    decision = account.decision
    code = f" ({decision.code})" if decision.code else ""
    lines = [f"{decision.instance_id}: {decision.state} at {decision.stage}{code}"]
    lines += [f"  {line}" for line in decision.sentence.splitlines()]
    if not decision.final:
        lines.append("  provisional: it rests on one answer of a network service; a later run asks again")
    lines += _evidence_lines(decision.instance_id, decision.evidence)
    if account.findings:
        lines += ["", "findings"]
    for finding in account.findings:
        lines.append(_finding_line(finding))
        if finding.outcome == "fail" and finding.evidence != decision.evidence:
            lines += [f"  {line}" for line in _evidence_lines(decision.instance_id, finding.evidence)]
    if account.attempts:
        lines += ["", "attempts at an environment"]
    for made in account.attempts:
        lines += _attempt_lines(made)
    if account.notes:
        lines += ["", "notes", *(f"  {note}" for note in account.notes)]
    if account.facts:
        lines += ["", "facts"]
    for fact in account.facts:
        when = f"{fact.observed_at:%Y-%m-%d %H:%M}"
        lines.append(f"  {fact.id[:ID_CHARS]} {fact.kind:<18} {fact.outcome:<12} {fact.seconds:8.1f} s  {when}")
        lines += [f"      {name}: {digest[:ID_CHARS]}" for name, digest in sorted({**fact.blobs, **fact.logs}.items())]
    if account.faults:
        lines += ["", "faults of the infrastructure"]
        lines += [f"  {met.at[:19]} {met.reason}: {met.message.splitlines()[0]}" for met in account.faults]
    return "\n".join(lines)


def _evidence_lines(instance_id: str, found: Iterable[Evidence]) -> list[str]:
    lines = []
    for evidence in found:
        lines += [f"  | {line}" for line in evidence.excerpt.splitlines()]
        if evidence.blob:
            lines.append(f"  whole log: swe-miner why {instance_id} --log {evidence.blob[:ID_CHARS]}")
    return lines


def _attempt_lines(made: Tried) -> list[str]:
    passed = "" if made.share is None else f", {made.share:.0%} of its tests pass at the base"
    outcome = "healthy" if made.outcome == "ok" else made.outcome
    cost = f", {count(made.tokens, 'token')}, ${made.money:.4f}" if made.tokens or made.money else ""
    lines = [f"  {made.number} {made.rung:<10} Python {made.python}: {outcome}{passed}, {made.seconds:.1f} s{cost}"]
    lines += [f"      edit {edit}" for edit in made.edits]
    if made.outcome != "ok":
        lines += [f"      {textwrap.shorten(made.detail, _DETAIL_CHARS, placeholder=' ...')}"]
    lines += [f"      shows {signature}" for signature in made.signatures]
    lines += [f"      {name}: {digest[:ID_CHARS]}" for name, digest in sorted(made.logs.items())]
    return lines


def _finding_line(finding: Finding) -> str:
    value = "" if finding.value is None else f" = {finding.value:g}"
    code = f" [{finding.code}]" if finding.code and finding.outcome == "fail" else ""
    detail = f"  {textwrap.shorten(finding.detail, _DETAIL_CHARS, placeholder=' ...')}" if finding.detail else ""
    return f"  {finding.stage:<9} {finding.rule:<22} {finding.outcome}{value}{code}{detail}"


def open_log(account: Account, blobs: BlobStore, prefix: str) -> bytes:
    """Return a whole blob of the candidate's trail by the beginning of its digest.

    Raises:
        UsageError: no blob, or more than one, begins like this.
    """
    known = {digest for fact in account.facts for digest in (*fact.blobs.values(), *fact.logs.values())}
    found = sorted(digest for digest in known if digest.startswith(prefix))
    if len(found) != 1:
        raise UsageError(f"{len(found)} blobs of {account.decision.instance_id} begin with {prefix!r}")
    return blobs.get(found[0])
