"""Rules for requirements that nothing satisfies: another date, a pin that goes, another Python."""

from __future__ import annotations

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from installers.repair.context import Context
from installers.repair.edits import asked, exempted, name_of, overridden
from installers.repair.kinds import Kind
from installers.repair.rule import Change, Rule, rule
from installers.repair.rules_python import another_python
from miner.core.records import Recipe

_BUILD_TOOLS = ("setuptools", "wheel")
_DATES = (1, 2, 3)
"""Numbers of the dates that are tried one after another."""
_NEVER = "python_version < '0'"


def next_cutoff(recipe: Recipe, _subject: str, context: Context) -> Recipe | None:
    """Take the index as of the next date."""
    if recipe.fallback + 1 >= context.cutoffs:
        return None
    return recipe.model_copy(update={"fallback": recipe.fallback + 1})


def cutoff(number: int) -> Change:
    """Return the change that takes the index as of one of the later dates."""

    def change(recipe: Recipe, _subject: str, context: Context) -> Recipe | None:
        if not recipe.fallback < number < context.cutoffs:
            return None
        return recipe.model_copy(update={"fallback": number})

    return change


def build_tool(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Take setuptools without the cut-off where uv itself asks for a later one: builds of old days ask for none."""
    return exempted(recipe, *_BUILD_TOOLS) if _parted(subject)[0] in _BUILD_TOOLS else None


def last_cutoff(recipe: Recipe, _subject: str, context: Context) -> Recipe | None:
    """Take the index as of the last date."""
    return recipe.model_copy(update={"fallback": max(recipe.fallback, context.cutoffs - 1)})


def uploaded_again(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Take a distribution without the cut-off where the tree pins a version that was uploaded later than the tree."""
    name, spec = _parted(subject)
    return exempted(recipe, name) if spec.startswith("==") and "*" not in spec else None


def drop_pin(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Ask for any version, where the one that is asked for is not to be had."""
    name, spec = _parted(subject)
    if not name or not spec:
        return None
    if any(name_of(text) == name for text in recipe.build_requirements) and not asked(recipe, name):
        return _build_pin_dropped(recipe, name)
    extras = sorted({extra for one in asked(recipe, name) for extra in one.extras})
    return overridden(recipe, f"{name}[{','.join(extras)}]" if extras else name)


def drop_requirement(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Do without a distribution that the index does not have: a sibling of the project, a private one."""
    name = canonicalize_name(subject)
    kept = tuple(text for text in recipe.requirements if name_of(text) != name)
    built = tuple(text for text in recipe.build_requirements if name_of(text) != name)
    if kept != recipe.requirements or built != recipe.build_requirements:
        return recipe.model_copy(update={"requirements": kept, "build_requirements": built})
    return overridden(recipe, f"{name} ; {_NEVER}")


def loosen(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Take the bounds from the last of the recipe's own requirements that contradict each other; a pin goes first."""
    players = [canonicalize_name(name.strip()) for name in subject.split(",")]
    own = [text for name in reversed(players) for text in recipe.requirements if name_of(text) == name]
    bounded = [text for text in own if Requirement(text).specifier]
    pinned = [text for text in bounded if "==" in str(Requirement(text).specifier)]
    if not bounded:
        return None
    chosen = (pinned or bounded)[0]
    line = Requirement(chosen)
    line.specifier = SpecifierSet()
    lines = tuple(str(line) if text == chosen else text for text in recipe.requirements)
    return recipe.model_copy(update={"requirements": lines})


def python_that_it_admits(recipe: Recipe, subject: str, context: Context) -> Recipe | None:
    """Take a Python that a distribution admits."""
    spec = subject.partition(": ")[2]
    try:
        admitted = SpecifierSet(spec)
    except InvalidSpecifier:
        return None
    return another_python(recipe, context, lambda version: admitted.contains(f"{version}.99") and bool(spec))


def drop_what_refuses(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Take any version of a distribution that refuses this Python."""
    name = canonicalize_name(subject.partition(":")[0])
    return overridden(recipe, name) if any(one.specifier for one in asked(recipe, name)) else None


def older_python(recipe: Recipe, _subject: str, context: Context) -> Recipe | None:
    """Take the next older Python: what has no wheel for a new one has one for an older one."""
    versions = [python.version for python in context.pythons]
    if recipe.python not in versions or versions.index(recipe.python) == 0:
        return None
    return recipe.model_copy(update={"python": versions[versions.index(recipe.python) - 1]})


def _parted(subject: str) -> tuple[str, str]:
    try:
        requirement = Requirement(subject)
    except InvalidRequirement:
        return canonicalize_name(subject), ""
    return canonicalize_name(requirement.name), str(requirement.specifier)


def _build_pin_dropped(recipe: Recipe, name: str) -> Recipe:
    lines = []
    for text in recipe.build_requirements:
        line = Requirement(text)
        if canonicalize_name(line.name) == name:
            line.specifier = SpecifierSet()
        lines.append(str(line))
    return recipe.model_copy(update={"build_requirements": tuple(lines)})


RULES: tuple[Rule, ...] = (
    rule("build-tool", build_tool, "uv builds with {subject}, which came out later", Kind.NEWER_THAN_DATE),
    rule(
        "exact-date",
        cutoff(1),
        "what satisfies {subject} came out between the beginning of the era and the change",
        Kind.NEWER_THAN_DATE,
    ),
    rule(
        "uploaded-again",
        uploaded_again,
        "the tree pins {subject}, so it was there: it was deleted and uploaded again later",
        Kind.NEWER_THAN_DATE,
    ),
    rule("drop-pin", drop_pin, "{subject} was never to be had, or is not any more", Kind.NO_VERSION),
    rule("drop-requirement", drop_requirement, "the index has no {subject}", Kind.NOT_ON_INDEX),
    rule(
        "python-that-it-admits",
        python_that_it_admits,
        "a distribution refuses this Python ({subject})",
        Kind.PYTHON_MISMATCH,
    ),
    rule(
        "drop-what-refuses",
        drop_what_refuses,
        "another version may admit this Python ({subject})",
        Kind.PYTHON_MISMATCH,
    ),
    rule("older-python-for-wheel", older_python, "{subject} has a wheel for an older Python", Kind.NO_WHEEL),
    rule(
        "last-cutoff",
        last_cutoff,
        "later versions of {subject} have metadata that can be read",
        Kind.INVALID_METADATA,
    ),
    *(
        rule(
            f"cutoff {number}",
            cutoff(number),
            "as of this date there is no solution ({subject})",
            *(Kind.NEWER_THAN_DATE, Kind.NO_SOLUTION, Kind.NO_VERSION),
        )
        for number in _DATES
    ),
    rule("drop-late-pin", drop_pin, "{subject} came out later than all dates that are tried", Kind.NEWER_THAN_DATE),
    rule("loosen", loosen, "the requirements contradict each other: {subject}", Kind.NO_SOLUTION),
)
