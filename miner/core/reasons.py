"""The one enumeration of reasons: every rejection and every fault of the infrastructure has a code from here.

`docs/reasons.md` is generated from this table by `swe-miner docs reasons` and tested to be complete.
"""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """Where in the pipeline a reason arises, in order."""

    DISCOVER = "discover"
    EXTRACT = "extract"
    SCREEN = "screen"
    INSTALL = "install"
    VALIDATE = "validate"
    EXPORT = "export"
    INFRASTRUCTURE = "infrastructure"


class Reason(StrEnum):
    """A code that never changes its meaning. The table `MEANINGS` gives its stage and a sentence for people."""

    # discover
    UNKNOWN_PACKAGE = "unknown-package"
    UNKNOWN_VERSION = "unknown-version"
    NO_SDIST = "no-sdist"
    # extract
    HASH_MISMATCH = "hash-mismatch"
    ARCHIVE_CORRUPT = "archive-corrupt"
    ARCHIVE_ESCAPES = "archive-escapes"
    ARCHIVE_TOO_LARGE = "archive-too-large"
    ARCHIVE_SPECIAL_FILE = "archive-special-file"
    ARCHIVE_NO_PROJECT = "archive-no-project"
    # screen
    NO_STATEMENT = "no-statement"
    STATEMENT_TOO_SHORT = "statement-too-short"
    NO_TEST_CHANGE = "no-test-change"
    NO_TEST_FILES = "no-test-files"
    NO_GOLD_CHANGE = "no-gold-change"
    TOO_MANY_FILES = "too-many-files"
    PATCH_TOO_LARGE = "patch-too-large"
    # install
    NO_PYTHON = "no-python"
    SETUP_UNREADABLE = "setup-unreadable"
    LOCK_FAILED = "lock-failed"
    BUILD_FAILED = "build-failed"
    PROJECT_INSTALL_FAILED = "project-install-failed"
    BUILD_TIMEOUT = "build-timeout"
    BUILD_LIMIT = "build-limit"
    IMPORT_FAILED = "import-failed"
    NOTHING_COLLECTED = "nothing-collected"
    PYTEST_UNUSABLE = "pytest-unusable"
    EDIT_NOT_SEEN = "edit-not-seen"
    # validate
    PATCH_DOES_NOT_APPLY = "patch-does-not-apply"
    REBUILD_FAILED = "rebuild-failed"
    RUN_TIMEOUT = "run-timeout"
    RUN_OUT_OF_MEMORY = "run-out-of-memory"
    RUN_LIMIT = "run-limit"
    RUN_CRASHED = "run-crashed"
    REPORT_DAMAGED = "report-damaged"
    NOTHING_RAN = "nothing-ran"
    NOTHING_FAILS_BEFORE = "nothing-fails-before"
    TOO_FEW_FLIPS = "too-few-flips"
    FAILS_AFTER = "fails-after"
    PASS_TO_FAIL = "pass-to-fail"  # noqa: S105 - a reason code, not a secret
    TESTS_VANISHED = "tests-vanished"
    ONLY_UNSTABLE_FLIPS = "only-unstable-flips"
    # export
    SOURCE_NOT_RELEASED = "source-not-released"
    NOT_PUBLIC = "not-public"
    SECRET_FOUND = "secret-found"  # noqa: S105 - a reason code, not a secret
    # infrastructure: never a property of a task
    INDEX_UNREACHABLE = "index-unreachable"
    INDEX_ERROR = "index-error"
    DOCKER_UNAVAILABLE = "docker-unavailable"
    DOCKER_ERROR = "docker-error"
    BASE_IMAGE_UNAVAILABLE = "base-image-unavailable"
    DISK_FULL = "disk-full"
    HOST_OUT_OF_MEMORY = "host-out-of-memory"
    INTERNAL_ERROR = "internal-error"

    @property
    def stage(self) -> Stage:
        """The stage at which this reason arises."""
        return MEANINGS[self][0]

    @property
    def meaning(self) -> str:
        """One line for people."""
        return MEANINGS[self][1]

    @property
    def is_fault(self) -> bool:
        """Whether this is a fault of the infrastructure: retried, reported, never taken for a property of the task."""
        return self.stage is Stage.INFRASTRUCTURE


_D, _E, _S, _I, _V, _X, _F = (
    Stage.DISCOVER,
    Stage.EXTRACT,
    Stage.SCREEN,
    Stage.INSTALL,
    Stage.VALIDATE,
    Stage.EXPORT,
    Stage.INFRASTRUCTURE,
)

MEANINGS: dict[Reason, tuple[Stage, str]] = {
    Reason.UNKNOWN_PACKAGE: (_D, "the package index knows no package of this name"),
    Reason.UNKNOWN_VERSION: (_D, "the package exists, but not in this version"),
    Reason.NO_SDIST: (_D, "this version was published without a source distribution"),
    Reason.HASH_MISMATCH: (_E, "the downloaded file is not the one that the index announced"),
    Reason.ARCHIVE_CORRUPT: (_E, "the source distribution cannot be read to its end"),
    Reason.ARCHIVE_ESCAPES: (_E, "the archive holds an absolute path, a `..` or a link that leads out of it"),
    Reason.ARCHIVE_TOO_LARGE: (_E, "the archive unpacks to more bytes, files or depth than allowed"),
    Reason.ARCHIVE_SPECIAL_FILE: (_E, "the archive holds a device, a pipe or another special file"),
    Reason.ARCHIVE_NO_PROJECT: (_E, "the archive does not hold one top-level folder with a project"),
    Reason.NO_STATEMENT: (_S, "no text says what the change is about (no changelog section, no issue)"),
    Reason.STATEMENT_TOO_SHORT: (_S, "the statement is shorter than the policy asks for"),
    Reason.NO_TEST_CHANGE: (_S, "no test file changed between the two commits"),
    Reason.NO_TEST_FILES: (_S, "the source tree holds no test file at all"),
    Reason.NO_GOLD_CHANGE: (_S, "nothing but tests changed between the two commits"),
    Reason.TOO_MANY_FILES: (_S, "the gold patch touches more files than the policy allows"),
    Reason.PATCH_TOO_LARGE: (_S, "the patch has more lines than the policy allows"),
    Reason.NO_PYTHON: (_I, "no configured Python satisfies the project's requirement"),
    Reason.SETUP_UNREADABLE: (_I, "the project's build declaration cannot be parsed"),
    Reason.LOCK_FAILED: (_I, "the declared dependencies have no solution as of the cut-off date"),
    Reason.BUILD_FAILED: (_I, "a locked dependency could not be installed"),
    Reason.PROJECT_INSTALL_FAILED: (_I, "the project itself could not be installed in any mode"),
    Reason.BUILD_TIMEOUT: (_I, "the installation exceeded its time limit"),
    Reason.BUILD_LIMIT: (_I, "the installation exceeded a limit (memory, processes, disk, output)"),
    Reason.IMPORT_FAILED: (_I, "the project's top-level package cannot be imported in its environment"),
    Reason.NOTHING_COLLECTED: (_I, "pytest collects no test from the changed test files"),
    Reason.PYTEST_UNUSABLE: (_I, "pytest itself does not start in this environment"),
    Reason.EDIT_NOT_SEEN: (_I, "an edit in the working tree is not seen by the tests"),
    Reason.PATCH_DOES_NOT_APPLY: (_V, "a patch does not apply in the image"),
    Reason.REBUILD_FAILED: (_V, "the offline re-install after the patch failed"),
    Reason.RUN_TIMEOUT: (_V, "the test run exceeded its wall-clock limit"),
    Reason.RUN_OUT_OF_MEMORY: (_V, "the test run exceeded its memory limit"),
    Reason.RUN_LIMIT: (_V, "the test run exceeded a limit (processes, disk, output)"),
    Reason.RUN_CRASHED: (_V, "the test process ended without ending its session"),
    Reason.REPORT_DAMAGED: (
        _V,
        "lines of a test run's report are lost, or were not written by the reporter",
    ),
    Reason.NOTHING_RAN: (_V, "the run after the patch reports no test at all"),
    Reason.NOTHING_FAILS_BEFORE: (_V, "no test fails before the gold patch and passes after it"),
    Reason.TOO_FEW_FLIPS: (_V, "fewer tests fail before and pass after the gold patch than the policy asks for"),
    Reason.FAILS_AFTER: (_V, "tests fail before, but none of them passes after the gold patch"),
    Reason.PASS_TO_FAIL: (_V, "a test that passes before fails after the gold patch"),
    Reason.TESTS_VANISHED: (_V, "a test that passes before is not there after the gold patch"),
    Reason.ONLY_UNSTABLE_FLIPS: (_V, "the only tests that flip have ids that change from run to run"),
    Reason.SOURCE_NOT_RELEASED: (_X, "the release's configuration does not take this source"),
    Reason.NOT_PUBLIC: (_X, "the subject's visibility forbids it in a public release"),
    Reason.SECRET_FOUND: (_X, "the row holds what looks like a secret"),
    Reason.INDEX_UNREACHABLE: (_F, "the package index did not answer"),
    Reason.INDEX_ERROR: (_F, "the package index answered with a server error or nonsense"),
    Reason.DOCKER_UNAVAILABLE: (_F, "the container engine does not answer"),
    Reason.DOCKER_ERROR: (_F, "the container engine refused or broke an operation"),
    Reason.BASE_IMAGE_UNAVAILABLE: (_F, "the base image could neither be built nor pulled"),
    Reason.DISK_FULL: (_F, "the host's or engine's disk is full"),
    Reason.HOST_OUT_OF_MEMORY: (_F, "the host ran out of memory"),
    Reason.INTERNAL_ERROR: (_F, "a bug in this program; the log holds the traceback"),
}
