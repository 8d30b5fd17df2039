"""Metadata of source distributions, and where it counts."""

from hypothesis import given
from hypothesis import strategies as st

from miner.project.built import read_built
from miner.project.facts import read_project

INFO = b"""Metadata-Version: 2.1
Name: Demo
Version: 1.2
Requires-Python: >=3.7
Classifier: Programming Language :: Python :: 3.8
Requires-Dist: a>=1
Requires-Dist: b; python_version < "3.8"
Requires-Dist: c; extra == "test"
Requires-Dist: d; python_version < "3.8" and extra == "test"
Requires-Dist: e; (os_name == "nt") and extra == "test"

Requires-Dist: body
"""
SECTIONS = b"a>=1\n\n[:python_version < \"3.8\"]\nb\n\n[test]\nc\n\n[test:os_name == 'nt']\ne\n"


def texts(items):
    return [item.text for item in items]


def test_headers():
    found = read_built({"PKG-INFO": INFO}, "")
    assert (found.name, found.version, found.requires_python) == ("Demo", "1.2", ">=3.7")
    assert texts(found.runtime) == ["a>=1", 'b; python_version < "3.8"']
    assert [(group.name, texts(group.requirements)) for group in found.groups] == [
        ("test", ["c", 'd; python_version < "3.8"', 'e; os_name == "nt"'])
    ]


def test_sections_of_egg_info():
    files = {"PKG-INFO": b"Name: demo\n", "src/demo.egg-info/requires.txt": SECTIONS}
    found = read_built(files, "")
    assert texts(found.runtime) == ["a>=1", 'b; python_version < "3.8"']
    assert [(group.name, texts(group.requirements)) for group in found.groups] == [
        ("test", ["c", "e; os_name == 'nt'"])
    ]


def test_a_repository_has_no_metadata_of_its_own():
    files = {"src/demo.egg-info/requires.txt": SECTIONS, "setup.py": b"setup(name='demo')"}
    assert read_built(files, "").runtime is None
    assert read_project(files, list(files)).runtime == ()


def test_metadata_fills_in_what_is_computed():
    files = {"PKG-INFO": INFO, "setup.py": b"setup(name='demo', install_requires=compute(), extras_require=more())"}
    found = read_project(files, list(files))
    assert texts(found.runtime) == ["a>=1", 'b; python_version < "3.8"']
    assert [group.name for group in found.groups] == ["test"]
    assert found.requires_python == ">=3.7"


def test_what_is_declared_wins_over_metadata():
    files = {"PKG-INFO": INFO, "setup.py": b"setup(install_requires=['z'], extras_require={'test': ['y']})"}
    found = read_project(files, list(files))
    assert texts(found.runtime) == ["z"]
    assert [texts(group.requirements) for group in found.groups] == [["y"]]


def test_backports_that_a_build_with_python_2_asked_for_are_left_out():
    info = (
        b"Name: demo\nRequires-Dist: futures\nRequires-Dist: enum34>=1\nRequires-Dist: six\nRequires-Dist: futures3\n"
    )
    files = {"PKG-INFO": info, "setup.py": b"setup()"}
    assert texts(read_project(files, list(files)).runtime) == ["six", "futures3"]


@given(st.binary(max_size=120), st.binary(max_size=120))
def test_any_bytes_are_read_without_an_error(info, sections):
    read_built({"PKG-INFO": info, "x.egg-info/requires.txt": sections}, "")
