"""Learn from language models: what they found becomes repair rules as data, so that the next month asks them less."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from installers.attempt import ATTEMPT, PRODUCER, attempt_of
from installers.repair.learned import PREFIX, LearnedRule, Provenance, read_rules, refusal
from installers.repair.portable import Portable
from miner.core.blobs import BlobStore
from miner.core.errors import BlobLost, ConfigError
from miner.core.hashing import hash_of
from miner.core.ledger import Ledger, fact_id
from miner.core.memo import utc_now
from miner.core.records import Fact, Record, Visibility
from miner.jobs.learn_evidence import MODEL_RUNGS, Tried
from miner.jobs.learn_fit import unfit
from miner.jobs.learn_fold import Answer, answers_of

_LONGEST_NAME = 160
_HEAD = """# Repair rules that `swe-miner recipes learn` has made of what language models found.
# `-c measure.ladder.learned=FILE` reads them; configs/learned.toml explains the form.
"""


class Row(Record):
    """What was learned about one failure.

    Attributes:
        signature: the failure.
        edit: what answered it, in words.
        worked: number of candidates for which it did.
        failed: number of those for which it was tried and did not.
        repositories: of the former.
        projects: number of the repositories, where those of one name count as one: they are forks.
        facts: examples: attempts, which `swe-miner why` shows.
        rule: the edit as data; None where it is none that another recipe could take over.
        left_out: why it is not exported, "" where it is.
    """

    signature: str
    edit: str
    worked: int
    failed: int
    repositories: tuple[str, ...]
    projects: int
    facts: tuple[str, ...]
    rule: LearnedRule | None
    left_out: str = ""


class Learned(Record):
    """All rows, best known first, and how many rules a file holds now."""

    rows: tuple[Row, ...]
    file: str | None = None
    rules: int = 0


def learn(
    ledger: Ledger, blobs: BlobStore, *, min_repositories: int = 2, not_public: bool = False, export: Path | None = None
) -> Learned:
    """Return what the attempts of ended runs teach, and write it as rules where a file is named.

    A file that is there keeps the rules of which this ledger says nothing.

    Args:
        ledger: holds the attempts.
        blobs: hold what they show.
        min_repositories: in which an answer must have worked to become a rule; forks count as one.
        not_public: learn also from candidates that are private, held out, or unknown.
        export: the file.

    Raises:
        ConfigError: the file is there and holds no such rules, or cannot be written.
    """
    rows = rows_of(answers_of(attempts(ledger, blobs, not_public=not_public)), min_repositories, utc_now().date())
    if export is None:
        return Learned(rows=rows)
    rules = merged(_known(export), [row.rule for row in rows if row.rule is not None and not row.left_out])
    try:
        export.write_text(toml_of(rules), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{export}: cannot be written ({error.strerror})") from error
    return Learned(rows=rows, file=export.name, rules=len(rules))


def attempts(ledger: Ledger, blobs: BlobStore, *, not_public: bool) -> Iterator[Tried]:
    """Yield the attempts of ended runs for each candidate for which a model was asked, or a learned rule was tried."""
    told = {fact.key.subject for fact in ledger.standing(ATTEMPT, None) if _tells(fact)}
    facts = [fact for fact in ledger.standing(ATTEMPT, None) if fact.key.subject in told]
    measured, ended = ledger.runs_of(fact_id(fact.key) for fact in facts), ended_runs(ledger)
    public = {name for name, row in ledger.candidates_of(told) if row.visibility == Visibility.PUBLIC}
    for fact in facts:
        seen = not_public or fact.key.subject in public
        if seen and measured[fact_id(fact.key)] in ended and (one := _tried(fact, blobs)) is not None:
            yield one


def ended_runs(ledger: Ledger) -> frozenset[str]:
    """Return the ids of the runs up to the last one that came to its end, as the memory of a run has them."""
    runs = ledger.runs()
    last = max((index for index, run in enumerate(runs) if run.status == "done"), default=-1)
    return frozenset(run.run_id for run in runs[: last + 1])


def _tells(fact: Fact) -> bool:
    if fact.key.epoch != PRODUCER.epoch:
        return False
    edits = fact.payload.get("edits", ())
    return fact.payload["rung"] in MODEL_RUNGS or any(edit["rule"].startswith(PREFIX) for edit in edits)


def _tried(fact: Fact, blobs: BlobStore) -> Tried | None:
    try:
        made = attempt_of(fact, blobs) if fact.key.epoch == PRODUCER.epoch else None
    except BlobLost:  # what it showed is not known any more
        return None
    return (
        None
        if made is None
        else Tried(subject=fact.key.subject, fact=fact_id(fact.key), at=fact.observed_at, attempt=made)
    )


def rows_of(found: Iterable[Answer], min_repositories: int, today: date) -> tuple[Row, ...]:
    """Return answers as rows, each with the rule that it becomes or why it becomes none."""
    rows: list[Row] = []
    for answer in found:
        made = rule_of(answer, today)
        taken = [row.rule for row in rows if row.rule is not None and not row.left_out]
        rows.append(
            Row(
                signature=str(answer.signature),
                edit="; ".join(map(str, answer.edit)),
                worked=len(answer.worked),
                failed=len(answer.failed),
                repositories=answer.repositories,
                projects=answer.projects,
                facts=answer.facts,
                rule=made if isinstance(made, LearnedRule) else None,
                left_out=_left_out(answer, made, min_repositories, taken),
            )
        )
    return tuple(rows)


def _left_out(answer: Answer, made: LearnedRule | str, min_repositories: int, taken: Sequence[LearnedRule]) -> str:
    if isinstance(made, str):
        return made
    if said := unfit(answer.signature, answer.edit):
        return said
    if answer.habits:
        return f"a habit: {', '.join(map(str, answer.habits))} is part of answers to other failures, too"
    if answer.projects < min_repositories:
        return f"worked in {_repositories(answer)}, {min_repositories} are asked for"
    if len(answer.failed) >= len(answer.worked):
        return "failed as often as it worked"
    return refusal(made, taken)


def _repositories(found: Answer | Row) -> str:
    there, forks = found.projects, len(found.repositories) - found.projects
    said = f"{there} {'repository' if there == 1 else 'repositories'}"
    return f"{said} and {forks} {'fork' if forks == 1 else 'forks'}" if forks else said


def rule_of(answer: Answer, today: date) -> LearnedRule | str:
    """Return an answer as a rule; why it is none where no other recipe could take it over."""
    if not answer.portable:
        return "it changes what belongs to the one project: dates, options of pytest, a back end"
    edit = Portable.of(answer.edit)
    said = f"{PREFIX}{answer.signature}: {edit}"
    name = said if len(said) <= _LONGEST_NAME else f"{said[: _LONGEST_NAME - 9]} {hash_of(said)[:8]}"
    counted = Provenance(
        worked=len(answer.worked),
        failed=len(answer.failed),
        repositories=answer.projects,
        version=version("swe-miner"),
        exported=today.isoformat(),
    )
    try:
        return LearnedRule.model_validate(
            {
                "name": name,
                "kind": answer.signature.kind,
                "subject": answer.signature.subject,
                "delta": edit,
                "why": "answered the same failure of other repositories",
                "provenance": counted,
            }
        )
    except ValidationError as error:
        return "; ".join(str(item["msg"]).removeprefix("Value error, ") for item in error.errors())


def _known(file: Path) -> tuple[LearnedRule, ...]:
    if not file.exists():
        return ()
    try:
        return read_rules(file.name, tomllib.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from error


def merged(known: Iterable[LearnedRule], new: Iterable[LearnedRule]) -> tuple[LearnedRule, ...]:
    """Return the rules of a file and new ones; what both say is said once, as the new ones have it."""
    found = {one.identity: one for one in known}
    taken = {one.name for one in found.values()}
    for one in new:
        if one.identity in found or one.name not in taken:
            found[one.identity] = one.model_copy(update={"name": found.get(one.identity, one).name})
    return tuple(found.values())


def toml_of(rules: Iterable[LearnedRule]) -> str:
    """Return rules as TOML that `installers.repair.learned` reads."""
    parts = [_HEAD]
    for one in rules:
        plain = one.model_dump(mode="json", exclude_none=True, exclude={"delta", "provenance"})
        parts.append("\n[[rule]]\n" + _pairs(plain))
        parts += [f"\n[rule.delta.{part}]\n{_pairs(said)}" for part, said in one.delta.said.items()]
        if one.provenance is not None:
            parts.append("\n[rule.provenance]\n" + _pairs(one.provenance.model_dump(mode="json")))
    return "".join(parts)


def _pairs(values: Mapping[str, Any]) -> str:
    return "".join(f"{name} = {_value(value)}\n" for name, value in values.items())


def _value(value: Any) -> str:
    """Return a value as TOML: its JSON, but for inline tables. JSON escapes are TOML's (https://toml.io/en/v1.0.0)."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_value(one)}" for name, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def learned_text(found: Learned) -> str:
    """Return what was learned as text for people."""
    if not found.rows:
        return "nothing was learned: no language model has found what the built-in rules do not know"
    lines = []
    for row in found.rows:
        lines.append(f"{row.signature}\n  {row.edit}")
        forks = "" if row.projects == len(row.repositories) else f" ({_repositories(row)})"
        times = f"worked for {row.worked}, failed for {row.failed}, in {', '.join(row.repositories)}{forks}"
        lines.append(f"  {times}{f'; not exported: {row.left_out}' if row.left_out else ''}")
    if found.file is not None:
        lines.append(f"{found.file} holds {found.rules} rules; read them with -c measure.ladder.learned={found.file}")
    return "\n".join(lines)
