"""Where the importable code of a project is: from what it declares, else from the tree itself."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from miner.project.model import Declarations, Layout
from miner.project.text import words

_NO_PACKAGES = words(
    """
    test tests testing unit_tests t doc docs documentation example examples sample samples demo demos bench
    benchmark benchmarks script scripts tool tools ci build dist site news changes requirements tasks utils_dev
    typings stubs vendor notebooks
    """
)
_NO_MODULES = words(
    """
    setup conftest noxfile tasks versioneer ez_setup distribute_setup fabfile dodo duties runtests run_tests
    test tests bootstrap make release manage bench benchmark example build hubconf wsgi __init__ __main__
    """
)


def find_layout(
    name: str | None, declarations: Iterable[Declarations], paths: Sequence[str], folder: str = ""
) -> Layout:
    """Return the top-level importable names and the folder that holds them.

    Args:
        name: the distribution's name.
        declarations: what the project's files declare, the most specific first.
        paths: every path of the tree.
        folder: the project's folder in the tree.
    """
    prefix = f"{folder}/" if folder else ""
    tree = frozenset(path.removeprefix(prefix) for path in paths if path.startswith(prefix))
    found = list(declarations)
    modules = [module for item in found for module in item.modules]
    renamed = [package for item in found for package, place in item.package_dirs if _is_renamed(package, place)]
    roots = list(dict.fromkeys([*(root for item in found for root in item.roots), "src", ""]))
    for package, place in (pair for item in found for pair in item.package_dirs):
        if posixpath.basename(place) == package.rpartition(".")[2]:
            roots.insert(0, posixpath.dirname(place))
    if (dotted := _dotted(name, roots, tree)) is not None:
        return dotted
    for root in roots:
        if names := _importable(modules, root, tree):
            return Layout(top_level=names, root=root)
    if any(module in renamed for module in modules):
        return Layout()
    for root in roots:
        named = _by_name(name, root, tree)
        if named and not root:
            return Layout(top_level=named)
        if everything := tuple(dict.fromkeys((*named, *_all(root, tree)))):
            return Layout(top_level=everything, root=root)
    for root in roots:
        if deep := _deep(root, tree):
            return Layout(top_level=deep, root=root)
    namespace = any(path.startswith("src/") and path.endswith(".py") for path in tree)
    return Layout(root="src" if namespace else "")


def _dotted(name: str | None, roots: Iterable[str], tree: frozenset[str]) -> Layout | None:
    """Find what is called exactly like a dotted name: what lies around it may be a namespace that others share."""
    if not name or "." not in name or not _identifier(name):
        return None
    return next((Layout(top_level=(name,), root=root) for root in roots if _exists(name, root, tree)), None)


def _is_renamed(package: str, place: str) -> bool:
    """Whether a package lies in a folder with another name, so that it is importable only once it is installed."""
    return posixpath.basename(place) != package.rpartition(".")[2]


def _importable(modules: Iterable[str], root: str, tree: frozenset[str]) -> tuple[str, ...]:
    """Reduce declared names to the shortest importable ones: `a.b.c` to `a`, or to `a.b` below a namespace `a`."""
    names: dict[str, None] = {}
    for module in modules:
        parts = module.split(".")
        prefixes = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
        first = next((prefix for prefix in prefixes if _exists(prefix, root, tree)), None)
        if first:
            names[first] = None
    return tuple(names)


def _exists(module: str, root: str, tree: frozenset[str]) -> bool:
    path = posixpath.join(root, module.replace(".", "/"))
    return f"{path}/__init__.py" in tree or f"{path}.py" in tree


def _by_name(name: str | None, root: str, tree: frozenset[str]) -> tuple[str, ...]:
    """Find the package or module that is called like the distribution, however it is spelt."""
    if not name:
        return ()
    candidates = _candidates(root, tree, depth=3)
    for separator in ("_", ""):  # as it is spelt, then without separators
        for module in candidates:
            if _plain(module, separator) == _plain(name, separator):
                return (module,)
    return ()


def _plain(name: str, separator: str) -> str:
    return re.sub(r"[-_.]+", separator, name).lower()


def _all(root: str, tree: frozenset[str]) -> tuple[str, ...]:
    """Take every package of a folder that does not look like tests, documentation or tooling, else every module."""
    names = [
        name
        for name in _candidates(root, tree, depth=1)
        if name not in _NO_PACKAGES | _NO_MODULES and not name.startswith(("test_", "_")) and not name.endswith("_test")
    ]
    packages = [name for name in names if posixpath.join(root, name, "__init__.py") in tree]
    return tuple(packages or names)


def _deep(root: str, tree: frozenset[str]) -> tuple[str, ...]:
    """Take the packages below namespaces that are no packages themselves (PEP 420): `a.b.c`, where only `c` is one."""
    names = (name for name in _candidates(root, tree, depth=4) if name.partition(".")[0] not in _NO_PACKAGES)
    return tuple(name for name in names if posixpath.join(root, *name.split("."), "__init__.py") in tree)


def _candidates(root: str, tree: frozenset[str], depth: int) -> list[str]:
    """List importable names below a folder, packages before modules, the shallow ones first."""
    prefix = f"{root}/" if root else ""
    packages, modules = set(), set()
    for path in tree:
        inner = path.removeprefix(prefix)
        if not path.startswith(prefix) or not inner.endswith(".py"):
            continue
        parts = inner.removesuffix(".py").split("/")
        if parts[-1] == "__init__" and 1 < len(parts) <= depth + 1:
            packages.add(".".join(parts[:-1]))
        elif len(parts) <= depth:
            modules.add(".".join(parts))
    named = [name for name in (*sorted(packages, key=_shallow), *sorted(modules)) if _identifier(name)]
    return [name for name in named if not any(name.startswith(f"{other}.") for other in packages)]


def _shallow(name: str) -> tuple[int, str]:
    return name.count("."), name


def _identifier(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))
