"""Ways in which a recipe could change which tests run, or what runs them; each voids the attempt. Pure.

`MECHANISMS` is the table, `docs/distrust.md` shows it. What the project itself declares is no weakening, and neither is
what a recipe of ours does that the model started from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from installers.distrust.build_values import BUILD_VALUES
from installers.distrust.changed import Changed
from installers.distrust.mechanism import Mechanism, Weakening
from installers.distrust.options import OPTIONS
from installers.distrust.requirements import REQUIREMENTS
from installers.distrust.variables import VARIABLES
from miner.core.records import BuildMode, Recipe

__all__ = ["MECHANISMS", "Weakening", "weakenings"]

_OF_TREE = ("project_dir", "distribution", "top_level", "src_layout", "source_root", "build_backend", "backend_path")
"""What the tree says, and nobody chooses: by it the health check knows what to edit, and pytest where to start."""


def weakenings(
    recipe: Recipe, declared: Recipe, *, trusted: Sequence[Recipe] = (), paths: Sequence[str] | None = None
) -> tuple[Weakening, ...]:
    """Return how a model's recipe would weaken the tests, in the order of the table.

    Args:
        recipe: the model's.
        declared: what the project itself declares.
        trusted: recipes of rungs that ask no model: what they do is no weakening either.
        paths: of the base tree; without them no new place of PYTHONPATH can be judged, and each is one.
    """
    changed = Changed(recipe, (declared, *trusted), None if paths is None else tuple(paths))
    return tuple(
        Weakening(mechanism=mechanism.name, detail=detail)
        for mechanism in MECHANISMS
        for detail in dict.fromkeys(mechanism.find(changed))
    )


def _dropped_options(changed: Changed) -> Iterable[str]:
    return (f"{option.text} is gone" for option in changed.dropped_options)


def _dropped_modes(changed: Changed) -> Iterable[str]:
    recipe = changed.recipe
    if not recipe.modes:
        yield "no mode at all"
    elif BuildMode.COMPILED not in recipe.modes and changed.by_all(lambda one: BuildMode.COMPILED in one.modes):
        yield "the project is compiled, and would not be built again after a patch"
    if BuildMode.NONE in recipe.modes and changed.by_all(lambda one: BuildMode.NONE not in one.modes):
        yield "the project would not be installed"


def _other_tree(changed: Changed) -> Iterable[str]:
    for name in _OF_TREE:
        value = getattr(changed.recipe, name)
        if changed.by_all(lambda one, name=name, value=value: getattr(one, name) != value):  # type: ignore[misc]
            yield f"{name}: {value!r}"


MECHANISMS: tuple[Mechanism, ...] = (
    *OPTIONS,
    Mechanism(
        "declared-option-dropped",
        "an option that the project declares is gone: markers, doctests or strictness with it",
        _dropped_options,
    ),
    *VARIABLES,
    *BUILD_VALUES,
    *REQUIREMENTS,
    Mechanism(
        "mode-dropped",
        "the project would no longer be installed, or no longer be built again after a patch: tests would not see it",
        _dropped_modes,
    ),
    Mechanism(
        "other-tree",
        "names another folder, distribution or module than the tree: something else would be examined and tested",
        _other_tree,
    ),
)
