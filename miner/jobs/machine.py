"""Versions that stand on a run."""

from __future__ import annotations

import platform
from importlib.metadata import version


def versions() -> dict[str, str]:
    """Return the versions of this program and of what shapes its results."""
    names = ("swe-miner", "uv", "docker", "pyarrow", "sqlalchemy")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
