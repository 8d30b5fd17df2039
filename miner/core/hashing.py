"""Canonical JSON and content hashes: one place, so that equal inputs have equal hashes everywhere."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a JSON value or record: sorted keys, no spaces, ASCII."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_encode)


def _encode(value: Any) -> Any:
    """Encode records, sets and anything with an ISO form inside a JSON value."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no canonical JSON form")


def sha256_bytes(data: bytes) -> str:
    """Return the hex sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def hash_of(value: Any) -> str:
    """Return the hex sha256 of a value's canonical JSON."""
    return sha256_bytes(canonical_json(value).encode())
