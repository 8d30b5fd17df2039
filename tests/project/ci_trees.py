"""Small trees of CI files for the tests of their readers."""

from __future__ import annotations

import textwrap
from typing import Any

from miner.project.ci import read_ci
from miner.project.model import Job


def jobs(files: dict[str, str], *, folder: str = "", more: tuple[str, ...] = ()) -> tuple[Job, ...]:
    """Read the CI of a tree of these files, indented or not, and of empty files beside them."""
    contents = {path: textwrap.dedent(text).lstrip("\n").encode() for path, text in files.items()}
    return read_ci(contents, [*contents, *more], folder)


def brief(job: Job) -> dict[str, Any]:
    """Return what a job says, requirements as texts, empty fields and commands left out."""
    held = job.model_dump(exclude={"commands"}, exclude_defaults=True)
    for name in ("requirements", "constraints"):
        if name in held:
            held[name] = tuple(item.text for item in getattr(job, name))
    return held


def one(files: dict[str, str], **options: Any) -> dict[str, Any]:
    """Return what the only job of a tree says."""
    (job,) = jobs(files, **options)
    return brief(job)
