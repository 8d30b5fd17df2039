"""Which distributions are tools for people, which change what pytest does, and which are there for tests alone."""

from __future__ import annotations

from collections.abc import Mapping

from miner.project.text import words

_LINTER = "checks style"
_TYPES = "checks types"
_DOCS = "builds documentation"
_COVERAGE = "measures coverage"
_RELEASE = "builds and publishes releases"
_WORKFLOW = "runs other tools"
_CONSOLE = "is for a person at a terminal"

# Tools that come with development groups and that no test imports; a test group that lists one of them keeps it.
TOOLS: Mapping[str, str] = {
    **dict.fromkeys(
        ("black", "flake8", "pylint", "ruff", "isort", "autopep8", "yapf", "pycodestyle", "pydocstyle"), _LINTER
    ),
    **dict.fromkeys(
        ("bandit", "codespell", "interrogate", "pyupgrade", "vulture", "autoflake", "blacken-docs"), _LINTER
    ),
    **dict.fromkeys(("darglint", "docformatter", "check-manifest", "pyroma", "safety", "pip-audit", "doc8"), _LINTER),
    **dict.fromkeys(("mypy", "pyright", "basedpyright", "pytype", "pyre-check", "typeguard-stubs"), _TYPES),
    **dict.fromkeys(
        ("sphinx", "furo", "mkdocs", "mkdocs-material", "mkdocstrings", "pdoc", "pdoc3", "myst-parser"), _DOCS
    ),
    **dict.fromkeys(("numpydoc", "towncrier", "rstcheck", "recommonmark", "nbsphinx", "mdformat"), _DOCS),
    **dict.fromkeys(("coverage", "pytest-cov", "codecov", "coveralls", "codacy-coverage", "diff-cover"), _COVERAGE),
    **dict.fromkeys(("build", "twine", "bump2version", "bumpversion", "bump-my-version", "zest-releaser"), _RELEASE),
    **dict.fromkeys(
        ("commitizen", "python-semantic-release", "git-changelog", "hatch", "flit", "poetry", "pdm"), _RELEASE
    ),
    **dict.fromkeys(
        ("tox", "tox-gh-actions", "tox-uv", "nox", "pre-commit", "invoke", "duty", "poethepoet"), _WORKFLOW
    ),
    **dict.fromkeys(("pip-tools", "pip-compile-multi", "pyinstaller", "pyperf", "asv"), _WORKFLOW),
    **dict.fromkeys(
        ("ipython", "ipdb", "jupyter", "jupyterlab", "notebook", "bpython", "pudb", "pytest-sugar"), _CONSOLE
    ),
}
# What tests import beside the project, or run with; anything else of a development group may be a tool.
TESTING = words(
    """
    aioresponses asynctest ddt factory-boy faker fakeredis flaky freezegun httpretty hypothesis mock mocket moto nose
    nose2 parameterized pretend psutil pyfakefs pyhamcrest pytest requests-mock responses respx sure syrupy testfixtures
    testpath testscenarios testtools time-machine trustme twisted typeguard unittest2 vcrpy webtest scripttest six toml
    tomli inline-snapshot dirty-equals
    """
)
# What is left out wherever it is asked for: plug-ins that change what pytest collects, in which order or how it prints,
# and what sends coverage away (codecov was deleted from the index once, so that old dates do not have it).
_LINT_PLUGIN = "adds checks of style to the tests"
PLUGINS: Mapping[str, str] = {
    **dict.fromkeys(("pytest-enabler", "pytest-ruff", "pytest-mypy", "pytest-checkdocs", "pytest-black"), _LINT_PLUGIN),
    **dict.fromkeys(("pytest-black-multipy", "pytest-flake8", "pytest-pylint", "pytest-isort"), _LINT_PLUGIN),
    **dict.fromkeys(("pytest-pycodestyle", "pytest-codestyle", "pytest-pydocstyle", "pytest-flakes"), _LINT_PLUGIN),
    **dict.fromkeys(("pytest-perf", "pytest-pep8"), _LINT_PLUGIN),
    **dict.fromkeys(("codecov", "coveralls", "python-coveralls", "codacy-coverage"), "sends coverage away"),
    **dict.fromkeys(("pytest-sugar", "pytest-instafail"), "changes the output only"),
    **dict.fromkeys(("pytest-randomly", "pytest-random-order", "pytest-reverse"), "changes the order of the tests"),
}
TOOL_PREFIXES = (
    ("sphinx-", _DOCS),
    ("sphinxcontrib-", _DOCS),
    ("mkdocs-", _DOCS),
    ("flake8-", _LINTER),
    ("types-", _TYPES),
)


def is_for_testing(name: str) -> bool:
    """Whether a distribution is there for tests alone."""
    return name in TESTING or name.startswith("pytest-")
