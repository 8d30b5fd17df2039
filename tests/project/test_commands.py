from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.project.commands import Meaning, meaning
from miner.project.installs import Installs
from miner.project.shell import Command, Shell


class _Tree:
    def __init__(self) -> None:
        self.found: list[Meaning] = []

    def exists(self, path: str) -> bool | None:
        return None

    def script(self, path: str) -> str | None:
        return None

    def command(self, command: Command, shell: Shell) -> None:
        self.found.append(meaning(command.words))


def read(text: str) -> Meaning:
    tree = _Tree()
    Shell(tree).run(text)
    return tree.found[0]


def installs(text: str) -> dict[str, tuple[str, ...]]:
    return {name: held for name, held in vars(read(text).installs).items() if held}


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("pip install -U 'a>=1,<2' b[c]", {"requirements": ("a>=1,<2", "b[c]")}),
        ("pip3 install -Ur r.txt -c c.txt", {"files": ("r.txt",), "constraints": ("c.txt",)}),
        ("pip install -rr.txt --requirement=s.txt", {"files": ("r.txt", "s.txt")}),
        ("sudo -H python3.8 -m pip install a", {"requirements": ("a",)}),
        ("pip install -e .[dev,test]", {"projects": (".[dev,test]",)}),
        ("pip install --no-deps . ./sub", {"projects": (".", "./sub")}),
        ("pip install dist/*.whl", {"projects": (".",)}),
        ("pip install $(ls dist/*.whl)[test]", {"projects": (".",)}),
        ("pip install git+https://x.invalid/a@b#egg=c", {"requirements": ("git+https://x.invalid/a@b#egg=c",)}),
        ("pip install --no-binary :all: --find-links x a", {"requirements": ("a",)}),
        ("pip install --group test", {"groups": ("test",)}),
        ("python -m pip --quiet install a", {"requirements": ("a",)}),
        ("pip download a", {}),
        ("uv pip install --system -r pyproject.toml --extra t", {"projects": (".",), "extras": ("t",)}),
        (
            "uv sync --extra a --group b --no-group c",
            {"defaults": ("uv",), "extras": ("a",), "groups": ("b",), "without": ("c",)},
        ),
        ("uv sync --all-groups --no-dev", {"defaults": ("uv",), "everything": ("groups",), "without": ("dev",)}),
        (
            "uv run --with 'a,b>=1' --python 3.9 pytest",
            {"defaults": ("uv",), "requirements": ("a", "b>=1"), "pythons": ("3.9",)},
        ),
        ("uvx --with tox-uv tox", {"requirements": ("tox-uv",)}),
        (
            "poetry install -E 'a b' --with c,d --without e",
            {"defaults": ("poetry",), "extras": ("a", "b"), "groups": ("c", "d"), "without": ("e",)},
        ),
        ("pdm install -G test", {"defaults": ("pdm",), "groups": ("test",)}),
        ("pipenv install --dev", {"groups": ("packages", "dev-packages")}),
        ("pipenv install a", {"requirements": ("a",)}),
        ("conda install -y -c x python=3.6 numpy=1.1 'b>=2'", {"pythons": ("3.6",), "conda": ("numpy=1.1", "b>=2")}),
        ("conda env update -n x --file ci/e.yml", {"conda_files": ("ci/e.yml",)}),
        ("mamba create -n x --file r.txt", {"files": ("r.txt",)}),
        ("sudo apt-get install -y --no-install-recommends a-b=1.0 cc:i386", {"system_packages": ("a-b", "cc")}),
        ("sudo apt-get -yq install a2", {"system_packages": ("a2",)}),
        ("apt-get update", {}),
        ("apk add gcc", {}),
        ("brew install x", {}),
        ("python setup.py develop", {"projects": (".",)}),
        ("easy_install a", {"requirements": ("a",)}),
        ("pip-sync a.txt b.txt", {"files": ("a.txt", "b.txt")}),
    ],
)
def test_what_a_command_installs(command: str, found: dict[str, tuple[str, ...]]) -> None:
    assert installs(command) == found


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q tests",
        "py.test",
        "python -m pytest",
        "python -W error -bb -m unittest discover",
        "coverage run --source x -m pytest",
        "coverage run setup.py test",
        "xvfb-run -a -s '-screen 0' nosetests",
        "env A=1 timeout 60 pytest",
        "poetry run pytest",
        "uv run --frozen -m pytest",
        "conda run -n x pytest",
        "python setup.py nosetests",
        "python tests/runtests.py",
        "python manage.py test app",
        "python -m tornado.test.runtests",
        "python -c 'import numpy; numpy.test()'",
        "travis_retry nose2",
        "travis_wait 30 trial x",
        "$PYTHON -m pytest",
        "hatch run test:cov",
        "make test",
        "tox -e py38",
        "./scripts/test",
    ],
)
def test_commands_that_test(command: str) -> None:
    assert read(command).tests


@pytest.mark.parametrize(
    "command",
    [
        "pytest --version",
        "make docs",
        "pip install pytest",
        "python setup.py sdist",
        "flake8 tests",
        "mypy test.py",
        "hatch build",
        "echo pytest ; ls",
    ],
)
def test_commands_that_do_not(command: str) -> None:
    assert not read(command).tests


@given(
    st.lists(st.from_regex(r"[a-z]{1,8}(\[[a-z]{1,4}\])?(>=[1-9](\.[0-9])?)?", fullmatch=True), max_size=5),
    st.sampled_from(["", "-U ", "-q --pre "]),
)
def test_requirements_come_back_as_they_are_written(requirements: list[str], options: str) -> None:
    line = f"pip install {options}" + " ".join(f"'{one}'" for one in requirements)
    assert read(line).installs == Installs(requirements=tuple(requirements))
