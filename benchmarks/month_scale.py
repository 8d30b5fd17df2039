"""A whole month at scale: thousands of repositories, crawled, judged at the gates and released by one process.

    python benchmarks/month_scale.py [--repositories 5000] [--pulls 103000] [--kill]

The test server (`tests/forge`) shows the repositories in a process of its own; `tests/forge/mix.py` says what their
pull requests are like. The job is `miner.jobs.monthly.run`, as `swe-miner run` calls it, in a process of its own. Its
policy asks for more changed files than any pull request has, so that all of them end at the gates: nothing is fetched
by git or installed, which would be measured in hours. Memory is the peak of the job's process. With `--kill` the job is
killed in the middle and started again: what is asked twice is counted.
"""

import argparse
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

MONTH, AS_OF = "2025-05", "2025-06-09T12:00:00Z"
NO_PULL_HAS_SO_MANY_FILES = 1_000_000
PHASES = ("units_of", "discover", "mine_all", "write")


def serve(folder: Path, repositories: int, pulls: int) -> None:
    """Show a world until the standard input ends; what is asked is written to a file, line by line."""
    from forge.limits import Limits
    from forge.scale import Scale, big_world, truth
    from forge.server import Forge

    scale = Scale(repositories=repositories, pulls=pulls, month=MONTH, earlier=0, later=1, as_of=AS_OF)
    world = big_world(scale)
    (folder / "repositories.txt").write_text("".join(f"{repo.full_name}\n" for repo in world), encoding="utf-8")
    taken = [repo for repo in world if repo.license != "GPL-3.0"]
    true = truth(world, scale)
    facts = {
        "merged": sum(len(true[repo.full_name]) for repo in taken),
        "linked": [
            f"{repo.owner}__{repo.name}-{number}"
            for repo in taken
            for number, issues in true[repo.full_name].items()
            if issues
        ],
    }
    (folder / "truth.json").write_text(json.dumps(facts), encoding="utf-8")
    with (folder / "asked.jsonl").open("w", encoding="utf-8") as log, Forge(world, limits=Limits.none()) as forge:
        forge.log.entries = _Written(log)
        print(forge.url, flush=True)
        sys.stdin.read()


class _Written(list[Any]):
    """A log that is written to a file instead of being kept."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file

    def append(self, entry: Any) -> None:
        said = [entry.document or entry.path, entry.points, entry.status, entry.query, dict(entry.variables)]
        self._file.write(json.dumps(said) + "\n")
        self._file.flush()


def work(folder: Path, url: str) -> None:
    """Run the job, and write how long its parts took and what they left in memory."""
    from miner.core.settings import load_settings, run_flags
    from miner.jobs import monthly

    spent: dict[str, dict[str, float]] = {}
    for name in PHASES:
        setattr(monthly, name, _timed(name, getattr(monthly, name), spent))
    flags = run_flags(source="github", month=MONTH, forge_url=url, pilot=None, notify=None)
    own = [
        f"paths.work={folder / 'var'}",
        f"paths.release={folder / 'out'}",
        f"mine.repository_list={folder / 'repositories.txt'}",
        f"policy.pulls.min_files={NO_PULL_HAS_SO_MANY_FILES}",
        "policy.pulls.gate_sample=0",
    ]
    run = _timed("whole", monthly.run, spent)
    summary = run(load_settings(overrides=[*flags, *own]), quiet=True)
    counts = {"decisions": len(summary.decisions), "measured": summary.measured, "spent": summary.spent.model_dump()}
    (folder / "done.json").write_text(json.dumps({"phases": spent, **counts}), encoding="utf-8")


def _timed(name: str, function: Callable[..., Any], spent: dict[str, dict[str, float]]) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        started, worked = time.monotonic(), time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            seconds, worked = time.monotonic() - started, time.process_time() - worked
            spent[name] = {"seconds": seconds, "processor": worked, **_memory()}

    return timed


def _memory() -> dict[str, float]:
    """Return what this process holds, and the most that it ever held; not ru_maxrss, which a parent leaves."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return {name: int(re.findall(rf"{name}:\s+(\d+) kB", status)[0]) / 1024 for name in ("VmRSS", "VmHWM")}


@contextmanager
def served(folder: Path, repositories: int, pulls: int) -> Iterator[str]:
    """Start the server; yield its address."""
    command = [sys.executable, __file__, "--serve", str(folder), str(repositories), str(pulls)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        try:
            yield url
        finally:
            server.stdin.close()


def asked(folder: Path) -> list[list[Any]]:
    """Return what the server was asked."""
    lines = (folder / "asked.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def run(folder: Path, url: str, *, kill_after: int | None = None) -> bool:
    """Run the job; kill it after so many requests. Return whether it came to its end."""
    with subprocess.Popen([sys.executable, __file__, "--work", str(folder), url]) as job:
        while job.poll() is None:
            time.sleep(0.2)
            if kill_after is not None and len(asked(folder)) >= kill_after:
                os.kill(job.pid, signal.SIGKILL)
                job.wait()
                return False
    if job.returncode != 0:
        raise SystemExit(f"the job ended with status {job.returncode}")
    return True


def ask(folder: Path, query: str) -> list[Any]:
    """Return the first column of what the ledger answers; `LAST` stands for its last run."""
    last = "(SELECT run_id FROM runs ORDER BY started_at DESC LIMIT 1)"
    with closing(sqlite3.connect(folder / "var" / "ledger.sqlite3")) as ledger:
        return [row[0] for row in ledger.execute(query.replace("LAST", last))]


def size_mb(path: Path) -> float:
    """Return the size of a file or folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 2**20


def measure(folder: Path, repositories: int, pulls: int, *, kill: bool) -> tuple[Table, Table]:
    """Run everything; return the tables."""
    with served(folder, repositories, pulls) as url:
        true = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
        if kill:
            run(folder, url, kill_after=round(pulls / 50))
            before = len(asked(folder))
        run(folder, url)
        log = asked(folder)
    done = json.loads((folder / "done.json").read_text(encoding="utf-8"))
    found = ask(folder, "SELECT instance_id FROM decisions WHERE run_id = LAST")
    (merged,) = ask(folder, "SELECT sum(merged) FROM intake WHERE run_id = LAST")
    (facts,) = ask(folder, "SELECT count(*) FROM facts")
    missing = len(set(true["linked"]) - set(found))
    phases = Table("phase", "seconds", "of the processor", "resident MiB after it", "peak MiB so far")
    for name in (*PHASES, "whole"):
        spent = done["phases"][name]
        phases.add_row(name, *(f"{spent[what]:.0f}" for what in ("seconds", "processor", "VmRSS", "VmHWM")))
    figures = Table("figure", "measured")
    again = Counter(json.dumps([line[0], line[3], line[4]]) for line in log if line[2] == 200)
    rows: list[tuple[str, str]] = [
        ("repositories", f"{repositories:,}"),
        ("merged pull requests, of", f"{merged:,}, {true['merged']:,}"),
        ("candidates, and linked ones that are missing", f"{len(found):,}, {missing}"),
        ("decided twice", str(len(found) - len(set(found)))),
        ("requests, points", f"{len(log):,}, {sum(line[1] for line in log):,}"),
        ("facts", f"{facts:,}"),
        ("ledger, blobs, release", ", ".join(
            f"{size_mb(path):.0f} MiB"
            for path in (folder / "var" / "ledger.sqlite3", folder / "var" / "blobs", folder / "out")
        )),
        ("peak of the job's memory (target: below 1,024 MiB)", f"{done['phases']['whole']['VmHWM']:.0f} MiB"),
    ]  # fmt: skip
    if kill:
        rows.append(("killed after, asked again", f"{before:,} requests, {sum(again.values()) - len(again)}"))
    for row in rows:
        figures.add_row(*row)
    return phases, figures


def main() -> None:
    """Read the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repositories", type=int, default=5000)
    parser.add_argument("--pulls", type=int, default=103_000, help="3 of 100 in repositories that are refused")
    parser.add_argument("--kill", action="store_true", help="kill the job once in the middle of the crawl")
    parser.add_argument("--keep", type=Path, help="a folder for everything, which is kept")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(Path(arguments.serve[0]), *map(int, arguments.serve[1:]))
        return
    if arguments.work:
        os.environ.setdefault("GITHUB_TOKEN", "any-token")
        work(Path(arguments.work[0]), arguments.work[1])
        return
    with tempfile.TemporaryDirectory() as text:
        folder = arguments.keep or Path(text)
        folder.mkdir(parents=True, exist_ok=True)
        Console().print(*measure(folder, arguments.repositories, arguments.pulls, kill=arguments.kill))


if __name__ == "__main__":
    main()
