"""The Dockerfile that documents an environment."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installers.dockerfile import render_dockerfile
from miner.core.records import BuildMode, Recipe

GOLDEN = Path(__file__).parent / "golden"
BASE = "sha256:" + "1" * 64
RECIPE = Recipe(
    python="3.11",
    requirements=("attrs>=22", "pytest"),
    build_requirements=("setuptools>=61", "setuptools-scm"),
    build_backend="setuptools.build_meta",
    project_dir="python lib",
    distribution="demo",
    version_hint="1.2",
    build_env={"SETUPTOOLS_SCM_PRETEND_VERSION": "1.2", "LABEL": 'it\'s "$HOME"'},
    sources=("attrs>=22 <- pyproject.toml: project.dependencies", "pytest <- always: what runs the tests"),
    notes=("tox.ini: testenv: 'cov: coverage' is for another environment",),
)
CASES = {
    "editable": {"recipe": RECIPE, "mode": BuildMode.EDITABLE, "build_lock": "setuptools==68.0\n"},
    "normal": {
        "recipe": RECIPE,
        "mode": BuildMode.NORMAL,
        "build_lock": "setuptools==68.0\n",
        "rebuild_cmd": "/opt/build/reinstall",
    },
    "compiled": {
        "recipe": RECIPE.model_copy(
            update={
                "compiled": True,
                "system_packages": ("libpq-dev",),
                "constraints": ("numpy<2",),
                "overrides": ("six==1.16",),
                "build_constraints": ("cython<3",),
                "exempt": ("atomicwrites",),
                "env": {"LABEL": 'it\'s "$HOME" \\', "A": "1"},
            }
        ),
        "mode": BuildMode.COMPILED,
        "build_lock": "setuptools==68.0\n",
        "rebuild_cmd": "/opt/build/reinstall",
    },
    "none": {"recipe": Recipe(python="3.11", build_backend="", modes=(BuildMode.NONE,)), "mode": BuildMode.NONE},
}


def render(case, **changes):
    arguments = {"lock": "attrs==23.1\n", "base_digest": BASE, **CASES[case], **changes}
    return render_dockerfile(arguments.pop("recipe"), **arguments)


@pytest.mark.parametrize("case", CASES)
def test_golden(case):
    file = GOLDEN / f"{case}.Dockerfile"
    if "UPDATE_GOLDEN" in os.environ:
        file.write_text(render(case))
    assert render(case) == file.read_text()


def runs(text):
    """Return the shell commands of the RUN lines."""
    joined = re.sub(r"\\\n", "", text)
    return [line.removeprefix("RUN ") for line in joined.splitlines() if line.startswith("RUN ")]


def test_values_reach_the_build_as_they_are():
    command = next(line for line in runs(render("editable")) if "--editable" in line)
    script = 'uv() { printf "%s\\n" "$LABEL" "$@"; }\n' + command
    output = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
    assert output[0] == 'it\'s "$HOME"'
    assert output[-2:] == ["--editable", "/testbed/python lib"]


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_no_text_of_the_project_becomes_an_instruction(name, source, note):
    recipe = RECIPE.model_copy(update={"distribution": name, "sources": (source,), "notes": (note,)})
    plain = RECIPE.model_copy(update={"distribution": "", "sources": ("",), "notes": ("",)})
    written, expected = render("editable", recipe=recipe).splitlines(), render("editable", recipe=plain).splitlines()
    assert [line for line in written if not line.startswith("#")] == [
        line for line in expected if not line.startswith("#")
    ]
    assert len(written) == len(expected)


@given(st.text(max_size=20))
def test_a_variable_is_quoted_or_refused(value):
    recipe = RECIPE.model_copy(update={"build_env": {"X": value}})
    if not value.isprintable():
        with pytest.raises(ValueError, match="does not fit on one line"):
            render("editable", recipe=recipe)
        return
    command = next(line for line in runs(render("editable", recipe=recipe)) if "--editable" in line)
    assert shlex.split(command)[0] == f"X={value}"


def test_a_base_that_is_no_reference_is_refused():
    with pytest.raises(ValueError, match="no image reference"):
        render("none", base_digest="x\nRUN evil")


@pytest.mark.parametrize("case", ["normal", "compiled"])
def test_what_is_built_again_needs_its_rebuild_command(case):
    with pytest.raises(ValueError, match="rebuild"):
        render(case, rebuild_cmd=None)


def test_variable_of_the_image_is_quoted_for_its_instruction():
    assert 'ENV LABEL="it\'s \\"\\$HOME\\" \\\\"\n' in render("compiled")


@pytest.mark.parametrize("env", [{"A": "1\nRUN evil"}, {"A\nRUN evil": "1"}, {"A B": "1"}])
def test_variable_of_the_image_that_does_not_fit_is_refused(env):
    recipe = RECIPE.model_copy(update={"env": env})
    with pytest.raises(ValueError, match=r"does not fit|no image reference"):
        render("editable", recipe=recipe)
