"""GitLab CI: jobs with `extends`, defaults, `parallel: matrix` and files of the tree that are included.

Format: https://docs.gitlab.com/ci/yaml/.
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
from miner.project.shell import Budget
from miner.project.shell_words import value

_PATH = ".gitlab-ci.yml"
_RESERVED = frozenset(
    {
        "default",
        "include",
        "stages",
        "variables",
        "workflow",
        "image",
        "services",
        "before_script",
        "after_script",
        "cache",
        "pages",
        "spec",
    }
)
_PYTHON_IMAGE = re.compile(r"(?:.*/)?python:(\d\.\d+)")
_DEEPEST = 8


def read_gitlab(tree: Tree) -> Iterator[Job]:
    """Yield the jobs of a .gitlab-ci.yml."""
    if _PATH not in tree.files:
        return
    notes: list[str] = []
    content = _included(tree, _PATH, notes, 0)
    if notes:
        yield Job(source=_PATH, notes=tuple(notes))
    defaults: dict[str, Any] = {key: content[key] for key in ("image", "services", "before_script") if key in content}
    defaults |= mapping(content.get("default"))
    for name, raw in content.items():
        if name in _RESERVED or name.startswith(".") or not isinstance(raw, dict):
            continue
        job = {**defaults, **_extended(tree, content, mapping(raw), 0)}
        rows = _rows(job)
        readings = [
            (tuple(row.values()), _row(tree, f"{_PATH}: {name}", content, job, row)) for row in rows[:MOST_ROWS]
        ]
        yield from jobs_of(readings)


def _included(tree: Tree, path: str, notes: list[str], depth: int) -> dict[str, Any]:
    """Return a file with the local files that it includes below it."""
    content = load_texts(tree, path, notes)
    found: dict[str, Any] = {}
    for entry in sequence(content.get("include")) if depth < _DEEPEST and tree.whole.spend() else ():
        local = text(entry) or text(mapping(entry).get("local"))
        if local and "://" not in local:
            found |= _included(tree, local.lstrip("/"), notes, depth + 1)
    return {**found, **content}


def _extended(tree: Tree, content: Mapping[str, Any], job: Mapping[str, Any], depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for parent in sequence(job.get("extends")) if depth < _DEEPEST and tree.whole.spend() else ():
        inherited = _extended(tree, content, mapping(content.get(text(parent))), depth + 1)
        variables = {**mapping(found.get("variables")), **mapping(inherited.get("variables"))}
        found |= {**inherited, "variables": variables}
    return {**found, **job, "variables": {**mapping(found.get("variables")), **mapping(job.get("variables"))}}


def _rows(job: Mapping[str, Any]) -> list[Row]:
    found: list[Row] = []
    for entry in sequence(mapping(job.get("parallel")).get("matrix")):
        found += combine({name: [text(held) for held in sequence(values)] for name, values in mapping(entry).items()})
    return found or [{}]


def _row(tree: Tree, source: str, content: Mapping[str, Any], job: Mapping[str, Any], row: Row) -> Reading:
    reading = Reading(tree, source, variables={"CI": "true", "GITLAB_CI": "true"})
    for place in (content.get("variables"), job.get("variables"), row):
        for name, held in mapping(place).items():
            raw = text(mapping(held).get("value", held))
            expanded = value(f'"{raw}"' if '"' not in raw else raw, reading.variables)
            reading.variables[name] = expanded.text if expanded.known else None
    image = job.get("image", "")
    named = value(text(mapping(image).get("name", image)), reading.variables)
    if match := _PYTHON_IMAGE.match(named.text):
        reading.set_python(match[1])
    for service in sequence(job.get("services")):
        reading.services[text(mapping(service).get("name", service))] = None
    shell = reading.shell()
    for phase in ("before_script", "script"):
        for line in _flat(job.get(phase), content, tree.whole, 0):
            shell.run(line)
    return reading


def _flat(lines: Any, content: Mapping[str, Any], budget: Budget, depth: int) -> Iterator[str]:
    """Yield lines; lists in lists are joined, and `!reference [job, key]` is followed."""
    items = sequence(lines) if budget.spend() else []
    if depth and len(items) == 2 and isinstance(items[0], str) and items[0].startswith(".") and depth < _DEEPEST:
        yield from _flat(mapping(content.get(items[0])).get(text(items[1])), content, budget, depth + 1)
        return
    for item in items:
        if isinstance(item, list) and depth < _DEEPEST:
            yield from _flat(item, content, budget, depth + 1)
        elif isinstance(item, str):
            yield item
