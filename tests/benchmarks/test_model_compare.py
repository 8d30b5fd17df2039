"""What is printed of a comparison of models is counted rightly, and a folder starts from another one's facts."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import itertools

from model_compare import said, start_from, tokens_of
from model_tables import Shot, Tries, as_table, lines, wilson

from installers.interface import Attempt
from installers.models.kept import PRODUCER, REPLY, TRY
from miner.core.ledger import Ledger, fact_id
from miner.core.memo import utc_now
from miner.core.records import Fact, FactKey, Recipe
from miner.core.settings import load_settings


def shot(healthy: bool = False, rung: str = "structured", money: float = 0.01) -> Shot:
    return Shot(rung=rung, healthy=healthy, tokens_in=100, tokens_out=10, money=money, seconds=5.0)


FAILS, WORKS = shot(), shot(healthy=True)


class TestLines:
    def test_one_try_and_several_are_told_apart(self) -> None:
        tries = [
            Tries(model="m", package="a", shots=(WORKS,)),
            Tries(model="m", package="b", shots=(FAILS, FAILS, WORKS)),
            Tries(model="m", package="c", shots=(FAILS,) * 12),
        ]
        one, three, ten = lines(tries, [10, 1, 3])
        assert [(found.at, found.healthy, found.attempts) for found in (one, three, ten)] == [
            (1, 1, 3),
            (3, 2, 7),
            (10, 2, 14),
        ]
        assert (one.packages, one.tokens_in, one.tokens_out, one.seconds) == (3, 300, 30, 15.0)
        assert one.money == pytest.approx(0.03)
        assert three.money_each == pytest.approx(0.035)
        assert one.share == pytest.approx(1 / 3)

    def test_each_rung_counts_the_packages_at_which_it_was_tried(self) -> None:
        tries = [
            Tries(model="m", package="a", shots=(WORKS,)),
            Tries(model="m", package="b", shots=(FAILS, shot(True, "agent"))),
        ]
        found = {(one.rung, one.at): (one.healthy, one.packages) for one in lines(tries, [1, 3])}
        assert found == {
            ("structured", 1): (1, 2),
            ("structured", 3): (1, 2),
            ("agent", 1): (1, 1),
            ("agent", 3): (1, 1),
            ("all", 1): (1, 2),
            ("all", 3): (2, 2),
        }

    def test_models_stay_apart_in_their_order_and_faults_count_for_nobody(self) -> None:
        tries = [
            Tries(model="z", package="a", shots=(WORKS,)),
            Tries(model="a", package="a", shots=(FAILS,)),
            Tries(model="a", package="b", fault="index-error: x"),
        ]
        assert [(one.model, one.healthy, one.packages) for one in lines(tries, [1])] == [("z", 1, 1), ("a", 0, 1)]

    def test_nothing_healthy_has_no_price(self) -> None:
        (only,) = lines([Tries(model="m", package="a", shots=(FAILS,))], [1])
        assert (only.money_each, only.share) == (None, 0.0)

    @given(st.lists(st.lists(st.booleans(), max_size=12), max_size=6))
    def test_more_attempts_never_come_to_less(self, outcomes: list[list[bool]]) -> None:
        tries = [
            Tries(model="m", package=str(number), shots=tuple(shot(one) for one in some))
            for number, some in enumerate(outcomes)
        ]
        found = list(lines(tries, [1, 3, 10]))
        for fewer, more in itertools.pairwise(found):
            assert fewer.packages == more.packages == sum(bool(one) for one in outcomes)
            assert fewer.healthy <= more.healthy
            assert fewer.attempts <= more.attempts


class TestTheInterval:
    @pytest.mark.parametrize(
        ("part", "whole", "low", "high"),
        [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (5, 10, 0.237, 0.763), (81, 263, 0.255, 0.366)],
    )
    def test_of_known_shares(self, part: int, whole: int, low: float, high: float) -> None:
        assert wilson(part, whole) == pytest.approx((low, high), abs=0.001)

    @given(st.integers(1, 500), st.data())
    def test_holds_the_share(self, whole: int, data: st.DataObject) -> None:
        part = data.draw(st.integers(0, whole))
        low, high = wilson(part, whole)
        assert 0.0 <= low <= part / whole + 1e-9
        assert part / whole - 1e-9 <= high <= 1.0


def test_the_table_says_it_all() -> None:
    tries = [
        Tries(model="m", package="a", shots=(FAILS, WORKS)),
        Tries(model="m", package="b", fault="index-error: x"),
    ]
    console = Console(width=160, no_color=True)
    with console.capture() as captured:
        console.print(as_table(tries, [1, 3]))
    text = captured.get()
    assert "0%, 0%-79%" in text
    assert "100%, 21%-100%" in text
    assert "0.0200" in text
    assert "1 left out" in text


def test_a_line_on_the_way_says_what_came_of_a_package() -> None:
    assert said(None) == "no recipe"
    assert said(Tries(model="", package="a", solved=True)) == "runs without a model"
    assert said(Tries(model="", package="a")) == "fails"
    assert said(Tries(model="m", package="a", fault="disk-full: x")) == "disk-full: x"
    void = Shot(rung="agent", healthy=False, outcome="model-gave-up", money=0.5)
    assert said(Tries(model="m", package="a", shots=(void, WORKS))) == "$0.5100: model-gave-up, healthy"


def test_tokens_of_an_attempt_are_those_of_all_tries_of_its_requests(tmp_path: Path) -> None:
    settings = load_settings(overrides=[f"paths.work={tmp_path}"], environ={})
    ledger = Ledger(settings.paths.ledger)
    ledger.begin_run("r", "run", settings, {})
    keys = {}
    for kind, inputs, ordinal, measures in (
        (REPLY, "first", 0, {}),
        (TRY, "first", 0, {"input_tokens": 10.0, "output_tokens": 1.0}),
        (TRY, "first", 1, {"input_tokens": 20.0, "output_tokens": 2.0}),
        (REPLY, "second", 0, {}),
        (TRY, "second", 0, {"input_tokens": 400.0, "output_tokens": 40.0}),
    ):
        named = {"producer": PRODUCER.name, "epoch": 1, "ordinal": ordinal}
        key = keys[kind, inputs] = FactKey(kind=kind, subject="model-x", input_hash=inputs, **named)
        ledger.add(Fact(key=key, observed_at=utc_now(), measures=measures), "r")
    made = Attempt(
        repository="a",
        rung="agent",
        number=1,
        recipe=Recipe(python="3.11", build_backend="x"),
        cutoff=utc_now(),
        outcome="ok",
        asked=(fact_id(keys[REPLY, "first"]),),
    )
    assert tokens_of(ledger, made) == (30, 3)
    ledger.close()


def test_a_new_folder_starts_from_a_copy_of_the_facts_and_writes_nothing_to_the_other(tmp_path: Path) -> None:
    other, folder = tmp_path / "other", tmp_path / "new"
    settings = load_settings(overrides=[f"paths.work={other}"], environ={})
    ledger = Ledger(settings.paths.ledger)
    ledger.begin_run("r", "run", settings, {})
    ledger.close()
    (other / "blobs").mkdir(exist_ok=True)
    start_from(other, folder)
    assert (folder / "blobs").resolve() == (other / "blobs").resolve()
    copied = Ledger(f"sqlite:///{folder / 'ledger.sqlite3'}")
    copied.begin_run("s", "run", settings, {})
    copied.close()
    start_from(other, folder)
    for place, runs in ((other, 1), (folder, 2)):
        with closing(sqlite3.connect(place / "ledger.sqlite3")) as known:
            assert known.execute("select count(*) from runs").fetchone() == (runs,)


def test_where_nothing_was_measured_nothing_is_copied(tmp_path: Path) -> None:
    start_from(tmp_path / "absent", tmp_path / "new")
    assert not (tmp_path / "new").exists()
