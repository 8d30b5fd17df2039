"""CircleCI 2 and 2.1: jobs, executors, reusable commands and parameters; CircleCI 1 as far as its lists of commands.

Format: https://circleci.com/docs/reference/configuration-reference/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from miner.project.ci.matrix import MOST_ROWS, Row, combine, jobs_of
from miner.project.ci.reading import Reading
from miner.project.ci.texts import load_texts, mapping, sequence, text
from miner.project.ci.tree import Tree
from miner.project.model import Job

_NAMES = (".circleci/config.yml", ".circleci/config.yaml", "circle.yml")
_PARAMETER = re.compile(r"<<\s*(?:pipeline\.)?parameters\.([\w-]+)\s*>>")
_PYTHON_IMAGE = re.compile(r"(?:.*/)?python:(?:.*?-)?(\d\.\d+)")
_OTHER = frozenset(
    {"checkout", "save_cache", "restore_cache", "store_artifacts", "store_test_results", "persist_to_workspace"}
)
_OLD_PHASES = (("dependencies", ("pre", "override", "post")), ("test", ("pre", "override", "post")))
_DEEPEST = 6


def read_circleci(tree: Tree) -> Iterator[Job]:
    """Yield the jobs of a CircleCI configuration."""
    path = next((name for name in _NAMES if name in tree.files), None)
    if path is None:
        return
    notes: list[str] = []
    content = load_texts(tree, path, notes)
    if notes:
        yield Job(source=path, notes=tuple(notes))
    if "jobs" not in content:
        yield from _old(tree, path, content)
        return
    for name, job in mapping(content.get("jobs")).items():
        yield from _job(tree, f"{path}: {name}", name, mapping(job), content)


def _job(tree: Tree, source: str, name: str, job: Mapping[str, Any], content: Mapping[str, Any]) -> Iterator[Job]:
    if "macos" in job or "windows" in text(mapping(job.get("executor")).get("name", job.get("executor"))):
        yield Job(source=source, notes=("it does not run on Linux",))
        return
    defaults = {key: text(mapping(one).get("default")) for key, one in mapping(job.get("parameters")).items()}
    readings = []
    for row in _rows(name, content)[:MOST_ROWS]:
        given = {**_pipeline(content), **defaults, **row}
        readings.append((tuple(row.values()), _read(tree, source, job, content, given)))
    yield from jobs_of(readings)


def _pipeline(content: Mapping[str, Any]) -> dict[str, str]:
    return {key: text(mapping(one).get("default")) for key, one in mapping(content.get("parameters")).items()}


def _rows(name: str, content: Mapping[str, Any]) -> list[Row]:
    """Return the parameters that workflows give to a job: one row for each, and for each combination of a matrix."""
    found: list[Row] = []
    for workflow in mapping(content.get("workflows")).values():
        for entry in sequence(mapping(workflow).get("jobs")):
            given = mapping(mapping(entry).get(name))
            parameters = mapping(mapping(given.get("matrix")).get("parameters"))
            rows = combine({key: [text(value) for value in sequence(values)] for key, values in parameters.items()})
            single = {key: text(value) for key, value in given.items() if isinstance(value, str)}
            found += [{**single, **row} for row in rows] or ([single] if given else [])
    return found or [{}]


def _read(
    tree: Tree, source: str, job: Mapping[str, Any], content: Mapping[str, Any], given: Mapping[str, str]
) -> Reading:
    reading = Reading(tree, source, variables={"CI": "true", "CIRCLECI": "true"})
    called = job.get("executor")
    executor = mapping(mapping(content.get("executors")).get(_filled(text(mapping(called).get("name", called)), given)))
    given = {
        **{key: text(mapping(one).get("default")) for key, one in mapping(executor.get("parameters")).items()},
        **given,
        **{key: _filled(text(value), given) for key, value in mapping(called).items() if isinstance(value, str)},
    }
    for place in (executor, job):
        _images(reading, place, given)
        for name, value in mapping(place.get("environment")).items():
            reading.variables[name] = _value(text(value), given)
    folder = _folder(text(job.get("working_directory")))
    _steps(reading, sequence(job.get("steps")), content, given, folder)
    return reading


def _images(reading: Reading, place: Mapping[str, Any], given: Mapping[str, str]) -> None:
    """The first image runs the job, the others are services."""
    for index, entry in enumerate(sequence(place.get("docker"))):
        image = _filled(text(mapping(entry).get("image")), given)
        if index:
            reading.services[image] = None
            continue
        if match := _PYTHON_IMAGE.match(image):
            reading.set_python(match[1])
        for name, value in mapping(mapping(entry).get("environment")).items():
            reading.variables[name] = _value(text(value), given)


def _filled(raw: str, given: Mapping[str, str]) -> str:
    """Fill in parameters; one that is not known becomes an expression, which is not known to a shell either."""
    filled = _PARAMETER.sub(lambda found: given.get(found[1], f"${{{{{found[1]}}}}}"), raw)
    return re.sub(r"<<\s*([\w.]+)\s*>>", r"${{\1}}", filled)


def _value(raw: str, given: Mapping[str, str]) -> str | None:
    held = _filled(raw, given)
    return None if "${{" in held else held


def _folder(raw: str) -> str:
    """A folder in the home of the runner is where the tree is checked out."""
    return "" if raw.startswith(("~", "/", "$")) else raw


def _steps(
    reading: Reading,
    steps: list[Any],
    content: Mapping[str, Any],
    given: Mapping[str, str],
    folder: str,
    depth: int = 0,
) -> None:
    for step in steps:
        if not reading.budget.spend():
            return
        name, held = next(iter(mapping(step).items()), (text(step), ""))
        if name == "run":
            _run(reading, held, given, folder)
        elif name in ("when", "unless"):
            reading.note(f"steps under {name!r} are left out")
        elif name not in _OTHER and depth < _DEEPEST:
            command = mapping(mapping(content.get("commands")).get(name))
            own = {key: text(mapping(one).get("default")) for key, one in mapping(command.get("parameters")).items()}
            own |= {key: _filled(text(value), given) for key, value in mapping(held).items()}
            _steps(reading, sequence(command.get("steps")), content, {**given, **own}, folder, depth + 1)


def _run(reading: Reading, held: Any, given: Mapping[str, str], folder: str) -> None:
    if isinstance(held, str):
        reading.step(_filled(held, given), folder)
        return
    step = mapping(held)
    if text(step.get("when")) == "on_fail":
        return
    env = {name: _value(text(value), given) for name, value in mapping(step.get("environment")).items()}
    place = _folder(_filled(text(step.get("working_directory")), given)) or folder
    reading.step(_filled(text(step.get("command")), given), place, env)


def _old(tree: Tree, path: str, content: Mapping[str, Any]) -> Iterator[Job]:
    """CircleCI 1: a machine, and lists of commands in phases."""
    reading = Reading(tree, path)
    machine = mapping(content.get("machine"))
    if version := text(mapping(machine.get("python")).get("version")):
        reading.set_python(version)
    reading.variables |= {name: text(value) for name, value in mapping(machine.get("environment")).items()}
    for service in sequence(machine.get("services")):
        reading.services[text(service)] = None
    for phase, parts in _OLD_PHASES:
        for part in parts:
            for line in sequence(mapping(content.get(phase)).get(part)):
                reading.step(text(line) or next(iter(mapping(line)), ""))
    yield reading.job()
