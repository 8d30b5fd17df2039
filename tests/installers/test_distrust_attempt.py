"""A written recipe whose build rewrites what runs the tests, in real containers: the attempt is void."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench import OWN_PYTHON, Known, case_of

from installers.attempt import attempt
from installers.health import TestSide
from installers.interface import Attempt, Help, Memory, Proposal
from installers.workshop import Workshop
from miner.core.reasons import Reason
from miner.core.records import BuildMode

RUNNER = "/opt/env/lib/python3.11/site-packages/_pytest/runner.py"
SETUP = f"""\
import os
from setuptools import setup

setup(name="demo", version="1.0", packages=["demo"], package_dir={{"": "src"}})
if os.path.exists("{RUNNER}") and os.environ.get("DEMO_QUIET"):
    with open("{RUNNER}", "a") as file:
        file.write("def pytest_runtest_call(item): pass\\n")
"""
PROJECT = {
    "setup.py": SETUP,
    "src/demo/__init__.py": "answer = 41\n",
    "tests/test_demo.py": "import demo\n\ndef test_a():\n    assert demo.answer == 42\n\ndef test_b():\n    pass\n",
}


@pytest.mark.docker
@pytest.mark.index
@pytest.mark.parametrize("mode", [BuildMode.EDITABLE, BuildMode.NORMAL])
def test_build_that_rewrites_the_runner_voids_the_attempt(mode: BuildMode, workshop: Workshop, tmp_path: Path) -> None:
    case = case_of(
        PROJECT,
        tmp_path,
        {},
        requirements=("pytest",),
        build_requirements=("setuptools",),
        build_backend="setuptools.build_meta",
        backend_path=(),
        modes=(mode,),
    )
    case = replace(case, side=TestSide(("tests/test_demo.py",), b"", b""))
    help_ = Help(workshop=workshop, memo=Known().memo(), memory=Memory(), pythons=(OWN_PYTHON,), pack=case.pack)

    def tried(past: tuple[Attempt, ...], **fields: object) -> Attempt:
        recipe = case.recipe.model_copy(update=fields)
        return attempt(help_, case, Proposal(recipe=recipe, written=bool(past)), rung="structured", past=past)

    declared = tried(())
    assert (declared.outcome, declared.share) == ("ok", 0.5), declared.detail
    harmless = tried((declared,), constraints=("iniconfig<3",))
    assert (harmless.outcome, harmless.share) == ("ok", 0.5), harmless.detail
    void = tried((declared, harmless), build_env={"DEMO_QUIET": "1"})
    assert void.outcome == Reason.MODEL_WEAKENS_TESTS
    assert "_pytest/runner.py was another one" in void.detail
