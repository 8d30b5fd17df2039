"""The first rung: a recipe from what the project itself declares. Pure; nothing of the project is executed."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from packaging.utils import canonicalize_name

from installers.bounds import bounds
from installers.build_needs import LEGACY_BACKEND, build_requirements, build_traps, modes, run_traps
from installers.elsewhere import from_index
from installers.interface import Refusal
from installers.lean import lean_groups
from installers.missing_content import missing_content, needed_paths, pointers_of
from installers.python_hints import hints_of
from installers.pythons import Python, choose_python
from installers.reporting import NEEDS, floor_for, is_too_old
from installers.requirements import Line, expand, loosen_pytest, merge, name_of, names
from installers.selection import choose, without_plugins
from installers.siblings import TESTBED, Siblings
from installers.version_variables import version_variables
from miner.core.reasons import Reason
from miner.core.records import BuildMode, Recipe
from miner.project.facts import project_folder, read_project
from miner.project.model import Declared, Group, GroupKind, ProjectFacts
from miner.project.pytest_config import PytestConfig, read_pytest_config
from miner.project.versions import version_of

__all__ = ["LEGACY_BACKEND", "describe"]

_PYTHON_2 = ("Missing parentheses in call to", "multiple exception types must be parenthesized")


def describe(
    files: Mapping[str, bytes],
    paths: Sequence[str],
    pythons: Sequence[Python],
    created_at: datetime,
    test_files: Sequence[str],
    version: str | None = None,
    *,
    lean: bool = False,
) -> Recipe | Refusal:
    """Return a recipe for a tree, or why there is none.

    Args:
        files: path -> content of the declaration files (`miner.project.facts.is_declaration`).
        paths: every path of the tree.
        pythons: the interpreters that there are.
        created_at: when the change was proposed.
        test_files: paths of the tests that are going to run.
        version: the project's version where the tree does not say it (no PKG-INFO, no literal version).
        lean: only what the project needs to run and one group for its tests, without what else may stand in the way.
    """
    tree = _Tree(files, paths, test_files, lean)
    facts = tree.facts
    if facts.unreadable is not None:
        old = any(text in facts.unreadable for text in _PYTHON_2)
        return Refusal(reason=Reason.PYTHON_2_ONLY if old else Reason.SETUP_UNREADABLE, detail=facts.unreadable)
    if (said := _rust(facts)) is not None:
        return Refusal(reason=Reason.REBUILD_NEEDS_NETWORK, detail=f"{said}: Rust's crates are on no package index")
    hints = hints_of(facts, files, paths, tree.folder)
    choice = choose_python(pythons, hints, created_at.date())
    if choice.python is None:
        return Refusal(reason=choice.reason or Reason.NO_PYTHON, detail=choice.note)
    found = _Describing(tree, choice.python.version, lean, [choice.note] if choice.note else []).recipe(version)
    empty = [folder for folder in facts.submodules if not any(path.startswith(f"{folder}/") for path in paths)]
    lost = missing_content(needed_paths(found, test_files), links=empty, pointers=pointers_of(files))
    if lost is not None:
        return lost
    return with_reporter(found) if is_too_old(created_at.date()) else found


def _rust(facts: ProjectFacts) -> str | None:
    """Return where it is said that the build compiles Rust and cannot do without; None where it is not."""
    native = facts.native
    if "rust" not in native.languages or not native.builds or native.optional:
        return None
    if (facts.build_backend or "").startswith("maturin"):
        return "pyproject.toml: build-system.build-backend = maturin"
    return next((source for source in native.sources if "rust" in source.lower()), None)


def with_reporter(recipe: Recipe) -> Recipe:
    """Return a recipe of a time whose pytest cannot carry the reporter with the first one that can."""
    if canonicalize_name(recipe.distribution) == "pytest":
        return recipe
    floor = floor_for(recipe.python)
    return recipe.model_copy(
        update={
            "overrides": (*(one for one in recipe.overrides if name_of(one) != "pytest"), floor),
            "exempt": tuple(dict.fromkeys((*recipe.exempt, *NEEDS))),
            "notes": (*recipe.notes, f"{floor} whatever is asked for: an older pytest cannot report"),
        }
    )


class _Tree:
    """A tree, and which of its projects the tests belong to."""

    def __init__(self, files: Mapping[str, bytes], paths: Sequence[str], test_files: Sequence[str], lean: bool) -> None:
        self.folder = project_folder(paths, test_files, files)
        self.facts = read_project(files, paths, self.folder)
        self.config = _pytest_config(files, self.folder)
        self.siblings = Siblings(files, paths, self.folder, self.facts.local, alone=lean)
        self.test_folders = _folders(test_files)
        self._files, self._paths = files, paths

    def root_groups(self) -> tuple[Group, ...]:
        """Return the groups of the repository's root, which a member without any of its own may rely on."""
        if not self.folder:
            return ()
        root = read_project(self._files, self._paths, "")
        return tuple(group for group in root.groups if group.kind is not GroupKind.EXTRA)


class _Describing:
    """One recipe in the making."""

    def __init__(self, tree: _Tree, python: str, lean: bool, notes: list[str]) -> None:
        self.tree, self.facts, self.python, self.lean = tree, tree.facts, python, lean
        self.notes = [*self.facts.notes, *tree.config.notes, *notes]

    def recipe(self, version: str | None) -> Recipe:
        """Put the recipe together."""
        facts, notes = self.facts, self.notes
        chosen = self._chosen()
        lines = self._lines(chosen)
        build = build_requirements(facts, self.python, notes)
        hint = _version((facts.built_version, facts.version, version))
        return Recipe(
            python=self.python,
            requirements=tuple(line.requirement for line in lines),
            build_requirements=tuple(line.requirement for line in build),
            build_backend=(facts.build_backend or LEGACY_BACKEND) if facts.installable else "",
            backend_path=facts.backend_path,
            modes=modes(facts),
            project_dir=self.tree.folder,
            distribution=facts.name or "",
            version_hint=hint,
            build_env=version_variables(facts, hint, notes),
            top_level=facts.layout.top_level or self._built_module(),
            src_layout=facts.layout.src,
            source_root=facts.layout.root,
            addopts=self.tree.config.addopts,
            constraints=self._constraints(chosen, lines),
            overrides=() if self.lean else bounds(facts.overrides, (), self.python, facts.name, notes),
            build_constraints=bounds(
                (*facts.build_constraints, *build_traps(facts, build)), build, self.python, facts.name, notes
            ),
            system_packages=tuple(dict.fromkeys(one for group in chosen for one in group.system_packages)),
            compiled=BuildMode.COMPILED in modes(facts),
            env=self._env(),
            sources=_sources(facts, self.tree.config, lines, build),
            notes=tuple(dict.fromkeys(notes)),
        )

    def _built_module(self) -> tuple[str, ...]:
        """Return the module of a project whose sources are all compiled: nothing in the tree is called like it."""
        name = canonicalize_name(self.facts.name or "").replace("-", "_")
        return (name,) if name and BuildMode.COMPILED in modes(self.facts) else ()

    def _chosen(self) -> tuple[Group, ...]:
        """Return the groups that the tests need; a member without any has those of the root."""
        known = frozenset(name_of(item.text) for item in self.facts.runtime)
        own = choose(self.facts.groups, self.python, self.tree.test_folders, self.notes, known)
        if not any(group.requirements or group.extras or group.groups for group in own):
            own = (*own, *choose(self.tree.root_groups(), self.python, self.tree.test_folders, self.notes, known))
        return lean_groups(own, self.notes) if self.lean else own

    def _lines(self, chosen: Sequence[Group]) -> tuple[Line, ...]:
        facts, notes, config = self.facts, self.notes, self.tree.config
        kinds = (GroupKind.DEPENDENCY_GROUP, GroupKind.EXTRA)  # pdm lets a project ask for its groups like for extras
        extras: dict[str, Group] = {
            canonicalize_name(group.name): group for kind in kinds for group in facts.groups if group.kind is kind
        }
        needed, _ = run_traps(facts)
        runtime = [*facts.runtime, *needed]
        if not facts.installable and not self.tree.folder:
            runtime += self.tree.siblings.everyone()
        runtime = self._resolved(runtime, extras)
        tests = self._resolved(
            [item for group in chosen for item in (*_own(group, facts.groups, notes), *group.requirements)], extras
        )
        tests = list(without_plugins(tests, notes))
        tests += [Declared(text=text, source=f"{config.source}: required_plugins") for text in config.required_plugins]
        lines = loosen_pytest(merge(runtime, tests, notes), self.python, notes)
        if "pytest" in names(lines, self.python) or canonicalize_name(facts.name or "") == "pytest":
            return lines
        return merge(runtime, [*tests, Declared(text="pytest", source="always: what runs the tests")], [])

    def _resolved(self, declared: Iterable[Declared], extras: Mapping[str, Group]) -> list[Declared]:
        """Replace references to the project's own extras, to its siblings, and to what is not on the index."""
        own = list(expand(declared, extras, self.facts.name, self.notes))
        siblings = self.tree.siblings.expand(own, self.notes)
        there = from_index(siblings, self.notes, drop=self.lean)
        return [item for item in there if not _is(item, self.facts.name)]

    def _constraints(self, chosen: Iterable[Group], lines: Iterable[Line]) -> tuple[str, ...]:
        _, needed = run_traps(self.facts)
        declared = [*self.facts.constraints, *(one for group in chosen for one in group.constraints)]
        return bounds([*needed, *([] if self.lean else declared)], lines, self.python, self.facts.name, self.notes)

    def _env(self) -> dict[str, str]:
        """Return the variables of the tests: where siblings lie, and a project that is not installed."""
        facts, folder = self.facts, self.tree.folder
        own = posixpath.join(TESTBED, folder, facts.layout.root).rstrip("/") if not facts.installable else TESTBED
        path = ":".join(part for part in (own if own != TESTBED else "", self.tree.siblings.python_path) if part)
        return {"PYTHONPATH": path} if path else {}


def _pytest_config(files: Mapping[str, bytes], folder: str) -> PytestConfig:
    """Return the configuration that pytest finds first on its way from a project's folder up to the root."""
    places = [*_up(folder), ""]
    configs = [read_pytest_config(files, place) for place in places]
    return next((config for config in configs if config.source is not None), configs[0])


def _up(folder: str) -> list[str]:
    parts = folder.split("/") if folder else []
    return ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]


def _own(group: Group, groups: Sequence[Group], notes: list[str]) -> list[Declared]:
    """Return what an environment asks for of the project itself: its extras as references, its groups as they are."""
    place = f"{group.kind} {group.name}"
    found = [Declared(text=f".[{extra}]", source=place) for extra in group.extras]
    known = {canonicalize_name(one.name): one for one in groups if one.kind is GroupKind.DEPENDENCY_GROUP}
    for name in group.groups:
        if canonicalize_name(name) in known:
            found += known[canonicalize_name(name)].requirements
        else:
            notes.append(f"{place}: the project has no group {name!r}")
    return found


def _is(item: Declared, project: str | None) -> bool:
    return project is not None and name_of(item.text) == canonicalize_name(project)


def _folders(test_files: Iterable[str]) -> frozenset[str]:
    """Return the folders of files, and the folders above them."""
    folders = set()
    for path in test_files:
        while path := posixpath.dirname(path):
            folders.add(path)
    return frozenset(folders)


def _version(candidates: Iterable[str | None]) -> str | None:
    """Return the first text that is a version; what a PKG-INFO or a configuration says may be anything."""
    found = next((version for text in candidates if (version := version_of(text)) is not None), None)
    return None if found is None else str(found)


def _sources(
    facts: ProjectFacts, config: PytestConfig, lines: Iterable[Line], build: Iterable[Line]
) -> tuple[str, ...]:
    found = [f"{line.requirement} <- {', '.join(line.sources)}" for line in lines]
    found += [f"build: {line.requirement} <- {', '.join(line.sources)}" for line in build]
    found += [f"compiled <- {source}" for source in facts.native.sources]
    if facts.requires_python:
        found.append(f"python {facts.requires_python} <- {facts.requires_python_source}")
    if config.source:
        found.append(f"addopts <- {config.source}")
    return tuple(found)
