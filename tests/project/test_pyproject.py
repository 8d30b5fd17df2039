"""pyproject.toml: standard tables, PEP 735 groups and the tables of the build tools."""

import time
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.project.facts import read_project
from miner.project.pyproject import read_pyproject


def facts(text, **others):
    files = {
        "pyproject.toml": text.encode(),
        **{name.replace("__", "."): body.encode() for name, body in others.items()},
    }
    return read_project(files, list(files))


def group(found, name):
    return [item.text for one in found.groups if one.name == name for item in one.requirements]


def test_standard_tables():
    found = facts(
        """
        [build-system]
        requires = ["hatchling"]
        build-backend = "hatchling.build"
        backend-path = ["build_tools"]
        [project]
        name = "demo"
        version = "1.0"
        requires-python = ">=3.9"
        dependencies = ["a>=1"]
        [project.optional-dependencies]
        test = ["pytest"]
        """
    )
    assert (found.name, found.version, found.requires_python) == ("demo", "1.0", ">=3.9")
    assert [item.text for item in found.build_requires] == ["hatchling"]
    assert (found.build_backend, found.backend_path) == ("hatchling.build", ("build_tools",))
    assert found.runtime[0].source == "pyproject.toml: project.dependencies"
    assert group(found, "test") == ["pytest"]
    assert found.notes == ()
    assert found.installable


def test_no_build_system_is_not_an_empty_one():
    assert facts("[project]\nname = 'x'\n").build_requires is None
    assert facts("[build-system]\nrequires = []\n").build_requires == ()


def test_dependency_groups_include_each_other_by_normalised_names():
    found = facts(
        """
        [dependency-groups]
        Test_Base = ["pytest"]
        test = [{include-group = "test-base"}, "hypothesis", {include-group = "test.base"}]
        """
    )
    assert group(found, "test") == ["pytest", "hypothesis"]


def test_cycle_missing_and_wrong_entries_of_dependency_groups_are_notes():
    found = facts(
        """
        [dependency-groups]
        a = [{include-group = "b"}, "x"]
        b = [{include-group = "a"}, {include-group = "c"}, 3, {other = "y"}]
        d = "text"
        """
    )
    assert group(found, "a") == ["x"]
    assert any("includes itself" in note for note in found.notes)
    assert any("is included by b, but missing" in note for note in found.notes)
    assert any("3 is neither" in note for note in found.notes)
    assert any("dependency-groups.d: is a value of type str" in note for note in found.notes)


def test_flit_before_pep_621():
    found = facts(
        """
        [tool.flit.metadata]
        module = "demo_module"
        dist-name = "demo-dist"
        requires = ["a; python_version < '3'"]
        requires-python = ">=3.6"
        dev-requires = ["black"]
        [tool.flit.metadata.requires-extra]
        test = ["pytest"]
        """
    )
    assert (found.name, found.requires_python) == ("demo-dist", ">=3.6")
    assert [item.text for item in found.runtime] == ["a; python_version < '3'"]
    assert group(found, "test") == ["pytest"]
    assert group(found, "dev") == ["black"]


def test_pdm_and_uv_groups():
    found = facts("[tool.pdm.dev-dependencies]\ntest = ['pytest']\n[tool.uv]\ndev-dependencies = ['ruff']\n")
    assert group(found, "test") == ["pytest"]
    assert group(found, "dev") == ["ruff"]


def test_hatch_environments_of_pyproject_and_hatch_toml():
    found = facts(
        "[tool.hatch.envs.test]\ndependencies = ['pytest']\nextra-dependencies = ['mock']\nfeatures = ['all']\n",
        hatch__toml="[envs.hatch-test]\nextra-dependencies = ['trio']\n",
    )
    assert group(found, "test") == ["pytest", "mock"]
    assert group(found, "hatch-test") == ["pytest", "pytest-mock", "pytest-rerunfailures", "trio"]
    assert found.groups[0].extras == ("all",)


def test_dynamic_dependencies_come_from_the_files_that_setuptools_is_told():
    found = facts(
        """
        [project]
        name = "demo"
        dynamic = ["dependencies", "optional-dependencies"]
        [tool.setuptools.dynamic]
        dependencies = {file = ["deps.txt"]}
        optional-dependencies.test = {file = "test-deps.txt"}
        """,
        **{"deps__txt": "a\n", "test-deps__txt": "b\n"},
    )
    assert [item.text for item in found.runtime] == ["a"]
    assert group(found, "test") == ["b"]


def test_dynamic_dependencies_come_from_setup_py():
    found = facts(
        "[project]\nname = 'demo'\ndynamic = ['dependencies']\n", setup__py="setup(name='x', install_requires=['a'])"
    )
    assert [item.text for item in found.runtime] == ["a"]


def test_static_dependencies_are_not_extended_by_setup_py():
    found = facts("[project]\nname = 'demo'\n", setup__py="setup(install_requires=['a'])")
    assert found.runtime == ()


def test_version_tools():
    assert facts("[build-system]\nrequires = ['setuptools', 'setuptools_scm[toml]>=6']\n").version_tools == (
        "setuptools-scm",
    )
    assert facts("[tool.pdm.version]\nsource = 'scm'\n").version_tools == ("pdm-backend",)
    assert facts("[tool.poetry-dynamic-versioning]\nenable = true\n").version_tools == ("poetry-dynamic-versioning",)
    assert facts("[tool.pdm.version]\nsource = 'file'\n").version_tools == ()


def test_settings_of_tools_alone_make_no_project():
    assert not facts("[tool.black]\nline-length = 3\n").installable
    assert facts("[tool.poetry]\nname = 'x'\n").installable
    assert facts("[tool.black]\n", setup__cfg="[metadata]\nname = x\n").installable


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 400_000 + " = 1",
        "[a" + " . a" * 200_000 + "]",
        "x = {" + '"\\""' + '."\\""' * 100_000 + " = 1}",
        "'\u2028'" + ".'\u2028'" * 100_000 + " = 1",
        "".join(f"[b{number}" + ".a" * 60 + "]\n" for number in range(7000)),
        "a = " + "1" * 5000,
    ],
    ids=["dotted", "header", "quoted", "line-separators", "many", "digits"],
)
def test_toml_that_takes_long_to_parse_is_unreadable(text):
    started = time.monotonic()
    assert "is not valid TOML" in facts(text).unreadable
    assert time.monotonic() - started < 3.0


def test_dots_that_are_in_no_key_are_no_matter():
    needs = ", ".join(f'"p{number}>=1.2.3"' for number in range(50))
    text = f'[project]\nname = "x"\ndescription = "{"A. Few. Words. " * 4}{"." * 90}"\ndependencies = [{needs}]\n'
    assert len(facts(text).runtime) == 50


def test_a_file_is_parsed_once(monkeypatch):
    text = "[project]\nname = 'parsed-once'\n"
    seen = []
    loads = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda given: seen.append(given) or loads(given))
    assert facts(text).name == facts(text).name == "parsed-once"
    assert seen == [text]


def test_invalid_toml_is_unreadable():
    found = facts("[project\n")
    assert found.unreadable is not None
    assert found.unreadable.startswith("pyproject.toml: is not valid TOML")


def test_wrong_types_everywhere_are_notes():
    found = facts(
        """
        project = 3
        dependency-groups = []
        [build-system]
        requires = "setuptools"
        build-backend = 1
        [tool]
        poetry = "x"
        flit = []
        hatch.envs = 1
        setuptools.packages = 2
        pdm.dev-dependencies = "x"
        """
    )
    assert found.name is None
    assert len(found.notes) >= 8


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("dependencies", "optional-dependencies", "name", "dynamic", "metadata", "envs", "group", "packages", "requires")


def toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return (
        str(value).lower() if isinstance(value, bool) else quoted(value) if isinstance(value, str) else str(value or 0)
    )


def quoted(text):
    return '"' + "".join(f"\\U{ord(char):08X}" for char in text if not 0xD800 <= ord(char) < 0xE000) + '"'


@given(
    st.dictionaries(
        st.sampled_from(("project", "build-system", "dependency-groups")),
        st.dictionaries(st.sampled_from(KEYS), values),
    ),
    st.dictionaries(
        st.sampled_from(("poetry", "flit", "pdm", "hatch", "setuptools", "uv", "tox")),
        st.dictionaries(st.sampled_from(KEYS), values) | values,
    ),
)
def test_any_valid_toml_is_read_without_an_error(tables, tools):
    text = "".join(f"{key} = {toml(value)}\n" for key, value in tables.items())
    text += f"tool = {toml(tools)}\n"
    found = read_pyproject({"pyproject.toml": text.encode()}, "pyproject.toml")
    assert found[0].unreadable is None, text


def test_bounds_and_workspace_of_uv():
    found = facts(
        "[project]\nname = 'x'\n[tool.uv]\nconstraint-dependencies = ['a<2']\noverride-dependencies = ['b==1']\n"
        "build-constraint-dependencies = ['c<3']\n"
        "[tool.uv.sources]\ny = { workspace = true }\nz = { path = 'libs/z', editable = true }\n"
        "w = { git = 'https://w' }\n"
        "[tool.uv.build-backend]\nmodule-root = 'lib'\nmodule-name = 'x'\n",
    )
    assert [item.text for item in found.constraints] == ["a<2"]
    assert [item.text for item in found.overrides] == ["b==1"]
    assert [item.text for item in found.build_constraints] == ["c<3"]
    assert found.local == (("y", ""), ("z", "libs/z"))


def test_overrides_of_pdm():
    found = facts("[tool.pdm.resolution.overrides]\na = '1.2'\nb = '>=2'\n")
    assert [item.text for item in found.overrides] == ["a==1.2", "b>=2"]


def test_environments_of_hatch_inherit():
    found = facts(
        "[tool.hatch.envs.default]\ndependencies = ['pytest']\nfeatures = ['all']\n"
        "[tool.hatch.envs.test]\nextra-dependencies = ['mock']\ndependency-groups = ['g']\n"
        "[tool.hatch.envs.alone]\ndetached = true\n[tool.hatch.envs.unit]\ntemplate = 'test'\ndependencies = ['nose']\n"
        "[tool.hatch.envs.loop]\ntemplate = 'loop'\n"
    )
    assert group(found, "test") == ["pytest", "mock"]
    assert group(found, "unit") == ["nose", "mock"]
    assert group(found, "alone") == []
    tests = next(one for one in found.groups if one.name == "test")
    assert (tests.extras, tests.groups) == (("all",), ("g",))
