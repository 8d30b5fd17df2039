"""Other projects of the repository that a project asks for."""

from installers.siblings import Siblings
from miner.project.model import Declared

FILES = {
    "app/pyproject.toml": b"[project]\nname = 'app'\n",
    "libs/core/pyproject.toml": b"[project]\nname = 'Acme.Core'\ndependencies = ['six', 'acme-util']\n"
    b"[project.optional-dependencies]\nfast = ['speedups']\n",
    "libs/util/pyproject.toml": b"[project]\nname = 'acme_util'\ndependencies = ['attrs', 'acme-core']\n",
    "libs/plug/setup.py": b"setup(name='acme-plug', entry_points={'pytest11': ['x = x']})",
    "libs/fast/setup.py": b"setup(name='acme-fast', ext_modules=[Extension('x', ['x.c'])])",
    "tests/helpers/setup.py": b"setup(name='helpers', install_requires=['mock'])",
}
PATHS = [*FILES, "libs/core/src/acme_core/__init__.py", "libs/util/acme_util/__init__.py", "libs/fast/x.c"]


def expand(*texts, source="app/pyproject.toml: project.dependencies", **options):
    notes = []
    siblings = Siblings(FILES, PATHS, "app", **options)
    found = siblings.expand([Declared(text=text, source=source) for text in texts], notes)
    return [item.text for item in found], siblings.python_path, notes


def test_by_name_with_what_they_need_and_a_cycle():
    assert expand("requests", "acme.core[fast]>=99") == (
        ["requests", "six", "attrs", "speedups"],
        "/testbed/libs/core/src:/testbed/libs/util",
        [],
    )


def test_by_path_from_the_file_or_from_the_root():
    for text in (
        "../libs/util",
        "libs/util",
        "-e ../libs/util",
        "file:../libs/util",
        "x @ file:///${PROJECT_ROOT}/../libs/util",
    ):
        assert expand(text)[1].startswith("/testbed/libs/util"), text
    assert expand("./tests/helpers", source="requirements.txt")[0] == ["mock"]


def test_what_is_no_sibling_stays():
    assert expand("six", "./nowhere", "https://example.org/x.zip", ".")[0] == [
        "six",
        "./nowhere",
        "https://example.org/x.zip",
        ".",
    ]


def test_entry_points_need_a_release_below_the_path():
    found, path, notes = expand("acme-plug>=1")
    assert (found, path) == (["acme-plug"], "/testbed/libs/plug")
    assert "entry points" in notes[0]
    assert expand("acme-plug", alone=True)[:2] == ([], "/testbed/libs/plug")


def test_a_compiled_sibling_comes_from_the_index():
    found, path, notes = expand("acme-fast==1")
    assert (found, path) == (["acme-fast"], "")
    assert "compiled" in notes[0]


def test_one_that_the_project_names_by_a_path():
    files = {"pyproject.toml": b"[project]\nname = 'app'\n", "fixtures/x/setup.py": b"setup(name='other-name')"}
    siblings = Siblings(files, list(files), "", [("x", "fixtures/x")])
    assert siblings.expand([Declared(text="x", source="s")], []) == ()
    assert siblings.python_path == "/testbed/fixtures/x"


def test_all_of_them():
    assert [item.text for item in Siblings(FILES, PATHS, "app").everyone()] == [
        "acme-core",
        "acme-fast",
        "acme-plug",
        "acme-util",
    ]
