"""The one typed schema of a release; `docs/schema.md` is generated from it.

Column names that SWE-bench has keep its names and meaning (its `SWEbenchInstance`, harness/constants), with two
differences: the test lists are lists of strings instead of JSON text, and times are timestamps in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

SCHEMA_VERSION = 1


def _list(kind: pa.DataType) -> pa.DataType:
    """A list whose child has the name that the Parquet format gives it (LogicalTypes.md, "Lists")."""
    return pa.list_(pa.field("element", kind))


_TEXT, _INT, _FLOAT, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_TEXTS = _list(_TEXT)
_TIME = pa.timestamp("us", tz="UTC")
_LINK = ("repository", _TEXT), ("number", _INT), ("provenance", _TEXT), ("confidence", _TEXT), ("where", _TEXT)
_LINKS = _list(pa.struct([*_LINK, ("text", _TEXT)]))
_ISSUES = _list(pa.struct([("number", _INT), ("title", _TEXT), ("body", _TEXT), ("created_at", _TIME)]))
_CAUSES = _list(pa.struct([("nodeid", _TEXT), ("cause", _TEXT)]))
_FINDING = ("rule", _TEXT), ("stage", _TEXT), ("outcome", _TEXT), ("code", _TEXT), ("value", _FLOAT), ("detail", _TEXT)
_FINDINGS = _list(pa.struct(_FINDING))
_MEASURES = _list(pa.struct([("name", _TEXT), ("value", _FLOAT)]))
_LOGS = _list(pa.struct([("name", _TEXT), ("sha256", _TEXT)]))

_MONTH = "Month of the merge in UTC, `2025-05`; null for a release pair."
_LINKS_ABOUT = (
    "What says which issue the change closes: its words, where they stand, and how sure they are (`certain`, `strong` "
    "or `weak`); the repository is null where it is that of the task."
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `nullable` where a row may have no value."""

    name: str
    type: pa.DataType
    description: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a release; rows are sorted by `key`, which is unique."""

    name: str
    path: str
    key: str
    about: str
    columns: tuple[Column, ...]

    def arrow(self) -> pa.Schema:
        """Return the Arrow schema, with the descriptions as field metadata."""
        fields = [pa.field(c.name, c.type, c.nullable, {"description": c.description}) for c in self.columns]
        return pa.schema(fields, {"swe-miner.table": self.name, "swe-miner.schema": str(SCHEMA_VERSION)})


TASKS = Table(
    name="tasks",
    path="data/test-00000-of-00001.parquet",
    key="instance_id",
    about="One row per accepted task. Content: the same bytes for the same inputs.",
    columns=(
        Column("instance_id", _TEXT, "Id of the task, `owner__repo-N` or `pypi__name-VERSION`."),
        Column("repo", _TEXT, "Full name of the repository or package."),
        Column("base_commit", _TEXT, "Commit that the patches apply to; it is checked out in the image."),
        Column("patch", _TEXT, "Gold patch: everything but tests. Ends with a newline. Read it by `patch_encoding`."),
        Column(
            "test_patch", _TEXT, "Patch of the hidden tests. Ends with a newline. Read it by `test_patch_encoding`."
        ),
        Column("problem_statement", _TEXT, "What the change is about: text of the issues, or the changelog section."),
        Column("hints_text", _TEXT, "Comments made before the solution; empty where there are none."),
        Column("created_at", _TIME, "When the pull request was opened or the new version uploaded."),
        Column("version", _TEXT, "Version of the package at or after the change."),
        Column("environment_setup_commit", _TEXT, "Commit that the environment was installed from."),
        Column("FAIL_TO_PASS", _TEXTS, "Exact ids of tests that do not pass before the gold patch and pass after it."),
        Column("PASS_TO_PASS", _TEXTS, "Exact ids of tests that pass before and after the gold patch."),
        Column("FAIL_TO_FAIL", _TEXTS, "Exact ids of tests that pass on neither side; evidence, not to be graded."),
        Column("fail_to_pass_causes", _CAUSES, "Why each FAIL_TO_PASS test did not pass before."),
        Column("patch_encoding", _TEXT, "`utf-8`, or `base64` where the patch holds bytes that are not UTF-8."),
        Column("test_patch_encoding", _TEXT, "`utf-8`, or `base64` where the patch holds bytes that are not UTF-8."),
        Column("test_files", _TEXTS, "Test files of the test patch, relative to `workdir`, as ids are."),
        Column("test_cmd", _TEXT, "Command that runs tests in the image, in `test_workdir`; append files or ids."),
        Column("test_workdir", _TEXT, "Folder in which `test_cmd` is run."),
        Column("rebuild_cmd", _TEXT, "Offline command to run after every patch; null where none is needed.", True),
        Column("image", _TEXT, "Name of the image, for `docker run`."),
        Column("image_digest", _TEXT, "Digest of the image that was validated."),
        Column("image_size", _INT, "Bytes of all layers of the image, uncompressed."),
        Column("base_image_digest", _TEXT, "Digest of the base image."),
        Column("python", _TEXT, "Version of Python in the image, `X.Y`."),
        Column("requirements", _TEXT, "The lock that the environment was installed from, whole."),
        Column("build_requirements", _TEXT, "The lock that the project was built with, whole."),
        Column("dockerfile", _TEXT, "A Dockerfile that documents the environment for people."),
        Column("lock_sha256", _TEXT, "sha256 of `requirements`."),
        Column("install_mode", _TEXT, "How the project was installed: `editable`, `normal` or `none`."),
        Column("dropped_addopts", _TEXTS, "Options of the project for pytest that `test_cmd` leaves out, and why."),
        Column("workdir", _TEXT, "Folder of the repository in the image."),
        Column("user", _TEXT, "User and group that the tests ran as."),
        Column("network", _TEXT, "Network of the container that the tests ran in; `none`: no network."),
        Column("test_env", _TEXTS, "Variables that the tests ran with, `NAME=value`, as `docker run -e` takes them."),
        Column("timeout_s", _FLOAT, "Wall-clock limit of a test run, seconds."),
        Column("memory_mb", _INT, "Memory limit of a test run, MiB."),
        Column("cpus", _FLOAT, "CPU limit of a test run."),
        Column("source", _TEXT, "Where the task comes from: `github`, `git` or `pypi`."),
        Column("month", _TEXT, _MONTH, True),
        Column("pull_number", _INT, "Number of the pull request; null for a release pair.", True),
        Column("merged_at", _TIME, "When the pull request was merged; null where that is not known.", True),
        Column("closed_at", _TIME, "When the pull request was closed; null where that is not known.", True),
        Column("first_public_at", _TIME, "When the solution could first be read in public: opening, commit or upload."),
        Column(
            "issues", _ISSUES, "The issues that the statement is made of, each kept apart; none for a release pair."
        ),
        Column("links", _LINKS, _LINKS_ABOUT),
    ),
)

REJECTED = Table(
    name="rejected",
    path="rejected.parquet",
    key="instance_id",
    about="One row per rejected candidate. Content: the same bytes for the same inputs.",
    columns=(
        Column("instance_id", _TEXT, "Id of the candidate."),
        Column("source", _TEXT, "Where the candidate comes from: `github`, `git` or `pypi`."),
        Column("repo", _TEXT, "Full name of the repository or package; null where unknown or not public.", True),
        Column("month", _TEXT, _MONTH, True),
        Column("visibility", _TEXT, "`public`, or `private`: then the row holds ids, codes, numbers and hashes only."),
        Column("stage", _TEXT, "Stage that rejected it."),
        Column("code", _TEXT, "Code of the reason, see the reference of reasons."),
        Column("sentence", _TEXT, "The reason in words."),
        Column("detail", _TEXT, "Detail of the finding that decided; empty where there is none."),
        Column("final", _BOOL, "False while it rests on one answer of a network service only."),
        Column("findings", _FINDINGS, "What each rule said that something was measured for, in order, with the value."),
        Column("facts", _TEXTS, "Ids of the facts that the decision rests on, in order of use."),
    ),
)

MEASUREMENTS = Table(
    name="measurements",
    path="measurements/measurements.parquet",
    key="fact",
    about="One row per fact that the release rests on. Measurements: the same bytes for the same facts.",
    columns=(
        Column("fact", _TEXT, "Id of the fact."),
        Column("content_hash", _TEXT, "Hash of what the fact says, without its measurements."),
        Column("instance_ids", _TEXTS, "Candidates of this release that rest on it; several where it is shared."),
        Column("kind", _TEXT, "Kind of the fact."),
        Column("subject", _TEXT, "What it is about: a candidate, or an environment that several candidates share."),
        Column("ordinal", _INT, "Tells repeats and retries apart."),
        Column("producer", _TEXT, "Measuring function."),
        Column("epoch", _INT, "Epoch of the measuring function."),
        Column("outcome", _TEXT, "`ok`, or the code of the reason why the observation is negative."),
        Column("network", _BOOL, "Whether the observation depended on a network service."),
        Column("observed_at", _TIME, "Time of observation."),
        Column("run_id", _TEXT, "Run that measured it; null where unknown.", True),
        Column("wall_s", _FLOAT, "Duration, seconds; null where it was not measured.", True),
        Column("measures", _MEASURES, "All measured durations, costs and sizes."),
        Column("logs", _LOGS, "Digests of the logs, as the blob store knows them."),
    ),
)

UNMEASURED = Table(
    name="unmeasured",
    path="measurements/unmeasured.parquet",
    key="instance_id",
    about="Candidates without a verdict: a fault of the infrastructure stopped them. Empty in a complete release.",
    columns=(
        Column("instance_id", _TEXT, "Id of the candidate."),
        Column("source", _TEXT, "Where the candidate comes from: `github`, `git` or `pypi`."),
        Column("state", _TEXT, "`faulted` or `pending`."),
        Column("stage", _TEXT, "Stage at which it stopped."),
        Column("code", _TEXT, "Code of the fault; null where there was none.", True),
        Column("sentence", _TEXT, "The fault in words."),
    ),
)

TABLES: tuple[Table, ...] = (TASKS, REJECTED, MEASUREMENTS, UNMEASURED)


def schema_docs() -> str:
    """Return `docs/schema.md`."""
    parts = [
        "# Tables of a release\n",
        f"Schema version {SCHEMA_VERSION}. Generated from `exporters/schema.py`; a test keeps it current. "
        "Every Parquet file carries the descriptions as field metadata.\n",
    ]
    for table in TABLES:
        parts.append(f"## {table.name}: `{table.path}`\n\n{table.about} Sorted by `{table.key}`, which is unique.\n")
        rows = [f"| `{c.name}` | {_type_name(c)} | {c.description} |" for c in table.columns]
        parts.append("\n".join(["| column | type | meaning |", "|---|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _type_name(column: Column) -> str:
    name = str(column.type).replace("element: ", "")
    return f"`{name}`" + (" or null" if column.nullable else "")
