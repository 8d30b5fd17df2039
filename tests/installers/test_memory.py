"""What is remembered of attempts that worked, and what the rung proposes from it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from bench import recipe_of
from hypothesis import given
from hypothesis import strategies as st

from installers.attempt import observation_of
from installers.interface import Attempt, Delta, Edit, Help, Lesson, Memory, Question, Signature, Tree
from installers.memory import apply, delta, fingerprint, lesson_of, memory_of
from installers.rungs.memory import memory
from miner.core.blobs import BlobStore
from miner.core.records import BuildMode, Fact, FactKey, Recipe

DAY = datetime(2022, 5, 1, tzinfo=UTC)
MISSING = Signature(kind="missing-module", subject="yaml")
BOUND = Delta(added={"constraints": ("markupsafe<2.1",)})

_items = st.lists(st.sampled_from(["a", "b>=1", "c<2", "d", "e==3"]), unique=True, max_size=4).map(tuple)
_recipes = st.builds(
    recipe_of,
    python=st.sampled_from(["3.7", "3.8", "3.11"]),
    requirements=_items,
    constraints=_items,
    exempt=_items,
    system_packages=_items,
    fallback=st.integers(0, 3),
    compiled=st.booleans(),
    env=st.dictionaries(st.sampled_from(["A", "B"]), st.sampled_from(["1", "2"])),
)


def attempt(repository: str = "octo/demo", outcome: str = "ok", edits: tuple[Edit, ...] = (), **fields) -> Attempt:
    values = {"rung": "repair", "number": 0, "recipe": recipe_of(), "cutoff": DAY, "good": outcome == "ok", **fields}
    return Attempt(repository=repository, outcome=outcome, edits=edits, **values)


def fact(made: Attempt, name: str = "x") -> Fact:
    key = FactKey(kind="install.attempt", subject=name, input_hash=name, producer="p", epoch=1)
    seen = observation_of(made, BlobStore("memory://lessons"))
    return Fact(key=key, observed_at=DAY, **seen.model_dump())


def lesson(repository: str = "octo/demo", days: int = 0, change: Delta = BOUND, **fields) -> Lesson:
    cutoff = DAY + timedelta(days=days)
    return Lesson(repository=repository, fingerprint="f", cutoff=cutoff, delta=change, fact=f"{days}", **fields)


def asked(
    lessons: tuple[Lesson, ...], past: tuple[Attempt, ...] = (), declared: Recipe | None = None, candidate: str = ""
):
    question = Question(
        repository="octo/demo",
        tree=Tree({}, ()),
        declared=declared or recipe_of(),
        created_at=DAY,
        test_files=(),
        past=past,
        candidate=candidate,
    )
    return memory(question, Help(workshop=None, memo=None, memory=Memory(lessons=lessons), pythons=()))


@given(before=_recipes, after=_recipes)
def test_a_delta_makes_of_the_first_recipe_an_environment_like_that_of_the_second(
    before: Recipe, after: Recipe
) -> None:
    made = apply(delta(before, after), before)
    assert {
        name: set(getattr(made, name)) for name in ("requirements", "constraints", "exempt", "system_packages")
    } == {name: set(getattr(after, name)) for name in ("requirements", "constraints", "exempt", "system_packages")}
    assert (made.python, made.fallback, made.compiled) == (after.python, after.fallback, after.compiled)
    assert made.env.items() >= after.env.items()


@given(recipe=_recipes)
def test_equal_recipes_have_no_delta_and_one_fingerprint(recipe: Recipe) -> None:
    assert delta(recipe, recipe) == Delta()
    assert fingerprint(recipe) == fingerprint(recipe.model_copy(update={"notes": ("other",), "version_hint": "9"}))


def test_a_change_of_modes_survives_json() -> None:
    compiled = recipe_of(modes=(BuildMode.COMPILED, BuildMode.NORMAL), compiled=True)
    change = Delta.model_validate_json(delta(recipe_of(), compiled).model_dump_json())
    assert apply(change, recipe_of()) == compiled


@pytest.mark.parametrize(
    "made",
    [
        attempt(outcome="lock-failed", delta=BOUND),
        attempt(delta=BOUND, good=False),
        attempt(),
    ],
    ids=["refused", "good for too few tests", "as declared"],
)
def test_nothing_is_learned_from_an_attempt_that(made: Attempt) -> None:
    assert lesson_of(fact(made)) is None


def test_one_edit_is_an_answer_to_its_signature_and_two_are_not() -> None:
    one, other = Edit(rule="a", signature=MISSING, why="x"), Edit(rule="b", signature=MISSING, why="y")
    assert lesson_of(fact(attempt(delta=BOUND, edits=(one,)))).answers == MISSING
    assert lesson_of(fact(attempt(delta=BOUND, edits=(one, other)))).answers is None


def test_the_latest_lessons_of_a_repository_are_kept_in_whatever_order_they_come() -> None:
    many = [lesson(days=day, change=Delta(added={"constraints": (f"a<{day}",)})) for day in range(9)]
    kept = memory_of(many)
    assert kept == memory_of(reversed(many))
    assert [int(one.fact) for one in kept.lessons] == [8, 7, 6, 5]


def test_what_worked_nearest_in_time_for_this_repository_comes_first_and_each_once() -> None:
    near, far = lesson(days=3), lesson(days=-90, change=Delta(changed={"python": "3.8"}))
    first = asked((far, near, lesson(repository="octo/other")))
    assert first.recipe.constraints == ("markupsafe<2.1",)
    second = asked((far, near), (attempt(recipe=first.recipe),))
    assert second.recipe.python == "3.8"
    assert asked((far, near), (attempt(recipe=first.recipe), attempt(recipe=second.recipe))) is None


def test_equal_declarations_win_over_a_nearer_date() -> None:
    same = Lesson(
        repository="octo/demo",
        fingerprint=fingerprint(recipe_of()),
        cutoff=DAY - timedelta(days=300),
        delta=Delta(changed={"python": "3.8"}),
        fact="s",
    )
    assert asked((lesson(days=1), same)).recipe.python == "3.8"


def test_of_its_own_a_candidate_learns_nothing_so_that_a_repeated_run_does_nothing_new() -> None:
    own = lesson(candidate="octo__demo-7")
    assert asked((own,), candidate="octo__demo-7") is None
    assert asked((own,), candidate="octo__demo-8").recipe.constraints == ("markupsafe<2.1",)


def test_an_answer_that_worked_elsewhere_is_taken_for_the_same_failure_only_the_most_often_seen_first() -> None:
    often = [lesson(f"octo/{name}", answers=MISSING) for name in "ab"]
    seldom = lesson("octo/c", change=Delta(added={"requirements": ("ruamel.yaml",)}), answers=MISSING)
    failed = attempt(outcome="import-failed", signatures=(MISSING,))
    proposal = asked((seldom, *often), (failed,))
    assert proposal.recipe.constraints == ("markupsafe<2.1",)
    assert proposal.edits[0].signature == MISSING
    assert "in 2 attempts elsewhere" in proposal.edits[0].why
    other = failed.model_copy(update={"signatures": (Signature(kind="missing-module", subject="toml"),)})
    assert asked((seldom, *often), (other,)) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"addopts": ("-p", "pytester")},
        {"modes": (BuildMode.NORMAL,)},
        {"build_env": {"PBR_VERSION": "1.0"}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_lesson_that_changes_no_dependency_is_proposed_too(changed: dict[str, object]) -> None:
    declared = recipe_of()
    worked = declared.model_copy(update=changed)
    known = lesson(change=delta(declared, worked))
    first = asked((known,), (attempt(recipe=declared),), declared)
    assert first is not None
    assert first.recipe == worked
    assert asked((known,), (attempt(recipe=declared), attempt(recipe=worked)), declared) is None


def test_of_the_lessons_of_one_date_those_that_did_best_are_kept_and_come_first() -> None:
    shares = (0.1, 0.9, 0.3, 0.5, 0.2, 0.7)
    many = [
        Lesson(
            repository="octo/demo",
            fingerprint="f",
            cutoff=DAY,
            delta=Delta(added={"constraints": (f"a<{place}",)}),
            share=share,
            fact=f"{place}",
        )
        for place, share in enumerate(shares)
    ]
    kept = memory_of(many)
    assert [one.share for one in kept.lessons] == [0.9, 0.7, 0.5, 0.3]
    assert asked(tuple(reversed(kept.lessons))).recipe.constraints == ("a<1",)
