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


def test_development_is_added_where_the_tests_do_not_ask_for_pytest():
    dev = group("dev", "pytest", "pytest-mock", "black")
    assert chosen(group("testing-extra", "x"), dev)[0] == {"testing-extra": ["x"], "dev": ["pytest", "pytest-mock"]}
    assert set(chosen(group("test", "pytest"), dev)[0]) == {"test"}


def test_extras_that_development_asks_for():
    dev = group("dev", "-e .[all]", "black", kind=GroupKind.FILE, source="requirements-dev.txt")
    dev = dev.model_copy(update={"requirements": (Declared(text=".[all]", source="s"), *dev.requirements[1:])})
    assert chosen(group("tests", "pytest", "x"), dev)[0] == {"tests": ["pytest", "x"], "dev": [".[all]"]}
    assert set(chosen(group("tests", "pytest", ".[some]"), dev)[0]) == {"tests"}


RUN = group("run", "numpy", kind=GroupKind.FILE, source="requirements.txt")


def test_what_is_listed_beside_where_nothing_is_for_tests():
    assert chosen(RUN)[0] == {"run": ["numpy"]}
    assert chosen(group("packages", "a", kind=GroupKind.PIPFILE))[0] == {"packages": ["a"]}
    assert chosen(group("all", "a"), group("complete", "b"), group("docs", "c"))[0] == {"all": ["a"]}
    assert chosen(RUN, group("dev", "x"))[0] == {"dev": ["x"]}


def test_what_is_listed_beside_where_tests_ask_for_nothing_but_what_runs_them():
    assert chosen(group("test", "pytest", "pytest-cov"), RUN)[0] == {"test": ["pytest", "pytest-cov"], "run": ["numpy"]}
    assert set(chosen(group("test", "pytest", "numpy"), RUN)[0]) == {"test"}
    assert set(chosen(group("test", "pytest"), group("all", "a"))[0]) == {"test", "all"}


def test_a_list_of_the_run_time_dependencies_alone_says_nothing():
    conda = group("ci/env", "scipy", kind=GroupKind.CONDA)
    notes = []
    found = choose([RUN, conda], "3.11", (), notes, known=frozenset({"numpy"}))
    assert [one.name for one in found] == ["run", "ci/env"]
    assert [one.name for one in choose([RUN, conda], "3.11", (), notes)] == ["run"]


def test_of_several_conda_environments_the_likeliest_is_taken():
    names = ["environment", "ci/doc", "ci/py39", "ci/py311-upstream", "ci/py311"]
    assert list(chosen(*(group(name, name, kind=GroupKind.CONDA) for name in names))[0]) == ["ci/py311"]
    assert list(chosen(*(group(name, name, kind=GroupKind.CONDA) for name in names[:2]))[0]) == ["environment"]


def test_of_several_tox_environments_for_a_python_the_last_ordinary_one_is_taken():
    names = ("testenv:py{311}-django32", "testenv:py{310,311}-django42", "testenv:py311-djangomain", "testenv")
    tox = [group(name, name, kind=GroupKind.TOX) for name in names]
    assert list(chosen(*tox)[0]) == ["testenv:py{310,311}-django42"]
    assert list(chosen(*tox, python="3.9")[0]) == ["testenv"]


def test_other_requirements_files_matter_where_they_lie_beside_the_tests():
    other = group("other", "x", kind=GroupKind.FILE, source="suite/units/requirements.txt")
    assert chosen(other, group("dev", "y"), folders=["suite/units"])[0] == {"other": ["x"]}
    assert chosen(other, group("dev", "y"))[0] == {"dev": ["y"]}
