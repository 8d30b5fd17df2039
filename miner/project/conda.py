"""Conda environment files and recipes (meta.yaml): the packages that they list, translated to the package index.

Formats: https://docs.conda.io/projects/conda/en/latest/user-guide/tasks/manage-environments.html,
https://docs.conda.io/projects/conda-build/en/latest/resources/define-metadata.html.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from miner.project.conda_names import DISTRIBUTIONS, LIBRARIES_OF_PYTHON, OURS, SYSTEM
from miner.project.model import Declarations, Declared, Group, GroupKind, PythonHint
from miner.project.requirements import parse_requirement_lines, read_requirements, relative
from miner.project.text import decode
from miner.project.versions import specifiers_of, version_of

_MAX_CHARS = 200_000
_SELECTOR = re.compile(r"#\s*\[([^\]]*)\]\s*$")
_NOT_LINUX = re.compile(r"(?<!not )\b(?:win|win32|win64|osx|arm64|aarch64|ppc64le|py2k|py27|cuda\w*)\b(?!\s*==)")
_FOR_LINUX = re.compile(r"\b(?:linux|linux64|unix|not win|not osx)\b")
_JINJA_LINE = re.compile(r"^\s*\{%.*%\}\s*$")
_JINJA = re.compile(r"\{\{[^{}]*\}\}")
_PIN = re.compile(r"\{\{\s*(?:pin_\w+\(\s*['\"]([\w.-]+)['\"]|compiler\()[^{}]*\}\}")
_SPEC = re.compile(r"(?:[\w.-]+::)?([A-Za-z0-9_][\w.-]*)(?:\[[^\]]*\])?\s*(.*)\Z")
_COMPARISON = re.compile(r"(?:===?|!=|~=|<=?|>=?)")
_SPACES = re.compile(r"(?<=[<>=!~,])\s+|\s+(?=,)")
_PYTHON = re.compile(r"(\d+\.\d+)")
_UNKNOWN = "unknown"
_NO_PYTHON = ("lib", "r-", "_", "gcc", "gxx", "xorg-", "cuda-")


def read_conda(files: Mapping[str, bytes], path: str) -> Declarations:
    """Return what a conda file lists, as a group called like the file; an empty one where it is something else."""
    notes: list[str] = []
    content = _load(files[path], path, notes)
    if not isinstance(content, Mapping):
        return Declarations(source=path, notes=tuple(notes))
    recipe = posixpath.basename(path).startswith("meta.")
    entries = _recipe(content) if recipe else content.get("dependencies")
    listed = entries if isinstance(entries, list) else []
    specs = [entry for entry in listed if isinstance(entry, str)]
    requirements = [*_requirements(specs, path, notes), *_pip(files, listed, path, notes)]
    group = Group(
        name=posixpath.splitext(path)[0],
        kind=GroupKind.CONDA,
        requirements=tuple(requirements),
        system_packages=tuple(dict.fromkeys(package for spec in specs for package in SYSTEM.get(_name(spec), ()))),
    )
    return Declarations(
        source=path,
        groups=(group,) if group.requirements or group.system_packages else (),
        pythons=tuple(_pythons(specs, path)),
        notes=tuple(notes),
    )


def _load(data: bytes, path: str, notes: list[str]) -> Any:
    """Return the content of a YAML file, lines for other systems and templates taken out."""
    text = decode(data, path, notes)
    if text is None:
        return None
    if len(text) > _MAX_CHARS:
        notes.append(f"{path}: {len(text)} characters are too many for a conda file, so it is not read")
        return None
    kept = "\n".join(line for line in text.splitlines() if _is_ours(line))
    filled = _JINJA.sub(_UNKNOWN, _PIN.sub(lambda found: found[1] or "compilers", kept))
    try:
        return yaml.load(filled, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError, AttributeError) as error:
        notes.append(f"{path}: is not valid YAML ({str(error).splitlines()[0] if str(error) else 'too deep'})")
        return None


def _is_ours(line: str) -> bool:
    """Whether a line is for Linux, by its selector (`# [win]`), and no statement of a template."""
    if _JINJA_LINE.match(line):
        return False
    selector = _SELECTOR.search(line)
    if not selector or _FOR_LINUX.search(selector[1]):
        return True
    return not _NOT_LINUX.search(selector[1])


def _recipe(content: Mapping[str, Any]) -> list[Any]:
    """Return what a recipe needs to run and to be tested."""
    run = content.get("requirements")
    test = content.get("test")
    found: list[Any] = []
    for part in (
        run.get("run") if isinstance(run, dict) else None,
        test.get("requires") if isinstance(test, dict) else None,
    ):
        found += part if isinstance(part, list) else []
    return found


def _requirements(specs: Iterable[str], path: str, notes: list[str]) -> Iterator[Declared]:
    for spec in specs:
        name = _name(spec)
        if not name or name in SYSTEM or name in OURS or name == _UNKNOWN:
            continue
        if name.startswith(_NO_PYTHON) and name not in LIBRARIES_OF_PYTHON:
            notes.append(f"{path}: {name} is no Python package and is left out")
            continue
        text = DISTRIBUTIONS.get(name, name) + _specifiers(spec, path, notes)
        yield Declared(text=text, source=path)


def _pip(files: Mapping[str, bytes], listed: Iterable[Any], path: str, notes: list[str]) -> Iterator[Declared]:
    """Yield what stands below `pip:`, requirements files read."""
    for entry in listed:
        below = entry.get("pip") if isinstance(entry, dict) else None
        for line in below if isinstance(below, list) else []:
            if not isinstance(line, str):
                continue
            if include := re.fullmatch(r"(?:-r|--requirement)[\s=]*(.+)", line.strip()):
                yield from read_requirements(files, relative(path, include.group(1)), notes)
            else:
                yield from parse_requirement_lines(line, path, notes)


def _name(spec: str) -> str:
    found = _SPEC.match(spec.strip())
    return found.group(1).lower() if found else ""


def _specifiers(spec: str, path: str, notes: list[str]) -> str:
    """Translate `=1.18`, `1.18.*`, `>=1,<2` and `==1.2=build`; of alternatives and build strings nothing is taken."""
    found = _SPEC.match(spec.strip())
    rest = _SPACES.sub("", (found.group(2) if found else "").strip())
    if not rest or _UNKNOWN in rest:
        return ""
    parts = [_bound(part.strip()) for part in rest.partition(" ")[0].split(",")] if "|" not in rest else [""]
    text = ",".join(part for part in parts if part)
    if specifiers_of(text) is None or "|" in rest:
        notes.append(f"{path}: the version of {spec!r} is not understood, any is taken")
        return ""
    return text


def _bound(text: str) -> str:
    if _COMPARISON.match(text):
        operator = _COMPARISON.match(text)[0]  # type: ignore[index]  # it matched right above
        version = text[len(operator) :].partition("=")[0].strip()
        if version.endswith(".*") and operator not in ("==", "!="):
            version = version[:-2]
        return operator + version
    fuzzy = text.startswith("=")
    version = text.lstrip("=").partition("=")[0].strip()
    if version in ("", "*"):
        return ""
    bare = version.removesuffix("*").removesuffix(".")
    if version_of(bare) is None:
        return "invalid"
    return f"=={bare}.*" if fuzzy or bare != version else f"=={version}"


def _pythons(specs: Iterable[str], path: str) -> Iterator[PythonHint]:
    for spec in specs:
        if _name(spec) == "python" and (found := _PYTHON.search(spec)) and "<" not in spec.partition(found[0])[0]:
            yield PythonHint(kind="pinned", version=found.group(1), source=path)
