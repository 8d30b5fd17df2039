"""The script that installs a project offline, and the pip that it does it with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from bench import recipe_of
from hypothesis import given
from hypothesis import strategies as st

from installers.boxes import wants_network
from installers.rebuild import build_requirements, rebuild_script
from miner.core.records import BuildMode
from miner.sandbox.interface import ExecResult

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)


def script(mode: BuildMode = BuildMode.EDITABLE, **changes) -> str:
    plain = {"python": "3.8", "project_dir": "", "build_env": {}, "backend": "setuptools.build_meta"}
    return rebuild_script(mode=mode, **{**plain, **changes})


@pytest.mark.parametrize("mode", [BuildMode.EDITABLE, BuildMode.NORMAL, BuildMode.COMPILED])
@given(folder=TEXT, value=TEXT, backend=TEXT)
def test_every_script_is_a_program_of_bash_whatever_a_project_says(
    mode: BuildMode, folder: str, value: str, backend: str
) -> None:
    text = script(mode, project_dir=folder, build_env={"X": value}, backend=backend, backend_path=(value,))
    assert subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True).stderr == b""
    assert "\nset -euo pipefail\n" in text


@given(value=TEXT)
def test_variables_reach_the_build_as_they_are(value: str) -> None:
    line = next(line for line in script(build_env={"X": value}).splitlines() if line.startswith("export X="))
    ran = subprocess.run(["bash", "-c", f'{line}\nprintf %s "$X"'], capture_output=True, check=True)
    assert ran.stdout == value.encode()


def test_only_a_copy_is_built_outside_of_the_tree() -> None:
    assert "cp -a /testbed" in script(BuildMode.NORMAL)
    for mode in (BuildMode.EDITABLE, BuildMode.COMPILED):
        assert "cp -a" not in script(mode)
        assert "\ncd /testbed/py\n" in script(mode, project_dir="py")


def test_program_that_is_started_does_not_wait_for_an_index_that_is_not_there() -> None:
    assert "export PIP_NO_INDEX=1\n" in script()
    assert "NO_INDEX" not in script(online=True)


def test_only_setuptools_is_linked_without_its_hook() -> None:
    assert "develop" in script()
    assert "develop" not in script(backend="flit_core.buildapi")
    assert "develop" not in script(BuildMode.NORMAL)


def fake(folder: Path, code: int) -> str:
    """Return a script whose interpreters are our own: the front end ends with a code, the others say what they do."""
    for path, text in {
        "build/bin/python": f'mkdir -p "${{@: -1}}"; touch "${{@: -1}}/a.whl"; exit {code}',
        "env/bin/python": 'echo "ran: $(basename "$1") $2"',
    }.items():
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(f"#!/bin/bash\n{text}\n")
        (folder / path).chmod(0o755)
    return script().replace("/opt/", f"{folder}/").replace("cd /testbed", "cd /")


@pytest.mark.parametrize(
    ("code", "said", "ended"), [(0, "ran: offline.py install", 0), (3, "ran: offline.py develop", 0)]
)
def test_exit_code_of_the_front_end_says_how_to_go_on(code: int, said: str, ended: int, tmp_path: Path) -> None:
    ran = subprocess.run(["bash", "-c", fake(tmp_path, code)], capture_output=True, text=True)
    assert (ran.stdout.strip(), ran.returncode) == (said, ended), ran.stderr


@pytest.mark.parametrize("code", [1, 2, 77])
def test_failure_of_the_front_end_is_that_of_the_script(code: int, tmp_path: Path) -> None:
    ran = subprocess.run(["bash", "-c", fake(tmp_path, code)], capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == ("", code)


@pytest.mark.parametrize(
    ("mode", "backend", "expected"),
    [
        (BuildMode.EDITABLE, "setuptools.build_meta", ("x", "wheel")),
        (BuildMode.COMPILED, "mesonpy", ("x",)),
        (BuildMode.NORMAL, "setuptools.build_meta:__legacy__", ("x", "wheel")),
        (BuildMode.NONE, "setuptools.build_meta", ()),
    ],
)
def test_what_is_locked_for_a_build(mode: BuildMode, backend: str, expected: tuple[str, ...]) -> None:
    assert build_requirements(recipe_of(build_requirements=("x",), build_backend=backend), mode) == expected


@pytest.mark.parametrize(
    ("said", "wants"),
    [
        ("urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", True),
        ("ERROR: No matching distribution found for numpy", True),
        ("distutils.errors.DistutilsError: Could not find suitable distribution for Requirement.parse('x')", True),
        ("ModuleNotFoundError: No module named 'numpy'", False),
        ("fatal error: Python.h: No such file or directory", False),
    ],
)
def test_build_that_wants_the_network_says_so(said: str, wants: bool) -> None:
    assert wants_network(ExecResult(1, said.encode(), truncated=False, duration_s=1.0)) is wants
    assert not wants_network(ExecResult(0, said.encode(), truncated=False, duration_s=1.0))
