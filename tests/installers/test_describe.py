"""From a tree to a recipe, by what the project declares."""

import textwrap
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installers.describe import LEGACY_BACKEND, describe
from installers.interface import Refusal
from installers.pythons import Python
from miner.core.hashing import hash_of
from miner.core.reasons import Reason
from miner.core.records import BuildMode, Recipe
from miner.project.facts import project_folder

PYTHONS = (
    Python(version="3.9", executable="/opt/3.9", released=date(2020, 10, 5), end_of_life=date(2025, 10, 31)),
    Python(version="3.11", executable="/opt/3.11", released=date(2022, 10, 24), end_of_life=date(2027, 10, 31)),
)
CREATED = datetime(2023, 5, 1, tzinfo=UTC)


def recipe(paths="demo/__init__.py tests/test_a.py", created=CREATED, version=None, **files):
    tree = {name: textwrap.dedent(text).encode() for name, text in files.items()}
    return describe(tree, [*paths.split(), *tree], PYTHONS, created, ["tests/test_a.py"], version)


def test_setuptools_with_setup_py_only():
    found = recipe(**{"setup.py": "setup(name='demo', version='1.0', install_requires=['a'], tests_require=['mock'])"})
    assert found.requirements == ("a", "mock", "pytest")
    assert found.build_requirements == ("setuptools", "wheel")
    assert found.build_backend == LEGACY_BACKEND
    assert found.modes == (BuildMode.EDITABLE, BuildMode.NORMAL)
    assert (found.distribution, found.version_hint, found.python) == ("demo", "1.0", "3.11")
    assert (found.top_level, found.src_layout) == (("demo",), False)
    assert found.sources == (
        "a <- setup.py: install_requires",
        "mock <- setup.py: tests_require",
        "pytest <- always: what runs the tests",
        "build: setuptools <- PEP 517: no [build-system]",
        "build: wheel <- PEP 517: no [build-system]",
    )


def test_setup_requires_joins_the_build_requirements_of_setuptools():
    setup = "setup(name='demo', setup_requires=['wheel>0.30', 'pbr', 'demo'])"
    assert recipe(**{"setup.py": setup}).build_requirements == ("setuptools", "wheel>0.30", "pbr")
    flit = "[build-system]\nrequires = ['flit_core<4']\nbuild-backend = 'flit_core.buildapi'\n"
    assert recipe(**{"setup.py": setup, "pyproject.toml": flit}).build_requirements == ("flit_core<4",)


def test_build_system_without_back_end_is_the_legacy_one():
    found = recipe(**{"pyproject.toml": "[build-system]\nrequires = ['setuptools>=40']\n", "setup.py": "setup()"})
    assert (found.build_requirements, found.build_backend) == (("setuptools>=40",), LEGACY_BACKEND)


def test_extra_of_tests_asks_for_another_extra_of_the_project():
    found = recipe(
        **{
            "pyproject.toml": """
            [project]
            name = "Demo.Pkg"
            [project.optional-dependencies]
            speed = ["fast"]
            test = ["demo-pkg[speed]", "pytest>=7", "./local", "x @ git+https://example.org/x"]
            """
        }
    )
    assert found.requirements == ("fast", "pytest>=7", "x")
    assert len(found.notes) == 2


def test_the_project_itself_is_never_a_requirement():
    found = recipe(
        **{
            "setup.py": "setup(name='pluggy_x')",
            "tox.ini": "[testenv]\ndeps =\n  pluggy-x\n  .\n  mock\n  Pluggy.X[y]\n",
        }
    )
    assert found.requirements == ("mock", "pytest")


def test_pytest_itself_is_not_added_to_pytest():
    assert recipe(**{"setup.py": "setup(name='pytest', install_requires=['attrs'])"}).requirements == ("attrs",)


def test_pytest_that_is_asked_for_on_other_pythons_only_is_added():
    found = recipe(**{"setup.py": "setup(name='demo', tests_require=[\"pytest<5; python_version < '3'\"])"})
    assert found.requirements == ('pytest<5; python_version < "3"', "pytest")


def test_a_pytest_that_cannot_run_on_the_python_is_not_insisted_on():
    old = {"setup.py": "setup(name='demo', tests_require=['pytest>=4,<5.4'])"}
    found = recipe(**old)
    assert found.requirements == ("pytest",)
    assert found.notes == ("pytest<5.4,>=4 is not insisted on: no pytest before 6.2.5 runs on Python 3.11",)
    assert recipe(created=datetime(2021, 1, 1, tzinfo=UTC), **old).requirements == ("pytest<5.4,>=4",)
    assert recipe(**{"setup.py": "setup(name='demo', tests_require=['pytest<7'])"}).requirements == ("pytest<7",)


def test_required_plugins_of_pytest_are_requirements():
    found = recipe(**{"setup.py": "setup(name='x')", "pytest.ini": "[pytest]\nrequired_plugins = pytest-mock>=3\n"})
    assert "pytest-mock>=3" in found.requirements
    assert "pytest-mock>=3 <- pytest.ini: required_plugins" in found.sources


def test_plugins_that_add_tests_or_shuffle_them_are_left_out():
    listed = ["pytest-enabler", "pytest-black", "pytest-randomly", "pytest-mock"]
    found = recipe(**{"setup.py": f"setup(name='x', extras_require={{'testing': {listed}}})"})
    assert found.requirements == ("pytest-mock", "pytest")
    assert len(found.notes) == 3


def test_addopts_stand_as_they_are_declared():
    found = recipe(**{"setup.py": "setup(name='x')", "setup.cfg": "[tool:pytest]\naddopts = --cov=x -m 'not slow'\n"})
    assert found.addopts == ("--cov=x", "-m", "not slow")


def test_nothing_to_install():
    found = recipe(**{"tox.ini": "[testenv]\ndeps = mock\n"})
    assert found.modes == (BuildMode.NONE,)
    assert (found.build_backend, found.build_requirements) == ("", ())
    assert found.requirements == ("mock", "pytest")


def test_src_layout():
    found = recipe("src/demo/__init__.py", **{"setup.py": "setup(name='demo')"})
    assert (found.src_layout, found.source_root, found.top_level) == (True, "src", ("demo",))


def test_project_below_the_root():
    found = recipe("", **{"python/setup.py": "setup(name='demo')", "python/demo/__init__.py": ""})
    assert (found.project_dir, found.top_level) == ("python", ("demo",))
    assert project_folder(["a/setup.py", "b/setup.py"]) == ""
    assert project_folder(["a/setup.py", "pyproject.toml"]) == ""


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"setup.py": "setup(name='a.B-c', use_scm_version=True)"},
            {"SETUPTOOLS_SCM_PRETEND_VERSION": "1.2", "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_A_B_C": "1.2"},
        ),
        (
            {"pyproject.toml": "[build-system]\nrequires=['hatch-vcs']\n[project]\nname='x'\n"},
            {"SETUPTOOLS_SCM_PRETEND_VERSION": "1.2", "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_X": "1.2"},
        ),
        ({"setup.py": "setup(name='x', pbr=True)"}, {"PBR_VERSION": "1.2"}),
        ({"pyproject.toml": "[tool.pdm.version]\nsource='scm'\n[project]\nname='x'"}, {"PDM_BUILD_SCM_VERSION": "1.2"}),
        (
            {"pyproject.toml": "[tool.poetry-dynamic-versioning]\nenable=true\n[tool.poetry]\nname='x'"},
            {"POETRY_DYNAMIC_VERSIONING_BYPASS": "1.2"},
        ),
        ({"setup.py": "import versioneer\nsetup(name='x')"}, {}),
        ({"setup.py": "setup(name='x')"}, {}),
    ],
)
def test_version_from_git_tags_is_given_by_variables(files, expected):
    info = "Name: x\nVersion: 1.2\n"
    assert recipe(**{**files, "PKG-INFO": info}).build_env == expected
    assert recipe(**files, version="1.2").build_env == expected


def test_a_version_that_is_none_is_not_taken():
    found = recipe(**{"PKG-INFO": "Version: 1.0; rm -rf\n", "setup.py": "setup(name='x', use_scm_version=True)"})
    assert found.version_hint is None
    assert found.build_env == {}
    assert found.notes == ("setuptools-scm takes the version from git tags, and nothing in the tree says it",)


def test_python_that_was_not_released_then():
    assert recipe(created=datetime(2021, 1, 1, tzinfo=UTC), **{"setup.py": "setup(name='x')"}).python == "3.9"
    found = recipe(created=datetime(2019, 1, 1, tzinfo=UTC), **{"setup.py": "setup(name='x')"})
    assert found.python == "3.9"
    assert found.notes[0] == "Python 3.9 was released after the change; no older one fits"


def test_no_python_is_a_refusal_that_says_what_was_asked():
    old = recipe(**{"setup.cfg": "[options]\npython_requires = <3\n", "setup.py": "setup()"})
    assert old == Refusal(reason=Reason.PYTHON_2_ONLY, detail="the project asks for Python <3; configured: 3.9, 3.11")
    new = recipe(**{"pyproject.toml": "[project]\nname='x'\nrequires-python='>=3.12'\n"})
    assert new.reason is Reason.PYTHON_TOO_NEW


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"setup.py": "print 'x'"}, Reason.PYTHON_2_ONLY),
        ({"setup.py": "setup("}, Reason.SETUP_UNREADABLE),
        ({"pyproject.toml": "[project"}, Reason.SETUP_UNREADABLE),
    ],
)
def test_unreadable_declaration_is_a_refusal(files, reason):
    found = recipe(**files)
    assert isinstance(found, Refusal)
    assert found.reason is reason
    assert found.detail.startswith(next(iter(files)))


def test_numbers_without_end_and_markers_without_sense_are_noted_and_left_out():
    endless = "1" * 5000
    files = {
        "pyproject.toml": f"[project]\nname = 'demo'\nversion = '{endless}'\nrequires-python = '>={endless}'\n"
        f'dependencies = ["a>={endless}", "b", "c; python_version > \'{endless}\'", "d; os_name ~= \'posix\'"]\n'
        f"[tool.poetry.dependencies]\ne = '^{endless}'\n",
        "setup.cfg": f"[options]\ntests_require = x>={endless}\n",
        "setup.py": f"setup(name='demo', version='%s' % {hex(10**5000)}, setup_requires=['y>={endless}'])\n",
        "PKG-INFO": f"Name: demo\nVersion: {endless}\n",
    }
    found = recipe(version=endless, **files)
    assert isinstance(found, Recipe)
    assert {"b", "pytest"} <= set(found.requirements)
    assert not any(endless in line for line in found.requirements + found.build_requirements)
    assert not any("os_name" in line for line in found.requirements)
    assert found.version_hint is None


FILES = {
    "pyproject.toml": "project.name='x'\nproject.optional-dependencies.test=['a','b>1']\ndependency-groups.dev=['c']\n",
    "setup.cfg": "[options]\ninstall_requires =\n  d\n[tool:pytest]\naddopts = -ra\n",
    "tox.ini": "[testenv]\ndeps =\n  e\n  -rrequirements-test.txt\n",
    "requirements-test.txt": "f\ng; python_version < '3'\n",
    "setup.py": "setup(extras_require={'tests': ['h']})",
}


@given(st.sets(st.sampled_from(sorted(FILES))))
def test_every_requirement_has_a_source_and_the_same_tree_has_the_same_recipe(names):
    files = {name: FILES[name] for name in names}
    found = recipe(**files)
    for requirement in found.requirements:
        assert any(source.startswith(f"{requirement} <- ") for source in found.sources)
    assert hash_of(found) == hash_of(recipe(**dict(reversed(files.items()))))


@given(st.dictionaries(st.sampled_from(sorted(FILES)), st.binary(max_size=50)))
def test_any_bytes_give_a_recipe_or_a_refusal(files):
    assert isinstance(describe(files, list(files), PYTHONS, CREATED, []), (Recipe, Refusal))


def member(tests="libs/core/tests/test_a.py", **files):
    tree = {name: textwrap.dedent(text).encode() for name, text in files.items()}
    return describe(tree, [*tree, tests, "libs/util/acme_util/__init__.py"], PYTHONS, CREATED, [tests])


WORKSPACE = {
    "pyproject.toml": """
        [tool.uv.workspace]
        members = ["libs/*"]
        [dependency-groups]
        dev = ["pytest>=7", "trio", "black"]
        [tool.pytest.ini_options]
        addopts = "-ra"
        """,
    "libs/core/pyproject.toml": """
        [project]
        name = "acme-core"
        dependencies = ["acme-util", "six"]
        [tool.uv.sources]
        acme-util = { workspace = true }
        [build-system]
        requires = ["hatchling"]
        build-backend = "hatchling.build"
        """,
    "libs/util/pyproject.toml": "[project]\nname = 'acme-util'\ndependencies = ['attrs']\n",
}


def test_the_member_that_holds_the_tests_with_its_siblings_and_the_groups_of_the_root():
    found = member(**WORKSPACE)
    assert (found.project_dir, found.distribution) == ("libs/core", "acme-core")
    assert found.requirements == ("attrs", "six", "pytest>=7", "trio")
    assert found.env == {"PYTHONPATH": "/testbed/libs/util"}
    assert found.addopts == ("-ra",)


def test_tests_of_a_root_that_is_no_project_need_all_members():
    found = member("tests/test_all.py", **WORKSPACE)
    assert found.modes == (BuildMode.NONE,)
    assert set(found.requirements) == {"attrs", "six", "pytest>=7", "trio"}
    assert found.env == {"PYTHONPATH": "/testbed/libs/core:/testbed/libs/util"}


def test_an_application_that_is_not_installed():
    found = recipe("src/thing/__init__.py", **{"requirements.txt": "flask\n", "requirements-dev.txt": "pytest\nmock\n"})
    assert found.requirements == ("flask", "pytest", "mock")
    assert found.env == {"PYTHONPATH": "/testbed/src"}
    found = recipe("app.py", **{"Pipfile": "[packages]\nflask = '*'\n[dev-packages]\npytest = '*'\nblack = '*'\n"})
    assert found.requirements == ("flask", "pytest")
    assert found.env == {}


def test_conda_file_of_a_project_without_other_lists():
    conda = "dependencies:\n  - python=3.9\n  - numpy>=1\n  - graphviz\n  - black\n  - pip:\n    - vcrpy\n"
    found = recipe(**{"setup.py": "setup(name='x')", "environment.yml": conda})
    assert found.requirements == ("numpy>=1", "vcrpy", "pytest")
    assert found.system_packages == ("graphviz",)
    assert found.python == "3.9"


def test_constraints_of_the_chosen_groups_and_what_contradicts_them():
    found = recipe(
        **{
            "setup.py": "setup(name='x', install_requires=['a>=2'])",
            "requirements-test.txt": "-c pins.txt\npytest\nb\n",
            "pins.txt": "a==1\nb==1.5\nx==9\n",
        }
    )
    assert found.requirements == ("a>=2", "pytest", "b")
    assert found.constraints == ("b==1.5",)


def test_dependency_groups_that_an_environment_asks_for():
    found = recipe(
        **{
            "pyproject.toml": """
            [project]
            name = "x"
            [dependency-groups]
            checks = ["pytest", { include-group = "base" }]
            base = ["mock"]
            """,
            "tox.ini": "[testenv]\ndependency_groups =\n    checks\n    missing\n",
        }
    )
    assert found.requirements == ("pytest", "mock")
    assert "tox-environment testenv: the project has no group 'missing'" in found.notes


def test_repositories_under_the_name_of_the_project_itself_are_left_out():
    found = recipe(
        **{"setup.py": "setup(name='demo')", "requirements-dev.txt": "git+https://e.org/demo#egg=demo\nmock\n"}
    )
    assert found.requirements == ("mock", "pytest")


def test_a_version_before_pep_440_leaves_the_name():
    assert recipe(**{"setup.py": "setup(name='x', install_requires=['pytz>dev'])"}).requirements == ("pytz", "pytest")


def test_lean_is_one_group_for_tests_and_nothing_that_may_be_missing():
    tree = {
        "setup.py": b"setup(name='x', install_requires=['a==1'], extras_require={'test': ['pytest==7.1', 'b']})",
        "requirements-test.txt": b"-c pins.txt\nc\nd @ git+https://e.org/d\n",
        "pins.txt": b"b==1\n",
    }
    full, lean = (describe(tree, list(tree), PYTHONS, CREATED, [], lean=lean) for lean in (False, True))
    assert full.requirements == ("a==1", "pytest==7.1", "b", "c", "d")
    assert full.constraints == ("b==1",)
    assert lean.requirements == ("a==1", "pytest", "b")
    assert lean.constraints == ()


def test_lean_development_is_what_tests_are_known_to_import():
    tree = {"pyproject.toml": b"[project]\nname='x'\n[dependency-groups]\ndev=['pytest','responses','zest','tool']\n"}
    assert describe(tree, list(tree), PYTHONS, CREATED, [], lean=True).requirements == ("pytest", "responses")


def test_what_is_left_out_wherever_it_is_asked_for():
    asked = {"setup.py": "setup(name='x', tests_require=['pytest', 'codecov', 'pytest-sugar', 'black'])"}
    assert recipe(**asked).requirements == ("pytest", "black")


MORE_FILES = (
    *FILES,
    "Pipfile",
    "environment.yml",
    "uv.lock",
    "libs/x/pyproject.toml",
    "libs/x/setup.py",
    ".gitmodules",
    "tox.toml",
    "PKG-INFO",
    ".travis.yml",
)


@given(st.dictionaries(st.sampled_from(MORE_FILES), st.binary(max_size=60)), st.booleans())
def test_any_bytes_of_more_files_give_a_recipe_or_a_refusal(files, lean):
    found = describe(files, list(files), PYTHONS, CREATED, ["libs/x/test_a.py"], lean=lean)
    assert isinstance(found, (Recipe, Refusal))


def test_a_time_whose_pytest_cannot_report_gets_the_first_one_that_can():
    old = datetime(2017, 5, 1, tzinfo=UTC)
    demo = {"setup.py": "from setuptools import setup\nsetup(name='demo', tests_require=['pytest==3.0.7', 'attrs'])\n"}
    found = recipe(created=old, **demo)
    assert found.overrides == ("pytest>=4.6,<5",)
    assert "pluggy" in found.exempt
    assert recipe(created=datetime(2019, 7, 1, tzinfo=UTC), **demo).overrides == ()
    own = {"setup.py": "from setuptools import setup\nsetup(name='pytest')\n"}
    assert recipe(created=old, **own).overrides == ()


def test_a_project_that_compiles_rust_is_refused_as_such_and_one_that_may_do_without_is_not():
    maturin = '[build-system]\nrequires = ["maturin"]\nbuild-backend = "maturin"\n[project]\nname = "demo"\n'
    found = recipe("demo/__init__.py src/lib.rs Cargo.toml", **{"pyproject.toml": maturin})
    assert isinstance(found, Refusal)
    assert found.reason == Reason.REBUILD_NEEDS_NETWORK
    assert "maturin" in found.detail
    plain = recipe("demo/__init__.py examples/demo.rs", **{"setup.py": "setup(name='demo')"})
    assert isinstance(plain, Recipe)


def test_a_project_of_extension_modules_alone_is_looked_for_by_its_name():
    setup = "setup(name='kiwi-solver', ext_modules=[Extension('kiwi_solver', ['src/kiwi.cpp'])])"
    found = recipe("src/kiwi.cpp tests/test_a.py", **{"setup.py": setup})
    assert found.top_level == ("kiwi_solver",)
    assert found.modes[0] is BuildMode.COMPILED


def test_a_module_in_a_submodule_is_refused_as_such_unless_the_tree_holds_it():
    files = {
        ".gitmodules": '[submodule "core"]\n\tpath = src/demo\n\turl = ../core.git\n',
        "pyproject.toml": """
            [project]
            name = "demo"
            [tool.setuptools]
            packages = ["demo"]
            package-dir = {"" = "src"}
            """,
    }
    found = recipe("src/demo/__init__.py tests/test_a.py", **files)
    assert isinstance(found, Recipe)
    lost = describe(
        {name: textwrap.dedent(text).encode() for name, text in files.items()},
        [*files, "src/demo"],
        PYTHONS,
        CREATED,
        ["src/demo/test_inside.py"],
    )
    assert isinstance(lost, Refusal)
    assert (lost.reason, "submodule src/demo" in lost.detail) == (Reason.SUBMODULE_MISSING, True)
