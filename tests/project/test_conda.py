"""Conda environments and recipes, translated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.project.conda import read_conda


def conda(text, path="environment.yml", **files):
    tree = {path: text.encode(), **{name.replace("__", "."): body.encode() for name, body in files.items()}}
    found = read_conda(tree, path)
    group = found.groups[0] if found.groups else None
    return found, [item.text for item in group.requirements] if group else []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("numpy", "numpy"),
        ("numpy=1.18", "numpy==1.18.*"),
        ("numpy==1.18.1", "numpy==1.18.1"),
        ("numpy>=1.18,<2", "numpy>=1.18,<2"),
        ("numpy >= 1.18, < 2", "numpy>=1.18,<2"),
        ("numpy 1.18.*", "numpy==1.18.*"),
        ("numpy 1.18 py_0", "numpy==1.18"),
        ("numpy=1.18=py38_0", "numpy==1.18.*"),
        ("conda-forge::numpy>1", "numpy>1"),
        ("numpy>=1|<2", "numpy"),
        ("pytorch", "torch"),
        ("matplotlib-base", "matplotlib"),
    ],
)
def test_specifications(spec, expected):
    assert conda(f"dependencies:\n  - {spec}\n")[1] == [expected]


def test_what_is_no_python_package():
    found, requirements = conda(
        "dependencies:\n  - python=3.8\n  - pip\n  - graphviz\n  - libgdal\n  - libcst\n  - libfoo\n  - gcc_linux-64\n"
    )
    assert requirements == ["libcst"]
    assert found.groups[0].system_packages == ("graphviz", "libgdal-dev")
    assert [hint.version for hint in found.pythons] == ["3.8"]
    assert found.notes == ("environment.yml: libfoo is no Python package and is left out",)


def test_pip_and_its_files():
    _, requirements = conda(
        "dependencies:\n  - pip:\n    - a>=1\n    - -r req.txt\n    - git+https://example.org/x\n", req__txt="b\n"
    )
    assert requirements == ["a>=1", "b", "git+https://example.org/x"]


def test_lines_for_other_systems():
    text = "dependencies:\n  - a  # [win]\n  - b  # [not win]\n  - c  # [osx]\n  - d  # [linux]\n  - e  # [unix]\n"
    assert conda(text)[1] == ["b", "d", "e"]


def test_recipe_with_templates():
    text = (
        "{% set version = '1' %}\npackage:\n  name: demo\n  version: {{ version }}\nrequirements:\n"
        "  host:\n    - cython\n  run:\n    - python >=3.6\n    - {{ pin_compatible('numpy') }}\n    - six\n"
        "test:\n  requires:\n    - pytest\n"
    )
    assert conda(text, path="conda/meta.yaml")[1] == ["numpy", "six", "pytest"]


def test_what_is_no_conda_file():
    assert conda("- a\n- b\n")[0].groups == ()
    assert conda("dependencies: 3\n")[0].groups == ()
    assert "not valid YAML" in conda("a: [\n")[0].notes[0]
    assert "too many" in conda("#" * 300_000)[0].notes[0]


def test_aliases_without_end_cost_nothing():
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert conda(f"{bomb}dependencies:\n  - six\n")[1] == ["six"]


@given(st.text(alphabet="abc:-[]{}&*#%\n =<>1.|'\"", max_size=120))
def test_any_text_is_read_without_an_error(text):
    conda("dependencies:\n  - " + text)
