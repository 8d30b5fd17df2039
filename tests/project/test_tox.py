"""tox.ini: the dependencies of test environments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from miner.project.model import GroupKind
from miner.project.tox_factors import environments, expand_braces, factor_marker
from miner.project.tox_ini import read_tox
from miner.project.tox_toml import read_tox_toml


def tox(text, **others):
    files = {"tox.ini": text.encode(), **{name.replace("__", "."): body.encode() for name, body in others.items()}}
    return read_tox(files, "tox.ini")


def groups(found):
    return {group.name: [item.text for item in group.requirements] for group in found.groups}


def test_deps_extras_and_runner():
    found = tox(
        "[tox]\nenvlist = py3\n[testenv]\nextras = test, more\ndeps =\n    pytest>=3  # why\n"
        "    -r{toxinidir}/req.txt\n"
        "commands = {envbindir}/coverage run -m pytest {posargs}\n[testenv:lint]\ndeps = flake8\n",
        req__txt="mock\n",
    )
    assert groups(found) == {"testenv": ["pytest>=3", "mock"]}
    assert found.groups[0].extras == ("test", "more")
    assert found.groups[0].kind is GroupKind.TOX
    assert found.runners == ("pytest",)


def test_factors_of_python_become_markers_and_others_are_left_out():
    found = tox(
        "[testenv]\ndeps =\n    py{27,35}: mock\n    !py27: new; os_name == 'posix'\n    cov: coverage\n"
        "    !cov: plain\n"
        "    py3: three\n    py27,django: both\n    git+https://example.org/x\n"
    )
    assert groups(found) == {
        "testenv": [
            "mock; python_version == '2.7' or python_version == '3.5'",
            "new; os_name == 'posix' and python_version != '2.7'",
            "plain",
            "three; python_version >= '3'",
            "both; python_version == '2.7'",
            "git+https://example.org/x",
        ]
    }
    for text in groups(found)["testenv"][:-1]:
        Requirement(text)
    assert found.notes == ("tox.ini: testenv: 'cov: coverage' is for another environment",)


def test_references_to_other_sections_and_their_cycles():
    found = tox(
        "[base]\ndeps =\n  a\n  {[testenv]deps}\n[testenv]\ndeps =\n  {[base]deps}\n  py39: {[more]deps}\n"
        "[more]\ndeps = c\n"
    )
    assert groups(found) == {"testenv": ["a", "c; python_version == '3.9'"]}
    assert "refers to itself" in found.notes[0]


def test_substitutions():
    found = tox("[testenv]\ndeps =\n  {env:DJANGO:django}\n  {env:NOTHING:}\n  {posargs}\n")
    assert groups(found) == {"testenv": ["django"]}
    assert found.notes == ("tox.ini: testenv: '{posargs}' holds a substitution that is not read",)


def test_named_test_environments_are_kept_apart():
    found = tox(
        "[testenv:py39]\ndeps = a\n[testenv:unit]\ndeps = b\n[testenv:docs]\ndeps = c\n[testenv:latest]\ndeps=d\n"
    )
    assert groups(found) == {"testenv:py39": ["a"], "testenv:unit": ["b"]}


def test_tables_in_pyproject():
    legacy = b'[tool.tox]\nlegacy_tox_ini = """\n[testenv]\ndeps = a\n"""\n'
    native = b"[tool.tox.env_run_base]\ndeps = ['b']\nextras = ['c']\n"
    assert groups(read_tox_toml({"pyproject.toml": legacy}, "pyproject.toml")) == {"testenv": ["a"]}
    assert groups(read_tox_toml({"pyproject.toml": native}, "pyproject.toml")) == {"testenv": ["b"]}
    assert read_tox_toml({"pyproject.toml": b"tool.tox = 3"}, "pyproject.toml").groups == ()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("py", True),
        ("!py", False),
        ("cov", False),
        ("!cov", True),
        ("py39-cov", False),
        ("py39-!cov", "python_version == '3.9'"),
        ("py310", "python_version == '3.10'"),
        ("py3.12", "python_version == '3.12'"),
        ("py2", "python_version < '3'"),
        ("!py3", "python_version < '3'"),
        ("pypy3", "implementation_name == 'pypy'"),
    ],
)
def test_factor_conditions(condition, expected):
    assert factor_marker(condition) == expected


def test_braces():
    assert expand_braces("py{38,39}-{a,b},x") == ["py38-a", "x", "py38-b", "x", "py39-a", "x", "py39-b", "x"]


@given(st.text(alphabet="pyx0123456789{},-! ", max_size=40))
def test_any_condition_is_expanded_within_bounds(text):
    assert len(expand_braces(text)) <= 50_000
    factor_marker(text)


@given(st.text(alphabet="[]testenv:=deps\n {}-rpy39,!#\t", max_size=160))
def test_any_text_is_read_without_an_error(text):
    tox("[testenv]\ndeps =\n  " + text)


def test_sections_inherit_from_the_general_one():
    found = tox("[testenv]\ndeps = a\nextras = x\n[testenv:py39]\ncommands = pytest\n[testenv:unit]\ndeps = b\n")
    assert groups(found) == {"testenv": ["a"], "testenv:py39": ["a"], "testenv:unit": ["b"]}
    assert [group.extras for group in found.groups] == [("x",)] * 3


FACTORS = (
    "[tox]\nenvlist = py{38,39}-django{32,42}, py39-djangomain, lint\n[testenv]\ndeps =\n    pytest\n"
    "    django32: Django<4\n    django42: Django>=4.2\n    djangomain: git+https://example.org/django\n"
)


def test_combinations_of_other_factors_are_groups_of_their_own():
    assert groups(tox(FACTORS)) == {
        "testenv:py{38,39}-django32": ["pytest", "Django<4"],
        "testenv:py{38,39}-django42": ["pytest", "Django>=4.2"],
        "testenv": ["pytest"],
    }


def test_there_are_no_combinations_where_an_ordinary_environment_is_listed():
    assert list(groups(tox(FACTORS.replace("lint", "py39, lint")))) == ["testenv"]


def test_pythons_of_the_environments():
    assert [(hint.kind, hint.version) for hint in tox(FACTORS).pythons] == [("tox", "3.8"), ("tox", "3.9")]
    assert [hint.version for hint in tox("[tox]\nenvlist =\n  3.12 # why\n  py3, py27\n").pythons] == ["3.12", "2.7"]


def test_constraints_stand_apart():
    found = tox(
        "[testenv]\ninstall_command = pip install -c {toxinidir}/more.txt {opts} {packages}\n"
        "setenv = PIP_CONSTRAINT={toxinidir}/env.txt\n"
        "deps =\n  a\n  -cbounds.txt\n  -c{env:BOUNDS:https://example.org/bounds.txt}\n  -r req.txt\n",
        bounds__txt="b<2",
        more__txt="c<3",
        env__txt="d<4",
        req__txt="e\n-c bounds.txt\n",
    )
    assert groups(found) == {"testenv": ["a", "e"]}
    assert [item.text for item in found.groups[0].constraints] == ["b<2", "c<3", "d<4"]
    assert found.notes == ("tox.ini: testenv: https://example.org/bounds.txt is not in the tree",)


def test_dependency_groups_and_extras_of_tox_4():
    found = tox("[testenv]\ndependency_groups = test, dev\nextras =\n  a\n")
    assert (found.groups[0].groups, found.groups[0].extras) == (("test", "dev"), ("a",))


def test_tox_toml():
    text = (
        'env_list = ["3.13", "py312", "lint"]\n[env_run_base]\ndeps = ["pytest>=8", "-r req.txt", "-c bounds.txt"]\n'
        'dependency_groups = ["test"]\ncommands = [["pytest", { replace = "posargs" }]]\n'
        '[env.unit]\ndeps = [{ replace = "ref", of = ["env_run_base", "deps"], extend = true }, "mock"]\n'
    )
    files = {"tox.toml": text.encode(), "req.txt": b"a\n", "bounds.txt": b"b<2\n"}
    found = read_tox_toml(files, "tox.toml")
    assert groups(found) == {"testenv": ["pytest>=8", "a"], "testenv:unit": ["pytest>=8", "a", "mock"]}
    assert [item.text for item in found.groups[0].constraints] == ["b<2"]
    assert found.groups[0].groups == ("test",)
    assert found.runners == ("pytest",)
    assert [hint.version for hint in found.pythons] == ["3.13", "3.12"]


def test_references_without_end_in_tox_toml():
    text = b'[env_run_base]\ndeps = [{ replace = "ref", of = ["env_run_base", "deps"] }, "a"]\n'
    assert set(groups(read_tox_toml({"tox.toml": text}, "tox.toml"))["testenv"]) == {"a"}


@given(st.text(alphabet="py{}0123456789,-! \n#.djang", max_size=60))
def test_any_list_of_environments_is_read_within_bounds(text):
    assert len(environments(text)) <= 300


@given(st.binary(max_size=80))
def test_any_bytes_of_tox_toml_are_read_without_an_error(data):
    read_tox_toml({"tox.toml": data}, "tox.toml")
