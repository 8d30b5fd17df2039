"""Four repositories of real shape, and the pull requests of a month: what is mined from them is known beforehand.

    acme/tally      setuptools, src layout, a conftest and data of tests; tagged
    acme/weave      flit, flat layout
    acme/newtool    setup.py and setup.cfg, unittest classes; it was acme/oldtool, and is listed under both names
    acme/rejects    none of its pull requests gets as far as an image

All that get there were opened at the same time, so that those of one repository are installed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import month_texts as texts
from forge import File, Pull, Repo, World
from forge_month import library, mend, report

from miner.core.reasons import Reason

OPENED = "2025-05-03T09:00:00Z"
STARTED = "2024-01-10T08:00:00Z"
EVERY_BYTE = bytes(range(256))


def shared(name: str) -> dict[str, str | bytes | File | None]:
    """What lies in the root of most repositories."""
    return {
        "LICENSE": texts.LICENSE,
        "README.md": f"# {name}\n\nA small library.\n",
        "CHANGES.md": "# Changes\n\n- the first release\n",
        ".gitignore": "*.pyc\n/build/\n",
        ".github/workflows/ci.yml": texts.WORKFLOW,
        "docs/index.rst": f"{name}\n{'=' * len(name)}\n",
    }


@dataclass(frozen=True)
class Month:
    """The world, and what the tests look for in it."""

    world: World
    tally: Repo
    weave: Repo
    newtool: Repo
    rejects: Repo
    votes: Pull
    windows: Pull
    unequal: Pull
    blank: Pull
    equals: Pull
    broken: Pull


def real_month(world: World) -> Month:
    """Make them."""
    tally, weave, newtool = _tally(world), _weave(world), _newtool(world)
    return Month(
        world,
        tally,
        weave,
        newtool,
        _rejects(world),
        votes=_votes(tally),
        windows=_windows(tally),
        unequal=_unequal(weave),
        blank=_blank(weave),
        equals=_equals(newtool),
        broken=_broken(newtool),
    )


# acme/tally


def _tally(world: World) -> Repo:
    repo = world.repository(
        "acme/tally",
        at=STARTED,
        files={
            **shared("tally"),
            "pyproject.toml": texts.TALLY,
            "src/tally/__init__.py": '"""Counts votes."""\n\n__version__ = "2.3.0"\n',
            "src/tally/counter.py": texts.COUNTER + texts.FIRST_WINS,
            "src/tally/reading.py": texts.READING.format(split='split("\\n")'),
            "src/tally/mark.bin": b"\0\1\2",
            "tests/conftest.py": 'import pytest\n\n\n@pytest.fixture\ndef votes():\n    return ["yes", "no", "yes"]\n',
            "tests/data/unix.txt": "yes\nno\n",
            "tests/test_counter.py": texts.TEST_COUNTER,
            "tests/test_reading.py": texts.TEST_READING,
        },
    )
    repo.store.ref("refs/tags/v2.3.0", repo.branches["main"])
    return repo


def _votes(repo: Repo) -> Pull:
    """A merge commit; two issues, with comments from before and after the work began, and one of a program."""
    nothing = repo.issue(
        "winner of nothing fails",
        "`winner([])` raises `ValueError`.\r\n\r\nIt should be `None`.",
        at="2025-04-02T09:00:00Z",
        labels=["bug"],
    )
    draw = repo.issue(
        "a draw has a winner", "`winner(['yes', 'no'])` is `'yes'`; nobody won.", at="2025-04-03T09:00:00Z"
    )
    repo.comment(nothing, "An empty list comes in when a poll is opened.", at="2025-04-04T09:00:00Z")
    repo.comment(draw, "Ties should be nobody's.", at="2025-04-05T09:00:00Z")
    repo.comment(draw, "This issue is stale.", at="2025-04-20T09:00:00Z", author="stale[bot]")
    repo.comment(draw, "I have opened a pull request.", at="2025-05-04T09:00:00Z", author="octocat")
    return repo.pull(
        "Nobody wins a draw",
        f"Fixes #{nothing.number}, fixes #{draw.number}.\n\n<!-- Fixes #1000 -->",
        commits=[
            ("Nobody wins a draw", {"src/tally/counter.py": texts.COUNTER + texts.NOBODY_WINS}),
            ("Test draws", {"tests/test_counter.py": texts.TEST_COUNTER + texts.TEST_DRAW}),
            ("Say so", {"CHANGES.md": "# Changes\n\n- nobody wins a draw\n- the first release\n"}),
        ],
        merge="merge",
        opened=OPENED,
        at="2025-05-05T12:00:00Z",
        closes=[nothing, draw],
        upstream={"docs/index.rst": "tally\n=====\n\nCounts votes.\n"},
    )


def _windows(repo: Repo) -> Pull:
    """A squash; a binary file, a source file with CRLF, and data of tests with CRLF."""
    issue = repo.issue("Votes from Windows", "Each vote that `read` returns ends in a carriage return.", at=STARTED)
    return repo.pull(
        "Read what Windows wrote",
        f"Closes: #{issue.number}",
        commits=[
            (
                "Read what Windows wrote",
                {"src/tally/reading.py": texts.READING.format(split="splitlines()"), "src/tally/mark.bin": EVERY_BYTE},
            ),
            (
                "Test it",
                {
                    "tests/data/windows.txt": b"yes\r\nno\r\n",
                    "tests/test_reading.py": texts.TEST_READING + texts.TEST_WINDOWS,
                },
            ),
        ],
        merge="squash",
        opened=OPENED,
        at="2025-05-31T23:59:59Z",
        closes=[issue],
    )


# acme/weave


def _weave(world: World) -> Repo:
    return world.repository(
        "acme/weave",
        at=STARTED,
        license="BSD-3-Clause",
        files={
            **shared("weave"),
            "pyproject.toml": texts.WEAVE,
            "weave/__init__.py": '"""Weaves text."""\n\n__version__ = "0.4"\n',
            "weave/text.py": texts.TEXT.format(rows=texts.ZIP, line=texts.EVERY),
            "tests/test_text.py": texts.TEST_TEXT.format(more="", blank=""),
        },
    )


def _unequal(repo: Repo) -> Pull:
    """A rebase of three commits; an issue that only a commit message names."""
    issue = repo.issue("Lines are lost", "`woven` drops the lines that only one text has.", at="2025-03-01T09:00:00Z")
    return repo.pull(
        "Weave texts of unequal length",
        "See the commits.",
        commits=[
            (
                f"Keep all lines\n\nFixes #{issue.number}",
                {"weave/text.py": texts.TEXT.format(rows=texts.LONGEST, line=texts.EVERY)},
            ),
            ("Test unequal lengths", {"tests/test_text.py": texts.TEST_TEXT.format(more=texts.UNEQUAL, blank="")}),
            ("Say so", {"CHANGES.md": "# Changes\n\n- all lines are kept\n"}),
        ],
        merge="rebase",
        opened=OPENED,
        at="2025-05-01T00:00:00Z",
        upstream={"docs/index.rst": "weave\n=====\n\nWeaves text.\n"},
    )


def _blank(repo: Repo) -> Pull:
    """From a fork whose branch was force-pushed, and which was deleted."""
    issue = repo.issue("Blank lines get spaces", "`indented('a\\n\\nb')` has spaces in its empty line.", at=STARTED)
    pull = repo.pull(
        "Leave blank lines alone",
        f"Resolves https://github.com/acme/weave/issues/{issue.number}",
        files={
            "weave/text.py": texts.TEXT.format(rows=texts.LONGEST, line=texts.FILLED),
            "tests/test_text.py": texts.TEST_TEXT.format(more=texts.UNEQUAL, blank="\\n"),
        },
        replaced={"weave/text.py": "raise NotImplementedError\n"},
        fork="leaver",
        author=None,
        merge="merge",
        opened=OPENED,
        at="2025-05-20T12:00:00Z",
        closes=[issue],
    )
    fork = repo.world.find("leaver/weave")
    assert fork is not None
    repo.world.delete(fork)
    pull.head_repo = None
    return pull


# acme/newtool


def _newtool(world: World) -> Repo:
    repo = world.repository(
        "acme/oldtool",
        at=STARTED,
        license="Apache-2.0",
        default_branch="master",
        files={
            **shared("oldtool"),
            "setup.py": texts.SETUP,
            "setup.cfg": "[tool:pytest]\ntestpaths = test\n",
            "oldtool/__init__.py": "",
            "oldtool/parse.py": texts.PARSE.format(split='split("=")', trim=""),
            "test/__init__.py": "",
            "test/test_parse.py": texts.TEST_PARSE,
        },
    )
    return repo.rename("acme/newtool")


def _equals(repo: Repo) -> Pull:
    """A squash in a repository that was renamed; its text names the issue by the old name of the repository."""
    issue = repo.issue("Values with = in them", "`parse('a=1=2')` raises `ValueError`.", at="2025-02-01T09:00:00Z")
    return repo.pull(
        "Split once",
        f"Fixes acme/oldtool#{issue.number}",
        files={
            "oldtool/parse.py": texts.PARSE.format(split='split("=", 1)', trim=""),
            "test/test_parse.py": texts.TEST_PARSE + texts.TEST_EQUALS,
        },
        merge="squash",
        opened=OPENED,
        at="2025-05-06T12:00:00Z",
        closes=[issue],
    )


def _broken(repo: Repo) -> Pull:
    """Its own test fails with it: it trims the value, not the key."""
    issue = repo.issue("Keys with spaces", "`parse(' a =1')` keeps the spaces of the key.", at="2025-02-02T09:00:00Z")
    return repo.pull(
        "Trim keys",
        f"Fixes #{issue.number}",
        files={
            "oldtool/parse.py": texts.PARSE.format(split='split("=", 1)', trim=".strip()"),
            "test/test_parse.py": texts.TEST_PARSE + texts.TEST_EQUALS + texts.TEST_TRIM,
        },
        merge="squash",
        opened=OPENED,
        at="2025-05-07T12:00:00Z",
        closes=[issue],
    )


# acme/rejects


def _rejects(world: World) -> Repo:
    """One pull request for each of `REJECTED`, and some that are no candidates."""
    repo, other = library(world, "acme/rejects"), library(world, "acme/elsewhere")
    foreign, issue, deleted = report(other, "core"), report(repo, "core"), report(repo, "lost")
    repo.move("stable", repo.branches["main"])
    mend(repo, "doubt", issue, body="This does not fix #1.", closes=[])
    mend(repo, "cache", issue, author="renovate[bot]")
    mend(repo, "again", issue, body="Reverts acme/rejects#4")
    mend(repo, "older", issue, base="stable")
    mend(repo, "apart", issue, body=f"Fixes acme/elsewhere#{foreign.number}", closes=[foreign])
    mend(repo, "words", issue, files={"README.md": "# Words\n", "docs/words.md": "Words\n"})
    mend(repo, "gone", issue, body="Fixes #2", closes=[])
    mend(repo, "pulls", issue, body="Fixes #4", closes=[])
    bump: dict[str, Any] = {"requirements.txt": "pytest==8\n", "requirements-dev.txt": "pytest==8\n"}
    mend(repo, "bump", issue, title="Bump pytest from 7 to 8", files=bump)
    mend(repo, "large", issue, files={f"lib/part{number}.py": "PART = 1\n" for number in range(16)})
    repo.delete_issue(deleted)
    mend(repo, "unlinked", issue, body="Nothing.", closes=[])
    mend(repo, "april", issue, at="2025-04-30T23:59:59Z")
    mend(repo, "june", issue, at="2025-06-01T00:00:00Z")
    mend(repo, "open", issue, merge=None)
    world.fork(repo, "forker")
    library(world, "acme/unlicensed", license=None)
    return repo


REJECTED = {
    "acme__rejects-3": Reason.WEAK_LINK,
    "acme__rejects-4": Reason.BOT_AUTHOR,
    "acme__rejects-5": Reason.REVERT,
    "acme__rejects-6": Reason.NOT_DEFAULT_BRANCH,
    "acme__rejects-7": Reason.ISSUE_ELSEWHERE,
    "acme__rejects-8": Reason.NO_TEST_PATH,
    "acme__rejects-9": Reason.ISSUE_GONE,
    "acme__rejects-10": Reason.ISSUE_IS_PULL,
    "acme__rejects-11": Reason.DEPENDENCY_BUMP,
    "acme__rejects-12": Reason.TOO_MANY_CHANGED_FILES,
}
"""Of `acme/rejects`, where links have to be strong."""
