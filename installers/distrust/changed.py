"""What a recipe has that recipes of ours have not. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from installers.distrust.words import Option, options_of
from miner.core.records import Recipe

_LINES = ("requirements", "constraints", "overrides", "build_requirements", "build_constraints")


@dataclass(frozen=True)
class Changed:
    """A model's recipe against recipes that no model made.

    Attributes:
        trusted: what the project declares first, then what rungs without a model tried.
        paths: of the base tree; None where they are not known.
    """

    recipe: Recipe
    trusted: tuple[Recipe, ...]
    paths: tuple[str, ...] | None = None

    def by_all(self, differs: Callable[[Recipe], bool]) -> bool:
        """Whether something is so of every recipe of ours."""
        return all(differs(one) for one in self.trusted)

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """Options for pytest that no recipe of ours has, or not as often."""
        known = [Counter(options_of(one.addopts)) for one in self.trusted]
        return tuple(
            option
            for option, count in Counter(options_of(self.recipe.addopts)).items()
            if all(one[option] < count for one in known)
        )

    @cached_property
    def dropped_options(self) -> tuple[Option, ...]:
        """Options that every recipe of ours has and this one has not."""
        own = Counter(options_of(self.recipe.addopts))
        shared = [Counter(options_of(one.addopts)) for one in self.trusted]
        return tuple(option for option in shared[0] if all(one[option] > own[option] for one in shared))

    @cached_property
    def variables(self) -> tuple[tuple[str, str], ...]:
        """Variables of the tests that no recipe of ours sets to this value."""
        return self._variables("env")

    @cached_property
    def build_variables(self) -> tuple[tuple[str, str], ...]:
        """Variables of builds that no recipe of ours sets to this value."""
        return self._variables("build_env")

    def _variables(self, field: str) -> tuple[tuple[str, str], ...]:
        own = getattr(self.recipe, field).items()
        return tuple(item for item in own if all(item not in getattr(one, field).items() for one in self.trusted))

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Requirements, bounds and overrides, of the tests and of builds, that no recipe of ours has."""
        return tuple(dict.fromkeys(line for field in _LINES for line in self.new(field)))

    def new(self, field: str) -> Sequence[str]:
        """Return the items of a field that no recipe of ours has in it."""
        known = {item for one in self.trusted for item in getattr(one, field)}
        return tuple(item for item in getattr(self.recipe, field) if item not in known)
