"""Traps of builds that the declarations alone show, and the modes of a project."""

import textwrap
from datetime import UTC, date, datetime

import pytest

from installers.describe import describe
from installers.pythons import Python
from miner.core.records import BuildMode


def python(version, year):
    return Python(version=version, executable="/p", released=date(year, 10, 1), end_of_life=date(year + 5, 10, 1))


def recipe(paths="x/__init__.py", version="3.11", **files):
    tree = {name.replace("__", "."): textwrap.dedent(text).encode() for name, text in files.items()}
    created = datetime(2024, 1, 1, tzinfo=UTC)
    return describe(tree, [*paths.split(), *tree], (python(version, 2022),), created, [])


def test_use_2to3_needs_an_old_setuptools_and_a_normal_installation():
    found = recipe(setup__py="setup(name='x', use_2to3=True)")
    assert found.build_constraints == ("setuptools<58",)
    assert found.modes == (BuildMode.NORMAL,)


def test_pkg_resources_in_setup_py():
    assert recipe(setup__py="import pkg_resources\nsetup(name='x')").build_constraints == ("setuptools<81",)


def test_a_bound_that_contradicts_what_is_declared_is_left_out():
    new = "[build-system]\nrequires = ['setuptools>=82']\n"
    found = recipe(setup__py="import pkg_resources\nsetup(name='x')", pyproject__toml=new)
    assert found.build_constraints == ()


def test_namespace_packages_need_setuptools_when_they_run():
    found = recipe(setup__py="setup(name='x', namespace_packages=['a'])")
    assert found.requirements == ("setuptools<81", "pytest")


def test_setuptools_that_is_asked_for_at_run_time_is_bounded():
    found = recipe(setup__py="setup(name='x', install_requires=['setuptools>=40'])")
    assert found.requirements == ("setuptools>=40", "pytest")
    assert found.constraints == ("setuptools<81",)


@pytest.mark.parametrize(
    ("version", "expected"), [("3.11", "setuptools==40.8.0"), ("3.12", "setuptools"), ("3.13", "setuptools")]
)
def test_a_setuptools_that_cannot_run_is_not_insisted_on(version, expected):
    pinned = "[build-system]\nrequires = ['setuptools==40.8.0']\n"
    assert recipe(version=version, setup__py="setup(name='x')", pyproject__toml=pinned).build_requirements == (
        expected,
    )


def test_compiled_projects():
    setup = "from setuptools import Extension\nsetup(name='x', ext_modules=[Extension('x', ['x.c'])])"
    found = recipe("x.c", setup__py=setup)
    assert found.modes == (BuildMode.COMPILED, BuildMode.NORMAL)
    assert found.compiled
    assert "compiled <- setup.py" in found.sources
    assert not recipe(setup__py="setup(name='x')").compiled


def test_build_constraints_of_uv():
    found = recipe(
        pyproject__toml="[project]\nname='x'\n[build-system]\nrequires=['a']\n[tool.uv]\n"
        "build-constraint-dependencies=['a<2']\nconstraint-dependencies=['b<3']\noverride-dependencies=['c==1']\n"
    )
    assert (found.build_constraints, found.constraints, found.overrides) == (("a<2",), ("b<3",), ("c==1",))
