"""Environments for commits of repositories with history, and what a later commit of the same era costs.

    python benchmarks/install_history.py --mirrors FOLDER [--only OWNER/NAME ...] [--limit N] [--json FILE]

Of each repository of `benchmarks/corpus/repositories.txt` that the folder has, a hash of its name picks two years of
2017 to 2026; the last commit of the main line before July of each is taken, and the one three commits before it. All of
its test files run at that commit, with no patch, by the same criterion as `install_corpus.py`. The second commit of a
pair is climbed after the first: where it asks for the same things, it reuses the environment, and only the project is
installed anew.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from install_choose import CORPUS, YEARS, Row, number_of
from install_corpus import Bench, climb_all, settings_of, write
from install_tables import Outcome, by, failures, shares, sizes, spread, times
from rich.console import Console
from rich.table import Table

from miner.crawlers.git_repo import GitRepo
from miner.crawlers.given import GivenPull, find_mirror
from miner.crawlers.mirror import Mirror, Remote
from miner.crawlers.tags import read_tags, version_at
from miner.jobs.context import Context, open_context

REPOSITORIES = CORPUS / "repositories.txt"
ERAS = 2
BETWEEN = 3
OWN = 2
"""Layers of an image that are a commit's own: its tree, and what its installation left behind."""
_BRANCH = "heads/main-line"
_console = Console(width=120)


class History(Bench):
    """Climbs the ladder for commits.

    Args:
        context: of the run.
        folder: of repositories, which is only read.
    """

    def __init__(self, context: Context, folder: Path) -> None:
        super().__init__(context)
        self._folder = folder
        self._stores = context.settings.paths.work / "mirrors"

    def rows(self, name: str) -> list[Row]:
        """Return the commits that are taken of a repository, the earlier of a pair first."""
        mirror = self._mirror(name)
        if mirror is None:
            return []
        branch = mirror.names()["HEAD"]
        mirror.bring({_BRANCH: branch}, also={"tags/*": "refs/tags/*"})
        rows = []
        for year in _years(name):
            before = f"--before={year}-07-01T00:00:00Z"
            line = ["log", "--first-parent", before, f"--max-count={BETWEEN + 1}", "--format=%H %ct"]
            found = mirror.repo.run(*line, f"{mirror.remote.space}/{_BRANCH}").decode().splitlines()
            if len(found) > BETWEEN:
                rows += [_row(name, year, text) for text in (found[-1], found[0])]
        return rows

    def repository(self, row: Row) -> tuple[GitRepo, str]:
        """Return the mirror with all contents of a commit."""
        mirror = self._mirror(row.name)
        if mirror is None:
            raise FileNotFoundError(row.name)
        mirror.bring({f"kept/{row.sha256}": row.sha256})
        files = mirror.repo.entries(row.sha256)
        absent = mirror.bring_blobs(frozenset(file.oid for file in files if not file.is_submodule), lenient=True)
        return GitRepo(mirror.path, absent=absent), row.sha256

    def version(self, row: Row, repo: GitRepo, commit: str) -> str:
        """Return the version by the nearest tag."""
        mirror = self._mirror(row.name)
        tags = read_tags(repo, mirror.remote.space) if mirror is not None else ()
        return version_at(repo, tags, commit, int(row.uploaded.timestamp()))[0]

    def _mirror(self, name: str) -> Mirror | None:
        place = find_mirror(self._folder, GivenPull(repo=name, pull=1))
        if place is None:
            return None
        remote = Remote((self._folder / place).absolute().as_uri(), repository_id=0)
        return Mirror(self._stores / f"{name.lower().replace('/', '__')}.git", remote)


def _years(name: str) -> tuple[int, ...]:
    first = number_of(name, "era") % len(YEARS)
    return tuple(sorted({YEARS[first], YEARS[(first + len(YEARS) // ERAS) % len(YEARS)]}))


def _row(name: str, year: int, line: str) -> Row:
    commit, _, moment = line.partition(" ")
    at = datetime.fromtimestamp(int(moment), UTC)
    return Row(name=name, rank=0, half="history", version=commit[:12], year=year, sha256=commit, uploaded_at=at)


def reuse(outcomes: Sequence[Outcome]) -> Table:
    """Return what the second commit of each pair cost, by whether it took over the environment of the first."""
    again: dict[bool, list[float]] = {True: [], False: []}
    for first, second in zip(outcomes[::2], outcomes[1::2], strict=True):
        if first.runs and second.runs:
            same = first.layers[:-OWN] == second.layers[:-OWN]
            again[same].append(second.seconds_own if same else second.seconds)
    table = Table("seconds of the later commit", "count", "median", "p90", "most")
    spread(table, "same environment: only the project is installed anew", again[True])
    spread(table, "another environment", again[False])
    return table


def main() -> int:
    """Climb and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirrors", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", default=[], metavar="OWNER/NAME")
    parser.add_argument("--limit", type=int, help="repositories")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("var/bench-history"))
    parser.add_argument("--pythons", type=Path, help="a folder of interpreters, as the setting `paths.pythons`")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows")
    parser.add_argument("--failures", type=Path, metavar="FILE", help="write the failures with the ends of their logs")
    parser.add_argument("-c", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    if options.pythons is not None:
        options.overrides.append(f"paths.pythons={options.pythons}")
    names = [
        name for name in REPOSITORIES.read_text(encoding="utf-8").split() if name in options.only or not options.only
    ]
    with open_context(settings_of(options.folder, options.workers, options.overrides), "bench-history") as context:
        bench = History(context, options.mirrors)
        rows = [row for name in names[: options.limit] for row in bench.rows(name)]
        note = partial(write, rows=options.json, failed=options.failures)
        halves = (rows[::2], rows[1::2])
        first, second = (climb_all(context, bench, some, options.workers, note) for some in halves)
    outcomes = [one for pair in zip(first, second, strict=True) for one in pair]
    _show(outcomes)
    note(outcomes)
    return 0


def _show(outcomes: Sequence[Outcome]) -> None:
    tables: Iterable[Any] = (
        shares(outcomes, ()),
        by(outcomes, "repository", lambda one: one.row.name),
        by(outcomes, "year", lambda one: str(one.row.year)),
        by(outcomes, "rung of the last attempt", lambda one: one.rung or "none"),
        times(outcomes, ()),
        reuse(outcomes),
        sizes(outcomes),
        failures(outcomes),
    )
    for table in tables:
        _console.print(table)


if __name__ == "__main__":
    sys.exit(main())
