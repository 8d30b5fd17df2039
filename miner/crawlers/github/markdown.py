"""The prose of a comment on the forge: what its Markdown shows as running text, without code, comments and quotes.

The forge reads CommonMark with tables and strikethrough (https://github.github.com/gfm/), then looks for references in
the text that results, not inside of `pre`, `code` and `tt`. Block quotes are left out because they say what somebody
else said. The time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from html import unescape

from markdown_it import MarkdownIt
from markdown_it.token import Token

MARK = "\ue000"
"""Stands where emphasis or a tag begins or ends."""
WALL = "\ue001"
"""Stands for what is left out: code, an image, a comment, struck text, a line break by tag."""
LINK = "\ue002"
"""Stands for a link: the next one of `Passage.links`."""

_PLAIN = dict.fromkeys(map(ord, (MARK, WALL, LINK)), "\ufffd")
_LONGEST = 262_144  # bytes that the forge keeps of a body; one that is longer did not come from there
_NESTING = 40
_HIDING = frozenset(("blockquote", "code", "pre", "script", "style", "template", "textarea", "title", "tt", "xmp"))
_STRIKING = frozenset(("del", "s", "strike"))
_BREAKING = re.compile(
    "address|article|aside|br|center|d[dlt]|details|div|fieldset|figcaption|figure|footer|form|h[1-6r]|header|img|li|"
    "main|nav|ol|option|p|section|summary|table|tbody|t[dhr]|tfoot|thead|ul"
)
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]{0,30})(?![A-Za-z0-9-])")
_HREF = re.compile(r"""\shref\s{0,9}=\s{0,9}(?:"([^"]{0,2000})"|'([^']{0,2000})'|([^\s"'>]{1,2000}))""", re.IGNORECASE)
_BOX = re.compile(r"\[ \][ \t\u00a0]")


@dataclass(frozen=True)
class Link:
    """A link in a passage."""

    href: str
    label: str


@dataclass(frozen=True)
class Passage:
    r"""A piece of running text that no block border cuts; lines that the source breaks are apart by "\n".

    Attributes:
        line: number of its first line in the source.
        text: what a reader sees, with `MARK`, `WALL` and `LINK` where there is more than text.
        href: where it leads, if it is the label of a link.
        doubt: why it may not mean what it says: "struck out", "an unchecked box".
    """

    line: int
    text: str
    links: tuple[Link, ...] = ()
    href: str | None = None
    doubt: str = ""


def plain(text: str) -> Passage:
    """Return text that is no Markdown (a title, the message of a commit) as a passage."""
    return Passage(1, text.translate(_PLAIN))


def prose(body: str) -> tuple[Passage, ...]:
    """Return the passages of a Markdown text, in the order of their lines."""
    reader = _Reader()
    for token in _parser().parse(body[:_LONGEST].translate(_PLAIN)):
        reader.read(token)
    return tuple(_without_comments(sorted(reader.passages, key=lambda passage: passage.line)))


def code_lines(body: str) -> Iterator[str]:
    """Yield the lines of the code blocks of a Markdown text, fenced or indented, quoted ones included."""
    for token in _parser().parse(body[:_LONGEST]):
        if token.type in ("fence", "code_block"):
            yield from token.content.splitlines()


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"maxNesting": _NESTING}).enable(["table", "strikethrough"]).disable("text_join")


@dataclass
class _Frame:
    """A passage that is being read."""

    line: int
    href: str | None = None
    doubt: str = ""
    parts: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)


class _Reader:
    """Makes passages of the tokens of a document."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self._quotes = 0
        self._hidden: list[str] = []  # open tags whose content is left out
        self._frames: list[_Frame] = []
        self._line = 1

    def read(self, token: Token) -> None:
        """Take the next block of the document."""
        self._quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token.type not in ("inline", "html_block"):
            return
        self._line = token.map[0] + 1 if token.map else self._line
        box = token.type == "inline" and _BOX.match(token.content)
        self._frames = [_Frame(self._line, doubt="an unchecked box" if box else "")]
        if token.type == "inline":
            hidden = list(self._hidden)
            for child in token.children or ():
                self._inline(child)
            self._hidden = hidden  # a tag that a paragraph leaves open ends with it
        else:
            self._html(token.content)
        while self._frames:
            self._close()

    def _inline(self, token: Token) -> None:
        match token.type:
            case "text":
                self._text(token.content)
            case (
                "text_special"
            ):  # an escape or an entity; one for the sign of a number is there to keep it from counting
                self._text(MARK + token.content if token.content == "#" else token.content)
            case "softbreak" | "hardbreak":
                self._put("\n")
            case "html_inline":
                self._html(token.content)
            case "link_open":
                self._open(_Frame(self._line, href=str(token.attrs.get("href", ""))))
            case "s_open":
                self._open(_Frame(self._line, doubt="struck out"))
            case "link_close" | "s_close":
                self._close()
            case "em_open" | "em_close" | "strong_open" | "strong_close":
                self._put(MARK)
            case _:
                self._put(WALL)

    def _text(self, text: str) -> None:
        self._put(WALL + "\n" * text.count("\n") if self._hidden or self._quotes else text)

    def _put(self, text: str) -> None:
        self._frames[-1].parts.append(text)
        self._line += text.count("\n")

    def _open(self, frame: _Frame) -> None:
        self._frames.append(frame)

    def _close(self) -> None:
        """End the passage that was begun last; where it stood, the one around it has a sign for it."""
        frame = self._frames.pop()
        text = "".join(frame.parts)
        self.passages.append(Passage(frame.line, text, tuple(frame.links), frame.href, frame.doubt))
        if not self._frames:
            return
        outer = self._frames[-1]
        if frame.href is not None and not self._hidden and not self._quotes:
            outer.links.append(Link(frame.href, text))
            outer.parts.append(LINK)
        else:
            outer.parts.append(WALL)
        outer.parts.append("\n" * text.count("\n"))

    def _html(self, source: str) -> None:
        """Read HTML: tags and comments, and the text between them."""
        at = 0
        while at < len(source):
            start = source.find("<", at)
            comment = start >= 0 and source.startswith("<!--", start)
            closing = "-->" if comment else ">"
            end = source.find(closing, start + 1) if start >= 0 else -1
            if start < 0 or (end < 0 and not comment):
                self._text(unescape(source[at:]))
                return
            if start > at:
                self._text(unescape(source[at:start]))
            at = end + len(closing) if end >= 0 else len(source)
            self._tag(source[start:at])

    def _tag(self, source: str) -> None:
        self._put("\n" * source.count("\n"))
        tag = _TAG.match(source)
        if tag is None:
            self._put(WALL)
            return
        closes, name = bool(tag[1]), tag[2].lower()
        if name in _HIDING:
            self._hide(name, closes)
        elif name in _STRIKING or name == "a":
            self._enter(name, closes, source)
        else:
            self._put(WALL if _BREAKING.fullmatch(name) else MARK)

    def _hide(self, name: str, closes: bool) -> None:
        if not closes:
            self._hidden.append(name)
        elif name in self._hidden:
            del self._hidden[len(self._hidden) - 1 - self._hidden[::-1].index(name) :]
        self._put(WALL)

    def _enter(self, name: str, closes: bool, source: str) -> None:
        struck = name in _STRIKING
        if closes and len(self._frames) > 1 and (self._frames[-1].href is None) == struck:
            self._close()
        elif not closes and len(self._frames) < _NESTING:
            href = _HREF.search(source)
            leads = unescape(next(filter(None, href.groups()), "")) if href else ""
            self._open(_Frame(self._line, doubt="struck out") if struck else _Frame(self._line, href=leads))
        else:
            self._put(MARK)


def _without_comments(passages: Iterable[Passage]) -> Iterator[Passage]:
    """Leave out comments that CommonMark takes for text, as one that goes on after an empty line in a paragraph.

    One that never ends takes the rest of its passage.
    """
    passages = list(passages)
    last = max((i for i, passage in enumerate(passages) if "-->" in passage.text), default=-1)
    inside = False
    for i, passage in enumerate(passages):
        pieces = re.split("(<!--|-->)", passage.text)
        kept = []
        for piece in pieces:
            if piece in ("<!--", "-->"):
                inside = piece == "<!--"
                kept.append(WALL)
            else:
                kept.append(re.sub(f"[^\n{LINK}]+", WALL, piece) if inside else piece)
        inside = inside and i < last
        yield replace(passage, text="".join(kept))
