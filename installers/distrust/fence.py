"""Fences around text of a repository in a prompt: data, whatever it says."""

from __future__ import annotations

import re
import unicodedata

from miner.core.hashing import sha256_bytes

_MARK = re.compile("[<\uff1c\ufe64](?=\\s*[/\uff0f]?\\s*data(?![\\w.-]))", re.IGNORECASE)
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_LONGEST_LABEL = 200


def fence(label: str, text: str) -> str:
    """Return text between two marks that no text can hold: what looks like one in it no longer does.

    Characters that are not seen, or that change what is seen around them (control and format characters, also those
    that turn the direction of writing, lone surrogates), become their escapes. The same text has the same marks, so
    that a prompt that is asked again is the same.

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
    return unicodedata.category(one) in _HIDDEN


def _escape(one: str) -> str:
    return ascii(one)[1:-1]
