"""Rows say what the candidates say, to the byte, and come back from Parquet as they went in."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from release_items import (
    GOLD,
    UPLOADED,
    accepted,
    candidate,
    environment,
    fact,
    faulted,
    pull_candidate,
    rejected,
    settings,
    verdict,
)

from exporters.interface import PublicItem, ReleaseItem
from exporters.parquet import parquet_bytes, read_rows
from exporters.publish import redact
from exporters.rows import measurement_rows, rejected_rows, task_rows, unmeasured_rows
from exporters.schema import MEASUREMENTS, REJECTED, TASKS, UNMEASURED
from exporters.text import decode_patch, encode_patch
from miner.core.ledger import fact_id
from miner.core.records import Cause, IssueLink, IssueText, Recipe, Verdict

MEASURE = settings().measure
LIMITS = MEASURE.test


def public(item: ReleaseItem) -> PublicItem:
    redacted = redact(item)
    assert redacted is not None
    return redacted


def task_row(item: ReleaseItem) -> dict[str, Any]:
    (row,) = read_rows(parquet_bytes(TASKS, task_rows([public(item)], MEASURE)))
    return row


def test_a_task_comes_back_from_parquet() -> None:
    row = task_row(accepted(environment=environment(rebuild_cmd="python -m pip install --no-index .")))
    assert row["instance_id"] == "pypi__wordlib-1.1.0"
    assert row["patch"] == GOLD
    assert row["patch_encoding"] == "utf-8"
    assert row["created_at"] == row["first_public_at"] == UPLOADED
    assert row["FAIL_TO_PASS"] == ["tests/test_split.py::test_tabs"]
    assert row["FAIL_TO_FAIL"] == []
    assert row["fail_to_pass_causes"] == [{"nodeid": "tests/test_split.py::test_tabs", "cause": "absent-before"}]
    assert row["links"] == [
        {
            "repository": None,
            "number": 12,
            "provenance": "changelog",
            "confidence": "strong",
            "where": "CHANGES.md: 1.1.0",
            "text": "(#12)",
        }
    ]
    assert row["rebuild_cmd"] == "python -m pip install --no-index ."
    assert (row["image_size"], row["python"], row["install_mode"]) == (1234, "3.11", "editable")
    assert (row["workdir"], row["user"], row["network"]) == ("/testbed", "1000:1000", "none")
    assert row["test_workdir"] == "/testbed"
    assert (row["timeout_s"], row["memory_mb"], row["cpus"]) == (LIMITS.timeout_s, LIMITS.memory_mb, LIMITS.cpus)
    assert row["test_env"] == [
        "LANG=C.UTF-8",
        "LC_ALL=C.UTF-8",
        "PYTHONDONTWRITEBYTECODE=1",
        "PYTHONHASHSEED=0",
        "TZ=UTC",
    ]


def test_release_pair_has_no_pull_request_and_no_month() -> None:
    row = task_row(accepted())
    assert [row[name] for name in ("month", "pull_number", "merged_at", "closed_at", "issues")] == [None] * 4 + [[]]


def test_pull_request_comes_back_with_its_times_issues_and_links() -> None:
    row = task_row(accepted("o__words-34", source="github", candidate=pull_candidate()))
    assert (row["source"], row["month"], row["pull_number"]) == ("github", "2023-05", 34)
    assert (row["created_at"], row["first_public_at"]) == (UPLOADED, UPLOADED - timedelta(days=1))
    assert (row["merged_at"], row["closed_at"]) == (
        UPLOADED + timedelta(days=20),
        UPLOADED + timedelta(days=20, seconds=1),
    )
    assert row["issues"] == [
        {
            "number": 12,
            "title": "Tabs",
            "body": "They do not split.",
            "created_at": UPLOADED - timedelta(days=9),
        },
        {"number": 13, "title": "White space", "body": "", "created_at": UPLOADED - timedelta(days=8)},
    ]
    assert [(link["repository"], link["number"], link["confidence"], link["text"]) for link in row["links"]] == [
        (None, 12, "certain", ""),
        ("x/y", 5, "weak", "Fixes x/y#5"),
    ]


def test_text_of_an_issue_that_is_no_utf8_is_escaped() -> None:
    issue = IssueText(number=12, title="caf\udce9", body="\udcff", created_at=UPLOADED)
    link = IssueLink(number=12, provenance="title", where="\udcfe", text="\udcfd")
    row = task_row(accepted(candidate=pull_candidate(issues=(issue,), links=(link,))))
    assert (row["issues"][0]["title"], row["issues"][0]["body"]) == (r"caf\udce9", r"\udcff")
    assert (row["links"][0]["where"], row["links"][0]["text"]) == (r"\udcfe", r"\udcfd")


def test_rejected_pull_request_has_its_month() -> None:
    items = [public(rejected("o__words-35")).model_copy(update={"month": "2023-05"}), public(rejected())]
    rows = read_rows(parquet_bytes(REJECTED, rejected_rows(items)))
    assert [(row["instance_id"], row["month"]) for row in rows] == [
        ("o__words-35", "2023-05"),
        ("pypi__shapes-2.0", None),
    ]


def test_options_that_the_test_command_leaves_out_are_named_with_the_reason() -> None:
    dropped = ("--cov: measures coverage", "-p gone: the plug-in is not installed")
    assert task_row(accepted(environment=environment(dropped_addopts=dropped)))["dropped_addopts"] == list(dropped)


def test_image_without_a_name_has_its_local_tag() -> None:
    assert task_row(accepted())["image"] == "swe-miner/pypi__wordlib-1.1.0:" + "c" * 12
    named = task_row(accepted(image_name="swe-miner/wordlib:1"))
    assert (named["image"], named["image_digest"]) == ("swe-miner/wordlib:1", environment().image)


def test_tests_of_a_project_in_a_folder_run_in_it() -> None:
    recipe = Recipe(python="3.11", build_backend="hatchling.build", project_dir="python/wordlib")
    assert task_row(accepted(recipe=recipe))["test_workdir"] == "/testbed/python/wordlib"


def test_patch_without_final_newline_gets_one() -> None:
    assert task_row(accepted(candidate=candidate(patch=GOLD.rstrip("\n"))))["patch"] == GOLD


def test_patch_with_line_separators_and_crlf_is_left_alone() -> None:
    patch = GOLD.replace("text.split()", "text.split() # \u2028 \r")
    assert task_row(accepted(candidate=candidate(patch=patch)))["patch"] == patch


def test_patch_that_is_no_utf8_still_applies(tmp_path: Path) -> None:
    def git(*words: str, data: bytes | None = None) -> bytes:
        return subprocess.run(["git", *words], cwd=tmp_path, input=data, check=True, capture_output=True).stdout

    git("init", "-q")
    name = tmp_path / "names.txt"
    name.write_bytes(b"caf\xe9\n")
    git("add", ".")
    name.write_bytes(b"caf\xe9\nna\xefve\n")
    patch = git("diff").decode("utf-8", "surrogateescape")
    name.write_bytes(b"caf\xe9\n")

    row = task_row(accepted(candidate=candidate(patch=patch)))

    assert row["patch_encoding"] == "base64"
    git("apply", "-", data=decode_patch(str(row["patch"]), str(row["patch_encoding"])))
    assert name.read_bytes() == b"caf\xe9\nna\xefve\n"


@given(st.binary())
def test_any_patch_is_read_back_to_the_byte(data: bytes) -> None:
    text, encoding = encode_patch(data.decode("utf-8", "surrogateescape"))
    assert decode_patch(text, encoding) == (data if not data or data.endswith(b"\n") else data + b"\n")


awkward = st.text(st.characters(codec="utf-8") | st.sampled_from("[]:/ \u2028\r\n\x00")).filter(bool)


@hypothesis_settings(deadline=None)
@given(st.lists(awkward, unique=True), st.lists(awkward, unique=True), awkward)
def test_any_test_id_and_text_comes_back(failing: list[str], passing: list[str], statement: str) -> None:
    lists = verdict(fail_to_pass=failing, pass_to_pass=passing, causes=dict.fromkeys(failing, Cause.ERROR))
    row = task_row(accepted(verdict=lists, candidate=candidate(statement=statement)))
    assert (row["FAIL_TO_PASS"], row["PASS_TO_PASS"]) == (failing, passing)
    assert row["fail_to_pass_causes"] == [{"nodeid": name, "cause": "error"} for name in failing]
    assert row["problem_statement"] == statement


def test_lone_surrogates_outside_patches_are_escaped() -> None:
    row = task_row(accepted(verdict=Verdict(fail_to_pass=("tests/caf\udce9.py::test",))))
    assert row["FAIL_TO_PASS"] == [r"tests/caf\udce9.py::test"]


def test_rejection_has_its_code_its_words_and_what_every_rule_measured() -> None:
    (row,) = read_rows(parquet_bytes(REJECTED, rejected_rows([public(rejected()), public(accepted())])))
    assert (row["instance_id"], row["repo"], row["code"]) == ("pypi__shapes-2.0", "shapes", "nothing-fails-before")
    assert row["detail"].startswith("no test fails before")
    assert [(found["rule"], found["outcome"], found["value"]) for found in row["findings"]] == [
        ("source-found", "pass", None),
        ("fail-to-pass", "fail", 0.0),
    ]
    assert row["facts"] == [fact_id(rejected().trail[0].key)]


def test_faulted_candidate_is_unmeasured_and_never_rejected() -> None:
    items = [public(faulted())]
    assert rejected_rows(items) == []
    (row,) = read_rows(parquet_bytes(UNMEASURED, unmeasured_rows(items)))
    assert (row["state"], row["code"]) == ("faulted", "docker-unavailable")


def test_fact_that_two_candidates_share_is_one_row() -> None:
    items = [public(accepted("pypi__wordlib-1.1.0")), public(accepted("pypi__wordlib-1.2.0"))]
    shared = fact_id(fact("env-1234", "install.layer").key)
    rows = read_rows(parquet_bytes(MEASUREMENTS, measurement_rows(items, {shared: "run-7"})))
    assert len(rows) == 3
    (row,) = (row for row in rows if row["fact"] == shared)
    assert row["instance_ids"] == ["pypi__wordlib-1.1.0", "pypi__wordlib-1.2.0"]
    assert (row["run_id"], row["wall_s"]) == ("run-7", 1.5)
    assert {"name": "bytes", "value": 7.0} in row["measures"]
