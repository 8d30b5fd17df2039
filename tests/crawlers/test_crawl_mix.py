"""A world of many small repositories with every way to name an issue: the crawl finds all true links, and no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crawl_bench import Bench, forge_of
from forge.scale import Scale, big_world, show, truth

from miner.crawlers.github.answers import assemble
from miner.crawlers.github.linking import judge_links

MAY = Scale(counts=(25, 12, 9, 7, 3, 1), later=1, refused=0, linked=0.6)


def links(bench: Bench, *names: str, month: str) -> dict[str, dict[int, set[int]]]:
    """Crawl a month and return by repository the issues that each pull request closes."""
    found = bench.crawl(*names, month=month)
    closed: dict[str, dict[int, set[int]]] = {name: {} for name in names}
    for item in (item for one in found.values() for item in one.items):
        issues = judge_links(assemble(bench.looked_up(item), bench.blobs)).issues
        if issues:
            closed[item.full_name][item.number] = {issue.number for issue in issues}
    return closed


def test_every_true_link_and_no_other_this_month_and_next(tmp_path: Path) -> None:
    world = big_world(MAY)
    names = [repo.full_name for repo in world]

    def true(scale: Scale) -> dict[str, dict[int, set[int]]]:
        return {repo: {pull: all_ for pull, all_ in of.items() if all_} for repo, of in truth(world, scale).items()}

    with forge_of(world) as forge:
        bench = Bench(forge, tmp_path)
        may = true(MAY)
        assert links(bench, *names, month="2025-05") == may
        show(world, replace(MAY, as_of="2025-07-09T00:00:00Z"))
        bench.pass_time(days=31)
        june = true(replace(MAY, month="2025-06"))
        assert links(bench, *names, month="2025-06") == june
    assert sum(map(len, may.values())) > 20
    assert sum(map(len, june.values())) > 20
