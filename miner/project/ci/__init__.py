"""What a tree's CI installs and runs, read statically: one module for each format.

A file that is broken, too large or too strange becomes a note, never an error; nothing of it is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from miner.project.ci.appveyor import read_appveyor
from miner.project.ci.azure import read_azure
from miner.project.ci.circleci import read_circleci
from miner.project.ci.dockerfile import read_dockerfiles
from miner.project.ci.github_actions import read_github
from miner.project.ci.gitlab import read_gitlab
from miner.project.ci.makefile import follow_make, make_jobs
from miner.project.ci.matrix import jobs_of
from miner.project.ci.noxfile import follow_nox, nox_jobs
from miner.project.ci.paths import is_ci
from miner.project.ci.reading import Reading, run_script, run_text
from miner.project.ci.readthedocs import read_readthedocs
from miner.project.ci.tasks import follow_hatch, follow_task
from miner.project.ci.tox import follow_tox, tox_jobs
from miner.project.ci.travis import read_travis
from miner.project.ci.tree import Follower, Tree
from miner.project.ci.versions import number
from miner.project.commands import SCRIPT, TEXT
from miner.project.model import Job

__all__ = ["ci_pythons", "is_ci", "read_ci"]

_FOLLOWERS: Mapping[str, Follower] = {
    "make": follow_make,
    "gmake": follow_make,
    "tox": follow_tox,
    "detox": follow_tox,
    "nox": follow_nox,
    SCRIPT: run_script,
    TEXT: run_text,
    "hatch": follow_hatch,
    "pdm": follow_task,
    "poe": follow_task,
    "rye": follow_task,
    "task": follow_task,
}


def _of(readings: Callable[[Tree], Iterable[Reading]]) -> Callable[[Tree], Iterator[Job]]:
    """Turn a reader of many jobs of one file into one that gives equal ones together."""

    def read(tree: Tree) -> Iterator[Job]:
        yield from jobs_of(((), reading) for reading in readings(tree))

    return read


# Services of CI first: they are known to work on other machines than the author's.
_READERS: Sequence[Callable[[Tree], Iterator[Job]]] = (
    read_github,
    read_travis,
    read_circleci,
    read_azure,
    read_gitlab,
    read_appveyor,
    _of(tox_jobs),
    _of(nox_jobs),
    _of(make_jobs),
    read_dockerfiles,
    read_readthedocs,
)


def read_ci(files: Mapping[str, bytes], paths: Sequence[str], folder: str = "") -> tuple[Job, ...]:
    """Return what the CI files of a tree install and run, services of CI first. Nothing in them raises.

    Args:
        files: path -> content of the CI files (`is_ci`) and of the declaration files, which jobs install from.
        paths: every path of the tree.
        folder: the project's folder, "" for the root.
    """
    tree = Tree.of(files, paths, folder, _FOLLOWERS)
    found = [job for read in _READERS for job in _read(read, tree)]
    if tree.whole.spent:
        found.append(Job(source="CI", notes=("its files hold too much to be read to their end",)))
    return tuple(found)


def _read(read: Callable[[Tree], Iterator[Job]], tree: Tree) -> list[Job]:
    try:
        return list(read(tree))
    except RecursionError:
        return [Job(source=read.__name__, notes=("it is nested too deeply to be read",))]


def ci_pythons(jobs: Iterable[Job]) -> tuple[str, ...]:
    """Return the Pythons that jobs which run tests name, the newest first; those of all jobs where none does."""
    every = list(jobs)
    testing = {version for job in every if job.tests for version in job.pythons}
    named = testing or {version for job in every for version in job.pythons}
    return tuple(sorted(named, key=number, reverse=True))
