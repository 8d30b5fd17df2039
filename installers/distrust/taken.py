"""Modules that start by themselves in a run or a build, where another distribution has taken them over.

A package of a namespace belongs to nobody (Python Packaging User Guide, "Packaging namespace packages"): what is
guarded of a plug-in begins where its own package does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from installers.distrust.entry_points import module_of_line
from installers.distrust.loaded import LOADED, PLUGINS
from installers.distrust.look import Look
from installers.distrust.runner import GUARDED, module_of, owners_of
from installers.distrust.site_packages import Distribution

_ALWAYS = frozenset({"pytest", "pluggy", "iniconfig", "py"})
_SUFFIXES = (".py", ".pyc", ".so", "/")


def patched(look: Look) -> Iterable[str]:
    """Yield files of what runs the tests that are not what its RECORD says."""
    by_name = {one.name: one for one in look.site.distributions}
    for name, _ in _guarded(look):
        one = by_name.get(name)
        if one is not None and name != look.own:
            yield from (f"{path} is not what {name} brought" for path in _misfits(look, one, one.rows))


def foreign(look: Look) -> Iterable[str]:
    """Yield modules of what runs the tests that are there, and are another distribution's or nobody's."""
    theirs = {module: name for name, modules in _guarded(look) for module in modules}
    for path, entry in look.site.files.items():
        module = module_of(path)
        if module not in theirs or entry.kind == "dir":
            continue
        owners = {one.name for one in look.site.owners.get(path, ())}
        if not owners:
            yield f"{path} is of no distribution"
        elif others := sorted(owners - owners_of(module)):
            yield f"{path} is of {', '.join(others)}, not of {theirs[module]}"


def _guarded(look: Look) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what is there of what runs the tests, and the names that are theirs alone."""
    installed = {one.name for one in look.site.distributions}
    for name, tops in GUARDED.items():
        if name in installed or name in _ALWAYS:
            yield name, tops


def _misfits(look: Look, one: Distribution, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        written_here = path.endswith((".dist-info/RECORD", ".pyc"))
        if path in look.site.files and not written_here and not look.site.is_as_recorded(path, one):
            yield path


def plugins_taken(look: Look) -> Iterable[str]:
    """Yield files of modules that load by themselves, where they are not what their distribution brought."""
    for one in look.site.distributions:
        if one.name == look.own or not one.folder.endswith(".dist-info"):
            continue
        for place in dict.fromkeys(_place(look, one, module) for module in _loading(one)):
            for path in _below(look, place):
                owners = look.site.owners.get(path, ())
                if one not in owners and not look.is_admitted(path):
                    yield f"{path} is not of {one.name}"
                elif one in owners and _is_taken(look, path, one):
                    yield f"{path} is not what {one.name} brought"


def _is_taken(look: Look, path: str, one: Distribution) -> bool:
    return any(_misfits(look, one, [path])) or _is_claimed(look, path, one)


def _is_claimed(look: Look, path: str, one: Distribution) -> bool:
    """Whether another distribution brings another file of this name: which one lies there is a matter of luck."""
    others = (other for other in look.site.owners[path] if other is not one and not look.knows(other))
    return any(other.rows[path] != one.rows[path] for other in others)


def _loading(one: Distribution) -> Iterator[str]:
    for group, lines in one.entry_points.items():
        if group == PLUGINS or group in LOADED:
            yield from filter(None, map(module_of_line, lines))


def _place(look: Look, one: Distribution, module: str) -> str:
    """Return the folder, or the path without its suffix, that a module and what it stands on lies in."""
    parts = module.split(".")
    for end in range(1, len(parts)):
        place = "/".join(parts[:end])
        owners = look.site.owners.get(f"{place}/__init__.py", ())
        if owners == (one,):
            return place
    return "/".join(parts)


def _below(look: Look, place: str) -> Iterator[str]:
    for path, entry in look.site.files.items():
        rest = path[len(place) :] if path.startswith(place) else ""
        if entry.kind != "dir" and (rest.startswith("/") or (rest.startswith(".") and rest.endswith(_SUFFIXES))):
            yield path
