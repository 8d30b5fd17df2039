"""Azure Pipelines: stages, jobs, a matrix of variables, and templates of the tree with their parameters.

Format: https://learn.microsoft.com/en-us/azure/devops/pipelines/yaml-schema/.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from miner.project.ci.expressions import Open, condition, substitute
from miner.project.ci.matrix import MOST_ROWS, Label, jobs_of
from miner.project.ci.reading import Reading
from miner.project.ci.texts import load_texts, mapping, sequence, text
from miner.project.ci.tree import Tree
from miner.project.model import Job

_ENTRY = re.compile(
    r"(?:\.?azure-pipelines|azure-pipelines[\w.-]*|\.azure/[\w.-]+|\.azure-pipelines/[\w.-]+|\.ci/azure[\w.-]*)\.ya?ml\Z"
)
_MACRO = re.compile(r"\$\(([A-Za-z_][\w.-]*)\)")
_OTHER_SYSTEM = re.compile(r"windows|macos|vs20|win", re.I)
_DEEPEST = 5

_Variables = dict[str, str]


def read_azure(tree: Tree) -> Iterator[Job]:
    """Yield the jobs of the Azure pipelines of a tree; templates are read where they are used."""
    for path in sorted(path for path in tree.files if _ENTRY.match(path)):
        notes: list[str] = []
        content = load_texts(tree, path, notes)
        if notes:
            yield Job(source=path, notes=tuple(notes))
        if any(key in content for key in ("jobs", "stages", "steps", "extends")) and "parameters" not in content:
            yield from _pipeline(tree, path, content, {}, {}, 0)


def _pipeline(
    tree: Tree, path: str, content: Mapping[str, Any], variables: _Variables, parameters: Mapping[str, Any], depth: int
) -> Iterator[Job]:
    """Read stages, jobs or steps, whichever a file or a stage holds."""
    if depth > _DEEPEST or not tree.whole.spend():
        return
    held = {**variables, **_variables(content.get("variables"), parameters)}
    for stage in _entries(content.get("stages"), parameters):
        yield from _included(tree, path, stage, held, parameters, depth)
    for job in _entries(content.get("jobs"), parameters):
        if "template" in job:
            yield from _included(tree, path, job, held, parameters, depth)
        else:
            yield from _job(tree, path, job, content, held, parameters)
    if "steps" in content:
        yield from _job(tree, path, {"job": "", **content}, {}, held, parameters)


def _entries(value: Any, parameters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the mappings of a list; those under a template's `if` where it does not fail."""
    for entry in sequence(value):
        own = mapping(entry)
        name = next(iter(own), "")
        asked = re.match(r"\$\{\{\s*(if|elseif|else|each)\b(.*)\}\}\Z", name, re.DOTALL)
        if not asked:
            yield own
        elif (
            asked[1] == "if"
            and condition(_calls(asked[2]), {"parameters": parameters, "variables": Open()}) is not False
        ):
            yield from _entries(own[name], parameters)


def _calls(text_: str) -> str:
    """Write Azure's `eq(a, b)` as GitHub's `a == b`, which is all that is decided here."""
    return re.sub(
        r"\b(eq|ne)\(([^(),]*),([^(),]*)\)",
        lambda found: f"{found[2]} {'==' if found[1] == 'eq' else '!='} {found[3]}",
        text_,
    )


def _included(
    tree: Tree, path: str, entry: Mapping[str, Any], variables: _Variables, parameters: Mapping[str, Any], depth: int
) -> Iterator[Job]:
    """Read a stage, or the template that stands in its place."""
    target = text(entry.get("template"))
    if not target:
        yield from _pipeline(tree, path, entry, variables, parameters, depth + 1)
        return
    inner = _resolve(path, target)
    notes: list[str] = []
    content = load_texts(tree, inner, notes)
    yield from _pipeline(tree, inner, content, variables, _parameters(content, entry, parameters), depth + 1)


def _resolve(path: str, target: str) -> str:
    if target.startswith("/"):
        return target.lstrip("/")
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target.partition("@")[0]))


def _parameters(content: Mapping[str, Any], entry: Mapping[str, Any], outer: Mapping[str, Any]) -> dict[str, Any]:
    declared = content.get("parameters")
    found: dict[str, Any] = {}
    if isinstance(declared, dict):
        found |= mapping(declared)
    for one in sequence(declared) if isinstance(declared, list) else ():
        found[text(mapping(one).get("name"))] = mapping(one).get("default", "")
    given = mapping(entry.get("parameters"))
    return {
        **found,
        **{name: _fill(value, outer) if isinstance(value, str) else value for name, value in given.items()},
    }


def _fill(raw: str, parameters: Mapping[str, Any]) -> str:
    return substitute(raw, {"parameters": parameters, "variables": Open()})


def _variables(value: Any, parameters: Mapping[str, Any]) -> _Variables:
    found: _Variables = {}
    for name, held in mapping(value).items():
        found[name] = _fill(text(held), parameters)
    for one in sequence(value) if isinstance(value, list) else ():
        if text(mapping(one).get("name")):
            found[text(mapping(one)["name"])] = _fill(text(mapping(one).get("value")), parameters)
    return found


def _job(
    tree: Tree,
    path: str,
    job: Mapping[str, Any],
    outer: Mapping[str, Any],
    variables: _Variables,
    parameters: Mapping[str, Any],
) -> Iterator[Job]:
    name = _fill(text(job.get("job", job.get("deployment"))), parameters)
    source = f"{path}: {name}" if name else path
    held = {**variables, **_variables(job.get("variables"), parameters)}
    matrix = mapping(mapping(job.get("strategy")).get("matrix"))
    rows = {key: _variables(row, parameters) for key, row in matrix.items() if isinstance(row, dict)} or {"": {}}
    pool = job.get("pool", outer.get("pool"))
    image = _fill(text(mapping(pool).get("vmImage", mapping(job.get("pool")).get("name"))), parameters)
    notes: list[str] = []
    readings: list[tuple[Label, Reading]] = []
    for label, row in list(rows.items())[:MOST_ROWS]:
        values = {**held, **row}
        if _OTHER_SYSTEM.search(_macros(image, values)):
            notes.append(f"{_macros(image, values)} is no Linux")
            continue
        readings.append(((label,), _row(tree, path, source, job, values, parameters)))
    jobs = jobs_of(readings)
    for one in jobs or [Job(source=source)]:
        yield one.model_copy(update={"notes": tuple(dict.fromkeys((*notes, *one.notes)))})


def _macros(raw: str, variables: Mapping[str, str]) -> str:
    """Fill in `$(name)`; one that is no variable of the file stays, and a shell takes it for a command."""
    folded = {name.casefold(): value for name, value in variables.items()}
    for _ in range(3):
        raw = _MACRO.sub(lambda found: folded.get(found[1].casefold(), found[0]), raw)
    return raw


def _row(
    tree: Tree, path: str, source: str, job: Mapping[str, Any], variables: _Variables, parameters: Mapping[str, Any]
) -> Reading:
    reading = Reading(tree, source, variables={"CI": "true", "TF_BUILD": "true"})
    for name, held in variables.items():
        filled = _macros(held, variables)
        reading.variables[re.sub(r"[.-]", "_", name).upper()] = None if "${{" in filled or "$(" in filled else filled
    for service in mapping(job.get("services")):
        reading.services[service] = None
    _steps(reading, path, sequence(job.get("steps")), variables, parameters, 0)
    for name, held in variables.items() if not reading.pythons else ():
        if "py" in name.lower() and not reading.pythons:
            reading.set_python(held)
    return reading


def _steps(
    reading: Reading, path: str, steps: Sequence[Any], variables: _Variables, parameters: Mapping[str, Any], depth: int
) -> None:
    for step in _entries(list(steps), parameters):
        if not reading.budget.spend():
            return
        asked = text(step.get("condition"))
        if "template" in step and depth < _DEEPEST:
            inner = _resolve(path, _fill(text(step["template"]), parameters))
            content = load_texts(reading.tree, inner, [])
            own = _parameters(content, step, parameters)
            _steps(reading, inner, sequence(content.get("steps")), variables, own, depth + 1)
        elif re.search(r"failed\(\)|Windows_NT|Darwin", asked) and "ne(" not in asked:
            continue
        else:
            _step(reading, step, variables, parameters)


def _step(reading: Reading, step: Mapping[str, Any], variables: _Variables, parameters: Mapping[str, Any]) -> None:
    inputs = mapping(step.get("inputs"))
    task = text(step.get("task"))
    if task.startswith("UsePythonVersion"):
        held = _macros(_fill(text(inputs.get("versionSpec")), parameters), variables)
        if "$" not in held:
            reading.set_python(held)
        return
    script = text(step.get("script")) or text(step.get("bash"))
    if task.startswith(("Bash", "CmdLine")):
        script = text(inputs.get("script")) or text(inputs.get("filePath"))
    if not script:
        return
    env = {name: _macros(_fill(text(held), parameters), variables) for name, held in mapping(step.get("env")).items()}
    known = {name: None if "$(" in held or "${{" in held else held for name, held in env.items()}
    folder = _fill(text(step.get("workingDirectory", inputs.get("workingDirectory"))), parameters)
    folder = re.sub(r"\$\((?:Build\.SourcesDirectory|System\.DefaultWorkingDirectory)\)/?", "", folder)
    reading.step(_macros(_fill(script, parameters), variables), folder, known)
