"""What the project itself asks for: lines, extras, and what recipes that no model wrote were locked to."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from test_distrust_integrity import Look, fact, honest

from installers.distrust.integrity import admitted, trusted_locks
from installers.interface import Attempt
from miner.core.ledger import fact_id
from miner.core.records import Recipe


@pytest.fixture
def look(tmp_path: Path) -> Look:
    return Look(tmp_path)


def test_locks_of_recipes_that_no_model_wrote_are_trusted() -> None:
    kinds = ("install.lock", "install.env", "install.lock")
    facts = [fact(kind, {"packages": {f"p{number}": "1"}}, number) for number, kind in enumerate(kinds)]
    steps = tuple(fact_id(one.key) for one in facts)
    when = datetime(2023, 1, 1, tzinfo=UTC)

    def made(steps: tuple[str, ...], *, written: bool = False) -> Attempt:
        recipe = Recipe(python="3.11", build_backend="")
        return Attempt(
            repository="x",
            rung="declared",
            number=0,
            recipe=recipe,
            cutoff=when,
            steps=steps,
            outcome="ok",
            written=written,
        )

    assert trusted_locks(facts, [made(steps)]) == facts[:1]
    assert trusted_locks(facts, [made(steps, written=True), made(steps[:1]), made(())]) == []


def test_what_an_extra_brings_is_asked_for_only_with_the_extra(look: Look) -> None:
    env = honest().install("tool", "1", {}, requires=("helper; extra == 'Test_It'", "other; python_version > '2'"))
    env.install("helper", "1", {}, requires=("flaky",)).install("flaky", "3", {}, plugin="flaky")
    env.install("other", "1", {}, requires=("tool[test.it]; 'more' == extra",))
    assert look.names(env, ["tool"]) == {"steering-plugin-brought"}
    assert look.names(env, ["tool[docs]"]) == {"steering-plugin-brought"}
    assert look(env, ["tool[test-it]"]) == []
    assert look.names(env, ["other"]) == {"steering-plugin-brought"}
    assert look(env, ["other[more]"]) == []


def test_requirement_that_is_nested_without_end_is_none(look: Look) -> None:
    deep = f"flaky; {'(' * 3000}python_version > '3'{')' * 3000}"
    env = honest().install("library2", "1", {}, requires=(deep,)).install("flaky", "3", {}, plugin="flaky")
    assert look.names(env, ["library2"]) == {"steering-plugin-brought"}


def test_admitted_are_the_names_that_recipes_and_locks_hold() -> None:
    recipe = Recipe(python="3.11", build_backend="", requirements=("Flask[async]>2", "./x"), overrides=("numpy<2",))
    assert admitted([recipe], [fact("install.lock", {"packages": {"Zope.Interface": "5"}})]) == {
        *(("flask", ""), ("flask", "async"), ("numpy", ""), ("zope-interface", ""))
    }
