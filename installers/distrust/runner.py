"""What runs the tests: pytest, and every distribution that any version of it stands on."""

from __future__ import annotations

RUNNER: dict[str, tuple[str, ...]] = {
    # distribution: modules that it provides
    "pytest": ("pytest", "_pytest", "py"),
    "pluggy": ("pluggy",),
    "iniconfig": ("iniconfig",),
    "packaging": ("packaging",),
    "exceptiongroup": ("exceptiongroup",),
    "tomli": ("tomli",),
    "toml": ("toml",),
    "pygments": ("pygments",),
    "py": ("py",),
    "attrs": ("attr", "attrs"),
    "more-itertools": ("more_itertools",),
    "atomicwrites": ("atomicwrites",),
    "wcwidth": ("wcwidth",),
    "six": ("six",),
    "importlib-metadata": ("importlib_metadata",),
    "zipp": ("zipp",),
    "typing-extensions": ("typing_extensions",),
    "colorama": ("colorama",),
    "funcsigs": ("funcsigs",),
    "pathlib2": ("pathlib2",),
    "pyparsing": ("pyparsing",),
}

TOOLS: dict[str, tuple[str, ...]] = {
    # distribution: modules of it that start with Python, with a run of tests, or with a build
    "setuptools": ("setuptools", "pkg_resources", "_distutils_hack"),
    "coverage": ("coverage",),
    "pytest-cov": ("pytest_cov",),
}
GUARDED = {**RUNNER, **TOOLS}


def module_of(path: str) -> str:
    """Return the module that a path in `site-packages` is, or lies in; "" for what is none.

    An extension module comes before a plain one of the same name (Python, `importlib.machinery`).
    """
    top, nested, _ = path.partition("/")
    if nested or "." not in top:
        return top
    return top.partition(".")[0] if top.endswith((".py", ".pyc", ".so")) else ""


def owners_of(module: str) -> frozenset[str]:
    """Return the distributions that may provide a guarded module; none for any other module."""
    return frozenset(name for name, modules in GUARDED.items() if module in modules)
