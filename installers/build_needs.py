"""What the build of a project needs, and what of it breaks with later tools: known from the declarations alone."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from installers.requirements import Line, holds, merge, name_of, names, satisfiable
from miner.core.records import BuildMode
from miner.project.model import Declared, ProjectFacts

LEGACY_BACKEND = "setuptools.build_meta:__legacy__"
_LEGACY_REQUIRES = ("setuptools", "wheel")

# Python -> the first setuptools that imports on it, and why.
_FIRST_SETUPTOOLS = (("3.12", "66.1", "earlier ones need parts of the standard library that 3.12 has dropped"),)
_2TO3 = Declared(text="setuptools<58", source="use_2to3: gone since setuptools 58")
_PKG_RESOURCES = Declared(text="setuptools<81", source="pkg_resources: on its way out since setuptools 81")


def build_requirements(facts: ProjectFacts, python: str, notes: list[str]) -> tuple[Line, ...]:
    """Return `[build-system] requires`, or what PEP 517 has for a project without it; `setup_requires` added."""
    if not facts.installable:
        return ()
    declared = facts.build_requires
    if declared is None:
        declared = tuple(Declared(text=text, source="PEP 517: no [build-system]") for text in _LEGACY_REQUIRES)
    setup = facts.setup_requires if (facts.build_backend or LEGACY_BACKEND).startswith("setuptools") else ()
    own = canonicalize_name(facts.name or "")
    lines = (line for line in merge(declared, setup, notes) if own not in names([line], "3"))
    return tuple(_loosened(line, python, notes) for line in lines)


def _loosened(line: Line, python: str, notes: list[str]) -> Line:
    """Do not insist on a setuptools that cannot run on the chosen Python."""
    requirement = Requirement(line.requirement)
    first = next((first for least, first, _ in _FIRST_SETUPTOOLS if Version(python) >= Version(least)), None)
    if canonicalize_name(requirement.name) != "setuptools" or first is None or not holds(requirement, python):
        return line
    if satisfiable(requirement.specifier & SpecifierSet(f">={first}")):
        return line
    notes.append(f"{requirement} is not insisted on: no setuptools before {first} runs on Python {python}")
    requirement.specifier = SpecifierSet()
    return line.model_copy(update={"requirement": str(requirement)})


def build_traps(facts: ProjectFacts, lines: Iterable[Line]) -> tuple[Declared, ...]:
    """Return bounds that the build needs though nothing declares them, as far as they fit what it does declare."""
    wanted = [_2TO3] if facts.traps.use_2to3 else [_PKG_RESOURCES] if facts.traps.pkg_resources else []
    asked = [Requirement(line.requirement) for line in lines]
    setuptools = [one.specifier for one in asked if canonicalize_name(one.name) == "setuptools"]
    bounds = [Requirement(one.text).specifier for one in wanted]
    return tuple(
        one
        for one, bound in zip(wanted, bounds, strict=True)
        if all(satisfiable(bound & other) for other in setuptools)
    )


def run_traps(facts: ProjectFacts) -> tuple[tuple[Declared, ...], tuple[Declared, ...]]:
    """Return (requirements, constraints) that the project needs when it runs: pkg_resources is a part of setuptools."""
    asked = {name_of(item.text) for item in facts.runtime}
    needs = (_PKG_RESOURCES,) if facts.traps.namespace_packages and "setuptools" not in asked else ()
    return needs, (_PKG_RESOURCES,) if "setuptools" in asked else ()


def modes(facts: ProjectFacts) -> tuple[BuildMode, ...]:
    """Return the ways to install a project, in the order in which they are tried."""
    if not facts.installable:
        return (BuildMode.NONE,)
    if facts.traps.use_2to3:
        return (BuildMode.NORMAL,)  # the build translates the sources, so a link to them would not run
    if facts.native.builds:
        return (BuildMode.COMPILED, BuildMode.NORMAL)
    return (BuildMode.EDITABLE, BuildMode.NORMAL)
