"""Text and bytes that leave: valid UTF-8, patches that apply, JSON that is the same for the same values."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterator
from functools import partial
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
    """Return the one indented JSON text of a value or record: sorted keys, ASCII, a newline at the end.

    Of a list of records, which may be long, each stands on a line of its own.
    """
    if not isinstance(value, BaseModel):
        return (_INDENTED(value) + "\n").encode("ascii")
    text = io.BytesIO()
    for piece in _pieces(value, indented=True):
        text.write(piece.encode("ascii"))
    text.write(b"\n")
    return text.getvalue()


def record_hash(record: BaseModel) -> str:
    """Return what `hash_of` returns of a record, without holding its text: a month's lock is long."""
    seen = hashlib.sha256()
    for piece in _pieces(record, indented=False):
        seen.update(piece.encode("ascii"))
    return seen.hexdigest()


_INDENTED = partial(json.dumps, sort_keys=True, indent=2, ensure_ascii=True)
_PLAIN = partial(json.dumps, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _pieces(record: BaseModel, *, indented: bool) -> Iterator[str]:
    """Yield the JSON text of a record field by field, and that of a list of records one by one."""
    line, colon = ("\n  ", ": ") if indented else ("", ":")
    for place, name in enumerate(sorted(type(record).model_fields)):
        yield f"{',' if place else '{'}{line}{json.dumps(name)}{colon}"
        value = getattr(record, name)
        if value and isinstance(value, tuple) and all(isinstance(one, BaseModel) for one in value):
            yield from _listed(value, f"{line}  " if indented else "")
            yield f"{line}]"
        else:
            plain = record.model_dump(mode="json", include={name})[name]
            yield _INDENTED(plain).replace("\n", line) if indented else _PLAIN(plain)
    yield "\n}" if indented else "}"


def _listed(records: tuple[BaseModel, ...], line: str) -> Iterator[str]:
    for place, one in enumerate(records):
        yield f"{',' if place else '['}{line}{_PLAIN(one.model_dump(mode='json'))}"
