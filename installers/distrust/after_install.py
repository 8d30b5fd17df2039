"""What the installation of a project left behind, where a model wrote the recipe; what could steer tests voids it.

A build runs code: of the project, of its build requirements, and of what variables name. So the environment is looked
at once more as it lies in the image: the project's layer on top of it, as bytes. Of the project's layer only what
belongs to the project may be new; and what it was built with is looked at as well.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from installers.boxes import BUILD
from installers.distrust.entry_points import module_of_line
from installers.distrust.integrity import altered, asked_in, unknown_in
from installers.distrust.loaded import BUILDS, LOADED, PLUGINS
from installers.distrust.look import MAX_TEXT, Look
from installers.distrust.mechanism import Weakening
from installers.distrust.runner import module_of, owners_of
from installers.distrust.site_packages import Asked, Distribution, Site, site_of
from installers.layer import Tree, read, unpacked
from installers.testbed import TESTBED
from installers.venv_layer import ENV
from miner.core.blobs import BlobStore
from miner.core.records import Fact, Layer, Recipe
from miner.sandbox.image_archive import TarEntry, read_tar

INSTALLATION: dict[str, str] = {
    # mechanism: why it is void
    "install-changed-others": "it changed or removed what others brought, or added what is not the project's",
    "built-settings": "the build added a file to the tree that pytest or Python reads by itself",
    "built-plugin": "the build gave the project an entry point that loads by itself, and its tree names none",
    "build-plugin": "what was asked for to build with brings code that runs in every build, and nothing is known of it",
}

_SITE = re.compile(r"lib/python[^/]*/site-packages/([^/]+)(/.*)?")
_WHITEOUT = ".wh."
_DEVELOPED = re.compile(r"(?:easy-install|[\w.+-]*-nspkg)\.pth|[\w.+-]+\.egg-link")
_SCRIPT = re.compile(rb"#!(?:/opt/(?:env|build)/bin/python[\d.]*|/bin/sh|/usr/bin/env python[\d.]*)\s")
_PYTHON = re.compile(r"bin/(?:python|pypy|activate)[^/]*")
_PYTEST = re.compile(r"bin/(?:pytest|py\.test)")
_READ_BY_ITSELF = re.compile(
    r"(?:.*/)?(?:conftest\.py|\.?pytest\.(?:ini|toml)|tox\.ini|setup\.cfg|pyproject\.toml|pyvenv\.cfg|[^/]+\.pth"
    r"|(?:sitecustomize|usercustomize)(?:\.[^/]+|/.*))"
)
_BUILT = re.compile(
    r"(?:.*/)?(?:build|dist|\.eggs|_skbuild|\.pdm-build|\.mesonpy[^/]*|[^/]+\.(?:egg-info|dist-info|egg))/.*"
)
_METADATA = re.compile(r"(?:(?:src|lib|python)/)?([^/]+)\.(?:egg-info|dist-info)/entry_points\.txt")
_PACKAGING = ("setup.py", "setup.cfg", "pyproject.toml")


def installation(
    blobs: BlobStore,
    scratch: Path,
    recipes: tuple[Recipe, Sequence[Recipe]],
    known: Iterable[Asked],
    facts: tuple[Fact, Fact, Sequence[Fact]],
    *,
    executable: str = "",
) -> tuple[Weakening, ...]:
    """Return what an installation did that could change which tests run, or what runs them.

    Args:
        blobs: where the layers are kept.
        scratch: a folder with room for them, for as long as this takes.
        recipes: the model's, and those that no model wrote.
        known: what these ask for (`installers.distrust.integrity.admitted`).
        facts: the lock of the environment, the environment, and those of the installation, `install.project` last.
        executable: path of the interpreter; "" where that is not known.

    Raises:
        BlobLost: a layer is gone.
    """
    locked, built, steps = facts
    tools = [fact for fact in steps if fact.key.kind == built.key.kind and fact.ok]
    if not tools:
        return ()  # nothing was built, and nothing installed
    recipe, trusted = recipes
    layers = [Layer.model_validate(one) for one in steps[-1].payload["layers"]]
    with tempfile.TemporaryDirectory(dir=scratch) as folder:

        def entries(layer: Layer) -> Tree:
            return {entry.path: entry for entry in read_tar(unpacked(layer, blobs, Path(folder)))}

        found = _Installed(
            recipe,
            entries(Layer.model_validate(built.payload["layer"])),
            entries(layers[-2]),
            entries(layers[-1]),
        )
        packages = {name: version for fact in steps for name, version in fact.payload.get("packages", {}).items()}
        site = site_of(entries(Layer.model_validate(tools[-1].payload["layer"])).values(), BUILD.lstrip("/"))
        return (
            *found.weakenings(locked.payload["packages"], known, executable),
            *_of_tools(site, packages, recipe, trusted, executable),
        )


def _of_tools(
    site: Site, packages: dict[str, str], recipe: Recipe, trusted: Sequence[Recipe], executable: str
) -> Iterator[Weakening]:
    """Yield what of the environment that the project was built with is not to be trusted.

    What a back end asks for is the project's matter; what only the model's lines lead to is not.
    """
    ours = site.reachable(asked_in(line for one in trusted for line in one.build_requirements))
    asked = site.reachable(asked_in(recipe.build_requirements)) - ours
    known = frozenset(one.name for one in site.distributions) - asked
    look = Look(site, packages or {one.name: one.version for one in site.distributions}, known, executable)
    yield from altered(look, builds=True)
    for detail in dict.fromkeys(unknown_in(look, BUILDS)):
        yield Weakening(mechanism="build-plugin", detail=detail)


@dataclass(frozen=True)
class _Installed:
    """An environment, a repository, and what the installation of a project laid on top of both."""

    recipe: Recipe
    below: Tree
    repository: Tree
    layer: Tree

    def weakenings(self, packages: dict[str, str], known: Iterable[Asked], executable: str) -> Iterator[Weakening]:
        site = site_of(overlaid(self.below, self.layer).values())
        brought = frozenset(self._brought)
        look = Look(
            site,
            packages,
            site.reachable(known) - {self._own},
            executable,
            own=self._own,
            is_tracked=self._is_tracked,
            linked=brought,
        )
        yield from altered(look)
        for mechanism, found in (
            ("install-changed-others", self._others(site, brought)),
            ("built-settings", self._settings()),
            ("built-plugin", self._plugins(site)),
        ):
            yield from (Weakening(mechanism=mechanism, detail=one) for one in dict.fromkeys(found))

    @property
    def _own(self) -> str:
        return canonicalize_name(self.recipe.distribution)

    @property
    def _brought(self) -> Iterator[str]:
        """Yield paths in `site-packages` of files that are new."""
        for path in self.layer:
            match = _SITE.fullmatch(_inner(path))
            if match is not None and path not in self.below:
                yield f"{match[1]}{match[2] or ''}"

    def _others(self, site: Site, brought: frozenset[str]) -> Iterator[str]:
        """Yield what is another than before, or new and not the project's."""
        own = [one for one in site.distributions if one.name == self._own]
        for path, entry in self.layer.items():
            inner = _inner(path)
            if not inner or entry.kind == "dir":
                continue
            if _is_whiteout(path) or path in self.below:
                yield f"{inner} was another one"
            elif not (_is_of(inner, entry, own, site, brought) or self._is_copied(inner, entry)):
                yield f"{inner} is not of {self._own or 'the project'}"

    def _is_copied(self, inner: str, entry: TarEntry) -> bool:
        """Whether a new file for Python's start is one of the tree: `setup.py develop` may lay it where it belongs."""
        small = entry.kind == "file" and entry.length <= MAX_TEXT
        return small and inner.endswith(".pth") and self._is_tracked(inner.rpartition("/")[2], read(entry))

    def _settings(self) -> Iterator[str]:
        """Yield files that are new in the tree and read by themselves, or come before modules of what runs tests."""
        for path in self._added():
            if not _BUILT.fullmatch(path) and (_READ_BY_ITSELF.fullmatch(path) or _comes_first(path)):
                yield path

    def _added(self) -> Iterator[str]:
        for path, entry in self.layer.items():
            if path.startswith(f"{TESTBED}/") and path not in self.repository and entry.kind != "dir":
                yield path.removeprefix(f"{TESTBED}/")

    def _plugins(self, site: Site) -> Iterator[str]:
        """Yield the project's own entry points that load by themselves, and that its tree does not name."""
        said = "\n".join(self._packaging)
        for one in (*(one for one in site.distributions if one.name == self._own), *self._in_tree()):
            for group, lines in one.entry_points.items():
                if group == PLUGINS or group in LOADED:
                    named = group in said and one.is_clear
                    yield from (f"{group}: {line}" for line in lines if not named or module_of_line(line) not in said)

    def _in_tree(self) -> Iterator[Distribution]:
        """Yield what the tree holds metadata of: Python looks for it wherever it looks for modules."""
        for path in self._added():
            entry = self.layer[f"{TESTBED}/{path}"]
            if (match := _METADATA.fullmatch(path)) is not None and entry.kind == "file" and entry.length <= MAX_TEXT:
                yield Distribution(match[1], canonicalize_name(match[1]), "", {"entry_points.txt": read(entry)})

    @property
    def _packaging(self) -> Iterator[str]:
        for name in _PACKAGING:
            entry = self.repository.get("/".join(filter(None, (TESTBED, self.recipe.project_dir, name))))
            if entry is not None and entry.kind == "file" and entry.length <= MAX_TEXT:
                yield read(entry).decode("utf-8", "replace")

    def _is_tracked(self, name: str, content: bytes) -> bool:
        return any(read(entry) == content for entry in self._by_name.get(name, ()) if entry.length == len(content))

    @cached_property
    def _by_name(self) -> dict[str, list[TarEntry]]:
        found: dict[str, list[TarEntry]] = {}
        for path, entry in self.repository.items():
            if entry.kind == "file":
                found.setdefault(path.rpartition("/")[2], []).append(entry)
        return found


def _is_of(inner: str, entry: TarEntry, own: Sequence[Distribution], site: Site, brought: frozenset[str]) -> bool:
    """Whether a new file is the project's: of its metadata, as its RECORD says, or a link back to the tree."""
    match = _SITE.fullmatch(inner)
    if match is None:
        is_script = entry.kind == "file" and entry.length <= MAX_TEXT and _SCRIPT.match(read(entry)) is not None
        named = any(f"../../../{inner}" in one.rows for one in own)
        taken = _PYTHON.fullmatch(inner) or (_PYTEST.fullmatch(inner) and all(one.name != "pytest" for one in own))
        return not taken and (named or (inner.startswith("bin/") and is_script))
    top, path = match[1], f"{match[1]}{match[2] or ''}"
    if any(one.folder == top for one in own):
        return True
    if any(path in one.rows and (not one.rows[path] or site.is_as_recorded(path, one)) for one in own):
        return True  # a back end of the tree's own may leave hashes out
    return not match[2] and path in brought and _DEVELOPED.fullmatch(path) is not None


def _comes_first(path: str) -> bool:
    """Whether a file in the tree is a module that what runs the tests, or Python itself, has already."""
    inner = path.removeprefix("src/").removeprefix("lib/")
    module = module_of(inner)
    mine = inner in (f"{module}.py", f"{module}/__init__.py") or inner.endswith(".so")
    return mine and (bool(owners_of(module)) or module in sys.stdlib_module_names)


def _inner(path: str) -> str:
    """Return a path relative to the environment, "" for what is not in it."""
    root = f"{ENV.lstrip('/')}/"
    return path.removeprefix(root) if path.startswith(root) else ""


def _is_whiteout(path: str) -> bool:
    return PurePosixPath(path).name.startswith(_WHITEOUT)


def overlaid(below: Tree, above: Tree) -> Tree:
    """Return what an engine shows of two layers (OCI image specification, "Representing Changes")."""
    gone = {
        str(PurePosixPath(path).with_name(PurePosixPath(path).name.removeprefix(_WHITEOUT))): path for path in above
    }
    hidden = {path for path, written in gone.items() if _is_whiteout(written)}
    hidden |= {path for path, entry in above.items() if entry.kind != "dir"}
    left = {
        path: entry
        for path, entry in below.items()
        if path not in hidden and not any(str(parent) in hidden for parent in PurePosixPath(path).parents)
    }
    return {**left, **{path: entry for path, entry in above.items() if not _is_whiteout(path)}}
