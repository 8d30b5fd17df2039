"""Known tasks with known answers: which get an environment in which their published lists come out.

    python benchmarks/install_tasks.py --truth tasks.jsonl --mirrors FOLDER [--repo NAME ...] [--limit N] [--json FILE]

A row of the truth has `instance_id`, `repo`, `pull`, `base_commit`, `created_at`, `fail_to_pass` and `pass_to_pass`.
Each goes through the source `git`, the ladder and both runs, whatever the rules of the policy would say of it. The
published ids were cut by a parser: at the first space, and a parameter `[/a/b/c]` is `[/c]`; ours are cut the same way
before they are compared. Measured is what is kept in `--folder`; a run that was killed goes on where it stopped.
"""

import argparse
import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from install_corpus import settings_of
from rich.console import Console
from rich.table import Table

from installers.attempt import ATTEMPT, attempt_of
from installers.ladder import refusal_of
from miner.core.errors import InfrastructureFault
from miner.core.excerpt import error_excerpt
from miner.core.memo import Emit
from miner.core.records import Fact, Record
from miner.engines.local import LocalEngine
from miner.jobs.context import Context, open_context
from miner.jobs.steps import STEPS, Bench
from validators.case import EXTRACT
from validators.interface import Case

_LONG_PARAMETER = re.compile(r"\[(?:/[^/\]]*)+/([^/\]]+)\]$")
_SHOWN = 6
_console = Console(width=120)


class Known(Record):
    """A row of the truth, as far as it is compared."""

    instance_id: str
    repo: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]


class Compared(Record):
    """What came of a row.

    Attributes:
        complete: the repository holds all contents of its trees.
        reason: why there is no environment or no verdict; "" where the lists could be compared.
        missing: published FAIL_TO_PASS that is not ours.
        extra: FAIL_TO_PASS that is not published.
        lost: published PASS_TO_PASS that is not ours.
    """

    known: Known
    complete: bool = True
    environment: bool = False
    reason: str = ""
    detail: str = ""
    signature: str = ""
    rung: str = ""
    python: str = ""
    share: float | None = None
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    attempts: int = 0
    seconds: float = 0.0
    log: str = ""

    @property
    def equal(self) -> bool:
        """Whether FAIL_TO_PASS is the published list."""
        return not (self.reason or self.missing or self.extra)

    @property
    def recall(self) -> float | None:
        """Share of the published PASS_TO_PASS that is ours, too."""
        whole = len(set(map(cut, self.known.pass_to_pass)))
        return None if self.reason or not whole else 1 - len(self.lost) / whole


def cut(nodeid: str) -> str:
    """Return an id as the published lists have it."""
    return _LONG_PARAMETER.sub(r"[/\1]", nodeid.split(" ", 1)[0])


class Climb:
    """Brings rows through all steps.

    Args:
        context: of the run.
        known: instance id -> row of the truth.
    """

    def __init__(self, context: Context, known: dict[str, Known]) -> None:
        self._context = context
        self._known = known

    def items(self) -> list[Any]:
        """Return what the source finds of the rows that are asked for, in the order of their ids."""
        source, memo = self._context.source, self._context.memo(self._context.store)
        found = [item for unit in source.units(memo) for item in source.discover(unit, memo).items]
        return sorted((item for item in found if source.subject(item) in self._known), key=source.subject)

    def compare(self, item: Any, emit: Emit) -> Compared:
        """Return what came of one row."""
        with self._context.disk.in_use():
            return self._compare(item, emit)

    def _compare(self, item: Any, emit: Emit) -> Compared:
        context, instance_id = self._context, self._context.source.subject(item)
        bench = Bench(context, context.memo(emit), item, instance_id)
        made = Compared(known=self._known[instance_id])
        trail: tuple[Fact, ...] = ()
        case = context.reader.case(instance_id, trail)
        began = time.monotonic()
        for _, step in STEPS:
            try:
                trail += step(bench, case, trail)
            except InfrastructureFault as fault:
                return made.model_copy(update={"reason": f"fault: {fault.reason.value}", "detail": str(fault)})
            case = context.reader.case(instance_id, trail)
            if case.negatives:
                break
        print(f"{instance_id}: {time.monotonic() - began:.0f} s", file=sys.stderr)
        return made.model_copy(update=self._said(made.known, case, trail))

    def _said(self, known: Known, case: Case, trail: Sequence[Fact]) -> dict[str, Any]:
        extracted = next((fact for fact in trail if fact.key.kind == EXTRACT), None)
        last = case.attempt or (case.attempts[-1] if case.attempts else None)
        said: dict[str, Any] = {
            "complete": extracted is not None and not extracted.payload.get("absent"),
            "environment": case.environment is not None,
            "attempts": len(case.attempts),
            "seconds": round(sum(fact.measures.get("wall_s", 0.0) for fact in trail), 1),
        }
        if last is not None:
            said |= {"rung": last.rung, "python": last.recipe.python, "share": last.share}
            made = [fact for fact in trail if fact.key.kind == ATTEMPT]
            shown = attempt_of(made[last.number], self._context.blobs).signatures
            said["signature"] = str(shown[0]) if shown else ""
        if case.verdict is None:
            negative = case.negatives[0] if case.negatives else None
            said["reason"] = negative.code.value if negative is not None else "no verdict"
            said["detail"] = negative.detail if negative is not None else ""
            refusal = refusal_of(trail)
            digest = (refusal.logs.get("log") or refusal.logs.get("events")) if refusal is not None else None
            said["log"] = error_excerpt(self._context.blobs.get_text(digest)) if digest is not None else ""
            return said
        ours, theirs = _cut(case.verdict.fail_to_pass), _cut(known.fail_to_pass)
        said |= {"missing": tuple(sorted(theirs - ours)), "extra": tuple(sorted(ours - theirs))}
        said["lost"] = tuple(sorted(_cut(known.pass_to_pass) - _cut(case.verdict.pass_to_pass)))
        return said


def _cut(ids: Iterable[str]) -> set[str]:
    return {cut(nodeid) for nodeid in ids}


def shares(found: Sequence[Compared]) -> Table:
    """Return the shares by repository; those of rows whose tree is complete are the ones to go by."""
    table = Table("repository", "rows", "complete", "environment", "FAIL_TO_PASS equal", "PASS_TO_PASS recall, median")
    groups: dict[str, list[Compared]] = defaultdict(list)
    for one in found:
        groups[one.known.repo].append(one)
    for name, some in [*sorted(groups.items()), ("all", list(found))]:
        whole = [one for one in some if one.complete]
        recalls = sorted(recall for one in whole if (recall := one.recall) is not None)
        table.add_row(
            name,
            str(len(some)),
            str(len(whole)),
            _share(whole, lambda one: one.environment),
            _share(whole, lambda one: one.equal),
            f"{recalls[len(recalls) // 2]:.3f}" if recalls else "",
        )
    return table


def _share(some: Sequence[Compared], holds: Callable[[Compared], bool]) -> str:
    part = sum(map(holds, some))
    return f"{part} ({part / len(some):.0%})" if some else ""


def failures(found: Iterable[Compared]) -> Table:
    """Return every row that is not equal, or whose PASS_TO_PASS lacks published tests."""
    table = Table("task", "Python", "rung", "reason", "what was said", show_lines=True)
    for one in found:
        if one.equal and not one.lost:
            continue
        reason = one.reason or ("FAIL_TO_PASS differs" if not one.equal else "PASS_TO_PASS lacks some")
        if not one.complete:
            reason += " (tree incomplete)"
        lists = {"missing": one.missing, "extra": one.extra, "lost": one.lost}
        said = [f"{len(ids)} {name}: {', '.join(ids[:_SHOWN])}" for name, ids in lists.items() if ids]
        table.add_row(
            one.known.instance_id, one.python, one.rung, reason, "\n".join([one.signature, one.detail[-300:], *said])
        )
    return table


def read_truth(path: Path, repos: Sequence[str], limit: int | None) -> dict[str, Known]:
    """Return the rows that are asked for, by id."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    wanted = [row for row in rows if not repos or row["repo"] in repos or row["instance_id"] in repos]
    fields = Known.model_fields
    known = [Known.model_validate({name: row[name] for name in fields}) for row in wanted[:limit]]
    return {one.instance_id: one for one in known}


def main() -> int:
    """Measure, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, required=True, metavar="FILE")
    parser.add_argument("--mirrors", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--repo", nargs="+", default=[], metavar="NAME", help="repositories or instance ids")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("var/bench-tasks"))
    parser.add_argument("--pythons", type=Path, help="a folder of interpreters, as the setting `paths.pythons`")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows")
    parser.add_argument("-c", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    if options.pythons is not None:
        options.overrides.append(f"paths.pythons={options.pythons}")
    ours = [f"mine.git_pulls={options.truth}", f"mine.git_mirrors={options.mirrors}", "mine.git_incomplete=true"]
    settings = settings_of(options.folder, options.workers, [*options.overrides, *ours], source="git")
    known = read_truth(options.truth, options.repo, options.limit)
    found: list[Compared] = []
    with open_context(settings, "bench-tasks") as context:
        climb = Climb(context, known)
        engine: LocalEngine[Any, Compared] = LocalEngine(options.workers, context.stop, context.abort)
        with closing(engine.map(climb.compare, climb.items(), context.store)) as results:
            for one in results:
                found.append(one)
                context.disk.look()
                said = one.reason or ("equal" if one.equal else "differs")
                print(f"[{len(found)}/{len(known)}] {one.known.instance_id}: {said}", file=sys.stderr)
    found.sort(key=lambda one: one.known.instance_id)
    _console.print(shares(found))
    _console.print(failures(found))
    if options.json is not None:
        options.json.write_text("".join(one.model_dump_json() + "\n" for one in found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
