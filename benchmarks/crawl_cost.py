"""What a crawl of a month costs, and what the collector of SWE-bench costs on the same server.

    python benchmarks/crawl_cost.py [--repositories 50] [--large 300 1000 3000]

Both ask the test server (`tests/forge`) for the same repositories: many with about 20 merged pull requests a month,
and a few large ones; `tests/forge/mix.py` says what these are like. The collector (`swebench.collect`, installed into
an environment of its own) knows no months. So it is counted three times: as it is (every closed pull request), with
its own `--cutoff_date` at the beginning of the month (it misses what was opened before that), and only what it asks
about the pull requests that were merged in the month, as if it found these for nothing. Diffs are not counted for
either: they are not part of the API, and this project takes them from git.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "crawlers")]

from crawl_bench import Bench, forge_of  # noqa: E402 - needs the path above
from forge.exchange import Entry  # noqa: E402
from forge.scale import Scale, big_world, show, truth  # noqa: E402
from forge.server import Forge  # noqa: E402
from forge.world import World  # noqa: E402

from miner.crawlers.github.answers import assemble  # noqa: E402
from miner.crawlers.github.linking import judge_links  # noqa: E402

COLLECTOR = "swebench==5.0.2"
NEEDS = ("ghapi==1.1.1", "beautifulsoup4", "unidiff", "requests")
MONTH, NEXT = "2025-05", "2025-06"
WEEK_AFTER, LATER, NEXT_WEEK_AFTER = "2025-06-08T12:00:00Z", "2025-06-09T12:00:00Z", "2025-07-08T12:00:00Z"
DRIVER = """
import json, logging, sys
from swebench.collect import build_dataset, print_pulls
logging.disable(logging.ERROR)
names, folder, cutoff = json.load(sys.stdin)
for place, name in enumerate(names):
    pulls = f"{folder}/{place}.jsonl"
    print_pulls.main(name, pulls, "any-token", cutoff_date=cutoff)
    build_dataset.main(pulls, f"{folder}/{place}-tasks.jsonl", "any-token")
"""

Link = tuple[str, int, int]
"""Repository, pull request, issue."""


@dataclass
class Cost:
    """What was asked, and what came of it.

    Attributes:
        pulls: merged in the month, as far as they were seen.
        looked_at: pull requests about which something was asked.
    """

    requests: int = 0
    points: int = 0
    pulls: int = 0
    looked_at: int = 0
    links: set[Link] = field(default_factory=set)


def api_calls(entries: Iterable[Entry]) -> list[Entry]:
    """Return what was asked of the API."""
    return [entry for entry in entries if entry.resource not in ("web", "git")]


class Ours:
    """This project's crawl, month after month, with one ledger."""

    def __init__(self, forge: Forge, folder: Path, names: list[str]) -> None:
        self._bench = Bench(forge, folder)
        self._names = names

    def crawl(self, month: str, now: str) -> Cost:
        """Crawl a month as a run at that time does."""
        bench = self._bench
        bench.now = datetime.fromisoformat(now)
        before = len(bench.forge.log)
        source = bench.source(*self._names, month=month)
        units = list(source.units(bench.memo()))
        random.Random(0).shuffle(units)
        found = {unit: source.discover(unit, bench.memo()) for unit in units}
        asked = api_calls(list(bench.forge.log)[before:])
        cost = Cost(len(asked), sum(entry.points for entry in asked), sum(one.merged for one in found.values()))
        for item in (item for one in found.values() for item in one.items):
            judged = judge_links(assemble(bench.looked_up(item), bench.blobs))
            cost.links |= {(item.full_name, item.number, issue.number) for issue in judged.issues}
        cost.looked_at = cost.pulls
        return cost


class Theirs:
    """The collector of SWE-bench, in an environment of its own."""

    def __init__(self, forge: Forge, folder: Path, names: list[str]) -> None:
        self._forge = forge
        self._folder = folder
        self._names = names

    def collect(self, python: Path, cutoff: str | None, month: dict[str, dict[int, set[int]]]) -> tuple[Cost, Cost]:
        """Run it; return its cost, and the part of it that is about pull requests that were merged in the month."""
        below = self._folder / (cutoff or "whole")
        below.mkdir()
        before = len(self._forge.log)
        subprocess.run(
            [python, "-c", DRIVER],
            input=json.dumps([self._names, str(below), cutoff]),
            env={**os.environ, "GH_HOST": self._forge.api_url},
            text=True,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        asked = api_calls(list(self._forge.log)[before:])
        cost, part = Cost(len(asked), len(asked)), Cost()
        wanted: set[str] = set()
        for place, name in enumerate(self._names):
            for line in (below / f"{place}.jsonl").read_text().splitlines():
                pull = json.loads(line)
                cost.looked_at += 1
                if pull["merged_at"] is not None and pull["number"] in month[name]:
                    cost.pulls += 1
                    issues = {int(number) for number in pull["resolved_issues"]}
                    cost.links |= {(name, pull["number"], issue) for issue in issues}
                    wanted.add(f"{name}/pulls/{pull['number']}")
                    wanted |= {f"{name}/issues/{issue}" for issue in issues}
        part.requests = part.points = sum(_about(entry) in wanted for entry in asked)
        part.pulls = part.looked_at = cost.pulls
        part.links = cost.links
        return cost, part


def _about(entry: Entry) -> str:
    """Return the pull request or issue that a path names."""
    found = re.search(r"/repos/([^/]+/[^/]+/(?:pulls|issues)/\d+)", entry.path)
    return found[1] if found else ""


def install(folder: Path) -> Path:
    """Install the collector from the package index; return its interpreter."""
    uv, python = str(Path(sys.executable).with_name("uv")), folder / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    install = [uv, "pip", "install", "--quiet", "--python", str(python)]
    subprocess.run([*install, *NEEDS], check=True)
    subprocess.run([*install, "--no-deps", COLLECTOR], check=True)
    return python


def rows_of_ours(months: dict[str, Cost]) -> Iterator[tuple[str, ...]]:
    """Return the table of what this crawl costs."""
    for name, cost in months.items():
        per = 1000 / max(1, cost.pulls)
        yield (
            name,
            f"{cost.pulls:,}",
            f"{cost.requests:,}",
            f"{cost.points:,}",
            f"{cost.requests * per:.1f}",
            f"{cost.points * per:.1f}",
        )


def compared(ours: Cost, theirs: Cost, true: set[Link]) -> tuple[str, ...]:
    """Return a line of the table of both: requests for a pull request of the month, and links."""
    both, only_ours, only_theirs = ours.links & theirs.links, ours.links - theirs.links, theirs.links - ours.links
    ratio = (theirs.requests / max(1, theirs.pulls)) / (ours.requests / max(1, ours.pulls))
    return (
        f"{theirs.looked_at:,}",
        f"{theirs.pulls:,}",
        f"{theirs.requests:,}",
        f"{ours.requests:,}",
        f"{ratio:.0f}x",
        f"{len(both):,}",
        f"{len(only_ours & true):,}",
        f"{len(only_ours - true):,}",
        f"{len(only_theirs & true):,}",
        f"{len(only_theirs - true):,}",
    )


def measure(name: str, counts: tuple[int, ...], python: Path, folder: Path, tables: tuple[Table, Table]) -> bool:
    """Measure one mix of repositories; return whether the figures are reached."""
    scale = Scale(counts=counts, month=MONTH, earlier=1, later=1, refused=0.0, as_of=WEEK_AFTER)
    world: World = big_world(scale)
    names = [repo.full_name for repo in world]
    with forge_of(world) as forge:
        ours, theirs = Ours(forge, folder / "ours", names), Theirs(forge, folder, names)
        month = truth(world, scale)
        true = {(repo, pull, issue) for repo, pulls in month.items() for pull, all_ in pulls.items() for issue in all_}
        costs = {"first": ours.crawl(MONTH, WEEK_AFTER)}
        whole, part = theirs.collect(python, None, month)
        cut, _ = theirs.collect(python, MONTH.replace("-", "") + "01", month)
        lines = {"as it is": whole, "cutoff date": cut, "the month's alone": part}
        show(world, replace(scale, as_of=LATER))
        costs["again, a day later"] = ours.crawl(MONTH, LATER)
        show(world, replace(scale, as_of=NEXT_WEEK_AFTER))
        costs["next month"] = ours.crawl(NEXT, NEXT_WEEK_AFTER)
        costs["next month at once again"] = ours.crawl(NEXT, NEXT_WEEK_AFTER)
    for row in rows_of_ours(costs):
        tables[0].add_row(name, *row)
    first = costs["first"]
    for how, cost in lines.items():
        tables[1].add_row(name, how, *compared(first, cost, true))
    reached = all(
        (cost.requests / cost.pulls) / (first.requests / first.pulls) >= 50 and not (cost.links & true) - first.links
        for cost in lines.values()
    )
    return reached and first.links == true and first.pulls == sum(map(len, month.values()))


def main() -> None:
    """Read the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repositories", type=int, default=50, help="small ones")
    parser.add_argument("--large", type=int, nargs="*", default=[300, 1000, 3000], help="pull requests of each")
    arguments = parser.parse_args()
    chance = random.Random(0)
    small = tuple(chance.randint(5, 35) for _ in range(arguments.repositories))
    costs = Table("repositories", "crawl", "merged", "requests", "points", "requests per 1,000", "points per 1,000")
    links = Table(
        "repositories", "collector", "it looks at", "merged in the month", "its requests", "ours", "for a merge",
        "links of both", "only ours", "(false)", "only its", "(false)",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        python = install(folder / "collector")
        reached = True
        for name, counts in ((f"{len(small)} small", small), ("large", tuple(arguments.large))):
            if counts:
                (folder / name).mkdir()
                (folder / name / "ours").mkdir()
                reached &= measure(name, counts, python, folder / name, (costs, links))
    console = Console(width=160)
    console.print(costs, links)
    console.print("targets: at least 50x for a merge, every true link: " + ("reached" if reached else "NOT reached"))


if __name__ == "__main__":
    main()
