"""GH Archive as a source of hints: repositories beside those of lists and searches, and what the archive lacks."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_bench import Bench, Killed, crawled, forge_of
from forge.repository import Repo
from forge.server import Forge
from forge.world import World
from gharchive_maker import fat, slim, write

from miner.core.errors import ConfigError, InfrastructureFault
from miner.core.reasons import Reason
from miner.crawlers.github.hints import ARCHIVE, fullest, hints_of, reports_of
from miner.crawlers.interface import Found

FIRST, SECOND, LAST = "2025-05-01-0", "2025-05-01-2", "2025-05-31-23"
AT = "2025-05-03T00:00:00Z"


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def forge(world: World) -> Iterator[Forge]:
    with forge_of(world) as forge:
        yield forge


@pytest.fixture
def bench(forge: Forge, tmp_path: Path) -> Bench:
    return Bench(forge, tmp_path)


@pytest.fixture
def hours(tmp_path: Path) -> Path:
    (tmp_path / "hours").mkdir()
    return tmp_path / "hours"


def lib(world: World, name: str = "octo/lib", **fields: object) -> Repo:
    repo = world.repository(name, **fields)
    issue = repo.issue()
    repo.pull("Fix", f"Fixes #{issue.number}", merge="squash", at=AT, closes=[issue])
    return repo


def named(repo: Repo, name: str | None = None) -> dict[str, object]:
    return {"id": repo.repo_id, "name": name or repo.full_name}


def merge(repo: Repo, number: int = 2, *, name: str | None = None, language: str | None = None) -> dict[str, object]:
    """An event of either shape, slim where it does not say the language."""
    if language is None:
        return slim(number, repo=named(repo, name), created_at=AT)
    base = {"ref": "main", "repo": {"id": repo.repo_id, "language": language}}
    return fat(number, repo=named(repo, name), pull={"base": base, "merged_at": AT})


def units(bench: Bench, *names: str, **mine: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The repositories of a run, and what is said of them as a whole."""
    source = bench.source(*names, **{f"mine__{name}": value for name, value in mine.items()})
    return source.units(bench.memo()), source.notes


def test_hints_alone_are_the_list(world: World, bench: Bench, hours: Path) -> None:
    repos = {name: lib(world, f"octo/{name}") for name in ("known", "unknown", "other", "quiet")}
    events = [
        merge(repos["known"], language="Python"),
        merge(repos["unknown"]),
        merge(repos["other"], language="Go"),
        slim(2, action="closed", repo=named(repos["quiet"])),
        merge(lib(world, "octo/june"), 2, language="Python") | {"created_at": "2025-05-01T00:00:00Z"},
    ]
    events[-1]["payload"]["pull_request"]["merged_at"] = "2025-06-01T00:00:00Z"
    write(hours, events, FIRST)
    found = bench.crawl(mine__archive=hours)
    assert list(found) == ["octo/known", "octo/unknown"]
    assert [crawled(one) for one in found.values()] == [{2}, {2}]


def test_hints_add_to_lists_and_searches_and_narrow_nothing(world: World, bench: Bench, hours: Path) -> None:
    listed, searched, hinted = (
        lib(world, f"octo/{name}", stars=stars) for name, stars in zip("abc", (1, 500, 1), strict=True)
    )
    write(hours, [merge(hinted), merge(listed, name="OCTO/A")], FIRST)
    found, _ = units(bench, "octo/a", repository_search='["stars:>100"]', archive=hours)
    assert found == ("octo/a", searched.full_name, "octo/c")


def test_a_name_of_then_is_the_repository_of_now(world: World, bench: Bench, hours: Path) -> None:
    repo = lib(world, "octo/old")
    write(hours, [merge(repo)], FIRST)
    repo.rename("octo/new")
    assert units(bench, archive=hours)[0] == ("octo/old",)
    assert units(bench, "octo/new", archive=hours)[0] == ("octo/new",), "it is in the list already"
    (item,) = bench.crawl(mine__archive=hours)["octo/old"].items
    assert item.instance_id == "octo__new-2"


def test_a_name_that_was_taken_since_is_not_followed(world: World, bench: Bench, hours: Path) -> None:
    repo, other = lib(world, "octo/lib"), lib(world, "octo/app")
    write(hours, [merge(repo), merge(other)], FIRST)
    repo.rename("octo/away")
    taken = world.repository("octo/lib")
    found, notes = units(bench, archive=hours)
    assert found == ("octo/app",)
    assert (
        f"GH Archive means other repositories by names that were taken since: octo/lib ({taken.repo_id} now)" in notes
    )
    assert units(bench, "octo/lib", archive=hours)[0] == ("octo/lib", "octo/app"), "who names it means it"


def test_opt_out_holds_for_hints(world: World, bench: Bench, hours: Path, tmp_path: Path) -> None:
    gone, renamed = lib(world, "octo/gone"), lib(world, "octo/renamed")
    write(hours, [merge(gone), merge(renamed, name="octo/before")], FIRST)
    renamed.rename("octo/before").rename("octo/now")
    (tmp_path / "out.toml").write_text(f'names = ["octo/gone"]\nids = [{renamed.repo_id}]\n')
    found = bench.crawl(mine__archive=hours, mine__optout=tmp_path / "out.toml")
    assert {one.refused.reason if one.refused else None for one in found.values()} == {Reason.REPOSITORY_OPTED_OUT}
    assert not any("octo/gone" in json.dumps(entry.variables) for entry in bench.forge.log.of("repositories"))


def test_what_is_refused_or_gone_is_said(world: World, bench: Bench, hours: Path) -> None:
    ruby, gone = lib(world, "octo/ruby", languages={"Ruby": 9000}), lib(world, "octo/gone")
    write(hours, [merge(ruby), merge(gone)], FIRST)
    world.delete(gone)
    found: dict[str, Found] = bench.crawl(mine__archive=hours)  # type: ignore[type-arg]
    reasons = {unit: one.refused.reason for unit, one in found.items() if one.refused}
    assert reasons == {"octo/ruby": Reason.REPOSITORY_NOT_PYTHON, "octo/gone": Reason.REPOSITORY_GONE}


def test_hours_that_are_not_whole_are_said(world: World, bench: Bench, hours: Path) -> None:
    repo = lib(world)
    write(hours, [merge(repo)], FIRST)
    whole = gzip.compress(b"x" * 1000)
    write(hours, whole[: len(whole) // 2], SECOND)
    _, notes = units(bench, archive=hours)
    missing = "2025-05-01-1, 2025-05-01-3, 2025-05-01-4, 2025-05-01-5, 2025-05-01-6 and 737 more"
    assert notes == (
        f"GH Archive, 2025-05: 742 of 744 hours are missing: {missing}",
        f"GH Archive, 2025-05: 1 of 744 hours are truncated: {SECOND}",
    )
    assert units(bench, "octo/lib")[1] == ()


def test_notes_of_searches_are_said(world: World, bench: Bench) -> None:
    lib(world)
    bench.forge.fail(
        "searchRepositories", "partial", path=("search", "nodes", 0), message="Could not resolve to a node"
    )
    _, notes = units(bench, repository_search='["stars:>=0"]')
    assert notes == ("the search 'stars:>=0' counts 1 repositories and shows 0",)


def test_an_hour_is_a_fact_that_no_place_is_in(world: World, bench: Bench, hours: Path, tmp_path: Path) -> None:
    write(hours, [merge(lib(world)), merge(lib(world, "octo/b"), 7)], FIRST)
    write(hours, [merge(lib(world, "octo/c"))], SECOND)
    first = units(bench, archive=hours)[0]
    facts = bench.kept("crawl.archive")
    assert [(fact.key.subject, fact.payload["report"]["hour"]) for fact in facts] == [
        ("2025-05", FIRST),
        ("2025-05", SECOND),
    ]
    assert str(tmp_path) not in "".join(fact.model_dump_json() for fact in facts)
    held = json.loads(bench.blobs.get(facts[0].blobs["hints"]))
    assert held == [[1001, "octo/lib", 2, AT, None], [1002, "octo/b", 7, AT, None]]
    elsewhere = Path(shutil.copytree(hours, tmp_path / "elsewhere"))
    shutil.rmtree(hours)
    assert units(bench, archive=elsewhere)[0] == first
    assert len(bench.kept("crawl.archive")) == 2, "the same hours in another place are known"
    write(elsewhere, [merge(lib(world, "octo/d"))], LAST)
    assert units(bench, archive=elsewhere)[0] == (*first, "octo/d")
    assert len(bench.kept("crawl.archive")) == 3, "only the hour that came is read"


def test_a_reading_that_was_cut_goes_on(world: World, bench: Bench, hours: Path) -> None:
    for number, hour in enumerate((FIRST, SECOND, LAST)):
        write(hours, [merge(lib(world, f"octo/lib{number}"))], hour)
    bench.killed_after = 1
    with pytest.raises(Killed):
        units(bench, archive=hours)
    bench.killed_after = None
    known = hours / f"{FIRST}.json.gz"
    known.write_bytes(b"?" * known.stat().st_size)
    names = units(bench, archive=hours)[0]
    assert names == ("octo/lib0", "octo/lib1", "octo/lib2")
    assert len(bench.kept("crawl.archive")) == 3


def test_an_hour_that_is_mended_is_read_again_and_the_fullest_counts(world: World, bench: Bench, hours: Path) -> None:
    a, b = lib(world, "octo/a"), lib(world, "octo/b")
    path = write(hours, [merge(a), merge(b)], FIRST)
    whole = path.read_bytes()
    path.write_bytes(gzip.compress(gzip.decompress(whole).splitlines(keepends=True)[0]))
    assert units(bench, archive=hours)[0] == ("octo/a",)
    path.write_bytes(whole)
    assert units(bench, archive=hours)[0] == ("octo/a", "octo/b")
    known = bench.memo().known(ARCHIVE, "crawl.archive", "2025-05")
    assert len(known) == 2
    for facts in (known, known[::-1]):
        (best,) = fullest(facts)
        assert len(hints_of("2025-05", [best], bench.blobs)) == 2
    reports = reports_of("2025-05", known)
    assert (len(reports), reports[0].state, reports[1].state) == (744, "read", "missing")


def test_an_archive_that_is_no_archive(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"mine\.archive"):
        units(bench, archive=tmp_path / "nothing")


def test_an_hour_that_cannot_be_read_is_a_fault(bench: Bench, hours: Path) -> None:
    (hours / f"{FIRST}.json.gz").mkdir()
    with pytest.raises(InfrastructureFault, match="cannot be opened"):
        units(bench, archive=hours)
