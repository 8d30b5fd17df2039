"""The offline re-install of a project that is not installed editable: `/opt/build` and the script in it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from miner.sandbox.container import DockerBox
from miner.sandbox.interface import ExecResult

BUILD = "/opt/build"
REBUILD = f"{BUILD}/reinstall"
PIP = "pip==24.0"
"""Installs offline into another environment (`pip --python`), on every Python from 3.7 on."""
PIP_UNTIL = "2024-02-04T00:00:00+00:00"

_SCRIPT = """\
#!/bin/sh
# Installs the project from /testbed into /opt/env, offline. Run it after every change of the source tree.
# It builds a copy, so that nothing of an earlier build is taken and nothing of this one is left in the tree.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -a /testbed "$work/source"
cd "$work/source"{folder}
export PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INDEX=1
export PYTHONDONTWRITEBYTECODE=1 SOURCE_DATE_EPOCH=946684800
{exports}pip() {{ {build}/bin/python -m pip "$@"; }}
pip wheel --quiet --no-deps --use-pep517 --no-build-isolation --wheel-dir "$work/wheel" .
pip --python /opt/env/bin/python install --quiet --no-deps --force-reinstall --no-compile "$work"/wheel/*.whl
"""

_ASK = """\
import json, sys
from pip._vendor import tomli
from pip._vendor.pyproject_hooks import BuildBackendHookCaller
try:
    with open("pyproject.toml", "rb") as file:
        system = tomli.load(file).get("build-system", {})
except FileNotFoundError:
    system = {}
backend = system.get("build-backend") or "setuptools.build_meta:__legacy__"
caller = BuildBackendHookCaller(".", backend, backend_path=system.get("backend-path"))
with open(sys.argv[1], "w") as file:
    file.writelines(line + "\\n" for line in caller.get_requires_for_build_wheel())
"""


def rebuild_script(project_dir: str, build_env: Mapping[str, str]) -> str:
    """Return the script that installs `/testbed` into `/opt/env`."""
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in sorted(build_env.items()))
    folder = shlex.quote(f"/{project_dir}") if project_dir else ""
    return _SCRIPT.format(folder=folder, exports=exports, build=BUILD)


def dynamic_requirements(box: DockerBox, source: str, build_env: Mapping[str, str], to: str) -> ExecResult:
    """Ask the build back end what else it needs for a wheel (PEP 517, `get_requires_for_build_wheel`)."""
    return box.run([f"{BUILD}/bin/python", "-c", _ASK, to], env=build_env, workdir=source)
