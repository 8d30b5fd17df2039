"""Several projects in one repository: which of them the tests belong to, and where the others lie.

Formats: https://docs.astral.sh/uv/concepts/projects/workspaces/. A folder is a project where it has a setup.py or a
pyproject.toml that is more than settings of tools.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from packaging.utils import canonicalize_name

from miner.project.setup_cfg import read_setup_cfg
from miner.project.setup_py import read_setup_py
from miner.project.text import read_toml, string, table, words

_DEEPEST = 4
_MOST = 200
_ASIDE = words(
    """
    tests test testing testdata test_data fixtures data docs doc examples example samples sample templates template
    vendor vendored _vendor third_party thirdparty node_modules site-packages benchmarks benchmark demo demos
    """
)
_ODD = re.compile(r"[{}$<>\x00-\x1f\x7f]")


def project_folder(
    paths: Sequence[str], test_files: Iterable[str] = (), files: Mapping[str, bytes] | None = None
) -> str:
    """Return the folder of the project that the tests belong to, "" for the root.

    A root that is a project of its own wins, unless all of the tests lie in one member that is one too. A root that is
    none gives way to the member that holds most of the tests, else to the one whose name a test's path holds, else to
    the only one.

    Args:
        paths: every path of the tree.
        test_files: the tests that are going to run.
        files: path -> content of the declaration files; without them a folder is a project by the names of its files.
    """
    folders = project_folders(paths, files)
    members = [folder for folder in folders if folder]
    counts = Counter(member for path in test_files if (member := _owner(path, members)) is not None)
    tests = list(test_files)
    if "" in folders:
        only = next(iter(counts)) if len(counts) == 1 else None
        return only if only is not None and counts[only] == len(tests) else ""
    if counts:
        return min(counts, key=lambda folder: (-counts[folder], folder))
    named = [folder for folder in members if any(posixpath.basename(folder) in path.split("/") for path in tests)]
    if len(named) == 1:
        return named[0]
    return members[0] if len(members) == 1 else ""


def project_folders(paths: Sequence[str], files: Mapping[str, bytes] | None = None) -> tuple[str, ...]:
    """Return the folders of a tree that hold a project, the shallow ones first; those of tests and examples aside."""
    declared: dict[str, set[str]] = {}
    for path in paths:
        name = posixpath.basename(path)
        if name in ("pyproject.toml", "setup.py"):
            declared.setdefault(posixpath.dirname(path), set()).add(name)
    found = [folder for folder in declared if _is_plausible(folder) and (files is None or is_project(files, folder))]
    return tuple(sorted(found, key=lambda folder: (folder.count("/") + bool(folder), folder))[:_MOST])


def is_project(files: Mapping[str, bytes], folder: str) -> bool:
    """Whether a front end such as pip finds a project in a folder that it would install as a package."""
    if posixpath.join(folder, "setup.py") in files:
        return True
    path = posixpath.join(folder, "pyproject.toml")
    if path not in files:
        return False
    notes: list[str] = []
    content = read_toml(files, path, notes)
    if notes:
        return True  # broken: what it was meant to be is said by its being there
    tools = table(content, "tool", path, [])
    if is_virtual(content):
        return False
    if any(key in content for key in ("build-system", "project")) or "poetry" in tools or "flit" in tools:
        return True
    return read_setup_cfg(files, posixpath.join(folder, "setup.cfg")).name is not None


def is_virtual(content: Mapping[str, object]) -> bool:
    """Whether a pyproject.toml says of itself that it is no package: for uv, poetry or pdm, or as uv takes it.

    With uv a project without `[build-system]` is not installed (https://docs.astral.sh/uv/concepts/projects/config/).
    """
    tools = table(content, "tool", "", [])
    uv, poetry, pdm = (table(tools, name, "", []) for name in ("uv", "poetry", "pdm"))
    if uv.get("package") is False or poetry.get("package-mode") is False or pdm.get("distribution") is False:
        return True
    bare = "build-system" not in content and uv.get("package") is not True
    return bare and "uv" in tools and "setuptools" not in tools


def members(paths: Sequence[str], files: Mapping[str, bytes]) -> Mapping[str, str]:
    """Return the projects of a tree: normalised name of the distribution -> folder, the shallow ones first."""
    found: dict[str, str] = {}
    for folder in project_folders(paths, files):
        if name := _name(files, folder):
            found.setdefault(canonicalize_name(name), folder)
    return found


def _name(files: Mapping[str, bytes], folder: str) -> str | None:
    path = posixpath.join(folder, "pyproject.toml")
    content = read_toml(files, path, [])
    tools = table(content, "tool", path, [])
    for place in (table(content, "project", path, []), table(tools, "poetry", path, [])):
        if name := string(place.get("name"), path, []):
            return name
    for name, read in (("setup.py", read_setup_py), ("setup.cfg", read_setup_cfg)):
        path = posixpath.join(folder, name)
        if path in files and (found := read(files, path).name):
            return found
    return None


def _is_plausible(folder: str) -> bool:
    parts = folder.split("/") if folder else []
    odd = _ODD.search(folder) or not folder.isprintable() or not {"", ".", ".."}.isdisjoint(parts)
    return len(parts) <= _DEEPEST and _ASIDE.isdisjoint(parts) and not odd


def _owner(path: str, members: Iterable[str]) -> str | None:
    """Return the deepest member that a file lies in."""
    holding = [member for member in members if path.startswith(f"{member}/")]
    return max(holding, key=len) if holding else None
