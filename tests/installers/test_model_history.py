"""What was tried before, in lines: the newest ones, within the budget, with what changed and what came of it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from structured_bench import DAY, RECIPE

from installers.brief.history import came_to, history
from installers.interface import Attempt, Signature
from installers.memory import delta


def attempt(number=0, recipe=RECIPE, outcome="lock-failed", **more):
    return Attempt(
        repository="r",
        rung="repair",
        number=number,
        recipe=recipe,
        delta=delta(RECIPE, recipe),
        cutoff=DAY,
        outcome=outcome,
        **more,
    )


def test_a_line_says_who_what_and_why():
    changed = RECIPE.model_copy(update={"requirements": ("pytest", "pyyaml"), "python": "3.8"})
    signatures = (Signature(kind="missing-header", subject="yaml.h"),)
    assert history([attempt(3, changed, signatures=signatures)], 1000) == (
        "#3 repair: requirements +pyyaml -attrs>=20; python = 3.8 -> lock-failed [missing-header: yaml.h]"
    )


def test_without_a_signature_its_own_words_count():
    assert history([attempt(detail="took\n600.1s\ntoo long")], 1000) == (
        "#0 repair: as declared -> lock-failed [took some time too long]"
    )


def test_a_healthy_one_says_how_many_tests_pass():
    assert came_to(attempt(outcome="ok", share=0.5, passed=4, total=8, broken=2)) == (
        "installed, 4 of 8 tests pass, 2 test files cannot be collected"
    )
    assert came_to(attempt(outcome="ok")) == "installed, its tests did not run"


def test_the_newest_ones_are_kept():
    text = history([attempt(number) for number in range(100)], 400)
    assert text.splitlines()[0].endswith("earlier attempts left out]")
    assert "#99 repair" in text
    assert "#0 repair" not in text


@given(st.lists(st.text(max_size=400), max_size=20), st.integers(0, 2000))
@settings(max_examples=50, deadline=None)
def test_the_budget_is_kept(details, budget):
    past = [attempt(number, detail=detail) for number, detail in enumerate(details)]
    assert len(history(past, budget)) <= budget
