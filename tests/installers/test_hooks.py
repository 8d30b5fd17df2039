"""The program that builds and installs in boxes: what it asks, builds and installs, and how it says what it cannot."""

from __future__ import annotations

import ast
import base64
import csv
import hashlib
import json
import subprocess
import sys
import venv
import zipfile
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
    program = folder / "offline.py"
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


WHEEL = {
    "demo/__init__.py": "answer = 42\n",
    "demo/more.py": "",
    "Demo_Pkg-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: Demo-Pkg\nVersion: 1.0\n",
    "Demo_Pkg-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "Demo_Pkg-1.0.dist-info/entry_points.txt": "[console_scripts]\nsay = demo.cli:Main.run [extra]\n\n[x]\nA = b:c\n",
    "Demo_Pkg-1.0.dist-info/RECORD": "",
    "Demo_Pkg-1.0.data/scripts/tool": "#!python\nprint('tool')\n",
    "Demo_Pkg-1.0.data/data/share/demo.txt": "text",
    "Demo_Pkg-1.0.data/headers/demo.h": "",
    "Demo_Pkg-1.0.data/purelib/extra.py": "",
    "demo/cli.py": "class Main:\n    @staticmethod\n    def run():\n        print('said')\n",
}


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of a fresh environment."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    return tmp_path / "env/bin/python"


def install(python: Path, files: dict[str, str]) -> Path:
    """Install a wheel of these files, and return where packages lie."""
    folder = python.parents[2] / "wheels"
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "demo_pkg-1.0-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    program = python.parents[2] / "offline.py"
    program.write_text(PROGRAM)
    subprocess.run([str(python), str(program), "install", str(folder)], check=True)
    return next(python.parents[1].glob("lib/python3*/site-packages"))


def said(python: Path, *command: str) -> str:
    return subprocess.run([str(python.parent / command[0]), *command[1:]], capture_output=True, text=True).stdout


def test_wheel_is_installed_with_all_that_it_may_hold(python: Path) -> None:
    site = install(python, WHEEL)
    assert said(python, "python", "-c", "import demo, extra; print(demo.answer)") == "42\n"
    assert (said(python, "say"), said(python, "tool")) == ("said\n", "tool\n")
    assert (python.parents[1] / "share/demo.txt").read_text() == "text"
    code = "import importlib.metadata as m; d = m.distribution('demo-pkg'); print(d.version, len(d.files))"
    assert said(python, "python", "-c", code) == "1.0 13\n"
    rows = list(csv.reader((site / "Demo_Pkg-1.0.dist-info/RECORD").read_text().splitlines()))
    for name, digest, size in rows[:-1]:
        data = (site / name).read_bytes()
        found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        assert (digest, size) == (f"sha256={found}", str(len(data)))


def test_wheel_takes_the_place_of_another_version_spelt_otherwise(python: Path) -> None:
    site = install(python, WHEEL)
    newer = {name.replace("Demo_Pkg-1.0", "demo.pkg-2.0"): text for name, text in WHEEL.items() if "more" not in name}
    install(python, newer)
    assert not (site / "demo/more.py").exists()
    assert [path.name for path in site.glob("*.dist-info")] == ["demo.pkg-2.0.dist-info"]


def test_record_that_leads_out_of_the_environment_removes_nothing_there(python: Path, tmp_path: Path) -> None:
    site = install(python, WHEEL)
    (tmp_path / "precious").write_text("x")
    record = site / "Demo_Pkg-1.0.dist-info/RECORD"
    record.write_text(record.read_text() + "../../../../precious,,\n/etc/hostname-that-is-not,,\n")
    install(python, WHEEL)
    assert (tmp_path / "precious").exists()


def test_program_is_one_that_python_3_6_reads() -> None:
    ast.parse(PROGRAM, feature_version=(3, 6))
