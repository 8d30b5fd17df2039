"""Which groups of requirements the tests need."""

import pytest

from installers.selection import choose, is_test_group
from miner.project.model import Declared, Group, GroupKind


def group(name, *texts, kind=GroupKind.EXTRA, source="s", extras=()):
    requirements = tuple(Declared(text=text, source=source) for text in texts)
    return Group(name=name, kind=kind, requirements=requirements, extras=extras)


def chosen(*groups, python="3.11", folders=()):
    notes = []
    found = choose(groups, python, folders, notes)
    return {one.name: [item.text for item in one.requirements] for one in found}, notes


@pytest.mark.parametrize("name", ["test", "tests", "Testing", "unit-tests", "test_extra", "pytest", "tests.min"])
def test_names_of_test_groups(name):
    assert is_test_group(name)


@pytest.mark.parametrize("name", ["dev", "docs", "test-docs", "tests-mypy", "latest", "lint", "all", "test_coverage"])
def test_names_of_other_groups(name):
    assert not is_test_group(name)


def test_test_groups_are_preferred_to_development():
    assert chosen(group("test", "pytest", "black"), group("dev", "x"), group("docs", "y")) == (
        {"test": ["pytest", "black"]},
        [],
    )


def test_development_is_taken_without_its_tools_where_there_is_no_test_group():
    found, notes = chosen(
        group("dev", "pytest", "hypothesis", "Black>=2", "sphinx-x", "types-y", "pre_commit"), group("docs", "z")
    )
    assert found == {"dev": ["pytest", "hypothesis"]}
    assert notes[0] == "s: black is left out: it checks style"
    assert len(notes) == 4


def test_a_test_group_of_tools_alone_does_not_keep_development_away():
    assert set(chosen(group("test", "coverage"), group("dev", "x"))[0]) == {"test", "dev"}
    assert set(chosen(group("test"), group("dev", "x"))[0]) == {"test", "dev"}


def test_tests_require_counts_as_tests():
    assert set(chosen(group("tests_require", "x", kind=GroupKind.TESTS_REQUIRE), group("dev", "y"))[0]) == {
        "tests_require"
    }


def test_requirements_file_in_a_folder_of_the_tests():
    own = group("dev", "x", kind=GroupKind.FILE, source="suite/requirements-dev.txt")
    assert chosen(own, group("dev", "y"), folders=["suite"])[0] == {"dev": ["x"]}


TOX = [
    group("testenv", "general", kind=GroupKind.TOX),
    group("testenv:py{310,311}-x", "exact", kind=GroupKind.TOX),
    group("testenv:unit", "unit", kind=GroupKind.TOX),
]


def test_the_tox_environment_of_the_python_wins():
    assert chosen(*TOX)[0] == {"testenv:py{310,311}-x": ["exact"]}
    assert chosen(*TOX, python="3.9")[0] == {"testenv": ["general"]}
    assert chosen(*TOX[1:], python="3.9")[0] == {"testenv:unit": ["unit"]}


def test_extras_of_a_tox_environment_count():
    assert set(chosen(group("testenv", kind=GroupKind.TOX, extras=("all",)), group("dev", "x"))[0]) == {"testenv"}
