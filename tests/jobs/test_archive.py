"""GH Archive under the whole job: hints of where to look, and how much of a month the archive had."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawlers.gharchive_maker import slim, write
from forge import Forge, Repo, World
from forge_month import MONTH, TOKEN, library, mend, options, run, settings, states
from typer.testing import CliRunner

from miner.cli import app
from miner.core.blobs import BlobStore
from miner.core.errors import UsageError
from miner.core.ledger import Ledger
from miner.jobs.archive import archive_coverage, of_month
from miner.jobs.render import summary_text
from miner.jobs.summary import Summary

pytestmark = pytest.mark.loopback


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "forge")


@pytest.fixture
def forge(world: World) -> Iterator[Forge]:
    with Forge(world) as made:
        yield made


@pytest.fixture
def hours(tmp_path: Path) -> Path:
    (tmp_path / "hours").mkdir()
    return tmp_path / "hours"


def merge(repo: Repo, number: int, at: str = "2025-05-10T12:00:05Z") -> dict[str, Any]:
    return slim(number, repo={"id": repo.repo_id, "name": repo.full_name}, created_at=at)


def mined(folder: Path, forge: Forge, hours: Path, *names: str) -> Summary:
    return run(settings(folder, forge, *names, mine__archive=hours))


def test_hints_are_mined_and_the_archive_is_measured_by_what_was_crawled(
    world: World, forge: Forge, hours: Path, tmp_path: Path
) -> None:
    lib, more = library(world, "octo/lib"), library(world, "octo/more")
    pulls = [mend(lib, what).number for what in ("one", "two", "three")]
    hidden = mend(more, "one").number
    write(hours, [merge(lib, pulls[0]), merge(lib, pulls[1]), merge(lib, 77)], "2025-05-10-12")
    write(hours, [merge(lib, pulls[0])], "2025-05-10-13")
    summary = mined(tmp_path, forge, hours, "octo/more")
    assert set(states(summary)) == {f"octo__more-{hidden}", *(f"octo__lib-{number}" for number in pulls)}
    assert [note.partition(": ")[2][:24] for note in summary.notes] == [
        "742 of 744 hours are mis",
        "2 of 744 hours are there",
    ]
    assert "note: GH Archive, 2025-05: 2 of 744 hours are there and whole, with 2 of the 4 merged pull" in summary_text(
        summary
    )
    found = of_month(settings(tmp_path, forge), MONTH)
    assert (found.merged, found.seen, found.unconfirmed, found.share) == (4, 2, 1, 0.5)
    assert (found.events, found.merges, found.repositories) == (4, 3, 1)
    assert found.hours == {"missing": 742, "read": 2}
    assert [(day.merged, day.seen) for day in found.days if day.merged] == [(4, 2)]
    again = mined(tmp_path, forge, hours, "octo/more")
    assert (again.measured, again.notes) == (0, summary.notes)


def test_it_is_shown_on_the_command_line(world: World, forge: Forge, hours: Path, tmp_path: Path) -> None:
    lib = library(world, "octo/lib")
    write(hours, [merge(lib, mend(lib, "one").number)], "2025-05-10-12")
    mined(tmp_path, forge, hours)
    chosen = options(tmp_path, forge)
    said = CliRunner().invoke(app, ["archive", *chosen])
    assert "truth: 1 of 1 merged pull requests were seen (100.0%)" in said.output
    printed = json.loads(CliRunner().invoke(app, ["archive", "--month", MONTH, "--json", *chosen]).output)
    assert (printed["merged"], printed["seen"]) == (1, 1)


def test_a_month_of_which_no_hour_was_read(world: World, forge: Forge, tmp_path: Path) -> None:
    mend(library(world, "octo/lib"), "one")
    summary = run(settings(tmp_path, forge, "octo/lib"))
    assert summary.notes == ()
    chosen = settings(tmp_path, forge)
    ledger = Ledger(chosen.paths.ledger, create=False)
    assert archive_coverage(ledger, BlobStore(chosen.paths.blobs), MONTH) is None
    ledger.close()
    with pytest.raises(UsageError, match="no hour of GH Archive was read for 2025-05"):
        of_month(chosen)


def test_a_repository_that_was_not_crawled_is_in_no_share(
    world: World, forge: Forge, hours: Path, tmp_path: Path
) -> None:
    lib, ruby = library(world, "octo/lib"), library(world, "octo/ruby", languages={"Ruby": 9000})
    events = [merge(lib, mend(lib, "one").number), merge(ruby, mend(ruby, "one").number)]
    write(hours, events, "2025-05-10-12")
    mined(tmp_path, forge, hours)
    found = of_month(settings(tmp_path, forge))
    assert (found.repositories, found.merges, found.merged, found.seen) == (2, 2, 1, 1)
