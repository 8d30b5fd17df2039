"""What is printed of prompts is counted rightly, from a folder to which nothing is written."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from install_choose import read_rows
from install_corpus import KIND, name_of
from model_prompt_tables import (
    BUDGETS,
    Read,
    Seen,
    Sizes,
    as_markdown,
    column,
    heading,
    money,
    share_of_first,
    spread,
)
from model_prompts import failing, look, shown_in

from installers.attempt import ATTEMPT, observation_of
from installers.interface import Attempt, Signature
from miner.core.blobs import BlobStore
from miner.core.ledger import Ledger, fact_id
from miner.core.memo import utc_now
from miner.core.records import Fact, FactKey, Observation, Recipe
from miner.core.settings import Price, load_settings

YAML, NUMPY, OTHER = (Signature(kind="missing-module", subject=name) for name in ("yaml", "numpy", "other"))
PRICE = Price(input=1.0, output=10.0, context=9000)


def attempt(number: int, *, good: bool = False, fingerprint: str = "a", **more: object) -> Attempt:
    return Attempt.model_validate(
        {
            "repository": "pypi/x",
            "rung": "declared",
            "number": number,
            "recipe": Recipe(python="3.11", build_backend="setuptools.build_meta"),
            "fingerprint": fingerprint,
            "cutoff": utc_now(),
            "outcome": "ok" if good else "lock-failed",
            "good": good,
            **more,
        }
    )


class TestShares:
    def test_of_the_first_and_of_the_first_few(self) -> None:
        read = [((YAML, NUMPY), frozenset({YAML})), ((NUMPY, YAML, OTHER), frozenset({YAML, OTHER}))]
        assert share_of_first(read, 1) == "50 %"
        assert share_of_first(read, 2) == "50 %"
        assert share_of_first(read, 4) == "60 %"

    def test_of_nothing(self) -> None:
        assert share_of_first([], 1) == "-"

    def test_a_text_shows_what_the_patterns_of_its_step_find(self) -> None:
        log = "E   ModuleNotFoundError: No module named 'yaml'"
        assert YAML in shown_in(log, build=False)
        assert YAML not in shown_in(log, build=True)
        assert shown_in(log[:30], build=False) == frozenset()


class TestNumbers:
    def test_a_spread_is_of_values_that_were_measured(self) -> None:
        assert spread([*range(1, 11)]) == "6, 9, 10"
        assert spread([1000.0]) == "1,000, 1,000, 1,000"
        assert spread([0.0014, 0.25], ".3f") == "0.126, 0.250, 0.250"
        assert spread([]) == "-"

    @given(st.lists(st.integers(0, 10**6), min_size=1))
    def test_a_spread_is_in_order(self, values: list[int]) -> None:
        low, high, most = (int(one) for one in spread(values, "06.0f").split(", "))
        assert low <= high <= most == max(values)

    def test_money_is_of_what_is_read_and_of_the_reply(self) -> None:
        assert money([1000, 2000, 6000], PRICE) == "0.00700, 0.01100"
        assert money([], PRICE) == "-"

    def test_what_does_not_fit_into_a_context_is_marked(self) -> None:
        assert "too long" not in money([8500], PRICE)
        assert "too long" in money([8501], PRICE)
        assert "too long" not in money([10**6], PRICE.model_copy(update={"context": 0}))


class TestFailing:
    def test_each_comes_after_those_before_it_and_what_is_good_does_not_count(self) -> None:
        first, second, good = attempt(0), attempt(1, fingerprint="b"), attempt(2, good=True)
        assert list(failing([first, second, good])) == [(first,), (first, second)]

    def test_the_same_end_of_the_same_recipe_counts_once(self) -> None:
        first, again = attempt(0), attempt(0, detail="a second later")
        other, further = attempt(0, signatures=(YAML,)), attempt(1, fingerprint="b")
        assert list(failing([first, again, other, further])) == [(first,), (other,), (other, further)]


def seen(package: str, half: str = "tuning", first: int = 1000) -> Seen:
    found, nothing = frozenset({YAML}), frozenset[Signature]()
    return Seen(
        package=package,
        half=half,
        installed=False,
        read=Read(
            signatures=(YAML, NUMPY),
            excerpts=dict.fromkeys(BUDGETS, found),
            ends=dict.fromkeys(BUDGETS, nothing),
            whole=frozenset({YAML, NUMPY}),
        ),
        sizes=Sizes(first=first, refinement=2 * first, own=100, form=500),
        seconds=(0.5,),
    )


class TestTheTable:
    def test_says_what_was_measured(self) -> None:
        bare = Seen(package="b", half="tuning", installed=True)
        text = as_markdown([("tuning half", column([seen("a"), seen("a", first=3000), bare], {"m": PRICE}))])
        assert text.startswith("| figure | tuning half |\n|---|---|\n")
        for row in (
            "| failing attempts; packages | 3; 2 |",
            "| of these refused; installed, but not well enough | 2; 1 |",
            "| that show a signature; their first 4 signatures | 2; 4 |",
            "| first signature: from an excerpt of 1,200 characters; from the blind end | 100 %; 0 % |",
            "| first 4 signatures: from an excerpt of 700 characters; from the blind end | 50 %; 0 % |",
            "| first 4 signatures: from the whole log | 100 % |",
            "| tokens of a first question, all messages: median, p90, maximum | 2,000, 3,000, 3,000 |",
            "| $ for a first question and 500 tokens of reply, `m`: median, maximum | 0.00750, 0.00850 |",
        ):
            assert row in text.splitlines()

    def test_has_a_column_for_each_folder_and_one_of_nothing_too(self) -> None:
        columns = [(heading(some), column(some, {"m": PRICE})) for some in ([seen("a")], [])]
        lines = as_markdown(columns).splitlines()
        assert lines[0] == "| figure | tuning half | nothing |"
        assert {line.count("|") for line in lines} == {4}

    def test_halves_are_named(self) -> None:
        assert heading([seen("a"), seen("b", "reporting")]) == "both halves"


LOG = (
    "error: The build backend returned an error\n"
    + "creating build/lib\n" * 200
    + "ModuleNotFoundError: No module named 'Cython'\n"
    + "note: this is unrelated\n" * 200
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which one package of the corpus was tried, and its project did not build."""
    settings = load_settings(overrides=[f"paths.work={tmp_path}"], environ={})
    blobs, ledger = BlobStore(str(tmp_path / "blobs")), Ledger(settings.paths.ledger)
    ledger.begin_run("r", "run", settings, {})
    row = next(row for row in read_rows() if row.counts)
    files = {"setup.py": "from setuptools import setup\nsetup(name='x')\n"}

    def note(kind: str, said: Observation) -> str:
        key = FactKey(kind=kind, subject=name_of(row), input_hash="h", producer="p", epoch=1)
        ledger.add(Fact(key=key, observed_at=utc_now(), **said.model_dump()), "r")
        return fact_id(key)

    paths = [*files, "tests/test_x.py"]
    source = {"files": blobs.put_text(json.dumps(files))}
    note(KIND, Observation(payload={"tree": "t", "paths": paths, "version": "1"}, blobs=source))
    built = Observation(outcome="project-install-failed", logs={"log": blobs.put_text(LOG)})
    step = note("install.project", built)
    lacks = Signature(kind="build-needs-module", subject=": Cython")
    made = attempt(0, outcome="project-install-failed", steps=(step,), signatures=(lacks,))
    note(ATTEMPT, observation_of(made, blobs))
    ledger.close()
    return tmp_path


def test_a_folder_is_looked_at_and_stays_as_it_is(folder: Path) -> None:
    def state() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    before = state()
    (found,) = look(folder, load_settings(overrides=["measure.model.enough=1"], environ={}))
    assert state() == before
    assert not found.installed
    assert found.read is not None
    assert found.read.signatures[0] in found.read.excerpts[700]
    assert found.read.signatures[0] not in found.read.ends[2500]
    assert found.read.signatures[0] in found.read.whole
    assert found.sizes is not None
    assert 0 < found.sizes.own < found.sizes.first < found.sizes.first + found.sizes.own < found.sizes.refinement
    assert found.sizes.form > 0


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no ledger"):
        look(tmp_path, load_settings(environ={}))
    assert list(tmp_path.iterdir()) == []
