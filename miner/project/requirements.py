"""Requirements files, read as pip reads them, without the network.

Format: https://pip.pypa.io/en/stable/reference/requirements-file-format/.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from miner.project.model import Declared
from miner.project.text import decode

_COMMENT = re.compile(r"(^|\s+)#.*$")
_INCLUDE = re.compile(r"(?:-r|--requirement)(?:\s+|=)?(.+)")
_CONSTRAINT = re.compile(r"(?:-c|--constraint)(?:\s+|=)?(.+)")
_EDITABLE = re.compile(r"(?:-e|--editable)(?:\s+|=)?(.+)")
_OPTION_TAIL = re.compile(r"\s+--?[a-zA-Z][\w-]*(?:[= ].*)?$")


def read_requirements(files: Mapping[str, bytes], path: str, notes: list[str]) -> tuple[Declared, ...]:
    """Return the requirements of a file and of the files that it includes.

    A constraint file (`-c`) asks for nothing by itself and is noted only: the cut-off date bounds versions already.
    Options are skipped with a note, hashes silently; an editable requirement stands as the path or URL that it names.
    """
    return tuple(_read(files, path, notes, ()))


def parse_requirement_lines(text: str, source: str, notes: list[str]) -> tuple[Declared, ...]:
    """Return the requirements of a text that stands elsewhere; includes in it are noted only."""
    return tuple(_parse({}, text, source, notes, (source,)))


def _read(files: Mapping[str, bytes], path: str, notes: list[str], stack: tuple[str, ...]) -> Iterator[Declared]:
    if path in stack:
        notes.append(f"{path}: includes itself by way of {stack[-1]}")
        return
    if path not in files:
        notes.append(f"{stack[-1] if stack else path}: {path} is not in the tree")
        return
    text = decode(files[path], path, notes)
    if text is not None:
        yield from _parse(files, text, path, notes, (*stack, path))


def _parse(
    files: Mapping[str, bytes], text: str, path: str, notes: list[str], stack: tuple[str, ...]
) -> Iterator[Declared]:
    for raw in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = _COMMENT.sub("", raw).strip()
        if not line:
            continue
        if include := _INCLUDE.fullmatch(line):
            yield from _read(files, relative(path, include.group(1)), notes, stack)
        elif constraint := _CONSTRAINT.fullmatch(line):
            notes.append(f"{path}: constraints in {constraint.group(1).strip()} are not applied")
        elif editable := _EDITABLE.fullmatch(line):
            yield Declared(text=editable.group(1).strip().strip("\"'"), source=path)
        elif line.startswith("-"):
            notes.append(f"{path}: option {line.split()[0].split('=')[0]} is skipped")
        else:
            yield Declared(text=_without_options(line), source=path)


def _without_options(line: str) -> str:
    """Take `--hash=...` and other per-requirement options off the end of a line."""
    while (shorter := _OPTION_TAIL.sub("", line)) != line:
        line = shorter
    return line


def relative(path: str, target: str) -> str:
    """Return a target named inside a file as a path of the tree."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target.strip().strip("\"'")))
