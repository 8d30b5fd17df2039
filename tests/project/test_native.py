"""Whether building a project compiles something."""

import pytest

from miner.project.facts import read_project


def native(paths="", folder="", **files):
    tree = {name.replace("__", "."): text.encode() for name, text in files.items()}
    return read_project(tree, [*paths.split(), *tree], folder).native


def backend(name, requires="[]"):
    return f"[build-system]\nrequires = {requires}\nbuild-backend = '{name}'\n[project]\nname = 'x'\n"


EXTENSION = "from setuptools import Extension, setup\nsetup(name='x', ext_modules=[Extension('x', ['x.c'])])\n"


def test_a_pure_project():
    found = native("x/__init__.py", setup__py="setup(name='x')")
    assert (found.builds, found.optional, found.languages) == (False, False, ())


def test_extension_modules_of_setuptools():
    found = native("x.c x/fast.pyx", setup__py=EXTENSION)
    assert found.builds
    assert not found.optional
    assert found.languages == ("c", "cython")
    assert found.sources == ("setup.py",)


@pytest.mark.parametrize(
    "setup",
    [
        "setup(name='x', ext_modules=[])",
        "setup(name='x', ext_modules=None)",
        "# ext_modules=[Extension('x', [])]\nsetup(name='x')",
    ],
)
def test_extension_modules_that_are_none(setup):
    assert not native("x.c", setup__py=setup).builds


def test_sources_of_tests_alone_are_not_built():
    assert not native("tests/data/x.c", setup__py=EXTENSION).builds


@pytest.mark.parametrize(
    "setup",
    [
        EXTENSION.replace("])]", "], optional=True)]"),
        "class BuildFailed(Exception): pass\n" + EXTENSION,
        "import os\nif not os.environ.get('NO_EXTENSIONS'):\n    pass\n" + EXTENSION,
    ],
)
def test_extension_modules_that_are_optional(setup):
    found = native("x.c", setup__py=setup)
    assert found.builds
    assert found.optional


@pytest.mark.parametrize("setup", ["setup(cffi_modules=['b.py:ffi'])", "setup(ext_modules=mypycify(['x.py']))"])
def test_extension_modules_that_are_made_from_python(setup):
    assert native(setup__py=setup).builds


@pytest.mark.parametrize("name", ["maturin", "mesonpy", "scikit_build_core.build"])
def test_back_ends_that_compile(name):
    assert native("src/lib.rs a.c", pyproject__toml=backend(name)).builds


def test_meson_without_sources_is_pure():
    assert not native("x.py", pyproject__toml=backend("mesonpy")).builds


def test_setup_py_of_another_back_end_does_not_matter():
    assert not native("x.c", setup__py=EXTENSION, pyproject__toml=backend("hatchling.build")).builds


def test_build_script_of_poetry():
    poetry = "[tool.poetry]\nname = 'x'\nbuild = 'build_ext.py'\n" + backend("poetry.core.masonry.api")
    assert native("x.c", pyproject__toml=poetry, build_ext__py="def build(x):\n    Extension('x', ['x.c'])\n").builds
    assert not native("x.c", pyproject__toml=poetry, build_ext__py="print()").builds


def test_build_hook_of_hatch():
    hook = backend("hatchling.build") + "[tool.hatch.build.hooks.custom]\n"
    assert native("x.pyx", pyproject__toml=hook, hatch_build__py="cythonize('x.pyx')").builds


def test_tables_of_setuptools_and_rust():
    table = backend("setuptools.build_meta") + "[[tool.setuptools.ext-modules]]\nname = 'x'\nsources = ['x.c']\n"
    assert native("x.c", pyproject__toml=table).builds
    rust = backend("setuptools.build_meta", "['setuptools-rust']")
    assert native("src/lib.rs", pyproject__toml=rust).builds
    assert not native(pyproject__toml=rust).builds
