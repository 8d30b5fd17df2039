"""Other projects of the same repository that the project or its tests ask for, by name or by path.

What they need themselves is installed, and their sources lie on the path, as they are at the commit. A path does not
make entry points known: of a sibling that has some the index's newest release is installed too, which the path hides
but for its metadata. A compiled sibling is taken from the index alone.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from miner.project.facts import read_project
from miner.project.model import Declared, GroupKind, ProjectFacts
from miner.project.versions import requirement_of
from miner.project.workspace import is_project, members, project_folders

TESTBED = "/testbed"
_PATH = re.compile(
    r"(?:(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*@\s*)?(?:file:(?://)?)?"
    r"/?(?:\$\{PROJECT_ROOT\}|\{root:(?:uri|real)\}|\{toxinidir\}|\{tox_root\})?/?"
    r"(?P<path>\.{0,2}(?:[\w.-]*/)*[\w.-]*)/?(?:\[(?P<extras>[^\]]*)\])?(?:#.*)?\Z"
)
_ENTRY_POINTS = re.compile(rb"entry[-_.]points|tool\.poetry\.plugins|pytest11")
_DEPTH = 10


class Siblings:
    """The other projects of one repository.

    Attributes:
        used: folder of a sibling that something asks for -> the folder that holds its modules.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        paths: Sequence[str],
        folder: str,
        local: Iterable[tuple[str, str]] = (),
        *,
        alone: bool = False,
    ) -> None:
        """Find them.

        Args:
            files: path -> content of the declaration files.
            paths: every path of the tree.
            folder: of the project itself.
            local: name -> folder of those that the project names by a path.
            alone: take nothing of them from the index.
        """
        self.used: dict[str, str] = {}
        self._files, self._paths, self._folder, self._alone = files, paths, folder, alone
        several = len(project_folders(paths)) > 1
        found = dict(members(paths, files)) if several else {}
        found |= {canonicalize_name(name): at for name, at in local if at and is_project(files, at)}
        self._members = {name: at for name, at in found.items() if at != folder}
        self._known: dict[str, ProjectFacts] = {}

    @property
    def python_path(self) -> str:
        """The value of PYTHONPATH that makes them importable, "" where there are none."""
        return ":".join(posixpath.join(TESTBED, folder, root).rstrip("/") for folder, root in self.used.items())

    def everyone(self) -> Iterator[Declared]:
        """Yield requirements for all of them: for a root that holds the tests and is no project itself."""
        for name, folder in self._members.items():
            yield Declared(text=name, source=f"{folder}: a project of this repository")

    def expand(self, declared: Iterable[Declared], notes: list[str]) -> tuple[Declared, ...]:
        """Replace siblings by what they need to run, theirs included; everything else stays as it is."""
        return tuple(self._expand(declared, notes, ()))

    def _expand(self, declared: Iterable[Declared], notes: list[str], stack: tuple[str, ...]) -> Iterator[Declared]:
        for item in declared:
            found = self._sibling(item)
            if found is None:
                yield item
                continue
            folder, extras = found
            facts = self._facts(folder)
            if facts.native.builds:
                notes.append(f"{item.source}: {facts.name} of {folder} is compiled and is taken from the index")
                yield Declared(text=facts.name or "", source=item.source)
            elif folder not in stack and len(stack) < _DEPTH:
                self.used.setdefault(folder, facts.layout.root)
                if self._has_entry_points(folder) and facts.name and not self._alone:
                    notes.append(
                        f"{item.source}: {facts.name} has entry points: its release is installed below the path"
                    )
                    yield Declared(text=facts.name, source=item.source)
                yield from self._expand(_needs(facts, extras), notes, (*stack, folder))

    def _facts(self, folder: str) -> ProjectFacts:
        if folder not in self._known:
            self._known[folder] = read_project(self._files, self._paths, folder)
        return self._known[folder]

    def _has_entry_points(self, folder: str) -> bool:
        names = ("pyproject.toml", "setup.py", "setup.cfg")
        return any(_ENTRY_POINTS.search(self._files.get(posixpath.join(folder, name), b"")) for name in names)

    def _sibling(self, item: Declared) -> tuple[str, frozenset[str]] | None:
        """Return the folder of the sibling that a requirement is about, and the extras that it asks for."""
        text = item.text.partition(";")[0].strip().removeprefix("-e ").strip()
        try:
            requirement = requirement_of(text)
        except InvalidRequirement:
            return self._by_path(item, text)
        folder = self._members.get(canonicalize_name(requirement.name))
        if folder is None:
            return self._by_path(item, text) if requirement.url is not None else None
        return folder, frozenset(requirement.extras)

    def _by_path(self, item: Declared, text: str) -> tuple[str, frozenset[str]] | None:
        found = _PATH.match(text)
        if found is None:
            return None
        near = posixpath.dirname(item.source.partition(":")[0])
        places = (posixpath.normpath(posixpath.join(base, found["path"])) for base in (near, self._folder, ""))
        extras = frozenset(extra.strip() for extra in (found["extras"] or "").split(",") if extra.strip())
        there = (place for place in places if place not in (".", self._folder) and is_project(self._files, place))
        return next(((place, extras) for place in there), None)


def _needs(facts: ProjectFacts, extras: frozenset[str]) -> Iterator[Declared]:
    yield from facts.runtime
    wanted = {canonicalize_name(extra) for extra in extras}
    for group in facts.groups:
        if group.kind is GroupKind.EXTRA and canonicalize_name(group.name) in wanted:
            yield from group.requirements
