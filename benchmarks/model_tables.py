"""The table of the comparison of language models: what a rung of a model has come to after so many attempts. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from math import sqrt

from rich.table import Table

from miner.core.records import Legible, Record

_Z = 1.959964  # 95 %


class Shot(Record):
    """One attempt of a model rung.

    Attributes:
        healthy: it came to an environment that is good enough to end the asking.
        outcome: of the attempt.
        tokens_in: that the endpoint reported; `tokens_out` the same.
        money: US dollars, at the upper bound where the endpoint reported nothing.
        seconds: of asking, building and testing.
    """

    rung: str
    healthy: bool
    outcome: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    money: float = 0.0
    seconds: float = 0.0


class Tries(Record):
    """What a model has come to for one package.

    Attributes:
        solved: rungs that ask no model had come to an environment.
        fault: of the infrastructure: it says nothing about the model.
    """

    model: str
    package: str
    solved: bool = False
    fault: Legible = ""
    shots: tuple[Shot, ...] = ()


class Line(Record):
    """What a rung of a model has come to after so many attempts at each package.

    Attributes:
        rung: "all" for those of both rungs, in their order.
        at: attempts at each package, at most.
        packages: at which there was one at all.
        attempts: that were made.
    """

    model: str
    rung: str
    at: int
    packages: int
    healthy: int
    attempts: int
    tokens_in: int
    tokens_out: int
    money: float
    seconds: float

    @property
    def share(self) -> float:
        """Of the packages those with a healthy environment."""
        return self.healthy / self.packages if self.packages else 0.0

    @property
    def money_each(self) -> float | None:
        """Money for one healthy environment, that of the others included; None where there is none."""
        return self.money / self.healthy if self.healthy else None


def wilson(part: int, whole: int) -> tuple[float, float]:
    """Return the interval of a share at 95 %: Wilson's, which holds for few and for none.

    https://www.itl.nist.gov/div898/handbook/prc/section2/prc241.htm
    """
    if not whole:
        return 0.0, 1.0
    share, square = part / whole, _Z * _Z
    middle = share + square / (2 * whole)
    reach = _Z * sqrt(share * (1 - share) / whole + square / (4 * whole * whole))
    scale = 1 + square / whole
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)


def lines(tries: Iterable[Tries], at: Sequence[int]) -> Iterator[Line]:
    """Yield a line for each model, in the order in which they come, each of its rungs and each number of attempts."""
    by_model: dict[str, list[Tries]] = {}
    for one in tries:
        if not one.fault:
            by_model.setdefault(one.model, []).append(one)
    for model, some in by_model.items():
        rungs = list(dict.fromkeys(shot.rung for one in some for shot in one.shots))
        for rung in rungs if len(rungs) < 2 else [*rungs, "all"]:
            shots = [tuple(shot for shot in one.shots if rung in (shot.rung, "all")) for one in some]
            yield from (line(model, rung, number, [one for one in shots if one]) for number in sorted(set(at)))


def line(model: str, rung: str, at: int, shots: Sequence[Sequence[Shot]]) -> Line:
    """Return what the first attempts at each package have come to."""
    first = [one[:at] for one in shots]
    every = [shot for one in first for shot in one]
    return Line(
        model=model,
        rung=rung,
        at=at,
        packages=len(first),
        healthy=sum(any(shot.healthy for shot in one) for one in first),
        attempts=len(every),
        tokens_in=sum(shot.tokens_in for shot in every),
        tokens_out=sum(shot.tokens_out for shot in every),
        money=sum(shot.money for shot in every),
        seconds=sum(shot.seconds for shot in every),
    )


def as_table(tries: Sequence[Tries], at: Sequence[int]) -> Table:
    """Return the one table."""
    names = (
        "model",
        "rung",
        "up to",
        "healthy",
        "share, 95 %",
        "attempts",
        "tokens in",
        "out",
        "$",
        "$ each",
        "seconds",
    )
    title = "what models come to: after so many attempts at each package; $ for each healthy environment"
    table = Table(*names, title=title, title_justify="left")
    for one in lines(tries, at):
        low, high = wilson(one.healthy, one.packages)
        each = "" if one.money_each is None else f"{one.money_each:.4f}"
        table.add_row(
            one.model,
            one.rung,
            str(one.at),
            f"{one.healthy} of {one.packages}",
            f"{one.share:.0%}, {low:.0%}-{high:.0%}",
            str(one.attempts),
            str(one.tokens_in),
            str(one.tokens_out),
            f"{one.money:.4f}",
            each,
            f"{one.seconds:.0f}",
        )
    if faulted := sum(bool(one.fault) for one in tries):
        table.caption = f"{faulted} left out: the infrastructure was at fault; run it again"
    return table
