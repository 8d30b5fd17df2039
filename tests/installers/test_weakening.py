"""Each mechanism by which a recipe could weaken tests is found under its own name, however it is written."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.config import get_config
from _pytest.config.argparsing import Parser
from hypothesis import given
from hypothesis import strategies as st
from weakening_cases import DECLARED, FIELDS, OPTIONS, PATHS, VARIABLES

from installers.addopts import split_addopts
from installers.distrust.page import page
from installers.distrust.plugins import STEERING, WELL_KNOWN
from installers.distrust.weakening import MECHANISMS, weakenings
from miner.core.records import BuildMode, Recipe


def found(recipe: Recipe, declared: Recipe = DECLARED, **more: Any) -> set[str]:
    return {one.mechanism for one in weakenings(recipe, declared, paths=PATHS, **more)}


def with_options(*words: str) -> Recipe:
    return DECLARED.model_copy(update={"addopts": (*DECLARED.addopts, *words)})


def with_variable(name: str, value: str, field: str = "env") -> Recipe:
    return DECLARED.model_copy(update={field: {**getattr(DECLARED, field), name: value}})


def rows(table: dict[str, list[Any]]) -> list[Any]:
    return [pytest.param(name, case, id=f"{name}: {case!r:.60}") for name, cases in table.items() for case in cases]


@pytest.mark.parametrize(("mechanism", "words"), rows(OPTIONS))
def test_option(mechanism: str, words: list[str]) -> None:
    assert mechanism in found(with_options(*words))


@pytest.mark.parametrize(("mechanism", "variable"), rows(VARIABLES))
def test_variable(mechanism: str, variable: tuple[str, str]) -> None:
    assert mechanism in found(with_variable(*variable))


@pytest.mark.parametrize(("mechanism", "fields"), rows(FIELDS))
def test_field(mechanism: str, fields: dict[str, Any]) -> None:
    assert mechanism in found(DECLARED.model_copy(update=fields))


def test_every_row_of_the_table_is_tested_and_named_once() -> None:
    names = [mechanism.name for mechanism in MECHANISMS]
    assert sorted(names) == sorted({*OPTIONS, *VARIABLES, *FIELDS})
    assert all(mechanism.reason for mechanism in MECHANISMS)


@pytest.mark.parametrize(
    "variable",
    [
        ("PIP_INDEX_URL", "x"),
        ("PATH", "/testbed"),
        ("LD_PRELOAD", "x.so"),
        ("PYTHONPATH", "/testbed"),
        ("a b", ""),
        ("CC", "sh -c id"),
        ("CARGO_BUILD_RUSTC", "x"),
        ("PERL5OPT", "-Mx"),
    ],
)
def test_what_steers_builds_is_void_in_their_variables_too(variable: tuple[str, str]) -> None:
    assert found(with_variable(*variable, field="build_env"))


@pytest.mark.parametrize(
    "words", [["--ds=evil.settings"], ["-o", "DJANGO_SETTINGS_MODULE=django.conf.global_settings"]]
)
def test_settings_from_outside_of_the_tree_are_void(words: list[str]) -> None:
    assert found(with_options(*words)) == {"settings-module"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CC", "gcc-12"),
        ("CC", "gcc -std=gnu99 -Wno-error"),
        ("CXX", "clang++"),
        (
            "CFLAGS",
            "-O2 -g0 -Wno-error=implicit-function-declaration -fcommon -I/usr/include/x -DNPY_NO_DEPRECATED_API=0",
        ),
        ("LDFLAGS", "-L/usr/lib/x86_64-linux-gnu -lm -Wl,--as-needed"),
        ("RUSTFLAGS", "--cap-lints=warn -Awarnings"),
        ("MAKEFLAGS", "-j2"),
        ("CMAKE_ARGS", "-DBUILD_TESTS=OFF -DCMAKE_BUILD_TYPE=Release"),
        ("CMAKE_POLICY_VERSION_MINIMUM", "3.5"),
        ("SETUPTOOLS_SCM_PRETEND_VERSION_FOR_X", "1.2.dev3+g1"),
        ("LLVM_CONFIG", "/usr/bin/llvm-config-14"),
        ("HDF5_DIR", "/usr/lib/x86_64-linux-gnu/hdf5/serial"),
        ("GRPC_PYTHON_BUILD_SYSTEM_OPENSSL", "1"),
        ("CYTHON_LANGUAGE", ""),
    ],
)
def test_what_an_honest_build_is_told_passes(name: str, value: str) -> None:
    assert found(with_variable(name, value, field="build_env")) == set()


def test_compiled_project_has_to_stay_compiled() -> None:
    declared = DECLARED.model_copy(update={"modes": (BuildMode.COMPILED, BuildMode.NORMAL), "compiled": True})
    assert found(declared, declared) == set()
    assert found(declared.model_copy(update={"modes": (BuildMode.NORMAL,)}), declared) == {"mode-dropped"}


def test_project_that_is_not_installed_may_stay_so() -> None:
    declared = DECLARED.model_copy(update={"modes": (BuildMode.NONE,)})
    assert found(declared, declared) == set()


@pytest.mark.parametrize(
    "words",
    [
        ["--ds=project.settings"],
        ["--ds", "project.settings"],
        ["--asyncio-mode=auto"],
        ["-n0"],
        ["-n", "0"],
        ["-o", "asyncio_mode=auto"],
        ["-oasyncio_mode=strict"],
        ["--override-ini=DJANGO_SETTINGS_MODULE=project.settings"],
        ["-p", "pytester"],
        ["--django-db"],
        ["--reuse-db", "--nomigrations"],
        ["-q", "-rA", "--tb=short"],
        ["--import-mode=importlib"],
        ["--benchmark-disable"],
        ["-W", "ignore:pkg_resources is deprecated:DeprecationWarning"],
    ],
    ids=" ".join,
)
def test_harmless_option_passes(words: list[str]) -> None:
    assert found(with_options(*words)) == set()


@pytest.mark.parametrize(
    "fields",
    [
        {"requirements": ("attrs<24", "pytest>=7,<8", "pytest-asyncio", "hypothesis[cli]; python_version > '3'")},
        {"overrides": ("numpy<2", "pytest<8")},
        {"python": "3.8", "system_packages": ("libpq-dev", "libgl1"), "fallback": 1},
        {"modes": (BuildMode.NORMAL,), "compiled": True},
        {
            "env": {
                **DECLARED.env,
                "DJANGO_SETTINGS_MODULE": "x.settings",
                "QT_QPA_PLATFORM": "offscreen",
                "LANG": "C.UTF-8",
            }
        },
        {
            "env": {
                **DECLARED.env,
                "PYTHONPATH": "/testbed/src:/testbed/lib",
                "PYTHONUTF8": "1",
                "PYTEST_QT_API": "pyqt5",
            }
        },
        {"env": {}},
        {"build_env": {"SETUPTOOLS_SCM_PRETEND_VERSION": "1.0", "CFLAGS": "-O2 -Wno-error", "SKIP_CYTHON": "1"}},
        {"requirements": ("PyTest_AsyncIO>=0.20",)},
        {"python": "3.6", "requirements": ("pytest",)},
        {"overrides": ("numpy<2 ; python_version >= '3.9'",)},
        {"exempt": ("pytest", "pluggy", "setuptools", "wheel")},
        {"env": {"PYTHONPATH": "/testbed/src:/testbed/tests"}},
    ],
    ids=str,
)
def test_honest_change_passes(fields: dict[str, Any]) -> None:
    assert found(DECLARED.model_copy(update=fields)) == set()


def test_what_the_project_declares_is_no_weakening() -> None:
    declared = DECLARED.model_copy(
        update={
            "addopts": ("-x", "--ignore=docs", "-p", "no:xdist", "-k", "fast", "tests"),
            "env": {"PYTHONPATH": "/somewhere", "PYTEST_ADDOPTS": "-x", "TZ": "UTC"},
            "requirements": ("flaky", "x @ https://x.invalid/x.whl"),
            "exempt": ("atomicwrites",),
        }
    )
    assert found(declared, declared) == set()


def test_declared_option_twice_and_a_declared_variable_with_another_value_are_new() -> None:
    declared = DECLARED.model_copy(update={"addopts": ("-k", "fast"), "env": {"PYTEST_ADDOPTS": "-x"}})
    twice = declared.model_copy(update={"addopts": ("-k", "fast", "-k", "fast")})
    other = declared.model_copy(update={"env": {"PYTEST_ADDOPTS": "-x --co"}})
    assert found(twice, declared) == {"select-by-keyword"}
    assert found(other, declared) == {"pytest-variable"}


def test_declared_plug_in_may_get_another_version() -> None:
    declared = DECLARED.model_copy(update={"requirements": ("flaky",)})
    assert found(declared.model_copy(update={"requirements": ("flaky<3.8",)}), declared) == set()


@pytest.mark.parametrize("plugin", ["pytest-cov", "pytest-sugar>=0.9", "flaky", "pytest-randomly"])
def test_declared_plug_in_that_no_test_needs_may_be_dropped(plugin: str) -> None:
    declared = DECLARED.model_copy(update={"requirements": (*DECLARED.requirements, plugin)})
    assert found(declared.model_copy(update={"requirements": DECLARED.requirements}), declared) == set()


@pytest.mark.parametrize("plugin", ["hypothesis", "pytest-of-somebody", "pytest_mock>=3"])
def test_declared_plug_in_may_not_be_dropped_but_by_a_rung_without_a_model(plugin: str) -> None:
    declared = DECLARED.model_copy(update={"requirements": (*DECLARED.requirements, plugin, "requests", "pytestish")})
    without = declared.model_copy(update={"requirements": DECLARED.requirements})
    assert found(without, declared) == {"plugin-dropped"}
    assert found(without, declared, trusted=[without]) == set()
    never = declared.model_copy(update={"overrides": (f"{plugin.partition('>')[0]} ; python_version < '0'",)})
    assert found(never, declared) == {"plugin-dropped", "override-removes"}
    assert found(never, declared, trusted=[never]) == set()


def test_marker_that_is_nested_without_end_is_no_requirement() -> None:
    deep = f"x ; {'(' * 100_000}python_version > '3'{')' * 100_000}"
    assert found(DECLARED.model_copy(update={"constraints": (deep,)})) == {"no-requirement"}


def test_what_a_rung_without_a_model_did_is_no_weakening() -> None:
    repaired = with_options("-o", "x=y").model_copy(update={"exempt": ("numpy",), "addopts": ("-ra", "-o", "x=y")})
    assert found(repaired) == {"declared-option-dropped", "setting-overridden", "without-date"}
    assert found(repaired, trusted=[repaired]) == set()


def test_value_of_an_allowed_option_cannot_hide_another_one() -> None:
    assert "select-by-keyword" in found(with_options("--ds", "-kfast"))
    assert "deselected-test" in found(with_options("--tb", "--deselect=x"))
    assert "named-tests" in found(with_options("--reuse-db", "tests/test_one.py"))
    assert found(with_options("--ds", "x/../tests/t.py")) == {"unknown-option", "settings-module"}


def test_without_the_tree_no_new_place_is_trusted() -> None:
    recipe = with_variable("PYTHONPATH", "/testbed/lib")
    assert [one.mechanism for one in weakenings(recipe, DECLARED)] == ["python-path"]
    assert found(recipe) == set()


def test_detail_is_legible() -> None:
    (one,) = weakenings(with_options("--evil\x1b[2J\udcff"), DECLARED)
    assert one.detail == "--evil\\x1b[2J\\udcff"


WORDS = st.one_of(
    st.sampled_from(
        [
            *(
                "-k",
                "-m",
                "-x",
                "-q",
                "-v",
                "-ra",
                "-p",
                "-o",
                "-c",
                "-W",
                "-n",
                "-n0",
                "-l",
                "-qk",
                "-qxk",
                "-pno:",
                "-kx",
            ),
            *(
                "x",
                "no:doctest",
                "pytester",
                "addopts=-x",
                "junit_family=xunit2",
                "tests",
                "0",
                "@x",
                "--",
                "-",
                "short",
            ),
            *(
                "--co",
                "--lf",
                "--ff",
                "--sw",
                "--tb=short",
                "--tb",
                "--color=no",
                "--ignore=x",
                "--deselect",
                "--runxfail",
            ),
            *("--strict-markers", "--import-mode=append", "--noconftest", "--pyargs", "--rootdir=x", "--durations=3"),
            *("--continue-on-collection-errors", "--maxfail=1", "--no-header", "--quiet", "-qv", "-vl", "-rA"),
            "ignore:pkg_resources is deprecated:DeprecationWarning",
        ]
    ),
    st.text("-kmxqvpocWrl=", min_size=1, max_size=5),
)
STEERED = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "collectonly", "maxfail", "lf", "failedfirst")
STEERED += (
    "newfirst",
    "stepwise",
    "runxfail",
    "noconftest",
    "pyargs",
    "rootdir",
    "confcutdir",
    "inifilename",
    "file_or_dir",
)


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_what_passes_steers_nothing_by_pytests_own_parser(words: list[str]) -> None:
    """Read by the parser that is going to read it: what we let pass leaves every option that steers as it is.

    Only words with a plug-in's option are left out before, as before every run: that plug-in is not here.
    """
    parser, plain = _parser(), _parser().parse_known_args([])
    if found(with_options(*words)):
        return
    try:
        seen = parser.parse_known_args(split_addopts(words)[0] if "-n" in words else words)
    except (SystemExit, pytest.UsageError):
        return
    assert {name: getattr(seen, name) for name in STEERED} == {name: getattr(plain, name) for name in STEERED}
    assert set(seen.plugins) <= {"pytester"}
    assert set(seen.override_ini or ()) <= {"junit_family=xunit2", "strict_markers=true"}


@cache
def _parser() -> Parser:
    return get_config()._parser


def test_tables_of_plug_ins_do_not_contradict() -> None:
    assert not set(STEERING) & set(WELL_KNOWN)


def test_page_is_current() -> None:
    current = (Path(__file__).parents[2] / "docs" / "distrust.md").read_text(encoding="utf-8")
    assert current == page(), "run: swe-miner docs distrust > docs/distrust.md"
