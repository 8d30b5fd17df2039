"""The statement of a candidate, its hints, and since when its solution can be read in public: pure, from an issue.

Earlier versions of a body are those of `userContentEdits`
(https://docs.github.com/en/graphql/reference/objects#usercontentedit): in an edited text the first of them is the text
as it was created, and each holds the whole text after the edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from miner.core.records import IssueText
from miner.crawlers.github.markdown import code_lines
from miner.crawlers.github.model import Actor, Comment, Issue, Pull

BETWEEN = "\n\n---\n\n"
"""What stands between two issues of a statement, and between two comments of the hints."""

_MAY_HOLD_CODE = re.compile("```|~~~|^(?: {4}|\t)| {5}|\t", re.MULTILINE)
_TELLING = 20  # characters of a line that says where it comes from


@dataclass(frozen=True)
class Statement:
    """What a candidate is told.

    Attributes:
        text: title and body of each issue, in order.
        issues: the same, each kept apart, as the forge has it.
        hints: what people said on the issues before there was a commit of the pull request.
        notes: what a reader of it should know, one sentence each.
    """

    text: str
    issues: tuple[IssueText, ...]
    hints: str
    notes: tuple[str, ...]


def statement_of(pull: Pull, issues: Sequence[Issue]) -> Statement:
    """Return the statement that these issues make, with the texts as they were when they were observed."""
    return Statement(
        text=BETWEEN.join(filter(None, map(_text, issues))),
        issues=tuple(
            IssueText(number=issue.number, title=issue.title, body=issue.body, created_at=issue.created_at)
            for issue in issues
        ),
        hints=hints_of(pull, issues),
        notes=tuple(_notes(pull, issues)),
    )


def work_began_at(pull: Pull) -> datetime:
    """Return when there was the first commit of a pull request, or it was opened: whichever is the earlier.

    A commit that is rewritten later bears a later time, so that the opening bounds what the commits say.
    """
    times = [time for commit in pull.commits for time in (commit.authored_at, commit.committed_at)]
    return min([pull.created_at, *times])


def hints_of(pull: Pull, issues: Iterable[Issue]) -> str:
    """Return the comments of people on these issues from before the work began, in order of time.

    A comment that was edited after that is left out: nobody knows what it said then.
    """
    began = work_began_at(pull)
    comments = [
        comment
        for issue in issues
        for comment in issue.comments
        if _was_said_before(comment, began) and not is_program(comment.author)
    ]
    ordered = sorted(comments, key=lambda comment: comment.created_at)
    return BETWEEN.join(filter(None, (_lines(comment.body) for comment in ordered)))


def is_program(author: Actor | None) -> bool:
    """Whether a text was written by a program, as far as its account says so; a deleted account was a person's."""
    if author is None:
        return False
    return author.kind == "Bot" or author.login.lower().endswith(("[bot]", "-bot"))


def first_public_at(pull: Pull, issues: Sequence[Issue], patch: str) -> datetime:
    """Return since when the solution could be read in public, at the earliest.

    That is when the pull request was opened; or its first commit was made, which may have been pushed at once (but not
    before the issue was there); or an issue or a comment held code of the solution.

    Args:
        pull: the pull request.
        issues: the issues that it closes.
        patch: the gold patch.
    """
    created = min((issue.created_at for issue in issues), default=None)
    committed = min((commit.committed_at for commit in pull.commits), default=pull.created_at)
    if created is not None:
        committed = max(committed, created)
    return min([pull.created_at, committed, *_shown(issues, _telling_lines(patch))])


def _text(issue: Issue) -> str:
    return "\n\n".join(filter(None, (issue.title.strip(), _lines(issue.body))))


def _lines(text: str) -> str:
    """Return a text of the forge, whose forms send CRLF, with plain line ends and no empty lines around it."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip("\n").rstrip()


def _notes(pull: Pull, issues: Iterable[Issue]) -> Iterator[str]:
    began = work_began_at(pull)
    for issue in issues:
        edited = issue.last_edited_at
        if edited is not None and edited >= pull.created_at:
            yield f"#{issue.number}: its text was edited after the pull request was opened, at {edited.isoformat()}"
        if issue.created_at >= pull.created_at:
            yield f"#{issue.number}: it was opened after the pull request, at {issue.created_at.isoformat()}"
        unsure = sum(comment.created_at < began and not _was_said_before(comment, began) for comment in issue.comments)
        if unsure:
            yield f"#{issue.number}: {unsure} comments were edited after the work began, and are no hints"


def _was_said_before(comment: Comment, began: datetime) -> bool:
    return max(comment.created_at, comment.last_edited_at or comment.created_at) < began


def _telling_lines(patch: str) -> frozenset[str]:
    """Return the long lines that a patch adds and that stand nowhere else in it."""
    added, other = set(), set()
    for line in patch.split("\n"):
        if line.startswith("+") and not line.startswith("+++ "):
            added.add(line[1:].strip())
        elif line.startswith(("-", " ")):
            other.add(line[1:].strip())
    return frozenset(line for line in added - other if len(line) >= _TELLING)


def _shown(issues: Iterable[Issue], telling: frozenset[str]) -> Iterator[datetime]:
    """Yield when code with such a line came into issues and their comments."""
    for issue in issues if telling else ():
        at = _written_at(issue, telling)
        if at is not None:
            yield at
        yield from (comment.created_at for comment in issue.comments if _holds(comment.body, telling))


def _written_at(issue: Issue, telling: frozenset[str]) -> datetime | None:
    """Return since when the body of an issue holds such a line; a version that nobody can see may have held it."""
    versions = sorted(issue.edits, key=lambda edit: edit.edited_at)
    holding = [n for n, edit in enumerate(versions) if edit.text is not None and _holds(edit.text, telling)]
    if not holding:
        return issue.created_at if _holds(issue.body, telling) else None
    first = holding[0]
    while first and versions[first - 1].text is None:
        first -= 1
    return versions[first].edited_at if first else issue.created_at


def _holds(text: str, telling: frozenset[str]) -> bool:
    """Whether a code block of a text holds such a line, as it is or as an addition in a diff."""
    lines = [line.strip() for line in code_lines(text)] if _MAY_HOLD_CODE.search(text) else []
    return any(line in telling or line.removeprefix("+").strip() in telling for line in lines)
