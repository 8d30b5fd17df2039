"""What title and body of a pull request say in the words of tools: that it reverts, or that it only raises versions."""

from __future__ import annotations

import re

_TITLE_CHARS = 300  # more than a forge allows, so that no pattern ever works on a long text

_REVERT_TITLE = re.compile(r"\s*revert\s+[\"“]", re.IGNORECASE)
_REVERT_BODY = re.compile(
    r"^(this reverts commit [0-9a-f]{7,40}\b|reverts [\w.-]+/[\w.-]+#\d+)", re.IGNORECASE | re.MULTILINE
)
_BUMP = re.compile(
    r"""[^\[\w]*(?:\[[^\]]{1,40}\]\s*)*(?:\w{1,20}(?:\([^)]{1,60}\))?!?:\s*)?(?:
        bump\s+\S.*?(?:\bfrom\s.+\sto\s|\band\s|\bgroup\b)
      | update\s+\S+\s+requirement\s+from\s
      | (?:update|pin|replace|roll\s+back)\s.*\bdependenc(?:y|ies)\b
      | (?:update|pin)\s+\S+(?:\s+action|\s+docker\s+(?:tag|digest))?\s+to\s+(?:v?\d|[0-9a-f]{7}|latest\b)
      | lock\s+file\s+maintenance
      | scheduled\s+\w+\s+dependency\s+update
      | pre-commit\s+autoupdate
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def revert(title: str, body: str) -> str:
    """Return the words by which a pull request says that it reverts something, "" where it does not.

    They are those of `git revert` and of the forge's button (GitHub Docs, "Reverting a pull request"); a body says so
    at the start of a line.
    """
    if _REVERT_TITLE.match(title[:_TITLE_CHARS]):
        return title
    said = _REVERT_BODY.search(body)
    return said[0] if said else ""


def is_bump(title: str) -> bool:
    """Whether a title is one of Dependabot, Renovate, PyUp or pre-commit.ci, behind labels and a prefix or without.

    Their documentation: GitHub Docs, "Customizing Dependabot PRs"; docs.renovatebot.com, `commitMessage`.
    """
    return _BUMP.match(title[:_TITLE_CHARS]) is not None
