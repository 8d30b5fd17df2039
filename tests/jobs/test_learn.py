"""What is learned of models' fixes: which change answered which failure, how often, and as which rule."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from installers.attempt import ATTEMPT, PRODUCER, observation_of
from installers.interface import Attempt, Edit, Help, Memory, Question, Signature, Tree
from installers.memory import delta
from installers.pythons import load_pythons
from installers.repair.learned import LearnedRule, learned_rules, read_rules
from installers.repair.portable import Change
from installers.rungs.repair import repair
from installers.workshop import Workshop
from miner.cli import app
from miner.core.blobs import BlobStore
from miner.core.errors import ConfigError
from miner.core.ledger import Ledger
from miner.core.memo import Memo
from miner.core.records import Fact, FactKey, Recipe, Seen, Visibility
from miner.core.settings import Settings, load_settings
from miner.jobs.learn import learn, learned_text, toml_of
from miner.jobs.learn_evidence import Tried
from miner.jobs.learn_fold import Answer, answers_of

DAY = datetime(2023, 4, 1, tzinfo=UTC)
PLAIN = Recipe(python="3.11", requirements=("pytest",), build_backend="x", top_level=("demo",))
GAUGE = Signature(kind="missing-header", subject="gauge.h")
DIAL = Signature(kind="missing-library", subject="-ldial")
MARKUP = Signature(kind="missing-name", subject="jinja2:Markup")
ZONED = Signature(kind="missing-module", subject="yaml")
LIBGAUGE, LIBDIAL, HABIT = "libgauge-dev", "libdial-dev", "libhabit-dev"


def recipe(*packages: str, **changes: object) -> Recipe:
    return PLAIN.model_copy(update={"system_packages": packages, **changes})


def attempt(
    number: int,
    made: Recipe,
    *shown: Signature,
    rung: str = "structured",
    outcome: str | None = None,
) -> Attempt:
    outcome = outcome or ("project-install-failed" if shown else "ok")
    return Attempt(
        repository="octo/a",
        rung=rung,
        number=number,
        recipe=made,
        edits=(Edit(rule=rung, why="so it said"),) if number else (),
        delta=delta(PLAIN, made),
        cutoff=DAY,
        outcome=outcome,
        signatures=shown,
        share=1.0 if outcome == "ok" else None,
        good=outcome == "ok",
        steps=("built",),
    )


def declared(*shown: Signature) -> Attempt:
    return attempt(0, PLAIN, *shown, rung="declared")


def climb(*attempts: Attempt, name: str = "a", hours: int = 0, owner: str = "octo") -> list[Tried]:
    """The attempts of one candidate of a repository of its own."""
    found = []
    for made in attempts:
        at = DAY + timedelta(hours=hours, minutes=made.number)
        whole = made.model_copy(update={"repository": f"{owner}/{name}"})
        found.append(Tried(f"{owner}__{name}-1", f"{owner}-{name}-{made.number}-{hours}", at, whole))
    return found


def packages(answer: Answer) -> list[str]:
    assert all(change.field == "system_packages" and change.how == "added" for change in answer.edit)
    return [change.item for change in answer.edit]


def said(found: Sequence[Answer]) -> list[tuple[str, list[str], int, int]]:
    return [(str(one.signature), packages(one), len(one.repositories), len(one.failed)) for one in found]


def test_the_change_that_made_a_failure_go_away_answers_it() -> None:
    (answer,) = answers_of(climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE))))
    assert (answer.signature, packages(answer)) == (GAUGE, [LIBGAUGE])
    assert (answer.worked, answer.failed, answer.repositories) == (("octo__a-1",), (), ("octo/a",))
    assert answer.facts == ("octo-a-1-0",)


NOTHING = {
    "no failure went away": [declared(GAUGE), attempt(1, recipe(LIBGAUGE), GAUGE, outcome="ok")],
    "no model found it": [declared(GAUGE), attempt(1, recipe(LIBGAUGE), rung="ci")],
    "it was not good": [declared(GAUGE), attempt(1, recipe(LIBGAUGE)).model_copy(update={"good": False})],
    "it was not healthy": [declared(GAUGE), attempt(1, recipe(LIBGAUGE), DIAL)],
    "a built-in rule says it": [
        declared(MARKUP),
        attempt(1, PLAIN.model_copy(update={"constraints": ("jinja2<3.1",)})),
    ],
    "a built-in rule would find it": [
        declared(ZONED),
        attempt(1, PLAIN.model_copy(update={"requirements": ("pytest", "pyyaml")})),
    ],
    "the repair rung had found it": [
        declared(GAUGE),
        attempt(1, recipe(LIBGAUGE), DIAL, rung="repair"),
        attempt(2, recipe(LIBGAUGE)),
    ],
    "the failure names no cause": [
        declared(Signature(kind="time-out")),
        attempt(1, recipe(LIBGAUGE)),
    ],
    "nothing was changed": [declared(GAUGE), attempt(1, PLAIN)],
    "the failure had shown nothing": [declared(), attempt(1, recipe(LIBGAUGE))],
}


@pytest.mark.parametrize("name", NOTHING)
def test_nothing_is_learned_where(name: str) -> None:
    assert answers_of(climb(*NOTHING[name])) == ()


def test_refinements_tell_which_change_answered_what() -> None:
    found = answers_of(
        climb(
            declared(GAUGE),
            attempt(1, recipe(LIBGAUGE), DIAL),
            attempt(2, recipe(LIBGAUGE, LIBDIAL)),
        )
    )
    assert said(found) == [(str(GAUGE), [LIBGAUGE], 1, 0), (str(DIAL), [LIBDIAL], 1, 0)]


def test_a_failure_that_is_not_come_to_has_not_gone_away() -> None:
    found = answers_of(
        climb(
            declared(GAUGE),
            attempt(1, recipe(HABIT), DIAL, outcome="lock-failed"),
            attempt(2, recipe(HABIT, LIBGAUGE)),
        )
    )
    assert [packages(one) for one in found if one.signature == GAUGE] == [[LIBGAUGE, HABIT]]


def test_a_proposal_that_was_not_built_shows_nothing() -> None:
    void = attempt(1, recipe(HABIT), outcome="model-weakens-tests")
    found = answers_of(climb(declared(GAUGE), void, attempt(2, recipe(HABIT, LIBGAUGE))))
    assert said(found) == [(str(GAUGE), [LIBGAUGE, HABIT], 1, 0)]


def test_what_several_repositories_have_in_common_is_the_answer() -> None:
    found = answers_of(
        [
            *climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE, "libx")), name="a"),
            *climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE, "liby")), name="b"),
            *climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE, "libz", "liby")), name="c"),
        ]
    )
    assert said(found) == [(str(GAUGE), [LIBGAUGE], 3, 0)]


def test_the_smallest_change_that_was_seen_explains_larger_ones() -> None:
    found = answers_of(
        [
            *climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE)), name="a"),
            *climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE, "liby")), name="b"),
        ]
    )
    assert said(found) == [(str(GAUGE), [LIBGAUGE], 2, 0)]


def test_what_a_model_always_adds_answers_nothing() -> None:
    others = [
        tried
        for name in "cdefg"
        for tried in climb(
            declared(Signature(kind="missing-tool", subject=name)), attempt(1, recipe(f"{name}-tool", HABIT)), name=name
        )
    ]
    found = answers_of(
        [
            *climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE, HABIT)), name="a"),
            *climb(declared(GAUGE), attempt(1, recipe("libgauge2-dev", HABIT)), name="b"),
            *others,
        ]
    )
    assert [HABIT] not in [packages(one) for one in found]
    assert sorted(packages(one) for one in found if one.signature == GAUGE) == [
        [LIBGAUGE, HABIT],
        ["libgauge2-dev", HABIT],
    ]


def test_a_part_that_was_tried_in_vain_as_often_is_no_answer() -> None:
    found = answers_of(
        [
            *climb(declared(GAUGE), attempt(1, recipe("libx", LIBGAUGE)), name="a"),
            *climb(declared(GAUGE), attempt(1, recipe("libx", "libgauge2-dev")), name="b"),
            *climb(declared(GAUGE), attempt(1, recipe("libx"), GAUGE), name="c"),
            *climb(declared(GAUGE), attempt(1, recipe("libx"), GAUGE), name="d"),
        ]
    )
    assert sorted(packages(one) for one in found) == [[LIBGAUGE, "libx"], ["libgauge2-dev", "libx"]]


def test_how_often_it_did_not_work_is_counted_also_where_it_did_harm() -> None:
    found = answers_of(
        [
            *climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE)), name="a"),
            *climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE, "liby"), GAUGE), name="b"),
            *climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE), outcome="lock-failed"), name="c"),
            *climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE, "liby"), outcome="lock-failed"), name="d"),
        ]
    )
    assert said(found) == [(str(GAUGE), [LIBGAUGE], 1, 2)]


def test_a_later_climb_of_the_same_candidate_is_compared_with_its_own_attempts() -> None:
    found = answers_of(
        [
            *climb(declared(GAUGE), attempt(1, recipe("libother-dev"), GAUGE)),
            *climb(attempt(0, recipe("libother-dev"), GAUGE, rung="declared"), hours=5),
            *climb(attempt(1, recipe("libother-dev", LIBGAUGE)), hours=5),
        ]
    )
    assert said(found) == [(str(GAUGE), [LIBGAUGE], 1, 0)]


def test_changes_that_belong_to_one_project_are_told_and_not_carried_over() -> None:
    (answer,) = answers_of(climb(declared(GAUGE), attempt(1, recipe(fallback=2))))
    assert (answer.edit, answer.portable) == ((Change("fallback", "changed", "2"),), False)


OLD_TOOLS = "setuptools<60"
FIXTURE = Signature(kind="missing-fixture", subject="gauge")


def asking(*requirements: str, **changes: object) -> Recipe:
    return recipe(requirements=("pytest", *requirements), **changes)


def worked(shown: Signature, made: Recipe, name: str, before: Recipe = PLAIN) -> list[Tried]:
    """One climb in which one proposal of a model answered a failure."""
    first = attempt(0, before, shown, rung="declared")
    return climb(first, attempt(1, made), name=name)


def edits_of(found: Sequence[Answer]) -> list[tuple[int, list[str]]]:
    return [(one.projects, [str(change) for change in one.edit]) for one in found]


@pytest.mark.parametrize(
    ("spellings", "kept"),
    [
        (["gauge-fixtures>=5", "gauge-fixtures<6"], "gauge-fixtures>=5"),
        (["gauge-fixtures", "Gauge_Fixtures>=5"], "gauge-fixtures"),
        (["gauge-fixtures==5.1", "gauge_fixtures==4.0", "gauge-fixtures<5"], "gauge-fixtures<5"),
        (["gauge-fixtures<6", "gauge-fixtures<6", "gauge-fixtures"], "gauge-fixtures<6"),
    ],
)
def test_one_requirement_in_several_spellings_is_one_answer(spellings: list[str], kept: str) -> None:
    found = [
        tried
        for name, text in zip("abc", spellings, strict=False)
        for tried in worked(FIXTURE, asking(text, f"noise-{name}", build_constraints=(OLD_TOOLS,)), name)
    ]
    wanted = [f"build_constraints + {OLD_TOOLS}", f"requirements + {kept}"]
    assert edits_of(answers_of(found)) == [(len(spellings), wanted)]


def test_bounds_of_one_direction_are_one_answer_and_contrary_ones_have_nothing_in_common() -> None:
    def found(*bounds: str) -> list[Tried]:
        return [
            tried
            for name, bound in zip("ab", bounds, strict=True)
            for tried in worked(FIXTURE, recipe(constraints=(bound,), build_constraints=(OLD_TOOLS,)), name)
        ]

    assert [row.projects for row in answers_of(found("gauge<6", "gauge<5"))] == [2]
    assert [row.projects for row in answers_of(found("gauge<6", "gauge>=6"))] == [1, 1]
    assert [row.projects for row in answers_of(found("gauge==6", "gauge==5"))] == [1, 1]


def test_another_spelling_that_was_tried_in_vain_counts_as_a_failure() -> None:
    failed = climb(declared(FIXTURE), attempt(1, asking("gauge-fixtures<6"), FIXTURE), name="b")
    (answer,) = answers_of([*worked(FIXTURE, asking("gauge-fixtures"), "a"), *failed])
    assert answer.failed == ("octo__b-1",)


def test_a_built_in_answer_is_none_of_a_model_in_another_spelling() -> None:
    assert answers_of(worked(ZONED, asking("PyYAML>=5"), "a")) == ()


_shown = st.lists(st.sampled_from([GAUGE, DIAL, MARKUP, ZONED]), unique=True, max_size=3)
_packages = st.lists(st.sampled_from([LIBGAUGE, LIBDIAL, HABIT]), unique=True, max_size=3)
_rungs = st.sampled_from(["structured", "agent", "repair"])


@st.composite
def _climbs(draw: st.DrawFn) -> list[Tried]:
    found: list[Tried] = []
    for name in draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=4)):
        made = [declared(*draw(_shown))]
        for number in range(1, draw(st.integers(1, 4)) + 1):
            shown, good = draw(_shown), draw(st.booleans())
            made.append(attempt(number, recipe(*draw(_packages)), *([] if good else shown), rung=draw(_rungs)))
        found += climb(*made, name=name)
    return found


@given(tried=_climbs(), random=st.randoms(use_true_random=False))
def test_the_order_in_which_attempts_come_does_not_matter(tried: list[Tried], random) -> None:
    shuffled = [*tried, *tried[:2]]
    random.shuffle(shuffled)
    assert answers_of(shuffled) == answers_of(tried)


@given(tried=_climbs())
def test_an_answer_names_a_failure_that_was_there_and_a_change_that_was_made(tried: list[Tried]) -> None:
    for answer in answers_of(tried):
        climbs = [[one for one in tried if one.subject == name] for name in answer.worked]
        assert all(any(answer.signature in one.attempt.signatures for one in some) for some in climbs)
        added = {change.item for change in answer.edit if change.how == "added"}
        assert all(any(added <= set(one.attempt.recipe.system_packages) for one in some) for some in climbs)
        assert not set(answer.worked) & set(answer.failed)


# From a ledger to a file, and back


def settings_of(folder: Path, *overrides: str) -> Settings:
    return load_settings(overrides=[f"paths.work={folder}", "mine.source=pypi", *overrides], environ={})


def plant(
    settings: Settings,
    tried: Sequence[Tried],
    *,
    status: str = "done",
    run: str = "r1",
    visibility: Visibility | None = Visibility.PUBLIC,
) -> None:
    """Store attempts as a run would; None: of candidates that the ledger does not know."""
    ledger, blobs = Ledger(settings.paths.ledger), BlobStore(settings.paths.blobs)
    ledger.begin_run(run, "run", settings, {})
    if visibility is not None:
        names = {one.subject for one in tried}
        ledger.add_candidates(
            [Seen(instance_id=name, source="git", origin={}, visibility=visibility) for name in names], run
        )
    for one in tried:
        seen = observation_of(one.attempt, blobs)
        key = FactKey(kind=ATTEMPT, subject=one.subject, input_hash=one.fact, producer=PRODUCER.name, epoch=1)
        ledger.add(Fact(key=key, observed_at=one.at, **seen.model_dump()), run)
    ledger.end_run(run, status)
    ledger.close()


def learned(settings: Settings, **options: object):
    ledger = Ledger(settings.paths.ledger, create=False)
    try:
        return learn(ledger, BlobStore(settings.paths.blobs), **options)
    finally:
        ledger.close()


TWO = [
    *climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE)), name="a"),
    *climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE), rung="agent"), name="b"),
    *climb(declared(DIAL), attempt(1, recipe(LIBDIAL)), name="c"),
]


def test_the_next_month_needs_no_model_for_a_failure_that_one_has_answered(tmp_path: Path) -> None:
    fixture, fixed = Signature(kind="missing-fixture", subject="gauge"), ("pytest", "gauge-fixtures")
    first, file = settings_of(tmp_path / "first"), tmp_path / "learned.toml"
    found = [
        *climb(declared(fixture), attempt(1, recipe(requirements=fixed)), name="a"),
        *climb(declared(fixture), attempt(1, recipe(requirements=(*fixed, "other")), rung="agent"), name="b"),
    ]
    plant(first, found)
    assert learned(first, export=file).rules == 1

    def asked(settings: Settings, shown: Signature):
        shop = Workshop(settings, None, None, "x", tmp_path, tmp_path, None)
        help_ = Help(shop, Memo(lambda _key: [], lambda _fact: None), Memory(), load_pythons())
        return repair(Question("octo/new", Tree({}, ()), PLAIN, DAY, (), (declared(shown),)), help_)

    assert asked(settings_of(tmp_path / "second"), fixture) is None
    second = settings_of(tmp_path / "second", f"measure.ladder.learned={file}")
    assert second.hash != first.hash
    proposal = asked(second, fixture)
    assert proposal is not None
    assert proposal.recipe == recipe(requirements=fixed)
    assert [(edit.rule, edit.signature) for edit in proposal.edits] == [
        ("learned: missing-fixture: gauge: requirements + gauge-fixtures", fixture)
    ]
    assert asked(second, Signature(kind="missing-fixture", subject="dial")) is None


def test_in_how_many_repositories_it_must_have_worked_is_asked_for(tmp_path: Path) -> None:
    plant(settings_of(tmp_path), TWO)
    rows = learned(settings_of(tmp_path)).rows
    assert [(row.signature, row.left_out) for row in rows] == [
        (str(GAUGE), ""),
        (str(DIAL), "worked in 1 repository, 2 are asked for"),
    ]
    assert [row.left_out for row in learned(settings_of(tmp_path), min_repositories=1).rows] == ["", ""]


@pytest.mark.parametrize("status", ["interrupted", "faulted", "failed"])
def test_a_run_that_did_not_end_teaches_nothing_until_one_does(tmp_path: Path, status: str) -> None:
    settings = settings_of(tmp_path)
    plant(settings, TWO, status=status)
    assert learned(settings).rows == ()
    plant(settings, [], run="r2")
    assert len(learned(settings).rows) == 2


def test_a_candidate_that_is_not_public_teaches_only_where_that_is_asked_for(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    plant(settings, TWO)
    ledger = Ledger(settings.paths.ledger)
    ledger.add_candidates(
        [Seen(instance_id="octo__b-1", source="git", origin={}, visibility=Visibility.HOLD_OUT)], "r1"
    )
    ledger.close()
    assert [row.repositories for row in learned(settings).rows] == [("octo/a",), ("octo/c",)]
    assert [row.repositories for row in learned(settings, not_public=True).rows] == [("octo/a", "octo/b"), ("octo/c",)]


def test_a_candidate_that_the_ledger_does_not_know_is_not_public(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    plant(settings, TWO, visibility=None)
    assert learned(settings).rows == ()
    assert len(learned(settings, not_public=True).rows) == 2


def test_an_attempt_that_was_taken_out_of_use_teaches_nothing(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    plant(settings, TWO)
    ledger = Ledger(settings.paths.ledger)
    ledger.invalidate(why="x", producer=PRODUCER.name)
    ledger.close()
    assert learned(settings).rows == ()


def left_out(folder: Path, *climbs: list[Tried]) -> dict[str, str]:
    """Why nothing is exported, by edit."""
    plant(settings_of(folder), [tried for some in climbs for tried in some])
    return {row.edit: row.left_out for row in learned(settings_of(folder)).rows}


def test_a_part_of_answers_to_other_failures_is_a_habit_and_is_not_exported(tmp_path: Path) -> None:
    habitual = asking("gauge-fixtures", build_constraints=(OLD_TOOLS,))
    both = [worked(FIXTURE, habitual, "a"), worked(FIXTURE, habitual, "b")]
    other = worked(DIAL, recipe(LIBDIAL, build_constraints=(OLD_TOOLS,)), "c")
    edit = f"build_constraints + {OLD_TOOLS}; requirements + gauge-fixtures"
    assert left_out(tmp_path / "one", *both)[edit] == ""
    said = f"a habit: build_constraints + {OLD_TOOLS} is part of answers to other failures, too"
    assert left_out(tmp_path / "two", *both, other)[edit] == said


def test_a_habit_is_not_what_repositories_have_in_common() -> None:
    found = [
        *worked(FIXTURE, asking("gauge-fixtures", build_constraints=(OLD_TOOLS,)), "a"),
        *worked(FIXTURE, asking("other-fixtures", build_constraints=(OLD_TOOLS,)), "b"),
        *worked(DIAL, recipe(LIBDIAL, build_constraints=(OLD_TOOLS,)), "c"),
    ]
    assert [row.projects for row in answers_of(found)] == [1, 1, 1]


def test_what_worked_by_itself_is_no_habit_though_it_answers_other_failures_too(tmp_path: Path) -> None:
    tool = Signature(kind="missing-tool", subject="gauge-config")
    alone = [worked(GAUGE, recipe(LIBGAUGE), "a"), worked(GAUGE, recipe(LIBGAUGE, "libx"), "b")]
    found = left_out(tmp_path, *alone, worked(tool, recipe(LIBGAUGE, "liby"), "c"))
    assert found[f"system_packages + {LIBGAUGE}"] == ""


CAUSELESS = ["no-solution", "no-solution: a, b", "build-failed: x==1", "limit: files", "missing-module"]
TWO_REQUIREMENTS = asking("attrs")


@pytest.mark.parametrize("shown", CAUSELESS)
def test_a_failure_that_names_no_cause_becomes_no_rule(tmp_path: Path, shown: str) -> None:
    kind, _, subject = shown.partition(": ")
    signature = Signature(kind=kind, subject=subject)
    changed = {"a": PLAIN.model_copy(update={"python": "3.8"}), "b": recipe(LIBGAUGE)}
    for name, made in changed.items():
        found = [worked(signature, made, f"{name}{number}") for number in "12"]
        assert all(said.startswith("the failure names no cause") for said in left_out(tmp_path / name, *found).values())


@pytest.mark.parametrize(
    ("shown", "change", "said"),
    [
        (FIXTURE, {"python": "3.8"}, "it changes Python, and the failure is not about Python"),
        (Signature(kind="newer-syntax", subject="3.99"), {"python": "3.8"}, ""),
        (FIXTURE, {"requirements": ("pytest",)}, "it takes attrs away, which the failure does not name"),
        (Signature(kind="missing-name", subject="attrs.core:gauge"), {"requirements": ("pytest",)}, ""),
        (FIXTURE, {"requirements": ("pytest",), "env": {"DEMO": "1"}}, "it takes attrs away, which the failure"),
    ],
)
def test_python_and_the_removal_of_a_requirement_answer_only_what_is_about_them(
    tmp_path: Path, shown: Signature, change: dict[str, object], said: str
) -> None:
    made = TWO_REQUIREMENTS.model_copy(update=change)
    found = left_out(tmp_path, *(worked(shown, made, name, before=TWO_REQUIREMENTS) for name in "ab"))
    (why,) = found.values()
    assert why.startswith(said) if said else why == ""


def test_a_fork_is_no_other_repository(tmp_path: Path) -> None:
    found = [climb(declared(GAUGE), attempt(1, recipe(LIBGAUGE)), name="a", owner=owner) for owner in ("octo", "fork")]
    plant(settings_of(tmp_path), [tried for some in found for tried in some])
    result = learned(settings_of(tmp_path))
    (row,) = result.rows
    assert (row.repositories, row.projects) == (("fork/a", "octo/a"), 1)
    assert row.left_out == "worked in 1 repository and 1 fork, 2 are asked for"
    assert "in fork/a, octo/a (1 repository and 1 fork)" in learned_text(result)
    (alone,) = learned(settings_of(tmp_path), min_repositories=1).rows
    assert alone.left_out == ""


def test_a_file_keeps_the_rules_of_other_ledgers_and_takes_new_counts(tmp_path: Path) -> None:
    file = tmp_path / "all.toml"
    for name, tried in (("one", TWO[:4]), ("two", TWO[4:])):
        plant(settings_of(tmp_path / name), tried)
        learned(settings_of(tmp_path / name), export=file, min_repositories=1)
    assert [rule.name.split(":")[1].strip() for rule in learned_rules(file)] == [GAUGE.kind, DIAL.kind]
    again = learned(settings_of(tmp_path / "one"), export=file)
    assert again.rules == 2


def test_a_file_that_holds_something_else_is_not_written_over(tmp_path: Path) -> None:
    plant(settings_of(tmp_path), TWO)
    file = tmp_path / "mine.toml"
    file.write_text("[run]\nworkers = 3\n")
    with pytest.raises(ConfigError, match=r"mine\.toml: run: unknown key"):
        learned(settings_of(tmp_path), export=file)
    assert file.read_text() == "[run]\nworkers = 3\n"


def test_what_would_weaken_the_tests_is_never_a_rule(tmp_path: Path) -> None:
    found = [
        tried
        for name in "ab"
        for tried in climb(declared(GAUGE), attempt(1, recipe(env={"PYTEST_ADDOPTS": "-k x"})), name=name)
    ]
    plant(settings_of(tmp_path), found)
    (row,) = learned(settings_of(tmp_path)).rows
    assert row.left_out.startswith("it would weaken the tests: pytest-variable")


_texts = st.text(max_size=30).filter(str.strip)


@given(value=_texts, item=st.sampled_from(["numpy<2", 'x[a]>=1; python_version < "3.9"']))
def test_any_rule_survives_being_written(value: str, item: str) -> None:
    made = LearnedRule.model_validate(
        {
            "name": value,
            "kind": "missing-tool",
            "subject": value,
            "why": value,
            "delta": {"added": {"overrides": [item]}, "changed": {"env": {"DEMO": "1"}, "compiled": False}},
        }
    )
    assert read_rules("x", tomllib.loads(toml_of([made]))) == (made,)


def test_the_command_lists_exports_and_prints_json(tmp_path: Path) -> None:
    plant(settings_of(tmp_path), TWO)
    options = ["-c", f"paths.work={tmp_path}", "-c", "mine.source=pypi"]
    file = tmp_path / "learned.toml"
    shown = CliRunner().invoke(app, ["recipes", "learn", "--export", str(file), *options])
    assert shown.exit_code == 0, shown.output
    assert f"{GAUGE}\n  system_packages + {LIBGAUGE}\n  worked for 2, failed for 0, in octo/a, octo/b" in shown.output
    assert "learned.toml holds 1 rule" in shown.output
    as_json = CliRunner().invoke(app, ["recipes", "learn", "--json", *options])
    rows = json.loads(as_json.output)["rows"]
    assert [row["worked"] for row in rows] == [2, 1]
    assert rows[0]["rule"]["delta"]["added"]["system_packages"] == [LIBGAUGE]


def test_the_file_of_replies_says_that_it_is_as_private_as_what_was_shown(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    plant(settings, [])
    options = [str(tmp_path / "replies.jsonl"), "-c", f"paths.work={tmp_path}", "-c", "mine.source=pypi"]
    shown = CliRunner().invoke(app, ["recipes", "record", *options])
    assert shown.exit_code == 0, shown.output
    assert "as private as the least public candidate" in shown.output
