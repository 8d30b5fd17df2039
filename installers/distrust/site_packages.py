"""What lies in the `site-packages` of an environment's layer, as far as it can change what runs tests. Read as bytes.

Sources: PyPA, "Recording installed projects" (RECORD, entry_points.txt, METADATA) and "Entry points specification".
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from installers.distrust.entry_points import Group, groups, is_clear
from installers.distrust.loaded import PLUGINS
from installers.layer import chunks_of, read
from miner.sandbox.image_archive import TarEntry

_SITE = re.compile(r"lib/python[^/]*/site-packages/(.+)")
_NOTES = ("RECORD", "METADATA", "PKG-INFO", "entry_points.txt")
_MAX_NOTE = 16 << 20
_REQUIRES = re.compile(r"^Requires-Dist:\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_EXTRA = re.compile(r"""\bextra\s*(?:==|in)\s*["']([^"']*)["']|["']([^"']*)["']\s*==\s*extra\b""")

Asked = tuple[str, str]
"""Normalised name of a distribution and an extra of it, "" for the distribution itself."""


@dataclass
class Distribution:
    """One `.dist-info` folder, or what looks like one.

    Attributes:
        folder: its name.
        name: normalised, of the folder's name.
        version: of the folder's name.
        notes: file -> its bytes.
    """

    folder: str
    name: str
    version: str
    notes: dict[str, bytes] = field(default_factory=dict)

    @cached_property
    def rows(self) -> dict[str, str]:
        """Path relative to `site-packages` -> its hash as RECORD has it, "" where it has none."""
        text = self.notes.get("RECORD", b"").decode("utf-8", "replace")
        try:
            rows = list(csv.reader(io.StringIO(text, newline="")))
        except csv.Error:
            return {}
        return {_normal(row[0]): row[1] if len(row) > 1 else "" for row in rows if row}

    @cached_property
    def entry_points(self) -> Group:
        """Entry points by group, as any reader finds them."""
        return groups(self._entry_points)

    @property
    def is_clear(self) -> bool:
        """Whether all readers find the same entry points."""
        return is_clear(self._entry_points)

    @property
    def _entry_points(self) -> str:
        return self.notes.get("entry_points.txt", b"").decode("utf-8", "replace")

    @property
    def plugins(self) -> tuple[str, ...]:
        """Entry points of pytest."""
        return self.entry_points.get(PLUGINS, ())

    @cached_property
    def requires(self) -> tuple[Requirement, ...]:
        """What it asks for, under any condition."""
        text = (self.notes.get("METADATA") or self.notes.get("PKG-INFO") or b"").decode("utf-8", "replace")
        return tuple(filter(None, map(requirement_of, _REQUIRES.findall(text.partition("\n\n")[0]))))

    def leads_to(self, extra: str) -> frozenset[Asked]:
        """Return what it asks for, "" as an extra: without any; of other conditions none is taken to fail."""
        return frozenset(
            pair
            for one in self.requires
            if extra in (_extras(str(one.marker or "")) or frozenset({""}))
            for pair in asked_by(one)
        )


@dataclass(frozen=True)
class Site:
    """The environment as far as it is read.

    Attributes:
        distributions: in the order of their folders.
        files: path relative to `site-packages` -> entry.
        outside: path relative to the environment -> entry, of all else.
    """

    distributions: tuple[Distribution, ...]
    files: Mapping[str, TarEntry]
    outside: Mapping[str, TarEntry]

    @cached_property
    def owners(self) -> Mapping[str, tuple[Distribution, ...]]:
        """Path -> the distributions whose RECORD names it."""
        found: dict[str, list[Distribution]] = defaultdict(list)
        for one in self.distributions:
            for path in one.rows:
                if path in self.files:
                    found[path].append(one)
        return {path: tuple(owners) for path, owners in found.items()}

    def is_as_recorded(self, path: str, owner: Distribution) -> bool:
        """Whether a file is what the RECORD of a distribution says."""
        entry, said = self.files[path], owner.rows.get(path, "")
        if entry.kind != "file" or not said.startswith("sha256="):
            return False
        digest = hashlib.sha256()
        with entry.open() as stream:
            for chunk in chunks_of(stream):
                digest.update(chunk)
        return base64.urlsafe_b64encode(digest.digest()).decode().rstrip("=") == said.removeprefix("sha256=").rstrip(
            "="
        )

    def reachable(self, asked: Iterable[Asked]) -> frozenset[str]:
        """Return names that are asked for, and what these distributions ask for, directly or not.

        What an extra brings counts only where that extra is asked for.
        """
        known = {one.name: one for one in self.distributions}
        found: set[Asked] = set()
        waiting = list(asked)
        while waiting:
            wanted = waiting.pop()
            if wanted not in found:
                found.add(wanted)
                waiting += known[wanted[0]].leads_to(wanted[1]) if wanted[0] in known else ()
        return frozenset(name for name, _ in found)


def asked_by(requirement: Requirement) -> tuple[Asked, ...]:
    """Return what a requirement asks for: the distribution, and each extra of it."""
    name = canonicalize_name(requirement.name)
    return (name, ""), *((name, canonicalize_name(extra)) for extra in requirement.extras)


def site_of(entries: Iterable[TarEntry], root: str = "opt/env") -> Site:
    """Return what of an environment is looked at.

    Args:
        entries: of its layer.
        root: the folder that it lies in.
    """
    distributions: dict[str, Distribution] = {}
    files: dict[str, TarEntry] = {}
    outside: dict[str, TarEntry] = {}
    for entry in entries:
        if not entry.path.startswith(f"{root}/"):
            continue
        if (match := _SITE.fullmatch(inner := entry.path.removeprefix(f"{root}/"))) is None:
            outside[inner] = entry
            continue
        path = match[1]
        files[path] = entry
        top, _, rest = path.partition("/")
        if top.lower().endswith((".dist-info", ".egg-info")):
            one = distributions.setdefault(top, distribution(top))
            if entry.kind == "file" and (rest in _NOTES or not rest) and entry.length <= _MAX_NOTE:
                one.notes[rest or "PKG-INFO"] = read(entry)
    return Site(tuple(distributions[name] for name in sorted(distributions)), files, outside)


def distribution(folder: str) -> Distribution:
    """Return the distribution that a folder of this name describes."""
    stem = folder.rpartition(".")[0]
    name, _, version = stem.partition("-")
    return Distribution(folder, canonicalize_name(name), re.sub(r"-py\d.*\Z", "", version))


def _normal(path: str) -> str:
    return str(PurePosixPath(path))


def requirement_of(text: str) -> Requirement | None:
    """Return the requirement that a line is, None for what is none."""
    try:
        return Requirement(text.strip())
    except (InvalidRequirement, RecursionError):  # it may be nested as deep as somebody likes
        return None


def _extras(marker: str) -> frozenset[str]:
    """Return the extras that a marker names; none where it does not depend on any."""
    found = {canonicalize_name(one or other) for one, other in _EXTRA.findall(marker)}
    return frozenset(found) if found or not re.search(r"\bextra\b", marker) else frozenset({"?"})
