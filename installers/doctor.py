"""What installing needs of a machine: interpreters beside the base image's own."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from installers.interpreter_tree import HOMES
from installers.interpreters import local_pythons
from installers.managed_python import reached
from installers.pythons import Python, chosen_among
from miner.core.settings import Docker, Settings
from miner.sandbox.debootstrap import host_architecture
from miner.sandbox.doctor import Check

_NEXT_STEP = (
    "let this machine reach the mirror of uv's builds (UV_PYTHON_INSTALL_MIRROR names another one), "
    "or set paths.pythons to a folder of interpreters"
)


def checks(settings: Settings) -> list[Check]:
    """Look at everything."""
    return [check_pythons(settings, chosen_among(settings)), check_packages(settings.docker)]


def check_pythons(settings: Settings, pythons: Sequence[Python]) -> Check:
    """Whether interpreters are to be had, and which of the list are not."""
    own = [python for python in pythons if not python.executable.startswith(f"{HOMES}/")]
    others = [python for python in pythons if python not in own]
    if not others:
        return Check(name="interpreters", ok=True, detail=f"base image: {_names(own)}; no others are asked for")
    trouble = next(
        (reached(settings, one.managed, host_architecture()) for one in reversed(others) if one.managed is not None),
        "it has no build of any",
    )
    held = [python for python in others if local_pythons(settings.paths.pythons, python.version)]
    missing = [one for one in others if one not in held and (trouble is not None or one.managed is None)]
    said = [f"base image: {_names(own)}", "uv: its mirror answers" if trouble is None else f"uv: {trouble}"]
    folder = settings.paths.pythons
    said.append("paths.pythons is not set" if folder is None else f"{folder}: {_names(held)}")
    if missing:
        said.append(f"not to be had: {_names(missing)}")
    ok = trouble is None or bool(held)
    return Check(name="interpreters", ok=ok, detail="; ".join(said), next_step="" if ok else _NEXT_STEP)


def check_packages(settings: Docker) -> Check:
    """Whether layers of Debian packages can be made: the tool chain is one."""
    if shutil.which("mmdebstrap") is not None:
        return Check(name="Debian packages", ok=True, detail="mmdebstrap is there")
    if settings.base_image is not None:
        detail = "mmdebstrap is missing: there are only those that docker.base_image holds"
        return Check(name="Debian packages", ok=True, detail=detail)
    return Check(
        name="Debian packages",
        ok=False,
        detail="mmdebstrap is missing",
        next_step="run `make docker` as root on Debian",
    )


def _names(pythons: Sequence[Python]) -> str:
    return ", ".join(python.version for python in pythons) or "none"
