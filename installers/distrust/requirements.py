"""Which requirements would bring other code than the index's, or a plug-in that decides what tests do."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from installers.debian_names import is_package_name
from installers.distrust.changed import Changed
from installers.distrust.mechanism import Mechanism
from installers.distrust.plugins import REPORTS, STEERING, WELL_KNOWN
from installers.distrust.runner import RUNNER
from installers.reporting import NEEDS
from installers.requirements import holds

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLUGINS = ("requirements", "overrides")
_TOOLS = frozenset({*NEEDS, "setuptools", "wheel"})
"""What rules of ours take without the date, since an old project's own would not run: none holds a solution."""


def parsed(line: str) -> Requirement | None:
    """Return a line as a requirement; None for what is none."""
    if _CONTROL.search(line):
        return None
    try:
        return Requirement(line)
    except (InvalidRequirement, RecursionError):
        return None


def _no_requirement(changed: Changed) -> Iterable[str]:
    return (repr(line[:200]) for line in changed.lines if parsed(line) is None)


def _from_elsewhere(changed: Changed) -> Iterable[str]:
    for line in changed.lines:
        if (one := parsed(line)) is not None and one.url:
            yield line


def _other_runner(changed: Changed) -> Iterable[str]:
    for line in changed.new("overrides"):
        one = parsed(line)
        if one is not None and canonicalize_name(one.name) in RUNNER and (one.url or one.marker):
            yield line


def _steering(changed: Changed) -> Iterable[str]:
    known = {name_of(line) for one in changed.trusted for field in _PLUGINS for line in getattr(one, field)}
    for field in _PLUGINS:
        for line in changed.new(field):
            if (name := name_of(line)) in STEERING and name not in known:
                yield f"{line}: {STEERING[name]}"


def name_of(line: str) -> str:
    """Return the normalised name that a line asks for, "" for what is no requirement."""
    one = parsed(line)
    return "" if one is None else canonicalize_name(one.name)


def _dropped(changed: Changed) -> Iterable[str]:
    """Yield plug-ins that every recipe of ours asks for and this one does not, or takes away by an override."""
    python = changed.recipe.python
    known = [_asked(one.requirements, python) for one in changed.trusted]
    plugins = [name for name in known[0] if _is_plugin(name) and all(name in asked for asked in known)]
    taken = {name_of(line) for line in _removing(changed)}
    for name in plugins:
        if name not in _asked(changed.recipe.requirements, python):
            yield f"{name} is gone"
        elif name in taken:
            yield f"{name} is overridden by nothing"


def _asked(lines: Iterable[str], python: str) -> dict[str, None]:
    """Return the names that lines ask for on a version of Python."""
    return dict.fromkeys(name_of(line) for line in lines if not _is_void(line, python))


def _is_plugin(name: str) -> bool:
    """Whether tests may need a plug-in: what only reports, or steers by itself, takes none away when it goes."""
    if name in REPORTS or name in STEERING:
        return False
    return name in WELL_KNOWN or name.startswith("pytest-")


def _removing(changed: Changed) -> Iterable[str]:
    return (line for line in changed.new("overrides") if _is_void(line, changed.recipe.python))


def _is_void(line: str, python: str) -> bool:
    """Whether the marker of a requirement does not hold, or says nothing that could."""
    one = parsed(line)
    if one is None:
        return False
    try:
        return not holds(one, python)
    except (UndefinedComparison, UndefinedEnvironmentName, InvalidVersion, RecursionError):
        return True


def _exempt(changed: Changed) -> Iterable[str]:
    own = canonicalize_name(changed.recipe.distribution)
    return (name for name in changed.new("exempt") if name not in _TOOLS or name == own)


def _no_package(changed: Changed) -> Iterable[str]:
    return (repr(name[:80]) for name in changed.new("system_packages") if not is_package_name(name))


REQUIREMENTS: tuple[Mechanism, ...] = (
    Mechanism(
        "no-requirement",
        "is no requirement by name and version: a path, an option, or more than one line",
        _no_requirement,
    ),
    Mechanism("from-elsewhere", "is taken from a URL, a path or a repository instead of the index", _from_elsewhere),
    Mechanism("other-runner", "replaces or removes pytest, or what pytest itself stands on", _other_runner),
    Mechanism("steering-plugin", "brings a plug-in that selects, skips, repeats or reorders tests", _steering),
    Mechanism("plugin-dropped", "a plug-in of pytest that the project declares would not be there", _dropped),
    Mechanism("override-removes", "takes a distribution away: the override's marker does not hold", _removing),
    Mechanism("without-date", "is taken without the date, so that it may hold the solution", _exempt),
    Mechanism("no-package", "is no name of a Debian package", _no_package),
)
