"""Requirements to a lock with hashes, with the package index as it was at the cut-off.

First with wheels and static metadata only; only where that finds no solution, builds are allowed, then with a private
cache, since a build runs code of packages. The project under test is never taken from the index: where a dependency
asks for it (pytest asks for pluggy), a stub with its name and version stands in, and the lock leaves it out. A build
requirement that asks for it (hatchling asks for pluggy) gets the version of the base commit, never a later one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from packaging.utils import canonicalize_name
from pydantic import Field

from installers.workshop import WORK, Workshop, as_of
from miner.core.hashing import hash_of
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, Observation, Producer, Record
from miner.core.settings import Cutoff
from miner.sandbox.interface import Box, ExecResult

PRODUCER = Producer(name="installers.lock", epoch=1)
KIND = "install.lock"

_SETTLED = timedelta(days=30)
_STUB = f"{WORK}/stub"
_LOCK = f"{WORK}/lock.txt"
_MAX_LOCK = 8 * 1024 * 1024
_PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==(\S+)", re.MULTILINE)


class LockRequest(Record):
    """Everything that a lock depends on.

    Attributes:
        purpose: "run" for run-time and test dependencies, "build" for those of the project's build back end.
        executable: the interpreter in the base image.
        exempt: packages with a later cut-off of their own.
        project: name of the project under test and its version, if a dependency asks for it; the version may be "".
        base: digest of the base image.
        uv: version of uv.
        runtime: the engine's runtime, where it is not the default one.
    """

    purpose: Literal["run", "build"]
    requirements: tuple[str, ...]
    executable: str
    cutoff: datetime
    exempt: dict[str, datetime] = Field(default_factory=dict)
    project: tuple[str, str] | None = None
    base: str
    uv: str
    runtime: str | None = None

    @property
    def subject(self) -> str:
        """What the fact is about: the same for all who have the same dependencies."""
        return subject_of(self)


def subject_of(inputs: Record) -> str:
    """Return the subject of a fact that several candidates can share."""
    return f"env-{hash_of(inputs)[:16]}"


def exemptions(cutoff: datetime, rule: Cutoff, python_released: date) -> dict[str, datetime]:
    """Return the packages that are taken as of a later day than the cut-off, and that day.

    Those of `exempt` as of `exempt_before`. Those of `exempt_until_python` as of a month after the interpreter came
    out: where it is younger than the change, only such a version of what runs the tests knows it.
    """
    until = datetime.fromisoformat(rule.exempt_before).replace(tzinfo=UTC)
    known = datetime(python_released.year, python_released.month, python_released.day, tzinfo=UTC) + _SETTLED
    days = dict.fromkeys(rule.exempt, until) | dict.fromkeys(rule.exempt_until_python, known)
    return {canonicalize_name(name): day for name, day in days.items() if cutoff < day}


def lock(workshop: Workshop, memo: Memo, request: LockRequest, *, name: str, version: str | None) -> list[Fact]:
    """Return the facts that lead to a lock; the last one is the answer.

    Args:
        workshop: the tools.
        memo: known facts.
        request: what to lock, without `project`.
        name: name of the project under test.
        version: its version, where it is declared.
    """
    first = _measure(workshop, memo, request)
    own = canonicalize_name(name)
    if not own or not _asks_for(first, own):
        return [first]
    return [first, _measure(workshop, memo, request.model_copy(update={"project": (own, version or "")}))]


def _asks_for(fact: Fact, name: str) -> bool:
    if fact.ok:
        return name in fact.payload["packages"]
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", fact.payload["detail"]) is not None


def _measure(workshop: Workshop, memo: Memo, request: LockRequest) -> Fact:
    inputs = {"request": request, "limits": workshop.limits}
    return memo.measure(PRODUCER, KIND, request.subject, inputs, lambda: resolve(workshop, request))


def resolve(workshop: Workshop, request: LockRequest) -> Observation:
    """Resolve in the sandbox.

    Raises:
        InfrastructureFault: the index or the engine was at fault.
    """
    if not request.requirements:
        return _locked(workshop, request, b"", builds=False)
    with workshop.box(workshop.base.image, network=True, cache="shared") as box:
        result = _compile(workshop, box, request, ["--no-build"])
        if result.ok:
            return _locked(workshop, request, box.read_file(_LOCK, _MAX_LOCK), builds=False)
        if result.limit is not None:
            return _refused(workshop, box, result, request)
        workshop.raise_for_faults(box, result)
    with workshop.box(workshop.base.image, network=True) as box:
        result = _compile(workshop, box, request, [])
        if result.ok:
            return _locked(workshop, request, box.read_file(_LOCK, _MAX_LOCK), builds=True)
        return _refused(workshop, box, result, request)


def _compile(workshop: Workshop, box: Box, request: LockRequest, extra: Sequence[str]) -> ExecResult:
    lines, options = list(request.requirements), []
    files = {f"{WORK}/": (b"", 0o755)}
    if request.project is not None:
        name, version = request.project
        if request.purpose == "build" and version:
            lines.append(f"{name}=={version}")
        elif version:
            options = ["--no-emit-package", name]
            stub = f'[project]\nname = "{name}"\nversion = "{version}"\n'
            files |= {f"{_STUB}/": (b"", 0o755), f"{_STUB}/pyproject.toml": (stub.encode(), 0o644)}
            lines.append(f"{name} @ file://{_STUB}")
        else:
            files[f"{WORK}/excluded.txt"] = (f"{name}\n".encode(), 0o644)
            options = ["--excludes", f"{WORK}/excluded.txt"]
    files[f"{WORK}/in.txt"] = ("".join(f"{line}\n" for line in lines).encode(), 0o644)
    box.put(files)
    command = ["pip", "compile", f"{WORK}/in.txt", "--output-file", _LOCK, "--python", request.executable]
    style = ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--quiet"]
    return workshop.run_uv(box, [*command, *style, *options, *as_of(request.cutoff, request.exempt), *extra])


def _refused(workshop: Workshop, box: Box, result: ExecResult, request: LockRequest) -> Observation:
    what = "resolving the dependencies" if request.purpose == "run" else "resolving the build requirements"
    return workshop.refusal(box, result, Reason.LOCK_FAILED, what)


def _locked(workshop: Workshop, request: LockRequest, text: bytes, *, builds: bool) -> Observation:
    return Observation(
        payload={
            "packages": packages(text.decode()),
            "builds": builds,
            "cutoff": request.cutoff.isoformat(),
            "exempt": {name: until.isoformat() for name, until in request.exempt.items()},
        },
        blobs={"lock": workshop.blobs.put(text)},
        network=True,
    )


def packages(text: str) -> dict[str, str]:
    """Return name -> version of every pin in a lock."""
    return {canonicalize_name(name): version for name, version in _PINNED.findall(text)}
