"""From a merged pull request to a candidate: statement, hints, when the solution became public, and all fields."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from forge_records import at, comment, commit, issue, pull
from hypothesis import given
from hypothesis import strategies as st

from miner.core.blobs import BlobStore
from miner.core.hashing import canonical_json
from miner.core.reasons import Reason
from miner.core.records import Candidate, Fact, FactKey
from miner.crawlers.github.answers import GATHERED, gather
from miner.crawlers.github.candidate import compute_pull_candidate, instance_id, month_of
from miner.crawlers.github.model import Actor, Edit
from miner.crawlers.github.statement import first_public_at, is_program, statement_of
from miner.crawlers.interface import Rejection

PERSON = Actor(login="someone", kind="User")
PATCH = """\
diff --git a/pkg/lock.py b/pkg/lock.py
--- a/pkg/lock.py
+++ b/pkg/lock.py
@@ -1,3 +1,5 @@
 import time
-    return self.handle.acquire(False)
+    deadline = time.monotonic() + self.patience
+    return self.handle.acquire(timeout=deadline)
+    pass
-    return self.handle.release_the_lock()
+        return self.handle.release_the_lock()
"""
FIXED = "    deadline = time.monotonic() + self.patience"


# ---------------------------------------------------------------- statement


def test_the_statement_is_title_and_body() -> None:
    made = statement_of(pull(), [issue(12, title=" Lock is lost ", body="\r\nIt hangs.\r\n\r\n- often\r\n")])

    assert made.text == "Lock is lost\n\nIt hangs.\n\n- often"
    assert [(one.number, one.title, one.body) for one in made.issues] == [
        (12, " Lock is lost ", "\r\nIt hangs.\r\n\r\n- often\r\n")
    ]
    assert (made.hints, made.notes) == ("", ())


def test_several_issues_can_be_told_apart() -> None:
    made = statement_of(pull(), [issue(13), issue(12, body="")])

    assert made.text == "Title 13\n\nBody 13\n\n---\n\nTitle 12"
    assert [one.number for one in made.issues] == [13, 12]


def test_no_issue_makes_an_empty_statement() -> None:
    assert statement_of(pull(), []).text == ""


def test_late_edits_and_late_issues_are_noted_and_change_nothing() -> None:
    first = Edit(edited_at=at(-30), text="Body as it was")
    edited = issue(
        12, body="Body as it is", last_edited_at=at(1), edits=(Edit(edited_at=at(1), text="Body as it is"), first)
    )

    made = statement_of(pull(), [edited, issue(13, created_at=at(1)), issue(14, last_edited_at=at(-2))])

    assert made.text.startswith("Title 12\n\nBody as it is\n")
    assert made.notes == (
        "#12: its text was edited after the pull request was opened, at 2025-05-11T12:00:00+00:00",
        "#13: it was opened after the pull request, at 2025-05-11T12:00:00+00:00",
    )


# ---------------------------------------------------------------- hints


def test_hints_are_what_people_said_before_the_first_commit() -> None:
    of = pull(commits=(commit("Wait", made=-2), commit("More", "e" * 40, made=-1)))
    one = issue(
        12,
        comments=(
            comment("early", -20, author=PERSON),
            comment("a program", -19, author=Actor(login="stale", kind="Bot")),
            comment("a deleted account\r\n", -18),
            comment("changed later", -17, author=PERSON, last_edited_at=at(1)),
            comment("changed at once", -16, author=PERSON, last_edited_at=at(-15)),
            comment("too late", -2, author=PERSON),
            comment("much too late", -1, author=PERSON),
        ),
    )
    other = issue(13, comments=(comment("between", -19.5, author=PERSON),))

    made = statement_of(of, [one, other])

    assert made.hints.split("\n\n---\n\n") == ["early", "between", "a deleted account", "changed at once"]
    assert made.notes == ("#12: 1 comments were edited after the work began, and are no hints",)


def test_without_commits_the_opening_ends_the_hints() -> None:
    comments = (comment("before", -0.1, author=PERSON), comment("after", 0, author=PERSON))

    assert statement_of(pull(), [issue(12, comments=comments)]).hints == "before"


def test_rewritten_commits_do_not_let_hints_in_that_followed_the_opening() -> None:
    of = pull(commits=(commit("Wait", made=1.5),))

    assert statement_of(of, [issue(12, comments=(comment("like this", 1, author=PERSON),))]).hints == ""


@given(
    commits=st.lists(st.floats(-50, 5), max_size=4),
    comments=st.lists(st.tuples(st.floats(-60, 5), st.none() | st.floats(-60, 5)), max_size=6),
)
def test_no_hint_is_younger_than_any_commit_or_the_opening(
    commits: list[float], comments: list[tuple[float, float | None]]
) -> None:
    of = pull(commits=tuple(commit("Wait", f"{n:040}", made=days) for n, days in enumerate(commits)))
    said = tuple(
        comment(f"<{n}>", days, last_edited_at=None if edited is None else at(edited))
        for n, (days, edited) in enumerate(comments)
    )
    began = min([0.0, *commits])

    hints = statement_of(of, [issue(12, comments=said)]).hints

    for n, (days, edited) in enumerate(comments):
        assert (f"<{n}>" in hints) == (at(days) < at(began) and (edited is None or at(edited) < at(began)))


@pytest.mark.parametrize(
    ("author", "program"),
    [
        (None, False),
        (PERSON, False),
        (Actor(login="dependabot", kind="Bot"), True),
        (Actor(login="renovate[bot]", kind="User"), True),
        (Actor(login="Project-Bot", kind="User"), True),
        (Actor(login="abbot", kind="User"), False),
        (Actor(login="imported", kind="Mannequin"), False),
    ],
)
def test_programs_are_told_by_their_account(author: Actor | None, program: bool) -> None:
    assert is_program(author) == program


# ---------------------------------------------------------------- since when the solution is public


@pytest.mark.parametrize(
    ("made", "opened", "expected"),
    [
        ((), -30, 0),
        ((-1,), -30, -1),
        ((-1, -3), -30, -3),
        ((-40,), -30, -30),
        ((1,), -30, 0),
        ((-5,), 1, 0),
    ],
)
def test_public_since_the_opening_or_the_first_commit(made: tuple[float, ...], opened: float, expected: float) -> None:
    of = pull(commits=tuple(commit("Wait", f"{n:040}", made=days) for n, days in enumerate(made)))

    assert first_public_at(of, [issue(12, created_at=at(opened))], PATCH) == at(expected)


def test_without_an_issue_the_first_commit_counts_as_it_is() -> None:
    assert first_public_at(pull(commits=(commit("Wait", made=-40),)), [], PATCH) == at(-40)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (f"Try\n```python\n{FIXED}\n```", True),
        (f"Try\n```diff\n+{FIXED}\n```", True),
        (f"Try\n\n    {FIXED}\n", True),
        (f"> ```\n> {FIXED}\n> ```", True),
        (f"Try {FIXED.strip()} there", False),
        ("```\nreturn self.handle.acquire(False)\n```", False),
        ("```\npass\n```", False),
        ("```\nreturn self.handle.release_the_lock()\n```", False),
        ("```\nimport time\n```", False),
        (f"```\n{FIXED} or more\n```", False),
    ],
)
def test_code_of_the_solution_in_an_issue_makes_it_public(text: str, holds: bool) -> None:
    since = at(-30) if holds else at(0)

    assert first_public_at(pull(), [issue(12, body=text)], PATCH) == since
    in_comment = issue(12, comments=(comment(text, -10),))
    assert first_public_at(pull(), [in_comment], PATCH) == (at(-10) if holds else at(0))


def test_the_version_of_a_body_that_first_held_the_solution_counts() -> None:
    code = f"```\n{FIXED}\n```"
    created, added, last = (Edit(edited_at=at(-days), text=text) for days, text in ((30, "no"), (8, code), (4, code)))
    lost = Edit(edited_at=at(-9), text=None)

    def since(*edits: Edit, body: str = code) -> datetime:
        return first_public_at(pull(), [issue(12, body=body, edits=edits)], PATCH)

    assert since(last, added, created) == at(-8)
    assert since(last, lost, added, created) == at(-9)
    assert since(last, added) == at(-30)
    assert since(last, added, created, body="taken out again") == at(-8)
    assert since(created) == at(-30)


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_text_breaks_the_search_for_the_solution(body: str, patch: str) -> None:
    assert first_public_at(pull(), [issue(12, body=body)], patch) in (at(0), at(-30))


# ---------------------------------------------------------------- the candidate


def test_ids_and_months_are_those_of_the_first_name_and_of_utc() -> None:
    assert instance_id("Some-Owner/a.name", 7) == "Some-Owner__a.name-7"
    east = timezone(timedelta(hours=10))
    assert month_of(datetime(2025, 6, 1, 9, tzinfo=east)) == "2025-05"
    assert month_of(datetime(2025, 6, 1, tzinfo=UTC)) == "2025-06"


DIFF = """\
diff --git a/pkg/lock.py b/pkg/lock.py
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/pkg/lock.py
+++ b/pkg/lock.py
@@ -1 +1 @@
-return self.handle.acquire(False)
+return self.handle.acquire(timeout=self.patience)
diff --git a/tests/test_lock.py b/tests/test_lock.py
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/tests/test_lock.py
+++ b/tests/test_lock.py
@@ -1 +1 @@
-def test_lock(): ...
+def test_lock(): assert lock()
"""


def raw_issue(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "__typename": "Issue",
        "id": f"I_{number}",
        "number": number,
        "title": f"Title {number}",
        "body": f"Body {number}",
        "url": f"https://github.com/new/name/issues/{number}",
        "state": "CLOSED",
        "createdAt": "2025-04-01T00:00:00Z",
        "updatedAt": "2025-05-31T23:30:00Z",
        "repository": {"databaseId": 1, "nameWithOwner": "new/name"},
        **changes,
    }


def raw_pull(**changes: Any) -> dict[str, Any]:
    return {
        "id": "PR_15",
        "number": 15,
        "title": "Wait for the lock",
        "body": "Fixes #12 and closes #13",
        "url": "https://github.com/new/name/pull/15",
        "createdAt": "2025-03-10T12:00:00Z",
        "updatedAt": "2025-06-03T00:00:00Z",
        "mergedAt": "2025-05-31T23:30:00Z",
        "closedAt": "2025-05-31T23:30:01Z",
        "repository": {"databaseId": 1, "nameWithOwner": "new/name"},
        "baseRefName": "main",
        "baseRefOid": "b" * 40,
        "headRefName": "lock",
        "headRefOid": "c" * 40,
        "closingIssuesReferences": {"nodes": [raw_issue(12)]},
        **changes,
    }


def fact(kind: str, payload: dict[str, Any], blobs: dict[str, str]) -> Fact:
    key = FactKey(kind=kind, subject="old__name-15", input_hash="0", producer="test", epoch=1)
    return Fact(key=key, observed_at=at(30), payload=payload, blobs=blobs)


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs"))


def looked_up(blobs: BlobStore, node: dict[str, Any], references: dict[str, Any]) -> Fact:
    repository = {
        "id": "R_1",
        "databaseId": 1,
        "nameWithOwner": "new/name",
        "createdAt": "2020-01-01T00:00:00Z",
        "defaultBranchRef": {"name": "main"},
        "newestIssue": {"nodes": [{"number": 20}]},
    }
    answers = gather(repository, node, [{"data": {"repository": references}}], [], {})
    payload = {"coordinates": {"number": 15}, "origin": {"repo": "Old/name", "number": 15}}
    return fact("look-up", payload, {GATHERED: blobs.put_text(json.dumps(answers))})


def extracted(blobs: BlobStore, **changes: Any) -> Fact:
    paths = ["pkg/lock.py", "tests/test_lock.py"]
    changed = [{"status": "M", "path": path, "old_mode": "100644", "new_mode": "100644"} for path in paths]
    payload = {
        "base_commit": "1" * 40,
        "target_commit": "2" * 40,
        "base_tree": "3" * 40,
        "target_tree": "4" * 40,
        "changes": changed,
        "base_paths": paths,
        "target_paths": paths,
        "notes": [],
        "version": "1.3.0",
        "base_version": "1.2.0",
    }
    held = {"diff": blobs.put_text(DIFF), "base_files": blobs.put_text("{}"), "target_files": blobs.put_text("{}")}
    return fact("extract", {**payload, **changes}, held)


def test_a_pull_request_becomes_a_candidate(blobs: BlobStore) -> None:
    made = compute_pull_candidate(looked_up(blobs, raw_pull(), {"n13": raw_issue(13)}), extracted(blobs), blobs)

    assert isinstance(made, Candidate)
    assert (made.instance_id, made.source, made.repo, made.pull) == ("Old__name-15", "github", "Old/name", 15)
    assert (made.version, made.base_version) == ("1.3.0", "1.2.0")
    assert (made.base_commit, made.base_tree, made.target_tree) == ("1" * 40, "3" * 40, "4" * 40)
    assert made.month == "2025-05"
    assert made.created_at == datetime(2025, 3, 10, 12, tzinfo=UTC)
    assert made.merged_at == datetime(2025, 5, 31, 23, 30, tzinfo=UTC)
    assert made.closed_at == datetime(2025, 5, 31, 23, 30, 1, tzinfo=UTC)
    assert made.first_public_at == made.created_at
    assert made.statement == "Title 12\n\nBody 12"
    assert [one.number for one in made.issues] == [12]
    assert [(link.number, link.confidence) for link in made.links] == [(12, "certain"), (12, "strong"), (13, "weak")]
    assert (made.gold_files, made.test_files) == (("pkg/lock.py",), ("tests/test_lock.py",))
    assert made.patch + made.test_patch == DIFF
    assert Candidate.model_validate_json(canonical_json(made)) == made


def test_code_of_the_fix_in_the_issue_dates_the_candidate(blobs: BlobStore) -> None:
    telling = raw_issue(
        12, createdAt="2025-03-01T00:00:00Z", body="Try\n```\nreturn self.handle.acquire(timeout=self.patience)\n```"
    )
    node = raw_pull(closingIssuesReferences={"nodes": [telling]})

    made = compute_pull_candidate(looked_up(blobs, node, {}), extracted(blobs), blobs)

    assert isinstance(made, Candidate)
    assert made.first_public_at == datetime(2025, 3, 1, tzinfo=UTC)


def test_without_a_usable_issue_the_statement_is_empty(blobs: BlobStore) -> None:
    node = raw_pull(body="Fixes #13", closingIssuesReferences={"nodes": []})

    made = compute_pull_candidate(looked_up(blobs, node, {"n13": None}), extracted(blobs), blobs)

    assert isinstance(made, Candidate)
    assert (made.statement, made.issues, made.hints) == ("", (), "")
    assert [(link.number, link.confidence) for link in made.links] == [(13, "strong")]


def test_a_change_without_tests_is_rejected(blobs: BlobStore) -> None:
    only = blobs.put_text(DIFF[: DIFF.index("diff --git a/tests")])
    whole = extracted(blobs)
    fewer = whole.model_copy(
        update={
            "payload": {**whole.payload, "changes": whole.payload["changes"][:1]},
            "blobs": {**whole.blobs, "diff": only},
        }
    )

    made = compute_pull_candidate(looked_up(blobs, raw_pull(), {}), fewer, blobs)

    assert isinstance(made, Rejection)
    assert made.reason is Reason.NO_TEST_CHANGE
