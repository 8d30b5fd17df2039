"""The first rung of the ladder: everything that is declared, then the least of it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, cast

import pytest

from installers.describe import describe
from installers.interface import Attempt, Help, Memory, Question, Tree
from installers.pythons import Python
from installers.rungs.declared import declared
from installers.target import with_target
from miner.core.reasons import Reason
from miner.core.records import Recipe

PYTHONS = (Python(version="3.11", executable="/p", released=date(2022, 10, 24), end_of_life=date(2027, 10, 31)),)
CREATED = datetime(2024, 1, 1, tzinfo=UTC)
FILES = {
    "setup.py": b"setup(name='x', install_requires=['a'], extras_require={'test': ['pytest', 'b']})",
    "requirements-test.txt": b"c\n",
}


def described(files: dict[str, bytes]) -> Recipe:
    return cast(Recipe, describe(files, list(files), PYTHONS, CREATED, []))


def ask(recipe: Recipe, past: list[Attempt], files: dict[str, bytes] = FILES) -> Any:
    question = Question("o/n", Tree(files, list(files)), recipe, CREATED, [], past)
    return declared(question, Help(cast(Any, None), cast(Any, None), Memory(), PYTHONS))


def attempt(recipe: Recipe, outcome: str, **more: Any) -> Attempt:
    return Attempt(
        **{
            "repository": "o/n",
            "rung": "declared",
            "number": 0,
            "recipe": recipe,
            "cutoff": CREATED,
            "outcome": outcome,
            **more,
        }
    )


def test_first_comes_what_is_declared() -> None:
    recipe = described(FILES)
    assert ask(recipe, []).recipe == recipe
    assert ask(recipe, [attempt(recipe, "ok", rung="memory")]).recipe == recipe


@pytest.mark.parametrize("reason", [Reason.LOCK_FAILED, Reason.BUILD_FAILED, Reason.COLLECTION_BROKEN])
def test_then_what_tests_cannot_do_without(reason: Reason) -> None:
    recipe = described(FILES)
    found = ask(recipe, [attempt(recipe, reason.value)])
    assert found.recipe.requirements == ("a", "pytest", "b")
    assert found.edits[0].rule == "lean"
    assert ask(recipe, [attempt(recipe, reason.value), attempt(found.recipe, reason.value)]) is None


def test_tests_that_cannot_be_collected_are_worth_a_second_one() -> None:
    recipe = described(FILES)
    assert ask(recipe, [attempt(recipe, "ok", broken=1)]) is not None


@pytest.mark.parametrize("outcome", ["ok", Reason.PROJECT_INSTALL_FAILED.value, Reason.EDIT_NOT_SEEN.value])
def test_less_would_not_mend_it(outcome: str) -> None:
    recipe = described(FILES)
    assert ask(recipe, [attempt(recipe, outcome)]) is None


def test_there_is_no_second_one_where_nothing_can_be_left_out() -> None:
    files = {"setup.py": b"setup(name='x', tests_require=['pytest'])"}
    recipe = described(files)
    assert ask(recipe, [attempt(recipe, Reason.LOCK_FAILED.value)], files) is None


def test_what_the_change_itself_adds_stays() -> None:
    target = described({"setup.py": FILES["setup.py"].replace(b"'a'", b"'a', 'new'")})
    recipe = with_target(described(FILES), target)
    found = ask(recipe, [attempt(recipe, Reason.LOCK_FAILED.value)])
    assert found.recipe.requirements == ("a", "pytest", "b", "new")
