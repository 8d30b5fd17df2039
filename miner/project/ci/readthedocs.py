"""Read the Docs: what the documentation needs, which is seldom what tests need, but names Pythons and packages.

Format: https://docs.readthedocs.com/platform/stable/config-file/v2.html.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from miner.project.ci.reading import Reading
from miner.project.ci.texts import load_texts, mapping, sequence, text
from miner.project.ci.tree import Tree
from miner.project.installs import Installs, apt
from miner.project.model import Job
from miner.project.shell import ROOT
from miner.project.shell_words import Word

_NAMES = (".readthedocs.yaml", ".readthedocs.yml", "readthedocs.yml", "readthedocs.yaml")


def read_readthedocs(tree: Tree) -> Iterator[Job]:
    """Yield the one job of a Read the Docs configuration."""
    path = next((name for name in _NAMES if name in tree.files), None)
    if path is None:
        return
    notes: list[str] = []
    content = load_texts(tree, path, notes)
    reading = Reading(tree, path, notes=notes)
    build, python = mapping(content.get("build")), mapping(content.get("python"))
    version = text(mapping(build.get("tools")).get("python")) or text(python.get("version"))
    if version and "conda" not in version and "mamba" not in version:
        reading.set_python(version)
    reading.install(apt([Word(name) for name in map(text, sequence(build.get("apt_packages")))]), ROOT, path)
    for entry in (*sequence(python.get("install")), *_old(content)):
        _install(reading, mapping(entry), path)
    environment = text(mapping(content.get("conda")).get("environment")) or text(
        mapping(content.get("conda")).get("file")
    )
    if environment:
        reading.install(Installs(conda_files=(environment,)), ROOT, path)
    for commands in (*mapping(build.get("jobs")).values(), build.get("commands")):
        for line in sequence(commands):
            reading.step(text(line))
    yield reading.job()


def _install(reading: Reading, entry: dict[str, object], path: str) -> None:
    if file := text(entry.get("requirements")):
        reading.install(Installs(files=(file,)), ROOT, path)
    if place := text(entry.get("path")):
        extras = [text(name) for name in sequence(entry.get("extra_requirements"))]
        reading.install(Installs(projects=(f"{place}[{','.join(extras)}]",)), ROOT, path)


def _old(content: dict[str, object]) -> Iterator[dict[str, object]]:
    """Version 1: a file, and extras of the project itself."""
    python = mapping(content.get("python"))
    if file := text(content.get("requirements_file")) or text(python.get("requirements")):
        yield {"requirements": posixpath.normpath(file)}
    if extras := python.get("extra_requirements"):
        yield {"path": ".", "extra_requirements": extras}
