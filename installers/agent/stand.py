"""What a session's container is made of: the furthest attempt's ground, environment and project, as far as it came.

Its tool chain is always there: what a recipe asks for is built from source with it, too. Everything is told from known
facts; no engine is asked, so that a session that was held needs none again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from installers.cutoff import cutoffs
from installers.environment import environment, environment_request, layer_of
from installers.ground import Ground, ground
from installers.image import above
from installers.interface import Attempt, Help, Question
from installers.lock import lock, lock_request
from installers.workshop import Workshop
from miner.core.hashing import hash_of
from miner.core.ledger import fact_id
from miner.core.records import Fact, Layer, Recipe

_PROJECT = "install.project"


@dataclass(frozen=True)
class Stand:
    """The layers of a session's container, and where they come from.

    Attributes:
        recipe: that of the attempt, or the declared one.
        attempt: the one that came furthest; None where nothing was tried.
        cutoff: the package index is taken as of then.
        environment: the layer of `/opt/env`; None where it could not be made.
        project: the layers of the installed project: what builds it, the tree, what the installation added; empty
            where it could not be installed.
    """

    recipe: Recipe
    attempt: Attempt | None
    cutoff: datetime
    ground: Ground
    environment: Layer | None = None
    project: tuple[Layer, ...] = ()

    def below(self, workshop: Workshop) -> tuple[Layer, ...]:
        """Return the layers of the ground above the base image."""
        return above(workshop.base, self.ground.build)

    @property
    def identity(self) -> str:
        """Hash of all that a container is made from, beside the repository's tree."""
        layers = [layer.diff_id for layer in (self.environment, *self.project) if layer is not None]
        return hash_of([self.ground.build.digest, layers, self.recipe.env, self.cutoff])


def stand_of(question: Question, help_: Help, built: Attempt | None) -> Stand:
    """Return what the next session's container is made of.

    Args:
        question: with the declared recipe.
        help_: with the facts that are known.
        built: the attempt that came furthest, of those that another one may start from.
    """
    shop, memo = help_.workshop, help_.memo
    recipe = question.declared if built is None else built.recipe
    dates = cutoffs(question.created_at, shop.settings.measure.cutoff)
    cutoff = dates[min(recipe.fallback, len(dates) - 1)]
    on = ground(shop, memo, recipe)
    if not on.facts[-1].ok:  # one of its Debian packages is not to be had
        on = ground(shop, memo, recipe.model_copy(update={"system_packages": ()}))
        return Stand(recipe, built, cutoff, on)
    if built is None or not _came_to(built, help_, "install.lock"):
        return Stand(recipe, built, cutoff, on)
    plan = lock_request(shop, on, recipe, built.cutoff)
    locked = list(lock(shop, memo, on, plan, name=recipe.distribution, version=recipe.version_hint))[-1]
    if not locked.ok:
        return Stand(recipe, built, cutoff, on)
    made = environment(shop, memo, on, environment_request(plan, locked))[-1]
    if not made.ok:
        return Stand(recipe, built, cutoff, on)
    return Stand(recipe, built, cutoff, on, layer_of(made), _project(built, help_))


def _came_to(built: Attempt, help_: Help, kind: str) -> bool:
    return any(fact.key.kind == kind for fact in _steps(built, help_))


def _steps(built: Attempt, help_: Help) -> Iterable[Fact]:
    known = {fact_id(fact.key): fact for fact in help_.memo.used}
    return [known[step] for step in built.steps if step in known]


def _project(built: Attempt, help_: Help) -> tuple[Layer, ...]:
    """Return the layers of the last mode that worked, none where none did."""
    found = [fact for fact in _steps(built, help_) if fact.key.kind == _PROJECT and fact.ok]
    return tuple(Layer.model_validate(layer) for layer in found[-1].payload["layers"]) if found else ()
