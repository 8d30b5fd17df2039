"""Which requirements would bring other code than the index's, or a plug-in that decides what tests do."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from installers.debian_names import is_package_name
from installers.distrust.changed import Changed
from installers.distrust.mechanism import Mechanism
from installers.distrust.plugins import STEERING
from installers.distrust.runner import RUNNER
from installers.reporting import NEEDS

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLUGINS = ("requirements", "overrides")
_TOOLS = frozenset({*NEEDS, "setuptools", "wheel"})
"""What rules of ours take without the date, since an old project's own would not run: none holds a solution."""


def _parsed(line: str) -> Requirement | None:
    if _CONTROL.search(line):
        return None
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


def _no_requirement(changed: Changed) -> Iterable[str]:
    return (repr(line[:200]) for line in changed.lines if _parsed(line) is None)


def _from_elsewhere(changed: Changed) -> Iterable[str]:
    for line in changed.lines:
        if (parsed := _parsed(line)) is not None and parsed.url:
            yield line


def _other_runner(changed: Changed) -> Iterable[str]:
    for line in changed.new("overrides"):
        parsed = _parsed(line)
        if parsed is not None and canonicalize_name(parsed.name) in RUNNER and (parsed.url or parsed.marker):
            yield line


def _steering(changed: Changed) -> Iterable[str]:
    known = {name_of(line) for one in changed.trusted for field in _PLUGINS for line in getattr(one, field)}
    for field in _PLUGINS:
        for line in changed.new(field):
            if (name := name_of(line)) in STEERING and name not in known:
                yield f"{line}: {STEERING[name]}"


def name_of(line: str) -> str:
    """Return the normalised name that a line asks for, "" for what is no requirement."""
    parsed = _parsed(line)
    return "" if parsed is None else canonicalize_name(parsed.name)


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
    Mechanism("without-date", "is taken without the date, so that it may hold the solution", _exempt),
    Mechanism("no-package", "is no name of a Debian package", _no_package),
)
