"""What the pull requests of a large world are like: how they name issues, and how long their lists are.

The shares are assumed; they stand here so that a figure that rests on them can be made again with others. A long list
is one that needs a request of its own, to whatever client.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

TEMPLATE = "<!-- Thank you! Say which issue this is about, for instance: fixes #123 -->\n\n"
_CHANGE = "This changes the {word}, as it was discussed.\n\n- the {word} takes an empty name\n- there are tests\n"


@dataclass(frozen=True)
class Way:
    """How a pull request is linked, or looks as if it were. `{issue}`, `{other}` (a pull request) and more stand in it.

    Attributes:
        listed: the forge has the issue among its closing references.
        closer: what the issue's closed-event names.
    """

    name: str
    share: int
    body: str = _CHANGE
    title: str = "Change the {word}"
    message: str = ""
    listed: bool = False
    closer: Literal["pull", "commit", "merge", None] = None


LINKED = (
    Way("keyword", 52, _CHANGE + "\nFixes #{issue}\n", listed=True, closer="pull"),
    Way("keyword below a template", 10, TEMPLATE + _CHANGE + "\nFixes #{issue}\n", listed=True, closer="pull"),
    Way("by hand, no text", 12, listed=True, closer="pull"),
    Way("colon", 6, _CHANGE + "\nFixes: #{issue}\n", listed=True, closer="pull"),
    Way("URL", 5, _CHANGE + "\nCloses {url}/issues/{issue}\n", listed=True, closer="pull"),
    Way("repository and number", 3, _CHANGE + "\nResolves {repo}#{issue}\n", listed=True, closer="pull"),
    Way("GH and number", 2, _CHANGE + "\nCloses GH-{issue}\n", listed=True, closer="pull"),
    Way("commit message", 7, message="\n\nFixes #{issue}", closer="commit"),
    Way("title", 3, title="Change the {word} (fixes #{issue})", closer="merge"),
)
"""Ways in which an issue is closed."""

UNLINKED = (
    Way("nothing", 36),
    Way("nothing, in the words that name issues", 36, "This fixes the {word}.\n\n" + _CHANGE),
    Way("mentions", 14, _CHANGE + "\nSee #{issue}.\n"),
    Way("template alone", 7, TEMPLATE + _CHANGE),
    Way("in code", 3, _CHANGE + "\nThe change log says `fixes #{issue}` of another one.\n"),
    Way("quoted", 2, "> fixes #{issue}\n\nNo, it does not. " + _CHANGE),
    Way("of a pull request", 2, _CHANGE + "\nFixes #{other}, which broke it.\n"),
)
"""Ways in which none is."""

COMMITS = ((1, 1, 45), (2, 5, 40), (6, 20, 11), (21, 50, 3), (51, 180, 1))
FILES = ((1, 1, 20), (2, 5, 55), (6, 15, 15), (16, 50, 7), (51, 250, 3))
COMMENTS = ((0, 0, 25), (1, 4, 50), (5, 15, 18), (16, 50, 6), (51, 150, 1))
EDITS = ((0, 0, 760), (1, 5, 225), (6, 12, 15))
CLOSED = ((1, 1, 925), (2, 2, 60), (3, 5, 15))
"""Lengths of lists: (least, most, share)."""

Lengths = Sequence[tuple[int, int, int]]


class Dice:
    """Numbers that depend on a name alone."""

    def __init__(self, name: str) -> None:
        self._name = name

    def below(self, what: str, most: int) -> int:
        """Return a number from 0 to `most - 1`."""
        digest = hashlib.blake2b(f"{self._name}/{what}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % most

    def chance(self, what: str) -> float:
        """Return a number from 0 to 1."""
        return self.below(what, 1_000_000) / 1_000_000

    def way(self, what: str, ways: Sequence[Way]) -> Way:
        """Return one of some ways, by their shares."""
        return ways[self._chosen(what, [way.share for way in ways])]

    def length(self, what: str, lengths: Lengths) -> int:
        """Return the length of a list."""
        least, most, _ = lengths[self._chosen(what, [share for *_, share in lengths])]
        return least + self.below(f"{what}/length", most - least + 1)

    def _chosen(self, what: str, shares: Sequence[int]) -> int:
        sums = list(accumulate(shares))
        return bisect_right(sums, self.below(what, sums[-1]))
