"""What old source distributions need to be built and do not say."""

from __future__ import annotations

import pytest

from installers.undeclared import lacking, lacking_of, same_numpy

UV = """\
error: Failed to build `Lap_X==0.4.0`
  cause: The build backend returned an error
  cause: Call to `setuptools.build_meta:__legacy__.prepare_metadata_for_build_wheel` failed (exit status: 1)

         [stderr]
         Traceback (most recent call last):
           File "<string>", line 127, in get_numpy_status
         {error}
"""


@pytest.mark.parametrize(
    ("error", "needed"),
    [
        ("ModuleNotFoundError: No module named 'numpy'", "numpy"),
        ("ModuleNotFoundError: No module named 'numpy.distutils.core'", "numpy"),
        ("ModuleNotFoundError: No module named 'Cython'", "cython"),
        ("ImportError: No module named Cython.Build", "cython"),
        ("ModuleNotFoundError: No module named 'pkg_resources'", "setuptools<81"),
        ("ModuleNotFoundError: No module named 'torch'", None),
        ("error: command 'gcc' failed: No such file or directory", None),
    ],
)
def test_module_that_a_set_up_script_lacks(error: str, needed: str | None) -> None:
    assert lacking(error) == needed
    assert lacking_of(UV.format(error=error)) == (None if needed is None else ("lap-x", needed))


def test_last_of_several_modules_is_the_one_that_ended_the_build() -> None:
    text = "ModuleNotFoundError: No module named 'Cython'\nhandled\nModuleNotFoundError: No module named 'numpy'\n"
    assert lacking(text) == "numpy"


def test_failure_that_names_no_package_is_no_bodys() -> None:
    assert lacking_of("ModuleNotFoundError: No module named 'numpy'") is None


@pytest.mark.parametrize(
    ("requirements", "packages", "bound"),
    [
        (["setuptools", "NumPy>=1.10"], {"numpy": "1.16.4"}, ("numpy==1.16.4",)),
        (["numpy", "oldest-supported-numpy"], {"numpy": "1.16.4"}, ()),
        (["setuptools"], {"numpy": "1.16.4"}, ()),
        (["numpy"], {"scipy": "1.0"}, ()),
    ],
)
def test_extension_is_compiled_against_the_numpy_that_it_will_run_with(
    requirements: list[str], packages: dict[str, str], bound: tuple[str, ...]
) -> None:
    assert same_numpy(requirements, packages) == bound
