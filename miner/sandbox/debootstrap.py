"""A fresh Debian system as a tar, by mmdebstrap: reproducible as long as Debian's archive stands still."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from miner.core.errors import DiskFull, InfrastructureFault, MachineError
from miner.core.reasons import Reason

_TIMEOUT_S = 1800
_KEPT_VARIABLES = ("TMPDIR", "http_proxy", "https_proxy", "no_proxy")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def host_architecture() -> str:
    """Return this machine's architecture as Debian and the engine name it, or the kernel's word where unknown."""
    return _MACHINES.get(platform.machine(), platform.machine())


def debootstrap(out: Path, *, suite: str, packages: Sequence[str], epoch: int) -> None:
    """Write the tar of a minimal system with apt and the given packages.

    Raises:
        MachineError: mmdebstrap is not installed.
        InfrastructureFault: it failed; Debian's archive may not be reachable.
    """
    tool = shutil.which("mmdebstrap")
    if tool is None:
        raise MachineError(
            "the base image is not built yet, and building it needs mmdebstrap",
            next_step="run `make docker` (as root on Debian or Ubuntu), or set docker.base_image to an image by digest",
        )
    command = [tool, "--variant=apt", "--format=tar", f"--include={','.join(packages)}"]
    command += ['--aptopt=Acquire::Retries "3"', suite, "-"]
    env = {name: value for name in _KEPT_VARIABLES if (value := os.environ.get(name))}
    env |= {"PATH": _SYSTEM_PATH, "LC_ALL": "C.UTF-8", "SOURCE_DATE_EPOCH": str(epoch)}
    with out.open("wb") as tar, tempfile.TemporaryFile(dir=out.parent) as log:
        process = subprocess.Popen(command, stdout=tar, stderr=log, stdin=subprocess.DEVNULL, env=env)
        status = _wait(process)
        log.seek(0)
        text = log.read().decode(errors="replace").strip()
    if status != 0:
        raise _failure(status, text)


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    """Wait for the end; a time-out or an interruption ends the process in order, so that it removes its folder."""
    try:
        return process.wait(_TIMEOUT_S)
    except BaseException as error:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return None
        raise


def _failure(status: int | None, text: str) -> InfrastructureFault:
    tail = "\n".join(text.splitlines()[-15:])
    if "no space left on device" in text.lower():
        return DiskFull(f"no space left while building the base image:\n{tail}")
    what = f"not done after {_TIMEOUT_S} s" if status is None else f"exit status {status}"
    return InfrastructureFault(
        f"mmdebstrap could not build the base image ({what}):\n{tail}",
        reason=Reason.BASE_IMAGE_UNAVAILABLE,
        next_step="check that Debian's package archive is reachable (http_proxy is passed on), then run it again",
    )
