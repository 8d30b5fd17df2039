"""Text in sentences, and text that stands for bytes."""

from __future__ import annotations

from collections.abc import Sequence

_NAMED = 5


def some(names: Sequence[str], limit: int = _NAMED) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def patch_bytes(patch: str) -> bytes:
    """Return the bytes that the text of a patch stands for; those that are not UTF-8 are surrogate escapes in it."""
    return patch.encode("utf-8", "surrogateescape")
