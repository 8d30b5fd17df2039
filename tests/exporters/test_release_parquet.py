"""Parquet files are the same bytes for the same rows, and refuse rows that do not fit the schema."""

from __future__ import annotations

import io
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.parquet import parquet_bytes, read_rows
from exporters.schema import TABLES, UNMEASURED, Table
from miner.core.errors import ReleaseError


def row(name: str, **changes: Any) -> dict[str, Any]:
    values = {"source": "pypi", "state": "faulted", "stage": "install", "code": "disk-full", "sentence": "full"}
    return {"instance_id": name, **values, **changes}


ids = st.lists(st.text(st.characters(codec="utf-8"), min_size=1), unique=True, max_size=12)


@settings(max_examples=50, deadline=None)
@given(ids.flatmap(lambda names: st.tuples(st.just(names), st.permutations(names))))
def test_same_rows_in_any_order_are_the_same_bytes(orders: tuple[list[str], list[str]]) -> None:
    one, other = (parquet_bytes(UNMEASURED, [row(name) for name in names]) for names in orders)
    assert one == other
    assert [found["instance_id"] for found in read_rows(one)] == sorted(orders[0])


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_table_without_rows_keeps_its_schema(table: Table) -> None:
    data = parquet_bytes(table, [])
    assert pq.read_schema(io.BytesIO(data)).equals(table.arrow(), check_metadata=True)
    assert read_rows(data) == []


def test_rows_are_split_into_groups_of_one_size() -> None:
    data = parquet_bytes(UNMEASURED, [row(f"x-{n}") for n in range(2500)])
    groups = pq.ParquetFile(io.BytesIO(data)).metadata
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [1000, 1000, 500]


def test_file_says_nothing_about_pandas() -> None:
    assert b"pandas" not in parquet_bytes(UNMEASURED, [row("x-1")])


def test_id_that_stands_twice_is_refused() -> None:
    with pytest.raises(ReleaseError, match="x-1 stands twice"):
        parquet_bytes(UNMEASURED, [row("x-1"), row("x-2"), row("x-1")])


def test_missing_value_is_refused_where_the_schema_wants_one() -> None:
    with pytest.raises(ReleaseError, match=r"x-1: missing \['sentence'\]"):
        parquet_bytes(UNMEASURED, [row("x-1", sentence=None)])
    assert read_rows(parquet_bytes(UNMEASURED, [row("x-1", code=None)]))[0]["code"] is None


def test_unknown_column_is_refused() -> None:
    with pytest.raises(ReleaseError, match=r"unknown \['colour'\]"):
        parquet_bytes(UNMEASURED, [row("x-1", colour="red")])


def test_value_of_another_type_is_refused() -> None:
    with pytest.raises(ReleaseError, match="does not fit its column"):
        parquet_bytes(UNMEASURED, [row("x-1", sentence=["a", "list"])])
