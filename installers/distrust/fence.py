"""Fences around text of a repository in a prompt: data, whatever it says."""

from __future__ import annotations

from miner.core.hashing import sha256_bytes


def fence(label: str, text: str) -> str:
    """Return text between two marks that it cannot contain, since they hold its own hash.

    Args:
        label: what it is ("file setup.py", "log"), for the reader.
        text: of the repository, of a log, of a command's output.
    """
    mark = sha256_bytes(text.encode("utf-8", "surrogateescape"))[:16]
    return f'<data id="{mark}" what="{label}">\n{text}\n</data id="{mark}">'
