"""A fresh Debian system as a tar, by mmdebstrap: reproducible as long as Debian's archive stands still."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from miner.core.errors import DiskFull, InfrastructureFault, MachineError
from miner.core.reasons import Reason

_TIMEOUT_S = 1800
_KEPT_VARIABLES = ("TMPDIR", "http_proxy", "https_proxy", "no_proxy")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NEXT_STEP = "check that Debian's package archive is reachable (http_proxy is passed on), then run it again"
_REFUSED = re.compile(
    r"^E: (?:Unable to locate package|Couldn't find any package|Package '.*' has no installation candidate"
    r"|Unable to correct problems|Sub-process /usr/bin/dpkg returned|Version '.*' for '.*' was not found"
    r"|Unable to satisfy dependencies|Conflicts:)",
    re.MULTILINE,
)
"""What apt says of packages (apt's own messages, apt-private/private-cacheset.cc and apt-pkg)."""
_FAULT = re.compile(
    r"Failed to fetch|Temporary failure resolving|Could not (?:connect|resolve)|Unable to connect"
    r"|Connection (?:failed|timed)|[Nn]o space left on device"
)
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
    arguments = ["--variant=apt", f"--include={','.join(packages)}"]
    status, text = _mmdebstrap(out, arguments, suite, epoch)
    if status != 0:
        raise _failure(status, text)


def install_packages(system: Path, out: Path, *, suite: str, packages: Sequence[str], epoch: int) -> str | None:
    """Write the tar of a system with more packages, and with the lists of all packages that apt knows.

    What the system has stays as it is, unless a package asks for more.

    Args:
        system: the tar of the system.
        out: the tar that is written.
        suite: of Debian.
        packages: names.
        epoch: time of files that have none of their own.

    Returns:
        What was said where Debian's archive answers, but has no such packages or they do not fit together.

    Raises:
        MachineError: mmdebstrap is not installed.
        InfrastructureFault: it failed; Debian's archive may not be reachable.
    """
    arguments = ["--variant=custom", f"--include={','.join(packages)}", f"--setup-hook=tar-in {quote(str(system))} /"]
    arguments += ["--skip=cleanup/apt/lists", '--aptopt=Acquire::GzipIndexes "false"', "--dpkgopt=force-unsafe-io"]
    status, text = _mmdebstrap(out, arguments, suite, epoch)
    if status == 0:
        return None
    if status is not None and _REFUSED.search(text) and not _FAULT.search(text):
        return text
    raise _archive_failure(status, text)


def _mmdebstrap(out: Path, arguments: Sequence[str], suite: str, epoch: int) -> tuple[int | None, str]:
    """Run mmdebstrap and return its exit status, None where it took too long, and what it said."""
    tool = shutil.which("mmdebstrap")
    if tool is None:
        raise MachineError(
            "the base image and layers of Debian packages are made with mmdebstrap, which is not here",
            next_step="run `make docker` (as root on Debian or Ubuntu), or set docker.base_image to an image by digest "
            "that holds what is needed",
        )
    command = [tool, "--format=tar", '--aptopt=Acquire::Retries "3"', *arguments, suite, "-"]
    env = {name: value for name in _KEPT_VARIABLES if (value := os.environ.get(name))}
    env |= {"PATH": _SYSTEM_PATH, "LC_ALL": "C.UTF-8", "SOURCE_DATE_EPOCH": str(epoch)}
    with out.open("wb") as tar, tempfile.TemporaryFile(dir=out.parent) as log:
        process = subprocess.Popen(command, stdout=tar, stderr=log, stdin=subprocess.DEVNULL, env=env)
        status = _wait(process)
        log.seek(0)
        return status, log.read().decode(errors="replace").strip()


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
    tail = _tail(text)
    if "no space left on device" in text.lower():
        return DiskFull(f"no space left while mmdebstrap ran:\n{tail}")
    what = f"not done after {_TIMEOUT_S} s" if status is None else f"exit status {status}"
    return InfrastructureFault(
        f"mmdebstrap could not build the base image ({what}):\n{tail}",
        reason=Reason.BASE_IMAGE_UNAVAILABLE,
        next_step=_NEXT_STEP,
    )


def _archive_failure(status: int | None, text: str) -> InfrastructureFault:
    fault = _failure(status, text)
    if isinstance(fault, DiskFull):
        return fault
    message = f"Debian packages could not be installed:\n{_tail(text)}"
    return InfrastructureFault(message, reason=Reason.SYSTEM_ARCHIVE_UNREACHABLE, next_step=_NEXT_STEP)


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-15:])
