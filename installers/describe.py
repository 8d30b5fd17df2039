"""The first rung: a recipe from what the project itself declares. Pure; nothing of the project is executed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from packaging.utils import canonicalize_name

from installers.interface import Refusal
from installers.pythons import Python, choose_python
from installers.requirements import Line, expand, loosen_pytest, merge, names
from installers.selection import choose, without_plugins
from miner.core.reasons import Reason
from miner.core.records import BuildMode, Recipe
from miner.project.facts import project_folder, read_project
from miner.project.model import Declared, Group, GroupKind, ProjectFacts
from miner.project.pytest_config import PytestConfig, read_pytest_config
from miner.project.versions import version_of

LEGACY_BACKEND = "setuptools.build_meta:__legacy__"
_LEGACY_REQUIRES = ("setuptools", "wheel")
_PYTHON_CLASSIFIER = re.compile(r"Programming Language :: Python :: (\d+\.\d+)\s*\Z")


def describe(
    files: Mapping[str, bytes],
    paths: Sequence[str],
    pythons: Sequence[Python],
    created_at: datetime,
    test_files: Sequence[str],
    version: str | None = None,
) -> Recipe | Refusal:
    """Return a recipe for a tree, or why there is none.

    Args:
        files: path -> content of the declaration files (`miner.project.facts.is_declaration`).
        paths: every path of the tree.
        pythons: the interpreters that there are.
        created_at: when the change was proposed.
        test_files: paths of the tests that are going to run.
        version: the project's version where the tree does not say it (no PKG-INFO, no literal version).
    """
    folder = project_folder(paths)
    facts = read_project(files, paths, folder)
    config = read_pytest_config(files, folder)
    if facts.unreadable is not None:
        return Refusal(reason=Reason.SETUP_UNREADABLE, detail=facts.unreadable)
    python, note = choose_python(pythons, facts.requires_python, created_at.date())
    if python is None:
        known = ", ".join(one.version for one in pythons)
        asked = f"{facts.requires_python_source} asks for Python {facts.requires_python}"
        return Refusal(reason=Reason.NO_PYTHON, detail=f"{asked}; configured: {known}")
    notes = [*facts.notes, *config.notes, *([note] if note else []), *_classifier_note(facts, python)]
    lines = _requirements(facts, config, python.version, test_files, notes)
    build = _build_requirements(facts, notes)
    hint = _version((facts.built_version, facts.version, version))
    return Recipe(
        python=python.version,
        requirements=tuple(line.requirement for line in lines),
        build_requirements=tuple(line.requirement for line in build),
        build_backend=(facts.build_backend or LEGACY_BACKEND) if facts.installable else "",
        backend_path=facts.backend_path,
        modes=(BuildMode.EDITABLE, BuildMode.NORMAL) if facts.installable else (BuildMode.NONE,),
        project_dir=folder,
        distribution=facts.name or "",
        version_hint=hint,
        build_env=_version_variables(facts, hint, notes),
        top_level=facts.layout.top_level,
        src_layout=facts.layout.src,
        source_root=facts.layout.root,
        addopts=config.addopts,
        sources=_sources(facts, config, lines, build),
        notes=tuple(dict.fromkeys(notes)),
    )


def _requirements(
    facts: ProjectFacts, config: PytestConfig, python: str, test_files: Sequence[str], notes: list[str]
) -> tuple[Line, ...]:
    kinds = (GroupKind.DEPENDENCY_GROUP, GroupKind.EXTRA)  # pdm lets a project ask for its own groups like for extras
    extras: dict[str, Group] = {
        canonicalize_name(group.name): group for kind in kinds for group in facts.groups if group.kind is kind
    }
    chosen = choose(facts.groups, python, _folders(test_files), notes)
    tests = [item for group in chosen for item in (*_own_extras(group), *group.requirements)]
    runtime = list(expand(facts.runtime, extras, facts.name, notes))
    tests = list(without_plugins(expand(tests, extras, facts.name, notes), notes))
    tests += [Declared(text=text, source=f"{config.source}: required_plugins") for text in config.required_plugins]
    lines = loosen_pytest(merge(runtime, tests, notes), python, notes)
    if "pytest" in names(lines, python) or canonicalize_name(facts.name or "") == "pytest":
        return lines
    return merge(runtime, [*tests, Declared(text="pytest", source="always: what runs the tests")], [])


def _own_extras(group: Group) -> list[Declared]:
    """Turn the extras that a tox or hatch environment asks for into references to the project itself."""
    return [Declared(text=f".[{extra}]", source=f"{group.kind} {group.name}") for extra in group.extras]


def _folders(test_files: Iterable[str]) -> frozenset[str]:
    """Return the folders of files, and the folders above them."""
    folders = set()
    for path in test_files:
        while path := posixpath.dirname(path):
            folders.add(path)
    return frozenset(folders)


def _build_requirements(facts: ProjectFacts, notes: list[str]) -> tuple[Line, ...]:
    """Return `[build-system] requires`, or what PEP 517 has for a project without it; `setup_requires` added."""
    if not facts.installable:
        return ()
    declared = facts.build_requires
    if declared is None:
        declared = tuple(Declared(text=text, source="PEP 517: no [build-system]") for text in _LEGACY_REQUIRES)
    setup = facts.setup_requires if (facts.build_backend or LEGACY_BACKEND).startswith("setuptools") else ()
    own = canonicalize_name(facts.name or "")
    return tuple(line for line in merge(declared, setup, notes) if own not in names([line], "3"))


def _version(candidates: Iterable[str | None]) -> str | None:
    """Return the first text that is a version; what a PKG-INFO or a configuration says may be anything."""
    found = next((version for text in candidates if (version := version_of(text)) is not None), None)
    return None if found is None else str(found)


def _version_variables(facts: ProjectFacts, version: str | None, notes: list[str]) -> dict[str, str]:
    """Return the variables that tell a back end the version which it would ask git's tags for: there are none.

    Sources: the documentation of setuptools-scm, pbr, pdm-backend and poetry-dynamic-versioning.
    """
    variables: dict[str, str] = {}
    for tool in facts.version_tools:
        if version is None:
            notes.append(f"{tool} takes the version from git tags, and nothing in the tree says it")
        elif tool in ("setuptools-scm", "hatch-vcs"):
            name = canonicalize_name(facts.name or "").upper().replace("-", "_")
            variables["SETUPTOOLS_SCM_PRETEND_VERSION"] = version
            if name:
                variables[f"SETUPTOOLS_SCM_PRETEND_VERSION_FOR_{name}"] = version
        elif tool == "pbr":
            variables["PBR_VERSION"] = version
        elif tool == "pdm-backend":
            variables["PDM_BUILD_SCM_VERSION"] = version
        elif tool == "poetry-dynamic-versioning":
            variables["POETRY_DYNAMIC_VERSIONING_BYPASS"] = version
    return variables


def _classifier_note(facts: ProjectFacts, python: Python) -> list[str]:
    """Classifiers are hints only: one that does not name the chosen Python is worth a note, not a refusal."""
    named = [match.group(1) for text in facts.classifiers if (match := _PYTHON_CLASSIFIER.search(text))]
    if not named or python.version in named:
        return []
    return [f"classifiers do not name Python {python.version} (they name {', '.join(dict.fromkeys(named))})"]


def _sources(
    facts: ProjectFacts, config: PytestConfig, lines: Iterable[Line], build: Iterable[Line]
) -> tuple[str, ...]:
    found = [f"{line.requirement} <- {', '.join(line.sources)}" for line in lines]
    found += [f"build: {line.requirement} <- {', '.join(line.sources)}" for line in build]
    if facts.requires_python:
        found.append(f"python {facts.requires_python} <- {facts.requires_python_source}")
    if config.source:
        found.append(f"addopts <- {config.source}")
    return tuple(found)
