"""Ways in which a built environment could change what runs the tests; each voids the attempt.

The layer is read here, as bytes; nothing of it is imported. What the project itself asks for, and what that asks for in
turn, is its own matter: it would have the same without a model. Pytest, and what it stands on, is nobody's to change.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.utils import canonicalize_name

from installers.distrust.entry_points import Group
from installers.distrust.loaded import LOADED, Loader
from installers.distrust.look import Alteration, Look
from installers.distrust.mechanism import Weakening
from installers.distrust.plugins import STEERING, WELL_KNOWN
from installers.distrust.runner import RUNNER
from installers.distrust.site_packages import Asked, Distribution, Site, asked_by, requirement_of, site_of
from installers.distrust.start_up import beside, customised, interpreter, path_lines, programs, settings_beside
from installers.distrust.taken import foreign, patched, plugins_taken
from installers.environment import KIND as ENVIRONMENT
from installers.interface import Attempt
from installers.layer import unpacked
from installers.lock import KIND as LOCK
from miner.core.blobs import BlobStore
from miner.core.ledger import fact_id
from miner.core.records import Fact, Layer, Recipe
from miner.sandbox.image_archive import read_tar


def admitted(recipes: Iterable[Recipe], locked: Iterable[Fact] = ()) -> frozenset[Asked]:
    """Return what recipes without a model ask for, and what their locks hold.

    Args:
        recipes: the declared one, and those of other rungs that ask no model.
        locked: positive facts `install.lock` of these.
    """
    lines = (line for recipe in recipes for line in (*recipe.requirements, *recipe.overrides))
    held = {(canonicalize_name(name), "") for fact in locked for name in fact.payload["packages"]}
    return asked_in(lines) | held


def trusted_locks(facts: Iterable[Fact], past: Iterable[Attempt]) -> list[Fact]:
    """Return what recipes that no model wrote were locked to, where an environment came of it.

    Args:
        facts: among which are those of the attempts' steps.
        past: attempts.
    """
    known = {fact_id(fact.key): fact for fact in facts if fact.ok}
    found: list[Fact] = []
    for one in past:
        steps = [known[step] for step in one.steps if step in known]
        if not one.written and any(step.key.kind == ENVIRONMENT for step in steps):
            found += [step for step in steps if step.key.kind == LOCK][:1]  # those of builds come after it
    return found


def asked_in(lines: Iterable[str]) -> frozenset[Asked]:
    """Return what lines of requirements ask for."""
    return frozenset(pair for line in lines if (one := requirement_of(line)) is not None for pair in asked_by(one))


def alterations(
    blobs: BlobStore, locked: Fact, built: Fact, known: Iterable[Asked], scratch: Path, *, executable: str = ""
) -> tuple[Weakening, ...]:
    """Return what of an environment could change what runs the tests, in the order of the table.

    Args:
        blobs: where the layer is kept.
        locked: the positive fact `install.lock` that it was built from.
        built: the positive fact `install.env`.
        known: what the project itself asks for (`admitted`).
        scratch: a folder with room for the layer, for as long as this takes.
        executable: path of the interpreter in it; "" where that is not known.

    Raises:
        BlobLost: the layer is gone.
    """
    layer = Layer.model_validate(built.payload["layer"])
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        site = site_of(read_tar(unpacked(layer, blobs, Path(folder))))
        return altered(Look(site, locked.payload["packages"], site.reachable(known), executable))


def altered(look: Look, *, builds: bool = False) -> tuple[Weakening, ...]:
    """Return what is found, in the order of the table.

    Args:
        look: at an environment.
        builds: whether it is one that projects are built with.
    """
    return tuple(
        Weakening(mechanism=row.name, detail=detail)
        for row in ALTERATIONS
        if row.builds or not builds
        for detail in dict.fromkeys(row.find(look))
    )


def _plugins(look: Look) -> Iterable[str]:
    for one in look.site.distributions:
        if one.plugins and not look.knows(one) and one.name not in {*WELL_KNOWN, *STEERING, *RUNNER}:
            yield f"{one.name}: {', '.join(one.plugins)}"


def _loaded(look: Look) -> Iterable[str]:
    return unknown_in(look, LOADED)


def unknown_in(look: Look, table: Mapping[str, Loader]) -> Iterable[str]:
    """Yield entry points that load by themselves, of distributions that are not known to have any."""
    for one in look.site.distributions:
        for group in _of(one.entry_points, table):
            if not look.knows(one) and one.name not in table[group].known:
                yield f"{one.name}: {group}: {', '.join(one.entry_points[group])} ({table[group].when})"


def _of(found: Group, table: Mapping[str, Loader]) -> Iterable[str]:
    return (group for group in found if group in table)


def _unclear(look: Look) -> Iterable[str]:
    for one in look.site.distributions:
        if not one.is_clear and not look.knows(one):
            yield f"{one.folder}/entry_points.txt"


def _steering(look: Look) -> Iterable[str]:
    for one in look.site.distributions:
        if one.name in STEERING and one.plugins and not look.knows(one):
            yield f"{one.name}: {STEERING[one.name]}"


def _unlocked(look: Look) -> Iterable[str]:
    """Yield what says that it is a distribution, and is none of the lock or not as it was brought."""
    known, seen = look.locked, set[str]()
    for one in look.site.distributions:
        is_own = bool(look.own) and one.name == look.own
        if (one.name not in known and not is_own) or one.name in seen or not _is_installed(one, is_own):
            yield f"{one.folder} is not of the lock"
        elif (path := f"{one.folder}/entry_points.txt") in look.site.files and not _is_own(look.site, path, one):
            yield f"{path} is not what {one.name} brought"
        seen.add(one.name)
    for path in look.site.files:
        if path.partition("/")[0].lower().endswith((".egg", ".egg-link")) and not look.is_own(path):
            yield path


def _is_installed(one: Distribution, is_own: bool) -> bool:
    return one.folder.endswith((".dist-info", ".egg-info") if is_own else ".dist-info")


def _is_own(site: Site, path: str, one: Distribution) -> bool:
    return site.owners.get(path) == (one,) and site.is_as_recorded(path, one)


ALTERATIONS: tuple[Alteration, ...] = (
    Alteration(
        "runner-patched",
        "a file of pytest, of what it stands on, or of what starts with Python, is not what its RECORD says",
        patched,
    ),
    Alteration(
        "runner-foreign",
        "another distribution brings a module of pytest, of what it stands on, or of what starts with Python",
        foreign,
    ),
    Alteration(
        "plugin-taken",
        "a module that loads by itself is not what its distribution brought, or another one lies beside it",
        plugins_taken,
        builds=False,
    ),
    Alteration("start-up-module", "Python imports this module whenever it starts", customised),
    Alteration("path-lines", "Python runs the lines of this file, or takes them for folders of modules", path_lines),
    Alteration(
        "settings-beside-packages",
        "pytest reads this file where it runs tests of what is installed",
        settings_beside,
        builds=False,
    ),
    Alteration("unclear-entry-points", "those who read this file find different entry points in it", _unclear),
    Alteration("unknown-plugin", "pytest loads this plug-in, of which nothing is known", _plugins, builds=False),
    Alteration(
        "loads-by-itself",
        "something imports this module without being asked, and nothing is known of it",
        _loaded,
        False,
    ),
    Alteration(
        "steering-plugin-brought", "what was asked for brings a plug-in that decides about tests", _steering, False
    ),
    Alteration("not-of-the-lock", "poses as a distribution that is not in the lock, or as another one", _unlocked),
    Alteration(
        "interpreter-replaced", "another program than the interpreter would run, or see other packages", interpreter
    ),
    Alteration("program-replaced", "stands before a program that the runs use", programs),
    Alteration("beside-packages", "lies where a distribution has nothing to lay", beside),
)
