"""A Pipfile's two groups and its Python."""

from hypothesis import given
from hypothesis import strategies as st

from miner.project.pipfile import read_pipfile


def read(text):
    return read_pipfile({"Pipfile": text.encode()}, "Pipfile")


def test_groups_and_forms_of_requirements():
    found = read(
        """
        [packages]
        a = "*"
        b = ">=1,<2"
        c = {version = "==1.0", extras = ["x", "y"], markers = "python_version < '3.9'", sys_platform = "== 'linux'"}
        d = {git = "https://example.org/d.git", ref = "main"}
        e = {path = ".", editable = true}
        [dev-packages]
        pytest = "~=7.0"
        f = 3
        [requires]
        python_version = "3.8"
        """
    )
    assert {group.name: [item.text for item in group.requirements] for group in found.groups} == {
        "packages": [
            "a",
            "b>=1,<2",
            "c[x,y]==1.0; python_version < '3.9' and sys_platform == 'linux'",
            "d @ https://example.org/d.git",
            "e @ .",
        ],
        "dev-packages": ["pytest~=7.0"],
    }
    assert [hint.version for hint in found.pythons] == ["3.8"]
    assert len(found.notes) == 1


def test_full_version_of_python():
    assert read("[requires]\npython_full_version = '3.7.4'\n").pythons[0].version == "3.7"


@given(st.text(max_size=100))
def test_any_text_is_read_without_an_error(text):
    read("[packages]\n" + text)
