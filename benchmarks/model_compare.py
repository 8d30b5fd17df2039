"""Which language model installs what the other rungs cannot, and for how much money.

    python benchmarks/model_compare.py --models NAME [NAME ...] [--replay FILE] [--from var/bench-install]
        [--half tuning] [--only PACKAGE ...] [--max-cost 1.0] [--folder var/bench-models] [--json FILE]

First the packages of `benchmarks/corpus` climb the ladder with no model. Those that come to no environment are the
failures; for each model, in a run of its own with a budget of its own, they climb again with it. `--from` is the folder
of a run of `install_corpus.py`: what it has measured is known here, so that the first part takes no time; nothing is
written to it. Nothing is remembered from one model to the next.

A model rung has what its budget in `measure.model` allows; `-c measure.model.structured.candidates=10` gives it more
tries, `-c 'measure.ladder.order=["declared","agent"]'` one rung alone. One row of the table is a rung of a model after
its first, third, ... attempt: what a single try would have come to, and what several have.
"""

import argparse
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from install_choose import Row
from install_corpus import Bench, chosen_rows, name_of, settings_of
from model_tables import Shot, Tries, as_table
from rich.console import Console

from installers.attempt import ATTEMPT, attempt_of
from installers.interface import Attempt, Memory, Refusal
from installers.ladder import Installed
from installers.models.desk import Desk, off_because
from installers.models.kept import TRY
from miner.core.errors import InfrastructureFault
from miner.core.ledger import Ledger
from miner.core.memo import Emit
from miner.core.settings import Settings
from miner.engines.local import LocalEngine
from miner.jobs.context import Context, open_context

RUNGS = ("structured", "agent")
SHARED = ("blobs", "downloads", "repos", "debian")
_console = Console(width=120)


class Comparison:
    """Climbs for the packages of one run.

    Args:
        context: of the run.
        model: that is asked; None: none is.
    """

    def __init__(self, context: Context, model: str | None = None) -> None:
        self._context = context
        self._bench = Bench(context)
        self._model = model
        self._desk: Desk | None = None if model is None else context.models

    def climb(self, row: Row, emit: Emit) -> tuple[Row, Tries | None]:
        """Return what came of a row; None where it has no recipe that a model could better."""
        memo, model = self._context.memo(emit), self._model or ""
        try:
            package = self._bench.package(row, memo)
            if isinstance(package.recipe, Refusal):
                return row, None
            with self._context.disk.in_use():
                installed = self._bench.install(package, package.recipe, memo, Memory(), self._desk)
        except InfrastructureFault as fault:
            return row, Tries(model=model, package=name_of(row), fault=f"{fault.reason.value}: {fault}")
        return row, self.tries(row, installed)

    def tries(self, row: Row, installed: Installed) -> Tries:
        """Return the attempts of the model rungs, and whether the others had come to an environment."""
        enough = self._context.settings.measure.model.enough
        made = [attempt_of(fact) for fact in installed.facts if fact.key.kind == ATTEMPT]
        by_number = {one.number: one for one in made}
        ordered = [by_number[number] for number in sorted(by_number)]
        return Tries(
            model=self._model or "",
            package=name_of(row),
            solved=any(healthy(one, enough) for one in ordered if one.rung not in RUNGS),
            shots=tuple(self._shot(one, enough) for one in ordered if one.rung in RUNGS),
        )

    def _shot(self, made: Attempt, enough: float) -> Shot:
        read, written = tokens_of(self._context.ledger, made)
        return Shot(
            rung=made.rung,
            healthy=healthy(made, enough),
            outcome=made.outcome,
            tokens_in=read,
            tokens_out=written,
            money=made.money,
            seconds=made.seconds,
        )


def healthy(made: Attempt, enough: float) -> bool:
    """Whether an attempt leaves nothing to ask a model for (as `installers.models.turns` has it)."""
    return made.ok and (made.share is None or made.share >= enough)


def tokens_of(ledger: Ledger, made: Attempt) -> tuple[int, int]:
    """Return the tokens that were read and written for an attempt, as the endpoint has reported them."""
    read = written = 0.0
    for reply in ledger.get_all(made.asked).values():
        for fact in ledger.facts_of(reply.key.subject):
            if fact.key.kind == TRY and fact.key.input_hash == reply.key.input_hash:
                read += fact.measures.get("input_tokens", 0.0)
                written += fact.measures.get("output_tokens", 0.0)
    return int(read), int(written)


def climb_all(context: Context, comparison: Comparison, rows: Sequence[Row], workers: int) -> dict[str, Tries]:
    """Return what came of all rows that have a recipe, by package."""
    engine: LocalEngine[Row, tuple[Row, Tries | None]] = LocalEngine(workers, context.stop, context.abort)
    found: dict[str, Tries] = {}
    with closing(engine.map(comparison.climb, sorted(rows, key=lambda row: row.size), context.store)) as done:
        for number, (row, tries) in enumerate(done, start=1):
            print(f"[{number}/{len(rows)}] {row.name} {row.version}: {said(tries)}", file=sys.stderr)
            if tries is not None:
                found[tries.package] = tries
            context.disk.look()
    return found


def said(tries: Tries | None) -> str:
    """Return one line about what came of a package."""
    if tries is None:
        return "no recipe"
    if tries.fault:
        return tries.fault
    if tries.solved:
        return "runs without a model"
    shots = ", ".join("healthy" if shot.healthy else shot.outcome for shot in tries.shots)
    return f"${sum(shot.money for shot in tries.shots):.4f}: {shots}" if shots else "fails"


def start_from(other: Path, folder: Path) -> None:
    """Let a new folder know what another one has measured: its ledger as a copy, its large files by links."""
    if (folder / "ledger.sqlite3").exists() or not (other / "ledger.sqlite3").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in SHARED:
        if (other / name).is_dir() and not (folder / name).exists():
            (folder / name).symlink_to((other / name).resolve())
    part = folder / "ledger.part"
    known = f"file:{other / 'ledger.sqlite3'}?mode=ro"
    with closing(sqlite3.connect(known, uri=True)) as source, closing(sqlite3.connect(part)) as target:
        source.backup(target)
    shutil.move(part, folder / "ledger.sqlite3")


def settings_for(options: argparse.Namespace, model: str | None) -> Settings:
    """Return the settings of the part without a model, or of one model's run."""
    ours = list(options.overrides)
    if options.replay is not None:
        ours.append(f"endpoint.replay={options.replay}")
    if model is not None:
        ours += [f"measure.model.order={json.dumps([model])}", f"run.max_cost={options.max_cost}"]
        ours.append("run.max_cost_repository=1e9")
    return settings_of(options.folder, options.workers, ours)


def failures(options: argparse.Namespace) -> list[Row]:
    """Return the packages for which no rung but those of models finds an environment."""
    rows = chosen_rows(options.half, options.only, options.limit)
    with open_context(settings_for(options, None), "bench-models") as context:
        found = climb_all(context, Comparison(context), rows, options.workers)
    return [row for row in rows if (tries := found.get(name_of(row))) and not (tries.solved or tries.fault)]


def compare(options: argparse.Namespace, model: str, rows: Sequence[Row]) -> list[Tries]:
    """Return what one model comes to."""
    settings = settings_for(options, model)
    if because := off_because(settings, os.environ):
        raise SystemExit(f"{model} is not asked: {because}")
    with open_context(settings, "bench-models") as context:
        return list(climb_all(context, Comparison(context, model), rows, options.workers).values())


def write(file: Path | None, tries: Iterable[Tries]) -> None:
    """Write one line of JSON a package and model."""
    if file is not None:
        file.write_text("".join(one.model_dump_json() + "\n" for one in tries), encoding="utf-8")


def main() -> int:
    """Find the failures, ask each model for them, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", required=True, metavar="NAME")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="recorded replies instead of an endpoint")
    parser.add_argument("--from", dest="other", type=Path, metavar="FOLDER", help="of a run of install_corpus.py")
    parser.add_argument("--half", choices=("tuning", "reporting", "all"), default="tuning")
    parser.add_argument("--only", nargs="+", default=[], metavar="PACKAGE")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--max-cost", type=float, default=1.0, help="US dollars that one model may cost")
    parser.add_argument("--at", type=int, nargs="+", default=[1, 3, 10], metavar="N", help="attempts to compare at")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("var/bench-models"))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what came of each package")
    parser.add_argument("-c", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    if options.other is not None:
        start_from(options.other, options.folder)
    rows = failures(options)
    tries: list[Tries] = []
    for model in options.models if rows else ():
        tries += compare(options, model, rows)
        write(options.json, tries)
    _console.print(as_table(tries, options.at))
    return 0


if __name__ == "__main__":
    sys.exit(main())
