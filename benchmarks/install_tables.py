"""The tables of the benchmarks of installing: shares, seconds and bytes, and every failure with its signature."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import median, quantiles

from install_choose import Row
from rich.console import Console
from rich.table import Table

from miner.core.records import Layer, Legible, Record

_MB = 1e6
_console = Console(width=120)


class Outcome(Record):
    """What came of one package.

    Attributes:
        reason: why it does not run; "" where it does.
        rung: that the attempt is of which counts: the best, else the last one.
        broken: number of test files that cannot be collected, which is not explained; `uncollected` names what cannot.
        ended: how the run of its tests ended before its time, "" where it did not.
        edits: rules that changed its recipe.
        facts: used in the climb, and `fresh` of them measured in this run.
        seconds: that measuring took, in whichever run, without those for the ground.
        seconds_ground: for interpreters and Debian packages, which all environments of one Python share.
        seconds_own: the same without the steps that packages share: locks and environments.
        wall_s: of the climb in this run, 0 where all was known.
    """

    row: Row
    reason: str = ""
    detail: Legible = ""
    rung: str = ""
    python: str = ""
    mode: str = ""
    share: float | None = None
    passed: int = 0
    total: int = 0
    broken: int = 0
    uncollected: tuple[str, ...] = ()
    ended: str = ""
    edits: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    layers: tuple[Layer, ...] = ()
    attempts: int = 0
    facts: int = 0
    fresh: int = 0
    seconds: float = 0.0
    seconds_ground: float = 0.0
    seconds_own: float = 0.0
    wall_s: float = 0.0
    log: Legible = ""

    @property
    def runs(self) -> bool:
        """Whether its suite runs."""
        return not self.reason

    @property
    def signature(self) -> str:
        """The most telling signature."""
        return self.signatures[0] if self.signatures else ""


def show(outcomes: Sequence[Outcome], corpus: Sequence[Row], warm: Sequence[float]) -> None:
    """Print all tables."""
    if not outcomes:
        _console.print("nothing was asked for")
        return
    keys: dict[str, Callable[[Outcome], str]] = {
        "rung of the last attempt": lambda one: one.rung or "none",
        "back end": lambda one: one.row.backend,
        "year": lambda one: str(one.row.year),
        "Python": lambda one: one.python or "none",
    }
    _console.print(shares(outcomes, corpus))
    for title, key in keys.items():
        _console.print(by(outcomes, title, key))
    for table in (times(outcomes, warm), sizes(outcomes), failures(outcomes)):
        _console.print(table)


def shares(outcomes: Sequence[Outcome], corpus: Sequence[Row]) -> Table:
    """Return the share of running suites, of each half and of all packages that were walked."""
    table = Table("", "run", "of", "share", title="running suites", title_justify="left")
    for half in ("tuning", "reporting", "history"):
        some = [one for one in outcomes if one.row.half == half]
        if some:
            _add(table, f"packages with tests, {half} half", sum(one.runs for one in some), len(some))
    wanted = {row.name for row in corpus if row.counts and row.half in {one.row.half for one in outcomes}}
    if wanted == {one.row.name for one in outcomes}:
        walked = [row for row in corpus if row.half in {one.row.half for one in outcomes}]
        _add(table, "all packages of the ranking that were walked", sum(one.runs for one in outcomes), len(walked))
    return table


def by(outcomes: Sequence[Outcome], title: str, key: Callable[[Outcome], str]) -> Table:
    """Return the shares by something."""
    table = Table(title, "run", "of", "share")
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        groups[key(one)].append(one)
    for name, some in sorted(groups.items()):
        _add(table, name, sum(one.runs for one in some), len(some))
    return table


def times(outcomes: Sequence[Outcome], warm: Sequence[float]) -> Table:
    """Return what it cost."""
    table = Table("cost", "count", "median", "p90", "most")
    spread(table, "seconds, all packages", [one.seconds for one in outcomes])
    spread(table, "seconds, those that run", [one.seconds for one in outcomes if one.runs])
    spread(table, "seconds, measured again with warm caches", list(warm))
    spread(table, "seconds of the ground, measured once for each", [one.seconds_ground for one in outcomes])
    spread(table, "attempts", [float(one.attempts) for one in outcomes])
    facts, fresh = sum(one.facts for one in outcomes), sum(one.fresh for one in outcomes)
    table.caption = f"facts used: {facts}, of these known before: {facts - fresh}"
    return table


def sizes(outcomes: Sequence[Outcome]) -> Table:
    """Return the bytes of the images: what one alone holds, and what it shares with others."""
    table = Table("MB of an image", "count", "median", "p90", "most")
    some = [one for one in outcomes if one.runs and one.layers]
    held = Counter(layer.diff_id for one in some for layer in {item.diff_id: item for item in one.layers}.values())
    own = [sum(layer.size for layer in one.layers if held[layer.diff_id] == 1) / _MB for one in some]
    shared = [sum(layer.size for layer in one.layers if held[layer.diff_id] > 1) / _MB for one in some]
    spread(table, "own (in no other image of the corpus)", own)
    spread(table, "shared", shared)
    return table


def failures(outcomes: Sequence[Outcome]) -> Table:
    """Return every failure with its signature and one line."""
    table = Table("package", "year", "Python", "reason", "signature", "what was said", show_lines=True)
    for one in sorted((one for one in outcomes if not one.runs), key=lambda one: (one.reason, one.signature)):
        name = f"{one.row.name} {one.row.version}"
        table.add_row(name, str(one.row.year), one.python, one.reason, one.signature, _said(one))
    return table


def _said(one: Outcome) -> str:
    """Return what is told of a failure in a line."""
    passed = f"{one.passed} of {one.total} pass" if one.total else ""
    last = one.detail.strip().splitlines()[-1:]
    return "; ".join(text for text in (passed, one.ended, *one.uncollected[:2], *(line[:160] for line in last)) if text)


def failures_as_text(outcomes: Iterable[Outcome]) -> str:
    """Return the failures with the ends of their logs, as Markdown."""
    parts = []
    for one in sorted((one for one in outcomes if not one.runs), key=lambda one: (one.reason, one.signature)):
        facts = f"{one.row.year}, Python {one.python}, {one.row.backend}, rung {one.rung}, {one.attempts} attempts"
        lines = [f"## {one.row.name} {one.row.version}: {one.reason}", facts]
        lines += [f"passed {one.passed} of {one.total}; broken: {', '.join(one.uncollected[:5]) or 'none'} {one.ended}"]
        lines += [f"signatures: {'; '.join(one.signatures[:8]) or 'none'}; edits: {', '.join(one.edits) or 'none'}"]
        parts.append("\n".join([*lines, "```", one.detail[-1500:], one.log[:4000], "```", ""]))
    return "\n".join(parts)


def _add(table: Table, name: str, part: int, whole: int) -> None:
    table.add_row(name, str(part), str(whole), f"{part / whole:.1%}" if whole else "")


def spread(table: Table, name: str, values: list[float]) -> None:
    """Add a row with the median, the ninetieth percentile and the most of some values."""
    if not values:
        return
    ninetieth = quantiles(values, n=10, method="inclusive")[-1] if len(values) > 1 else values[0]
    table.add_row(name, str(len(values)), f"{median(values):.1f}", f"{ninetieth:.1f}", f"{max(values):.1f}")
