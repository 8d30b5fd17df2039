"""GitHub Actions: workflows, the workflows that they call, and composite actions of the tree.

Format: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax. A change is read as a pull
request on Linux; each row of a matrix is read with its own values.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from miner.project.ci.expressions import UNKNOWN, Contexts, Open, condition, substitute, value_of
from miner.project.ci.matrix import MOST_ROWS, Label, Row, content_of, github_rows, jobs_of
from miner.project.ci.reading import Reading
from miner.project.ci.texts import load_texts, mapping, sequence, text
from miner.project.ci.tree import Tree
from miner.project.installs import Installs, apt, conda_env, conda_install
from miner.project.model import Job
from miner.project.shell import ROOT
from miner.project.shell_words import Word

_WORKFLOW = re.compile(r"\.github/workflows/[^/]+\.ya?ml\Z")
_OTHER_SYSTEM = re.compile(r"windows|macos|mac-|darwin|win-?\d|\bmac\b|\bwin\b", re.I)
_OTHER_SHELL = re.compile(r"(?:pwsh|powershell|cmd|python|msys2|wsl-?bash)\b", re.I)
_PYTHON_IMAGE = re.compile(r"(?:.*/)?python:(\d\.\d+)")
_DEEPEST = 4
_MAX_JOBS = 120

# Action, without its owner's version -> inputs that name a Python.
_PYTHON_INPUTS: Mapping[str, tuple[str, ...]] = {
    "actions/setup-python": ("python-version",),
    "astral-sh/setup-uv": ("python-version",),
    "conda-incubator/setup-miniconda": ("python-version",),
    "deadsnakes/action": ("python-version",),
    "pdm-project/setup-pdm": ("python-version",),
    "MatteoH2O1999/setup-python": ("python-version",),
    "gabrielfalcao/pyenv-action": ("default",),
    "s-weigand/setup-conda": ("python-version",),
    "goanpeca/setup-miniconda": ("python-version",),
}
# Action -> input that lists Debian packages, conda packages, or conda environment files.
_APT_INPUTS = {"awalsh128/cache-apt-pkgs-action": "packages", "tecolicom/actions-use-apt-tools": "tools"}
_CONDA = frozenset(
    {
        "mamba-org/setup-micromamba",
        "conda-incubator/setup-miniconda",
        "mamba-org/provision-with-micromamba",
        "goanpeca/setup-miniconda",
    }
)


@dataclass(frozen=True)
class _Scope:
    """What surrounds a step: values of expressions, the shell and the folder by default."""

    contexts: Contexts
    shell: str = ""
    folder: str = ""
    depth: int = 0

    def with_env(self, env: Any, reading: Reading | None = None) -> _Scope:
        """Return the scope with more variables; of a job's, the reading takes them too."""
        known = dict(self.contexts["env"])
        for name, raw in mapping(value_of(env, self.contexts)).items():
            held = substitute(text(raw), {**self.contexts, "env": known})
            known[name] = UNKNOWN if "${{" in held else held
            if reading is not None:
                reading.variables[name] = None if known[name] is UNKNOWN else held
        return replace(self, contexts={**self.contexts, "env": Open(known)})

    def with_defaults(self, defaults: Any) -> _Scope:
        """Return the scope with `defaults: run:` of a workflow or a job."""
        run = mapping(mapping(defaults).get("run"))
        folder = substitute(text(run.get("working-directory")), self.contexts)
        return replace(self, shell=text(run.get("shell")) or self.shell, folder=folder or self.folder)


def read_github(tree: Tree) -> Iterator[Job]:
    """Yield the jobs of all workflows, a called workflow within the one that calls it."""
    workflows = sorted(path for path in tree.files if _WORKFLOW.match(path))
    found: list[Job] = []
    for path in workflows:
        notes: list[str] = []
        content = load_texts(tree, path, notes)
        if notes:
            found.append(Job(source=path, notes=tuple(notes)))
        if not _only_called(content):
            found += _workflow(tree, path, content, {}, 0)
    distinct = {(job.source.partition(" (")[0], content_of(job), job.pythons): job for job in reversed(found)}
    yield from list(reversed(distinct.values()))[:_MAX_JOBS]


def _only_called(content: Mapping[str, Any]) -> bool:
    triggers = content.get("on")
    names = list(triggers) if isinstance(triggers, (dict, list)) else [triggers]
    return names == ["workflow_call"]


def _workflow(
    tree: Tree, path: str, content: Mapping[str, Any], inputs: Mapping[str, Any], depth: int
) -> Iterator[Job]:
    declared = mapping(mapping(mapping(content.get("on")).get("workflow_call")).get("inputs"))
    defaults = {name: mapping(one).get("default", "") for name, one in declared.items()}
    contexts = {
        "github": Open(event_name="pull_request", workspace=ROOT, actor="", token=UNKNOWN, job=""),
        "runner": Open(os="Linux", arch="X64"),
        "inputs": Open({**defaults, **inputs}),
        "env": Open(),
        "vars": {},
        "steps": Open(),
    }
    scope = _Scope(contexts, depth=depth).with_env(content.get("env")).with_defaults(content.get("defaults"))
    workflow_env = content.get("env")
    for name, job in mapping(content.get("jobs")).items():
        yield from _job(tree, f"{path}: {name}", mapping(job), scope, workflow_env)


def _job(tree: Tree, source: str, job: Mapping[str, Any], scope: _Scope, workflow_env: Any) -> Iterator[Job]:
    if not tree.whole.spend():
        return
    notes: list[str] = []
    rows = _rows(job, scope, notes)
    called = text(job.get("uses"))
    if called.startswith("./"):
        yield from _called(tree, called, job, scope, rows)
        return
    readings: list[tuple[Label, Reading]] = []
    for row in rows:
        inner = replace(scope, contexts={**scope.contexts, "matrix": row})
        if (left_out := _left_out(job, inner)) is not None:
            notes.append(left_out)
        elif len(readings) < MOST_ROWS:
            readings.append((_label(row), _row(tree, source, job, inner, workflow_env)))
    jobs = jobs_of(readings)
    every = tuple(dict.fromkeys(notes))
    if not jobs:
        yield Job(source=source, notes=every)
    for one in jobs:
        yield one.model_copy(update={"notes": tuple(dict.fromkeys((*every, *one.notes)))})


def _rows(job: Mapping[str, Any], scope: _Scope, notes: list[str]) -> list[Row]:
    """Return the rows of a job's matrix, computed dimensions as far as they are known; one empty row without one."""
    raw = mapping(job.get("strategy")).get("matrix")
    whole = value_of(raw, scope.contexts)
    if raw and not isinstance(whole, dict):
        notes.append(f"the matrix {text(raw)!r} is computed when it runs")
    dimensions: dict[str, Any] = {}
    for name, values in mapping(whole).items():
        held = value_of(values, scope.contexts)
        if isinstance(held, list):
            dimensions[name] = [value_of(item, scope.contexts) for item in held]
        else:
            notes.append(f"{name} of the matrix is computed when it runs")
            if name not in ("include", "exclude"):
                dimensions[name] = [UNKNOWN]
    return github_rows(dimensions) or [{}]


def _label(row: Row) -> Label:
    return tuple(value for value in row.values() if isinstance(value, str) and value)


def _left_out(job: Mapping[str, Any], scope: _Scope) -> str | None:
    """Return why a row is not read: another system, or a condition that does not hold."""
    runner = value_of(job.get("runs-on", ""), scope.contexts)
    runner = mapping(runner).get("labels", "") if isinstance(runner, dict) else runner
    names = [substitute(text(name), scope.contexts) for name in sequence(runner)]
    if any(_OTHER_SYSTEM.search(name) for name in names):
        return f"{', '.join(names)} is no Linux"
    asked = text(job.get("if"))
    if asked and condition(asked, scope.contexts) is False:
        return f"{asked!r} does not hold"
    return None


def _called(tree: Tree, target: str, job: Mapping[str, Any], scope: _Scope, rows: list[Row]) -> Iterator[Job]:
    path = posixpath.normpath(target)
    content = load_texts(tree, path, [])
    if scope.depth >= _DEEPEST:
        return
    for row in rows[:10]:
        contexts = {**scope.contexts, "matrix": row}
        given = {name: value_of(value, contexts) for name, value in mapping(job.get("with")).items()}
        yield from _workflow(tree, path, content, given, scope.depth + 1)


def _row(tree: Tree, source: str, job: Mapping[str, Any], scope: _Scope, workflow_env: Any) -> Reading:
    reading = Reading(tree, source, variables={"CI": "true", "GITHUB_ACTIONS": "true"})
    scope = scope.with_defaults(job.get("defaults"))
    scope = scope.with_env(workflow_env, reading).with_env(job.get("env"), reading)
    container = value_of(job.get("container", ""), scope.contexts)
    image = substitute(text(mapping(container).get("image", container)), scope.contexts)
    if match := _PYTHON_IMAGE.match(image):
        reading.set_python(match[1])
    for name, service in mapping(job.get("services")).items():
        image = substitute(text(mapping(service).get("image", "")), scope.contexts)
        reading.services[image if image and "${{" not in image else name] = None
    _steps(reading, sequence(job.get("steps")), scope)
    if not reading.pythons:
        _python_of_row(reading, scope.contexts.get("matrix", {}))
    return reading


def _python_of_row(reading: Reading, row: Row) -> None:
    """Take a Python by the name of its dimension where no step names one."""
    for name, value in row.items():
        if re.search(r"py", name, re.I) and isinstance(value, str):
            reading.set_python(value)
            return


def _steps(reading: Reading, steps: list[Any], scope: _Scope) -> None:
    for raw in steps:
        if not reading.budget.spend():
            return
        step = mapping(raw)
        current = Open({**scope.contexts["env"], **_known(reading)})
        inner = replace(scope, contexts={**scope.contexts, "env": current}).with_env(step.get("env"))
        asked = text(step.get("if"))
        if asked and condition(asked, inner.contexts) is False:
            continue
        if used := text(step.get("uses")):
            _use(reading, used, mapping(step.get("with")), inner)
        elif run := text(step.get("run")):
            _run(reading, run, step, inner)


def _known(reading: Reading) -> dict[str, Any]:
    return {name: UNKNOWN if held is None else held for name, held in reading.variables.items()}


def _run(reading: Reading, run: str, step: Mapping[str, Any], scope: _Scope) -> None:
    shell = substitute(text(step.get("shell")), scope.contexts) or scope.shell
    if _OTHER_SHELL.match(shell):
        reading.note(f"a step for {shell} is left out")
        return
    folder = substitute(text(step.get("working-directory")), scope.contexts) or scope.folder
    env = {name: None if held is UNKNOWN else str(held) for name, held in scope.contexts["env"].items()}
    reading.step(substitute(run, scope.contexts), folder, env)


def _use(reading: Reading, used: str, given: Mapping[str, Any], scope: _Scope) -> None:
    """Read a step that uses an action: one of the tree, or one that sets up Python or installs packages."""
    if used.startswith("./"):
        _composite(reading, used, given, scope)
        return
    name = used.partition("@")[0]
    inputs = {key: substitute(text(value), scope.contexts) for key, value in given.items()}
    if name in _APT_INPUTS:
        words = [Word(word, "${{" not in word) for word in inputs.get(_APT_INPUTS[name], "").split()]
        reading.install(apt(words), ROOT, reading.source)
    for key in _PYTHON_INPUTS.get(name, ()):
        if held := inputs.get(key, ""):
            _setup(reading, held)
    if held := inputs.get("python-version-file", ""):
        _version_file(reading, held)
    if name in _CONDA:
        _conda(reading, inputs)


def _setup(reading: Reading, version: str) -> None:
    if "${{" in version:
        reading.note(f"Python {version} is only known when it runs")
    else:
        reading.set_python(version)


def _version_file(reading: Reading, path: str) -> None:
    held = reading.tree.text(posixpath.normpath(path), [])
    if held is not None and posixpath.basename(path) in (".python-version", "runtime.txt"):
        reading.set_python("\n".join(line for line in held.splitlines() if not line.startswith("#")))


def _conda(reading: Reading, inputs: Mapping[str, str]) -> None:
    found = Installs()
    if held := inputs.get("environment-file", ""):
        found |= conda_env([Word("-f"), Word(held, "${{" not in held)])
    for key in ("create-args", "extra-specs"):
        words = [Word(word.strip("\"'"), "${{" not in word) for word in inputs.get(key, "").split()]
        found |= conda_install(words)
    reading.install(found, ROOT, reading.source)


def _composite(reading: Reading, used: str, given: Mapping[str, Any], scope: _Scope) -> None:
    folder = posixpath.normpath(used)
    path = next(
        (f"{folder}/{name}" for name in ("action.yml", "action.yaml") if f"{folder}/{name}" in reading.tree.files), ""
    )
    key = f"action {folder}"
    if not path or not reading.once(key):
        reading.note(f"{used} is not in the tree, or is no file that is read")
        return
    content = load_texts(reading.tree, path, reading.notes)
    runs = mapping(content.get("runs"))
    if runs.get("using") != "composite":
        return
    inputs = {
        name: value_of(mapping(one).get("default", ""), scope.contexts)
        for name, one in mapping(content.get("inputs")).items()
    }
    inputs |= {name: value_of(value, scope.contexts) for name, value in given.items()}
    with reading.entering(key):
        _steps(reading, sequence(runs.get("steps")), replace(scope, contexts={**scope.contexts, "inputs": inputs}))
