"""An issue that is edited between two runs of a month: the second one has its new text, and so has a snapshot of it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from forge import Forge, Repo, World
from forge_month import LOOK_UP, MONTH, TOKEN, known_in, library, mend, run, settings, states
from snapshots import UP_TO_EXTRACTION, replay

from miner.core.blobs import BlobStore
from miner.core.ledger import Ledger
from miner.core.settings import Settings
from miner.crawlers.github.answers import assemble
from miner.jobs import snapshot

AGAIN = {"measure__crawl__refresh_after_hours": 0}


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = library(World(tmp_path / "forge"), "octo/lib")
    mend(made, "one")
    mend(made, "two")
    return made


def texts(chosen: Settings, subject: str) -> list[str]:
    """The text of the issue of a candidate, by each of its facts, oldest first."""
    with closing(Ledger(chosen.paths.ledger)) as ledger:
        facts = [fact for fact in ledger.facts_of(subject) if fact.key.kind == LOOK_UP]
    blobs = BlobStore(chosen.paths.blobs)
    return [assemble(fact, blobs).pull.closing[0].body for fact in facts]


def test_both_texts_are_facts_and_a_replay_has_the_new_one(repo: Repo, tmp_path: Path) -> None:
    old = repo.issues[1].body
    with Forge(repo.world) as forge:
        chosen = settings(tmp_path / "first", forge, "octo/lib", **AGAIN)
        first = run(chosen)
        repo.edit(repo.issues[1], "Another text, of some length as well.", at="2025-06-19T00:00:00Z")
        second = run(chosen)
        snapshot.write(chosen, tmp_path / "snapshot", month=MONTH)
    assert states(second) == states(first)
    assert texts(chosen, "octo__lib-2") == [old, "Another text, of some length as well."]
    assert len(texts(chosen, "octo__lib-4")) == 1
    elsewhere = replay(tmp_path / "replayed", tmp_path / "snapshot", **UP_TO_EXTRACTION)
    run(elsewhere)
    assert texts(elsewhere, "octo__lib-2") == ["Another text, of some length as well."]
    assert known_in(elsewhere) == known_in(chosen)
