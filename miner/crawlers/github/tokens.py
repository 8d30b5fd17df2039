"""Tokens of the forge: where they come from, and how they are kept out of everything that is written down.

A classic token (ghp_), a fine-grained one (github_pat_) and one of a GitHub App (ghs_) are all plain text to us.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from miner.core.errors import ForgeToken
from miner.core.settings import Github

_SEPARATORS = re.compile(r"[,\s]+")
_SHORTEST = 8
_SENDABLE = re.compile(r"[!-~]+")


class Secret(str):
    """Text that a representation does not show, so that no traceback with local variables does."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def tokens_from(settings: Github, environ: Mapping[str, str]) -> tuple[Secret, ...]:
    """Return the tokens of the variables that the settings name, each once, in order; () where there are none.

    Raises:
        ForgeToken: one of them holds characters that no HTTP header takes.
    """
    found: list[Secret] = []
    for name in settings.token_env:
        texts = [text for text in _SEPARATORS.split(environ.get(name, "")) if text]
        for place, text in enumerate(texts, 1):
            if not _SENDABLE.fullmatch(text):
                raise ForgeToken(f"{name}: token {place} of {len(texts)} holds characters that no token has")
            if text not in found:
                found.append(Secret(text))
    return tuple(found)


def redact(text: str, tokens: Sequence[str]) -> str:
    """Return a text with every token replaced by its number; a word of a few letters is nobody's token."""
    for number, token in sorted(enumerate(tokens, 1), key=lambda one: len(one[1]), reverse=True):
        if len(token) >= _SHORTEST:
            text = text.replace(token, f"[token {number}]")
    return text
