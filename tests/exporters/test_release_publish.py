"""Law 5: what is not public does not leave, in any byte of a release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from planted_secrets import SECRETS
from release_items import (
    GOLD,
    UPLOADED,
    VERSIONS,
    accepted,
    candidate,
    environment,
    faulted,
    pull_candidate,
    rejected,
    settings,
    tree,
    verdict,
    words_in,
)

from exporters.interface import ReleaseItem
from exporters.parquet import read_rows
from exporters.publish import redact, redact_settings, select
from exporters.release import Release, build
from miner.core.errors import ReleaseError
from miner.core.reasons import Reason
from miner.core.records import Finding, IssueLink, IssueText, State, Visibility
from miner.core.settings import load_settings

HIDDEN_ID = "pypi__quietlib-7.7.7"
HIDDEN_WORDS = ("zebrafish statement", "zebrafish hint", "zebrafish_code", "zebrafish_test", "zebrafish log")


def hidden(visibility: Visibility, state: State) -> ReleaseItem:
    """A candidate whose every text is recognisable."""
    words = pull_candidate(
        HIDDEN_ID,
        repo="zebrafish/code",
        statement="zebrafish statement",
        hints="zebrafish hint",
        patch=GOLD + "+zebrafish_code\n",
        test_patch=GOLD + "+zebrafish_test\n",
        test_files=("tests/zebrafish_test.py",),
        issues=(IssueText(number=12, title="zebrafish title", body="zebrafish body", created_at=UPLOADED),),
        links=(IssueLink(number=5, provenance="text", where="body:1", text="zebrafish", repository="zebrafish/y"),),
    )
    if state is State.REJECTED:
        return rejected(HIDDEN_ID, detail="zebrafish log", visibility=visibility, candidate=words)
    return accepted(
        HIDDEN_ID,
        visibility=visibility,
        candidate=words,
        verdict=verdict(fail_to_pass=("tests/zebrafish_test.py::test",)),
        test_command="pytest tests/zebrafish_test.py",
        lock_text="zebrafish_code==1\n",
        build_lock_text="zebrafish_build==1\n",
        dockerfile="RUN zebrafish\n",
    )


def release(folder: Path, *items: ReleaseItem, overrides: tuple[str, ...] = ()) -> tuple[Release, str]:
    made = build(items, settings(*overrides), VERSIONS, folder / "release", {})
    return made, words_in(tree(folder / "release"))


@pytest.mark.parametrize("state", [State.ACCEPTED, State.REJECTED])
def test_private_candidate_leaves_ids_codes_numbers_and_hashes(tmp_path: Path, state: State) -> None:
    made, words = release(tmp_path, accepted(), hidden(Visibility.PRIVATE, state))
    assert (made.accepted, made.rejected) == (1, 1)
    for word in HIDDEN_WORDS:
        assert word not in words
    assert "zebrafish" not in words
    row = next(r for r in read_rows((made.folder / "rejected.parquet").read_bytes()) if r["instance_id"] == HIDDEN_ID)
    code = Reason.NOT_PUBLIC if state is State.ACCEPTED else Reason.NOTHING_FAILS_BEFORE
    assert (row["code"], row["sentence"], row["detail"], row["repo"]) == (code, code.meaning, "", None)
    assert row["findings"][-1]["value"] is not None


@pytest.mark.parametrize("state", [State.ACCEPTED, State.REJECTED])
def test_held_out_candidate_leaves_a_count(tmp_path: Path, state: State) -> None:
    item = hidden(Visibility.HOLD_OUT, state)
    pairs = 'pairs=[{name="quietlib", old="7.7.6", new="7.7.7"}]'
    made, words = release(tmp_path, accepted(), item, overrides=(pairs,))
    assert (made.accepted, made.left_out) == (1, 1)
    for word in ("zebrafish", "quietlib", "7.7.7", *(log for fact in item.trail[:1] for log in fact.logs.values())):
        assert word not in words
    (row,) = made.lock.left_out
    assert (row.reason, row.source, row.state, row.count) == (Reason.NOT_PUBLIC, "pypi", state, 1)
    assert made.lock.settings["pairs"]["count"] == 1


def test_pairs_are_named_where_nothing_is_held_out(tmp_path: Path) -> None:
    made, _ = release(tmp_path, accepted(), overrides=('pairs=[{name="wordlib", old="1.0.0", new="1.1.0"}]',))
    pair = {"name": "wordlib", "old": "1.0.0", "new": "1.1.0", "visibility": None}
    assert made.lock.settings["pairs"] == [pair]


def with_secret(where: str, secret: str) -> ReleaseItem:
    """An accepted candidate with a secret in one of its texts."""
    if where in ("patch", "test_patch"):
        added = "".join(f"+{line}\n" for line in secret.splitlines())
        return accepted(candidate=candidate(**{where: GOLD + added}))
    if where in ("issue title", "issue body"):
        texts = {"title": "Tabs", "body": "So.", where.removeprefix("issue "): f"Before\n{secret}\nafter."}
        issue = IssueText(number=12, created_at=UPLOADED, **texts)
        return accepted(candidate=pull_candidate(issues=(issue,)))
    if where == "link text":
        link = IssueLink(number=12, provenance="commit-message", where="commit 1a2b3c4:1", text=f"Fixes #12 {secret}")
        return accepted(candidate=pull_candidate(links=(link,)))
    if where in ("statement", "hints"):
        return accepted(candidate=candidate(**{where: f"Before\n{secret}\nafter."}))
    if where == "rebuild_cmd":
        return accepted(environment=environment(rebuild_cmd=f"pip install --token {secret} ."))
    if where == "fail_to_pass":
        return accepted(verdict=verdict(fail_to_pass=(f"tests/t.py::test[{secret}]",), causes={}))
    return accepted(**{where: f"# {secret}\n"})


PLACES = {
    **dict.fromkeys(["issue title", "issue body"], "candidate.issues"),
    "link text": "candidate.links",
    **{name: name for name in ("statement", "hints", "patch", "test_patch")},
    **{name: name for name in ("lock_text", "test_command", "rebuild_cmd", "fail_to_pass")},
}


@pytest.mark.parametrize(("name", "where"), [*(("github", p) for p in PLACES), *((n, "patch") for n in SECRETS)])
def test_task_with_a_planted_secret_is_rejected_and_the_secret_stays(tmp_path: Path, name: str, where: str) -> None:
    kind, secret = SECRETS[name]
    made, words = release(tmp_path, with_secret(where, secret))
    assert (made.accepted, made.rejected) == (0, 1)
    (row,) = read_rows((made.folder / "rejected.parquet").read_bytes())
    assert (row["code"], row["stage"]) == (Reason.SECRET_FOUND, "export")
    assert kind in row["detail"]
    assert PLACES[where] in row["detail"]
    assert max(secret.splitlines(), key=len) not in words


def test_secret_in_the_words_of_a_rejection_is_withheld_and_the_code_stays(tmp_path: Path) -> None:
    _, secret = SECRETS["github"]
    made, words = release(tmp_path, rejected(detail=f"pip failed: Authorization: {secret}"))
    (row,) = read_rows((made.folder / "rejected.parquet").read_bytes())
    assert row["code"] == Reason.NOTHING_FAILS_BEFORE
    assert row["detail"] == row["sentence"] == "[withheld: looks like GitHub Token]"
    assert secret not in words


def test_secret_in_the_configuration_stops_the_release(tmp_path: Path) -> None:
    image = "https://robot" + ":pass" + "word@images.internal/base"
    with pytest.raises(ReleaseError, match=r"settings\.docker\.base_image holds what looks like a secret") as caught:
        release(tmp_path, accepted(), overrides=(f'docker.base_image="{image}"',))
    assert image not in str(caught.value)
    assert not (tmp_path / "release").exists()


def test_log_excerpts_and_words_of_a_fault_never_leave(tmp_path: Path) -> None:
    _, words = release(tmp_path, accepted(), rejected(), faulted(words="the engine at 10.0.0.7 went away"))
    assert "failed in 0.12s" not in words
    assert "12 passed in 0.3s" not in words
    assert "10.0.0.7" not in words


def test_test_ids_that_change_from_run_to_run_are_not_content(tmp_path: Path) -> None:
    shaky = "tests/test_time.py::test_now[2025-01-02 03:04:05]"
    item = rejected(
        detail=f"the only failures have ids that change from run to run ({shaky}): 1 failed",
        verdict=verdict(unstable=(shaky,)),
    )
    made, words = release(tmp_path, item)
    (row,) = read_rows((made.folder / "rejected.parquet").read_bytes())
    assert "(tests/test_time.py::test_now[...])" in row["detail"]
    assert "03:04:05" not in words.replace("2025, 1, 2", "")


def test_source_that_is_not_configured_is_counted_and_not_shown(tmp_path: Path) -> None:
    made, words = release(tmp_path, accepted(), rejected(), overrides=('release.sources=["github"]',))
    assert (made.accepted, made.rejected, made.left_out) == (0, 0, 2)
    assert [(row.reason, row.state, row.count) for row in made.lock.left_out] == [
        (Reason.SOURCE_NOT_RELEASED, State.ACCEPTED, 1),
        (Reason.SOURCE_NOT_RELEASED, State.REJECTED, 1),
    ]
    assert "wordlib" not in words
    assert "source-not-released" in (made.folder / "README.md").read_text()


def test_only_github_is_released_unless_configured() -> None:
    assert load_settings(environ={}).release.sources == ("github",)


def test_candidate_that_stands_twice_is_refused() -> None:
    with pytest.raises(ReleaseError, match=r"wordlib-1\.1\.0 stands twice"):
        select([accepted(), accepted()], ["pypi"])


def test_accepted_candidate_without_an_environment_is_refused() -> None:
    with pytest.raises(ReleaseError, match="is accepted, but has no environment"):
        redact(accepted(environment=None))


def test_lock_of_another_environment_is_refused() -> None:
    with pytest.raises(ReleaseError, match="is not the one that its environment was installed from"):
        redact(accepted(environment=environment(lock_sha256="0" * 64)))


def test_settings_are_whole_where_nothing_is_hidden() -> None:
    portable = settings().portable()
    assert json.dumps(redact_settings(portable, hides_subjects=False)) == json.dumps(portable)


texts = st.sampled_from(["plain words", "", *(secret for _, secret in SECRETS.values())])


@hypothesis_settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([accepted(), rejected(), faulted()]),
    st.sampled_from([Visibility.PUBLIC, Visibility.PRIVATE]),
    st.lists(texts, max_size=3),
)
def test_redacting_twice_changes_nothing(item: ReleaseItem, visibility: Visibility, details: list[str]) -> None:
    findings = tuple(Finding(rule="rule", stage="validate", outcome="pass", detail=detail) for detail in details)
    once = redact(item.model_copy(update={"visibility": visibility, "findings": findings}))
    assert once is not None
    frozen = {"visibility": visibility, "findings": once.findings, "decision": once.decision}
    assert redact(item.model_copy(update=frozen)) == once
