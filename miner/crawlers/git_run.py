"""How git is run: apart from the settings of this machine and its user, within a bound of time, and ended as a whole.

Environment variables: https://git-scm.com/docs/git#_environment_variables.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import git

from miner.core.errors import DiskFull, InfrastructureFault, Interrupted, MachineError

TIMEOUT_S = 1800.0
_POLL_S = 0.5
_ENV = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_COUNT": "0",
    "GIT_CONFIG_PARAMETERS": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_DIFF_OPTS": "",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",  # what fetches says by which protocol it may
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
}
_CONFIG = ("core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "core.quotePath=true", "gc.auto=0")
_COMPLAINT = re.compile(r"^(?:error|fatal)[: ]|unable to read|No space left", re.MULTILINE)


class GitFault(InfrastructureFault):
    """A git command failed, or what it works on is missing or damaged."""


class GitTimeout(InfrastructureFault):
    """A git command took longer than it may."""


class GitRunner:
    """Runs git on one git directory.

    Args:
        path: the git directory.
        timeout_s: how long one command may take.
        stopped: ends the command that is running, and lets no other begin.
    """

    def __init__(self, path: Path, *, timeout_s: float = TIMEOUT_S, stopped: threading.Event | None = None) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._stopped = stopped or threading.Event()
        self._git = git.Git(str(path))
        self._env = {**_ENV, "GIT_OBJECT_DIRECTORY": str(path / "objects"), "GIT_COMMON_DIR": str(path)}

    def run(
        self,
        args: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        keep_open: Sequence[int] = (),
    ) -> tuple[int, bytes, str]:
        """Return the exit code of a command, its output and its error output.

        Args:
            args: of git; settings first (`-c`, `key=value`).
            stdin: what it reads.
            env: variables beside those that it always gets.
            keep_open: files that it holds open as long as it runs, such as a lock that is to live as long as it does.

        Raises:
            GitTimeout: it took longer than it may.
            Interrupted: everything is to stop.
            MachineError: git is not installed.
        """
        config = [word for setting in _CONFIG for word in ("-c", setting)]
        with tempfile.TemporaryFile(dir=self._path) as feed:
            feed.write(stdin)
            feed.seek(0)
            try:
                process = self._git.execute(
                    ["git", f"--git-dir={self._path}", *config, *args],
                    istream=feed,
                    as_process=True,
                    env={**self._env, **(env or {})},
                    start_new_session=True,  # so that what git starts ends with it
                    pass_fds=tuple(keep_open),
                )
            except git.GitCommandNotFound as error:
                raise MachineError("git is not installed") from error
            return self._wait(process, command_of(args))

    def _wait(self, process: git.Git.AutoInterrupt, command: str) -> tuple[int, bytes, str]:
        until = time.monotonic() + self._timeout_s
        try:
            while True:
                try:
                    out, err = process.communicate(timeout=_POLL_S)
                    return process.returncode, out, err.decode("utf-8", "replace")
                except subprocess.TimeoutExpired:
                    if self._stopped.is_set():
                        raise Interrupted(f"stopped while git {command} ran") from None
                    if time.monotonic() > until:
                        detail = f"git {command} was ended after {self._timeout_s:g} seconds"
                        raise GitTimeout(detail) from None
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise


def command_of(args: Sequence[str]) -> str:
    """Return the name of a command, which stands behind its settings."""
    at = 0
    while args[at] == "-c":
        at += 2
    return args[at]


def failed(status: int, err: str) -> bool:
    """Whether a command failed, or complained on its error output while its exit code says success."""
    return status != 0 or _COMPLAINT.search(err) is not None


def checked(command: str, status: int, out: bytes, err: str) -> bytes:
    """Return the output of a command.

    Raises:
        DiskFull: no space is left.
        GitFault: it failed.
    """
    if "No space left on device" in err:
        raise DiskFull(f"no space left while git {command} ran")
    if failed(status, err):
        raise GitFault(f"git {command} failed with exit code {status}: {err.strip()[-2000:]}")
    return out
