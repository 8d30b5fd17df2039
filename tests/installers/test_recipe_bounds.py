"""Constraints and overrides of a recipe."""

from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from installers.bounds import bounds
from installers.requirements import Line
from miner.project.model import Declared


def bound(*texts, asked=(), project=None):
    notes = []
    lines = [Line(requirement=text, sources=("s",)) for text in asked]
    found = bounds([Declared(text=text, source="c.txt") for text in texts], lines, "3.9", project, notes)
    return found, notes


def test_bounds_of_one_name_are_joined():
    assert bound("A_b>=1", "a.b<2", "c==3")[0] == ("A_b<2,>=1", "c==3")


def test_what_bounds_nothing_here_is_left_out():
    assert bound("a", "b @ https://example.org/b", "c<2; python_version < '3'", "me==1", project="Me")[0] == ()


def test_what_is_asked_for_wins():
    found, notes = bound("a==1", "b==1", asked=["a>=2", "b>=2; python_version < '3'"])
    assert found == ("b==1",)
    assert notes == ["c.txt: the constraint a==1 contradicts a>=2 and is left out"]


def test_the_first_of_two_that_contradict_wins():
    assert bound("a==1", "a==2")[0] == ("a==1",)


def test_markers_and_extras_are_taken_off():
    assert bound("a[x]<2; python_version >= '3'")[0] == ("a<2",)


def test_what_is_no_requirement_is_noted():
    assert bound("./x") == ((), ["c.txt: './x' is no constraint"])


@given(st.lists(st.from_regex(r"[ab](==|<|>=|!=)[0-3](; python_version < '3.[89]')?", fullmatch=True), max_size=8))
def test_bounds_are_one_for_each_name(texts):
    names = [Requirement(text).name for text in bound(*texts)[0]]
    assert len(names) == len(set(names))
