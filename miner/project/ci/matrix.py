"""Rows of a matrix: their combinations, and the jobs that they come to, equal ones together."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from miner.project.ci.reading import Reading
from miner.project.ci.texts import mapping, sequence
from miner.project.ci.versions import newest, number
from miner.project.model import Job

Row = dict[str, Any]
Label = tuple[str, ...]
"""The values of a row, for people."""

_MOST = 400
_MAX_LABEL = 80
_VERSION_PART = re.compile(r"[~^<>=v]*\d+\.\d+")
MOST_ROWS = 60
"""Rows of one job that are read."""
_OF_ROW = ("TOXENV", "TOX_ENV", "NOXSESSION", "NOXPYTHON", "COVERAGE_FILE", "PYTHON", "PYVERSION")
_VERSION = re.compile(r"(?:py|python)?-?[23]\.?\d{1,2}\b")


def combine(dimensions: Mapping[str, Sequence[Any]]) -> list[Row]:
    """Return every combination of the values of named dimensions."""
    if not dimensions:
        return []
    product = itertools.product(*dimensions.values())
    return [dict(zip(dimensions, values, strict=True)) for values in itertools.islice(product, _MOST)]


def github_rows(matrix: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a matrix of GitHub Actions, `exclude` and `include` as its documentation has them."""
    dimensions = {name: sequence(values) for name, values in matrix.items() if name not in ("include", "exclude")}
    excluded = [mapping(row) for row in sequence(matrix.get("exclude")) if isinstance(row, dict)]
    rows = [row for row in combine(dimensions) if not any(_matches(row, one) for one in excluded)]
    originals = [dict(row) for row in rows]
    for extra in sequence(matrix.get("include"))[:_MOST]:
        if not isinstance(extra, dict):
            continue
        added = False
        for row, original in zip(rows, originals, strict=False):
            if all(original[key] == value for key, value in extra.items() if key in original):
                row.update(extra)
                added = True
        if not added:
            rows.append(dict(extra))
    return rows[:_MOST]


def _matches(row: Row, pattern: Mapping[str, Any]) -> bool:
    return bool(pattern) and all(row.get(key) == value for key, value in pattern.items())


def jobs_of(readings: Iterable[tuple[Label, Reading]]) -> list[Job]:
    """Return the jobs that the rows of one job come to: rows that install, set and test the same are one.

    Each row comes with its values. Rows of PyPy and the like are left out. Of equal rows the
    one of the newest Python stands for all, and all Pythons are named.
    """
    groups: dict[str, list[tuple[Label, Reading, Job]]] = {}
    every = list(readings)
    ours = [row for row in every if not row[1].foreign or row[1].pythons]
    for label, reading in ours:
        job = reading.job()
        groups.setdefault(content_of(job), []).append((label, reading, job))
    if every and not ours:
        notes = tuple(dict.fromkeys(note for _, reading in every for note in reading.notes))
        return [Job(source=every[0][1].source, notes=notes)]
    found = []
    for rows in groups.values():
        _, _, job = max(rows, key=lambda row: number(newest(row[2].pythons) or ""))
        pythons = tuple(dict.fromkeys(version for _, _, other in rows for version in other.pythons))
        name = _label([parts for parts, _, _ in rows], pythons)
        source = f"{job.source} ({name})" if name and len(groups) > 1 else job.source
        found.append(job.model_copy(update={"pythons": pythons, "source": source}))
    return found


def _label(rows: Sequence[Label], pythons: Sequence[str]) -> str:
    """Name rows by what they have in common, versions of Python aside; by these where there is nothing else."""
    common = [part for part in rows[0] if part and all(part in other for other in rows)]
    kept = [part for part in common if len(rows) == 1 or not _VERSION_PART.match(part)]
    return (", ".join(kept) or ", ".join(pythons if any(rows) else ()))[:_MAX_LABEL]


def content_of(job: Job) -> str:
    """Return what two jobs have in common that install, set and test the same."""
    env = {name: _VERSION.sub("", held) for name, held in job.env.items() if name not in _OF_ROW}
    parts = (
        sorted({item.text for item in job.requirements}),
        sorted({item.text for item in job.constraints}),
        sorted(job.extras),
        sorted(job.groups),
        sorted(job.system_packages),
        sorted(env.items()),
        sorted(job.services),
        job.tests,
    )
    return repr(parts)
