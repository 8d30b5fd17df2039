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
    REPOSITORY_GONE = "repository-gone"
    REPOSITORY_UNAVAILABLE = "repository-unavailable"
    REPOSITORY_OPTED_OUT = "repository-opted-out"
    REPOSITORY_NOT_PYTHON = "repository-not-python"
    REPOSITORY_LICENCE = "repository-licence"
    REPOSITORY_FORK = "repository-fork"
    REPOSITORY_ARCHIVED = "repository-archived"
    REPOSITORY_TEMPLATE = "repository-template"
    REPOSITORY_TOO_LARGE = "repository-too-large"
    REPOSITORY_INACTIVE = "repository-inactive"
    REPOSITORY_TOO_FEW_STARS = "repository-too-few-stars"
    NO_LINKED_ISSUE = "no-linked-issue"
    WEAK_LINK = "weak-link"
    ISSUE_ELSEWHERE = "issue-elsewhere"
    ISSUE_GONE = "issue-gone"
    ISSUE_IS_PULL = "issue-is-pull"
    NOT_DEFAULT_BRANCH = "not-default-branch"
    BOT_AUTHOR = "bot-author"
    REVERT = "revert"
    DEPENDENCY_BUMP = "dependency-bump"
    TOO_FEW_FILES = "too-few-files"
    TOO_MANY_CHANGED_FILES = "too-many-changed-files"
    NO_TEST_PATH = "no-test-path"
    NO_CODE_PATH = "no-code-path"
    # extract
    HASH_MISMATCH = "hash-mismatch"
    ARCHIVE_CORRUPT = "archive-corrupt"
    ARCHIVE_ESCAPES = "archive-escapes"
    ARCHIVE_TOO_LARGE = "archive-too-large"
    ARCHIVE_SPECIAL_FILE = "archive-special-file"
    ARCHIVE_NO_PROJECT = "archive-no-project"
    COMMIT_GONE = "commit-gone"
    NO_MERGE_BASE = "no-merge-base"
    PATCH_NOT_FAITHFUL = "patch-not-faithful"
    MIRROR_MISSING = "mirror-missing"
    MIRROR_INCOMPLETE = "mirror-incomplete"
    TREE_UNSAFE = "tree-unsafe"
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
    PYTHON_TOO_NEW = "python-too-new"
    PYTHON_2_ONLY = "python-2-only"
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
    COLLECTION_BROKEN = "collection-broken"
    TOO_FEW_PASS_AT_BASE = "too-few-pass-at-base"  # noqa: S105 - a reason code, not a secret
    REBUILD_NEEDS_NETWORK = "rebuild-needs-network"
    SYSTEM_PACKAGE_UNKNOWN = "system-package-unknown"
    MODULE_UNKNOWN = "module-unknown"
    SUBMODULE_MISSING = "submodule-missing"
    LFS_CONTENT_MISSING = "lfs-content-missing"
    NEEDS_SERVICE = "needs-service"
    NEEDS_DEVICE = "needs-device"
    MODEL_REPLY_UNUSABLE = "model-reply-unusable"
    MODEL_GAVE_UP = "model-gave-up"
    MODEL_LIMIT = "model-limit"
    MODEL_CAP_REACHED = "model-cap-reached"
    MODEL_EDITS_SOURCE = "model-edits-source"
    MODEL_WEAKENS_TESTS = "model-weakens-tests"
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
    GATE_SAMPLE = "gate-sample"
    # infrastructure: never a property of a task
    FORGE_UNREACHABLE = "forge-unreachable"
    FORGE_ERROR = "forge-error"
    FORGE_LIMITED = "forge-limited"
    FORGE_LOGIN = "forge-login"
    MIRROR_FAILED = "mirror-failed"
    NOT_IN_SNAPSHOT = "not-in-snapshot"
    HOURS_UNREACHABLE = "hours-unreachable"
    INDEX_UNREACHABLE = "index-unreachable"
    INDEX_ERROR = "index-error"
    INTERPRETER_UNAVAILABLE = "interpreter-unavailable"
    SYSTEM_ARCHIVE_UNREACHABLE = "system-archive-unreachable"
    MODEL_UNREACHABLE = "model-unreachable"
    MODEL_ERROR = "model-error"
    MODEL_LIMITED = "model-limited"
    MODEL_LOGIN = "model-login"
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
    Reason.REPOSITORY_GONE: (_D, "the forge knows no such repository (404, 410), or shows it to nobody"),
    Reason.REPOSITORY_UNAVAILABLE: (
        _D,
        "the repository is private, disabled, locked or blocked for legal reasons (451)",
    ),
    Reason.REPOSITORY_OPTED_OUT: (_D, "the repository or its owner asked not to be mined"),
    Reason.REPOSITORY_NOT_PYTHON: (_D, "less of the repository is Python than the policy asks for"),
    Reason.REPOSITORY_LICENCE: (_D, "the forge states no licence that the policy allows"),
    Reason.REPOSITORY_FORK: (_D, "the repository is a fork"),
    Reason.REPOSITORY_ARCHIVED: (_D, "the repository is archived"),
    Reason.REPOSITORY_TEMPLATE: (_D, "the repository is a template"),
    Reason.REPOSITORY_TOO_LARGE: (_D, "the repository is larger than the policy allows"),
    Reason.REPOSITORY_INACTIVE: (_D, "nothing was pushed to the repository for longer than the policy allows"),
    Reason.REPOSITORY_TOO_FEW_STARS: (_D, "the repository has fewer stars than the policy asks for"),
    Reason.NO_LINKED_ISSUE: (_D, "nothing says that the pull request closes an issue"),
    Reason.WEAK_LINK: (_D, "what says that the pull request closes an issue is weaker than the policy asks for"),
    Reason.ISSUE_ELSEWHERE: (_D, "the issues that the pull request closes are all in other repositories"),
    Reason.ISSUE_GONE: (_D, "the issues that the pull request names were deleted or moved, or never existed"),
    Reason.ISSUE_IS_PULL: (_D, "what the pull request says it closes are pull requests"),
    Reason.NOT_DEFAULT_BRANCH: (_D, "the pull request was merged into another branch than the default one"),
    Reason.BOT_AUTHOR: (_D, "the author of the pull request is a program"),
    Reason.REVERT: (_D, "the pull request reverts another one"),
    Reason.DEPENDENCY_BUMP: (_D, "the pull request only raises versions of dependencies"),
    Reason.TOO_FEW_FILES: (_D, "the pull request changes fewer files than the policy asks for"),
    Reason.TOO_MANY_CHANGED_FILES: (_D, "the pull request changes more files than the policy allows"),
    Reason.NO_TEST_PATH: (_D, "no changed path could be a test"),
    Reason.NO_CODE_PATH: (_D, "every changed path is a test, a document or belongs to them"),
    Reason.HASH_MISMATCH: (_E, "the downloaded file is not the one that the index announced"),
    Reason.ARCHIVE_CORRUPT: (_E, "the source distribution cannot be read to its end"),
    Reason.ARCHIVE_ESCAPES: (_E, "the archive holds an absolute path, a `..` or a link that leads out of it"),
    Reason.ARCHIVE_TOO_LARGE: (_E, "the archive unpacks to more bytes, files or depth than allowed"),
    Reason.ARCHIVE_SPECIAL_FILE: (_E, "the archive holds a device, a pipe or another special file"),
    Reason.ARCHIVE_NO_PROJECT: (_E, "the archive does not hold one top-level folder with a project"),
    Reason.COMMIT_GONE: (_E, "the commits of the pull request are nowhere to be had any more"),
    Reason.NO_MERGE_BASE: (_E, "the pull request and its base branch have no commit in common"),
    Reason.PATCH_NOT_FAITHFUL: (_E, "base, gold patch and test patch together do not make the target tree"),
    Reason.TREE_UNSAFE: (_E, "a tree holds a path that git refuses to check out (`.git`, `..`, a name twice)"),
    Reason.MIRROR_MISSING: (_E, "the given folder holds no repository of this name"),
    Reason.MIRROR_INCOMPLETE: (_E, "the given repository lacks contents that its trees name"),
    Reason.NO_STATEMENT: (_S, "no text says what the change is about (no changelog section, no issue)"),
    Reason.STATEMENT_TOO_SHORT: (_S, "the statement is shorter than the policy asks for"),
    Reason.NO_TEST_CHANGE: (_S, "no test file changed between the two commits"),
    Reason.NO_TEST_FILES: (_S, "the source tree holds no test file at all"),
    Reason.NO_GOLD_CHANGE: (_S, "nothing but tests changed between the two commits"),
    Reason.TOO_MANY_FILES: (_S, "the gold patch touches more files than the policy allows"),
    Reason.PATCH_TOO_LARGE: (_S, "the patch has more lines than the policy allows"),
    Reason.NO_PYTHON: (_I, "no configured Python satisfies the project's requirement"),
    Reason.PYTHON_TOO_NEW: (_I, "the project needs a Python that is newer than those configured"),
    Reason.PYTHON_2_ONLY: (_I, "the project runs on Python 2 only"),
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
    Reason.COLLECTION_BROKEN: (
        _I,
        "test files cannot be collected at the base commit, which the patches do not explain",
    ),
    Reason.TOO_FEW_PASS_AT_BASE: (_I, "fewer of the candidate's own tests pass at the base than the policy asks for"),
    Reason.REBUILD_NEEDS_NETWORK: (_I, "a compiled project cannot be built again without the network"),
    Reason.SYSTEM_PACKAGE_UNKNOWN: (_I, "the distribution has no package for a library or tool that is needed"),
    Reason.MODULE_UNKNOWN: (_I, "no distribution was found that provides a module which is imported"),
    Reason.SUBMODULE_MISSING: (_I, "the installation or the tests need a git submodule that is not to be had"),
    Reason.LFS_CONTENT_MISSING: (_I, "the installation or the tests need files that are kept by git LFS elsewhere"),
    Reason.NEEDS_SERVICE: (_I, "the tests need a service (database, queue) that runs beside them"),
    Reason.NEEDS_DEVICE: (_I, "the tests need a graphics processor, a display or another device"),
    Reason.MODEL_REPLY_UNUSABLE: (
        _I,
        "a language model's reply holds no recipe to try (refused, cut off, not of the schema, or tried before)",
    ),
    Reason.MODEL_GAVE_UP: (_I, "a language model says that it knows no way to install the project"),
    Reason.MODEL_LIMIT: (_I, "an agent came to a limit (steps, seconds, tokens, money) before it had a recipe"),
    Reason.MODEL_CAP_REACHED: (
        _I,
        "a cap on what language models may cost was reached before an environment was found",
    ),
    Reason.MODEL_EDITS_SOURCE: (_I, "a language model changed source or test files: the attempt is void"),
    Reason.MODEL_WEAKENS_TESTS: (
        _I,
        "a language model's recipe would change which tests run, or what runs them: the attempt is void",
    ),
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
    Reason.GATE_SAMPLE: (_X, "passed a gate only as a sample: it is counted, not released"),
    Reason.FORGE_UNREACHABLE: (_F, "the forge did not answer"),
    Reason.FORGE_ERROR: (_F, "the forge answered with a server error or nonsense"),
    Reason.FORGE_LIMITED: (_F, "the forge's rate limit is used up for longer than a run waits"),
    Reason.FORGE_LOGIN: (_F, "no token, or the forge refuses it or asks for more scopes"),
    Reason.MIRROR_FAILED: (_F, "git could not fetch from the forge, or a mirror is damaged"),
    Reason.NOT_IN_SNAPSHOT: (
        _F,
        "the replayed snapshot does not hold what would have to be asked of the forge",
    ),
    Reason.HOURS_UNREACHABLE: (_F, "the archive of public events does not answer as an archive does"),
    Reason.INDEX_UNREACHABLE: (_F, "the package index did not answer"),
    Reason.INDEX_ERROR: (_F, "the package index answered with a server error or nonsense"),
    Reason.INTERPRETER_UNAVAILABLE: (
        _F,
        "an interpreter is neither in the base image nor to be had by uv nor in a local folder",
    ),
    Reason.SYSTEM_ARCHIVE_UNREACHABLE: (_F, "the archive of Debian packages did not answer"),
    Reason.MODEL_UNREACHABLE: (_F, "the endpoint of a language model did not answer"),
    Reason.MODEL_ERROR: (_F, "the endpoint of a language model answered with a server error or nonsense"),
    Reason.MODEL_LIMITED: (_F, "the endpoint of a language model refuses more requests for longer than a run waits"),
    Reason.MODEL_LOGIN: (_F, "the endpoint of a language model refuses the key, or does not know the model"),
    Reason.DOCKER_UNAVAILABLE: (_F, "the container engine does not answer"),
    Reason.DOCKER_ERROR: (_F, "the container engine refused or broke an operation"),
    Reason.BASE_IMAGE_UNAVAILABLE: (_F, "the base image could neither be built nor pulled"),
    Reason.DISK_FULL: (_F, "the host's or engine's disk is full"),
    Reason.HOST_OUT_OF_MEMORY: (_F, "the host ran out of memory"),
    Reason.INTERNAL_ERROR: (_F, "a bug in this program; the log holds the traceback"),
}
