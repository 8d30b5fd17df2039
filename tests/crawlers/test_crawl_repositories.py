"""Which repositories are crawled: lists, searches, opt-outs; names are aliases of the forge's ids."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from crawl_bench import NOW, Bench, forge_of
from forge.repository import Repo
from forge.server import Forge
from forge.world import World

from miner.core.errors import ConfigError
from miner.core.reasons import Reason
from miner.crawlers.github.optout import full_name, read_list, read_optout
from miner.crawlers.interface import Found

pytestmark = pytest.mark.loopback


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


def lib(world: World, name: str = "octo/lib", **fields: object) -> Repo:
    repo = world.repository(name, **fields)
    issue = repo.issue()
    repo.pull("Fix", f"Fixes #{issue.number}", merge="squash", at="2025-05-03T00:00:00Z", closes=[issue])
    return repo


def reason_of(found: Found) -> Reason | None:  # type: ignore[type-arg]
    return found.refused.reason if found.refused else None


@pytest.mark.parametrize(
    "text",
    [
        "octo/lib",
        "Octo/Lib",
        " octo/lib ",
        "https://github.com/Octo/lib",
        "https://github.com/octo/lib/",
        "http://forge.example/octo/lib.git",
        "git@github.com:octo/lib.git",
        "ssh://git@github.com/octo/lib.git",
    ],
)
def test_a_repository_by_its_name_or_address(text: str) -> None:
    assert full_name(text, where="here") == "octo/lib"


@pytest.mark.parametrize("text", ["octo", "octo/lib/tree/main", "octo lib", "octo/li b", "octo/..", "/lib", "-o/x", ""])
def test_what_is_no_repository_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="here"):
        full_name(text, where="here")


def test_a_list_has_comments_odd_case_and_duplicates(tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text(
        "\ufeff# ours\nOcto/Lib\n\nocto/lib  # again\nhttps://github.com/octo/other.git\r\n", encoding="utf-8"
    )
    assert read_list(file) == ("octo/lib", "octo/other")


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("octo/lib\nnonsense\n")
    with pytest.raises(ConfigError, match=r"list\.txt, line 2: 'nonsense'"):
        read_list(tmp_path / "list.txt")


@pytest.mark.parametrize(
    "text", ["names = 3", "ids = ['a']", "ids = [true]", "nmaes = []", "names = [", "names = ['x']"]
)
def test_a_bad_optout_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "out.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"out\.toml"):
        read_optout(tmp_path / "out.toml")


def test_list_and_names_are_joined(world: World, bench: Bench, tmp_path: Path) -> None:
    for name in ("octo/a", "octo/b"):
        lib(world, name)
    (tmp_path / "list.txt").write_text("OCTO/B\nocto/a\n")
    found = bench.crawl("octo/a", mine__repository_list=tmp_path / "list.txt")
    assert list(found) == ["octo/a", "octo/b"]
    assert [len(one.items) for one in found.values()] == [1, 1]


def test_two_names_of_one_repository_are_one_unit(world: World, bench: Bench) -> None:
    lib(world, "octo/old").rename("octo/new")
    found = bench.crawl("octo/old", "octo/new")
    assert list(found) == ["octo/old"]
    (item,) = found["octo/old"].items
    assert (item.repo, item.full_name, item.instance_id) == ("octo/new", "octo/new", "octo__new-2")
    assert "asked for as octo/old, it is octo/new now" in found["octo/old"].notes


def test_a_rename_keeps_instance_ids_and_asks_for_no_page_again(world: World, bench: Bench) -> None:
    repo = lib(world, "octo/old")
    before = bench.crawl("octo/old")["octo/old"]
    repo.rename("other/new")
    repo.pull("Later", "Fixes #1", merge="squash", at="2025-06-20T00:00:00Z")
    bench.pass_time(days=30)
    bench.forge.log.clear()
    june = bench.crawl("other/new", month="2025-06")["other/new"]
    assert june.unit_id == before.unit_id
    assert [item.instance_id for item in (*before.items, *june.items)] == ["octo__old-2", "octo__old-3"]
    assert june.items[0].full_name == june.items[0].coordinates.full_name == "other/new"
    may = bench.crawl("other/new")["other/new"]
    assert [item.instance_id for item in may.items] == ["octo__old-2"]
    assert len(bench.forge.log.of("pulls")) == 1


def test_a_name_that_another_repository_has_now(world: World, bench: Bench) -> None:
    lib(world, "octo/lib").rename("octo/moved")
    first = bench.crawl("octo/moved")["octo/moved"]
    lib(world, "octo/lib")
    bench.pass_time(hours=1)
    second = bench.crawl("octo/lib")["octo/lib"]
    assert first.unit_id != second.unit_id
    assert second.items[0].instance_id == "octo__lib-2"
    assert first.items[0].instance_id == "octo__moved-2"


def test_the_name_leads_elsewhere_before_it_is_read(world: World, bench: Bench) -> None:
    repo = lib(world, "octo/lib")

    def swap() -> None:
        repo.rename("octo/moved")
        lib(world, "octo/lib")

    bench.forge.after("repositories", 1, swap)
    found = bench.crawl("octo/lib")["octo/lib"]
    assert reason_of(found) is Reason.REPOSITORY_GONE
    assert found.refused is not None
    assert "is another repository now" in found.refused.detail


def test_what_is_not_there_is_asked_for_a_second_time_hours_later(world: World, bench: Bench) -> None:
    lib(world, "octo/lib")
    found = bench.crawl("octo/gone", "octo/lib")
    assert reason_of(found["octo/gone"]) is Reason.REPOSITORY_GONE
    assert len(found["octo/lib"].items) == 1
    assert bench.asked(lambda: bench.crawl("octo/gone", "octo/lib")) == []
    bench.pass_time(hours=7)
    assert "repositories" in bench.asked(lambda: bench.crawl("octo/gone"))
    bench.pass_time(hours=7)
    assert bench.asked(lambda: bench.crawl("octo/gone")) == []


@pytest.mark.parametrize(
    "fields", [{"is_private": True}, {"is_disabled": True}, {"is_locked": True}, {"blocked": "dmca"}]
)
def test_what_may_not_be_seen_is_refused(world: World, bench: Bench, fields: dict[str, object]) -> None:
    lib(world, "octo/lib", **fields)
    assert reason_of(bench.crawl("octo/lib")["octo/lib"]) is Reason.REPOSITORY_UNAVAILABLE


def test_opted_out_by_name_is_not_even_asked_about(world: World, bench: Bench, tmp_path: Path) -> None:
    lib(world, "octo/lib")
    lib(world, "shy/one")
    (tmp_path / "out.toml").write_text('names = ["Shy/*"]')
    found = bench.crawl("shy/one", "octo/lib", mine__optout=tmp_path / "out.toml")
    assert reason_of(found["shy/one"]) is Reason.REPOSITORY_OPTED_OUT
    assert len(found["octo/lib"].items) == 1
    assert "shy" not in str([entry.variables for entry in bench.forge.log])


@pytest.mark.parametrize("text", ['names = ["shy/old"]', "ids = [{id}]", 'names = ["shy/*"]'])
def test_a_rename_does_not_undo_an_optout(world: World, bench: Bench, tmp_path: Path, text: str) -> None:
    repo = lib(world, "shy/old")
    if "*" in text:  # an owner's repositories are known by the name under which they were first seen
        bench.crawl("shy/old")
    repo.rename("octo/new")
    (tmp_path / "out.toml").write_text(text.replace("{id}", str(repo.repo_id)))
    bench.pass_time(days=30)
    found = bench.crawl("octo/new", month="2025-06", mine__optout=tmp_path / "out.toml")["octo/new"]
    assert reason_of(found) is Reason.REPOSITORY_OPTED_OUT
    assert found.items == ()


def test_many_names_are_asked_for_at_once_and_known_ones_not_again(world: World, bench: Bench) -> None:
    names = [f"octo/r{i}" for i in range(45)]
    for name in names:
        world.repository(name, license=None)
    bench.crawl(*names[:25])
    assert [entry.document for entry in bench.forge.log] == ["repositories"] * 2
    bench.forge.log.clear()
    found = bench.crawl(*names)
    assert len(found) == 45
    assert [entry.document for entry in bench.forge.log] == ["repositories"] * 1
    assert {reason_of(one) for one in found.values()} == {Reason.REPOSITORY_LICENCE}


def test_a_document_that_is_too_heavy_is_halved(world: World, bench: Bench) -> None:
    names = [f"octo/r{i}" for i in range(20)]
    for name in names:
        lib(world, name)
    bench.forge.fail("repositories", "heavy", nodes=150)
    found = bench.crawl(*names)
    assert [len(one.items) for one in found.values()] == [1] * 20


def test_a_search_that_finds_more_than_a_thousand_is_cut(world: World, bench: Bench) -> None:
    for i in range(1300):
        day = NOW - timedelta(days=i % 700, minutes=i)
        world.bare(f"octo/r{i}", created_at=f"{day:%Y-%m-%dT%H:%M:%SZ}", stars=i % 7)
    asked = ("language:python", "language:python created:>=2008-01-01")
    wanted = ({repo.repo_id for repo in world if repo.created_at < "2025-06-01"}, {repo.repo_id for repo in world})
    for query, ids in zip(asked, wanted, strict=True):
        found, notes = bench.search(query)
        assert set(found) == ids
        assert notes == ()
    assert len(bench.forge.log.of("searchRepositories")) < 100
    assert bench.asked(lambda: bench.search("language:python")) == []


def test_a_search_that_keeps_some_back_says_so(world: World, bench: Bench) -> None:
    for i in range(1005):
        world.bare(f"octo/r{i}", created_at="2024-01-01T00:00:00Z")
    found, notes = bench.search("language:python")
    assert len(found) == 1000
    assert "counts 1005 repositories and shows 1000" in notes[-1]


def test_units_may_come_from_a_search(world: World, bench: Bench) -> None:
    lib(world, "octo/lib", stars=60)
    lib(world, "octo/few", stars=5)
    found = bench.crawl("octo/lib", mine__repository_search='["language:python stars:>=50"]')
    assert list(found) == ["octo/lib"]


def test_a_search_that_cannot_be_cut_is_refused(world: World, bench: Bench) -> None:
    for i in range(1001):
        world.bare(f"octo/r{i}")
    source = bench.source(mine__repository_search='["stars:>=1 created:>2008-01-01"]')
    with pytest.raises(ConfigError, match="names both"):
        source.units(bench.memo())


def test_a_month_that_has_not_begun_is_refused(world: World, bench: Bench) -> None:
    with pytest.raises(ConfigError, match="has not begun"):
        bench.source("octo/lib", month="2025-07").units(bench.memo())


def test_a_month_that_is_not_closed_yet_is_said(world: World, bench: Bench) -> None:
    lib(world)
    bench.now = NOW - timedelta(days=3)
    assert bench.crawl("octo/lib")["octo/lib"].notes == ("2025-05 is open until 2025-06-08: seen on 2025-06-05 12:00",)
    bench.now = NOW
    assert bench.crawl("octo/lib")["octo/lib"].notes == ()
