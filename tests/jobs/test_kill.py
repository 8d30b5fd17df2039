"""Runs that are killed or stopped at random moments: nothing is lost, nothing wrong is kept, nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from typing import NamedTuple

import docker
import pytest
from whole_run import SMALL, SMALL_OPTIONS, Place, Stored, content, left_in_the_engine, pairs_option, stored_lines

from miner.core.errors import Interrupted

pytestmark = [pytest.mark.docker, pytest.mark.index, pytest.mark.slow]

SEED = 20240518
KILLS = 12
STOPS = 6
MAX_STOP_S = 15.0
PAIRS = (*SMALL, {"name": "pluggy", "old": "1.4.0", "new": "1.5.0"})
OPTIONS = (*pairs_option(PAIRS), *SMALL_OPTIONS[2:])


@pytest.fixture(scope="module")
def whole(new_place: Callable[..., Place]) -> Place:
    """A run over the same pairs with nothing in its way."""
    made = new_place("whole", *OPTIONS)
    made.run("run")
    return made


class Ended(NamedTuple):
    """How a run ended: its exit code, all that it printed, and how long it took to end once it was told to."""

    code: int
    text: str
    seconds: float


def disturbed(place: Place, number: signal.Signals, *, facts: int, wait_s: float) -> Ended:
    """Run until it has said that it stored some facts, and a little longer; then send a signal to all of it."""
    process = place.start("run")
    assert process.stdout is not None
    lines: list[str] = []
    while len(stored_lines("".join(lines))) < facts and (line := process.stdout.readline()):
        lines.append(line)
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, number)
    sent = time.monotonic()
    rest, _ = process.communicate(timeout=60)
    ended = Ended(process.returncode, "".join(lines) + rest, time.monotonic() - sent)
    print(f"{number.name} after {facts} facts and {wait_s:.2f} s: exit code {ended.code} {ended.seconds:.1f} s later,")
    print(f"    {len(stored_lines(ended.text))} facts stored, the last words: {ended.text.strip().splitlines()[-1:]}")
    return ended


def check_facts(place: Place, known: dict[str, Stored], text: str) -> dict[str, Stored]:
    """Everything that was stored before is there, so is everything that the run said it had stored; all of it good."""
    if not (place.work / "ledger.sqlite3").exists():
        return known
    now = place.facts()
    assert now.items() >= known.items()
    assert stored_lines(text) <= {(fact.subject, fact.kind) for fact in now.values()}
    assert {fact.outcome for fact in now.values()} <= {"ok"}
    return now


def check_end(client: docker.DockerClient, place: Place, whole: Place) -> None:
    """The release is that of an undisturbed run, and no run has left anything on the machine or in the engine."""
    assert content(place.out) == content(whole.out)
    assert sorted(path.name for path in place.folder.iterdir()) == sorted(path.name for path in whole.folder.iterdir())
    for name in ("downloads", "repos"):
        assert names(place, name) == names(whole, name)
    assert {name for name in names(place, "scratch") if "/" in name} == set()
    assert [name for name in names(place, "blobs") if len(name) > 2 and not name.endswith(".zst")] == []
    assert left_in_the_engine(client, place.owner) == []


def names(place: Place, folder: str) -> set[str]:
    top = place.work / folder
    return {path.relative_to(top).as_posix() for path in top.glob("*/*" if folder != "repos" else "*")}


def test_run_that_is_killed_again_and_again_comes_to_the_same_end(
    docker_client: docker.DockerClient, whole: Place, new_place: Callable[..., Place]
) -> None:
    chance, kills = random.Random(SEED), 0
    while kills < KILLS:
        place, known, ended = new_place("killed", *OPTIONS), {}, None
        while ended is None or ended.code != 0:
            facts = chance.choice((0, 0, 1, 1, 2, 3))
            wait_s = chance.uniform(0.5, 6.0) if facts == 0 else chance.uniform(0.0, 3.0)
            ended = disturbed(place, signal.SIGKILL, facts=facts, wait_s=wait_s)
            known = check_facts(place, known, ended.text)
            assert ended.code in (0, -signal.SIGKILL), ended.text
            kills += ended.code != 0
        check_end(docker_client, place, whole)


def test_run_that_is_stopped_again_and_again_comes_to_the_same_end(
    docker_client: docker.DockerClient, whole: Place, new_place: Callable[..., Place]
) -> None:
    chance = random.Random(SEED)
    place, known = new_place("stopped", *OPTIONS), {}
    for _ in range(STOPS):
        number = chance.choice((signal.SIGTERM, signal.SIGINT))
        ended = disturbed(place, number, facts=chance.choice((1, 2, 3)), wait_s=chance.uniform(0.0, 3.0))
        known = check_facts(place, known, ended.text)
        assert ended.code in (0, Interrupted.exit_code), ended.text
        assert ended.seconds < MAX_STOP_S
        assert left_in_the_engine(docker_client, place.owner) == []
    place.run("run")
    check_end(docker_client, place, whole)
