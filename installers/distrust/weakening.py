"""Ways in which a recipe could change which tests run, or what runs them; each voids the attempt. Pure."""

from __future__ import annotations

from miner.core.records import Legible, Recipe, Record


class Weakening(Record):
    """One way that was found.

    Attributes:
        mechanism: its name in the table of this module.
        detail: what of the recipe it is.
    """

    mechanism: str
    detail: Legible


def weakenings(recipe: Recipe, declared: Recipe) -> tuple[Weakening, ...]:
    """Return how a model's recipe would weaken the tests; what the project itself declares is no weakening."""
    raise NotImplementedError
