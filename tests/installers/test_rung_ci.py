from __future__ import annotations

import textwrap
from datetime import UTC, date, datetime
from typing import Any

import pytest

from installers.describe import describe
from installers.interface import Attempt, Help, Memory, Proposal, Question, Tree
from installers.pythons import Python
from installers.rungs.ci import ci
from installers.rungs.ci_env import needed_variables
from miner.core.reasons import Reason
from miner.core.records import Recipe

DAY = datetime(2023, 6, 1, tzinfo=UTC)
PYTHONS = tuple(
    Python(version=version, executable=f"/python{version}", released=released, end_of_life=end)
    for version, released, end in (
        ("3.8", date(2019, 10, 14), date(2024, 10, 7)),
        ("3.9", date(2020, 10, 5), date(2025, 10, 31)),
        ("3.11", date(2022, 10, 24), date(2027, 10, 31)),
        ("3.12", date(2023, 10, 2), date(2028, 10, 31)),
    )
)
SETUP = """
[project]
name = 'demo'
version = '1'
dependencies = ['attrs>=20']
[project.optional-dependencies]
web = ['flask']
"""


def workflow(*runs: str, env: str = "{}", python: str = '["3.9", "3.11", "3.12"]', name: str = "test") -> str:
    steps = "\n".join(f"      - run: {run}" for run in runs)
    return f"""
jobs:
  {name}:
    runs-on: ubuntu-latest
    env: {env}
    strategy: {{matrix: {{python: {python}}}}}
    steps:
      - uses: actions/setup-python@v5
        with: {{python-version: "${{{{ matrix.python }}}}"}}
{steps}
"""


def question(files: dict[str, str], past: tuple[Attempt, ...] = ()) -> Question:
    contents = {path: textwrap.dedent(text).encode() for path, text in {"pyproject.toml": SETUP, **files}.items()}
    paths = [*contents, "demo/__init__.py", "tests/test_demo.py"]
    declared = describe(contents, paths, PYTHONS, DAY, ["tests/test_demo.py"])
    assert isinstance(declared, Recipe)
    return Question("demo/demo", Tree(contents, paths), declared, DAY, ["tests/test_demo.py"], past)


def attempt(recipe: Recipe, outcome: str = "ok", *, rung: str = "ci", detail: str = "") -> Attempt:
    return Attempt(
        repository="demo/demo", rung=rung, number=0, recipe=recipe, cutoff=DAY, outcome=outcome, detail=detail
    )


def ask(files: dict[str, str], past: tuple[Attempt, ...] = ()) -> Proposal | None:
    helpless: Any = None  # this rung asks nothing but the list of interpreters
    return ci(question(files, past), Help(workshop=helpless, memo=helpless, memory=Memory(), pythons=PYTHONS))


def climb(files: dict[str, str]) -> list[Proposal]:
    found: list[Proposal] = []
    while (proposal := ask(files, tuple(attempt(one.recipe) for one in found))) is not None:
        found.append(proposal)
        assert len(found) < 20
    return found


def test_what_ci_installs_is_merged_into_the_declared_recipe() -> None:
    files = {
        ".github/workflows/ci.yml": workflow(
            "sudo apt-get install -y libxml2-dev build-essential",
            "pip install -U pip setuptools wheel",
            "pip install -c bounds.txt attrs==22.1 mock black codecov pytest-randomly 'setuptools<60' .[web]",
            "pytest",
            env="{DEMO_MODE: fast, CI_TOKEN: abc, DATA_DIR: /home/runner/x}",
        ),
        "bounds.txt": "jinja2<3.1\ndemo<1\n",
    }
    proposal = ask(files)
    assert proposal is not None
    recipe = proposal.recipe
    assert recipe.python == "3.11"
    assert set(recipe.requirements) == {"attrs==22.1,>=20", "pytest", "mock", "flask", "setuptools<60"}
    assert recipe.constraints == ("jinja2<3.1",)
    assert recipe.build_constraints == ("setuptools<60",)
    assert recipe.system_packages == ("libxml2-dev",)
    assert recipe.env == {"DEMO_MODE": "fast"}
    assert "mock <- .github/workflows/ci.yml: test" in recipe.sources
    (edit,) = proposal.edits
    assert edit.rule == "ci"
    assert ".github/workflows/ci.yml: test installs " in edit.why


def test_the_same_tree_gives_the_same_proposals() -> None:
    files = {".github/workflows/ci.yml": workflow("pip install mock", "pytest")}
    assert climb(files) == climb(dict(reversed(files.items())))


def test_nothing_where_ci_adds_nothing() -> None:
    files = {".github/workflows/ci.yml": workflow("pip install -e . pytest black", "pytest", python='["3.11"]')}
    assert ask(files) is None


def test_nothing_where_no_job_tests() -> None:
    assert ask({".github/workflows/ci.yml": workflow("pip install mock", "flake8")}) is None
    assert ask({}) is None


def test_ordinary_jobs_come_before_another_python_and_unusual_jobs() -> None:
    files = {
        ".github/workflows/a.yml": workflow("pip install minimal==1", "pytest", name="minimum"),
        ".github/workflows/b.yml": workflow("pip install mock", "pytest"),
        ".github/workflows/c.yml": workflow("pip install mock more", "pytest", name="full"),
        "tox.ini": "[testenv]\ndeps = pytest\ncommands = pytest\n",
    }
    whys = [proposal.edits[0].why for proposal in climb(files)]
    assert whys == [
        ".github/workflows/c.yml: full installs mock, more",
        ".github/workflows/b.yml: test installs mock",
        ".github/workflows/c.yml: full installs mock, more, runs on Python 3.9",
        ".github/workflows/a.yml: minimum installs minimal==1",
    ]


def test_a_job_on_other_pythons_only_takes_the_newest_that_was_alive() -> None:
    proposal = ask(
        {".github/workflows/ci.yml": workflow("pip install mock", "pytest", python='["3.8", "3.9", "3.12"]')}
    )
    assert proposal is not None
    assert proposal.recipe.python == "3.9"


def test_a_job_on_python_2_is_no_job() -> None:
    files = {
        ".travis.yml": """
        matrix:
          include:
            - {python: "2.7", install: pip install mock}
            - {python: "3.11", install: make}
        script: pytest
        """
    }
    assert ask(files) is None


def test_variables_alone_come_last() -> None:
    files = {
        ".github/workflows/a.yml": workflow("pytest", env="{DEMO_A: x}", python='["3.11"]'),
        ".github/workflows/b.yml": workflow("pip install mock", "pytest", python='["3.11"]', name="slow"),
    }
    assert [proposal.edits[0].why for proposal in climb(files)] == [
        ".github/workflows/b.yml: slow installs mock",
        ".github/workflows/a.yml: test sets DEMO_A",
    ]


def test_where_the_declared_recipe_does_not_lock_ci_is_tried_without_it() -> None:
    files = {
        ".github/workflows/ci.yml": workflow("pip install -e . pytest mock", "pytest"),
        "requirements-dev.txt": "pytest\nnever-existed==9\n",
    }
    declared = question(files).declared
    assert "never-existed==9" in declared.requirements
    proposal = ask(files, (attempt(declared, Reason.LOCK_FAILED.value, rung="declared"),))
    assert proposal is not None
    assert proposal.recipe.requirements == ("attrs>=20", "pytest", "mock")
    assert proposal.edits[0].why.endswith("without what else is declared")


@pytest.mark.parametrize(
    ("detail", "kept"),
    [("Unable to locate package libold1h", ("graphviz",)), ("no answer", ())],
)
def test_packages_that_debian_does_not_have_are_left_out(detail: str, kept: tuple[str, ...]) -> None:
    files = {
        ".github/workflows/ci.yml": workflow("sudo apt install -y libold1h graphviz", "pip install mock", "pytest")
    }
    first = ask(files)
    assert first is not None
    made = attempt(first.recipe, Reason.SYSTEM_PACKAGE_UNKNOWN.value, detail=detail)
    second = ask(files, (made.model_copy(update={"edits": first.edits}),))
    assert second is not None
    assert second.recipe.system_packages == kept
    assert "mock" in second.recipe.requirements
    assert second.edits[0] == first.edits[0]


def test_markers_that_do_not_hold_and_what_is_covered_add_nothing() -> None:
    files = {
        ".github/workflows/ci.yml": workflow(
            "\"pip install 'attrs>=20' 'old; python_version < \\\"3.5\\\"' 'new; python_version > \\\"3\\\"'\"",
            "pytest",
        )
    }
    proposal = ask(files)
    assert proposal is not None
    assert proposal.recipe.requirements == ("attrs>=20", "pytest", "new")


def test_groups_and_the_project_by_its_name() -> None:
    files = {
        "pyproject.toml": SETUP + "[dependency-groups]\nqa = ['syrupy', 'mypy']\n",
        ".github/workflows/ci.yml": workflow("uv sync --group qa --group nowhere", "pip install demo[web]", "pytest"),
    }
    proposal = ask(files)
    assert proposal is not None
    assert set(proposal.recipe.requirements) == {"attrs>=20", "pytest", "syrupy", "flask"}
    assert any("no group 'nowhere'" in note for note in proposal.recipe.notes)


def test_services_are_noted() -> None:
    files = {".travis.yml": "python: '3.11'\nservices: [redis]\ninstall: pip install mock\nscript: pytest\n"}
    proposal = ask(files)
    assert proposal is not None
    assert ".travis.yml: redis runs beside it" in proposal.recipe.notes


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("DJANGO_SETTINGS_MODULE", "tests.settings", True),
        ("MPLBACKEND", "agg", True),
        ("QT_QPA_PLATFORM", "offscreen", True),
        ("AWS_ACCESS_KEY_ID", "testing", True),
        ("AIOHTTP_NO_EXTENSIONS", "1", True),
        ("DEMO_ANYTHING", "1", True),
        ("ASYNC_TEST_TIMEOUT", "15", True),
        ("BOTO_CONFIG", "/dev/null", True),
        ("DATABASE_URL", "sqlite:///db", True),
        ("DATABASE_URL", "postgres://localhost/x", False),
        ("TEST_BROKER", "redis://", False),
        ("DEMO_HOME", "/home/runner", False),
        ("DEMO_HOME", "$HOME/x", False),
        ("DEMO_TOKEN", "x", False),
        ("DEMO_EMPTY", "", False),
        ("PYTEST_ADDOPTS", "-n 4", False),
        ("PYTHONWARNINGS", "error", False),
        ("PYTHONHASHSEED", "1", False),
        ("TOXENV", "py", False),
        ("COVERAGE_FILE", "x", False),
        ("FORCE_COLOR", "1", False),
        ("PIP_INDEX_URL", "x", False),
        ("UNRELATED", "1", False),
    ],
)
def test_which_variables_tests_need(name: str, value: str, kept: bool) -> None:
    assert needed_variables({name: value}, "demo", ()) == ({name: value} if kept else {})


def test_a_relative_python_path_lies_in_the_checkout() -> None:
    env = {"PYTHONPATH": ".:lib:/opt/x:missing:../up"}
    assert needed_variables(env, "demo", {"lib"}) == {"PYTHONPATH": "/testbed:/testbed/lib"}
