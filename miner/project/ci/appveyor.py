"""AppVeyor: nearly always Windows, of which only the Pythons say something; jobs on its Ubuntu images are read.

Format: https://www.appveyor.com/docs/appveyor-yml/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from miner.project.ci.matrix import MOST_ROWS, Label, jobs_of
from miner.project.ci.reading import Reading
from miner.project.ci.texts import load_texts, mapping, sequence, text
from miner.project.ci.tree import Tree
from miner.project.model import Job

_NAMES = ("appveyor.yml", ".appveyor.yml")
_PHASES = ("init", "install", "before_build", "build_script", "before_test", "test_script")
_PYTHON = re.compile(r"Python(\d)(\d{1,2})(?:-x64)?\b|\b(3\.\d{1,2}|2\.7)\b", re.I)


def read_appveyor(tree: Tree) -> Iterator[Job]:
    """Yield the jobs of an AppVeyor configuration."""
    path = next((name for name in _NAMES if name in tree.files), None)
    if path is None:
        return
    notes: list[str] = []
    content = load_texts(tree, path, notes)
    images = [text(image) for image in sequence(content.get("image"))]
    environment = mapping(content.get("environment"))
    rows = [mapping(row) for row in sequence(environment.get("matrix")) if isinstance(row, dict)] or [{}]
    readings: list[tuple[Label, Reading]] = []
    elsewhere: dict[str, None] = {}
    for row in rows[:MOST_ROWS]:
        image = text(row.get("APPVEYOR_BUILD_WORKER_IMAGE")) or next((one for one in images if _linux(one)), "")
        if _linux(image):
            readings.append((tuple(map(text, row.values())), _row(tree, path, content, row)))
        else:
            found = (
                _PYTHON.search(f"{name} {text(held)}") for name, held in row.items() if re.search(r"py|tox", name, re.I)
            )
            elsewhere.update(dict.fromkeys(match[3] or f"{match[1]}.{match[2]}" for match in found if match))
    if elsewhere or notes or not readings:
        yield Job(source=path, pythons=tuple(elsewhere), notes=(*notes, "Windows is no Linux"))
    yield from jobs_of(readings)


def _linux(image: str) -> bool:
    return image.lower().startswith(("ubuntu", "linux"))


def _row(tree: Tree, path: str, content: Mapping[str, Any], row: Mapping[str, Any]) -> Reading:
    reading = Reading(tree, path)
    environment = mapping(content.get("environment"))
    for name, held in (*mapping(environment.get("global")).items(), *environment.items(), *row.items()):
        if name not in ("global", "matrix"):
            reading.variables[name] = held if isinstance(held, str) else None
    stack = re.search(r"python\s+(\d\.\d+)", f"{text(row.get('stack'))} {text(content.get('stack'))}")
    if stack:
        reading.set_python(stack[1])
    shell = reading.shell()
    for phase in _PHASES:
        for line in sequence(content.get(phase)):
            shell.run(text(mapping(line).get("sh", "")) if isinstance(line, dict) else text(line))
    return reading
