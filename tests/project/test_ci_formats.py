from __future__ import annotations

import pytest
from ci_trees import brief, jobs, one

from miner.project.ci import ci_pythons, is_ci
from miner.project.model import Job


def test_travis_matrix_environment_includes_and_phases() -> None:
    files = {
        ".travis.yml": """
        language: python
        python: [2.7, 3.10, pypy, nightly]
        env:
          global: [A=1, {secure: abcdef}]
          matrix: ["DEPS='numpy scipy'", "DEPS="]
        matrix:
          include:
            - {python: 3.6, env: TOXENV=py36, dist: xenial, addons: {apt: {packages: [libfoo]}}}
            - {os: osx, language: generic}
          exclude:
            - {python: 2.7, env: "DEPS="}
        services: [redis-server, docker]
        before_install:
          - if [[ $TRAVIS_PYTHON_VERSION == 2* ]]; then pip install mock; fi
        install: pip install pytest $DEPS
        script:
          - cd sub && pytest
        """
    }
    found = {job["source"]: job for job in map(brief, jobs(files))}
    assert [(name, job["pythons"], job["requirements"]) for name, job in found.items()] == [
        (".travis.yml (2.7, DEPS='numpy scipy')", ("2.7",), ("mock", "pytest", "numpy", "scipy")),
        (".travis.yml (3.10, DEPS='numpy scipy')", ("3.10",), ("pytest", "numpy", "scipy")),
        (".travis.yml (3.10, DEPS=)", ("3.10",), ("pytest",)),
        (".travis.yml (3.6, TOXENV=py36)", ("3.6",), ("pytest",)),
    ]
    last = found[".travis.yml (3.6, TOXENV=py36)"]
    assert last["system_packages"] == ("libfoo",)
    assert last["env"] == {"A": "1", "TOXENV": "py36"}
    assert last["services"] == ("redis-server",)
    assert all(job["tests"] and "osx is no Linux" in job["notes"] for job in found.values())


def test_travis_installs_requirements_by_default_and_shares_anchors() -> None:
    files = {
        ".travis.yml": """
        _base: &base {python: 3.7, script: [pytest]}
        jobs:
          include:
            - <<: *base
              env: [B=2]
        """,
        "requirements.txt": "attrs\n",
    }
    assert one(files) == {
        "source": ".travis.yml",
        "pythons": ("3.7",),
        "requirements": ("attrs",),
        "env": {"B": "2"},
        "tests": True,
    }


def test_circleci_executors_commands_parameters_and_matrix() -> None:
    files = {
        ".circleci/config.yml": """
        version: 2.1
        executors:
          py:
            parameters: {tag: {type: string}}
            docker:
              - image: cimg/python:<< parameters.tag >>
                environment: {A: "1"}
              - image: redis:6
        commands:
          prepare:
            parameters: {extra: {default: test}}
            steps: [{run: "pip install .[<< parameters.extra >>]"}]
        jobs:
          test:
            parameters: {v: {type: string}}
            executor: {name: py, tag: << parameters.v >>}
            steps:
              - checkout
              - prepare: {extra: dev}
              - run: {name: run, command: pytest, environment: {B: "2"}, working_directory: ~/x}
          old:
            docker: [{image: "circleci/python:3.6-node"}]
            steps: [{run: pip install pytest}, {run: pytest}]
        workflows:
          all: {jobs: [{test: {matrix: {parameters: {v: ["3.8", "3.9"]}}}}, old]}
        """
    }
    test, old = map(brief, jobs(files))
    assert test == {
        "source": ".circleci/config.yml: test",
        "pythons": ("3.8", "3.9"),
        "extras": ("dev",),
        "env": {"A": "1", "B": "2"},
        "services": ("redis:6",),
        "tests": True,
    }
    assert old["pythons"] == ("3.6",)


def test_circleci_1() -> None:
    files = {
        "circle.yml": """
        machine: {python: {version: 3.5.2}, services: [redis], environment: {A: b}}
        dependencies: {override: [pip install -e .]}
        test: {override: [py.test]}
        """
    }
    assert one(files) == {
        "source": "circle.yml",
        "pythons": ("3.5",),
        "env": {"A": "b"},
        "services": ("redis",),
        "tests": True,
    }


def test_appveyor_on_windows_and_on_ubuntu() -> None:
    windows = {"appveyor.yml": 'environment: {matrix: [{PYTHON: "C:\\\\Python37-x64"}, {TOXENV: py27, PY: "2.7"}]}'}
    assert one(windows) == {"source": "appveyor.yml", "pythons": ("3.7", "2.7"), "notes": ("Windows is no Linux",)}
    linux = {
        "appveyor.yml": """
        image: Ubuntu2004
        stack: python 3.8
        install: [sh: pip install pytest, ps: Get-Item]
        test_script: [pytest]
        """
    }
    assert one(linux) == {"source": "appveyor.yml", "pythons": ("3.8",), "requirements": ("pytest",), "tests": True}


def test_azure_stages_templates_matrix_and_macros() -> None:
    files = {
        "azure-pipelines.yml": """
        variables: {deps: pytest}
        stages:
          - stage: a
            jobs:
              - template: ci/steps.yml
                parameters: {name: linux, vm: ubuntu-latest, extra: [web]}
              - template: ci/steps.yml
                parameters: {name: win, vm: windows-2019}
        """,
        "ci/steps.yml": """
        parameters: {name: "", vm: "", extra: ""}
        jobs:
          - job: ${{ parameters.name }}
            pool: {vmImage: "${{ parameters.vm }}"}
            strategy:
              matrix:
                py37: {python.version: "3.7", TOXENV: py37}
                py38: {python.version: "3.8", TOXENV: py38}
            steps:
              - task: UsePythonVersion@0
                inputs: {versionSpec: "$(python.version)"}
              - script: pip install $(deps)
              - ${{ if eq(parameters.name, 'linux') }}:
                - bash: pip install linux-only
              - script: pytest
                env: {KEY: "$(secret)", A: b}
        """,
    }
    linux, windows = map(brief, jobs(files))
    assert linux == {
        "source": "ci/steps.yml: linux",
        "pythons": ("3.7", "3.8"),
        "requirements": ("pytest", "linux-only"),
        "env": {"A": "b", "DEPS": "pytest", "TOXENV": "py38", "PYTHON_VERSION": "3.8"},
        "tests": True,
    }
    assert windows["notes"] == ("windows-2019 is no Linux",)


def test_gitlab_extends_defaults_matrix_and_references() -> None:
    files = {
        ".gitlab-ci.yml": """
        include: [{local: /ci/base.yml}]
        variables: {A: "1"}
        test:
          extends: .base
          image: python:$PY-slim
          parallel: {matrix: [{PY: ["3.8", "3.9"]}]}
          variables: {B: "2"}
          services: [{name: "postgres:12"}]
          script:
            - !reference [.base, before_script]
            - pytest
        """,
        "ci/base.yml": ".base: {before_script: [pip install pytest], variables: {C: '3'}}",
    }
    assert one(files) == {
        "source": ".gitlab-ci.yml: test",
        "pythons": ("3.8", "3.9"),
        "requirements": ("pytest",),
        "env": {"A": "1", "B": "2", "C": "3", "PY": "3.9"},
        "services": ("postgres:12",),
        "tests": True,
    }


def test_dockerfile() -> None:
    files = {
        "Dockerfile": """
        ARG V=3.9
        FROM python:${V}-slim AS base
        ENV A=1 \\
            # a comment
            B="x y"
        RUN apt-get update && \\
            apt-get install -y libpq-dev && \\
            rm -rf /var/lib/apt/lists/*
        RUN pip install -r requirements.txt
        RUN <<EOF
        pip install pytest
        EOF
        CMD ["python", "-m", "pytest"]
        """,
        "requirements.txt": "attrs",
    }
    assert one(files) == {
        "source": "Dockerfile",
        "pythons": ("3.9",),
        "system_packages": ("libpq-dev",),
        "requirements": ("attrs", "pytest"),
        "env": {"A": "1", "B": "x y", "V": "3.9"},
        "tests": True,
    }


def test_makefile_prerequisites_variables_and_conditionals() -> None:
    files = {
        "Makefile": """
        PIP ?= pip
        DEPS := pytest \\
          mock
        export APP_MODE = test
        ifdef CI
        DEPS += never
        else
        DEPS += local
        endif
        .PHONY: test
        install: deps
        \t@$(PIP) install $(DEPS) $(shell cat x)
        deps:
        \t-pip install -r requirements.txt
        test: install  # runs them
        \tcd sub && N=$$((1+1)) pytest $(ARGS)
        docs:
        \tsphinx-build x
        """.replace("        \\t", "\t"),
        "requirements.txt": "attrs",
    }
    found = one(files)
    assert found["source"] == "Makefile: test"
    assert found["requirements"] == ("attrs", "pytest", "mock", "local")
    assert found["env"] == {"APP_MODE": "test"}
    assert found["tests"]


def test_a_target_that_needs_itself_comes_to_an_end() -> None:
    assert one({"Makefile": "test: test other\n\tmake test; pytest\nother: test\n\tmake other\n"})["tests"]


NOXFILE = """
import nox
PYTHONS = ["3.8", "3.9"]
DEPS = ["pytest", "mock>=1"]

def prepare(session, extra=()):
    session.install("-r", "requirements.txt", *extra)

@nox.session(python=PYTHONS)
@nox.parametrize("django", ["3", "4"])
def tests(session, django):
    session.install(*DEPS, f"django=={django}.*")
    prepare(session, extra=["coverage"])
    session.install("-e", ".[web]")
    if session.posargs:
        session.install("never")
    if unknowable():
        session.install("maybe")
    session.env["MODE"] = "test"
    for part in ("a", "b"):
        session.run("pytest", part, env={"PART": part})

@nox.session(name="lint")
def check(session):
    session.install("flake8")
    session.run("flake8")
"""


def test_noxfile_by_ast() -> None:
    found = one({"noxfile.py": NOXFILE, "requirements.txt": "attrs"})
    assert found == {
        "source": "noxfile.py: tests",
        "pythons": ("3.8", "3.9"),
        "requirements": ("pytest", "mock>=1", "django==4.*", "coverage", "attrs"),
        "extras": ("web",),
        "env": {"MODE": "test", "PART": "b"},
        "tests": True,
        "notes": ("what session tests installs under a condition is left out",),
    }


TOX = """
[tox]
envlist = py{37,38}-django{3,4}, lint, pypy3, winpy
[base]
deps =
    mock
[testenv]
deps =
    {[base]deps}
    -r{toxinidir}/requirements.txt
    -cbounds.txt
    django3: Django<4  # old
    django4: Django>=4
    !py37: new
    pytest; python_version >= "3"
extras = web
dependency_groups = more
setenv =
    A = {env:A:one}
    py38: B = {envname}
    SECRET_TOKEN = abc
passenv = HOME
changedir = tests
commands =
    python -m pytest {posargs:--cov {toxinidir}} \\
        -x
[testenv:lint]
deps = flake8
commands = flake8
"""


def test_tox_environments_with_their_own_factors() -> None:
    found = [brief(job) for job in jobs({"tox.ini": TOX, "requirements.txt": "attrs", "bounds.txt": "six<2"})]
    assert [(job["source"], job["pythons"], job["requirements"]) for job in found] == [
        ("tox.ini: py37-django3", ("3.7",), ("mock", "Django<4", 'pytest; python_version >= "3"', "attrs")),
        ("tox.ini: py37-django4", ("3.7",), ("mock", "Django>=4", 'pytest; python_version >= "3"', "attrs")),
        ("tox.ini: py38-django3", ("3.8",), ("mock", "Django<4", "new", 'pytest; python_version >= "3"', "attrs")),
        ("tox.ini: py38-django4", ("3.8",), ("mock", "Django>=4", "new", 'pytest; python_version >= "3"', "attrs")),
    ]
    assert found[3]["env"] == {"A": "one", "B": "py38-django4"}
    assert (found[3]["extras"], found[3]["groups"], found[3]["constraints"]) == (("web",), ("more",), ("six<2",))
    assert "SECRET_TOKEN may be a secret and is left out" in found[3]["notes"]


@pytest.mark.parametrize(
    ("run", "requirements"),
    [
        ("tox -e py38-django4", ("django4",)),
        ("python -m tox run -e py-django3 -- -x", ("django3",)),
        ("TOXENV=py38-django3 tox", ("django3",)),
        ("tox -e $(echo py$V | tr -d .)", ("django4",)),
        ("tox", ("django4",)),
        ("tox -e lint", ("tox",)),
        ("make test", ("django3",)),
        ("nox -s tests", ("inner",)),
        ("bash ci/run.sh", ("script",)),
    ],
)
def test_what_a_job_starts_is_followed(run: str, requirements: tuple[str, ...]) -> None:
    files = {
        ".github/workflows/x.yml": f"""
        jobs:
          t:
            runs-on: ubuntu-latest
            steps:
              - uses: actions/setup-python@v5
                with: {{python-version: "3.8"}}
              - run: pip install tox
              - run: {run}
        """,
        "tox.ini": """
        [tox]
        envlist = py{37,38}-django{3,4},lint
        [testenv]
        deps =
            django3: django3
            django4: django4
        commands = pytest
        [testenv:lint]
        deps = flake8
        commands = flake8
        """,
        "Makefile": "test:\n\ttox -e py38-django3\n",
        "noxfile.py": "import nox\n@nox.session\ndef tests(s):\n    s.install('inner')\n    s.run('pytest')\n",
        "ci/run.sh": "#!/bin/bash\npip install script\npytest\n",
    }
    job = next(brief(job) for job in jobs(files) if job.source.startswith(".github"))
    installed = tuple(name for name in job.get("requirements", ()) if name != "tox" or requirements == ("tox",))
    assert installed == requirements
    assert job.get("tests", False) is (run != "tox -e lint")


def test_tox_in_toml_with_references() -> None:
    files = {
        "pyproject.toml": """
        [tool.tox]
        env_list = ["3.9", "lint"]
        [tool.tox.env_run_base]
        deps = ["pytest>=7", "mock"]
        extras = ["web"]
        set_env = {A = "1"}
        commands = [["pytest", {replace = "posargs", default = ["tests"], extend = true}]]
        [tool.tox.env.lint]
        deps = ["flake8"]
        commands = [["flake8"]]
        """
    }
    assert one(files) == {
        "source": "pyproject.toml: 3.9",
        "pythons": ("3.9",),
        "requirements": ("pytest>=7", "mock"),
        "extras": ("web",),
        "env": {"A": "1"},
        "tests": True,
    }


@pytest.mark.parametrize(
    ("run", "found"),
    [
        ("hatch run test:unit", {"requirements": ("pytest",), "extras": ("web",), "tests": True}),
        ("hatch run check", {"requirements": ("black",), "tests": False}),
        ("poe test", {"tests": True}),
        ("pdm run all", {"tests": True}),
        ("uv sync --group docs && uv run pytest", {"groups": ("docs", "dev"), "tests": True}),
        ("poetry install --without lint && poetry run pytest", {"groups": ("qa",), "tests": True}),
    ],
)
def test_tasks_of_pyproject(run: str, found: dict[str, object]) -> None:
    files = {
        ".github/workflows/x.yml": f"jobs: {{t: {{runs-on: ubuntu-latest, steps: [{{run: '{run}'}}]}}}}",
        "pyproject.toml": """
        [dependency-groups]
        dev = ["a"]
        docs = ["b"]
        [tool.hatch.envs.test]
        dependencies = ["pytest"]
        features = ["web"]
        [tool.hatch.envs.test.scripts]
        unit = "run-it"
        run-it = "pytest {args:tests}"
        [tool.hatch.envs.default]
        dependencies = ["black"]
        [tool.hatch.envs.default.scripts]
        check = "black ."
        [tool.poe.tasks]
        test = {sequence = [{cmd = "pytest"}]}
        [tool.pdm.scripts]
        all = {composite = ["one"]}
        one = "pytest -x"
        [tool.poetry.group.lint.dependencies]
        [tool.poetry.group.qa.dependencies]
        [tool.poetry.group.extra]
        optional = true
        """,
    }
    job = brief(jobs(files)[0])
    expected = {"tests": False, **found}
    if not expected["tests"]:
        job["tests"] = job.get("tests", False)
        expected.pop("requirements", None)
    assert {name: job.get(name) for name in expected} == expected


def test_readthedocs() -> None:
    files = {
        ".readthedocs.yaml": """
        version: 2
        build: {os: ubuntu-22.04, tools: {python: "3.11"}, apt_packages: [graphviz]}
        python:
          install:
            - requirements: docs/requirements.txt
            - {method: pip, path: ., extra_requirements: [docs]}
        """,
        "docs/requirements.txt": "sphinx",
    }
    assert one(files) == {
        "source": ".readthedocs.yaml",
        "pythons": ("3.11",),
        "system_packages": ("graphviz",),
        "requirements": ("sphinx",),
        "extras": ("docs",),
    }


def test_another_project_of_the_tree_stands_as_its_path() -> None:
    files = {
        ".github/workflows/x.yml": "jobs: {t: {steps: [{run: 'pip install -e ./plugins/a[x] ../outside && pytest'}]}}",
        "plugins/a/setup.py": "",
    }
    found = one(files)
    assert found["requirements"] == ("./plugins/a[x]",)
    assert "'../outside' is outside of the tree" in found["notes"]


def test_pythons_of_the_jobs_that_test_come_first() -> None:
    jobs_ = [Job(source="a", pythons=("3.8", "3.10"), tests=True), Job(source="b", pythons=("3.12",))]
    assert ci_pythons(jobs_) == ("3.10", "3.8")
    assert ci_pythons(jobs_[1:]) == ("3.12",)
    assert ci_pythons([]) == ()


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/a.yml",
        ".github/actions/x/action.yaml",
        ".travis.yml",
        ".circleci/config.yml",
        "azure-pipelines.yml",
        "ci/azure/posix.yml",
        ".gitlab-ci.yml",
        "Dockerfile",
        "docker/Dockerfile.test",
        "Makefile",
        "noxfile.py",
        "tox.ini",
        "tools/ci/install.sh",
        "scripts/test",
        "constraints/old.txt",
        ".readthedocs.yaml",
    ],
)
def test_paths_that_say_what_ci_does(path: str) -> None:
    assert is_ci(path)


@pytest.mark.parametrize(
    "path", ["src/a.py", "README.md", "tests/data/x", "a/b/c/d/e/f.sh", "docs/conf.yml", "LICENSE"]
)
def test_paths_that_do_not(path: str) -> None:
    assert not is_ci(path)
