"""Small changes of a recipe that rules are made of; each returns None where it would change nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from installers.requirements import satisfiable
from miner.core.records import BuildMode, Recipe


def name_of(text: str) -> str:
    """Return the normalised name of a requirement, "" for what is none."""
    try:
        return canonicalize_name(Requirement(text).name)
    except InvalidRequirement:
        return ""


def asked(recipe: Recipe, name: str) -> list[Requirement]:
    """Return the recipe's own requirements of one distribution."""
    return [Requirement(text) for text in recipe.requirements if name_of(text) == canonicalize_name(name)]


def _more(recipe: Recipe, field: str, items: Iterable[str]) -> Recipe | None:
    known: tuple[str, ...] = getattr(recipe, field)
    new = tuple(item for item in items if item not in known)
    return recipe.model_copy(update={field: (*known, *new)}) if new else None


def bounded(recipe: Recipe, bound: str) -> Recipe | None:
    """Bound a run-time version; where the recipe itself asks for another one, the bound wins as an override."""
    wanted = Requirement(bound)
    own = [one.specifier for one in asked(recipe, wanted.name)]
    pinned = [Requirement(text).specifier for text in recipe.constraints if name_of(text) == name_of(bound)]
    won = [Requirement(text).specifier for text in recipe.overrides if name_of(text) == name_of(bound)]
    if won:
        joined = won[0] & wanted.specifier
        return overridden(recipe, f"{wanted.name}{joined if satisfiable(joined) else wanted.specifier}")
    if any(not satisfiable(one & wanted.specifier) for one in own):
        return overridden(recipe, bound)
    if any(not satisfiable(one & wanted.specifier) for one in pinned):
        return None
    return _more(recipe, "constraints", [bound])


def build_bounded(recipe: Recipe, bound: str) -> Recipe | None:
    """Bound the version of a build requirement, also where a declared pin says otherwise."""
    wanted = Requirement(bound)
    lines, changed = [], False
    for text in recipe.build_requirements:
        line = Requirement(text)
        if name_of(text) == name_of(bound) and not satisfiable(line.specifier & wanted.specifier):
            line.specifier, changed = SpecifierSet(), True
        lines.append(str(line) if changed else text)
    more = _more(recipe, "build_constraints", [bound])
    if not changed:
        return more
    return (more or recipe).model_copy(update={"build_requirements": tuple(lines)})


def overridden(recipe: Recipe, requirement: str) -> Recipe | None:
    """Let a requirement win over what anything asks for; a name is overridden once only."""
    kept = [text for text in recipe.overrides if name_of(text) != name_of(requirement)]
    if requirement in recipe.overrides:
        return None
    return recipe.model_copy(update={"overrides": (*kept, requirement)})


def required(recipe: Recipe, *requirements: str) -> Recipe | None:
    """Ask for more distributions; one that is asked for already, without extras, is not asked for again."""
    known = {name_of(text) for text in recipe.requirements if ";" not in text}
    return _more(recipe, "requirements", [text for text in requirements if name_of(text) not in known])


def build_required(recipe: Recipe, *requirements: str) -> Recipe | None:
    """Ask for more distributions where the project is built."""
    known = {name_of(text) for text in recipe.build_requirements}
    return _more(recipe, "build_requirements", [text for text in requirements if name_of(text) not in known])


def exempted(recipe: Recipe, *names: str) -> Recipe | None:
    """Take distributions without the cut-off."""
    return _more(recipe, "exempt", [canonicalize_name(name) for name in names])


def with_packages(recipe: Recipe, *names: str) -> Recipe | None:
    """Ask for Debian packages."""
    return _more(recipe, "system_packages", names)


def with_env(recipe: Recipe, **variables: str) -> Recipe | None:
    """Set variables for the tests; one that is set stays."""
    new = {name: value for name, value in variables.items() if name not in recipe.env}
    return recipe.model_copy(update={"env": {**recipe.env, **new}}) if new else None


def with_build_env(recipe: Recipe, **variables: str) -> Recipe | None:
    """Set variables for builds; one that is set stays."""
    new = {name: value for name, value in variables.items() if name not in recipe.build_env}
    return recipe.model_copy(update={"build_env": {**recipe.build_env, **new}}) if new else None


def with_options(recipe: Recipe, *options: str) -> Recipe | None:
    """Add options for pytest; the same ones are not added twice."""
    text, known = " ".join(options), " ".join(recipe.addopts)
    if text in known:
        return None
    return recipe.model_copy(update={"addopts": (*recipe.addopts, *options)})


def compiled(recipe: Recipe) -> Recipe | None:
    """Build the project's extension modules, with the tool chain in the image."""
    if recipe.compiled or BuildMode.NONE in recipe.modes:
        return None
    modes = (BuildMode.COMPILED, *(mode for mode in recipe.modes if mode is not BuildMode.EDITABLE))
    return recipe.model_copy(update={"compiled": True, "modes": tuple(dict.fromkeys(modes))})
