from __future__ import annotations

import pytest
from ci_trees import brief, jobs, one
from hypothesis import given
from hypothesis import strategies as st

from miner.project.ci.expressions import UNKNOWN, Open, condition, evaluate, substitute
from miner.project.ci.matrix import github_rows

WORKFLOW = ".github/workflows/ci.yml"


def test_a_matrix_on_linux_with_steps_of_every_kind() -> None:
    files = {
        WORKFLOW: """
        on: [push, pull_request]
        env: {APP: one, TOKEN: "${{ secrets.T }}"}
        jobs:
          test:
            runs-on: ${{ matrix.os }}
            env: {APP: two}
            strategy:
              matrix:
                os: [ubuntu-latest, windows-latest]
                python-version: [3.8, 3.10, pypy-3.9, "3.12-dev"]
            services:
              db: {image: "postgres:13"}
              cache: redis
            steps:
              - uses: actions/checkout@v4
              - uses: actions/setup-python@v5
                with: {python-version: "${{ matrix.python-version }}"}
              - run: sudo apt-get update && sudo apt-get install -y libfoo-dev
              - run: |
                  python -m pip install -U pip
                  pip install -r requirements/tests.txt "extra>=1; python_version >= '3.9'"
                  pip install -e .[cli]
                working-directory: .
              - if: runner.os == 'Windows'
                run: pip install pywin32
              - if: steps.cache.outputs.cache-hit != 'true'
                run: pip install cached
              - run: echo "LATER=yes" >> $GITHUB_ENV
              - run: pytest -x
                env: {STEP: "${{ matrix.os }}"}
              - run: Get-Item x
                shell: pwsh
        """,
        "requirements/tests.txt": "pytest>=6\n-c bounds.txt\n",
        "requirements/bounds.txt": "attrs<22\n",
    }
    assert one(files) == {
        "source": f"{WORKFLOW}: test",
        "pythons": ("3.8", "3.10", "3.12"),
        "system_packages": ("libfoo-dev",),
        "requirements": ("pip", "extra>=1; python_version >= '3.9'", "pytest>=6", "cached"),
        "constraints": ("attrs<22",),
        "extras": ("cli",),
        "env": {"APP": "two", "LATER": "yes", "STEP": "ubuntu-latest"},
        "services": ("postgres:13", "cache"),
        "tests": True,
        "notes": ("windows-latest is no Linux", "TOKEN may be a secret and is left out", "a step for pwsh is left out"),
    }


def test_rows_that_install_something_else_are_jobs_of_their_own() -> None:
    files = {
        WORKFLOW: """
        jobs:
          test:
            runs-on: ubuntu-latest
            strategy:
              matrix:
                python: ["3.8", "3.9"]
                deps: [""]
                include:
                  - {python: "3.8", deps: "numpy==1.2"}
                exclude:
                  - {python: "3.7"}
            steps:
              - uses: actions/setup-python@v5
                with: {python-version: "${{ matrix.python }}"}
              - run: pip install pytest ${{ matrix.deps }}
              - run: pytest
        """
    }
    found = [(job.source, job.pythons, brief(job)["requirements"]) for job in jobs(files)]
    assert found == [
        (f"{WORKFLOW}: test (3.8, 3.9)", ("3.8", "3.9"), ("pytest",)),
        (f"{WORKFLOW}: test (3.8, numpy==1.2)", ("3.8",), ("pytest", "numpy==1.2")),
    ]


def test_called_workflows_and_actions_of_the_tree_get_their_inputs() -> None:
    files = {
        WORKFLOW: """
        jobs:
          call:
            uses: ./.github/workflows/called.yml
            with: {python: "3.9"}
        """,
        ".github/workflows/called.yml": """
        on:
          workflow_call:
            inputs:
              python: {required: true}
              extra: {default: web}
        jobs:
          inner:
            runs-on: ubuntu-latest
            steps:
              - uses: ./.github/actions/prepare
                with: {version: "${{ inputs.python }}"}
              - run: pytest
        """,
        ".github/actions/prepare/action.yml": """
        inputs:
          version: {required: true}
          tool: {default: pytest}
        runs:
          using: composite
          steps:
            - uses: actions/setup-python@v5
              with: {python-version: "${{ inputs.version }}"}
            - run: pip install ${{ inputs.tool }} .[dev]
              shell: bash
        """,
    }
    assert one(files) == {
        "source": ".github/workflows/called.yml: inner",
        "pythons": ("3.9",),
        "requirements": ("pytest",),
        "extras": ("dev",),
        "tests": True,
    }


def test_an_action_that_uses_itself_comes_to_an_end() -> None:
    loop = "runs: {using: composite, steps: [{uses: ./.github/actions/a}, {run: pytest}]}"
    files = {WORKFLOW: "jobs: {t: {steps: [{uses: ./.github/actions/a}]}}", ".github/actions/a/action.yml": loop}
    assert one(files)["tests"]


def test_what_a_job_of_another_system_or_a_computed_matrix_says() -> None:
    files = {
        WORKFLOW: """
        jobs:
          mac: {runs-on: macos-latest, steps: [{run: pytest}]}
          computed:
            runs-on: ubuntu-latest
            strategy: {matrix: "${{ fromJSON(needs.x.outputs.m) }}"}
            steps: [{run: pytest}]
          listed:
            runs-on: ubuntu-latest
            strategy: {matrix: {python: "${{ fromJSON('[\\"3.8\\", 3.10]') }}"}}
            steps: [{run: pytest}]
          push: {if: "github.event_name == 'push'", steps: [{run: pytest}]}
        """
    }
    mac, computed, listed, push = map(brief, jobs(files))
    assert mac["notes"] == ("macos-latest is no Linux",)
    assert computed["tests"]
    assert "is computed when it runs" in computed["notes"][0]
    assert listed["pythons"] == ("3.8", "3.10")
    assert "does not hold" in push["notes"][0]


def test_conda_and_package_actions() -> None:
    files = {
        WORKFLOW: """
        jobs:
          test:
            runs-on: ubuntu-latest
            steps:
              - uses: mamba-org/setup-micromamba@v1
                with:
                  environment-file: ci/environment.yml
                  create-args: python=3.9 scipy>=1
              - uses: awalsh128/cache-apt-pkgs-action@v1
                with: {packages: "graphviz libgraphviz-dev"}
              - run: pytest
        """,
        "ci/environment.yml": "dependencies: [python=3.8, numpy=1.20, pip, {pip: [pytest-mock]}]",
    }
    found = one(files)
    assert found["requirements"] == ("numpy==1.20.*", "pytest-mock", "scipy>=1")
    assert found["system_packages"] == ("graphviz", "libgraphviz-dev")
    assert "3.9" in found["pythons"]


@pytest.mark.parametrize(
    ("matrix", "rows"),
    [
        ({"a": ["1", "2"], "b": ["x"]}, [{"a": "1", "b": "x"}, {"a": "2", "b": "x"}]),
        ({"a": ["1", "2"], "exclude": [{"a": "1"}]}, [{"a": "2"}]),
        ({"a": ["1"], "include": [{"b": "y"}]}, [{"a": "1", "b": "y"}]),
        ({"a": ["1"], "include": [{"a": "2", "b": "y"}]}, [{"a": "1"}, {"a": "2", "b": "y"}]),
        ({"a": ["1", "2"], "include": [{"a": "2", "b": "y"}]}, [{"a": "1"}, {"a": "2", "b": "y"}]),
        ({"include": [{"a": "1"}, {"a": "2"}]}, [{"a": "1"}, {"a": "2"}]),
    ],
)
def test_rows_of_a_matrix(matrix: dict[str, list[object]], rows: list[dict[str, str]]) -> None:
    assert github_rows(matrix) == rows


CONTEXTS = {
    "matrix": {"os": "ubuntu-22.04", "python-version": "3.10", "flag": "true"},
    "runner": {"os": "Linux"},
    "github": Open(event_name="pull_request"),
    "steps": Open(),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("matrix.os == 'UBUNTU-22.04' && runner.os != 'Windows'", True),
        ("startsWith(matrix['os'], 'ubuntu')", True),
        ("contains(fromJSON('[\"3.9\", 3.10]'), matrix.python-version)", True),
        ("matrix.python-version == 3.10", True),
        ("matrix.missing", ""),
        ("format('py{0}-{1}', matrix.python-version, 'x')", "py3.10-x"),
        ("steps.c.outputs.cache-hit != 'true'", True),
        ("steps.c.outputs.other == 'true'", UNKNOWN),
        ("github.event.draft == false", UNKNOWN),
        ("secrets.x || 'a'", UNKNOWN),
        ("false && secrets.x", False),
        ("always() && matrix.flag == 'true'", True),
        ("matrix.os == 'ubuntu-22.04' && '3.8' || '3.9'", "3.8"),
        ("!failure()", True),
        ("hashFiles('x')", UNKNOWN),
        ("1 <", UNKNOWN),
        ("((((", UNKNOWN),
    ],
)
def test_expressions(text: str, expected: object) -> None:
    assert evaluate(text, CONTEXTS) == expected


def test_texts_with_expressions() -> None:
    assert substitute("a-${{ matrix.os }} ${{ secrets.x }}", CONTEXTS) == "a-ubuntu-22.04 ${{ secrets.x }}"
    assert condition("${{ matrix.os == 'x' }}", CONTEXTS) is False


@given(st.text(alphabet="ab.'\"()[]{}$!&|=<>, 01-*", max_size=60))
def test_no_expression_raises(text: str) -> None:
    evaluate(text, CONTEXTS)
    substitute(f"${{{{{text}}}}} {text}", CONTEXTS)
