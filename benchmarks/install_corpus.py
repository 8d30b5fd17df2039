"""How many real packages get a running environment: the whole ladder on the packages of `benchmarks/corpus`.

    python benchmarks/install_corpus.py [--half tuning] [--only NAME ...] [--limit N] [--workers 2] [--json FILE]

Each package is a repository with one commit, as the source `pypi` makes it, with all of its test files and no patch. It
runs where its whole suite collects without unexplained errors and enough of its tests pass (`measure.ladder.enough`).
The denominator is the frozen list: packages whose source distribution holds a file that pytest would collect.

What is measured is kept in a ledger in `--folder`: a run that was killed goes on where it stopped, and a second one
only prints. `--warm N` measures N environments again, with the caches of wheels and interpreters filled.
"""

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from install_choose import Row, collected, read_rows
from install_tables import Outcome, failures_as_text, show

from installers.attempt import ATTEMPT, InstallCase, attempt_of
from installers.describe import describe
from installers.health import TestSide
from installers.interface import Memory, Refusal, Tree
from installers.ladder import Installed, chosen, install, steps_of
from installers.models.desk import Desk
from installers.pythons import chosen_among
from installers.share import Suite
from installers.suite import KIND as SUITE
from installers.suite import suite_of
from miner.core.errors import InfrastructureFault, Interrupted
from miner.core.excerpt import error_excerpt
from miner.core.ledger import fact_id
from miner.core.memo import Emit, Memo
from miner.core.records import Fact, FactKey, Observation, Producer, Recipe, SourceFile
from miner.core.settings import Settings, load_settings
from miner.crawlers.archive import read_archive
from miner.crawlers.declarations import MAX_BYTES, is_declaration
from miner.crawlers.git_image import pack_single_commit
from miner.crawlers.git_repo import GitRepo, make_repo
from miner.crawlers.index import IndexClient
from miner.crawlers.texts import read_texts
from miner.engines.local import LocalEngine
from miner.jobs.context import Context, open_context
from miner.project.facts import project_folder

SOURCE = Producer(name="bench.source", epoch=1)
KIND = "bench.source"
BRANCH = "base"
SHOWN = 5
GROUND = ("install.interpreter", "install.ground")
"""Kinds of facts about what all environments of one Python stand on: interpreters, Debian packages."""


@dataclass(frozen=True)
class Package:
    """A package as the installers see it; everything but its repository is known from one fact."""

    row: Row
    recipe: Recipe | Refusal
    tree: Tree
    tree_id: str
    tests: tuple[str, ...]

    @property
    def instance_id(self) -> str:
        """Its name in facts and images."""
        return name_of(self.row)


def name_of(row: Row) -> str:
    """Return the instance id of a row."""
    if "/" in row.name:
        return f"{row.name.replace('/', '__')}-{row.sha256[:12]}"
    return f"pypi__{row.name}-{row.version.replace('!', '__').replace('+', '_')}"


class Bench:
    """Climbs the ladder for packages.

    Args:
        context: of the run.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        work = context.settings.paths.work
        self._index = IndexClient(context.settings.index, work / "downloads", stopped=context.stop)
        self._repos = work / "repos"
        self._pythons = chosen_among(context.settings)

    def package(self, row: Row, memo: Memo) -> Package:
        """Return a package; its files are read once."""
        fact = memo.measure(SOURCE, KIND, name_of(row), {"row": row.sha256}, partial(self._read, row))
        blobs = self._context.blobs
        texts: Mapping[str, str] = json.loads(blobs.get(fact.blobs["files"]))
        files = {path: text.encode("utf-8", "surrogateescape") for path, text in texts.items()}
        paths = list(fact.payload["paths"])
        tests = tuple(collected(paths, dict(files), project_folder(paths)))
        version = fact.payload["version"]
        recipe = describe(files, paths, self._pythons, row.uploaded, tests, version=version)
        return Package(row, recipe, Tree(files, paths), fact.payload["tree"], tests)

    def climb(self, row: Row, emit: Emit) -> Outcome:
        """Return what came of a row."""
        began, known = time.monotonic(), len(self._context.new_facts)
        memo = self._context.memo(emit)
        try:
            package = self.package(row, memo)
            if isinstance(package.recipe, Refusal):
                return Outcome(row=row, reason=package.recipe.reason.value, detail=package.recipe.detail)
            with self._context.disk.in_use():
                installed = self.install(package, package.recipe, memo, self._context.memory)
        except InfrastructureFault as fault:
            return Outcome(row=row, reason=f"fault: {fault.reason.value}", detail=str(fault))
        except Interrupted:
            raise
        except Exception as error:  # noqa: BLE001 - a bug must not end the run of all other packages
            return Outcome(row=row, reason="bug", detail=repr(error), log=traceback.format_exc())
        made = self.outcome(row, installed)
        fresh = sum(fact_id(fact.key) in self._context.new_facts for fact in installed.facts)
        cold = len(self._context.new_facts) > known
        return made.model_copy(update={"fresh": fresh, "wall_s": time.monotonic() - began if cold else 0.0})

    def install(
        self, package: Package, recipe: Recipe, memo: Memo, memory: Memory, models: Desk | None = None
    ) -> Installed:
        """Climb the ladder."""
        case = InstallCase(
            instance_id=package.instance_id,
            repository=package.row.name if "/" in package.row.name else f"pypi/{package.row.name}",
            recipe=recipe,
            created_at=package.row.uploaded,
            pack=partial(self._pack, package.row),
            tree=package.tree_id,
            files=package.tree,
            side=TestSide(package.tests, b"", b""),
        )
        return install(self._context.workshop(), memo, case, memory, models)

    def outcome(self, row: Row, installed: Installed) -> Outcome:
        """Compute what the facts say; the seconds are those that measuring took, whenever that was."""
        facts, blobs = installed.facts, self._context.blobs
        attempts = tuple(attempt_of(fact, blobs) for fact in facts if fact.key.kind == ATTEMPT)
        best = chosen(attempts)
        last = best or (attempts[-1] if attempts else None)
        enough = self._context.settings.measure.ladder.enough
        seconds = {fact.key: fact.measures.get("wall_s", 0.0) for fact in facts}
        own = [key for key in seconds if key.subject == name_of(row)]
        ground = [key for key in seconds if key.kind in GROUND]
        common: dict[str, Any] = {
            "row": row,
            "attempts": len(attempts),
            "facts": len(installed.facts),
            "seconds": round(sum(seconds.values()) - sum(map(seconds.__getitem__, ground)), 1),
            "seconds_ground": round(sum(map(seconds.__getitem__, ground)), 1),
            "seconds_own": round(sum(map(seconds.__getitem__, own)), 1),
        }
        if last is None:
            return Outcome(reason="no attempt", **common)
        common |= {
            "rung": last.rung,
            "python": last.recipe.python,
            "mode": "" if last.mode is None else last.mode.value,
            "share": last.share,
            "passed": last.passed,
            "total": last.total,
            "broken": last.broken,
            "edits": tuple(edit.rule for edit in last.edits),
            "signatures": tuple(map(str, last.signatures)),
            "detail": last.detail,
            "layers": () if last.environment is None else last.environment.layers,
        }
        if best is None:
            refusal = installed.refusal
            code = refusal.outcome if refusal is not None else last.outcome
            return Outcome(reason=code, log=self._log(refusal), **common)
        tested = [fact for fact in steps_of(facts, best) if fact.key.kind == SUITE]
        said = suite_of(tested[-1], blobs) if tested else Suite()
        common |= {"uncollected": tuple(said.uncollected), "ended": said.ended}
        if best.share is not None and best.share >= enough and not best.broken:
            return Outcome(**common)
        why = "broken collection" if best.broken else "too few pass" if best.share is not None else "no test ran"
        texts = [f"{name}\n{error_excerpt(text)}" for name, text in said.uncollected.items()][:SHOWN]
        return Outcome(reason=why, log="\n".join([*texts, *said.quotes]), **common)

    def _log(self, fact: Fact | None) -> str:
        if fact is None:
            return ""
        digest = fact.logs.get("log") or fact.logs.get("events")
        text = self._context.blobs.get_text(digest) if digest is not None else ""
        return f"{fact.payload.get('detail', '')}\n{error_excerpt(text)}"

    def _read(self, row: Row) -> Observation:
        repo, commit = self.repository(row)
        files = repo.files(commit)
        texts = read_texts(repo, files, is_declaration, MAX_BYTES, [])
        return Observation(
            payload={
                "tree": repo.tree_of(commit),
                "paths": [file.path for file in files],
                "version": self.version(row, repo, commit),
            },
            blobs={"files": self._context.blobs.put_text(json.dumps(texts, sort_keys=True))},
        )

    def repository(self, row: Row) -> tuple[GitRepo, str]:
        """Return the repository of a row and the commit in it; it is made where it is not there."""
        path = self._repos / f"{name_of(row)}.git"
        if not path.is_dir():
            found = next(file for file in self._index.release_files(row.name).files if file.sha256 == row.sha256)
            source = SourceFile(
                filename=row.filename, sha256=row.sha256, size=row.size, uploaded_at=row.uploaded, url=found.url
            )
            limits = self._context.settings.measure.archive
            entries = read_archive(self._index.download(source), row.filename, limits).entries
            make_repo(path, [(BRANCH, entries, row.uploaded, f"{row.name} {row.version}")])
        repo = GitRepo(path)
        return repo, repo.commit_of(f"refs/heads/{BRANCH}")

    def version(self, row: Row, _repo: GitRepo, _commit: str) -> str:
        """Return the version of a row where the tree does not say it."""
        return row.version

    def _pack(self, row: Row, out: BinaryIO) -> None:
        pack_single_commit(*self.repository(row), out)


class Forgetful:
    """Facts of a measurement that is made again: only of the ground, which images share, is anything known before."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._own: list[Fact] = []

    def find(self, key: FactKey) -> list[Fact]:
        """Return what was measured here."""
        if key.kind in (*GROUND, KIND):
            return self._context.ledger.find(key)
        same = key.model_copy(update={"ordinal": 0})
        return [fact for fact in self._own if fact.key == same] if key.ordinal != -1 else []

    def memo(self) -> Memo:
        """Return a memo that remembers nothing else."""
        return Memo(self.find, self._own.append)


def warm(bench: Bench, context: Context, rows: Iterable[Row]) -> list[float]:
    """Return how long the climbs of some packages take where everything that can be cached is."""
    seconds = []
    for row in rows:
        memo = Forgetful(context).memo()
        package = bench.package(row, memo)
        if isinstance(package.recipe, Refusal):
            continue
        began = time.monotonic()
        bench.install(package, package.recipe, memo, context.memory)
        seconds.append(time.monotonic() - began)
        print(f"warm: {row.name} {seconds[-1]:.1f} s", file=sys.stderr)
    return seconds


def climb_all(
    context: Context, bench: Bench, rows: Sequence[Row], workers: int, note: Callable[[Iterable[Outcome]], None]
) -> list[Outcome]:
    """Return what came of all rows, in their order; small ones are worked on first.

    Args:
        context: of the run.
        bench: climbs.
        rows: what to climb for.
        workers: how many at once.
        note: is told all that is known so far, after each of them.
    """
    engine: LocalEngine[Row, Outcome] = LocalEngine(workers, context.stop, context.abort)
    found: dict[str, Outcome] = {}
    with closing(engine.map(bench.climb, sorted(rows, key=lambda row: row.size), context.store)) as outcomes:
        for outcome in outcomes:
            found[name_of(outcome.row)] = outcome
            said = f"{outcome.reason} {outcome.signature}" if outcome.reason else "runs"
            said += f" ({outcome.passed} of {outcome.total})" if outcome.total else ""
            said += f"\n{outcome.log}" if outcome.reason == "bug" else ""
            print(f"[{len(found)}/{len(rows)}] {outcome.row.name} {outcome.row.version}: {said}", file=sys.stderr)
            note(found.values())
            context.disk.look()
    return [found[name_of(row)] for row in rows]


def write(outcomes: Iterable[Outcome], rows: Path | None, failed: Path | None) -> None:
    """Write all rows, and the failures with the ends of their logs, to the files that were asked for."""
    some = list(outcomes)
    if rows is not None:
        rows.write_text("".join(one.model_dump_json() + "\n" for one in some), encoding="utf-8")
    if failed is not None:
        failed.write_text(failures_as_text(some), encoding="utf-8", errors="replace")


def settings_of(folder: Path, workers: int, overrides: Iterable[str], source: str = "pypi") -> Settings:
    """Return the settings of a run in a folder of its own, which shares the base image with other runs."""
    ours = [f"mine.source={source}", f"paths.work={folder}", f"run.workers={workers}"]
    settings = load_settings(overrides=[*overrides, *ours])
    folder.mkdir(parents=True, exist_ok=True)
    shared = load_settings().paths.work / "base"
    if shared.is_dir() and not (folder / "base").exists():
        (folder / "base").symlink_to(shared.resolve())
    return settings


def chosen_rows(half: str, only: list[str], limit: int | None) -> list[Row]:
    """Return the rows of the denominator that are asked for."""
    counted = [row for row in read_rows() if row.counts]
    return [row for row in counted if (row.name in only if only else half in ("all", row.half))][:limit]


def main() -> int:
    """Climb and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("tuning", "reporting", "all"), default="tuning")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("var/bench-install"))
    parser.add_argument("--pythons", type=Path, help="a folder of interpreters, as the setting `paths.pythons`")
    parser.add_argument("--warm", type=int, default=0, metavar="N", help="measure N running environments again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows")
    parser.add_argument("--failures", type=Path, metavar="FILE", help="write the failures with the ends of their logs")
    parser.add_argument("-c", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    if options.pythons is not None:
        options.overrides.append(f"paths.pythons={options.pythons}")
    rows = chosen_rows(options.half, options.only, options.limit)
    with open_context(settings_of(options.folder, options.workers, options.overrides), "bench-install") as context:
        bench = Bench(context)
        note = partial(write, rows=options.json, failed=options.failures)
        outcomes = climb_all(context, bench, rows, options.workers, note)
        again = [outcome.row for outcome in outcomes if outcome.runs][: options.warm]
        seconds = warm(bench, context, again)
    show(outcomes, read_rows(), seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
