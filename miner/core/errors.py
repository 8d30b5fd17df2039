"""Errors, one class per cause, each with an exit code and the next step for the person who reads it.

    SweMinerError                exit 1
    ├── UsageError               exit 2   the command line asks for something that does not exist
    ├── ConfigError              exit 3   unknown key, wrong type, unreadable file
    ├── LedgerError              exit 4   ledger newer than the program, damaged, or missing
    │   └── LedgerBusy           exit 5   another run holds the ledger
    ├── InfrastructureFault      exit 6   (see `reason`)
    │   ├── DockerUnavailable    exit 7
    │   ├── IndexUnreachable     exit 8
    │   ├── DiskFull             exit 9
    │   ├── BlobLost             exit 6
    │   ├── ForgeUnreachable     exit 13
    │   ├── ForgeLimited         exit 14
    │   │   └── CapReached       exit 14  our own `run.max_points`, as the client of the forge sees it
    │   ├── ForgeToken           exit 15
    │   └── ModelFault           exit 18  the endpoint of a language model
    ├── ReleaseError             exit 10  a release cannot be rebuilt from what the ledger holds
    ├── MachineError             exit 11  the machine lacks something that set-up should have installed
    ├── SnapshotError            exit 17  a snapshot is damaged, newer than the program, or of another crawl
    └── Interrupted              exit 130 Ctrl-C or SIGTERM; everything completed is kept

An exit code of 12 says that a run ended, but left candidates in the state "faulted"; one of 16, that it stopped at a
cap of its own (`run.max_hours`, `run.max_points`) with work left.
"""

from __future__ import annotations

import errno

from miner.core.reasons import Reason

EXIT_FAULTED = 12
EXIT_CAPPED = 16


class SweMinerError(Exception):
    """Base of all errors that a person is meant to read.

    Args:
        message: what happened, with the names and values that matter.
        next_step: what to do about it.
    """

    exit_code = 1
    next_step = "see the log for details"

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message)
        if next_step is not None:
            self.next_step = next_step


class UsageError(SweMinerError):
    """The command line asks for something that does not exist."""

    exit_code = 2
    next_step = "see `swe-miner --help`"


class ConfigError(SweMinerError):
    """A configuration file, variable or `-c key=value` is wrong."""

    exit_code = 3
    next_step = "compare with configs/defaults.toml"


class LedgerError(SweMinerError):
    """The ledger cannot be used as it is."""

    exit_code = 4
    next_step = "use the version of swe-miner that wrote the ledger, or a copy of it"


class LedgerBusy(LedgerError):
    """Another process writes to this ledger."""

    exit_code = 5
    next_step = "wait for the other run to end, or choose another ledger with `-c paths.work=...`"


class InfrastructureFault(SweMinerError):
    """A fault that says nothing about a task: retried with a bound, then reported (law 2)."""

    exit_code = 6
    reason = Reason.INTERNAL_ERROR
    next_step = "run the same command again: it goes on where it stopped"

    def __init__(self, message: str, *, reason: Reason | None = None, next_step: str | None = None) -> None:
        super().__init__(message, next_step=next_step)
        if reason is not None:
            self.reason = reason


class DockerUnavailable(InfrastructureFault):
    """No container engine answers."""

    exit_code = 7
    reason = Reason.DOCKER_UNAVAILABLE
    next_step = "run `make docker` (as root on Debian or Ubuntu), or start your engine and check `swe-miner doctor`"


class IndexUnreachable(InfrastructureFault):
    """The package index does not answer."""

    exit_code = 8
    reason = Reason.INDEX_UNREACHABLE
    next_step = "check the network, `index.url` and `index.ca_bundle`, then run the same command again"


class DiskFull(InfrastructureFault):
    """No space is left on the host or in the engine."""

    exit_code = 9
    reason = Reason.DISK_FULL
    next_step = "free some space (`make clean`, `docker system prune`), then run the same command again"


class BlobLost(InfrastructureFault):
    """A blob that a fact names is missing or damaged."""

    next_step = "bring the blobs back, or `swe-miner invalidate` the facts that rest on it"


class ForgeUnreachable(InfrastructureFault):
    """The forge does not answer, or answers with errors or nonsense, after all retries."""

    exit_code = 13
    reason = Reason.FORGE_UNREACHABLE
    next_step = "check the network and `github.api_url`, then run the same command again: it goes on where it stopped"


class ForgeLimited(InfrastructureFault):
    """Every token's rate limit is used up for longer than `github.max_wait_s`, or the run's own cap is reached."""

    exit_code = 14
    reason = Reason.FORGE_LIMITED
    next_step = "run the same command again later, add a token, or raise `github.max_wait_s`"


class CapReached(ForgeLimited):
    """The next request could spend more of the forge's points than the run may."""

    next_step = "raise `run.max_points`, or run the same command again later: it goes on where it stopped"


class ForgeToken(InfrastructureFault):
    """There is no token, or the forge refuses it, or it lacks a scope."""

    exit_code = 15
    reason = Reason.FORGE_LOGIN
    next_step = "put a valid token into GITHUB_TOKEN; `swe-miner doctor --github` says which scopes it needs"


class ModelFault(InfrastructureFault):
    """The endpoint of a language model does not answer, or answers with errors, limits or nonsense."""

    exit_code = 18
    reason = Reason.MODEL_UNREACHABLE
    next_step = "`swe-miner doctor --model` says what the endpoint answers; without it, unset OPENAI_BASE_URL"


def is_disk_full(error: OSError) -> bool:
    """Whether an error of the operating system says that no space, or no quota, is left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


class ReleaseError(SweMinerError):
    """A release cannot be built or rebuilt from what the ledger holds."""

    exit_code = 10
    next_step = "use the ledger and blobs that the release.lock was made from"


class MachineError(SweMinerError):
    """The machine lacks something that set-up should have installed."""

    exit_code = 11
    next_step = "run `make setup`"


class SnapshotError(SweMinerError):
    """A snapshot cannot be used as it is."""

    exit_code = 17
    next_step = "copy the whole folder again from where it was written, and compare with its snapshot.json"


class Interrupted(SweMinerError):
    """Ctrl-C or SIGTERM: a clean stop."""

    exit_code = 130
    next_step = "run the same command again: it goes on where it stopped"
