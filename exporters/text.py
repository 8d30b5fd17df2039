"""Text and bytes that leave: valid UTF-8, patches that apply, JSON that is the same for the same values."""

from __future__ import annotations

import base64
import json
from typing import Any, Literal

from pydantic import BaseModel

Encoding = Literal["utf-8", "base64"]


def clean(text: str) -> str:
    r"""Return text that can be written as UTF-8: a byte that was no UTF-8 (a lone surrogate) becomes `\udcXX`."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def encode_patch(patch: str) -> tuple[str, Encoding]:
    """Return a patch as it stands in a row, and how to read it.

    A patch ends with a newline, or the last hunk does not apply. A patch with bytes that are not UTF-8 (surrogate
    escapes here) would be damaged by any replacement, so its bytes are written in base64.
    """
    if patch and not patch.endswith("\n"):
        patch += "\n"
    try:
        patch.encode("utf-8")
    except UnicodeEncodeError:
        return base64.b64encode(patch.encode("utf-8", "surrogateescape")).decode("ascii"), "base64"
    return patch, "utf-8"


def decode_patch(text: str, encoding: str) -> bytes:
    """Return the bytes of a patch from a row, fit for `git apply`."""
    return base64.b64decode(text, validate=True) if encoding == "base64" else text.encode("utf-8")


def json_bytes(value: Any) -> bytes:
    """Return the one indented JSON text of a value or record: sorted keys, ASCII, a newline at the end."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return (json.dumps(value, sort_keys=True, indent=2, ensure_ascii=True) + "\n").encode("ascii")
