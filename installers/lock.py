"""Requirements to a lock with hashes, with the package index as it was at the cut-off.

First with wheels and static metadata only; only where that finds no solution, builds are allowed, then with a private
cache, since a build runs code of packages. Of what has to be built the source distributions are kept, and what they say
that they need for it (`installers.sources`): they are built from a lock as well.

The project under test is never taken from the index: where a dependency asks for it (pytest asks for pluggy), a stub
with its name and version stands in, and the lock leaves it out. A build requirement that asks for it (hatchling asks
for pluggy) gets the version of the base commit, never a later one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from packaging.utils import canonicalize_name

from installers.ground_image import hold
from installers.sources import Source, sources_of
from installers.steps import StepRequest, common, subject_of
from installers.undeclared import lacking_of
from installers.venv_layer import packages
from installers.workshop import WORK, Workshop, as_of
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, Observation, Producer, Recipe
from miner.core.settings import Cutoff
from miner.sandbox.container import DockerBox
from miner.sandbox.interface import Box, ExecResult

if TYPE_CHECKING:
    from installers.ground import Ground

PRODUCER = Producer(name="installers.lock", epoch=1)
KIND = "install.lock"

_SETTLED = timedelta(days=30)
_STUB = f"{WORK}/stub"
_LOCK = f"{WORK}/lock.txt"
_CONFIG = f"{WORK}/uv.toml"
_ROUNDS = 4  # packages whose builds need what they do not ask for
_MAX_LOCK = 8 * 1024 * 1024


class LockRequest(StepRequest):
    """Everything that a lock depends on.

    Attributes:
        purpose: "run" for run-time and test dependencies, "build" for those of a build back end.
        constraints: bounds on versions of what the requirements lead to; they ask for nothing themselves.
        overrides: requirements that win over what anything asks for.
        build_constraints: bounds on versions where packages without a wheel are built.
        project: name of the project under test and its version, if a dependency asks for it; the version may be "".
    """

    purpose: Literal["run", "build"]
    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    build_constraints: tuple[str, ...] = ()
    project: tuple[str, str] | None = None

    @property
    def subject(self) -> str:
        """What the fact is about: the same for all who have the same dependencies."""
        return subject_of("env", self)


def exemptions(
    cutoff: datetime, rule: Cutoff, python_released: date, names: Iterable[str] = ()
) -> dict[str, datetime | None]:
    """Return the packages that are taken as of a later day than the cut-off, and that day.

    Those of `exempt` as of `exempt_before`, those of `exempt_builds` as of `exempt_builds_before`. Those of
    `exempt_until_python` as of a month after the interpreter came out: where it is younger than the change, only such
    a version of what runs the tests knows it.

    Args:
        cutoff: for all others.
        rule: the settings.
        python_released: the day of the interpreter's X.Y.0.
        names: what a recipe exempts: taken without any date.
    """
    until = datetime.fromisoformat(rule.exempt_before).replace(tzinfo=UTC)
    builds = datetime.fromisoformat(rule.exempt_builds_before).replace(tzinfo=UTC)
    known = datetime(python_released.year, python_released.month, python_released.day, tzinfo=UTC) + _SETTLED
    days = dict.fromkeys(rule.exempt, until) | dict.fromkeys(rule.exempt_until_python, known)
    days |= {name: max(builds, days.get(name, builds)) for name in rule.exempt_builds}
    found: dict[str, datetime | None] = {canonicalize_name(name): day for name, day in days.items() if cutoff < day}
    return found | {canonicalize_name(name): None for name in names}


def link_exemptions(cutoff: datetime, rule: Cutoff) -> dict[str, datetime | None]:
    """Return what is taken as of a later day than the cut-off to link a project to its tree, and that day (PEP 660)."""
    until = datetime.fromisoformat(rule.exempt_before).replace(tzinfo=UTC)
    return {canonicalize_name(name): until for name in rule.exempt_links if cutoff < until}


def lock_request(workshop: Workshop, ground: Ground, recipe: Recipe, cutoff: datetime) -> LockRequest:
    """Return the request for the lock of a recipe's run-time and test dependencies."""
    exempt = exemptions(cutoff, workshop.settings.measure.cutoff, ground.python.released, recipe.exempt)
    return LockRequest(
        purpose="run",
        requirements=recipe.requirements,
        constraints=recipe.constraints,
        overrides=recipe.overrides,
        build_constraints=recipe.build_constraints,
        **common(workshop, ground, cutoff, exempt),
    )


def lock(
    workshop: Workshop, memo: Memo, ground: Ground, request: LockRequest, *, name: str, version: str | None
) -> list[Fact]:
    """Return the facts that lead to a lock; the last one is the answer.

    Args:
        workshop: the tools.
        memo: known facts.
        ground: what the request was made for.
        request: what to lock, without `project`.
        name: name of the project under test.
        version: its version, where it is declared.
    """
    first = _measure(workshop, memo, ground, request)
    own = canonicalize_name(name)
    if not own or not _asks_for(first, own):
        return [first]
    return [first, _measure(workshop, memo, ground, request.model_copy(update={"project": (own, version or "")}))]


def _asks_for(fact: Fact, name: str) -> bool:
    if fact.ok:
        return name in fact.payload["packages"]
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", fact.payload["detail"]) is not None


def _measure(workshop: Workshop, memo: Memo, ground: Ground, request: LockRequest) -> Fact:
    inputs = {"request": request, "limits": workshop.limits, "timeout_s": workshop.settings.measure.lock_timeout_s}
    return memo.measure(PRODUCER, KIND, request.subject, inputs, lambda: resolve(workshop, ground, request))


def resolve(workshop: Workshop, ground: Ground, request: LockRequest) -> Observation:
    """Resolve in the sandbox.

    Raises:
        InfrastructureFault: the index or the engine was at fault.
    """
    if not request.requirements:
        return _locked(workshop, request, b"")
    with workshop.box(hold(workshop, ground.task), network=True, cache="shared", cutoff=request.cutoff) as box:
        result = _compile(workshop, box, request, ["--no-build"])
        if result.ok:
            return _locked(workshop, request, box.read_file(_LOCK, _MAX_LOCK))
        if result.limit is not None and not result.timed_out:
            return _refused(workshop, box, result, request)
        workshop.raise_for_faults(box, result)
    with workshop.box(hold(workshop, ground.build), network=True, cutoff=request.cutoff) as box:
        return _with_builds(workshop, box, request)


def _with_builds(workshop: Workshop, box: DockerBox, request: LockRequest) -> Observation:
    """Resolve where the metadata of some packages comes of a build, which may need more than it asks for."""
    more: dict[str, tuple[str, ...]] = {}
    result = _compile(workshop, box, request, [])
    for _ in range(_ROUNDS):
        found = None if result.ok or result.limit is not None else lacking_of(result.text)
        if found is None or found[1] in more.get(found[0], ()):
            break
        more[found[0]] = (*more.get(found[0], ()), found[1])
        box.put({_CONFIG: (_config(more), 0o644)})
        result = _compile(workshop, box, request, ["--config-file", _CONFIG])
    if not result.ok:
        return _refused(workshop, box, result, request)
    text = box.read_file(_LOCK, _MAX_LOCK)
    sources = _sources(workshop, box, request, ["--config-file", _CONFIG] if more else [])
    if isinstance(sources, ExecResult):
        return _refused(workshop, box, sources, request)
    return _locked(workshop, request, text, [_needing(source, more.get(source.name, ())) for source in sources])


def _config(more: Mapping[str, Sequence[str]]) -> bytes:
    """Return uv's settings by which builds have more than they ask for (uv, "extra-build-dependencies")."""
    lines = (f"{name} = {json.dumps(list(needed))}\n" for name, needed in more.items())
    return f"[extra-build-dependencies]\n{''.join(lines)}".encode()


def _needing(source: Source, more: Sequence[str]) -> Source:
    return source.model_copy(update={"requires": tuple(dict.fromkeys((*source.requires, *more)))})


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
    files[f"{WORK}/in.txt"] = (_lines(lines), 0o644)
    bounds = {
        "--constraints": request.constraints,
        "--overrides": request.overrides,
        "--build-constraints": request.build_constraints,
    }
    for option, found in bounds.items():
        if found:
            file = f"{WORK}/{option.removeprefix('--')}.txt"
            files[file] = (_lines(found), 0o644)
            options += [option, file]
    box.put(files)
    command = ["pip", "compile", f"{WORK}/in.txt", "--output-file", _LOCK, "--python", request.executable]
    style = ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--quiet"]
    return _uv(workshop, box, request, [*command, *style, *options, *extra])


def _lines(texts: Iterable[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def _uv(workshop: Workshop, box: Box, request: LockRequest, arguments: Sequence[str]) -> ExecResult:
    """Backtracking may have no end, so a lock has a time of its own."""
    timeout_s = min(workshop.settings.measure.lock_timeout_s, workshop.limits.timeout_s)
    return workshop.run_uv(box, [*arguments, *as_of(request.cutoff, request.exempt)], timeout_s=timeout_s)


def _sources(
    workshop: Workshop, box: DockerBox, request: LockRequest, extra: Sequence[str]
) -> tuple[Source, ...] | ExecResult:
    """Return what of the lock has to be built, or the command that failed to find it out."""
    detailed = f"{WORK}/pylock.toml"
    options = ["--no-deps", "--format", "pylock.toml", "--quiet", "--python", request.executable]
    result = _uv(workshop, box, request, ["pip", "compile", _LOCK, "--output-file", detailed, *options, *extra])
    if not result.ok:
        return result
    return sources_of(workshop, box, box.read_file(detailed, _MAX_LOCK), request.executable)


def _refused(workshop: Workshop, box: Box, result: ExecResult, request: LockRequest) -> Observation:
    what = "resolving the dependencies" if request.purpose == "run" else "resolving the build requirements"
    return workshop.refusal(box, result, Reason.LOCK_FAILED, what, purpose=request.purpose)


def _locked(
    workshop: Workshop, request: LockRequest, text: bytes, sources: Sequence[Source] | None = None
) -> Observation:
    payload: dict[str, Any] = {
        "purpose": request.purpose,
        "packages": packages(text.decode()),
        "builds": sources is not None,
        "sources": [source.model_dump(mode="json") for source in sources or ()],
        "cutoff": request.cutoff.isoformat(),
        "exempt": {name: until and until.isoformat() for name, until in request.exempt.items()},
    }
    blobs = {"lock": workshop.blobs.put(text)} | {source.filename: source.sha256 for source in sources or ()}
    return Observation(payload=payload, blobs=blobs, network=True)
