"""The schema says what every column means, in the files and in the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporters.schema import TABLES, TASKS, Table, schema_docs

SWE_BENCH = {
    *("instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement", "hints_text", "created_at"),
    *("version", "environment_setup_commit", "FAIL_TO_PASS", "PASS_TO_PASS"),
}


def test_documentation_is_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "schema.md"
    assert page.read_text(encoding="utf-8") == schema_docs(), "write exporters.schema.schema_docs() to docs/schema.md"


def test_tasks_have_the_columns_of_swe_bench() -> None:
    assert {column.name for column in TASKS.columns} >= SWE_BENCH


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_is_unique_and_described_in_the_file(table: Table) -> None:
    schema = table.arrow()
    assert len(set(schema.names)) == len(schema.names)
    assert table.key in schema.names
    for field in schema:
        assert field.metadata[b"description"].decode().endswith(".")


def test_lists_are_lists_and_times_have_a_zone() -> None:
    schema = TASKS.arrow()
    assert str(schema.field("FAIL_TO_PASS").type).startswith("list<")
    assert str(schema.field("created_at").type) == "timestamp[us, tz=UTC]"


def test_what_a_release_pair_does_not_have_is_nullable() -> None:
    schema = TASKS.arrow()
    without = {field.name for field in schema if field.nullable}
    assert without == {"rebuild_cmd", "month", "pull_number", "merged_at", "closed_at"}
    assert not schema.field("first_public_at").nullable
