"""Ways in which a built environment could change what runs the tests; each voids the attempt.

The layer is read here, as bytes; nothing of it is imported. What the project itself asks for, and what that asks for in
turn, is its own matter: it would have the same without a model. Pytest, and what it stands on, is nobody's to change.

What cannot be told here: a wheel that brings another distribution's files *and* a RECORD for them that fits. Its index
would have to hold such a wheel as of the date.
"""

from __future__ import annotations

import mmap
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import uv
from packaging.utils import canonicalize_name

from installers.distrust.mechanism import Weakening
from installers.distrust.path_files import OWNERS, VIRTUALENV, is_plain
from installers.distrust.plugins import STEERING, WELL_KNOWN
from installers.distrust.requirements import name_of
from installers.distrust.runner import RUNNER, module_of, owners_of
from installers.distrust.site_packages import Distribution, Site, site_of
from installers.layer import read, unpacked
from miner.core.blobs import BlobStore
from miner.core.records import Fact, Layer, Recipe
from miner.sandbox.image_archive import read_tar

_CUSTOM = re.compile(r"(?:sitecustomize|usercustomize)(?:\.[^/]+|/.*|\Z)")
_PROGRAMS = re.compile(
    r"bin/(?:bash|sh|dash|env|git|printf|ls|cat|rm|cp|mv|ln|find|sed|awk|grep|tar|gcc|cc|g\+\+|c\+\+|ld|make|ldd|timeout)"
)
_PYTHON = re.compile(r"bin/(?:python|pypy)[\d.]*")
_MAX_TEXT = 1 << 20
_ALWAYS = frozenset({"pytest", "pluggy", "iniconfig", "py"})


@dataclass(frozen=True)
class _Look:
    """What is looked at.

    Attributes:
        packages: name -> version of what the lock holds.
        admitted: names of what the project itself asks for, and of what these ask for.
    """

    site: Site
    packages: dict[str, str]
    admitted: frozenset[str]

    def is_admitted(self, path: str) -> bool:
        """Whether a file is, as it lies there, of a distribution that the project itself asks for."""
        owners = self.site.owners.get(path, ())
        return bool(owners) and all(one.name in self.admitted and self.site.is_as_recorded(path, one) for one in owners)


@dataclass(frozen=True)
class Alteration:
    """One row of the table: as `installers.distrust.mechanism.Mechanism`, of a built environment."""

    name: str
    reason: str
    find: Callable[[_Look], Iterable[str]]


def admitted(recipes: Iterable[Recipe], locked: Iterable[Fact] = ()) -> frozenset[str]:
    """Return the names of what recipes without a model ask for, and of what their locks hold.

    Args:
        recipes: the declared one, and those of other rungs that ask no model.
        locked: positive facts `install.lock` of these.
    """
    asked = {name_of(line) for recipe in recipes for line in (*recipe.requirements, *recipe.overrides)}
    held = {canonicalize_name(name) for fact in locked for name in fact.payload["packages"]}
    return frozenset((asked | held) - {""})


def alterations(
    blobs: BlobStore, locked: Fact, built: Fact, known: frozenset[str], scratch: Path
) -> tuple[Weakening, ...]:
    """Return what of an environment could change what runs the tests, in the order of the table.

    Args:
        blobs: where the layer is kept.
        locked: the positive fact `install.lock` that it was built from.
        built: the positive fact `install.env`.
        known: what the project itself asks for (`admitted`).
        scratch: a folder with room for the layer, for as long as this takes.

    Raises:
        BlobLost: the layer is gone.
    """
    layer = Layer.model_validate(built.payload["layer"])
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        site = site_of(read_tar(unpacked(layer, blobs, Path(folder))))
        look = _Look(site, locked.payload["packages"], site.reachable(known))
        return tuple(
            Weakening(mechanism=row.name, detail=detail)
            for row in ALTERATIONS
            for detail in dict.fromkeys(row.find(look))
        )


def _runners(look: _Look) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what is there of pytest and of what it stands on, and the names that are theirs alone."""
    installed = {one.name for one in look.site.distributions}
    for name, tops in RUNNER.items():
        if name in installed or name in _ALWAYS:
            yield name, tops


def _patched(look: _Look) -> Iterable[str]:
    by_name = {one.name: one for one in look.site.distributions}
    for name, _ in _runners(look):
        for path in by_name[name].rows if name in by_name else ():
            written_here = path.endswith((".dist-info/RECORD", ".pyc"))
            if path in look.site.files and not written_here and not look.site.is_as_recorded(path, by_name[name]):
                yield f"{path} is not what {name} brought"


def _foreign(look: _Look) -> Iterable[str]:
    theirs = {module: name for name, modules in _runners(look) for module in modules}
    for path, entry in look.site.files.items():
        module = module_of(path)
        if module not in theirs or entry.kind == "dir":
            continue
        owners = {one.name for one in look.site.owners.get(path, ())}
        if not owners:
            yield f"{path} is of no distribution"
        elif others := sorted(owners - owners_of(module)):
            yield f"{path} is of {', '.join(others)}, not of {theirs[module]}"


def _customised(look: _Look) -> Iterable[str]:
    return (path for path in look.site.files if _CUSTOM.match(path) and not look.is_admitted(path))


def _path_lines(look: _Look) -> Iterable[str]:
    for path, entry in look.site.files.items():
        if "/" in path or not path.lower().endswith(".pth") or look.is_admitted(path):
            continue
        if entry.kind != "file" or entry.length > _MAX_TEXT:
            yield path
        elif not _is_known(path, look) and not is_plain(read(entry).decode("utf-8", "surrogateescape")):
            yield f"{path}: {read(entry)[:120].decode('utf-8', 'replace')}"


def _is_known(path: str, look: _Look) -> bool:
    if path == f"{VIRTUALENV}.pth":
        return read(look.site.files[path]).strip() == f"import {VIRTUALENV}".encode() and _is_of_uv(look)
    owner = OWNERS.get(path, ("", ""))[0]
    owners = look.site.owners.get(path, ())
    return bool(owners) and all(one.name == owner and look.site.is_as_recorded(path, one) for one in owners)


def _is_of_uv(look: _Look) -> bool:
    """Whether the module that uv lays into an environment is the one that uv, which is ours, holds in itself."""
    entry = look.site.files.get(f"{VIRTUALENV}.py")
    if entry is None or entry.kind != "file" or not 0 < entry.length <= _MAX_TEXT:
        return False
    return _uv_holds(read(entry))


@cache
def _uv_holds(text: bytes) -> bool:
    with Path(uv.find_uv_bin()).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as program:
        return program.find(text) >= 0


def _conftest(look: _Look) -> Iterable[str]:
    for path in look.site.files:
        if path in ("conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg") and not look.is_admitted(path):
            yield path


def _plugins(look: _Look) -> Iterable[str]:
    for one in look.site.distributions:
        if one.plugins and one.name not in {*look.admitted, *WELL_KNOWN, *STEERING, *RUNNER}:
            yield f"{one.name}: {', '.join(one.plugins)}"


def _steering(look: _Look) -> Iterable[str]:
    for one in look.site.distributions:
        if one.name in STEERING and one.plugins and one.name not in look.admitted:
            yield f"{one.name}: {STEERING[one.name]}"


def _unlocked(look: _Look) -> Iterable[str]:
    """Yield what says that it is a distribution, and is none of the lock or not as it was brought."""
    known = {canonicalize_name(name) for name in look.packages}
    seen: set[str] = set()
    for one in look.site.distributions:
        if one.name not in known or one.name in seen or not one.folder.endswith(".dist-info"):
            yield f"{one.folder} is not of the lock"
        elif (path := f"{one.folder}/entry_points.txt") in look.site.files and not _is_own(look.site, path, one):
            yield f"{path} is not what {one.name} brought"
        seen.add(one.name)
    yield from (path for path in look.site.files if path.partition("/")[0].lower().endswith((".egg", ".egg-link")))


def _is_own(site: Site, path: str, one: Distribution) -> bool:
    return site.owners.get(path) == (one,) and site.is_as_recorded(path, one)


def _interpreter(look: _Look) -> Iterable[str]:
    for path, entry in look.site.outside.items():
        if _PYTHON.fullmatch(path) and entry.kind != "symlink":
            yield f"{path} is no link to the interpreter"
        elif path == "pyvenv.cfg" and b"include-system-site-packages = false" not in read(entry).splitlines():
            yield f"{path} lets other packages in"


def _programs(look: _Look) -> Iterable[str]:
    return (path for path in look.site.outside if _PROGRAMS.fullmatch(path))


ALTERATIONS: tuple[Alteration, ...] = (
    Alteration("runner-patched", "a file of pytest, or of what it stands on, is not what its RECORD says", _patched),
    Alteration("runner-foreign", "another distribution brings a module of pytest, or of what it stands on", _foreign),
    Alteration("start-up-module", "Python imports this module whenever it starts", _customised),
    Alteration("path-lines", "Python runs the lines of this file whenever it starts", _path_lines),
    Alteration(
        "settings-beside-packages", "pytest reads this file where it runs tests of what is installed", _conftest
    ),
    Alteration("unknown-plugin", "pytest loads this plug-in, of which nothing is known", _plugins),
    Alteration("steering-plugin-brought", "what was asked for brings a plug-in that decides about tests", _steering),
    Alteration("not-of-the-lock", "poses as a distribution that is not in the lock, or as another one", _unlocked),
    Alteration(
        "interpreter-replaced", "another program than the interpreter would run, or see other packages", _interpreter
    ),
    Alteration("program-replaced", "stands before a program that the runs use", _programs),
)
