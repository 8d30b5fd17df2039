"""Hints: what the failures point to comes first, then what the tree has something for; candidates go different ways."""

from __future__ import annotations

from structured_bench import DAY, FILES, RECIPE

from installers.brief.hints import HINTS, hint, hints
from installers.interface import Attempt, Question, Signature, Tree

CONDA = {"environment.yml": b"dependencies:\n  - python=3.8\n  - geos\n"}
PINS = {"requirements.txt": b"attrs==20.1\n"}
OLDER = {"setup.py": b"from setuptools import setup\nsetup(classifiers=['Programming Language :: Python :: 3.6'])\n"}


def question(files=None):
    files = dict(FILES) if files is None else files
    return Question("octo/demo", Tree(files, (*files,)), RECIPE, DAY, (), ())


def best(outcome, *kinds):
    signatures = tuple(Signature(kind=kind) for kind in kinds)
    return Attempt(
        repository="r", rung="repair", number=0, recipe=RECIPE, cutoff=DAY, outcome=outcome, signatures=signatures
    )


def names(files=None, attempt=None):
    return [one.name for one in hints(question(files), attempt)]


def test_every_hint_has_words_and_a_reason():
    assert all(one.text and one.why and one.name for one in HINTS)
    assert len({one.name for one in HINTS}) == len(HINTS)


def test_hints_that_the_tree_has_nothing_for_are_left_out():
    found = names({"setup.py": b"setup()"})
    assert not {"continuous integration", "conda environment", "oldest Python", "requirements files"} & set(found)
    assert found


def test_what_the_tree_has_something_for_comes_first():
    assert names()[:2] == ["continuous integration", "test dependencies"]
    assert names(CONDA)[0] == "conda environment"
    assert names(PINS)[0] in ("test dependencies", "requirements files")
    assert "oldest Python" in names(OLDER)


def test_what_the_failures_point_to_comes_before_that():
    assert names(attempt=best("project-install-failed", "missing-header"))[:2] == [
        "continuous integration",
        "system packages",
    ]
    assert names(attempt=best("collection-broken", "missing-name"))[0] == "versions of the day"
    assert names(attempt=best("lock-failed", "no-solution"))[0] == "minimal"
    assert names(OLDER, best("lock-failed", "python-mismatch"))[:2] == ["oldest Python", "minimal"]
    assert names(CONDA, best("import-failed", "missing-library"))[:2] == ["conda environment", "system packages"]


def test_candidates_go_different_ways_and_begin_anew_after_the_last_one():
    many = [hint(question(), None, number).name for number in range(20)]
    count = len(names())
    assert len(set(many[:count])) == count
    assert many[count] == many[0]
