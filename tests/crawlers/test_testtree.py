from __future__ import annotations

import pytest

from miner.crawlers.testtree import TestTree


def side(tree: TestTree, path: str) -> str:
    if path in tree.collected:
        return "test"
    return "support" if tree.why_support(path) else "gold"


COMMON = [
    "setup.py",
    "src/pkg/__init__.py",
    "src/pkg/core.py",
    "tests/__init__.py",
    "tests/test_core.py",
]

CASES = [
    ("tests/test_core.py", "test"),
    ("tests/unit/core_test.py", "test"),
    ("tests/data/x.json", "support"),
    ("tests/__init__.py", "support"),
    ("tests/helpers.py", "support"),
    ("tests/unit/__snapshots__/x.ambr", "support"),
    ("tests/requirements.txt", "support"),
    ("conftest.py", "support"),
    ("src/pkg/conftest.py", "support"),
    ("pytest.ini", "support"),
    ("testdata/x.bin", "support"),
    ("src/pkg/test_data/x.csv", "support"),
    ("src/pkg/tests/test_in_package.py", "test"),
    ("src/pkg/tests/golden.txt", "support"),
    ("src/pkg/core.py", "gold"),
    ("src/pkg/contest.py", "gold"),
    ("src/pkg/latest.py", "gold"),
    ("src/pkg/attestation.py", "gold"),
    ("src/pkg/test.py", "gold"),
    ("src/pkg/tests.py", "gold"),
    ("src/pkg/pytest_plugin.py", "gold"),
    ("src/pkg/testing/__init__.py", "gold"),
    ("src/pkg/testing/helpers.py", "gold"),
    ("src/_pytest/python.py", "gold"),
    ("testimonials/models.py", "gold"),
    ("docs/examples/test_example.py", "gold"),
    ("docs/conf.py", "gold"),
    ("examples/test_it.py", "gold"),
    ("tox.ini", "gold"),
    ("pyproject.toml", "gold"),
    ("requirements-test.txt", "gold"),
    (".github/workflows/test.yml", "gold"),
    (".github/scripts/test_release.py", "gold"),
    ("build/lib/test_x.py", "gold"),
    ("CHANGELOG.md", "gold"),
]


@pytest.mark.parametrize(("path", "expected"), CASES)
def test_side_of_a_path_in_an_ordinary_project(path: str, expected: str) -> None:
    paths = {*COMMON, *(path for path, _ in CASES)}
    assert side(TestTree(paths), path) == expected


# A tree of a repository rather than of a source distribution: many folders with tests, products with "test" in them.
REPOSITORY = [
    ("tests/test_x.py", "test"),
    ("pkg/tests/test_b.py", "test"),
    ("pkg/tests/data/a.json", "support"),
    ("pkg/tests/__init__.py", "support"),
    ("conftest.py", "support"),
    ("test/unit/foo_test.py", "test"),
    ("test/unit/helper.py", "support"),
    ("test/fixtures/rules/L026.yml", "support"),
    ("testing/test_mark.py", "test"),
    ("testing/example_scripts/perf/conftest.py", "support"),
    ("testing/freeze/runtests_script.py", "support"),
    ("src/latest/core.py", "gold"),
    ("contest.py", "gold"),
    ("attestation.py", "gold"),
    ("docs/testing.md", "gold"),
    ("numpy/testing/_private/utils.py", "gold"),
    ("numpy/testing/__init__.py", "gold"),
    ("numpy/testing/tests/test_utils.py", "test"),
    ("numpy/testing/tests/data.npz", "support"),
    ("src/_pytest/assertion/rewrite.py", "gold"),
    ("src/pkg/unittest_mixins.py", "gold"),
    ("src/pkg/greatest.py", "gold"),
    ("src/pkg/protest/__init__.py", "gold"),
    ("src/pkg/management/commands/test.py", "gold"),
    ("src/pkg/test_client/core.py", "gold"),
    ("src/pkg/test_client/__init__.py", "gold"),
    ("src/pkg/testing.py", "gold"),
    ("src/pkg/fixtures/initial.json", "gold"),
    ("src/pkg/snapshots/__init__.py", "gold"),
    ("src/pkg/data/test.json", "gold"),
    ("src/pkg/test_inline.py", "test"),
    ("src/pkg/test_inline.json", "support"),
    ("src/pkg/test_inline/expected.txt", "support"),
    ("src/pkg/__snapshots__/test_inline.ambr", "support"),
    ("src/pkg/__image_snapshots__/a.png", "support"),
    ("src/pkg/cassettes/test_inline/a.yaml", "support"),
    ("src/pkg/cassettes/__init__.py", "gold"),
    ("tests/__snapshots__/test_x.ambr", "support"),
    ("tests/snapshots/a.png", "support"),
    ("tests/baseline/plot.png", "support"),
    ("tests/cassettes/a.yaml", "support"),
    ("tests/golden/out.txt", "support"),
    ("tests/data/module.py", "support"),
    ("tests/README.md", "support"),
    ("tests/Dockerfile", "support"),
    ("tests/testdata/python3/data/fake_module.py", "support"),
    ("integration_tests/test_i.py", "test"),
    ("integration_tests/compose.yml", "support"),
    ("e2e/test_login.py", "test"),
    ("e2e/users.json", "support"),
    ("regression/test_12.py", "test"),
    ("regression/12.txt", "support"),
    ("integration/__init__.py", "gold"),
    ("integration/core.py", "gold"),
    ("integration/client.py", "gold"),
    ("integration/test_core.py", "test"),
    ("test-data/x.bin", "support"),
    ("benchmarks/bench_core.py", "gold"),
    ("docs/conf.py", "gold"),
    ("docs/tutorial.rst", "gold"),
    ("docs/test_snippets.py", "gold"),
    ("examples/test_usage.py", "gold"),
    ("newsfragments/12.bugfix.rst", "gold"),
    ("requirements/tests.txt", "gold"),
    ("noxfile.py", "gold"),
    ("tox.ini", "gold"),
    ("setup.cfg", "gold"),
    (".coveragerc", "gold"),
    ("pytest.ini", "support"),
    (".pre-commit-config.yaml", "gold"),
    (".github/workflows/tests.yml", "gold"),
    ("venv/lib/test_x.py", "gold"),
    ("node_modules/x/test_x.py", "gold"),
]


@pytest.mark.parametrize(("path", "expected"), REPOSITORY)
def test_side_of_a_path_in_a_repository(path: str, expected: str) -> None:
    paths = {"setup.py", "src/pkg/__init__.py", "pkg/__init__.py", "numpy/__init__.py", *(one for one, _ in REPOSITORY)}
    assert side(TestTree(paths), path) == expected


def test_sources_with_doctests_are_no_tests_wherever_the_run_looks() -> None:
    paths = ["src/pkg/core.py", "src/pkg/test_core.py", "tests/test_x.py", "docs/guide.rst", "README.md"]
    for testpaths in ((), ("src", "tests"), ("src", "tests", "docs", "README.md"), (".",)):
        tree = TestTree(paths, testpaths=testpaths)
        assert [side(tree, path) for path in ("src/pkg/core.py", "docs/guide.rst", "README.md")] == ["gold"] * 3
        assert side(tree, "tests/test_x.py") == "test"


RUNNERS = [
    ({"python_files": ["*_spec.py"]}, "spec/core_spec.py", "test"),
    ({"python_files": ["*_spec.py"]}, "tests/test_x.py", "support"),
    ({"python_files": ["*_spec.py"]}, "pkg/test_inner.py", "gold"),
    ({"python_files": ["test_*.py", "*_spec.py"]}, "spec/core_spec.py", "test"),
    ({"python_files": ["tests.py"]}, "app/tests.py", "test"),
    ({"python_files": ["*.py"], "testpaths": ["tests"]}, "tests/helper.py", "test"),
    ({"python_files": ["*.py"], "testpaths": ["tests"]}, "pkg/core.py", "gold"),
    ({"python_files": ["*.py"]}, "pkg/core.py", "gold"),
    ({"testpaths": ["tests"]}, "pkg/test_inner.py", "gold"),
    ({"testpaths": ["tests", "pkg"]}, "pkg/test_inner.py", "test"),
    ({"testpaths": ["docs", "tests"]}, "docs/test_guide.py", "test"),
    ({"testpaths": ["pkg/*/tests"]}, "pkg/sub/tests/test_s.py", "test"),
    ({"testpaths": ["pkg/*/tests"]}, "pkg/sub/tests/data.json", "support"),
]


@pytest.mark.parametrize(("config", "path", "expected"), RUNNERS)
def test_the_configuration_of_the_runner_decides(config: dict[str, list[str]], path: str, expected: str) -> None:
    paths = ["pkg/core.py", "pkg/test_inner.py", "pkg/sub/tests/test_s.py", "pkg/sub/tests/data.json"]
    paths += ["app/tests.py", "tests/test_x.py", "tests/helper.py", "spec/core_spec.py", "docs/test_guide.py"]
    assert side(TestTree(paths, **config), path) == expected  # type: ignore[arg-type]


def test_a_test_module_at_the_root_is_one_and_makes_no_test_folder_of_the_root() -> None:
    tree = TestTree(["parse.py", "test_parse.py", "README"])
    assert [side(tree, path) for path in ("test_parse.py", "parse.py", "README")] == ["test", "gold", "gold"]
    assert tree.folders == ()


def test_data_beside_a_test_module_belongs_to_it() -> None:
    tree = TestTree(["pkg/test_a.py", "pkg/a.py", "pkg/b.py"])
    expected = {
        "pkg/test_a.yaml": "support",
        "pkg/test_a/x.txt": "support",
        "pkg/a.yaml": "gold",
        "pkg/test_b.txt": "gold",
    }
    assert {path: side(tree, path) for path in expected} == expected


def test_a_testing_package_with_tests_of_its_own_stays_a_product() -> None:
    paths = ["lib/__init__.py", "lib/testing/__init__.py", "lib/testing/util.py", "lib/testing/tests/test_util.py"]
    tree = TestTree(paths)
    assert side(tree, "lib/testing/util.py") == "gold"
    assert tree.folders == ("lib/testing/tests",)


def test_a_testing_folder_at_the_root_that_holds_tests_is_a_test_folder() -> None:
    tree = TestTree(["src/pkg/__init__.py", "testing/test_x.py", "testing/benchmark.py"])
    assert side(tree, "testing/benchmark.py") == "support"


def test_a_test_folder_inside_a_package_that_holds_only_tests_is_one() -> None:
    tree = TestTree(
        ["pkg/__init__.py", "pkg/a.py", "pkg/test/__init__.py", "pkg/test/unit/test_a.py", "pkg/test/x.txt"]
    )
    assert side(tree, "pkg/test/x.txt") == "support"


def test_a_product_whose_name_begins_with_test_is_no_test_folder() -> None:
    paths = [
        "test_generator/__init__.py",
        "test_generator/core.py",
        "test_generator/cli.py",
        "test_generator/test_core.py",
    ]
    tree = TestTree([*paths, "tests/test_all.py"])
    assert side(tree, "test_generator/core.py") == "gold"
    assert side(tree, "test_generator/test_core.py") == "test"


def test_patterns_of_the_project_decide() -> None:
    tree = TestTree(["app/tests.py", "app/test_old.py", "app/views.py"], python_files=["tests.py", "check_*.py"])
    assert [side(tree, path) for path in ("app/tests.py", "app/test_old.py", "app/views.py")] == [
        "test",
        "gold",
        "gold",
    ]


def test_a_pattern_with_a_folder_in_it_looks_at_the_path() -> None:
    paths = ["testing/python/raises.py", "testing/test_x.py", "src/python/raises.py"]
    tree = TestTree(paths, python_files=["test_*.py", "testing/python/*.py"])
    assert sorted(tree.collected) == ["testing/python/raises.py", "testing/test_x.py"]


def test_a_pattern_that_matches_every_module_needs_a_place() -> None:
    paths = ["pkg/core.py", "tests/core.py", "setup.py"]
    assert sorted(TestTree(paths, python_files=["*.py"]).collected) == ["tests/core.py"]
    assert sorted(TestTree(paths, python_files=["*.py"], testpaths=["tests"]).collected) == ["tests/core.py"]


@pytest.mark.parametrize("testpaths", [["checks"], ["checks/"], ["./checks"], ["che*"], ["nowhere", "checks"]])
def test_testpaths_say_where_tests_are(testpaths: list[str]) -> None:
    paths = ["checks/test_a.py", "checks/test_b.py", "checks/data.txt", "scripts/test_x.py", "pkg/core.py"]
    tree = TestTree(paths, testpaths=testpaths)
    assert sorted(tree.collected) == ["checks/test_a.py", "checks/test_b.py"]


def test_testpaths_that_name_nothing_are_as_good_as_none() -> None:
    assert sorted(TestTree(["t/test_a.py"], testpaths=["tests"]).collected) == ["t/test_a.py"]


def test_a_folder_of_testpaths_with_another_name_holds_what_tests_need() -> None:
    tree = TestTree(["t/test_a.py", "t/data.txt", "pkg/core.py"], testpaths=["t"])
    assert side(tree, "t/data.txt") == "support"


def test_testpaths_that_name_the_package_do_not_make_it_tests() -> None:
    tree = TestTree(["pkg/core.py", "pkg/cli.py", "pkg/test_core.py"], testpaths=["pkg"])
    assert [side(tree, path) for path in ("pkg/core.py", "pkg/test_core.py")] == ["gold", "test"]


def test_tests_for_the_runner_of_the_standard_library_are_found_where_pytest_finds_nothing() -> None:
    tree = TestTree(["pkg/core.py", "pkg/test.py", "tests/testcore.py", "tests/helper.py"])
    assert sorted(tree.collected) == ["tests/testcore.py"]
    assert side(tree, "tests/helper.py") == "support"
    assert sorted(TestTree(["mod.py", "tests.py"]).collected) == ["tests.py"]


def test_a_tree_without_tests_has_no_test_folders() -> None:
    tree = TestTree(["tests/readme.txt", "pkg/core.py"])
    assert tree.folders == ()
    assert side(tree, "tests/readme.txt") == "gold"
