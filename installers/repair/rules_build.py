"""Rules for builds: of the project, and of locked distributions without a wheel."""

from __future__ import annotations

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from installers.repair.bounds import Bound
from installers.repair.context import Context, Release
from installers.repair.edits import (
    asked,
    bounded,
    build_bounded,
    build_required,
    exempted,
    name_of,
    overridden,
    with_build_env,
)
from installers.repair.kinds import Kind
from installers.repair.rule import Rule, rule
from installers.repair.rules_resolve import next_cutoff, older_python
from miner.core.records import Recipe
from miner.project.versions import version_of

_NEEDS = (Kind.BUILD_NEEDS_MODULE, Kind.BUILD_NEEDS_NAME)
_BUILD_TOOLS = {"cython": "Cython", "pkg_resources": "setuptools<82"}
_SCM = {
    # tool -> the variables that tell it the version, of its documentation
    "setuptools-scm": ("SETUPTOOLS_SCM_PRETEND_VERSION",),
    "pbr": ("PBR_VERSION",),
    "pdm-backend": ("PDM_BUILD_SCM_VERSION",),
    "poetry-dynamic-versioning": ("POETRY_DYNAMIC_VERSIONING_BYPASS",),
}
_NO_VERSION = "0.1"


def _row(bound: str, subject: str, why: str, *kinds: Kind) -> Bound:
    return Bound(bound, re.compile(rf"(?:[\w-]*: )?(?:{subject})"), why, kinds)


BOUNDS: tuple[Bound, ...] = (
    _row("setuptools<58", r"[\w-]*", "setuptools 58 took 2to3 away", Kind.USE_2TO3),
    _row("setuptools<46", r"(?:setuptools|\?):Feature", "setuptools 46 took Feature away", *_NEEDS),
    _row("setuptools<82", r"pkg_resources(?:[.:].*)?", "setuptools 82 took pkg_resources away", *_NEEDS),
    _row(
        "setuptools<72",
        r"setuptools\.command\.test|setuptools\.command(?:\.test)?:test|\?:test",
        "setuptools 72 took the command `test` away",
        *_NEEDS,
    ),
    _row(
        "setuptools<60",
        r"distutils\.\w+:\w+|setuptools\._distutils\S*|numpy\.distutils\S*|distutils\.msvccompiler",
        "setuptools 60 puts a distutils of its own in the place of Python's",
        *_NEEDS,
    ),
    _row(
        "setuptools<61",
        r"[\w-]*",
        "setuptools 61 refuses to choose among several top-level packages",
        Kind.FLAT_LAYOUT,
    ),
    _row(
        "setuptools<66", r"version|requirement|extras", "setuptools 66 insists on the standards", Kind.STRICT_METADATA
    ),
    _row("setuptools<78", r"dashes", "setuptools 78 refuses keys with dashes", Kind.STRICT_METADATA),
    _row("cython<3", r"[\w-]*", "Cython 3 refuses what earlier ones took", Kind.CYTHON_LANGUAGE),
    _row("numpy<2", r"numpy(?:\.\w+)*:\w+", "NumPy 2 took away what the build uses", Kind.BUILD_NEEDS_NAME),
)


def _rule_of(row: Bound) -> Rule:
    def change(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
        return build_bounded(recipe, row.bound) if row.subject.fullmatch(subject) else None

    return Rule(f"build {row.name}", frozenset(row.kinds), change, row.why)


def build_requirement(recipe: Recipe, subject: str, context: Context) -> Recipe | None:
    """Ask for what the project's build imports without having asked for it; what it asked for was too old for that."""
    name, _, module = subject.partition(": ")
    if name or not module:
        return None
    module = module.partition(":")[0]
    top = canonicalize_name(module.partition(".")[0])
    if top in {name_of(one) for one in recipe.build_requirements}:
        return exempted(recipe, top)
    found = _BUILD_TOOLS.get(module.lower()) or context.provider(module)
    return None if found is None else build_required(recipe, found)


def version_with_wheel(recipe: Recipe, subject: str, context: Context) -> Recipe | None:
    """Take the version of a distribution that has a wheel and is nearest to the one that does not build."""
    name, version = _named(subject)
    if not name:
        return None
    releases = [one for one in context.releases(name) if one.wheel and not Version(one.version).is_prerelease]
    newer = [one for one in releases if version is not None and Version(one.version) > version]
    older = [one for one in releases if version is None or Version(one.version) < version]
    chosen = newer[0] if newer else older[-1] if older else None
    return None if chosen is None else _taken(recipe, name, chosen, newer=bool(newer))


def _named(subject: str) -> tuple[str, Version | None]:
    """Return name and version of what does not build, of either form: `name==version`, `name: what it needs`."""
    name, _, rest = subject.partition("==")
    if rest:
        return canonicalize_name(name), version_of(rest)
    return (canonicalize_name(name.partition(":")[0]), None) if subject else ("", None)


def _taken(recipe: Recipe, name: str, release: Release, *, newer: bool) -> Recipe | None:
    wanted = f"{name}{'>=' if newer else '<='}{release.version}"
    if any(not one.specifier.contains(release.version) for one in asked(recipe, name)):
        return overridden(recipe, f"{name}=={release.version}")
    return bounded(recipe, wanted)


def wheel_exempt(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Take `wheel` without the cut-off, as setuptools is, or ask for it where nothing has."""
    if subject == ": bdist_wheel":
        return build_required(recipe, "wheel") or exempted(recipe, "wheel")
    return exempted(recipe, "wheel")


def told_version(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Tell a back end the version that it would ask git's tags for."""
    tool = subject.partition(": ")[2]
    return with_build_env(recipe, **dict.fromkeys(_SCM.get(tool, ()), recipe.version_hint or _NO_VERSION))


def younger_setuptools(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Take setuptools without the cut-off where it is too old for the project's metadata."""
    return exempted(recipe, "setuptools") if subject.endswith((": licence", ": project")) else None


def _own_pin_of_build_tool(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Take the bounds from the project's own build requirement that does not build."""
    name, _ = _named(subject)
    lines = tuple(text for text in recipe.build_requirements if canonicalize_name(Requirement(text).name) == name)
    if not lines or not Requirement(lines[0]).specifier:
        return None
    kept = tuple(name if text in lines else text for text in recipe.build_requirements)
    return recipe.model_copy(update={"build_requirements": kept})


RULES: tuple[Rule, ...] = (
    *(_rule_of(row) for row in BOUNDS),
    rule("wheel-without-date", wheel_exempt, "a young setuptools needs a young `wheel`", Kind.OLD_WHEEL),
    rule(
        "setuptools-without-date", younger_setuptools, "the metadata needs a younger setuptools", Kind.STRICT_METADATA
    ),
    rule(
        "told-version",
        told_version,
        "the version comes from git tags, which are not there ({subject})",
        Kind.NO_VERSION_FROM_VCS,
    ),
    rule(
        "build-requirement",
        build_requirement,
        "the build imports what it did not ask for ({subject})",
        Kind.BUILD_NEEDS_MODULE,
    ),
    rule(
        "version-with-wheel",
        version_with_wheel,
        "a version that has a wheel needs no build ({subject})",
        Kind.BUILD_FAILED,
        *_NEEDS,
        Kind.CYTHON_LANGUAGE,
    ),
    rule(
        "build-pin",
        _own_pin_of_build_tool,
        "the pinned build requirement does not build ({subject})",
        Kind.BUILD_FAILED,
    ),
    rule(
        "older-python-for-build", older_python, "it builds on an older Python ({subject})", Kind.BUILD_FAILED, *_NEEDS
    ),
    rule("cutoff-for-build", next_cutoff, "a later build tool may build it ({subject})", Kind.BUILD_FAILED),
)
