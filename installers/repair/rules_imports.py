"""Rules for modules, names and attributes that are not there: of the project, of nobody, or of another era."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from packaging.utils import canonicalize_name

from installers.repair.bounds import BOUNDS
from installers.repair.context import Context
from installers.repair.edits import bounded, compiled, required
from installers.repair.kinds import Kind
from installers.repair.rule import Rule, rule, rule_of
from installers.repair.rules_resolve import next_cutoff
from miner.core.records import BuildMode, Recipe

_NAMES = (Kind.MISSING_NAME, Kind.MISSING_ATTRIBUTE)
_NATIVE = (".pyx", ".c", ".cpp", ".cc", ".cxx", ".rs", ".f", ".f90", ".pyf")
_NOBODY = frozenset(
    {
        *("__main__", "base", "case_utils", "common", "commontest", "config", "conftest", "constants", "core", "data"),
        *("doc", "docs", "example", "examples", "helper", "helpers", "integration", "lib", "main", "models", "module"),
        *("mocks", "settings", "setup", "support", "test", "testbase", "testcase", "testing", "testlib", "tests"),
        *("testutil", "testutils", "tools", "unit", "util", "utils", "version"),
    }
)
"""Names that many projects give to modules of their own: no distribution of such a name is what a test means."""


def pkg_resources(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Ask for a setuptools that has pkg_resources."""
    if subject.partition(".")[0].partition(":")[0] != "pkg_resources":
        return None
    return required(recipe, "setuptools<82") or bounded(recipe, "setuptools<82")


def native_module(recipe: Recipe, subject: str, context: Context) -> Recipe | None:
    """Compile the project after all: one of its own modules has sources that Python does not read."""
    module = subject.replace(":", ".")
    if not _is_own(recipe, module):
        return None
    stem = module.rpartition(".")[2]
    native = any(_stem(path) == stem and path.endswith(_NATIVE) for path in context.paths)
    return compiled(recipe) if native or stem.startswith("_") else None


def normal_install(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Install the project, where its own tree lacks a module that only a build makes."""
    if not _is_own(recipe, subject) or BuildMode.EDITABLE not in recipe.modes or len(recipe.modes) < 2:
        return None
    modes = tuple(mode for mode in recipe.modes if mode is not BuildMode.EDITABLE)
    return recipe.model_copy(update={"modes": modes})


def _is_own(recipe: Recipe, module: str) -> bool:
    return any(module == top or module.startswith(f"{top}.") for top in recipe.top_level)


def _stem(path: str) -> str:
    return posixpath.basename(path).partition(".")[0]


def local_folder(recipe: Recipe, subject: str, context: Context) -> Recipe | None:
    """Make the folder of the project's tree that holds a module a place to import from."""
    folder = folder_of(subject.partition(":")[0], context.paths, context.test_files, recipe.project_dir)
    if folder is None:
        return None
    place = posixpath.normpath(f"/testbed/{folder}")
    known = [part for part in recipe.env.get("PYTHONPATH", "").split(":") if part]
    if place in known:
        return None
    return recipe.model_copy(update={"env": {**recipe.env, "PYTHONPATH": ":".join([*known, place])}})


def folder_of(module: str, paths: Sequence[str], test_files: Sequence[str], project_dir: str) -> str | None:
    """Return the folder of the tree from which a module could be imported: the root, the project, those of tests.

    A package around the tests is none: what lies in it is imported by its whole name.
    """
    path = module.replace(".", "/")
    held = {f"{path}.py", f"{path}/__init__.py"}
    tree, own = set(paths), {posixpath.dirname(file) for file in test_files}
    above = (folder for file in test_files for folder in _above(file))
    places = ["", project_dir, *(one for one in above if one in own or f"{one}/__init__.py" not in tree)]
    for place in dict.fromkeys(places):
        if any(posixpath.join(place, one) in tree for one in held):
            return place
    top = path.partition("/")[0]
    return next((place for place in dict.fromkeys(places) if f"{posixpath.join(place, top)}.py" in tree), None)


def _above(path: str) -> list[str]:
    folders = []
    while path := posixpath.dirname(path):
        folders.append(path)
    return folders


def provider(recipe: Recipe, subject: str, context: Context) -> Recipe | None:
    """Ask for the distribution that provides a module, which nothing declares."""
    top = subject.partition(".")[0]
    if top in _NOBODY or top.startswith("test_") or _is_own(recipe, subject):
        return None
    if folder_of(top, context.paths, context.test_files, recipe.project_dir) is not None:
        return None
    found = context.provider(subject)
    if found is None or canonicalize_name(found) == canonicalize_name(recipe.distribution or "-"):
        return None
    return required(recipe, found)


def last_version_with(recipe: Recipe, subject: str, context: Context) -> Recipe | None:
    """Take the last version of a distribution that has a module or a name, which the newest one has not."""
    module, _, name = subject.partition(":")
    top = module.partition(".")[0]
    of_module = top.islower() and top.isidentifier()  # an attribute may be that of a class
    if not of_module or _is_own(recipe, module) or (not name and "." not in module):
        return None
    distribution = context.provider(top)
    if distribution is None:
        return None
    version = context.last_with(distribution, module, name)
    return None if version is None else bounded(recipe, f"{distribution}<={version}")


RULES: tuple[Rule, ...] = (
    rule("pkg-resources", pkg_resources, "setuptools 82 took pkg_resources away", Kind.MISSING_MODULE),
    *(rule_of(row) for row in BOUNDS),
    rule(
        "native-module",
        native_module,
        "{subject} is a module of the project that has to be compiled",
        Kind.MISSING_MODULE,
        *_NAMES,
    ),
    rule(
        "local-folder",
        local_folder,
        "{subject} lies in a folder of the project from which nothing is imported",
        Kind.MISSING_MODULE,
    ),
    rule(
        "provider",
        provider,
        "{subject} is imported, and nothing declares who provides it",
        Kind.MISSING_MODULE,
        Kind.MISSING_PLUGIN,
    ),
    rule("last-version-with", last_version_with, "an older version has {subject}", Kind.MISSING_MODULE, *_NAMES),
    rule(
        "normal-install",
        normal_install,
        "{subject} is a module of the project that only an installation makes",
        Kind.MISSING_MODULE,
    ),
    rule("cutoff-for-name", next_cutoff, "a later version may have {subject}", Kind.MISSING_NAME),
)
