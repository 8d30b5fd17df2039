"""Whether building a project compiles something: by its back end, its setup.py, and the sources in its tree.

Sources of the rules: the documentation of setuptools (`ext_modules`), Cython, cffi, pybind11, setuptools-rust, maturin,
meson-python, scikit-build(-core), poetry's and hatch's build scripts, mypyc.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from miner.project.model import Declared, Native
from miner.project.text import decode, read_toml, table, words
from miner.project.versions import requirement_of

_LANGUAGES = {
    ".c": "c",
    ".cc": "c++",
    ".cpp": "c++",
    ".cxx": "c++",
    ".pyx": "cython",
    ".rs": "rust",
    ".f": "fortran",
    ".f90": "fortran",
    ".f95": "fortran",
    ".for": "fortran",
    ".go": "go",
    ".cu": "cuda",
}
_ASIDE = words(
    "tests test testing docs doc examples example benchmarks benchmark demo demos samples templates fixtures"
)
_ALWAYS = {
    "maturin": "maturin builds with Rust",
    "mesonpy": "meson-python builds what meson.build says",
    "scikit_build_core.build": "scikit-build-core builds with CMake",
    "sipbuild.api": "sip builds bindings",
    "cmeel": "cmeel builds with CMake",
    "py_build_cmake.build": "py-build-cmake builds with CMake",
}
_ASKS = re.compile(
    r"\bext_modules\b|\bExtension\s*\(|\bcythonize\s*\(|\bcffi_modules\b|\brust_extensions\b|\bRustExtension\s*\("
    r"|\bPybind11Extension\s*\(|\bCMakeExtension\s*\(|\bmypycify\s*\(|from\s+skbuild\s+import|\bbuild_clib\b"
)
_ASKS_OF_PYTHON = re.compile(r"\bcythonize\s*\(|\bcffi_modules\b|\bmypycify\s*\(")
_EMPTY = re.compile(r"\bext_modules\s*=\s*(?:\[\s*\]|None)(?=\s*[,)])")
_GOES_ON = re.compile(
    r"optional\s*=\s*True|\bBuildFailed\b|ve_build_ext|optional_build_ext|OptionalBuildExt|CompileError|_optional\b"
    r"|except\s*\(?\s*(?:CCompilerError|DistutilsExecError|DistutilsPlatformError|BaseException|Exception)"
    r"|os\.environ(?:\.get)?[\[(]\s*['\"][A-Z0-9_]*(?:EXT|CYTHON|SPEEDUP|MYPYC|PURE|NO_|DISABLE|WITHOUT|USE_|WITH_|COMPILE"
    r"|BUILD_)[A-Z0-9_]*['\"]",
)
_OTHERS = ("flit", "hatchling", "poetry", "pdm", "mesonpy", "maturin", "scikit_build_core")
_COMMENT = re.compile(r"(?m)^\s*#.*$")


def read_native(
    files: Mapping[str, bytes],
    paths: Sequence[str],
    folder: str,
    backend: str | None,
    build_requires: Iterable[Declared],
) -> Native:
    """Return what is compiled when a project is built.

    Args:
        files: path -> content of the declaration files.
        paths: every path of the tree.
        folder: the project's folder.
        backend: as `[build-system]` names it.
        build_requires: what the build asks for.
    """
    languages = _languages(paths, folder)
    asked, optional, sources = _back_end(backend, languages, build_requires)
    for path in _scripts(files, folder, backend):
        text = _EMPTY.sub("", _COMMENT.sub("", decode(files[path], path, []) or ""))
        if (_ASKS.search(text) and languages) or _ASKS_OF_PYTHON.search(text):
            asked = True
            optional = optional or bool(_GOES_ON.search(text))
            sources.append(path)
    table_asks = _tables(files, posixpath.join(folder, "pyproject.toml"))
    sources += table_asks
    return Native(
        languages=languages,
        builds=asked or bool(table_asks),
        optional=optional,
        sources=tuple(sources),
    )


def _languages(paths: Sequence[str], folder: str) -> tuple[str, ...]:
    """Return the languages of a project's sources, tests and examples aside; a .c beside a .pyx counts as both."""
    prefix = f"{folder}/" if folder else ""
    found = set()
    for path in paths:
        if not path.startswith(prefix):
            continue
        language = _LANGUAGES.get(posixpath.splitext(path)[1].lower())
        if language and _ASIDE.isdisjoint(path.removeprefix(prefix).split("/")[:-1]):
            found.add(language)
    return tuple(sorted(found))


def _back_end(
    backend: str | None, languages: tuple[str, ...], build_requires: Iterable[Declared]
) -> tuple[bool, bool, list[str]]:
    """Return whether the back end itself compiles, whether it need not, and where that is said."""
    module = (backend or "").partition(":")[0]
    if module in _ALWAYS:
        pure = module in ("mesonpy", "scikit_build_core.build", "py_build_cmake.build") and not languages
        return not pure, False, [] if pure else [f"build-system: {_ALWAYS[module]}"]
    names = {_name(item.text) for item in build_requires}
    if "poetry" in module or module.startswith("pdm"):
        return False, False, []  # by a build script, which is read
    if module.startswith("hatchling"):
        hooks = sorted(names & {"hatch-cython", "hatch-mypyc"})
        return bool(hooks and "hatch-cython" in hooks), True, [f"build-system: {name}" for name in hooks]
    rust = "setuptools-rust" in names and "rust" in languages
    cmake = "scikit-build" in names and bool(languages)
    tools = [name for name, asks in (("setuptools-rust", rust), ("scikit-build", cmake)) if asks]
    return bool(tools), False, [f"build-system: {name}" for name in tools]


def _scripts(files: Mapping[str, bytes], folder: str, backend: str | None) -> list[str]:
    """Return the scripts that the back end runs: setup.py for setuptools, what its table names for another one."""
    module = (backend or "setuptools").partition(":")[0]
    path = posixpath.join(folder, "pyproject.toml")
    tool = table(read_toml(files, path, []), "tool", path, [])
    named: list[object] = []
    if not module.startswith(_OTHERS):
        named.append("setup.py")
    elif "poetry" in module:
        build = table(tool, "poetry", path, []).get("build")
        named.append(build.get("script") if isinstance(build, dict) else build)
    elif module.startswith("hatchling"):
        hooks = table(table(table(tool, "hatch", path, []), "build", path, []), "hooks", path, [])
        custom = hooks.get("custom")
        named.append(custom.get("path", "hatch_build.py") if isinstance(custom, dict) else None)
    elif module.startswith("pdm"):
        named.append("setup.py")
    found = [posixpath.normpath(posixpath.join(folder, name)) for name in named if isinstance(name, str)]
    return [path for path in found if path in files]


def _tables(files: Mapping[str, bytes], path: str) -> list[str]:
    """Return where pyproject.toml lists extension modules of setuptools, setuptools-rust or pdm."""
    tool = table(read_toml(files, path, []), "tool", path, [])
    setuptools = table(tool, "setuptools", path, [])
    rust = table(tool, "setuptools-rust", path, [])
    pdm = table(table(tool, "pdm", path, []), "build", path, [])
    listed = {
        "tool.setuptools.ext-modules": setuptools.get("ext-modules"),
        "tool.setuptools-rust.ext-modules": rust.get("ext-modules"),
        "tool.pdm.build.run-setuptools": pdm.get("run-setuptools"),
    }
    return [f"{path}: {name}" for name, value in listed.items() if value]


def _name(text: str) -> str:
    try:
        return canonicalize_name(requirement_of(text).name)
    except InvalidRequirement:
        return ""
