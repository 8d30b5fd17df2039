"""The kinds of failures that logs show, the most telling first, and what their subjects name."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a signature says; the order is that in which signatures of one log are told.

    A cause that says what is missing is more telling than the step that fails for the lack of it.
    """

    NOT_ON_INDEX = "not-on-index"
    NEWER_THAN_DATE = "newer-than-date"
    NO_VERSION = "no-version"
    INVALID_METADATA = "invalid-metadata"
    PYTHON_MISMATCH = "python-mismatch"
    NO_WHEEL = "no-wheel"
    BUILD_NEEDS_MODULE = "build-needs-module"
    BUILD_NEEDS_NAME = "build-needs-name"
    MISSING_HEADER = "missing-header"
    MISSING_LIBRARY = "missing-library"
    MISSING_TOOL = "missing-tool"
    USE_2TO3 = "use-2to3"
    CYTHON_LANGUAGE = "cython-language"
    OLD_WHEEL = "old-wheel"
    STRICT_METADATA = "strict-metadata"
    FLAT_LAYOUT = "flat-layout"
    NO_VERSION_FROM_VCS = "no-version-from-vcs"
    PYTHON_2_SYNTAX = "python-2-syntax"
    NEWER_SYNTAX = "newer-syntax"
    OLDER_SYNTAX = "older-syntax"
    UNKNOWN_HOOK = "unknown-hook"
    UNKNOWN_OPTION = "unknown-option"
    MISSING_PLUGIN = "missing-plugin"
    MISSING_MODULE = "missing-module"
    MISSING_NAME = "missing-name"
    BINARY_MISMATCH = "binary-mismatch"
    MISSING_ATTRIBUTE = "missing-attribute"
    UNEXPECTED_ARGUMENT = "unexpected-argument"
    TEXT = "known-message"
    MISSING_FIXTURE = "missing-fixture"
    ASYNC_PLUGIN = "async-plugin"
    UNKNOWN_MARK = "unknown-mark"
    UNKNOWN_INI = "unknown-ini"
    WARNING_AS_ERROR = "warning-as-error"
    NEEDS_SERVICE = "needs-service"
    NEEDS_DISPLAY = "needs-display"
    NEEDS_GPU = "needs-gpu"
    NEEDS_NETWORK = "needs-network"
    LOCALE = "locale"
    TIME_ZONE = "time-zone"
    USER = "user"
    GIT_IDENTITY = "git-identity"
    NO_SOLUTION = "no-solution"
    BUILD_FAILED = "build-failed"
    TIME_OUT = "time-out"
    MEMORY_LIMIT = "memory-limit"
    LIMIT = "limit"


MEANINGS: dict[Kind, str] = {
    Kind.NOT_ON_INDEX: "the index has no such distribution at all",
    Kind.NEWER_THAN_DATE: "what satisfies this requirement was uploaded after the date",
    Kind.NO_VERSION: "the index has the distribution, but no version for this requirement as of the date",
    Kind.INVALID_METADATA: "a distribution whose metadata no tool of today reads",
    Kind.PYTHON_MISMATCH: "a distribution refuses this Python ('name: >=3.8')",
    Kind.NO_WHEEL: "a distribution has no wheel for this Python and platform, and no source",
    Kind.BUILD_NEEDS_MODULE: "a build imports a module that it did not ask for ('name: module', '' for the project)",
    Kind.BUILD_NEEDS_NAME: "a build uses a name that its build requirement has no more ('name: module:name')",
    Kind.MISSING_HEADER: "a C header, or the .pc file of a library",
    Kind.MISSING_LIBRARY: "a shared library ('libGL.so.1') or what the linker looks for ('-lpq')",
    Kind.MISSING_TOOL: "a program",
    Kind.USE_2TO3: "setup.py asks for 2to3, which setuptools 58 dropped",
    Kind.CYTHON_LANGUAGE: "sources that Cython 3 refuses",
    Kind.OLD_WHEEL: "a wheel that is older than the setuptools beside it expects",
    Kind.STRICT_METADATA: "metadata that a younger setuptools or packaging refuses",
    Kind.FLAT_LAYOUT: "several top-level packages, which setuptools 61 and younger refuse to choose among",
    Kind.NO_VERSION_FROM_VCS: "a back end that asks git's tags for a version",
    Kind.PYTHON_2_SYNTAX: "sources of Python 2",
    Kind.NEWER_SYNTAX: "sources of a newer Python (the oldest one that takes them)",
    Kind.OLDER_SYNTAX: "sources that newer Pythons refuse (the last one that takes them)",
    Kind.UNKNOWN_HOOK: "a hook of a pytest plug-in that no installed one declares",
    Kind.UNKNOWN_OPTION: "an option that pytest does not know",
    Kind.MISSING_PLUGIN: "a pytest plug-in that is asked for by name",
    Kind.MISSING_MODULE: "a module that cannot be found",
    Kind.MISSING_NAME: "a name that a module does not have ('module:name')",
    Kind.BINARY_MISMATCH: "an extension module that was compiled for another version of what it uses",
    Kind.MISSING_ATTRIBUTE: "an attribute that a module or class does not have ('module:name')",
    Kind.UNEXPECTED_ARGUMENT: "an argument that a function does not know ('function:argument')",
    Kind.TEXT: "a message that names its own cause (the row of the table)",
    Kind.MISSING_FIXTURE: "a fixture that nothing defines",
    Kind.ASYNC_PLUGIN: "asynchronous tests without a plug-in that runs them",
    Kind.UNKNOWN_MARK: "a mark that nothing registers",
    Kind.UNKNOWN_INI: "an option of pytest's configuration that nothing declares",
    Kind.WARNING_AS_ERROR: "a warning that the project's configuration turns into an error",
    Kind.NEEDS_SERVICE: "a server that would have to run beside the tests",
    Kind.NEEDS_DISPLAY: "a display",
    Kind.NEEDS_GPU: "a graphics processor",
    Kind.NEEDS_NETWORK: "an answer of the network",
    Kind.LOCALE: "a locale that is not there",
    Kind.TIME_ZONE: "data about time zones, or the local time zone",
    Kind.USER: "a name for the user",
    Kind.GIT_IDENTITY: "an identity for git",
    Kind.NO_SOLUTION: "requirements that no set of versions satisfies (who contradict each other)",
    Kind.BUILD_FAILED: "a distribution that does not build, for a cause that is not known ('name==version')",
    Kind.TIME_OUT: "a step that did not end in its time",
    Kind.MEMORY_LIMIT: "a step that ran out of memory",
    Kind.LIMIT: "a step that reached another bound",
}
"""What each kind means, and what its subject names."""

RANK = {kind: rank for rank, kind in enumerate(Kind)}
"""The more telling, the smaller."""
