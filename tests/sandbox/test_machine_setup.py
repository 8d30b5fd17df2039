from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "configs" / "machine-setup.sh"


def run_script(tools: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    path = os.environ["PATH"] if tools is None else f"{tools}:{os.environ['PATH']}"
    environ = {**os.environ, "PYTHON": sys.executable, "PATH": path, **environ}
    return subprocess.run(["bash", SCRIPT], env=environ, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture
def nobody(tmp_path: Path) -> Path:
    """A PATH entry that makes the script think that it does not run as root."""
    tool = tmp_path / "id"
    tool.write_text("#!/bin/sh\necho 1000\n")
    tool.chmod(0o755)
    return tmp_path


def test_engine_elsewhere_that_does_not_answer_is_named_and_nothing_is_installed(nobody: Path) -> None:
    done = run_script(nobody, SWE_MINER_DOCKER__HOST="tcp://127.0.0.1:1")
    assert done.returncode == 7
    assert "tcp://127.0.0.1:1 does not answer" in done.stderr
    assert "installing" not in done.stderr


def test_wrong_setting_is_reported_as_such_not_as_a_missing_engine(nobody: Path) -> None:
    done = run_script(nobody, SWE_MINER_DOCKER__HOSTT="x")
    assert done.returncode == 1
    assert "docker.hostt: unknown key" in done.stderr


def test_without_the_environment_of_the_project_the_next_step_is_named(nobody: Path) -> None:
    done = run_script(nobody, PYTHON="/nonexistent/python")
    assert done.returncode == 11
    assert "make setup" in done.stderr


@pytest.mark.docker
def test_where_an_engine_answers_nothing_is_done() -> None:
    done = run_script()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
