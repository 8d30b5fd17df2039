"""The source as a whole, against a forge with git: from the name of a repository to a candidate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_bench import Bench, forge_of
from forge.server import Forge
from forge.world import World

from miner.core.errors import ConfigError
from miner.core.records import Candidate
from miner.crawlers import source_of
from miner.crawlers.github.source import GithubSource


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "forge")


@pytest.fixture
def forge(world: World) -> Iterator[Forge]:
    with forge_of(world) as forge:
        yield forge


@pytest.fixture
def bench(forge: Forge, tmp_path: Path) -> Bench:
    return Bench(forge, tmp_path)


@pytest.mark.parametrize("merge", ["merge", "squash", "rebase"])
def test_from_a_name_to_a_candidate(world: World, bench: Bench, merge: str) -> None:
    repo = world.repository("octo/lib", files={"lib.py": "x = 1\n", "tests/test_lib.py": "import lib\n"})
    issue = repo.issue("x is wrong", "It should be two.", at="2025-04-01T00:00:00Z")
    repo.pull(
        "Fix x",
        f"Fixes #{issue.number}",
        files={"lib.py": "x = 2\n", "tests/test_lib.py": "import lib\nassert lib.x == 2\n"},
        merge=merge,
        at="2025-05-03T10:00:00Z",
        closes=[issue],
        upstream={"other.py": "y = 1\n"},
    )
    repo.rename("octo/renamed")
    source = bench.source("octo/lib")
    (unit,) = source.units(bench.memo())
    (item,) = source.discover(unit, bench.memo()).items
    looked_up = bench.looked_up(item)
    extracted = bench.extracted(source, item, looked_up)
    assert extracted.ok, extracted.payload
    candidate = source.candidate(looked_up, extracted, bench.blobs)
    assert isinstance(candidate, Candidate)
    assert (candidate.instance_id, candidate.month) == ("octo__renamed-2", "2025-05")
    assert (candidate.gold_files, candidate.test_files) == (("lib.py",), ("tests/test_lib.py",))
    assert "It should be two." in candidate.statement
    assert source.repository(item, looked_up, extracted).tree_of(candidate.base_commit) == candidate.base_tree
    assert source_of(looked_up) is GithubSource


def test_a_month_must_be_named(bench: Bench) -> None:
    settings = bench.settings()
    nameless = settings.model_copy(update={"mine": settings.mine.model_copy(update={"month": None})})
    with pytest.raises(ConfigError, match=r"mine\.month"):
        GithubSource(nameless, bench.client(), bench.blobs, bench.folder)
