"""The program that builds and installs in boxes, and what its back ends ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

NO_HOOK = 3
"""Exit code of the front end where the back end does not know the hook."""

PROGRAM = Path(__file__).with_name("inside").joinpath("offline.py").read_text(encoding="utf-8")
"""The program itself: `installers/inside/offline.py`, which runs on old interpreters and is not imported here."""

_SETUPTOOLS = re.compile(r"setuptools(?:\.|:|$)")


def is_setuptools(backend: str) -> bool:
    """Whether a back end is that of setuptools."""
    return _SETUPTOOLS.match(backend) is not None


def unsatisfied(asked: Iterable[object], packages: Mapping[str, str], python: str) -> tuple[str, ...]:
    """Return what of the requirements that a back end asks for is not among the installed packages.

    Args:
        asked: PEP 508 strings, as a back end gave them; what is none is left out.
        packages: name -> version of what is installed.
        python: "3.8", for markers.
    """
    missing = []
    for text in asked:
        requirement = _requirement(text)
        if requirement is None or not applies(requirement, python):
            continue
        version = packages.get(canonicalize_name(requirement.name))
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            missing.append(str(requirement))
    return tuple(dict.fromkeys(missing))


def _requirement(text: object) -> Requirement | None:
    try:
        return Requirement(text) if isinstance(text, str) else None
    except InvalidRequirement:
        return None


def applies(requirement: Requirement, python: str) -> bool:
    """Whether a requirement's marker holds in a box with CPython X.Y."""
    if requirement.marker is None:
        return True
    ours = {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": f"{python}.0",
        "python_version": python,
        "sys_platform": "linux",
        "extra": "",
    }
    return requirement.marker.evaluate(ours)
