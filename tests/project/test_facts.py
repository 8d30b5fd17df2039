"""All declaration files of a tree taken together."""

from hypothesis import given
from hypothesis import strategies as st

from miner.project.facts import is_declaration, read_project
from miner.project.model import GroupKind


def read(folder="", **files):
    tree = {name: text.encode() for name, text in files.items()}
    return read_project(tree, list(tree), folder)


def files_named(found):
    return {
        (group.name, item.text) for group in found.groups if group.kind is GroupKind.FILE for item in group.requirements
    }


def test_which_files_are_declarations():
    for path in (
        "pyproject.toml",
        "sub/setup.cfg",
        "PKG-INFO",
        "requirements.txt",
        "tests/requirements.txt",
        "requirements/test.in",
        "test-requirements.pip",
        "constraints.txt",
    ):
        assert is_declaration(path), path
    for path in ("README.txt", "demo/data.txt", "docs/index.rst", "setup.pyc"):
        assert not is_declaration(path), path


def test_requirements_files_of_tests_and_development():
    found = read(
        **{
            "requirements-test.txt": "a",
            "test_requirements.txt": "b",
            "requirements/tests.txt": "c",
            "tests/requirements.txt": "d",
            "requirements_dev.txt": "e",
            "requirements/dev.in": "f",
            "dev-requirements.txt": "g",
            "requirements.txt": "h",
            "docs/requirements.txt": "i",
            "requirements-latest.txt": "j",
        }
    )
    assert files_named(found) == {
        *(("tests", name) for name in "abcd"),
        *(("dev", name) for name in "efg"),
        ("run", "h"),
        ("other", "j"),
    }


def test_pkg_info_gives_version_and_a_missing_name():
    found = read(
        **{"PKG-INFO": "Metadata-Version: 2.1\nName: Demo\nVersion: 1.2\n\nVersion: 9\n", "setup.py": "setup()"}
    )
    assert (found.name, found.built_version, found.version) == ("Demo", "1.2", None)


def test_with_pbr_requirements_txt_is_run_time():
    found = read(
        **{
            "setup.py": "setup(setup_requires=['pbr'], pbr=True)",
            "setup.cfg": "[metadata]\nname = demo\n[files]\npackages =\n    demo\n",
            "requirements.txt": "six\n",
            "demo/__init__.py": "",
        }
    )
    assert [item.text for item in found.runtime] == ["six"]
    assert found.version_tools == ("pbr",)
    assert found.layout.top_level == ("demo",)


def test_setup_py_of_another_back_end_does_not_matter():
    poetry = (
        "[tool.poetry]\nname='x'\n[build-system]\nrequires=['poetry-core']\nbuild-backend='poetry.core.masonry.api'\n"
    )
    assert read(**{"setup.py": "print 'python 2'", "pyproject.toml": poetry}).unreadable is None
    assert read(**{"setup.py": "print 'python 2'"}).unreadable is not None


def test_a_tree_without_declarations():
    found = read(**{"demo.py": ""})
    assert not found.installable
    assert found.runtime == ()
    assert found.build_requires is None


def test_project_in_a_folder():
    found = read(
        "sub",
        **{"sub/setup.cfg": "[metadata]\nname = demo\n", "sub/setup.py": "setup()", "setup.py": "setup(name='no')"},
    )
    assert found.name == "demo"


NAMES = ("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "hatch.toml", "PKG-INFO", "requirements-test.txt")


@given(st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=60)))
def test_any_bytes_are_read_without_an_error(files):
    read_project(files, list(files))
