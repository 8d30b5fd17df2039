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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from installers.distrust.runner import module_of, owners_of
from installers.layer import chunks_of, read
from miner.sandbox.image_archive import TarEntry

_SITE = re.compile(r"opt/env/lib/python[^/]*/site-packages/(.+)")
_NOTES = ("RECORD", "METADATA", "PKG-INFO", "entry_points.txt")
_MAX_NOTE = 16 << 20
_REQUIRES = re.compile(r"^Requires-Dist:\s*(.+)$", re.IGNORECASE | re.MULTILINE)


@dataclass
class Distribution:
    """One `.dist-info` folder, or what looks like one.

    Attributes:
        folder: its name.
        name: normalised, of the folder's name.
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
    def plugins(self) -> tuple[str, ...]:
        """Entry points of pytest, as written."""
        return tuple(_entry_points(self.notes.get("entry_points.txt", b"").decode("utf-8", "replace"), "pytest11"))

    @cached_property
    def requires(self) -> frozenset[str]:
        """Normalised names of what it asks for, under any condition."""
        text = (self.notes.get("METADATA") or self.notes.get("PKG-INFO") or b"").decode("utf-8", "replace")
        return frozenset(filter(None, (_name(line) for line in _REQUIRES.findall(text.partition("\n\n")[0]))))


@dataclass(frozen=True)
class Site:
    """The environment as far as it is read.

    Attributes:
        distributions: in the order of their folders.
        files: path relative to `site-packages` -> entry, of what is looked at.
        outside: path relative to the environment -> entry, of its programs and settings.
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

    def reachable(self, names: Iterable[str]) -> frozenset[str]:
        """Return names and what these distributions ask for, directly or not."""
        known = {one.name: one for one in self.distributions}
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += known[name].requires if name in known else ()
        return frozenset(found)


def site_of(entries: Iterable[TarEntry]) -> Site:
    """Return what of an environment's layer is looked at."""
    distributions: dict[str, Distribution] = {}
    files: dict[str, TarEntry] = {}
    outside: dict[str, TarEntry] = {}
    for entry in entries:
        if (match := _SITE.fullmatch(entry.path)) is None:
            if (path := entry.path.removeprefix("opt/env/")) == "pyvenv.cfg" or path.startswith("bin/"):
                outside[path] = entry
            continue
        path = match[1]
        top, _, rest = path.partition("/")
        low = top.lower()
        if low.endswith((".dist-info", ".egg-info")):
            one = distributions.setdefault(top, _distribution(top))
            if entry.kind == "file" and (rest in _NOTES or not rest) and entry.length <= _MAX_NOTE:
                one.notes[rest or "PKG-INFO"] = read(entry)
            files[path] = entry
        elif not rest or owners_of(module_of(path)):
            files[path] = entry
    return Site(tuple(distributions[name] for name in sorted(distributions)), files, outside)


def _distribution(folder: str) -> Distribution:
    stem = folder.rpartition(".")[0]
    name, _, version = stem.partition("-")
    return Distribution(folder, canonicalize_name(name), re.sub(r"-py\d.*\Z", "", version))


def _normal(path: str) -> str:
    return str(PurePosixPath(path))


def _entry_points(text: str, group: str) -> Iterator[str]:
    """Yield the lines of a group; readers of different ages take blanks around its name or not, so all are taken."""
    inside = False
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            inside = line.strip("[] \t") == group
        elif inside and line and not line.startswith(("#", ";")):
            yield line


def _name(text: str) -> str:
    try:
        return canonicalize_name(Requirement(text.strip()).name)
    except InvalidRequirement:
        return ""
