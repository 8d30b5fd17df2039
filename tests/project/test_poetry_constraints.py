"""Poetry's constraints in PEP 440."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from miner.project.poetry import read_poetry, specifiers


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("*", ""),
        ("", ""),
        ("^1.2.3", ">=1.2.3,<2.0"),
        ("^1.2", ">=1.2,<2.0"),
        ("^1", ">=1,<2.0"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0.0", ">=0.0,<0.1"),
        ("^0", ">=0,<1.0"),
        ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1.2", ">=1.2,<1.3"),
        ("~1", ">=1,<2.0"),
        ("~=1.2", "~=1.2"),
        ("1.2.3", "==1.2.3"),
        ("=1.2", "==1.2"),
        ("1.2.*", "==1.2.*"),
        (">=1.2, <2.0,!=1.5", ">=1.2,<2.0,!=1.5"),
        (">= 1.2", ">=1.2"),
        ("^19.3b0", ">=19.3b0,<20.0"),
        ("<2.*", "<2"),
    ],
)
def test_one_constraint(constraint, expected):
    notes = []
    assert specifiers(constraint, "here", notes) == expected
    assert notes == []


def test_what_is_not_understood_admits_any_version_with_a_note():
    notes = []
    assert specifiers("latest and greatest", "here", notes) == ""
    assert notes == ["here: the constraint 'latest and greatest' is not understood, any version is taken"]


def test_of_alternatives_the_last_is_taken_with_a_note():
    notes = []
    assert specifiers("^1.0 || ^2.0", "here", notes) == ">=2.0,<3.0"
    assert len(notes) == 1


@given(st.lists(st.integers(0, 30), min_size=1, max_size=4), st.sampled_from("^~"))
def test_caret_and_tilde_admit_their_own_version_and_are_pep_440(release, sign):
    version = ".".join(map(str, release))
    bounds = SpecifierSet(specifiers(f"{sign}{version}", "here", []))
    assert bounds.contains(version)
    assert not bounds.contains(str(release[0] + 1) + ".1")
    assert not bounds.contains("0.dev0")


@given(st.text(alphabet="^~=<>!*.,|0123456789abx ", max_size=20))
def test_any_constraint_gives_valid_specifiers(text):
    SpecifierSet(specifiers(text, "here", []))


def declared(table):
    notes = []
    return read_poetry(table, "pyproject.toml", notes), notes


def test_runtime_groups_extras_and_python():
    found, notes = declared(
        {
            "name": "demo",
            "dependencies": {
                "python": "~2.7 || ^3.5",
                "a": "^1.0",
                "b": {"version": "^2", "optional": True, "extras": ["x", "y"]},
                "c": {"version": "*", "python": "<3.8", "markers": "sys_platform == 'linux'"},
                "d": [{"version": "1.0", "python": "<3.7"}, {"version": "2.0", "python": ">=3.7"}],
                "e": {"path": "../e"},
            },
            "extras": {"tests": ["b"]},
            "dev-dependencies": {"pytest": "^7"},
            "group": {"docs": {"dependencies": {"sphinx": "*"}}},
        }
    )
    assert notes == []
    assert found.requires_python == ">=2.7,<2.8 || >=3.5,<4.0"
    assert [item.text for item in found.runtime] == [
        "a>=1.0,<2.0",
        "c; python_version < '3.8' and sys_platform == 'linux'",
        "d==1.0; python_version < '3.7'",
        "d==2.0; python_version >= '3.7'",
        "e @ ../e",
    ]
    groups = {group.name: [item.text for item in group.requirements] for group in found.groups}
    assert groups == {"tests": ["b[x,y]>=2,<3.0"], "docs": ["sphinx"], "dev": ["pytest>=7,<8.0"]}


def test_packages_with_from_and_format():
    packages = [{"include": "demo", "from": "src"}, {"include": "tests", "format": "sdist"}, {"include": "x/y/**/*.py"}]
    found, _ = declared({"packages": packages})
    assert found.modules == ("demo", "x.y")
    assert found.roots == ("src", "")


def test_wrong_types_are_notes():
    found, notes = declared({"name": 3, "dependencies": {"a": 1.5, "b": None}, "extras": [], "group": {"g": 1}})
    assert found.name is None
    assert found.runtime == ()
    assert len(notes) == 5


def test_versions_that_packaging_compares_are_kept():
    assert Version("2.0") in SpecifierSet(specifiers(">=1,<3", "here", []))
