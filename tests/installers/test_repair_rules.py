"""Every rule answers the failure it is for with its edit; without it, the failure has no such answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installers.interface import Signature
from installers.pythons import Python
from installers.repair.context import Context, Release
from installers.repair.kinds import Kind
from installers.repair.rules import RULES, answers, final_reason
from installers.repair.rules_imports import folder_of
from installers.repair.signatures import signatures_of_log
from miner.core.reasons import Reason
from miner.core.records import BuildMode, Recipe


def python(version: str, year: int) -> Python:
    return Python(
        version=version,
        executable=f"/opt/python/{version}/bin/python{version}",
        released=date(year, 10, 1),
        end_of_life=date(year + 5, 10, 1),
    )


PYTHONS = (python("3.6", 2016), python("3.7", 2018), python("3.9", 2020), python("3.11", 2022), python("3.12", 2023))
PROVIDERS = {"yaml": "pyyaml", "numpy": "numpy", "scipy": "scipy", "scipy.misc": "scipy", "demo_plugin": "demo-plugin"}
PACKAGES = {"libpq-fe.h": "libpq-dev", "libGL.so.1": "libgl1", "pg_config": "libpq-dev", "git": "git"}
RELEASES = (
    Release(version="1.0", wheel=True),
    Release(version="1.1"),
    Release(version="1.2", wheel=True),
    Release(version="2.0a1", wheel=True),
)
CONTEXT = Context(
    cutoff=datetime(2023, 4, 1, tzinfo=UTC),
    cutoffs=4,
    pythons=PYTHONS,
    paths=("setup.py", "demo/__init__.py", "demo/_fast.pyx", "tests/helpers_of_demo.py", "tests/test_x.py"),
    test_files=("tests/test_x.py",),
    provider=PROVIDERS.get,
    package=PACKAGES.get,
    releases=lambda name: RELEASES if name == "wheely" else (),
    last_with=lambda name, module, word: "1.2.3" if (name, word) == ("scipy", "gone") else None,
)
RECIPE = Recipe(
    python="3.9",
    requirements=("pytest", "flask>=1", "pinned==1.0", "wheely==1.1"),
    build_requirements=("setuptools", "wheel"),
    build_backend="setuptools.build_meta",
    distribution="demo",
    top_level=("demo",),
    version_hint="4.2",
    addopts=("--strict-markers", "--strict-config"),
)


def build(what: str, error: str) -> str:
    return f"error: Failed to build `{what}`\n  cause: The build backend returned an error\n\n{error}\n"


def unsolved(because: str, hint: str = "") -> str:
    return f"error: No solution found when resolving dependencies\n  cause: Because {because}\n{hint}"


LATE = "hint: `pinned` was filtered by `exclude-newer` to only include packages uploaded before 2022"


@dataclass(frozen=True)
class Case:
    """A failure, and what becomes of the recipe: its fields after the edit."""

    log: str
    step: str = "suite"
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)


def more(name: str, *items: str) -> dict[str, tuple[str, ...]]:
    return {name: (*getattr(RECIPE, name), *items)}


CASES: dict[str, Case] = {
    "exact-date": Case(
        unsolved("only pinned<=1 is available and you require pinned>=2, we can", LATE), "lock", after={"fallback": 1}
    ),
    "build-tool": Case(
        "error: Failed to build `demo==1`\n  cause: No solution found when resolving: `setuptools>=40.8.0`\n"
        "  cause: Because only setuptools<=35 is available and you require setuptools>=40.8.0, we can\n"
        "hint: `setuptools` was filtered by `exclude-newer` to only include packages uploaded before 2017",
        "lock",
        after={"exempt": ("setuptools", "wheel")},
    ),
    "cutoff 2": Case(
        unsolved("flask>=2 depends on other>=3 and you require flask>=2, we can conclude that you require other>=3."),
        "lock",
        after={"fallback": 2},
    ),
    "cutoff 3": Case(
        unsolved("flask>=2 depends on other>=3 and you require flask>=2, we can conclude that you require other>=3."),
        "lock",
        before={"fallback": 1},
        after={"fallback": 3},
    ),
    "uploaded-again": Case(
        unsolved("there is no version of pinned==1.0 and you require pinned==1.0, we can", LATE),
        "lock",
        before={"fallback": 1},
        after={"exempt": ("pinned",), "fallback": 1},
    ),
    "drop-late-pin": Case(
        unsolved("there is no version of pinned==1.0 and you require pinned==1.0, we can", LATE),
        "lock",
        before={"fallback": 3},
        after={"overrides": ("pinned",)},
    ),
    "drop-pin": Case(
        unsolved("there is no version of pinned==1.0 and you require pinned==1.0, we can"),
        "lock",
        after={"overrides": ("pinned",)},
    ),
    "drop-requirement": Case(
        unsolved("pinned was not found in the package registry and you require pinned==1.0, we can"),
        "lock",
        after={"requirements": ("pytest", "flask>=1", "wheely==1.1")},
    ),
    "python-that-it-admits": Case(
        unsolved(
            "the current Python version (3.9.1) does not satisfy Python>=3.10 and pinned==1.0 depends on Python>=3.10"
        ),
        "lock",
        after={"python": "3.11"},
    ),
    "drop-what-refuses": Case(
        unsolved(
            "the current Python version (3.9.1) does not satisfy Python>=3.10 and pinned==1.0 depends on Python>=3.10"
        ),
        "lock",
        after={"overrides": ("pinned",)},
    ),
    "older-python-for-wheel": Case(
        unsolved("old-demo==1.0.0 has no wheels with a matching Python ABI tag (e.g., `cp39`), we can conclude"),
        "lock",
        after={"python": "3.7"},
    ),
    "last-cutoff": Case(
        unsolved("old-demo>=0.19 has invalid metadata and you require old-demo>=0.19, we can conclude"),
        "lock",
        after={"fallback": 3},
    ),
    "cutoff 1": Case(
        unsolved("flask>=2 depends on other>=3 and you require flask>=2, we can conclude that you require other>=3."),
        "lock",
        after={"fallback": 1},
    ),
    "loosen": Case(
        unsolved(
            "pinned==1.0 depends on flask<1 and you require pinned==1.0, we can conclude that you require flask<1."
        ),
        "lock",
        after={"requirements": ("pytest", "flask>=1", "pinned", "wheely==1.1")},
    ),
    "wheel-without-date": Case(
        build(
            "old-demo==1", 'File "/c/bdist_wheel.py", line 443, in egg2dist\n  x\nTypeError: expected str, not NoneType'
        ),
        "environment",
        after={"exempt": ("wheel",)},
    ),
    "setuptools-without-date": Case(
        build(
            "demo @ file:///w",
            "ValueError: configuration error: `project.license` must be",
        ),
        "project",
        after={"exempt": ("setuptools",)},
    ),
    "told-version": Case(
        build("demo @ file:///w", "LookupError: setuptools-scm was unable to detect version for /w."),
        "project",
        after={"build_env": {"SETUPTOOLS_SCM_PRETEND_VERSION": "4.2"}},
    ),
    "build-requirement": Case(
        build("demo @ file:///w", "ModuleNotFoundError: No module named 'numpy'"),
        "project",
        after={"build_requirements": ("setuptools", "wheel", "numpy")},
    ),
    "version-with-wheel": Case(
        build("wheely==1.1", "RuntimeError: no way"), "environment", after={"overrides": ("wheely==1.2",)}
    ),
    "build-pin": Case(
        build("cython==0.1", "RuntimeError: no way"),
        "project",
        before={"build_requirements": ("setuptools", "cython==0.1")},
        after={"build_requirements": ("setuptools", "cython")},
    ),
    "older-python-for-build": Case(
        build("old-demo==1.1", "RuntimeError: no way"), "environment", after={"python": "3.7"}
    ),
    "cutoff-for-build": Case(build("old-demo==1.1", "RuntimeError: no way"), "environment", after={"fallback": 1}),
    "python-that-has-it": Case(
        "E   ImportError: cannot import name 'Mapping' from 'collections' (/usr/lib/collections/__init__.py)",
        before={"python": "3.11"},
        after={"python": "3.9"},
    ),
    "python-of-message": Case(
        "E   TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'", after={"python": "3.11"}
    ),
    "newer-syntax": Case(
        '  File "/x.py", line 1\n    match value:\n          ^\nSyntaxError: invalid syntax', after={"python": "3.11"}
    ),
    "older-syntax": Case(
        '  File "/x.py", line 1\n    f(async=True)\n          ^\nSyntaxError: invalid syntax', after={"python": "3.6"}
    ),
    "pkg-resources": Case(
        "E   ModuleNotFoundError: No module named 'pkg_resources'", after=more("requirements", "setuptools<82")
    ),
    "native-module": Case(
        "E   ModuleNotFoundError: No module named 'demo._fast'",
        after={"compiled": True, "modes": (BuildMode.COMPILED, BuildMode.NORMAL)},
    ),
    "local-folder": Case(
        "E   ModuleNotFoundError: No module named 'helpers_of_demo'", after={"env": {"PYTHONPATH": "/testbed/tests"}}
    ),
    "provider": Case("E   ModuleNotFoundError: No module named 'yaml'", after=more("requirements", "pyyaml")),
    "last-version-with": Case(
        "E   ImportError: cannot import name 'gone' from 'scipy.misc' (/x.py)", after={"constraints": ("scipy<=1.2.3",)}
    ),
    "normal-install": Case(
        "E   ModuleNotFoundError: No module named 'demo.version_file'", after={"modes": (BuildMode.NORMAL,)}
    ),
    "cutoff-for-name": Case(
        "E   ImportError: cannot import name 'not_yet' from 'scipy.misc' (/x.py)", after={"fallback": 1}
    ),
    "tool-chain": Case(
        build("demo @ file:///w", "error: command 'gcc' failed: No such file or directory"),
        "project",
        after={"compiled": True},
    ),
    "debian-package": Case(
        "E   ImportError: libGL.so.1: cannot open shared object file", after={"system_packages": ("libgl1",)}
    ),
    "time-zone": Case(
        "E   zoneinfo._common.ZoneInfoNotFoundError: 'No time zone found with key UTC'",
        after=more("requirements", "tzdata"),
    ),
    "user-name": Case(
        "E   KeyError: 'getpwuid(): uid not found: 1000'", after={"env": {"LOGNAME": "miner", "USER": "miner"}}
    ),
    "git-identity": Case(
        "*** Please tell me who you are.",
        after={
            "env": {
                "GIT_AUTHOR_NAME": "miner",
                "GIT_AUTHOR_EMAIL": "miner@localhost",
                "GIT_COMMITTER_NAME": "miner",
                "GIT_COMMITTER_EMAIL": "miner@localhost",
            }
        },
    ),
    "utf8-locale": Case(
        "E   locale.Error: unsupported locale setting", after={"env": {"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"}}
    ),
    "no-display": Case("qt.qpa.xcb: could not connect to display", after={"env": {"QT_QPA_PLATFORM": "offscreen"}}),
    "py-library": Case("E   AttributeError: module 'py' has no attribute 'code'", after=more("requirements", "py")),
    "fixture": Case("E       fixture 'mocker' not found", after=more("requirements", "pytest-mock")),
    "own-plugin": Case("E       fixture 'testdir' not found", after={"addopts": (*RECIPE.addopts, "-p", "pytester")}),
    "other-fixture": Case(
        "E       fixture 'httpserver' not found",
        before={"requirements": ("pytest", "pytest-httpserver")},
        after={"requirements": ("pytest", "pytest-httpserver", "pytest-localserver")},
    ),
    "reporting-pytest": Case(
        "pytest.py: error: unrecognized arguments: --rootdir=/testbed",
        after={
            "constraints": ("pytest>=4.6,<5",),
            "exempt": (
                *("pytest", "pluggy", "py", "attrs", "more-itertools", "importlib-metadata", "zipp", "packaging"),
                *("pyparsing", "wcwidth", "typing-extensions"),
            ),
        },
    ),
    "option": Case("pytest: error: unrecognized arguments: --reuse-db", after=more("requirements", "pytest-django")),
    "mark": Case("'trio' not found in `markers` configuration option", after=more("requirements", "pytest-trio")),
    "setting": Case("ERROR: x.ini: Unknown config option: asyncio_mode", after=more("requirements", "pytest-asyncio")),
    "hook": Case(
        "PluginValidationError: unknown hook 'pytest_html_x' in plugin <y>", after=more("requirements", "pytest-html")
    ),
    "async-plugin": Case(
        "async def functions are not natively supported.", after=more("requirements", "pytest-asyncio")
    ),
    "asyncio-auto": Case(
        "async def functions are not natively supported.",
        before={"requirements": ("pytest", "pytest-asyncio")},
        after={"addopts": ("--strict-markers", "--strict-config", "-o", "asyncio_mode=auto")},
    ),
    "without --strict-markers": Case(
        "'odd' not found in `markers` configuration option", after={"addopts": ("--strict-config",)}
    ),
    "without --strict-config": Case(
        "ERROR: x.ini: Unknown config option: odd", after={"addopts": ("--strict-markers",)}
    ),
    "older-pytest": Case(
        "E   ImportError: cannot import name 'odd' from '_pytest.compat' (/x.py)", after={"constraints": ("pytest<9",)}
    ),
    "take-back-warning": Case(
        "E   DeprecationWarning: the demo module is old: use another one",
        after={
            "addopts": (
                *RECIPE.addopts,
                "-W",
                "ignore:the demo module is old:DeprecationWarning",
            )
        },
    ),
}


def proposed(case: Case) -> dict[str, Recipe]:
    """The recipes of the rules that answer a case's signatures, by the name of the rule."""
    recipe = RECIPE.model_copy(update=case.before)
    context = replace(CONTEXT, **case.context)
    return {
        rule.name: changed
        for signature in signatures_of_log(case.step, case.log)
        for rule, changed in answers(recipe, signature, context)
    }


@pytest.mark.parametrize("name", CASES)
def test_a_rule_answers_its_failure_with_its_edit(name: str) -> None:
    case = CASES[name]
    found = proposed(case)
    assert name in found, f"no {name} for {[str(one) for one in signatures_of_log(case.step, case.log)]}: {list(found)}"
    expected = {key: getattr(RECIPE.model_copy(update=case.before), key) for key in case.after}
    changed = {key: getattr(found[name], key) for key in case.after}
    assert changed == case.after
    assert changed != expected or set(case.before) & set(case.after)


def test_every_rule_that_is_no_row_has_a_case() -> None:
    assert {rule.name for rule in RULES if "bound " not in rule.name} == set(CASES)


def test_every_rule_says_why() -> None:
    for rule in RULES:
        why = rule.reason(Signature(kind=next(iter(rule.kinds)).value, subject="x"))
        assert why
        assert "{" not in why


@pytest.mark.parametrize("module", ["tests.utils", "conftest", "helpers", "test_x", "helpers_of_demo", "demo.part"])
def test_a_module_of_the_project_is_no_distribution(module: str) -> None:
    context = replace(CONTEXT, provider=lambda name: f"squatter-{name}")
    signature = Signature(kind="missing-module", subject=module)
    recipes = [recipe for _, recipe in answers(RECIPE, signature, context)]
    assert all(recipe.requirements == RECIPE.requirements for recipe in recipes)


def test_the_project_itself_is_never_asked_of_the_index() -> None:
    context = replace(CONTEXT, provider=lambda _: "Demo")
    signature = Signature(kind="missing-module", subject="demolib")
    assert [rule.name for rule, _ in answers(RECIPE, signature, context)] == []


def test_an_attribute_of_a_module_is_looked_for_in_older_versions_one_of_a_class_is_not() -> None:
    context = replace(CONTEXT, provider=lambda name: name.lower(), last_with=lambda *_: "1.2.3")
    of_module = Signature(kind="missing-attribute", subject="scipy.misc:gone")
    assert [recipe.constraints for _, recipe in answers(RECIPE, of_module, context)] == [("scipy<=1.2.3",)]
    assert list(answers(RECIPE, Signature(kind="missing-attribute", subject="Scipy:gone"), context)) == []


def test_a_bound_that_a_pin_contradicts_wins_as_an_override() -> None:
    recipe = RECIPE.model_copy(update={"requirements": ("numpy==1.26",)})
    signature = Signature(kind="missing-attribute", subject="numpy:float")
    assert next(iter(answers(recipe, signature, CONTEXT)))[1].overrides == ("numpy<1.24",)


@pytest.mark.parametrize(
    ("before", "after"), [("numpy<2", "numpy<1.24,<2"), ("numpy>=2", "numpy<1.24"), ("numpy", "numpy<1.24")]
)
def test_a_bound_of_what_is_overridden_goes_into_the_override(before: str, after: str) -> None:
    recipe = RECIPE.model_copy(update={"overrides": (before, "other")})
    changed = next(iter(answers(recipe, Signature(kind="missing-attribute", subject="numpy:float"), CONTEXT)))[1]
    assert (changed.overrides, changed.constraints) == (("other", after), ())


def test_a_bound_that_a_build_pin_contradicts_takes_the_pin_away() -> None:
    recipe = RECIPE.model_copy(update={"build_requirements": ("setuptools==65.0", "wheel")})
    changed = next(iter(answers(recipe, Signature(kind="use-2to3", subject="demo"), CONTEXT)))[1]
    assert (changed.build_requirements, changed.build_constraints) == (("setuptools", "wheel"), ("setuptools<58",))


def test_extras_survive_a_pin_that_is_dropped() -> None:
    recipe = RECIPE.model_copy(update={"requirements": ("demo-web[fast,async]==9",)})
    signature = Signature(kind="no-version", subject="demo-web==9")
    assert next(iter(answers(recipe, signature, CONTEXT)))[1].overrides == ("demo-web[async,fast]",)


def test_a_python_that_came_out_after_the_date_is_the_last_to_be_chosen() -> None:
    signature = Signature(kind="newer-syntax", subject="3.10")
    context = replace(CONTEXT, pythons=(python("3.9", 2020), python("3.10", 2021), python("3.12", 2026)))
    assert next(iter(answers(RECIPE, signature, context)))[1].python == "3.10"


@pytest.mark.parametrize(
    ("module", "folder"), [("demo", ""), ("helpers_of_demo", "tests"), ("tests.helpers_of_demo", ""), ("other", None)]
)
def test_the_folder_of_a_module_of_the_tree_is_found(module: str, folder: str | None) -> None:
    assert folder_of(module, CONTEXT.paths, CONTEXT.test_files, "") == folder


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("needs-service", Reason.NEEDS_SERVICE),
        ("needs-display", Reason.NEEDS_DEVICE),
        ("needs-gpu", Reason.NEEDS_DEVICE),
        ("missing-module", None),
        ("of another version of this program", None),
    ],
)
def test_what_no_recipe_helps_is_a_reason_of_its_own(kind: str, reason: Reason | None) -> None:
    assert final_reason((Signature(kind=kind, subject="x"), Signature(kind="needs-gpu"))) is reason
    assert final_reason(()) is None


SUBJECTS = ("", ":", "a:b", "a: b:c", "a==1", "a==x", "a>=1, b", "?:x", "numpy", "*", "-l", ".", "é", "a" * 120)


@given(st.sampled_from(list(Kind)), st.sampled_from(SUBJECTS) | st.text(max_size=40))
def test_no_subject_breaks_a_rule_and_no_edit_is_none(kind: Kind, subject: str) -> None:
    signature = Signature(kind=kind.value, subject=subject)
    for rule, recipe in answers(RECIPE, signature, CONTEXT):
        assert recipe != RECIPE
        assert rule.edit(recipe, signature, CONTEXT) != recipe


def test_a_back_end_that_is_older_than_its_own_module_is_taken_without_the_date() -> None:
    recipe = RECIPE.model_copy(update={"build_requirements": ("flit",)})
    signature = Signature(kind=Kind.BUILD_NEEDS_MODULE, subject=": flit.buildapi")
    found = {
        rule.name: changed
        for rule, changed in answers(recipe, signature, Context(cutoff=datetime(2018, 6, 1, tzinfo=UTC)))
    }
    assert found["build-requirement"].exempt == ("flit",)
