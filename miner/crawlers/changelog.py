"""The statement of a release pair: what the change log says about the new version, and the issues it names.

Recognised headings of a section: Markdown `## [1.2.3] - 2024-05-01`, underlined titles of reStructuredText and
Markdown (with or without an overline), bold lines `**1.2.3**`, items `- 1.2.3: text` and `* :release:`1.2.3 <date>``,
plain lines `Version 1.2.3 (2024-05-01)`; and one file a version, `changes/1.2.3.rst`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from packaging.version import Version

from miner.core.records import Record
from miner.project.versions import version_of

_STEM = re.compile(
    r"^(?:changes?|change[-_ ]?logs?|history|news|release[-_ ]?notes?|releases?|what'?s[-_ ]?new"
    r"|versions?(?:[-_ ]?history)?)(?:[-_.]?v?\d[\w.]*)?$",
    re.IGNORECASE,
)
_README = re.compile(r"^readme$", re.IGNORECASE)
_TEXT_SUFFIXES = ("", ".md", ".markdown", ".rst", ".txt", ".adoc")
_FOLDERS = frozenset(
    {"doc", "docs", "source", "src", "en", "about", "content", "markdown", "project", "sites", "www", ".github"}
)
_VERSION_FOLDERS = re.compile(
    r"^(?:changes?|changelogs?|history|news|release[-_]?notes?|releases?|whats[-_]?new)$", re.I
)

_TOKEN = re.compile(
    r"(?<![\w.])v?(\d+(?:!\d+)?(?:\.\d+)*(?:[-_.]?(?:a|b|c|rc|alpha|beta|pre|post|dev)[-_.]?\d*)*)(?!\w)", re.I
)
_RULE = re.compile(r"^([=\-~^\"'`#*+.:_])\1{2,}\s*$")
_ATX = re.compile(r"^(#{1,6})\s*(\S.*?)\s*#*\s*$")
_BOLD = re.compile(r"^(?:\*\*|__)(.+?)(?:\*\*|__)[\s:]*(?:\(.*\))?$")
_ITEM = re.compile(
    r"^(\s*)[-*+\u2022]\s+(?::release:`)?(?:\*\*|__)?[Vv]?(\d[\w.!+-]*?)(?:\*\*|__)?(?=[\s:,(<`]|$)(.*)$"
)
_PLAIN = re.compile(
    r"^(?:[A-Za-z][\w.-]*[ -])??(?:[Vv]ersion |[Rr]elease |[Rr]el\.? )?[Vv]?(\d[\w.!+-]*?)[:,]?(?:\s+(.*))?$"
)
_DATE_WORDS = (
    r"jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec|january|february|march|april|august|september|october|november"
    r"|december|mon|tue|wed|thu|fri|sat|sun|st|nd|rd|th|of|on|utc|gmt|am|pm|released?|unreleased|yanked|not|yet|in|tb[ad]"
    r"|dev|development|final|alpha|beta"
)
_DATE_ONLY = re.compile(
    rf"^(?:[\s\d:,./()\[\]<>*_\u2013\u2014-]|(?<![A-Za-z])(?:{_DATE_WORDS})(?![A-Za-z]))*$", re.IGNORECASE
)
_LABEL = re.compile(r"^(?:\.\. _[^:]+:\s*|<a\s[^>]*>\s*</a>\s*)$")
_UNRELEASED = re.compile(
    r"unreleased|in development|\bnext\b|\bdev(?:elopment)?\b|\bmaster\b|\bupcoming\b|\bpending\b", re.I
)

Kind = Literal["heading", "item"]


class Statement(Record):
    """What a change log says about a version.

    Attributes:
        text: the section, without its heading.
        path: the file that it stands in.
        line: where the text begins in it, from 1 (0 where the lines are not together).
        how: "section", "file" (one file a version) or "added-lines".
    """

    text: str
    path: str
    line: int
    how: Literal["section", "file", "added-lines"]


@dataclass(frozen=True)
class _Mark:
    """A line that may open a section: where its title stands, where its body begins, and how deep it is."""

    line: int
    body: int
    kind: Kind
    level: str
    title: str
    first: str = ""


def is_changelog(path: str) -> bool:
    """Whether a file of this path may say what a release changed: a change log, a part of one, or a README."""
    pure = PurePosixPath(path)
    suffix = pure.suffix.lower() if pure.suffix.lower() in _TEXT_SUFFIXES[1:] else ""
    stem = pure.name[: len(pure.name) - len(suffix)]
    folders = pure.parts[:-1]
    if _README.match(stem):
        return not folders
    if folders and _VERSION_FOLDERS.match(folders[-1]) and all(part.lower() in _FOLDERS for part in folders[:-1]):
        return suffix != "" and bool(re.search(r"\d", stem))
    return bool(_STEM.match(stem)) and all(part.lower() in _FOLDERS for part in folders)


def decode(data: bytes) -> tuple[str, str | None]:
    """Return a file's text, and a note where it is not UTF-8."""
    try:
        return data.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        return data.decode("latin-1"), f"is not UTF-8 (byte {error.start}), read as Latin-1"


def find_statement(new: Mapping[str, str], old: Mapping[str, str], version: str) -> Statement | None:
    """Return what the new tree's change logs say about a version.

    Args:
        new: path -> text of the change logs of the new tree (`is_changelog`).
        old: the same of the old tree.
        version: the new version.
    """
    wanted = Version(version)
    for path in sorted(new, key=_rank):
        found = _whole_file(path, new[path], wanted) or _section(path, new[path], wanted)
        if found is not None:
            return found
    for path in sorted(new, key=_rank):
        found = _added_lines(path, new[path], old.get(path, ""), wanted)
        if found is not None:
            return found
    return None


def _rank(path: str) -> tuple[bool, int, str]:
    """Real change logs first, a README last; the shallower file first."""
    return bool(_README.match(PurePosixPath(path).stem)), path.count("/"), path


def _versions(text: str) -> list[Version]:
    found = map(version_of, _TOKEN.findall(text))
    return [version for version in found if version is not None]  # "1.2.3-2024" is none: a date glued to a version


def _is_about(title: str, wanted: Version) -> bool:
    """Whether a title names this version and none above it ("from 1.2.2 to 1.2.3" is about the latter)."""
    named = [version for version in _versions(title) if len(version.release) > 1 or version == wanted]
    return wanted in named and not any(version > wanted for version in named if _plausible(version, wanted))


def _plausible(version: Version, wanted: Version) -> bool:
    """A date like 2024.05.01 beside a version is no version."""
    return version.release[0] < 1900 or wanted.release[0] >= 1900


def _whole_file(path: str, text: str, wanted: Version) -> Statement | None:
    pure = PurePosixPath(path)
    parent = pure.parts[-2] if len(pure.parts) > 1 else ""
    stem = pure.name.removesuffix(pure.suffix) if pure.suffix in _TEXT_SUFFIXES else pure.name
    if not _VERSION_FOLDERS.match(parent) or wanted not in _versions(stem):
        return None
    lines = text.splitlines()
    marks = list(_marks(lines, path))
    start = marks[0].body if marks and _is_about(marks[0].title, wanted) else 0
    return _statement(path, lines, start, len(lines), "file")


def _section(path: str, text: str, wanted: Version) -> Statement | None:
    lines = text.splitlines()
    marks = list(_marks(lines, path))
    for at, mark in enumerate(marks):
        if not _is_about(mark.title, wanted):
            continue
        found = _statement(path, lines, mark.body, _end(marks, at, len(lines)), "section", first=mark.first)
        if found is not None:
            return found
    return None


def _end(marks: list[_Mark], at: int, last: int) -> int:
    """Where a section ends: at the next one of its level, at another version on any level, or at a heading above.

    On its level a title without a version ("What's changed") is a part of the section while versions follow.
    """
    mark, rest = marks[at], marks[at + 1 :]
    versions_follow = any(later.level == mark.level and _has_version(later) for later in rest)
    for later in rest:
        if later.level == mark.level and (_has_version(later) or not versions_follow):
            return later.line
        if later.kind == "heading" and (
            mark.kind == "item" or _opens_version(later) or _shallower(later.level, mark.level, marks)
        ):
            return later.line
    return last


def _has_version(mark: _Mark) -> bool:
    return any(len(version.release) > 1 for version in _versions(mark.title))


def _opens_version(mark: _Mark) -> bool:
    """Whether a title is a version and perhaps a date, and nothing else: however deep, another version begins."""
    title = mark.title.strip("[]*_ ")
    named = re.match(r"(?:version |release )?v?\d+\.\d", title, re.IGNORECASE)
    return bool(named) and bool(_DATE_ONLY.match(_TOKEN.sub("", title.removeprefix("Version "), count=1)))


def _shallower(level: str, than: str, marks: list[_Mark]) -> bool:
    """Whether a heading stands above another: by its number of `#`, or by which underline came first in the file."""
    if level.startswith("#") and than.startswith("#"):
        return len(level) < len(than)
    order = [mark.level for mark in marks if mark.kind == "heading"]
    return level in order and than in order and order.index(level) < order.index(than)


def _statement(
    path: str, lines: list[str], start: int, end: int, how: Literal["section", "file", "added-lines"], first: str = ""
) -> Statement | None:
    body = list(lines[start:end])
    while body and (not body[-1].strip() or _LABEL.match(body[-1]) or _RULE.match(body[-1])):
        body.pop()
    while body and not body[0].strip() and not first:
        body.pop(0)
        start += 1
    body = _dedented(body)
    if first:
        body.insert(0, first)
        start -= 1
    text = "\n".join(line.rstrip() for line in body)
    return Statement(text=text, path=path, line=start + 1, how=how) if text else None


def _dedented(body: list[str]) -> list[str]:
    """Take away the indentation that all lines share."""
    shared = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0)
    return [line[shared:] for line in body]


def _marks(lines: list[str], path: str) -> Iterator[_Mark]:
    """Yield the lines that may open a section, in order; in Markdown, what stands in a block of code opens none."""
    markdown = path.lower().endswith((".md", ".markdown"))
    in_code = False
    for at, line in enumerate(lines):
        if markdown and line.lstrip().startswith("```"):
            in_code = not in_code
        if in_code or not line.strip():
            continue
        mark = _heading(lines, at) or _item(lines, at)
        if mark is not None:
            yield mark


def _heading(lines: list[str], at: int) -> _Mark | None:
    line = lines[at]
    below = _RULE.match(lines[at + 1]) if at + 1 < len(lines) else None
    if below and not _RULE.match(line) and (not line[0].isspace() or _overlined(lines, at)):
        over = at > 0 and _overlined(lines, at)
        level = below[1] * (2 if over else 1)
        return _Mark(at - 1 if over else at, at + 2, "heading", _underline(level), line.strip())
    atx = _ATX.match(line)
    if atx:
        return _Mark(at, at + 1, "heading", atx[1], atx[2])
    bold = _BOLD.match(line)
    if bold and _versions(bold[1]) and _DATE_ONLY.match(_TOKEN.sub("", bold[1], count=1)):
        return _Mark(at, at + 1, "heading", "bold", line)
    plain = _PLAIN.match(line)
    if plain and not line[0].isspace() and _versions(plain[1]) and _DATE_ONLY.match(plain[2] or ""):
        return _Mark(at, at + 1, "heading", "plain", plain[1]) if _stands_alone(lines, at, plain[1]) else None
    return None


def _underline(level: str) -> str:
    """A name for an underline that is no row of `#`, which mean something else in Markdown."""
    return "u" + level


def _overlined(lines: list[str], at: int) -> bool:
    return at > 0 and bool(_RULE.match(lines[at - 1])) and lines[at - 1].strip()[0] == lines[at + 1].strip()[0]


def _stands_alone(lines: list[str], at: int, token: str) -> bool:
    """A plain line opens a section only where it starts a paragraph and its number has a dot: else it is prose."""
    above = lines[at - 1] if at else ""
    return "." in token and (not above.strip() or bool(_LABEL.match(above) or _RULE.match(above)))


def _item(lines: list[str], at: int) -> _Mark | None:
    item = _ITEM.match(lines[at])
    if item is None or "." not in item[2] or not _versions(item[2]):
        return None
    text = item[3].strip(" :,-\u2013\u2014`")
    return _Mark(at, at + 1, "item", f"item{len(item[1])}", item[2], "" if _DATE_ONLY.match(text) else text)


def _added_lines(path: str, new: str, old: str, wanted: Version) -> Statement | None:
    """Return lines that are new in a change log, stand under no other version, and so can only be about this one."""
    if _README.match(PurePosixPath(path).stem):
        return None
    lines, known = new.splitlines(), frozenset(old.splitlines())
    marks = [mark for mark in _marks(lines, path) if _versions(mark.title) or _UNRELEASED.search(mark.title)]
    opened = {mark.line: mark for mark in marks}
    heads = {at for mark in marks for at in range(mark.line, mark.body)}
    owner: str | None = None
    kept = []
    for at, line in enumerate(lines):
        owner = opened[at].title if at in opened else owner
        if at not in heads and line not in known and _may_tell(owner, line, wanted):
            kept.append(at)
    if not any(lines[at].strip() for at in kept):
        return None
    found = _statement(path, [lines[at] for at in kept], 0, len(kept), "added-lines")
    return found and found.model_copy(update={"line": 0})


def _may_tell(owner: str | None, line: str, wanted: Version) -> bool:
    if owner is not None and _UNRELEASED.search(owner):
        return True
    return wanted in _versions(line)
