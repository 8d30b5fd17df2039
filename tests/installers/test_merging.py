"""Declared requirements to the lines of a recipe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from installers.requirements import expand, merge, names, satisfiable
from miner.project.model import Declared, Group, GroupKind


def declared(*texts, source="s"):
    return [Declared(text=text, source=source) for text in texts]


def merged(runtime, tests):
    notes = []
    lines = merge(declared(*runtime, source="run"), declared(*tests, source="test"), notes)
    return {line.requirement: line.sources for line in lines}, notes


def test_specifiers_of_one_name_are_joined_and_sources_kept():
    assert merged(["Some.Pkg>=1"], ["some-pkg[extra]<3", "other"]) == (
        {"Some.Pkg[extra]<3,>=1": ("run", "test"), "other": ("test",)},
        [],
    )


def test_contradicting_requirements_leave_the_run_time_one_with_a_note():
    found, notes = merged(["a<2"], ["a>=2"])
    assert found == {"a<2": ("run", "test")}
    assert notes == ["test: a>=2 contradicts a<2, which is taken"]


def test_markers_are_kept_and_part_requirements():
    found, _ = merged(["a; python_version < '3'", "a>=1"], [])
    assert list(found) == ['a; python_version < "3"', "a>=1"]


def test_paths_urls_and_nonsense_are_left_out_with_a_note():
    texts = [
        ".",
        "./sub",
        "../x",
        "-e x",
        "git+https://example.org/a",
        "b @ https://example.org/b.zip",
        "file:///c",
        "??",
    ]
    found, notes = merged([], [*texts, "ok"])
    assert list(found) == ["ok"]
    assert len(notes) == len(texts)
    assert sum("local path" in note for note in notes) == 4
    assert sum("not on the package index" in note for note in notes) == 2


def test_extras_of_the_project_itself_are_replaced_by_what_they_hold():
    extras = {
        "test": Group(name="test", kind=GroupKind.EXTRA, requirements=tuple(declared("pytest", "Demo-Pkg[more]"))),
        "more": Group(name="more", kind=GroupKind.EXTRA, requirements=tuple(declared("mock", "demo_pkg[test]"))),
    }
    notes = []
    found = expand(declared("x", ".[test]", "demo.pkg", "demo.pkg[no]"), extras, "demo-pkg", notes)
    assert [item.text for item in found] == ["x", "pytest", "mock"]
    assert notes == ["s: the project has no extra 'no'"]


def test_names_hold_for_one_python():
    lines = merge(declared("A.b; python_version < '3.8'", "c", "d; sys_platform == 'win32'"), [], [])
    assert names(lines, "3.11") == {"c"}
    assert names(lines, "3.7") == {"a-b", "c"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        (">=1,<2", True),
        (">=2,<2", False),
        ("==1.5,>=1", True),
        ("==1.5,!=1.5", False),
        ("~=1.4,<1.4", False),
        ("~=1.4,>=1.9", True),
        ("==1.*,>1.5", True),
        ("==2.*,<2", False),
        (">1,<1.0.2", True),
        ("<3,<2.5.1,!=2.5", True),
        ("===odd,>=1", True),
        ("<1,>0.9", True),
    ],
)
def test_satisfiable(text, expected):
    assert satisfiable(SpecifierSet(text)) is expected


VERSIONS = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))


@given(st.lists(st.tuples(st.sampled_from([">=", "<=", "<", ">", "==", "!="]), VERSIONS), max_size=4), VERSIONS)
def test_a_set_that_admits_some_version_is_satisfiable(parts, version):
    bounds = SpecifierSet(",".join(operator + bound for operator, bound in parts))
    if bounds.contains(version):
        assert satisfiable(bounds)


@given(st.lists(st.text(max_size=12), max_size=5))
def test_any_texts_are_merged_without_an_error(texts):
    found, _ = merged(texts, texts)
    assert len(found) <= len(texts)
