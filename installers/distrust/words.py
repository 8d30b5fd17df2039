"""Options for pytest as its parser takes them: joined, combined, abbreviated, or with their value apart. Pure.

The parser is argparse (https://docs.python.org/3/library/argparse.html, "Option value syntax", "Argument
abbreviations").
Whether a word that follows an unknown option is its value depends on plug-ins, so it is not taken for one: a word apart
is a word that has to be judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SHORT_WITH_VALUE = frozenset("kmcpoWrn")
"""Short options with a value: pytest's own, and `-n` of pytest-xdist."""
LONG_WITH_VALUE = frozenset(
    {
        *("--asyncio-mode", "--color", "--confcutdir", "--config-file", "--dc", "--deselect", "--dist", "--ds"),
        *("--durations", "--ignore", "--ignore-glob", "--import-mode", "--maxfail", "--numprocesses", "--override-ini"),
        *("--pythonwarnings", "--reruns", "--rootdir", "--tb", "--tx", "--last-failed-no-failures", "--lfnf"),
    }
)


@dataclass(frozen=True)
class Option:
    """One option, or one word that is none.

    Attributes:
        name: "-k", "--deselect", as written; "" for a word that is no option.
        value: None where it has none.
        text: the words it was read from.
    """

    name: str
    value: str | None
    text: str


def options_of(words: Sequence[str]) -> list[Option]:
    """Return the options that words make, in order; after `--` there are only words."""
    found: list[Option] = []
    index = 0
    while index < len(words):
        word, following = words[index], words[index + 1] if index + 1 < len(words) else None
        if word == "--":
            found += [Option("", rest, rest) for rest in words[index:]]
            break
        read = list(_read(word, following))
        found += read
        index += 2 if read[-1].text != word else 1
    return found


def _read(word: str, following: str | None) -> Iterator[Option]:
    if not word.startswith("-") or word == "-":
        yield Option("", word, word)
    elif word.startswith("--"):
        yield _long(word, following)
    else:
        yield from _short(word, following)


def _long(word: str, following: str | None) -> Option:
    name, joined, value = word.partition("=")
    if joined:
        return Option(name, value, word)
    if name in LONG_WITH_VALUE and _is_value(following):
        return Option(name, following, f"{word} {following}")
    return Option(name, None, word)


def _short(word: str, following: str | None) -> Iterator[Option]:
    """Take short options apart: `-xk foo` is `-x` and `-k foo`, `-kfoo` is `-k foo`."""
    for at in range(1, len(word)):
        name = f"-{word[at]}"
        if word[at] not in SHORT_WITH_VALUE:
            yield Option(name, None, word)
            continue
        if rest := word[at + 1 :]:
            yield Option(name, rest.removeprefix("="), word)
        elif _is_value(following):
            yield Option(name, following, f"{word} {following}")
        else:
            yield Option(name, None, word)
        return


def _is_value(following: str | None) -> bool:
    return following is not None and not following.startswith("-")
