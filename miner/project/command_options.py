"""Options of a command line, taken apart by the names of those that take a value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from miner.project.shell_words import Word

Option = tuple[str, Word]
"""(name, value); the name is "" for a positional word, the value is empty for an option that takes none."""

_NONE = Word("")


def split_options(words: Sequence[Word], valued: Collection[str]) -> Iterator[Option]:
    """Yield options and positional words in order, `--name=value`, `-nvalue` and clusters such as `-qr file` too."""
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word.text == "--":
            yield from (("", rest) for rest in words[at:])
            return
        name, attached = _name(word, valued)
        if not name:
            yield "", word
        elif name not in valued:
            yield name, Word(attached, word.known) if attached else _NONE
        elif attached:
            yield name, Word(attached.removeprefix("=") if name[1] != "-" else attached, word.known)
        elif at < len(words):
            yield name, words[at]
            at += 1


def _name(word: Word, valued: Collection[str]) -> tuple[str, str]:
    """Return the name of an option and what is attached to it; ("", "") for another word."""
    text = word.text
    if len(text) < 2 or not text.startswith("-"):
        return "", ""
    if text.startswith("--") or text in valued:
        name, _, attached = text.partition("=")
        return name, attached
    for place, letter in enumerate(text[1:], 1):
        if f"-{letter}" in valued:
            return f"-{letter}", text[place + 1 :]
        if not letter.isalpha():
            break
    return text[:2] if len(text) > 2 and not text[2].isalpha() else text, ""


def leading_options(
    words: Sequence[Word], valued: Collection[str], stop: Collection[str] = ()
) -> tuple[list[Option], tuple[Word, ...]]:
    """Return the options that stand before the first positional word, and all that follows them.

    Args:
        words: of the command line.
        valued: names of options that take a value.
        stop: options that begin what follows, such as `-m`.
    """
    found: list[Option] = []
    rest = tuple(words)
    while rest and rest[0].text.startswith("-") and len(rest[0].text) > 1:
        if rest[0].text == "--":
            return found, rest[1:]
        option = next(split_options(rest[:2], valued), ("", _NONE))
        if option[0] in stop:
            break
        found.append(option)
        taken = option[0] in valued and len(rest) > 1 and option[1] is rest[1]
        rest = rest[2 if taken else 1 :]
    return found, rest
