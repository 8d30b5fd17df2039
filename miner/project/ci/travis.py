"""Travis CI, as it was used for Python.

Format: https://docs.travis-ci.com/user/languages/python/, https://docs.travis-ci.com/user/build-matrix/. Jobs are the
rows of `python` x `env`, those of `include`, and the entries of `jobs`; all lines of a job run in one shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from miner.project.ci.matrix import MOST_ROWS, Label, jobs_of
from miner.project.ci.reading import Reading
from miner.project.ci.texts import load_texts, mapping, sequence, text
from miner.project.ci.tree import Tree
from miner.project.installs import apt
from miner.project.model import Job
from miner.project.shell import ROOT
from miner.project.shell_tokens import ShellSyntaxError, tokens
from miner.project.shell_words import Word, fields

_NAMES = (".travis.yml", ".travis.yaml")
_PHASES = ("before_install", "install", "before_script", "script")
_DEFAULT_INSTALL = "if [ -f requirements.txt ]; then pip install -r requirements.txt; fi"
_NO_LINUX = ("osx", "windows", "freebsd")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)\Z", re.DOTALL)


def read_travis(tree: Tree) -> Iterator[Job]:
    """Yield the jobs of a .travis.yml."""
    path = next((name for name in _NAMES if name in tree.files), None)
    if path is None:
        return
    notes: list[str] = []
    content = load_texts(tree, path, notes)
    if notes:
        yield Job(source=path, notes=tuple(notes))
        return
    readings: list[tuple[Label, Reading]] = []
    skipped: list[str] = []
    for row in _rows(content):
        systems = [name for name in map(text, sequence(row.get("os"))) if name]
        if systems and all(name in _NO_LINUX for name in systems):
            skipped.append(f"{', '.join(systems)} is no Linux")
        elif text(row.get("language")) in ("node_js", "ruby", "go", "java", "rust", "objective-c"):
            skipped.append(f"a job in {row['language']} is left out")
        elif len(readings) < MOST_ROWS:
            readings.append((_label(row), _row(tree, path, row)))
    every = tuple(dict.fromkeys(skipped))
    for job in jobs_of(readings) or [Job(source=path)]:
        yield job.model_copy(update={"notes": tuple(dict.fromkeys((*every, *job.notes)))})


def _rows(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the settings of every job: of the matrix, then those that are listed."""
    base = {key: value for key, value in content.items() if key not in ("matrix", "jobs", "env", "python", "os")}
    base["global"] = [*sequence(mapping(content.get("env")).get("global")), *_plain_env(content.get("env"))]
    matrix = {**mapping(content.get("matrix")), **mapping(content.get("jobs"))}
    include, exclude = (sequence(matrix.get(key)) for key in ("include", "exclude"))
    pythons = sequence(content.get("python"))
    envs = _matrix_env(content.get("env"))
    first = {
        "python": pythons[0] if pythons else "",
        "os": (sequence(content.get("os")) or [""])[0],
        "dist": content.get("dist", ""),
    }
    if pythons or envs or not include:
        for python in pythons or [""]:
            for env in envs or [""]:
                for system in sequence(content.get("os")) or [""]:
                    row = {"python": python, "env": env, "os": system}
                    if not any(_excludes(mapping(one), row) for one in exclude):
                        yield {**base, **row}
    stage_script: dict[str, Any] = {}
    for entry in include:
        own = mapping(entry)
        if own.get("stage") and "script" in own:
            stage_script = {"script": own["script"]}
        yield {**base, **first, "env": envs[0] if envs else "", **(stage_script if not own.get("stage") else {}), **own}


def _plain_env(env: Any) -> list[Any]:
    """A mapping that is neither `global` nor `matrix` sets variables for all jobs."""
    held = mapping(env)
    if not held or {"global", "matrix", "jobs"} & held.keys():
        return []
    return [{name: value} for name, value in held.items()]


def _matrix_env(env: Any) -> list[Any]:
    held = mapping(env)
    if held:
        return sequence(held.get("matrix") or held.get("jobs"))
    return sequence(env)


def _excludes(pattern: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return bool(pattern) and all(row.get(key) == value for key, value in pattern.items())


def _label(row: Mapping[str, Any]) -> Label:
    env = (word for entry in sequence(row.get("env")) for word in _raw_words(text(entry)))
    return tuple(part for part in (text(row.get("python")), *env) if part)


def _row(tree: Tree, path: str, row: Mapping[str, Any]) -> Reading:
    reading = Reading(tree, path if not row.get("name") else f"{path}: {text(row['name'])}")
    python = next((name for name in map(text, sequence(row.get("python"))) if name), "")
    if python:
        reading.set_python(python)
    reading.variables |= {
        "TRAVIS_OS_NAME": "linux",
        "TRAVIS_PYTHON_VERSION": python or None,
        "CI": "true",
        "TRAVIS": "true",
    }
    reading.variables["TRAVIS_DIST"] = text(row.get("dist")) or None
    for entry in (*row["global"], *sequence(row.get("env"))):
        _set(reading, entry)
    for service in sequence(row.get("services")):
        if text(service) and text(service) not in ("docker", "xvfb"):
            reading.services[text(service)] = None
    for place in (mapping(mapping(row.get("addons")).get("apt")), mapping(row.get("addons"))):
        packages = place.get("packages", place.get("apt_packages"))
        reading.install(apt([Word(name) for name in map(text, sequence(packages)) if name]), ROOT, reading.source)
    shell = reading.shell()
    for phase in _PHASES:
        lines = sequence(row.get(phase))
        if phase == "install" and "install" not in row:
            lines = [_DEFAULT_INSTALL]
        for line in lines:
            if text(line) not in ("", "true", "skip"):
                shell.run(text(line))
    return reading


def _set(reading: Reading, entry: Any) -> None:
    """Take one entry of `env`: `A=1 B="x y"`, or a mapping; what is encrypted is no variable."""
    if isinstance(entry, dict):
        for name, held in mapping(entry).items():
            if name != "secure":
                reading.variables[name] = text(held) if not isinstance(held, dict) else None
        return
    for raw in _raw_words(text(entry)):
        match = _ASSIGNMENT.match(raw)
        if not match:
            continue
        held = fields(match[2], reading.variables)
        known = all(word.known for word in held)
        reading.variables[match[1]] = " ".join(word.text for word in held) if known else None


def _raw_words(line: str) -> list[str]:
    try:
        return [token.text for token in tokens(line) if token.kind == "word"]
    except ShellSyntaxError:
        return line.split()
