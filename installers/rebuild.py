"""The script that installs the project from `/testbed`, offline: `/opt/build` and what lies in it.

The image keeps `/opt/build` where the script has to run again after every patch. A copy (NORMAL) is built in a folder
of its own; a link back to the tree (EDITABLE, and COMPILED, which builds its extension modules in the tree itself) is
made in `/testbed`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from installers.boxes import BUILD, build_variables
from installers.hooks import NO_HOOK, PROGRAM, is_setuptools
from installers.venv_layer import ENV
from miner.core.hashing import sha256_bytes
from miner.core.records import BuildMode, Recipe
from miner.sandbox.image_archive import TarEntry

REBUILD = f"{BUILD}/reinstall"
KEPT = (BuildMode.NORMAL, BuildMode.COMPILED)
"""Modes whose images keep `/opt/build`."""

_OFFLINE = f"{BUILD}/offline.py"
_OWNER = 1000

_SCRIPT = """\
#!/bin/bash
# Installs the project from /testbed into {env}, offline. Run it after every change of the source tree.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{place}
{exports}
status=0
{build}/bin/python {offline} build {hook} {backend} {backend_path} "$work/wheel" || status=$?
if [ "$status" -eq 0 ]; then
    {env}/bin/python {offline} install "$work/wheel"
{otherwise}else
    exit "$status"
fi
"""
_COPY = """\
# It builds a copy, so that nothing of an earlier build is taken and nothing of this one is left in the tree.
cp -a /testbed "$work/source"
cd "$work/source"{folder}"""
_IN_PLACE = "cd /testbed{folder}"
_HEADERS = """\
# Of a header that has changed, what includes it is not known: everything is compiled again.
if [ -n "$(find . -newer {offline} -type f \\( {headers} \\) -print -quit)" ]; then
    find . -type f \\( {sources} \\) -exec touch {{}} +
    find . -type f -name '*.pyx' -exec touch {{}} +  # later than what was made of them
fi"""
_DEVELOP = """\
elif [ "$status" -eq {no_hook} ]; then
    # This setuptools does not know PEP 660: a link as `setup.py develop` makes it.
    PYTHONPATH={build}/lib/python{python}/site-packages {env}/bin/python {offline} develop
"""
_HEADER_NAMES = ("*.h", "*.hh", "*.hpp", "*.hxx", "*.inc", "*.inl", "*.pxd", "*.pxi", "*.tpl", "*.in")
_SOURCE_NAMES = ("*.c", "*.cc", "*.cpp", "*.cxx", "*.f", "*.f90", "*.m", "*.mm", "*.s", "*.S")


def build_requirements(recipe: Recipe, mode: BuildMode) -> tuple[str, ...]:
    """Return what is locked for building the project in a mode, beside what its back end names only when asked.

    setuptools asks for `wheel` only when it runs (before 70.1), so it is locked along.
    """
    if mode is BuildMode.NONE:
        return ()
    wheel = ("wheel",) if is_setuptools(recipe.build_backend) else ()
    return tuple(dict.fromkeys((*recipe.build_requirements, *wheel)))


def rebuild_script(
    *,
    mode: BuildMode,
    python: str,
    project_dir: str,
    build_env: Mapping[str, str],
    backend: str,
    backend_path: tuple[str, ...] = (),
    online: bool = False,
) -> str:
    """Return the script that installs `/testbed` into `/opt/env`."""
    folder = shlex.quote(f"/{project_dir}") if project_dir else ""
    copied = mode is BuildMode.NORMAL
    place = [(_COPY if copied else _IN_PLACE).format(folder=folder)]
    if mode is BuildMode.COMPILED:
        place.append(_HEADERS.format(offline=_OFFLINE, headers=_names(_HEADER_NAMES), sources=_names(_SOURCE_NAMES)))
    linked = not copied and is_setuptools(backend)
    variables = sorted(build_variables(build_env, online=online).items())
    return _SCRIPT.format(
        place="\n".join(place),
        exports="\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables),
        build=BUILD,
        env=ENV,
        offline=_OFFLINE,
        hook="build_wheel" if copied else "build_editable",
        backend=shlex.quote(backend),
        backend_path=shlex.quote(json.dumps(list(backend_path))),
        otherwise=_DEVELOP.format(no_hook=NO_HOOK, build=BUILD, python=python, env=ENV, offline=_OFFLINE)
        if linked
        else "",
    )


def program_of(script: str) -> str:
    """Return what stands for a script and the program that it calls, in input hashes."""
    return sha256_bytes(f"{script}{PROGRAM}".encode())


def _names(patterns: tuple[str, ...]) -> str:
    return " -o ".join(f"-name '{pattern}'" for pattern in patterns)


def ask_command(mode: BuildMode, backend: str, backend_path: tuple[str, ...], to: str) -> list[str]:
    """Return the command that writes down what else the back end needs in a mode (`get_requires_for_build_*`)."""
    hook = "build_wheel" if mode is BuildMode.NORMAL else "build_editable"
    return [f"{BUILD}/bin/python", _OFFLINE, "ask", hook, backend, json.dumps(list(backend_path)), to]


def offline_entries(script: str) -> list[TarEntry]:
    """Return what is laid into `/opt/build` beside the build requirements."""
    folder = TarEntry(BUILD.lstrip("/"), "dir", 0o755, _OWNER, _OWNER)
    return [folder, _file(REBUILD, script.encode(), 0o755), _file(_OFFLINE, PROGRAM.encode(), 0o644)]


def _file(path: str, data: bytes, mode: int) -> TarEntry:
    return TarEntry(path.lstrip("/"), "file", mode, _OWNER, _OWNER, content=data)
