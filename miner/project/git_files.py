"""What git's own files say of contents that are kept elsewhere: submodules and files of git LFS.

Formats: https://git-scm.com/docs/gitmodules, https://git-scm.com/docs/gitattributes. Nothing here runs git.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from miner.project.text import decode, read_ini

_LINE = re.compile(r'(?!#)(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>\S+))\s(?P<attributes>.*)')


def read_submodules(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the folders that `.gitmodules` declares, in order."""
    sections = read_ini(_unindented(files), ".gitmodules", [])
    paths = (section.get("path", "").strip().strip("/") for section in sections.values())
    return tuple(dict.fromkeys(path for path in paths if path))


def _unindented(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Git indents keys, which an INI file takes for continued lines."""
    data = files.get(".gitmodules")
    if data is None:
        return {}
    return {".gitmodules": b"\n".join(line.strip() for line in data.splitlines())}


def read_lfs(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the patterns of `.gitattributes` whose files git LFS keeps, in order."""
    text = decode(files.get(".gitattributes", b""), ".gitattributes", []) or ""
    found = (_LINE.match(line.strip()) for line in text.splitlines())
    kept = [line for line in found if line and "filter=lfs" in line["attributes"].split()]
    return tuple(dict.fromkeys(line["quoted"] or line["plain"] for line in kept))
