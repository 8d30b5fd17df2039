"""A month that is killed again and again: nothing is lost, nothing is there twice, and little is asked again."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from forge import Forge, Limits, World
from forge_month import (
    EXTRACT,
    LOOK_UP,
    TOKEN,
    Known,
    facts_in,
    known_in,
    library,
    mend,
    options,
    settings,
)
from whole_run import SWE_MINER, environment

from miner.core.blobs import BlobStore
from miner.core.settings import Settings

pytestmark = pytest.mark.slow

SEED = 20250531
KILLS = 20
REPOSITORIES = 30
WORKERS = 2
CHANGES = {"measure__crawl__page_size": 10, "run__crawl_workers": WORKERS, "run__workers": WORKERS}


@dataclass(frozen=True)
class Undisturbed:
    """The forge, and a run that nothing disturbs.

    Attributes:
        requests: of the API; those of git are not counted.
    """

    forge: Forge
    names: tuple[str, ...]
    known: Known
    pulls: dict[str, set[tuple[int, str]]]
    requests: int

    def settings(self, folder: Path) -> Settings:
        return settings(folder, self.forge, *self.names, **CHANGES)

    def start(self, folder: Path) -> subprocess.Popen[bytes]:
        """Start the program in a process group of its own."""
        command = [str(SWE_MINER), "run", *options(folder, self.forge, *self.names, **CHANGES)]
        folder.mkdir(exist_ok=True)
        with (folder / "printed").open("ab") as printed:
            return subprocess.Popen(
                command,
                cwd=folder,
                env=environment(GITHUB_TOKEN=TOKEN),
                stdout=printed,
                stderr=printed,
                start_new_session=True,
            )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    world = World(tmp_path_factory.mktemp("forge"))
    chance = random.Random(SEED)
    for number in range(REPOSITORIES):
        repo = library(world, f"org{number % 7}/lib{number}")
        pulls = 70 if number < 4 else 12
        for index in range(pulls):
            at = f"2025-05-{1 + chance.randrange(31):02}T{chance.randrange(24):02}:{index % 60:02}:00Z"
            if index < 2:
                mend(repo, f"part{index}", at=at, merge=chance.choice(("squash", "merge", "rebase")))
            else:
                files = {f"docs/{index}.md": "Words\n", f"docs/{index}-more.md": "More\n"}
                named = f"Fixes #{chance.choice((1, 3))}" if index % 4 == 0 else "Nothing."
                mend(repo, f"part{index}", repo.issues[1], at=at, body=named, closes=[], files=files)
    names = tuple(repo.full_name for repo in world)
    folder = tmp_path_factory.mktemp("undisturbed")
    with Forge(world, limits=Limits.none()) as forge:
        made = Undisturbed(forge, names, Known({}, {}, {}, {}), {}, 0)
        assert made.start(folder).wait(300) == 0, (folder / "printed").read_text()
        chosen = made.settings(folder)
        yield Undisturbed(forge, names, known_in(chosen), pulls_of(chosen), forge.log.requests)


def pulls_of(chosen: Settings) -> dict[str, set[tuple[int, str]]]:
    """The pull requests on the pages of each repository, with the time of the version that was seen."""
    found: dict[str, set[tuple[int, str]]] = {}
    for fact in facts_in(chosen, "crawl.page"):
        found.setdefault(fact.key.subject, set()).update((number, at) for number, at, _ in fact.payload["pulls"])
    return found


def kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run_until_killed(undisturbed: Undisturbed, folder: Path, chance: random.Random, *, crawled: bool) -> int:
    """Run, with a kill on its way: when so many requests are answered (but have not arrived), or after a time.

    Args:
        crawled: nearly all is crawled, so that the run is to be killed while git fetches.
    """
    process, forge = undisturbed.start(folder), undisturbed.forge
    how, seconds = chance.choice(("git", "git", "time") if crawled else ("api", "api", "time")), 300.0
    if how == "api":
        forge.after("", chance.randint(5, 25), lambda: kill(process))
    elif how == "git":
        forge.after("git", chance.randint(1, 60), lambda: kill(process))
    else:
        seconds = chance.uniform(0.5, 4.0)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        kill(process)
    code = process.wait(60)
    forge.heal()
    print(f"{how}: exit code {code}, {forge.log.requests} requests so far")
    return code


def test_month_that_is_killed_again_and_again_comes_to_the_same_end(undisturbed: Undisturbed, tmp_path: Path) -> None:
    chance, kills, place = random.Random(SEED), 0, 0
    while kills < KILLS:
        folder, before = tmp_path / f"killed{place}", undisturbed.forge.log.requests
        here, code = 0, -1
        while code != 0:
            asked = undisturbed.forge.log.requests - before
            code = run_until_killed(undisturbed, folder, chance, crawled=asked > 0.8 * undisturbed.requests)
            assert code in (0, -signal.SIGKILL), (folder / "printed").read_text()[-3000:]
            check_token_is_not_kept(folder)
            here += code != 0
        chosen = undisturbed.settings(folder)
        assert known_in(chosen) == undisturbed.known
        check_nothing_is_there_twice(chosen, undisturbed)
        check_nothing_is_broken(folder)
        asked = undisturbed.forge.log.requests - before
        print(f"{asked} requests with {here} kills, {undisturbed.requests} without")
        assert asked <= undisturbed.requests + here * (WORKERS + 1), "lost are only answers that had not arrived"
        kills, place = kills + here, place + 1


def check_nothing_is_there_twice(chosen: Settings, undisturbed: Undisturbed) -> None:
    for kind in (LOOK_UP, EXTRACT):
        subjects = Counter(fact.key.subject for fact in facts_in(chosen, kind))
        assert set(subjects.values()) == {1}, kind
    walks = Counter(fact.key.subject for fact in facts_in(chosen, "crawl.walk"))
    assert len(walks) == REPOSITORIES
    assert set(walks.values()) == {1}
    for fact in facts_in(chosen, "crawl.walk"):
        assert fact.payload["found"] == fact.payload["expected"]
    places = Counter((fact.key.subject, fact.payload["page"]) for fact in facts_in(chosen, "crawl.page"))
    assert set(places.values()) == {1}
    assert pulls_of(chosen) == undisturbed.pulls


def check_token_is_not_kept(folder: Path) -> None:
    """What a killed run leaves: the ledger with its write-ahead log, its heartbeat, what it printed."""
    kept = [folder / "printed", *folder.glob("var/ledger*"), *folder.glob("var/heartbeat/*")]
    assert [path.name for path in kept if TOKEN.encode() in path.read_bytes()] == []


def check_nothing_is_broken(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "var" / "ledger.sqlite3")) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    blobs = BlobStore(str(folder / "var" / "blobs"))
    for path in (folder / "var" / "blobs").glob("*/*.zst"):
        assert blobs.get(path.stem), "it is whole"
    assert sum(1 for _ in (folder / "var" / "scratch").glob("*/*")) == 0
    for mirror in (folder / "var" / "mirrors").glob("*.git"):
        done = subprocess.run(
            ["git", "-C", str(mirror), "fsck", "--connectivity-only", "--no-dangling"],
            env=environment(GIT_NO_LAZY_FETCH="1"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert "corrupt" not in done.stderr, done.stderr
