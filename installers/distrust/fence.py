"""Fences around text of a repository in a prompt: data, whatever it says."""

from __future__ import annotations

import re
import unicodedata

from miner.core.hashing import sha256_bytes

_MARK = re.compile("[<\uff1c\ufe64](?=\\s*[/\uff0f]?\\s*data(?![\\w.-]))", re.IGNORECASE)
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that are not drawn (Unicode Character Database, `Default_Ignorable_Code_Point`)."""
_LONGEST_LABEL = 200


def fence(label: str, text: str) -> str:
    """Return text between two marks that no text can hold: what looks like one in it no longer does.

    Characters that are not seen, or that change what is seen around them (control and format characters, also those
    that turn the direction of writing, variation selectors and fillers, lone surrogates), become their escapes. The
    same text has the same marks, so that a prompt that is asked again is the same.

    Args:
        label: what it is ("file setup.py", "log"), for the reader.
        text: of the repository, of a log, of a command's output.
    """
    shown = _steady(text)
    mark = sha256_bytes(shown.encode())[:16]
    return f'<data id="{mark}" what="{_steady_label(label)}">\n{shown}\n</data id="{mark}">'


def _steady(text: str) -> str:
    plain = text.replace("\r\n", "\n")
    if not plain.isascii() or not plain.isprintable():
        plain = "".join(one if one in "\n\t" or not _is_hidden(one) else _escape(one) for one in plain)
    return _MARK.sub("&lt;", plain)


def _steady_label(label: str) -> str:
    return re.sub(r'[\n\t"<>]', "_", _steady(label))[:_LONGEST_LABEL]


def _is_hidden(one: str) -> bool:
    return unicodedata.category(one) in _HIDDEN or _IGNORABLE.match(one) is not None


def _escape(one: str) -> str:
    return ascii(one)[1:-1]
