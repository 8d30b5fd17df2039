"""Where the time and the space of the mining job go, read from a ledger.

    python benchmarks/whole_job.py [WORK]        the ledger and blobs in a work folder; `var` by default
    python benchmarks/whole_job.py --run CONFIG  runs the job twice in a folder of its own first: cold, then warm

Seconds are those that the facts themselves carry. Containers are counted by the engine's events, so only with `--run`.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table
from sqlalchemy import create_engine, select

from installers.ladder import environment_of
from miner.core import tables as t
from miner.core.ledger import Ledger
from miner.core.records import Environment, Fact
from miner.core.settings import load_settings
from miner.sandbox.engine import connect
from miner.sandbox.interface import LABEL
from miner.sandbox.janitor import owner_of

SWE_MINER = Path(sys.executable).with_name("swe-miner")
STAGES = {"source": "discover, extract", "install": "install", "validate": "validate"}
_MB = 1e6
_console = Console(width=110)


def facts_of(ledger: Ledger, url: str) -> list[Fact]:
    """Return every fact of a ledger, tombstoned ones included."""
    engine = create_engine(url)
    with closing(engine.connect()) as connection:
        ids = [row.fact_id for row in connection.execute(select(t.facts.c.fact_id).order_by(t.facts.c.observed_at))]
    engine.dispose()
    return [fact for fact in map(ledger.get, ids) if fact is not None]


def table(title: str, *columns: str) -> Table:
    """Return an empty table whose first column is text and whose others are numbers."""
    made = Table(title=title, title_justify="left")
    for position, column in enumerate(columns):
        made.add_column(column, justify="left" if position == 0 else "right")
    return made


def seconds_by_kind(facts: list[Fact]) -> Table:
    """Return how long each kind of fact took; a stage's line is the sum of its kinds."""
    made = table("seconds by stage and kind", "stage, kind", "facts", "sum", "median", "longest")
    kinds: dict[str, list[float]] = defaultdict(list)
    for fact in facts:
        kinds[fact.key.kind].append(fact.measures.get("wall_s", 0.0))
    for prefix, stage in STAGES.items():
        mine = {kind: values for kind, values in kinds.items() if kind.startswith(f"{prefix}.")}
        every = [value for values in mine.values() for value in values]
        made.add_row(stage, str(len(every)), f"{sum(every):.1f}", "", "", style="bold")
        for kind, values in mine.items():
            numbers = (f"{sum(values):.1f}", f"{median(values):.1f}", f"{max(values):.1f}")
            made.add_row(f"  {kind}", str(len(values)), *numbers)
    return made


def seconds_of_test_runs(facts: list[Fact]) -> Table:
    """Return the steps of the test runs: what is left is the container's coming and going."""
    made = table("seconds of the steps of test runs", "step", "runs", "sum", "median")
    runs = [fact for fact in facts if fact.key.kind.startswith("validate.")]
    steps: dict[str, list[float]] = defaultdict(list)
    for fact in runs:
        known = {name[:-2]: value for name, value in fact.measures.items() if name.endswith("_s") and name != "wall_s"}
        for name, value in known.items():
            steps[name].append(value)
        steps["all else"].append(fact.measures["wall_s"] - sum(known.values()))
    for name, values in sorted(steps.items(), key=lambda item: -sum(item[1])):
        made.add_row(name, str(len(values)), f"{sum(values):.1f}", f"{median(values):.2f}")
    return made


def environments_of(ledger: Ledger) -> list[Environment]:
    """Return the environment of each candidate that has one."""
    trails = ([ledger.get(name) for name in decision.trail] for decision in ledger.decisions())
    found = (environment_of(fact for fact in trail if fact is not None) for trail in trails)
    return [environment for environment in found if environment is not None]


def bytes_of_images(environments: list[Environment], facts: list[Fact], work: Path) -> Table:
    """Return what the images hold, layer by layer, and what is kept of them."""
    made = table("bytes", "what", "count", "MB")
    layers = {layer.diff_id: layer.size for environment in environments for layer in environment.layers}
    base = {environment.layers[0].diff_id: environment.layers[0].size for environment in environments}
    logs = {digest for fact in facts for digest in fact.logs.values()}
    kept = {path.name.removesuffix(".zst"): path.stat().st_size for path in (work / "blobs").glob("*/*.zst")}
    rows = {
        "images, each for itself": [sum(layer.size for layer in one.layers) for one in environments],
        "layers, each once": list(layers.values()),
        "  of the base": list(base.values()),
        "  of environments and projects": [size for name, size in layers.items() if name not in base],
        "blobs on disk, compressed": list(kept.values()),
        "  layers": [kept.get(name.removeprefix("sha256:"), 0) for name in layers if name not in base],
        "  logs and reports": [kept.get(name, 0) for name in logs],
    }
    for name, sizes in rows.items():
        made.add_row(name, str(len(sizes)), f"{sum(sizes) / _MB:.1f}")
    return made


def runs_of(ledger: Ledger, facts: list[Fact], url: str, containers: dict[str, int]) -> Table:
    """Return every run: cold where it measured something, warm where all was known."""
    made = table("runs", "run", "started", "status", "seconds", "facts", "containers", "")
    engine = create_engine(url)
    with closing(engine.connect()) as connection:
        measured = [row.run_id for row in connection.execute(select(t.facts.c.run_id))]
    engine.dispose()
    for run in ledger.runs():
        count, seconds = measured.count(run.run_id), ""
        if run.ended_at is not None:
            seconds = f"{(_time(run.ended_at) - _time(run.started_at)).total_seconds():.1f}"
        counted = str(containers.get(run.run_id, "?"))
        row = (run.run_id[:8], run.started_at[:19], run.status, seconds, str(count), counted)
        made.add_row(*row, "cold" if count else "warm")
    made.caption = f"{len(facts)} facts in all"
    return made


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


@contextmanager
def counted(owner: str) -> Iterator[list[str]]:
    """Collect the containers that are created for a ledger while the block runs."""
    found: list[str] = []
    client = connect(load_settings().docker)
    wanted = {"type": "container", "event": "create", "label": f"{LABEL}={owner}"}
    events = client.events(decode=True, filters=wanted)

    def read() -> None:
        found.extend(event["Actor"]["Attributes"]["name"] for event in events)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield found
        time.sleep(1)  # the last events may be on their way
    finally:
        events.close()
        reader.join(10)
        client.close()


def run_twice(config: Path, folder: Path) -> dict[str, int]:
    """Run the job cold, then warm, in a folder with a base image of its own; return the containers of each run."""
    work, out = folder / "var", folder / "out"
    work.mkdir()
    (work / "base").symlink_to((load_settings().paths.work / "base").resolve())
    command = [SWE_MINER, "run", "--config", config, "-c", f"paths.work={work}", "-c", f"paths.release={out}"]
    ledger = Ledger(f"sqlite:///{work / 'ledger.sqlite3'}")
    numbers: dict[str, int] = {}
    for _ in ("cold", "warm"):
        with counted(owner_of(ledger.id, work)) as names:
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        numbers[ledger.runs()[-1].run_id] = len(names)
    ledger.close()
    return numbers


def show(work: Path, containers: dict[str, int]) -> None:
    """Print all tables for a work folder."""
    url = f"sqlite:///{work / 'ledger.sqlite3'}"
    ledger = Ledger(url)
    facts = facts_of(ledger, url)
    tables: list[Any] = [runs_of(ledger, facts, url, containers), seconds_by_kind(facts), seconds_of_test_runs(facts)]
    for made in (*tables, bytes_of_images(environments_of(ledger), facts, work)):
        _console.print(made)
    ledger.close()


def main() -> None:
    """Read the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", nargs="?", type=Path, default=Path("var"), help="the work folder of earlier runs")
    parser.add_argument("--run", type=Path, metavar="CONFIG", help="run the job with this configuration first")
    arguments = parser.parse_args()
    if arguments.run is not None:
        with tempfile.TemporaryDirectory() as folder:
            show(Path(folder) / "var", run_twice(arguments.run.resolve(), Path(folder)))
    elif (arguments.work / "ledger.sqlite3").is_file():
        show(arguments.work, {})
    else:
        print(f"there is no ledger in {arguments.work}: run `make mine` first, or name another work folder")


if __name__ == "__main__":
    main()
