"""What a mechanism of the table is, and what is said where one is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from installers.distrust.changed import Changed
from miner.core.records import Legible, Record


class Weakening(Record):
    """One way that was found.

    Attributes:
        mechanism: its name in a table of this package.
        detail: what of the recipe, or of the environment, it is.
    """

    mechanism: str
    detail: Legible


@dataclass(frozen=True)
class Mechanism:
    """One row of the table.

    Attributes:
        name: never given to anything else.
        reason: why it is void, one sentence for people.
        find: tells what of a changed recipe it is.
    """

    name: str
    reason: str
    find: Callable[[Changed], Iterable[str]]
