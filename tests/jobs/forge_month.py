"""A month of a forge under the whole job: small repositories, settings that need no engine, and what a run came to.

Without an engine a run goes as far as extraction: `UP_TO_EXTRACTION` is a policy by which no patch is small enough, so
that whatever passes gates and extraction is rejected before anything is built.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forge import Forge, Issue, Pull, Repo, World
from sqlalchemy import select

from installers.pythons import load_pythons
from miner.core import tables
from miner.core.blobs import BlobStore
from miner.core.hashing import hash_of
from miner.core.ledger import Ledger, content_hash
from miner.core.reasons import Reason
from miner.core.records import Fact, State
from miner.core.settings import Settings, load_settings, run_flags
from miner.jobs import monthly
from miner.jobs.funnel import newest_intake
from miner.jobs.summary import Summary
from validators.case import EXTRACT, LOOK_UP, Reader

MONTH = "2025-05"
TOKEN = "no-real-token-of-a-forge"
NOWHERE = "tcp://127.0.0.1:1"
"""An address at which no container engine answers."""
UP_TO_EXTRACTION = {"docker.host": NOWHERE, "policy.max_patch_lines": 0, "policy.pulls.gate_sample": 0}
PASSED = (State.REJECTED, Reason.PATCH_TOO_LARGE)
"""What a candidate that passes gates and extraction comes to under `UP_TO_EXTRACTION`."""

_PYPROJECT = '[build-system]\nrequires = ["setuptools>=61"]\n\n[project]\nname = "lib"\nversion = "1.0"\n'


def options(folder: Path, forge: Forge, *names: str, month: str = MONTH, **changes: Any) -> list[str]:
    """Options of `swe-miner run` over these repositories; `run__workers=1` is the setting `run.workers`."""
    values = {
        "paths.work": folder / "var",
        "measure.pythons": '["3.11"]',  # which the base image has on any machine
        "paths.release": folder / "out",
        "mine.repositories": json.dumps(names),
        "github.tries": 2,
        "github.max_wait_s": 0,
        "run.pause_max_s": 0,
        **UP_TO_EXTRACTION,
        **{name.replace("__", "."): value for name, value in changes.items()},
    }
    flags = run_flags(source="github", month=month, forge_url=forge.url, pilot=None, notify=None)
    texts = [*flags, *(f"{name}={value}" for name, value in values.items())]
    return [part for text in texts for part in ("-c", text)]


def settings(folder: Path, forge: Forge, *names: str, month: str = MONTH, **changes: Any) -> Settings:
    """The same as settings; nothing of this machine's environment is in them."""
    return load_settings(overrides=options(folder, forge, *names, month=month, **changes)[1::2], environ={})


def run(chosen: Settings) -> Summary:
    return monthly.run(chosen, quiet=True)


def states(summary: Summary) -> dict[str, tuple[State, Reason | None]]:
    return {one.instance_id: (one.state, one.code) for one in summary.decisions}


# Repositories


def library(world: World, full_name: str, **fields: Any) -> Repo:
    """A small library with a test module."""
    files = {
        "pyproject.toml": _PYPROJECT,
        "lib/__init__.py": "",
        "lib/core.py": "VALUE = 1\n",
        "tests/test_core.py": "from lib.core import VALUE\n\n\ndef test_value():\n    assert VALUE\n",
    }
    return world.repository(full_name, files=files, at="2024-01-10T08:00:00Z", **fields)


def report(repo: Repo, what: str, *, at: str = "2025-04-20T09:00:00Z", **fields: Any) -> Issue:
    """An issue with a text of some length."""
    body = f"`lib.{what}.VALUE` should be 2.\n\nI get 1, whatever I do with {what}."
    return repo.issue(f"The value of {what} is wrong", body, at=at, **fields)


def mend(repo: Repo, what: str, issue: Issue | None = None, *, at: str = "2025-05-10T12:00:00Z", **how: Any) -> Pull:
    """A merged pull request that passes every gate: it closes an issue, and changes a module and its tests."""
    issue = issue or report(repo, what)
    values = {
        "files": {
            f"lib/{what}.py": f"{what.upper()} = 2\n",
            f"tests/test_{what}.py": f"def test_{what}():\n    assert True\n",
        },
        "merge": "squash",
        "closes": [issue],
        "at": at,
        **how,
    }
    title, body = values.pop("title", f"Mend {what}"), values.pop("body", f"It was wrong.\n\nFixes #{issue.number}")
    return repo.pull(title, body, **values)


# What a run came to


@dataclass(frozen=True)
class Known:
    """What a ledger knows in the end, without what differs from crawl to crawl (times, and what was left of limits).

    Attributes:
        decisions: by instance id: state, code, sentence.
        crawled: by instance id: hash of all that the forge said of the pull request, its issues and its repository.
        extracted: by instance id: hash of what was extracted.
        intake: by repository: merged, linked, unlinked, refused, fault.
    """

    decisions: Mapping[str, tuple[State, Reason | None, str]]
    crawled: Mapping[str, str]
    extracted: Mapping[str, str]
    intake: Mapping[str, tuple[int, int, int, Reason | None, Reason | None]]


def known_in(chosen: Settings) -> Known:
    """Return what the ledger of a run knows."""
    ledger, reader = Ledger(chosen.paths.ledger, create=False), Reader(BlobStore(chosen.paths.blobs), load_pythons())
    try:
        found = ledger.decisions()
        trails = {one.instance_id: _trail(ledger, one.trail) for one in found}
        return Known(
            decisions={one.instance_id: (one.state, one.code, one.sentence) for one in found},
            crawled={name: hash_of(reader.case(name, trail).crawled) for name, trail in trails.items()},
            extracted={
                name: content_of(fact) for name, trail in trails.items() for fact in trail if fact.key.kind == EXTRACT
            },
            intake={
                one.unit: (one.merged, one.linked, one.unlinked, one.refused, one.fault)
                for one in newest_intake(ledger)
            },
        )
    finally:
        ledger.close()


def content_of(fact: Fact) -> str:
    """Return the hash of what a fact says, whichever attempt it was."""
    return content_hash(fact.model_copy(update={"key": fact.key.model_copy(update={"ordinal": 0})}))


def _trail(ledger: Ledger, names: Iterable[str]) -> list[Fact]:
    return [fact for fact in map(ledger.get, names) if fact is not None]


def facts_in(chosen: Settings, kind: str, subject: str | None = None) -> list[Fact]:
    """Return the standing facts of a kind, of one subject or of all, oldest first."""
    ledger = Ledger(chosen.paths.ledger, create=False)
    try:
        subjects = [subject] if subject is not None else _subjects(ledger)
        found = [fact for one in subjects for fact in ledger.facts_of(one) if fact.key.kind == kind]
        return sorted(found, key=lambda fact: fact.observed_at)
    finally:
        ledger.close()


def _subjects(ledger: Ledger) -> list[str]:
    return [row.subject for row in ledger.rows(select(tables.facts.c.subject).distinct())]


__all__ = [
    "EXTRACT",
    "LOOK_UP",
    "MONTH",
    "NOWHERE",
    "PASSED",
    "TOKEN",
    "UP_TO_EXTRACTION",
    "Known",
    "content_of",
    "facts_in",
    "known_in",
    "library",
    "mend",
    "options",
    "report",
    "run",
    "settings",
    "states",
]
