"""Dockerfiles: what their RUN lines install, and the Python of their base image.

Format: https://docs.docker.com/reference/dockerfile/.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator

from miner.project.ci.reading import Reading
from miner.project.ci.tree import Tree
from miner.project.model import Job
from miner.project.shell_words import Variables, value

_DOCKERFILE = re.compile(r"(?:Dockerfile(?:[.-][^/]*)?|[^/]+\.[Dd]ockerfile)\Z")
_INSTRUCTION = re.compile(r"(\w+)\s+(.*)\Z", re.DOTALL)
_PYTHON_IMAGE = re.compile(r"(?:.*/)?python:(?:.*?)(\d\.\d+)")
_HEREDOC = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?")
_MOST = 6
_DEEPEST = 2


def read_dockerfiles(tree: Tree) -> Iterator[Job]:
    """Yield a job for each Dockerfile near the root of the tree, the nearest first."""
    paths = [path for path in tree.files if _DOCKERFILE.match(posixpath.basename(path)) and path.count("/") <= _DEEPEST]
    for path in sorted(paths, key=lambda one: (one.count("/"), one))[:_MOST]:
        notes: list[str] = []
        text = tree.text(path, notes)
        reading = Reading(tree, path, notes=notes)
        if text is not None:
            _read(reading, text)
        yield reading.job()


def _read(reading: Reading, text: str) -> None:
    folder = ""
    for name, rest in _instructions(text):
        if name == "FROM":
            image = value(
                rest.split()[-3] if " as " in rest.lower() and len(rest.split()) >= 3 else rest.split()[-1],
                reading.variables,
            )
            if image.known and (match := _PYTHON_IMAGE.match(image.text)):
                reading.set_python(match[1])
            folder = ""
        elif name in ("ENV", "ARG"):
            reading.variables.update(_assigned(rest, reading.variables))
        elif name == "RUN":
            reading.step(_command(re.sub(r"\A(?:--\w+=\S+\s+)*", "", rest)), folder)
        elif name in ("CMD", "ENTRYPOINT"):
            reading.step(_command(rest), folder)


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        while line.endswith(("\\", "`")) and at < len(lines):
            following = lines[at].strip()
            at += 1
            if not following.startswith("#"):
                line = f"{line[:-1].rstrip()} {following}"
        match = _INSTRUCTION.match(line)
        if not match or line.startswith("#"):
            continue
        rest = match[2]
        if match[1].upper() == "RUN" and (document := _HEREDOC.match(rest)):
            body = []
            while at < len(lines) and lines[at].strip() != document[1]:
                body.append(lines[at])
                at += 1
            at += 1
            rest = "\n".join(body)
        yield match[1].upper(), rest


def _assigned(rest: str, variables: Variables) -> dict[str, str | None]:
    """Read `ENV A=1 B="x y"`, `ENV A 1` and `ARG A`."""
    found: dict[str, str | None] = {}
    pairs = re.findall(r"(?<!\w)([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|(?:\\.|\S)*)", rest)
    if not pairs:
        name, _, held = rest.partition(" ")
        pairs = [(name, held.strip())] if held.strip() and name.isidentifier() else []
        if not pairs and rest.strip().isidentifier():
            return {rest.strip(): None}
    for name, raw in pairs:
        expanded = value(raw, variables) if raw.count('"') % 2 == 0 and raw.count("'") % 2 == 0 else None
        found[name] = expanded.text if expanded is not None and expanded.known else None
    return found


def _command(rest: str) -> str:
    """Return a command as shell text; its JSON form is one command with plain words."""
    if rest.startswith("["):
        try:
            words = json.loads(rest)
        except ValueError:
            return rest
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            return " ".join(f"'{word}'" if "'" not in word else word for word in words)
    return rest
