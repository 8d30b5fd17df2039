"""The build front end that runs in boxes: what it asks, what it builds, and how it says that there is no hook."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from installers.hooks import NO_HOOK, PROGRAM, is_setuptools, unsatisfied

BACKEND = """
class Inner:
    @staticmethod
    def build_wheel(to, config=None, metadata=None):
        open(to + "/a-1-py3-none-any.whl", "w").close()
        return "a-1-py3-none-any.whl"

    @staticmethod
    def get_requires_for_build_wheel(config=None):
        return ["numpy", "cython>=3"]

inner = Inner()
"""


def front(folder: Path, *told: str) -> subprocess.CompletedProcess[str]:
    program = folder / "hooks.py"
    program.write_text(PROGRAM)
    (folder / "source/tools").mkdir(parents=True, exist_ok=True)
    (folder / "source/tools/own.py").write_text(BACKEND)
    command = [sys.executable, str(program), *told]
    return subprocess.run(command, cwd=folder / "source", capture_output=True, text=True)


def test_back_end_in_the_tree_is_asked_and_builds(tmp_path: Path) -> None:
    asked, built = tmp_path / "asked.json", tmp_path / "dist"
    assert front(tmp_path, "ask", "build_wheel", "own:inner", '["tools"]', str(asked)).returncode == 0
    assert json.loads(asked.read_text()) == ["cython>=3", "numpy"]
    assert front(tmp_path, "build", "build_wheel", "own:inner", '["tools"]', str(built)).returncode == 0
    assert json.loads((built / "built.json").read_text()) == "a-1-py3-none-any.whl"


def test_hook_that_is_not_there_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    told = ("build_editable", "own:inner", '["tools"]', str(tmp_path / "dist"))
    assert front(tmp_path, "build", *told).returncode == NO_HOOK


def test_back_end_without_the_hook_is_asked_what_it_needs_for_a_wheel(tmp_path: Path) -> None:
    asked = tmp_path / "asked.json"
    front(tmp_path, "ask", "build_editable", "own:inner", '["tools"]', str(asked))
    assert json.loads(asked.read_text()) == ["cython>=3", "numpy"]


def test_folder_of_the_program_is_not_importable(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("raise SystemExit('shadowed')")
    assert front(tmp_path, "ask", "build_wheel", "own:inner", '["tools"]', str(tmp_path / "a.json")).returncode == 0


def test_back_end_that_fails_is_a_failure_with_its_traceback(tmp_path: Path) -> None:
    ran = front(tmp_path, "build", "build_wheel", "nowhere", "[]", str(tmp_path / "dist"))
    assert (ran.returncode, "No module named 'nowhere'" in ran.stderr) == (1, True)


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        (["wheel"], ()),
        (["Wheel >= 0.30"], ()),
        (["wheel>=1"], ("wheel>=1",)),
        (["numpy", "numpy"], ("numpy",)),
        (["cffi; platform_python_implementation == 'PyPy'"], ()),
        ([7, None, "-r /etc/passwd", ""], ()),
    ],
)
def test_what_a_back_end_asks_for_and_does_not_have(asked: list[object], missing: tuple[str, ...]) -> None:
    assert unsatisfied(asked, {"wheel": "0.40.0", "numpy-x": "1"}, "3.7") == missing


def test_markers_are_those_of_the_box() -> None:
    assert unsatisfied(["numpy; python_version < '3.8'"], {}, "3.8") == ()
    assert unsatisfied(["numpy; python_version < '3.8'"], {}, "3.7") == ('numpy; python_version < "3.8"',)
    assert unsatisfied(["x; python_version >= '3.10'"], {}, "3.9") == ()


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("setuptools.build_meta", True),
        ("setuptools.build_meta:__legacy__", True),
        ("setuptools", True),
        ("setuptools_scm.build", False),
        ("setuptoolsx", False),
        ("backend", False),
    ],
)
def test_setuptools_is_known_by_its_module(backend: str, expected: bool) -> None:
    assert is_setuptools(backend) is expected
