"""What a project says about Pythons, gathered from all its files for `installers.pythons.choose_python`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from installers.pythons import Hints
from miner.project.ci import read_ci
from miner.project.model import Job, ProjectFacts

_CLASSIFIER = re.compile(r"Programming Language :: Python :: (\d+(?:\.\d+)?)(?: :: Only)?\s*\Z")


def hints_of(facts: ProjectFacts, files: Mapping[str, bytes], paths: Sequence[str], folder: str) -> Hints:
    """Return the hints of a project.

    Where anything names a Python 3, however loosely, the versions of Python 2 beside it say nothing.
    """
    classified = [found.group(1) for text in facts.classifiers if (found := _CLASSIFIER.match(text))]
    ci = _of_ci(read_ci(files, paths, folder))
    tox = [hint.version for hint in facts.pythons if hint.kind == "tox"]
    pinned = [hint.version for hint in facts.pythons if hint.kind == "pinned"]
    three = any(version.startswith("3") for version in (*classified, *ci, *tox, *pinned))

    def kept(versions: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one for one in versions if "." in one and not (three and one.startswith("2."))))

    return Hints(
        requires_python=(facts.requires_python,) if facts.requires_python else (),
        classifiers=kept(classified),
        tox=kept(tox),
        ci=kept(ci),
        pinned=kept(pinned),
    )


def _of_ci(jobs: Iterable[Job]) -> list[str]:
    """Return the versions of the jobs that run tests, in order; those of all jobs where none does."""
    listed = list(jobs)
    testing = [job for job in listed if job.tests and job.pythons] or listed
    return [version for job in testing for version in job.pythons]
