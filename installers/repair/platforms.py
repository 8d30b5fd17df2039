"""Which wheels an environment can install: tags of CPython on Linux with glibc (PEP 425, 600)."""

from __future__ import annotations

import platform
from functools import lru_cache

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion

_GLIBC_MINOR = 36
"""Of the base image's suite."""
_LEGACY = {"manylinux2014": 17, "manylinux2010": 12, "manylinux1": 5}


def fits(filename: str, python: str) -> bool:
    """Whether a wheel can be installed for "3.11" in an image of this machine's architecture."""
    try:
        tags = parse_wheel_filename(filename)[3]
    except (InvalidWheelFilename, InvalidVersion):
        return False
    return not tags.isdisjoint(_supported(python))


@lru_cache(maxsize=32)
def _supported(python: str) -> frozenset[Tag]:
    major, minor = (int(part) for part in python.split(".")[:2])
    machine = platform.machine()
    platforms = [f"manylinux_2_{number}_{machine}" for number in range(_GLIBC_MINOR, 4, -1)]
    platforms += [f"{name}_{machine}" for name in _LEGACY] + [f"linux_{machine}"]
    abis = [f"cp{major}{minor}m"] if (major, minor) < (3, 8) else [f"cp{major}{minor}"]
    own = cpython_tags((major, minor), abis=abis, platforms=platforms)
    return frozenset((*own, *compatible_tags((major, minor), f"cp{major}{minor}", platforms)))
