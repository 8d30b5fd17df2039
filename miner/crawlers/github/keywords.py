"""Closing keywords, as the forge defines them, in passages of text.

https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue says
the keywords, that a colon or capitals are taken, and that every issue wants a keyword of its own;
https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls
says the notations of an issue. What only resembles these counts as weak, with the doubt that it leaves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from miner.crawlers.github.markdown import LINK, MARK, WALL, Link, Passage

NEGATED = "negated"
"""The doubt of "does not fix #12"."""

_KEYWORD = r"(?P<keyword>(?ai:close[sd]?|fix(?:e[sd])?|resolve[sd]?))"
_BLANKS = r" \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_NUMBER = r"[1-9][0-9]{0,9}(?!\w)"
_OWNER = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}"
_NAME = r"[A-Za-z0-9._-]{1,100}"
_URL = (
    rf"(?ai:https?)://(?P<host>[A-Za-z0-9.-]{{1,253}}(?::[0-9]{{1,5}})?)/(?P<url_repository>{_OWNER}/{_NAME})/"
    rf"(?:issues|pull)/(?P<url_number>{_NUMBER})(?P<tail>[/?#][^\s<>{MARK}{WALL}{LINK}]{{0,2000}})?"
)
_PLACE = (
    rf"(?:(?P<repository>{_OWNER}/{_NAME})?\#(?P<number>{_NUMBER})|(?ai:gh)-(?P<gh_number>{_NUMBER})"
    rf"|{_URL}|(?P<link>{LINK}))"
)
_CLOSING = re.compile(rf"(?<!\w){_KEYWORD}(?P<gap>[:{MARK}{_BLANKS}]++){_PLACE}")
_SEPARATOR = re.compile(r"[ \t]*:?[ \t]+")
_WHOLE = re.compile(_PLACE)
_WORD = re.compile(r"(?ai:clos|fix|resolv)")
_NEGATION = re.compile(
    r"(?:\b(?:not|never|cannot|no longer|without|instead of|rather than|neither|nor|hardly|partly|partially)"
    r"|n['\u2019]t)"
    r"(?:[^\w.,!?;(]+[\w'\u2019-]+){0,2}[^\w.,!?;(]*$",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u201e": "\u201c\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb"}
_SENTENCE = 300


@dataclass(frozen=True)
class Mention:
    """A keyword and the issue that it is about.

    Attributes:
        line: of the keyword, counted from the first one of the text.
        text: both, as they stand there.
        repository: `owner/name` as written, None where the text leaves it out.
        host: of a URL, in lower case, without `www.`.
        doubt: why it may be meant or taken otherwise, "" where nothing says so.
    """

    number: int
    line: int
    text: str
    repository: str | None = None
    host: str | None = None
    doubt: str = ""


def may_close(text: str) -> bool:
    """Whether a text can hold a closing keyword at all: a quick look before it is parsed."""
    return _WORD.search(text) is not None


def mentions(passage: Passage) -> Iterator[Mention]:
    """Yield what a passage says is closed, in its order."""
    at, line, links = 0, passage.line, 0
    for found in _CLOSING.finditer(passage.text):
        between = passage.text[at : found.start()]
        line, links = line + between.count("\n"), links + between.count(LINK)
        at = found.start()
        link = passage.links[links] if found["link"] else None
        href = link.href if link and passage.href is None else passage.href
        place = found if href is None else _WHOLE.fullmatch(href)
        if place is None or (href is not None and not place["host"]):
            continue  # a link to something else
        text = found[0].replace(LINK, _shown(link)) if link else found[0]
        doubt = passage.doubt or _doubt(passage.text, found) or ("" if passage.href is None else "inside of a link")
        doubt = doubt or _doubt_of_link(place, link.label if link else None)
        yield Mention(_number(place), line, _bare(text), _repository(place), _host(place), doubt)


def _shown(link: Link) -> str:
    return f"<{link.href}>" if link.label == link.href else f"[{link.label}]({link.href})"


def _number(place: re.Match[str]) -> int:
    return int(place["number"] or place["gh_number"] or place["url_number"])


def _repository(place: re.Match[str]) -> str | None:
    return place["repository"] or place["url_repository"]


def _host(place: re.Match[str]) -> str | None:
    return place["host"].lower().removeprefix("www.") if place["host"] else None


def _bare(text: str) -> str:
    return text.replace(MARK, "").replace(WALL, "").replace(LINK, "")


def _doubt_of_link(place: re.Match[str], label: str | None) -> str:
    """A link whose label is no reference says something about that page, as does a link into it."""
    if place["tail"] not in (None, "/"):
        return "a link into the page of the issue"
    if label is None:
        return ""
    named = _WHOLE.fullmatch(label)
    return "" if named and not named["link"] and _number(named) == _number(place) else "a link with other words"


def _doubt(text: str, found: re.Match[str]) -> str:
    if not _SEPARATOR.fullmatch(found["gap"]):
        return "markup or an unusual separator between keyword and number"
    start, end = found.span()
    before = text[max(0, start - _SENTENCE) : start].rsplit("\n\n", 1)[-1]
    line = before.rsplit("\n", 1)[-1]
    goes_on = not line.strip() and found["keyword"].islower()  # a sentence that is broken before the keyword
    if line[-1:] in tuple("-/@.#"):
        return "part of a longer word"
    if _NEGATION.search(before if goes_on else line):
        return NEGATED
    after = text[end : end + _SENTENCE].split("\n", 1)[0]
    return "in quotation marks" if _is_quoted(line, after) else ""


def _is_quoted(before: str, after: str) -> bool:
    for opening, closing in _QUOTES.items():
        if before.endswith(opening) and after[:1] and after[0] in closing:
            return True
        if opening in ("'", "\u2018"):
            continue  # also an apostrophe
        if opening == closing:
            is_open = before.count(opening) % 2 == 1
        else:
            is_open = before.rfind(opening) > max(before.rfind(sign) for sign in closing)
        if is_open and any(sign in after for sign in closing):
            return True
    return False
