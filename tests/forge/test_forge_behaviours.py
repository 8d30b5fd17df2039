"""The table of behaviours: complete, and every row says how it is known."""

from __future__ import annotations

from collections import Counter

import pytest

from forge.behaviours import Behaviour, behaviours
from forge.rest import ROUTES

ROWS = behaviours()


def test_every_endpoint_has_its_row() -> None:
    rows = {row.name for row in ROWS}
    assert {f"GET {path}" for path in ROUTES} | {"POST /graphql"} <= rows
    assert {name for name in rows if name.startswith("GET ")} == {f"GET {path}" for path in ROUTES}


def test_no_row_stands_twice() -> None:
    assert [name for name, count in Counter(row.name for row in ROWS).items() if count > 1] == []
    checks = [row.check for row in ROWS if row.check]
    assert len(checks) == len(set(checks))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_says_how_it_is_known(row: Behaviour) -> None:
    assert row.says
    assert row.kind in ("documented", "recorded", "network", "assumed")
    assert bool(row.page) == (row.kind in ("documented", "recorded"))
    assert bool(row.check) == (row.kind == "assumed")
    if row.kind == "documented":
        assert row.page.startswith(("https://docs.github.com/", "https://github.com/github/", "https://github.blog/"))
    assert row.page == "" or row.page.startswith("https://")
