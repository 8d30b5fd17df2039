"""Generated pages are what the code says now, and name everything."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from exporters.schema import TABLES
from miner.cli import app
from miner.core.reasons import MEANINGS, Reason

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["reasons", "schema"])
def test_page_is_current(page: str) -> None:
    said = CliRunner().invoke(app, ["docs", page])
    assert said.exit_code == 0
    current = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert current == said.stdout, f"run: swe-miner docs {page} > docs/{page}.md"


def test_every_reason_has_a_meaning_and_a_row_of_its_own() -> None:
    rows = [line.split("|")[1:3] for line in (DOCS / "reasons.md").read_text().splitlines() if line.startswith("| `")]
    written = {code.strip(" `"): meaning.strip() for code, meaning in rows}
    assert len(rows) == len(Reason) == len(MEANINGS)
    assert written == {str(reason): reason.meaning for reason in Reason}


def test_a_code_is_given_once_and_a_meaning_is_one_line_without_markup() -> None:
    assert len({str(reason) for reason in Reason}) == len(Reason)
    for reason in Reason:
        assert reason.meaning.strip()
        assert not set("\n|") & set(reason.meaning)
        assert reason.name.lower().replace("_", "-") == reason


def test_every_column_of_every_table_is_on_the_page_of_the_schema() -> None:
    page = (DOCS / "schema.md").read_text()
    for table in TABLES:
        assert table.path in page
        assert [column.name for column in table.columns if f"`{column.name}`" not in page] == []
