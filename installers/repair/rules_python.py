"""Rules that take another Python: what the standard library or the language lost or gained."""

from __future__ import annotations

from collections.abc import Callable

from packaging.version import Version

from installers.repair.context import Context
from installers.repair.kinds import Kind
from installers.repair.pythons import MESSAGES, first_python, last_python
from installers.repair.rule import Rule, rule
from miner.core.records import Recipe
from miner.project.versions import version_of


def another_python(recipe: Recipe, context: Context, wanted: Callable[[str], bool]) -> Recipe | None:
    """Take the nearest Python that is wanted: of the older ones the newest, else the oldest of the newer ones.

    One that came out after the date is taken only where no other one is left.
    """
    now = Version(recipe.python)
    known = [one for one in context.pythons if wanted(one.version) and one.version != recipe.python]
    day = context.cutoff.date()
    known.sort(key=lambda one: (one.released > day, Version(one.version) > now, _distance(one.version, now)))
    return recipe.model_copy(update={"python": known[0].version}) if known else None


def _distance(version: str, now: Version) -> int:
    return abs(Version(version).minor - now.minor)


def until(recipe: Recipe, context: Context, last: str) -> Recipe | None:
    """Take a Python that is no younger than one."""
    bound = version_of(last)
    if bound is None or Version(recipe.python) <= bound:
        return None
    return another_python(recipe, context, lambda version: Version(version) <= bound)


def since(recipe: Recipe, context: Context, first: str) -> Recipe | None:
    """Take a Python that is no older than one."""
    bound = version_of(first)
    if bound is None or Version(recipe.python) >= bound:
        return None
    return another_python(recipe, context, lambda version: Version(version) >= bound)


def python_that_has_it(recipe: Recipe, subject: str, context: Context) -> Recipe | None:
    """Take an older Python for what newer ones lost, a newer one for what older ones lack."""
    subject = _of_builds(subject)
    last = last_python(subject)
    if last is not None:
        return until(recipe, context, last)
    first = first_python(subject)
    return None if first is None else since(recipe, context, first)


def _of_builds(subject: str) -> str:
    """Take the distribution from the subject of a build ("name: module:name")."""
    return subject.partition(": ")[2] if ": " in subject else subject


def python_of_message(recipe: Recipe, subject: str, context: Context) -> Recipe | None:
    """Take the Python that a message asks for."""
    if subject not in MESSAGES:
        return None
    bound, version = MESSAGES[subject]
    return until(recipe, context, version) if bound == "last" else since(recipe, context, version)


def newer_syntax(recipe: Recipe, subject: str, context: Context) -> Recipe | None:
    """Take a Python that knows the syntax."""
    return since(recipe, context, subject)


def older_syntax(recipe: Recipe, subject: str, context: Context) -> Recipe | None:
    """Take a Python that still takes the syntax."""
    return until(recipe, context, subject)


RULES: tuple[Rule, ...] = (
    rule(
        "python-that-has-it",
        python_that_has_it,
        "this Python's standard library has no {subject}",
        Kind.MISSING_MODULE,
        Kind.MISSING_NAME,
        Kind.MISSING_ATTRIBUTE,
        Kind.UNEXPECTED_ARGUMENT,
        Kind.BUILD_NEEDS_MODULE,
        Kind.BUILD_NEEDS_NAME,
    ),
    rule(
        "python-of-message", python_of_message, "what is used behaves otherwise on this Python ({subject})", Kind.TEXT
    ),
    rule("newer-syntax", newer_syntax, "the syntax is that of Python {subject}", Kind.NEWER_SYNTAX),
    rule("older-syntax", older_syntax, "the syntax ended with Python {subject}", Kind.OLDER_SYNTAX),
)
