"""Where the importable code of a project is."""

from hypothesis import given
from hypothesis import strategies as st

from miner.project.facts import read_project
from miner.project.layout import find_layout
from miner.project.model import Declarations


def layout(paths, name="demo", folder="", **declared):
    found = find_layout(name, [Declarations(source="x", **declared)], paths.split(), folder)
    return found.top_level, found.root


def test_flat_package_named_like_the_distribution():
    assert layout("setup.py other/__init__.py demo/__init__.py tests/__init__.py") == (("demo",), "")


def test_src_layout_has_everything_below_src():
    assert layout("src/demo/__init__.py src/demo_more/__init__.py tests/test_a.py") == (("demo", "demo_more"), "src")


def test_spelling_of_the_name_does_not_matter():
    assert layout("Demo_Pkg/__init__.py", "demo-pkg") == (("Demo_Pkg",), "")
    assert layout("demopkg.py setup.py", "demo.pkg") == (("demopkg",), "")


def test_leading_underscore_is_another_package():
    assert layout("_demo/__init__.py demo/__init__.py")[0] == ("demo",)


def test_single_module():
    assert layout("demo.py setup.py test_demo.py conftest.py") == (("demo",), "")


def test_name_unlike_the_package():
    assert layout("setup.py yaml/__init__.py tests/__init__.py docs/conf.py", "PyThing") == (("yaml",), "")


def test_namespace_package_is_dotted():
    assert layout("company/tool/__init__.py company/tool/x.py", "company.tool") == (("company.tool",), "")
    assert layout("company/tool.py", "company.tool") == (("company.tool",), "")
    assert layout("src/company/tool/__init__.py", modules=("company.tool", "company.tool.sub")) == (
        ("company.tool",),
        "src",
    )


def test_declared_modules_are_reduced_to_the_top():
    paths = "pkg/__init__.py pkg/sub/__init__.py single.py"
    assert layout(paths, modules=("pkg", "pkg.sub", "single", "missing")) == (("pkg", "single"), "")


def test_declared_root_and_package_dir():
    assert layout("lib/demo/__init__.py", roots=("lib",)) == (("demo",), "lib")
    assert layout("python/demo/__init__.py", modules=("demo",), package_dirs=(("demo", "python/demo"),)) == (
        ("demo",),
        "python",
    )


def test_project_in_a_folder_of_the_tree():
    assert layout("sub/demo/__init__.py demo/__init__.py", folder="sub") == (("demo",), "")


def test_nothing_importable():
    assert layout("README.md tests/test_a.py setup.py") == ((), "")


def test_each_back_end_says_it_in_its_own_way():
    tree = ["src/real/__init__.py", "real/__init__.py", "setup.py", "pyproject.toml"]
    for text in (
        "[tool.hatch.build.targets.wheel]\npackages = ['src/real']",
        "[tool.poetry]\npackages = [{include = 'real', from = 'src'}]",
        "[tool.setuptools.packages.find]\nwhere = ['src']",
        "[tool.setuptools]\npackages = ['real']\npackage-dir = {'' = 'src'}",
        "[tool.pdm.build]\npackage-dir = 'src'",
    ):
        found = read_project({"pyproject.toml": text.encode()}, tree).layout
        assert (found.top_level, found.root) == (("real",), "src"), text


@given(st.lists(st.from_regex(r"([a-z]{1,3}/){0,3}([a-z]{1,3}|__init__)\.py", fullmatch=True), max_size=12))
def test_what_is_found_exists_in_the_tree(paths):
    found = find_layout("abc", [], paths)
    for name in found.top_level:
        path = "/".join(part for part in (found.root, name.replace(".", "/")) if part)
        assert f"{path}.py" in paths or f"{path}/__init__.py" in paths


def test_modules_beside_packages_are_no_part_of_the_project():
    tree = ["thing/__init__.py", "updatedata.py", "setup.py"]
    assert read_project({"setup.py": b"setup(name='python-other')"}, tree).layout.top_level == ("thing",)


def test_a_package_that_lies_in_a_folder_of_another_name_cannot_be_imported_as_it_lies():
    setup = b"setup(name='demo', packages=['demo'], package_dir={'demo': 'lib'})"
    assert read_project({"setup.py": setup}, ["lib/__init__.py", "setup.py"]).layout.top_level == ()


def test_namespace_package_below_src():
    found = read_project({"setup.py": b"setup(name='other')"}, ["src/a/b/c/d.py", "setup.py"]).layout
    assert (found.top_level, found.root) == ((), "src")


def layout_of(pyproject, *paths):
    return read_project({"pyproject.toml": pyproject.encode()}, [*paths, "pyproject.toml"]).layout


def test_sources_of_maturin_and_scikit_build():
    maturin = (
        "[build-system]\nrequires = ['maturin']\nbuild-backend = 'maturin'\n[project]\nname = 'x'\n[tool.maturin]\n"
    )
    found = layout_of(maturin + "python-source = 'py'\nmodule-name = 'thing._native'\n", "py/thing/__init__.py")
    assert (found.top_level, found.root) == (("thing",), "py")
    scikit = "[project]\nname = 'x'\n[tool.scikit-build]\nwheel.packages = ['source/thing']\n"
    found = layout_of(scikit, "source/thing/__init__.py")
    assert (found.top_level, found.root) == (("thing",), "source")


def test_packages_below_namespaces_that_are_no_packages_are_found_where_nothing_else_is():
    paths = "src/open/sdk/__init__.pyi src/open/sdk/trace/__init__.py src/open/sdk/trace/more/__init__.py tests/a/b.py"
    assert layout(paths, "open-sdk") == (("open.sdk.trace",), "src")


def test_a_dotted_name_is_looked_for_below_the_package_that_other_installations_share():
    paths = "setup.py jaraco/__init__.py jaraco/functools.py test_functools.py"
    assert layout(paths, "jaraco.functools", modules=("jaraco",)) == (("jaraco.functools",), "")
