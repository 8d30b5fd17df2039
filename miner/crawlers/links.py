"""Issues that a text names, in the notations that change logs use."""

from __future__ import annotations

import re
from collections.abc import Collection
from email import message_from_string
from typing import Literal

from miner.core.records import IssueLink

Provenance = Literal["changelog", "closing-reference", "timeline", "commit-message", "text"]

# Roles of Sphinx' extlinks, of sphinx-issues and of the `releases` extension.
_ROLES = "issue|issues|pr|pull|pullreq|gh|ghissue|ghpull|gh-issue|gh-pr|bug|feature|support|ticket"
_PATTERNS = (
    re.compile(
        r"https?://(?:www\.)?[\w.-]{1,100}/(?P<repo>[\w.~-]{1,100}(?:/[\w.~-]{1,100}){1,4}?)/(?:-/)?"
        r"(?:issues?|pulls?|pull-requests|merge_requests)/(?P<number>\d{1,6})(?!\d)",
        re.IGNORECASE,
    ),
    re.compile(rf":(?:{_ROLES}):`(?:[^`<]*<)?#?(?P<numbers>\d{{1,6}}(?:\s*,\s*#?\d{{1,6}})*)>?`", re.IGNORECASE),
    re.compile(r"(?<![\w&/#])#(?P<number>\d{1,6})(?![\w-])"),
    re.compile(r"(?<!\w)gh-?(?P<number>\d{1,6})(?!\w)", re.IGNORECASE),
    re.compile(r"(?<!\w)(?:issue|pull request|pr)[ -]?(?P<number>\d{1,6})(?![\w.])", re.IGNORECASE),
)
_LABEL = re.compile(r"[`\[][^`\[\]\n]{0,80}(?:\]\(| <)$")  # of a link in Markdown or reStructuredText
_NOT_OWNERS = ("sponsors", "orgs", "users")
_FORGE_URL = re.compile(
    r"https?://(?:www\.)?(?:github|gitlab|bitbucket|codeberg)\.[a-z]+/([\w.-]+/[\w.-]+)", re.IGNORECASE
)


def find_links(
    text: str, where: str, *, first_line: int = 1, own: Collection[str] = (), provenance: Provenance = "changelog"
) -> tuple[IssueLink, ...]:
    """Return the issues that a text names, each once, in the order of the text.

    Args:
        text: what to search.
        where: the file that it stands in.
        first_line: the number of its first line in that file, 0 where that is not known.
        own: full names of the project's repositories; a URL of another one is no link. Empty: take all.
        provenance: what kind of text it is.
    """
    found: dict[int, tuple[int, str]] = {}
    names = {name.lower() for name in own}
    foreign = [_span(text, url) for url in _PATTERNS[0].finditer(text) if names and url["repo"].lower() not in names]
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if any(start <= match.start() < end for start, end in foreign):
                continue
            for number in re.findall(r"\d+", match.groupdict().get("numbers") or match["number"]):
                at = found.get(int(number), (len(text), ""))[0]
                if int(number) and match.start() < at:
                    found[int(number)] = (match.start(), match[0])
    ordered = sorted(found.items(), key=lambda item: (item[1][0], item[0]))
    return tuple(
        IssueLink(number=number, provenance=provenance, where=_place(where, first_line, text[:at]), text=quoted)
        for number, (at, quoted) in ordered
    )


def _place(where: str, first_line: int, before: str) -> str:
    line = first_line + before.count("\n")
    return f"{where}:{line}" if first_line else where


def _span(text: str, url: re.Match[str]) -> tuple[int, int]:
    """Where a URL stands, with the text that is linked to it."""
    label = _LABEL.search(text, max(0, url.start() - 100), url.start())
    return (label or url).start(), url.end()


def repositories_of(metadata: str) -> frozenset[str]:
    """Return the repositories that a project's core metadata (PKG-INFO) names as its own, as `owner/name`.

    Only its `Home-page` and `Project-URL` fields count; the description may name any other.
    """
    message = message_from_string(metadata)
    urls = [*message.get_all("Home-page", []), *message.get_all("Project-URL", [])]
    names = {name.removesuffix(".git") for url in urls for name in _FORGE_URL.findall(str(url))}
    return frozenset(name for name in names if name.split("/")[0] not in _NOT_OWNERS)
