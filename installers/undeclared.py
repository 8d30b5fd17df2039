"""What old source distributions need to be built and do not say: known by the module that their set-up script lacks.

Only what set-up scripts are known to import is looked for. A distribution whose build lacks anything else is left to
the rules of repair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

MODULES = {
    # module -> what to ask for; why a set-up script imports it
    "attr": "attrs",  # classes of its own commands
    "cffi": "cffi",  # bindings made while it builds
    "Cython": "cython",  # translates .pyx files
    "jinja2": "jinja2",  # renders sources
    "numpy": "numpy",  # compiles against its headers
    "packaging": "packaging",  # compares versions
    "pip": "pip",  # reads requirements files with it: pip as of the date has the functions of the date
    "pkg_resources": "setuptools<81",  # gone with setuptools 82, warned of since 81
    "pkgconfig": "pkgconfig",  # finds libraries
    "pybind11": "pybind11",  # compiles against its headers
    "pythran": "pythran",  # translates Python to C++
    "scipy": "scipy",  # compiles against its headers
    "setuptools": "setuptools",  # beside another back end
    "setuptools_scm": "setuptools-scm",  # asks git for the version
    "six": "six",  # runs on Python 2 too
    "toml": "toml",  # reads its configuration
    "wheel": "wheel",  # a command class derives from bdist_wheel
    "yaml": "pyyaml",  # reads its configuration
}

_FAILED = re.compile(r"Failed to build `([A-Za-z0-9][\w.-]*)(?:==| @ )")
_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)'?")


def lacking(text: str) -> str | None:
    """Return what the build that printed a text needs and has not asked for, None where that is not known."""
    names = _MODULE.findall(text)
    return MODULES.get(names[-1].partition(".")[0]) if names else None


def lacking_of(text: str) -> tuple[str, str] | None:
    """Return the package that uv could not build and what its build needs, None where that is not known."""
    failed, needed = _FAILED.findall(text), lacking(text)
    return (canonicalize_name(failed[-1]), needed) if failed and needed else None


def same_numpy(requirements: Iterable[str], packages: Mapping[str, str]) -> tuple[str, ...]:
    """Return the bound by which an extension is compiled against the numpy that it will run with.

    An extension does not load with a numpy whose binary interface is older than that of its build (NumPy reference,
    "For downstream package authors"). What asks for the oldest numpy of each Python has taken care of that itself.
    """
    names = {canonicalize_name(Requirement(text).name) for text in requirements}
    if "numpy" not in names or "oldest-supported-numpy" in names or "numpy" not in packages:
        return ()
    return (f"numpy=={packages['numpy']}",)
