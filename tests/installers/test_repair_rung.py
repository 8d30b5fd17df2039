"""The rung that repairs: where it starts from, what it edits at once, how it goes back, and that it comes to an end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repair_index import RepairIndex, settings_of, workshop_of

from installers.interface import Attempt, Edit, Help, Memory, Proposal, Question, Signature, Tree
from installers.pythons import load_pythons
from installers.rungs.repair import furthest, repair
from miner.core.hashing import hash_of
from miner.core.memo import Memo
from miner.core.records import BuildMode, Recipe

DAY = datetime(2022, 6, 1, tzinfo=UTC)
RECIPE = Recipe(
    python="3.9",
    requirements=("pytest",),
    build_requirements=("setuptools", "wheel"),
    build_backend="setuptools.build_meta",
    distribution="demo",
    top_level=("demo",),
)
MARKUP = Signature(kind="missing-name", subject="jinja2:Markup")
MOCKER = Signature(kind="missing-fixture", subject="mocker")
ZONE = Signature(kind="time-zone", subject="local")
NETWORK = Signature(kind="needs-network")
CONFLICT = Signature(kind="no-solution", subject="a, b")


@pytest.fixture(scope="module")
def help_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Help]:
    """What the rung may use: an index that knows one distribution."""
    folder = tmp_path_factory.mktemp("repair")
    with RepairIndex() as index:
        index.wheel("pyyaml", "5.4", {"yaml/__init__.py": ""}, uploaded="2021-01-01")
        settings = settings_of(index, folder)
        memo = Memo(lambda _key: [], lambda _fact: None)
        yield Help(workshop_of(settings, folder), memo, Memory(), load_pythons())


def attempt(
    outcome: str,
    *signatures: Signature,
    recipe: Recipe = RECIPE,
    edits: Sequence[Edit] = (),
    share: float | None = None,
) -> Attempt:
    return Attempt(
        repository="octo/demo",
        rung="declared",
        number=0,
        recipe=recipe,
        edits=tuple(edits),
        cutoff=DAY,
        mode=BuildMode.EDITABLE,
        outcome=outcome,
        signatures=signatures,
        share=share,
        steps=("built",),
    )


def asked(*past: Attempt, files: dict[str, bytes] | None = None) -> Question:
    tree = Tree(files or {}, tuple(files or {}))
    return Question("octo/demo", tree, RECIPE, DAY, ("tests/test_x.py",), past)


def after(proposal: Proposal, outcome: str, *signatures: Signature, share: float | None = None) -> Attempt:
    """What comes of a proposal."""
    return attempt(outcome, *signatures, recipe=proposal.recipe, edits=proposal.edits, share=share)


def rules_of(proposal: Proposal | None) -> list[str]:
    return [] if proposal is None else [edit.rule for edit in proposal.edits]


def test_independent_failures_are_answered_at_once(help_: Help) -> None:
    proposal = repair(asked(attempt("ok", MARKUP, MOCKER, share=0.1)), help_)
    assert proposal is not None
    assert proposal.recipe.constraints == ("jinja2<3.1",)
    assert proposal.recipe.requirements == ("pytest", "pytest-mock")
    assert [(edit.rule, edit.signature) for edit in proposal.edits] == [
        ("bound jinja2<3.1", MARKUP),
        ("fixture", MOCKER),
    ]
    assert all(edit.why for edit in proposal.edits)


def test_an_undeclared_module_is_looked_up_and_asked_for(help_: Help) -> None:
    proposal = repair(asked(attempt("collection-broken", Signature(kind="missing-module", subject="yaml"))), help_)
    assert proposal is not None
    assert proposal.recipe.requirements == ("pytest", "pyyaml")


def test_it_starts_from_the_attempt_that_came_furthest(help_: Help) -> None:
    far = attempt("ok", MOCKER, recipe=RECIPE.model_copy(update={"fallback": 1}), share=0.5)
    proposal = repair(asked(attempt("lock-failed", CONFLICT), far, attempt("build-failed", MARKUP)), help_)
    assert proposal is not None
    assert (proposal.recipe.fallback, proposal.recipe.requirements) == (1, ("pytest", "pytest-mock"))


@pytest.mark.parametrize("outcome", ["model-weakens-tests", "model-edits-source"])
def test_it_does_not_start_from_an_attempt_that_is_void(help_: Help, outcome: str) -> None:
    first = attempt("lock-failed", MARKUP)
    edit = Edit(rule="structured", signature=MARKUP, why="another plug-in")
    void = attempt(outcome, recipe=RECIPE.model_copy(update={"requirements": ("pytest", "evil")}), edits=[edit])
    assert rules_of(repair(asked(first, void), help_)) == ["bound jinja2<3.1"]
    assert repair(asked(void), help_) is None


def test_it_does_not_start_from_a_reply_that_was_not_tried(help_: Help) -> None:
    refused = attempt("model-gave-up").model_copy(update={"steps": ()})
    proposal = repair(asked(refused, attempt("system-package-unknown", MOCKER)), help_)
    assert rules_of(proposal) == ["fixture"]


def test_what_no_rule_answers_ends_it(help_: Help) -> None:
    assert repair(asked(attempt("ok", NETWORK, share=0.2)), help_) is None
    assert repair(asked(), help_) is None
    assert repair(asked(attempt("ok", share=0.2)), help_) is None


def test_edits_that_helped_are_kept_and_recorded(help_: Help) -> None:
    first = attempt("collection-broken", MARKUP)
    proposal = repair(asked(first), help_)
    assert proposal is not None
    better = after(proposal, "ok", MOCKER, share=0.6)
    following = repair(asked(first, better), help_)
    assert rules_of(following) == ["bound jinja2<3.1", "fixture"]


def test_of_edits_that_made_it_worse_together_each_is_tried_alone(help_: Help) -> None:
    first = attempt("ok", MARKUP, MOCKER, share=0.3)
    both = repair(asked(first), help_)
    assert both is not None
    worse = after(both, "lock-failed", CONFLICT)
    single = repair(asked(first, worse), help_)
    assert rules_of(single) == ["bound jinja2<3.1"]
    assert single is not None
    other = repair(asked(first, worse, after(single, "lock-failed", CONFLICT)), help_)
    assert rules_of(other) == ["fixture"]


def test_a_rule_that_did_not_help_is_followed_by_the_next_one(help_: Help) -> None:
    first = attempt("lock-failed", CONFLICT)
    proposal = repair(asked(first), help_)
    assert rules_of(proposal) == ["cutoff 1"]
    assert proposal is not None
    again = repair(asked(first, after(proposal, "lock-failed", CONFLICT)), help_)
    assert rules_of(again) == ["cutoff 2"]


def test_one_failure_that_went_away_is_progress_even_where_as_many_tests_pass() -> None:
    first = attempt("collection-broken", MARKUP)
    edit = Edit(rule="bound jinja2<3.1", signature=MARKUP, why="x")
    second = attempt("collection-broken", MOCKER, edits=[edit])
    assert furthest([first, second]) is second
    assert furthest([first, attempt("collection-broken", MARKUP, edits=[edit])]) is first


def test_a_file_more_that_can_be_collected_comes_before_a_higher_share() -> None:
    few = attempt("ok", MARKUP, share=0.9).model_copy(update={"broken": 1})
    all_of_them = attempt("ok", MARKUP, share=0.6)
    assert furthest([few, all_of_them]) is all_of_them
    assert furthest([all_of_them, few]) is all_of_them


def test_two_edits_that_choose_a_python_are_not_made_at_once(help_: Help) -> None:
    newer = Signature(kind="newer-syntax", subject="3.10")
    older = Signature(kind="older-syntax", subject="3.6")
    proposal = repair(asked(attempt("collection-broken", newer, older)), help_)
    assert rules_of(proposal) == ["newer-syntax"]


def test_the_python_is_one_that_the_project_admits(help_: Help) -> None:
    files = {"pyproject.toml": b'[project]\nname = "demo"\nversion = "1"\nrequires-python = ">=3.9,<3.11"\n'}
    newer = Signature(kind="newer-syntax", subject="3.10")
    proposal = repair(asked(attempt("collection-broken", newer), files=files), help_)
    assert proposal is not None
    assert proposal.recipe.python == "3.10"
    too_new = Signature(kind="newer-syntax", subject="3.11")
    assert repair(asked(attempt("collection-broken", too_new), files=files), help_) is None


def test_an_attempt_that_reached_a_bound_counts_by_where_it_stopped() -> None:
    locked = replace_mode(attempt("build-timeout"), None)
    assert furthest([locked, attempt("build-failed")]).outcome == "build-failed"  # type: ignore[union-attr] # not empty
    installed = attempt("build-timeout")
    assert furthest([attempt("build-failed"), installed]) is installed


def replace_mode(made: Attempt, mode: BuildMode | None) -> Attempt:
    return made.model_copy(update={"mode": mode})


SIGNATURES = (MARKUP, MOCKER, ZONE, NETWORK, CONFLICT, Signature(kind="unknown-mark", subject="trio"))
OUTCOMES = ("lock-failed", "build-failed", "collection-broken", "ok")


@given(st.data())
def test_it_ends_and_never_proposes_what_was_tried(help_: Help, data: st.DataObject) -> None:
    past = [attempt("collection-broken", MARKUP, MOCKER)]
    for _ in range(40):
        proposal = repair(asked(*past), help_)
        if proposal is None:
            break
        assert hash_of(proposal.recipe) not in {hash_of(one.recipe) for one in past}
        assert proposal.edits
        signatures = data.draw(st.lists(st.sampled_from(SIGNATURES), unique=True, max_size=3))
        share = data.draw(st.sampled_from([None, 0.1, 0.5]))
        past.append(after(proposal, data.draw(st.sampled_from(OUTCOMES)), *signatures, share=share))
    else:
        raise AssertionError("it goes on without end")


def test_its_own_bounds_on_edits_hold(help_: Help) -> None:
    many = [
        Signature(kind="missing-fixture", subject=name) for name in ("mocker", "benchmark", "faker", "vcr", "qtbot")
    ]
    many += [MARKUP, ZONE, Signature(kind="user")]
    proposal = repair(asked(attempt("ok", *many, share=0.1)), help_)
    assert proposal is not None
    assert len(proposal.edits) == 6


def test_nothing_is_asked_of_the_network_for_what_needs_no_answer(help_: Help) -> None:
    def run(*_: object) -> None:
        raise AssertionError("asked")

    silent = replace(help_, memo=Memo(lambda _key: [], run))
    assert repair(asked(attempt("ok", MOCKER, share=0.1)), silent) is not None


def test_the_pythons_are_those_that_the_attempted_project_admits_not_another_one_of_its_repository(help_: Help) -> None:
    newer = Signature(kind="newer-syntax", subject="3.11")
    files = {
        "pyproject.toml": b'[project]\nname = "root"\nversion = "1"\nrequires-python = "<3.10"\n',
        "libs/demo/pyproject.toml": b'[project]\nname = "demo"\nversion = "1"\nrequires-python = ">=3.8"\n',
    }
    member = RECIPE.model_copy(update={"project_dir": "libs/demo"})
    proposal = repair(asked(attempt("collection-broken", newer, recipe=member), files=files), help_)
    assert proposal is not None
    assert proposal.recipe.python == "3.11"
