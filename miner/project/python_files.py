"""Files that name a Python and nothing else: `.python-version` (pyenv, uv) and `runtime.txt` (Heroku)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from miner.project.model import PythonHint
from miner.project.text import decode

_VERSION = re.compile(r"(?:c?python-?)?(\d+\.\d+)(?:\.\d+|\.x|-dev|(?:a|b|rc)\d+|\.\d+(?:a|b|rc)\d+)?\Z", re.I)


def read_python_files(files: Mapping[str, bytes], folder: str) -> Iterator[PythonHint]:
    """Yield the versions that the files of a folder, else of the root, name."""
    for name in (".python-version", "runtime.txt"):
        path = next((path for path in (posixpath.join(folder, name), name) if path in files), None)
        text = decode(files[path], path, []) if path else None
        for line in (text or "").splitlines():
            if path and (found := _VERSION.match(line.strip())):
                yield PythonHint(kind="pinned", version=found.group(1), source=path)
