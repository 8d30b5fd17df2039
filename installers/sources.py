"""What of a lock has no wheel: its source distributions, and what they say that they need to be built.

A source distribution is downloaded in the box of the lock and checked against its hash here. What it declares is read
statically (`miner.project`); nothing of it runs.
"""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from installers.workshop import WORK, Workshop
from miner.core.hashing import sha256_bytes
from miner.core.records import Record
from miner.core.settings import ArchiveLimits
from miner.crawlers.archive import ArchiveRefused, read_archive
from miner.project.facts import read_project
from miner.sandbox.container import DockerBox
from miner.sandbox.interface import ExecResult

LEGACY_BACKEND = "setuptools.build_meta:__legacy__"
LEGACY_REQUIRES = ("setuptools", "wheel")

_READ = frozenset({"pyproject.toml", "setup.py", "setup.cfg", "PKG-INFO"})
_FETCH = """\
import json, shutil, sys, urllib.request
with open(sys.argv[1]) as file:
    wanted = json.load(file)
for url, path in wanted:
    with urllib.request.urlopen(url, timeout=60) as answer, open(path, "wb") as out:
        shutil.copyfileobj(answer, out)
"""


class Source(Record):
    """One source distribution of a lock, and how it is built.

    Attributes:
        requires: PEP 508 strings of its build requirements, as far as they are declared.
        backend: the PEP 517 back end.
        backend_path: folders of the source distribution itself in which that lies.
    """

    name: str
    version: str
    filename: str
    sha256: str
    requires: tuple[str, ...] = LEGACY_REQUIRES
    backend: str = LEGACY_BACKEND
    backend_path: tuple[str, ...] = ()


def sources_of(workshop: Workshop, box: DockerBox, pylock: bytes, executable: str) -> tuple[Source, ...] | ExecResult:
    """Download and keep what has no usable wheel; a download that fails is returned as the command that failed.

    The box has run code of packages, which may have spoilt a download: that is no fault of the index.

    Args:
        workshop: the tools.
        box: one that reaches the index.
        pylock: a `pylock.toml` (PEP 751) that uv has written: of wheels, it names only those that it can use.
        executable: an interpreter in the box.
    """
    wanted = wheelless(pylock)
    if not wanted:
        return ()
    paths = {name: f"{WORK}/sdist-{number}" for number, (name, *_) in enumerate(wanted)}
    plan = json.dumps([(url, paths[name]) for name, _, url, _ in wanted]).encode()
    box.put({f"{WORK}/fetch.json": (plan, 0o644)})
    result = box.run([executable, "-c", _FETCH, f"{WORK}/fetch.json"], workdir=WORK)
    if not result.ok:
        return result
    found = []
    for name, version, url, sha256 in wanted:
        data = box.read_file(paths[name], workshop.settings.measure.archive.max_bytes)
        if sha256_bytes(data) != sha256:
            return replace(result, exit_code=1, output=f"error: other bytes than announced: {_filename(url)}".encode())
        workshop.blobs.put(data)
        plain = Source(name=name, version=version, filename=_filename(url), sha256=sha256)
        found.append(with_declarations(plain, data, workshop.settings.measure.archive))
    return tuple(found)


def wheelless(pylock: bytes) -> list[tuple[str, str, str, str]]:
    """Return name, version, URL and sha256 of each package that has a source distribution only, by name."""
    found = []
    for package in tomllib.loads(pylock.decode())["packages"]:
        sdist: dict[str, Any] = package.get("sdist") or {}
        if not package.get("wheels") and "url" in sdist:
            name = canonicalize_name(package["name"])
            found.append((name, str(package["version"]), str(sdist["url"]), str(sdist["hashes"]["sha256"])))
    return sorted(found)


def _filename(url: str) -> str:
    return unquote(urlsplit(url).path.rpartition("/")[2])


def with_declarations(source: Source, data: bytes, limits: ArchiveLimits) -> Source:
    """Return a source distribution with what it declares; where that cannot be read, with what PEP 517 has instead."""
    with tempfile.NamedTemporaryFile(suffix=source.filename) as file:
        file.write(data)
        file.flush()
        try:
            tree = read_archive(Path(file.name), source.filename, limits)
        except ArchiveRefused:
            return source
    files = {path: entry.data for path, entry in tree.entries.items() if path in _READ and entry.mode != "120000"}
    facts = read_project(files, list(tree.entries), "")
    backend = facts.build_backend or LEGACY_BACKEND
    declared = LEGACY_REQUIRES if facts.build_requires is None else _texts(facts.build_requires)
    setup = _texts(facts.setup_requires) if backend.startswith("setuptools") else ()
    return source.model_copy(
        update={
            "requires": tuple(dict.fromkeys((*declared, *setup))),
            "backend": backend,
            "backend_path": facts.backend_path,
        }
    )


def _texts(declared: Sequence[Any]) -> tuple[str, ...]:
    return tuple(item.text for item in declared)
