"""The frozen corpus keeps to its rule, and what is printed about a run of it is counted rightly."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from install_choose import FAMILY, YEARS, Row, half_of, read_rows, sdists, walk, year_of
from install_tables import Outcome, failures, failures_as_text, shares, sizes
from install_tasks import Compared, Known, cut

from miner.core.records import Layer
from miner.crawlers.index import IndexFile

ROWS = read_rows()


def text_of(table: Table) -> str:
    console = Console(width=200, no_color=True)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


class TestTheFrozenList:
    def test_is_large_enough_and_split_about_equally(self) -> None:
        halves = Counter(row.half for row in ROWS if row.counts)
        assert sum(halves.values()) >= 150
        assert abs(halves["tuning"] - halves["reporting"]) < 20

    def test_has_one_row_a_package_in_the_order_of_ranks(self) -> None:
        assert len({row.name for row in ROWS}) == len(ROWS)
        assert [row.rank for row in ROWS] == sorted(row.rank for row in ROWS)
        assert max(Counter(row.name.split("-")[0] for row in ROWS).values()) <= FAMILY

    def test_halves_depend_on_names_alone(self) -> None:
        assert [row.half for row in ROWS] == [half_of(row.name) for row in ROWS]

    def test_what_counts_has_tests_a_digest_and_a_date(self) -> None:
        for row in ROWS:
            if row.counts:
                assert row.tests > 0
                assert len(row.sha256) == 64
                assert row.uploaded.year == row.year
                assert row.year in YEARS

    def test_covers_the_years_and_back_ends(self) -> None:
        counted = [row for row in ROWS if row.counts]
        assert {row.year for row in counted} == set(YEARS)
        assert len({row.backend for row in counted}) >= 8


class TestTheRule:
    def test_the_nearest_year_with_a_release_is_taken_the_earlier_of_two(self) -> None:
        wanted = year_of("numpy", YEARS)
        assert wanted is not None
        assert year_of("numpy", [wanted - 1, wanted + 1]) in {wanted - 1, wanted + 1}
        near = [year for year in (wanted - 1, wanted + 1) if year in YEARS]
        assert year_of("numpy", [wanted - 1, wanted + 1]) == near[0]
        assert year_of("numpy", [2001]) is None

    def test_names_are_compared_as_the_index_does(self) -> None:
        assert half_of("Typing_Extensions") == half_of("typing-extensions")

    def test_pre_releases_yanked_ones_and_those_without_a_source_do_not_count(self) -> None:
        files = [_file("1.0"), _file("1.1rc1"), _file("1.2", yanked=True), _file("1.3", kind="wheel")]
        assert list(sdists(files)) == ["1.0"]

    def test_the_walk_ends_with_the_last_wanted_one_and_skips_the_rest_of_a_family(self) -> None:
        names = ["a-1", "a-2", "a-3", "a-4", "b", "c", "d"]
        known = {
            name: Row(name=name, rank=1, half="tuning", left_out="no tests" if name == "b" else "") for name in names
        }
        walked = [row.name for row in walk(names, 4, known, None)]  # type: ignore[arg-type] - all rows are known
        assert walked == ["a-1", "a-2", "a-3", "b", "c"]


def _file(version: str, *, yanked: bool = False, kind: str = "sdist") -> IndexFile:
    return IndexFile(
        filename=f"x-{version}.tar.gz" if kind == "sdist" else f"x-{version}-py3-none-any.whl",
        url="",
        kind=kind,
        version=version,
        sha256="0" * 64,
        size=1,
        uploaded_at=datetime(2020, 1, 1, tzinfo=UTC),
        yanked=yanked,
        requires_python=None,
    )


def _outcome(name: str, reason: str = "", *layers: Layer) -> Outcome:
    row = Row(name=name, rank=1, half="tuning", version="1", year=2020)
    return Outcome(row=row, reason=reason, signatures=("missing-module: yaml",) if reason else (), layers=layers)


class TestTheTables:
    def test_both_shares_are_printed_the_one_of_packages_with_tests_and_that_of_all(self) -> None:
        corpus = [Row(name=name, rank=1, half="tuning") for name in ("a", "b")]
        corpus.append(Row(name="c", rank=1, half="tuning", left_out="no tests"))
        text = text_of(shares([_outcome("a"), _outcome("b", "build-failed")], corpus))
        assert "50.0%" in text
        assert "33.3%" in text

    def test_the_share_of_all_is_not_printed_for_a_part_of_the_list(self) -> None:
        corpus = [Row(name=name, rank=1, half="tuning") for name in ("a", "b")]
        assert "walked" not in text_of(shares([_outcome("a")], corpus))

    def test_bytes_are_own_where_no_other_image_holds_the_layer(self) -> None:
        base, one, two = (Layer(diff_id=f"sha256:{name}", size=size) for name, size in (("b", 9), ("1", 2), ("2", 4)))
        scaled = [layer.model_copy(update={"size": layer.size * 1_000_000}) for layer in (base, one, two)]
        text = text_of(sizes([_outcome("a", "", scaled[0], scaled[1]), _outcome("b", "", scaled[0], scaled[2])]))
        own, shared = (line for line in text.splitlines() if "own" in line or "shared" in line)
        assert "3.0" in own
        assert "9.0" in shared

    def test_every_failure_is_listed_with_its_reason_and_signature(self) -> None:
        outcomes = [_outcome("a"), _outcome("b", "build-failed")]
        for text in (text_of(failures(outcomes)), failures_as_text(outcomes)):
            assert "build-failed" in text
            assert "missing-module: yaml" in text
            assert "a 1" not in text


@pytest.mark.parametrize(
    ("ours", "published"),
    [
        ("tests/a.py::test_b[x y]", "tests/a.py::test_b[x"),
        ("tests/a.py::test_b[/tmp/x/y.py]", "tests/a.py::test_b[/y.py]"),
        ("tests/a.py::test_b[a/b]", "tests/a.py::test_b[a/b]"),
        ("tests/a.py::T::test_b", "tests/a.py::T::test_b"),
    ],
)
def test_ids_are_cut_as_the_published_ones_were(ours: str, published: str) -> None:
    assert cut(ours) == published


def test_recall_counts_published_tests_that_are_lost() -> None:
    known = Known(instance_id="i", repo="o/r", fail_to_pass=("f",), pass_to_pass=("a", "b", "c", "d"))
    assert Compared(known=known, lost=("a",)).recall == 0.75
    assert Compared(known=known, reason="build-failed").recall is None
    assert Compared(known=known).equal
    assert not Compared(known=known, extra=("g",)).equal
