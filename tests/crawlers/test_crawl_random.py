"""For any history and any edits while pages are read, the crawl finds what brute force finds, as it was at the end."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from crawl_bench import NOW, Bench, Killed, forge_of, truth
from forge.pulls import open_pull
from forge.records import moment, stamp
from forge.repository import Repo
from forge.world import World
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.core.records import Fact
from miner.crawlers.github.coverage import coverage
from miner.crawlers.github.month import Month

pytestmark = pytest.mark.loopback

MONTHS = ("2025-03", "2025-05", "2025-06")
times = st.builds(
    lambda month, minute: f"{month}-{1 + minute // 1440:02}T{minute // 60 % 24:02}:{minute % 60:02}:00Z",
    st.sampled_from(MONTHS),
    st.integers(0, 7 * 1440 - 1),
)
later = st.none() | st.integers(0, 2000)
histories = st.lists(st.tuples(times, later), min_size=1, max_size=14)
edits = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 13), st.booleans()), max_size=6)


def put(repo: Repo, merged_at: str, touched_after: int | None) -> None:
    after = timedelta(minutes=touched_after or 0)
    updated = None if touched_after is None else stamp(min(moment(merged_at) + after, NOW - timedelta(hours=1)))
    open_pull(repo, "Change", "", merge="squash", at=merged_at, updated=updated)


class Meddler:
    """Touches pull requests, or merges new ones, each time that so many facts were stored."""

    def __init__(self, bench: Bench, repo: Repo, plan: list[tuple[int, int, bool]]) -> None:
        self.bench, self.repo, self.plan = bench, repo, list(plan)
        self.left = self.plan[0][0] if plan else 0

    def __call__(self, fact: Fact) -> None:
        if fact.key.kind != "crawl.page" or not self.plan:
            return
        self.left -= 1
        if self.left > 0:
            return
        _, which, merges = self.plan.pop(0)
        self.left = self.plan[0][0] if self.plan else 0
        self.bench.pass_time(seconds=1)
        with self.repo.world.lock:
            if merges:
                self.repo.pull("New", "", merge="squash", at=self.bench.now)
            else:
                numbers = sorted(head.number for head in self.repo.pulls.heads)
                self.repo.touch(numbers[which % len(numbers)], at=self.bench.now)


@settings(max_examples=settings.default.max_examples // 4)
@given(histories, edits, st.integers(1, 4), st.integers(1, 6))
def test_what_is_found_is_what_there_is(
    history: list[tuple[str, int | None]], plan: list[tuple[int, int, bool]], page: int, cut: int
) -> None:
    world = World()
    repo = world.repository("octo/lib")
    for merged_at, touched in history:
        put(repo, merged_at, touched)
    with forge_of(world) as forge, tempfile.TemporaryDirectory() as folder:
        bench = Bench(forge, Path(folder))
        bench.on_fact = Meddler(bench, repo, plan)
        bench.killed_after = cut
        with suppress(Killed):
            bench.crawl("octo/lib", measure__crawl__page_size=page)
        bench.killed_after = None
        bench.pass_time(minutes=10)
        found = bench.crawl("octo/lib", measure__crawl__page_size=page)["octo/lib"]
        assert found.merged == len(truth(repo))
        sights = coverage(bench.kept("crawl.page"), bench.kept("crawl.walk")).merged_in(Month.of("2025-05"))
        assert {sight.number for sight in sights} == truth(repo)
        bench.on_fact = lambda fact: None
        bench.pass_time(hours=7)
        again = bench.crawl("octo/lib", measure__crawl__page_size=page)["octo/lib"]
        assert again.merged == len(truth(repo))
        sights = coverage(bench.kept("crawl.page"), bench.kept("crawl.walk")).merged_in(Month.of("2025-05"))
        assert {sight.number: stamp(sight.updated_at) for sight in sights} == {
            number: repo.pulls[number].updated_at for number in truth(repo)
        }, "and each as it is now"
        june = bench.crawl("octo/lib", month="2025-06", measure__crawl__page_size=page)["octo/lib"]
        assert june.merged == len(truth(repo, "2025-06"))
