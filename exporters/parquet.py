"""Parquet with deterministic bytes: sorted rows, fixed settings, no pandas metadata, nothing about the machine."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from exporters.schema import Table
from miner.core.errors import ReleaseError

_ROWS_PER_GROUP = 1000
_ZSTD_LEVEL = 9

Row = Mapping[str, Any]


def parquet_bytes(table: Table, rows: Iterable[Row]) -> bytes:
    """Return the Parquet file of a table: the same rows in any order are the same bytes.

    Raises:
        ReleaseError: a key stands twice, a column is unknown, or a value is missing or has the wrong type.
    """
    ordered = sorted(rows, key=lambda row: str(row.get(table.key)))
    _check(table, ordered)
    schema, sink = table.arrow(), io.BytesIO()
    with pq.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        version="2.6",
        data_page_version="1.0",
    ) as writer:
        # `datasets` cannot read a row group without rows, but it can read a file without row groups
        for start in range(0, len(ordered), _ROWS_PER_GROUP):
            writer.write_table(_group(table, schema, ordered[start : start + _ROWS_PER_GROUP]))
    return sink.getvalue()


def _group(table: Table, schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    try:
        return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise ReleaseError(f"table {table.name}: a value does not fit its column: {error}") from error


def read_rows(data: bytes) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file."""
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(data)).to_pylist()
    return rows


def _check(table: Table, rows: list[Row]) -> None:
    names = {column.name for column in table.columns}
    required = {column.name for column in table.columns if not column.nullable}
    last = None
    for row in rows:
        key = row.get(table.key)
        if key == last:
            raise ReleaseError(f"table {table.name}: {key} stands twice")
        last = key
        missing = sorted(name for name in required if row.get(name) is None)
        unknown = sorted(row.keys() - names)
        if missing or unknown:
            raise ReleaseError(f"table {table.name}, {key}: missing {missing}, unknown {unknown}")
