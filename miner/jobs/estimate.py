"""What a stratified sample says about all: estimates with intervals of 95 %; pure functions.

A share has Wilson's interval (E. B. Wilson, "Probable inference", JASA 22, 1927), a mean Student's. Allocation is in
proportion, so that both are no narrower than they have to be. A product of two estimates takes the ends of both, which
is wider than 95 % asks for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist, fmean, variance

from miner.core.records import Record

_TAIL = 0.975
_Z = NormalDist().inv_cdf(_TAIL)


class Interval(Record):
    """An estimate, and between which values it lies."""

    estimate: float
    low: float
    high: float

    def times(self, other: Interval) -> Interval:
        """Return the product; both are not negative."""
        return Interval(estimate=self.estimate * other.estimate, low=self.low * other.low, high=self.high * other.high)

    def scaled(self, factor: float) -> Interval:
        """Return it in another unit."""
        return self.times(exactly(factor))

    def plus(self, other: Interval) -> Interval:
        """Return the sum."""
        return Interval(estimate=self.estimate + other.estimate, low=self.low + other.low, high=self.high + other.high)


class Extrapolation(Record):
    """What all candidates of a month would come to, by a sample of them.

    Attributes:
        units: that there are, and how many of them were looked into.
        candidates: that there are in all units.
        sampled: how many candidates were taken, by stratum: (taken, found in the units looked into).
        seconds: per candidate, by stage.
        tasks: that would be accepted.
        hours: on this machine, with as many workers.
        disk_gb: of image layers.
        points: of the forge.
        money: that language models would cost, in US dollars; what was known in this ledger counts as asked anew.
        assumptions: what the numbers rest on.
    """

    units: int
    units_seen: int
    candidates: Interval
    sampled: dict[str, tuple[int, int]]
    seconds: dict[str, float]
    tasks: Interval
    hours: Interval
    disk_gb: Interval
    points: Interval
    money: Interval
    assumptions: tuple[str, ...] = ()


def exactly(value: float) -> Interval:
    """Return what is known."""
    return Interval(estimate=value, low=value, high=value)


def share(hits: Mapping[str, int], taken: Mapping[str, int], sizes: Mapping[str, int]) -> Interval:
    """Return the share of hits among all, by stratum: hits and number of those taken, and how many there are."""
    n, total = sum(taken.values()), sum(sizes.values())
    if n == 0:
        return Interval(estimate=0.0, low=0.0, high=1.0 if total else 0.0)
    p = sum(sizes[name] / total * hits.get(name, 0) / taken[name] for name in taken if taken[name])
    if n >= total:
        return exactly(p)
    effective = n * (total - 1) / (total - n)  # of a finite number, a sample says more
    middle = (p + _Z**2 / (2 * effective)) / (1 + _Z**2 / effective)
    half = _Z * math.sqrt(p * (1 - p) / effective + _Z**2 / (4 * effective**2)) / (1 + _Z**2 / effective)
    return Interval(estimate=p, low=max(0.0, middle - half), high=min(1.0, middle + half))


def mean(values: Mapping[str, Sequence[float]], sizes: Mapping[str, int]) -> Interval:
    """Return the mean over all, by stratum: the values of those taken, and how many there are."""
    taken = {name: found for name, found in values.items() if found}
    everything = [value for found in taken.values() for value in found]
    total = sum(sizes[name] for name in taken)
    if not everything:
        return exactly(0.0)
    middle = sum(sizes[name] / total * fmean(found) for name, found in taken.items())
    if len(everything) >= total:
        return exactly(middle)
    pooled = variance(everything) if len(everything) > 1 else middle**2  # nothing is known of it: as wide as it is high
    error = 0.0
    for name, found in taken.items():
        spread = variance(found) if len(found) > 1 else pooled
        error += (sizes[name] / total) ** 2 * spread / len(found) * (1 - len(found) / sizes[name])
    half = student(max(1, len(everything) - len(taken))) * math.sqrt(error)
    return Interval(estimate=middle, low=max(0.0, middle - half), high=middle + half)


def student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's distribution.

    Exact for one and two degrees of freedom, else by Cornish and Fisher's expansion (Abramowitz and Stegun, 26.7.5),
    which is right to the second decimal from three on.
    """
    if freedom == 1:
        return math.tan(math.pi * (_TAIL - 0.5))
    if freedom == 2:
        return (2 * _TAIL - 1) * math.sqrt(2 / (1 - (2 * _TAIL - 1) ** 2))
    z, n = _Z, freedom
    return (
        z
        + (z**3 + z) / 4 / n
        + (5 * z**5 + 16 * z**3 + 3 * z) / 96 / n**2
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384 / n**3
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160 / n**4
    )
