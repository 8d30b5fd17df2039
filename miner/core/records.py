"""The vocabulary of the pipeline: frozen records in the field's standard terms.

Every record is immutable, refuses unknown fields and has one canonical JSON form, so that equal records have equal
hashes (see `miner.core.hashing`). Times are aware UTC datetimes, sizes are bytes, durations are seconds.
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from miner.core.reasons import Reason

_ILLEGIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def legible(text: str) -> str:
    r"""Return text that any database, file and terminal takes as it is.

    Control characters, which a hostile log may aim at a terminal, and lone surrogates, which stand for bytes that are
    not UTF-8, become their escapes (`\x1b`, `\udcff`).
    """
    if text.isascii() and text.isprintable():
        return text
    return _ILLEGIBLE.sub(lambda found: ascii(found[0])[1:-1], text)


Legible = Annotated[str, AfterValidator(legible)]
"""Text for people that may quote what a project wrote or printed."""


class Record(BaseModel):
    """Base of all records: frozen, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Visibility(StrEnum):
    """Who may read what about a subject (law 5), from the most open to the strictest."""

    PUBLIC = "public"
    PRIVATE = "private"
    HOLD_OUT = "hold-out"

    def stricter(self, other: Visibility) -> Visibility:
        """Return the stricter one of two."""
        return max(self, other, key=list(Visibility).index)


class Producer(Record):
    """A measuring function as part of a fact's key: raise `epoch` by hand when its code was wrong (law 1)."""

    name: str
    epoch: int = 1


class FactKey(Record):
    """What identifies one observation; `ordinal` tells repeats and retries apart."""

    kind: str
    subject: str
    input_hash: str
    ordinal: int = 0
    producer: str
    epoch: int


class Fact(Record):
    """One observation, immutable. `payload` and `blobs` are content; `measures` and `observed_at` are measurements.

    Attributes:
        outcome: "ok", or the code of the reason why the observation is negative.
        payload: what was observed, JSON values only, the same for the same inputs.
        blobs: name -> sha256 of a blob whose bytes are the same for the same inputs.
        measures: durations, costs and sizes that differ from run to run.
        logs: name -> sha256 of a blob that differs from run to run.
        network: whether the observation depended on a network service (then a negative one needs a second attempt).
    """

    key: FactKey
    observed_at: datetime
    outcome: str = "ok"
    payload: dict[str, Any] = Field(default_factory=dict)
    blobs: dict[str, str] = Field(default_factory=dict)
    measures: dict[str, float] = Field(default_factory=dict)
    logs: dict[str, str] = Field(default_factory=dict)
    network: bool = False

    @property
    def ok(self) -> bool:
        """Whether the observation is positive."""
        return self.outcome == "ok"


class Observation(Record):
    """What a measuring function saw, before the memo makes it a fact. Fields as in `Fact`."""

    outcome: str = "ok"
    payload: dict[str, Any] = Field(default_factory=dict)
    blobs: dict[str, str] = Field(default_factory=dict)
    measures: dict[str, float] = Field(default_factory=dict)
    logs: dict[str, str] = Field(default_factory=dict)
    network: bool = False


class Evidence(Record):
    """A reference to what a finding rests on: a fact by its key id, a blob by its digest, and where to look in it."""

    fact: str | None = None
    blob: str | None = None
    excerpt: Legible = ""


Outcome = Literal["pass", "fail", "unmeasured"]


class Finding(Record):
    """What one rule says about one candidate."""

    rule: str
    stage: str
    outcome: Outcome
    code: Reason | None = None
    value: float | None = None
    detail: Legible = ""
    evidence: tuple[Evidence, ...] = ()


class State(StrEnum):
    """The one state a candidate is in."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    FAULTED = "faulted"
    PENDING = "pending"


class Decision(Record):
    """The verdict of the pipeline on one candidate: a pure function of its findings.

    Attributes:
        trail: ids of the facts that the decision rests on, in the order in which they were used.
        final: false while a rejection rests on one answer of a network service only (law 2).
    """

    instance_id: str
    state: State
    stage: str
    code: Reason | None = None
    sentence: Legible
    evidence: tuple[Evidence, ...] = ()
    trail: tuple[str, ...] = ()
    final: bool = True


class Seen(Record):
    """A candidate as discovery found it.

    Attributes:
        origin: what identifies it.
        explicit: its visibility was said of this very candidate.
        month: of the merge; None for a release pair.
        unit_id: what identifies the unit of discovery that holds it (the forge's id of a repository).
    """

    instance_id: str
    source: str
    origin: dict[str, Any]
    visibility: Visibility
    explicit: bool = False
    month: str | None = None
    unit_id: str = ""


class Intake(Record):
    """What one unit of discovery came to in one run. merged = linked + unlinked.

    Attributes:
        merged: changes of the month.
        linked: those that are candidates, since something says that they close an issue.
        refused: why the unit as a whole is not taken.
        fault: the fault of the infrastructure that it met.
    """

    unit: str
    unit_id: str = ""
    month: str | None = None
    merged: int = 0
    linked: int = 0
    unlinked: int = 0
    refused: Reason | None = None
    fault: Reason | None = None
    detail: Legible = ""
    notes: tuple[Legible, ...] = ()


class IssueLink(Record):
    """An issue that a change says it closes, and where it says so.

    Attributes:
        where: place in the text: "body:3", "commit 1a2b3c:1", "CHANGES.md:12", "closingIssuesReferences".
        text: the words that say it, as they stand there.
        confidence: certain where the forge itself says so, weak where the platform may take it otherwise.
        repository: `owner/name` of the issue where it is another one than that of the change.
    """

    number: int
    provenance: Literal["changelog", "closing-reference", "timeline", "commit-message", "title", "text", "given"]
    where: str
    text: str
    confidence: Literal["certain", "strong", "weak"] = "strong"
    repository: str | None = None


class IssueText(Record):
    """An issue that a candidate closes, as it stood when it was observed."""

    number: int
    title: str
    body: str
    created_at: datetime


class Sdist(Record):
    """What identifies a source distribution, wherever it is downloaded from."""

    filename: str
    sha256: str
    size: int | None
    uploaded_at: datetime


class SourceFile(Sdist):
    """A source distribution and where an index has it."""

    url: str


class ReleasePair(Record):
    """Two releases of one package, taken as a pull request from the old one to the new one.

    Attributes:
        visibility: who may read what about the candidate; None: as the run's settings and the ledger say.
    """

    name: str
    old: str
    new: str
    visibility: Visibility | None = None

    @property
    def origin(self) -> dict[str, str]:
        """What identifies the pair, as it stands in facts: without its visibility, which is nothing measured."""
        return {"name": self.name, "old": self.old, "new": self.new}

    @property
    def identity(self) -> dict[str, Any]:
        """The origin as it stands in the payload of the pair's first fact."""
        return {"pair": self.origin}

    @property
    def inputs(self) -> dict[str, Any]:
        """What the pair's first fact depends on."""
        return {"pair": self.origin}


class Candidate(Record):
    """A possible task. Computed from facts; holds patches as text with surrogate escapes where bytes are not UTF-8.

    Attributes:
        version: of the project after the change.
        base_version: of the project before it, None where that is not known.
        created_at: when the change was proposed.
        month: "2025-05", by the time of the merge in UTC; None for a release pair.
        first_public_at: when the solution could first be read in public; None: at `created_at`.
        issues: what the statement is made of, each kept apart.
    """

    instance_id: str
    source: Literal["pypi", "github", "git"]
    repo: str
    version: str
    base_version: str | None = None
    base_commit: str
    base_tree: str
    target_tree: str
    created_at: datetime
    patch: str
    test_patch: str
    statement: str
    hints: str = ""
    links: tuple[IssueLink, ...] = ()
    test_files: tuple[str, ...] = ()
    gold_files: tuple[str, ...] = ()
    pull: int | None = None
    month: str | None = None
    merged_at: datetime | None = None
    closed_at: datetime | None = None
    first_public_at: datetime | None = None
    issues: tuple[IssueText, ...] = ()


class BuildMode(StrEnum):
    """How the project under test gets into its environment.

    COMPILED is an editable installation whose extension modules are built again, offline, after every patch.
    """

    EDITABLE = "editable"
    NORMAL = "normal"
    COMPILED = "compiled"
    NONE = "none"


class Recipe(Record):
    """A complete, declarative description of an environment; computed from a repository tree, never by running it.

    Attributes:
        python: "3.11", a key of `configs/pythons.toml`.
        requirements: PEP 508 strings of the run-time and test dependencies.
        build_requirements: PEP 508 strings of `[build-system] requires`, or the legacy default.
        build_backend: the PEP 517 back end, as declared, or "setuptools.build_meta:__legacy__".
        modes: ways to install the project under test, in the order in which they are tried.
        project_dir: the folder of the project inside the repository, "" for its root.
        distribution: name of the project, never resolved from the index.
        top_level: importable modules of the project, dotted where the first name is a namespace package.
        source_root: folder below `project_dir` that holds them, "" where they are importable from it.
        backend_path: `[build-system] backend-path`, for a back end that lies in the project itself.
        addopts: the project's own pytest options, as declared.
        build_env: variables that a build needs, such as the version for a back end that would ask git's tags for it.
        constraints: PEP 508 bounds on versions of what `requirements` lead to; they ask for nothing themselves.
        overrides: PEP 508 strings that win over what anything asks for (a pin that never existed).
        build_constraints: the same as `constraints` for builds: of locked packages without a wheel, of the project.
        exempt: distributions that are taken without the cut-off (deleted and uploaded again later).
        fallback: which of the cut-off dates is taken, in the order of `installers.cutoff`; 0 is the first.
        system_packages: Debian packages of the image beside those of the base.
        compiled: the project has extension modules: the image carries the tool chain.
        env: variables that the tests need; part of the image.
        sources: for every requirement and fact above, where it was read ("pyproject.toml: project.dependencies").
    """

    python: str
    requirements: tuple[str, ...] = ()
    build_requirements: tuple[str, ...] = ()
    build_backend: str
    modes: tuple[BuildMode, ...] = (BuildMode.EDITABLE, BuildMode.NORMAL)
    project_dir: str = ""
    distribution: str = ""
    version_hint: str | None = None
    top_level: tuple[str, ...] = ()
    src_layout: bool = False
    source_root: str = ""
    backend_path: tuple[str, ...] = ()
    addopts: tuple[str, ...] = ()
    build_env: dict[str, str] = Field(default_factory=dict)
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    build_constraints: tuple[str, ...] = ()
    exempt: tuple[str, ...] = ()
    fallback: int = 0
    system_packages: tuple[str, ...] = ()
    compiled: bool = False
    env: dict[str, str] = Field(default_factory=dict)
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Layer(Record):
    """One normalised layer of an image."""

    diff_id: str
    size: int


class Environment(Record):
    """A built environment: what is validated, scanned and released is this one digest.

    Attributes:
        layers: the base image's, those of its ground (interpreter, Debian packages), the dependencies, the project.
        env: variables that the image sets for the tests.
    """

    image: str
    base_digest: str
    layers: tuple[Layer, ...]
    lock_sha256: str
    mode: BuildMode
    rebuild_cmd: str | None = None
    addopts: tuple[str, ...] = ()
    dropped_addopts: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)


class TestStatus(StrEnum):
    """Outcome of one test in one run."""

    __test__ = False

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"


class TestResult(Record):
    """One test in one run, by its exact node id.

    Attributes:
        phase: setup, call, teardown or crash: where the status was decided.
        message: the last line of a failure, or the reason of a skip.
        text: what pytest printed for a failure, cut to its head and tail.
        exceptions: names of the class of the exception and of its bases.
    """

    __test__ = False

    nodeid: str
    status: TestStatus
    phase: str = ""
    message: str = ""
    text: str = ""
    exceptions: tuple[str, ...] = ()


class RunOutcome(Record):
    """What one test run says, computed from its raw lines.

    Attributes:
        collected: the run's own collection of node ids, then those of other processes at other seconds (an empty set
            where a process did not come to the end of its collection).
        collect_errors: node id of a collector -> its error text; "" stands for the whole session.
        collect_skips: node id of a collector that skipped everything below it -> its reason.
        started: the session reported its own start (pytest found its options and initial conftest files fine).
        finished: the session reported its own end (no crash, no kill).
        running: the test that began last and did not end; `unfinished` holds all of them (pytest-xdist).
        repeated: node ids that stand for more than one test or ran more than once: they enter no list.
        limit: another bound that the run reached: "pids", "disk" or "output", "" where it reached none.
        stopped: why the session ended early (`-x`, pytest.exit, an internal error), "" where it did not; what pytest
            printed where it did not start one.
        damaged: lines of the report that are no events, lost, or not written by the reporter (a cut last line aside).
    """

    results: tuple[TestResult, ...] = ()
    collected: tuple[frozenset[str], ...] = ()
    collect_errors: dict[str, str] = Field(default_factory=dict)
    exit_status: int | None = None
    finished: bool = False
    timed_out: bool = False
    out_of_memory: bool = False
    truncated: bool = False
    running: str | None = None
    started: bool = False
    collect_skips: dict[str, str] = Field(default_factory=dict)
    unfinished: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()
    limit: str = ""
    stopped: str = ""
    damaged: int = 0
    pytest_version: str = ""
    python_version: str = ""


class Cause(StrEnum):
    """Why a FAIL_TO_PASS test did not pass before."""

    ASSERTION = "assertion"
    ERROR = "error"
    COLLECTION = "collection-error"
    ABSENT = "absent-before"


class Verdict(Record):
    """Lists of exact node ids, sorted, and what was left out of them and why.

    Attributes:
        fail_to_fail: failed or errored after; before the same, or behind a collection error, or absent.
        causes: a cause for each id of `fail_to_pass`.
        unstable: ids that name no test reliably: not in every collection of their side, or more than one test.
        vanished: passed before and not there after.
        skipped: passed on one side and skipped on the other.
        unjudged: passed on one side and xfailed, xpassed or not reached on the other.
    """

    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    fail_to_fail: tuple[str, ...] = ()
    pass_to_fail: tuple[str, ...] = ()
    causes: dict[str, Cause] = Field(default_factory=dict)
    unstable: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
