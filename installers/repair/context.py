"""What a rule may ask beside the recipe and the signature. Looking something up is a fact; the rules stay pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from installers.pythons import Python
from miner.core.records import Record


class Release(Record):
    """One version of a distribution as of the date of an attempt.

    Attributes:
        wheel: there is a wheel for the attempt's Python and platform.
        requires_python: as the index states it.
    """

    version: str
    uploaded: date | None = None
    wheel: bool = False
    requires_python: str | None = None


def _unknown(_name: str) -> None:
    return None


def _no_releases(_name: str) -> tuple[Release, ...]:
    return ()


def _no_bound(_distribution: str, _module: str, _name: str) -> None:
    return None


@dataclass(frozen=True)
class Context:
    """What is known of the attempt that a rule repairs, and where to look up the rest.

    Attributes:
        cutoff: the package index was taken as of then.
        cutoffs: how many dates there are to fall back to, the first one included.
        pythons: the interpreters that the project admits, oldest first.
        paths: every path of the project's tree.
        test_files: the tests that are going to run.
        provider: module -> the distribution that provides it as of the date, found out by looking into it.
        package: file, library or tool -> the Debian package that has it.
        releases: distribution -> its versions as of the date, oldest first.
        last_with: distribution, module, name ("" for the module itself) -> the last version that has it; None where the
            last one of all has it, or none.
    """

    cutoff: datetime
    cutoffs: int = 1
    pythons: Sequence[Python] = ()
    paths: Sequence[str] = ()
    test_files: Sequence[str] = ()
    provider: Callable[[str], str | None] = _unknown
    package: Callable[[str], str | None] = _unknown
    releases: Callable[[str], tuple[Release, ...]] = _no_releases
    last_with: Callable[[str, str, str], str | None] = _no_bound
