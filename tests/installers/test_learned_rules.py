"""Repair rules as data: what a file may hold, what is refused on reading, and what the rung makes of them."""

from __future__ import annotations

import tomllib
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installers.interface import Attempt, Help, Memory, Question, Signature, Tree
from installers.pythons import Python
from installers.repair.context import Context
from installers.repair.learned import LearnedRule, learned_rules, read_rules
from installers.repair.portable import Change, Portable, changes
from installers.rungs.repair import repair
from installers.workshop import Workshop
from miner.core.errors import ConfigError
from miner.core.memo import Memo
from miner.core.records import BuildMode, Recipe
from miner.core.settings import load_settings

DAY = datetime(2022, 6, 1, tzinfo=UTC)
RECIPE = Recipe(python="3.9", requirements=("pytest", "numpy>=1.26"), build_backend="x", top_level=("demo",))
GAUGE = Signature(kind="missing-header", subject="gauge.h")
GOOD = """
[[rule]]
name = "gauge"
kind = "missing-header"
subject = "gauge.h"
why = "{subject} is of the gauge library"
[rule.delta.added]
system_packages = ["libgauge-dev"]
[rule.provenance]
worked = 3
failed = 0
repositories = 2
version = "0.1.0"
exported = "2026-05-01"
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.toml"
    file.write_text(text)
    return file


def rule(text: str, *, kind: str = "missing-header", about: str = 'subject = "gauge.h"') -> str:
    return f'[[rule]]\nname = "a"\nkind = "{kind}"\n{about}\nwhy = "w"\n{text}'


def test_the_shipped_file_holds_no_rule() -> None:
    assert learned_rules(None) == ()


def test_a_rule_answers_its_signature_and_no_other(tmp_path: Path) -> None:
    (gauge,) = learned_rules(written(tmp_path, GOOD))
    changed = gauge.edit(RECIPE, GAUGE, Context(DAY))
    assert changed is not None
    assert changed.system_packages == ("libgauge-dev",)
    assert gauge.reason(GAUGE) == "gauge.h is of the gauge library"
    assert gauge.edit(changed, GAUGE, Context(DAY)) is None
    assert gauge.edit(RECIPE, Signature(kind="missing-header", subject="other.h"), Context(DAY)) is None
    assert gauge.edit(RECIPE, Signature(kind="missing-tool", subject="gauge.h"), Context(DAY)) is None


@pytest.mark.parametrize(("subject", "answers"), [("gauge/a.h", True), ("a/gauge/a.h", False), ("gauge/a.hpp", False)])
def test_a_pattern_has_to_match_all_of_the_subject(tmp_path: Path, subject: str, answers: bool) -> None:
    text = rule('[rule.delta.added]\nsystem_packages = ["libgauge-dev"]\n', about="pattern = 'gauge/\\w+\\.h'")
    (one,) = learned_rules(written(tmp_path, text))
    assert (one.edit(RECIPE, Signature(kind="missing-header", subject=subject), Context(DAY)) is not None) is answers


ADDED = '[rule.delta.added]\nsystem_packages = ["libgauge-dev"]\n'
WRONG = {
    "a key that is no key": (
        rule(ADDED).replace("subject", "subjct"),
        r"rule 1: subjct: unknown key; did you mean subject\?",
    ),
    "a field that cannot be carried over": (
        rule('[rule.delta.added]\nsystem_package = ["x"]\n'),
        r"delta\.added\.system_package: unknown key; did you mean delta\.added\.system_packages\?",
    ),
    "options of pytest": (rule('[rule.delta.added]\naddopts = ["-x"]\n'), r"delta\.added\.addopts: unknown key"),
    "dates": (rule("[rule.delta.changed]\nfallback = 2\n"), r"delta\.changed\.fallback: unknown key"),
    "a kind that is none": (
        rule(ADDED, kind="missing-heeder"),
        r"no such kind.*'missing-heeder'; did you mean missing-header\?",
    ),
    "no subject": (rule(ADDED, about=""), r"either a subject or a pattern"),
    "two of them": (rule(ADDED, about='subject = "a"\npattern = "b"'), r"either a subject or a pattern"),
    "a pattern that is none": (rule(ADDED, about='pattern = "("'), r"pattern: .*regular expression"),
    "no change": (rule("[rule.delta]\n"), r"its delta changes nothing"),
    "a requirement that is none": (rule('[rule.delta.added]\nrequirements = ["-e ."]\n'), r"'-e \.' is no requirement"),
    "a bound that is none": (rule('[rule.delta.added]\nconstraints = ["numpy"]\n'), r"'numpy' bounds nothing"),
    "a requirement from elsewhere": (
        rule('[rule.delta.added]\nrequirements = ["a @ https://x.invalid/a.zip"]\n'),
        r"weaken the tests: from-elsewhere",
    ),
    "a package that is none": (
        rule('[rule.delta.added]\nsystem_packages = ["a; rm"]\n'),
        r"weaken the tests: no-package",
    ),
    "a variable that steers pytest": (
        rule('[rule.delta.changed]\nenv = { PYTEST_ADDOPTS = "-k fast" }\n'),
        r"weaken the tests: pytest-variable",
    ),
    "a plug-in that leaves tests out": (
        rule('[rule.delta.added]\nrequirements = ["pytest-rerunfailures"]\n'),
        r"weaken the tests: steering-plugin",
    ),
    "the name of a built-in rule": (rule(ADDED).replace('"a"', '"fixture"'), r"another rule has this name"),
    "a name twice": (GOOD + GOOD, r"rule 2 \(gauge\): another rule has this name"),
    "a rule twice": (GOOD + GOOD.replace('"gauge"', '"other"'), r"rule 2 \(other\): another rule says the same"),
    "what a built-in rule says": (
        rule(
            '[rule.delta.added]\nconstraints = ["jinja2<3.1"]\n', kind="missing-name", about='subject = "jinja2:Markup"'
        ),
        r"the built-in rule 'bound jinja2<3\.1' says the same",
    ),
    "another table": ("[[rules]]\n", r"rules: unknown key; did you mean rule\?"),
    "a table for a list": ("[rule]\n", r"begins with \[\[rule\]\]"),
    "no TOML": ("[[rule]\n", r"mine\.toml"),
    "a changed value of another type": (rule("[rule.delta.changed]\ncompiled = 3.5\n"), r"delta\.changed\.compiled"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_is_refused_that_holds(name: str, tmp_path: Path) -> None:
    text, message = WRONG[name]
    with pytest.raises(ConfigError, match=message):
        learned_rules(written(tmp_path, text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml: cannot be read"):
        learned_rules(tmp_path / "absent.toml")


def test_what_a_file_holds_is_in_the_hash_of_the_settings_and_where_it_lies_is_not(tmp_path: Path) -> None:
    def hash_of(folder: str, text: str) -> str:
        (tmp_path / folder).mkdir()
        file = written(tmp_path / folder, text)
        return load_settings(overrides=[f"measure.ladder.learned={file}"], environ={}).hash

    plain = load_settings(environ={})
    assert "learned.toml" not in str(plain.portable())
    assert hash_of("a", GOOD) == hash_of("b", GOOD) != plain.hash
    assert hash_of("c", GOOD.replace("libgauge-dev", "libgauge2-dev")) != hash_of("d", GOOD)
    assert hash_of("e", GOOD.replace("worked = 3", "worked = 4")) == hash_of("f", GOOD)


PYTHONS = (
    Python(version="3.8", executable="x", released=date(2019, 10, 14), end_of_life=date(2024, 10, 1)),
    Python(version="3.9", executable="x", released=date(2020, 10, 5), end_of_life=date(2025, 10, 1)),
)
SITUATIONS: dict[str, tuple[dict[str, object], dict[str, object], dict[str, object] | None]] = {
    "a requirement that nobody asked for": (
        {"added": {"requirements": ["yaml2"]}},
        {},
        {"requirements": ("pytest", "numpy>=1.26", "yaml2")},
    ),
    "one that is asked for already": ({"added": {"requirements": ["numpy"]}}, {}, None),
    "a bound that what is asked for contradicts": (
        {"added": {"requirements": ["numpy<1.24"]}},
        {},
        {"overrides": ("numpy<1.24",)},
    ),
    "an extra of what is asked for": (
        {"added": {"requirements": ["numpy[x]"]}},
        {},
        {"requirements": ("pytest", "numpy>=1.26", "numpy[x]")},
    ),
    "what goes away and is not there": ({"removed": {"requirements": ["other"]}}, {}, None),
    "what goes away": ({"removed": {"requirements": ["numpy>=1.26"]}}, {}, {"requirements": ("pytest",)}),
    "a build requirement with another version": (
        {"added": {"build_requirements": ["cython<3"]}},
        {"build_requirements": ("cython",)},
        {"build_constraints": ("cython<3",)},
    ),
    "an interpreter that the project admits": ({"changed": {"python": "3.8"}}, {}, {"python": "3.8"}),
    "one that it does not": ({"changed": {"python": "3.6"}}, {}, None),
    "a variable beside others": ({"changed": {"env": {"B": "2"}}}, {"env": {"A": "1"}}, {"env": {"A": "1", "B": "2"}}),
    "a way to install what is not installed": ({"changed": {"modes": ["normal"]}}, {"modes": (BuildMode.NONE,)}, None),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_an_edit_suits_the_recipe_that_it_meets(name: str) -> None:
    edit, before, after = SITUATIONS[name]
    recipe = RECIPE.model_copy(update=before)
    changed = Portable.model_validate(edit).apply(recipe, Context(DAY, pythons=PYTHONS))
    assert changed == (None if after is None else recipe.model_copy(update=after))


def test_a_rule_is_not_made_where_it_would_weaken_the_tests_of_the_project_at_hand() -> None:
    text = rule('[rule.delta.changed]\nmodes = ["normal"]\n')
    (one,) = read_rules("x", {"rule": [_toml(text)]})
    compiled = RECIPE.model_copy(update={"modes": (BuildMode.COMPILED,), "compiled": True})
    assert one.rule().edit(RECIPE, GAUGE, Context(DAY)) is not None
    assert one.rule().edit(compiled, GAUGE, Context(DAY)) is None


def _toml(text: str) -> object:
    return tomllib.loads(text)["rule"][0]


_items = st.lists(st.sampled_from(["a", "b>=1", "c<2", "d==3"]), unique=True, max_size=3).map(tuple)
_recipes = st.builds(
    Recipe,
    python=st.sampled_from(["3.8", "3.9"]),
    build_backend=st.just("x"),
    requirements=_items,
    overrides=_items,
    system_packages=st.lists(st.sampled_from(["liba", "libb"]), unique=True).map(tuple),
    env=st.dictionaries(st.sampled_from(["A", "B"]), st.sampled_from(["1", "2"])),
    compiled=st.booleans(),
)


@given(before=_recipes, after=_recipes)
def test_portable_changes_survive_being_an_edit_and_text(before: Recipe, after: Recipe) -> None:
    made = {change for change in changes(before, after) if change.is_portable}
    edit = Portable.of(made)
    assert Portable.model_validate(edit.said) == edit
    assert bool(edit.said) == bool(made)
    bare = Recipe(python="0", build_backend="x", compiled=not edit.changed.compiled)
    added = {change.item for change in made if change.field == "system_packages" and change.how == "added"}
    changed = edit.apply(bare, Context(DAY, pythons=PYTHONS))
    assert added <= set(() if changed is None else changed.system_packages)


def test_equal_recipes_have_no_changes_and_those_of_one_project_only_are_not_portable() -> None:
    other = RECIPE.model_copy(update={"fallback": 1, "addopts": ("-s",), "env": {"A": "1"}})
    assert changes(RECIPE, RECIPE) == frozenset()
    assert {change for change in changes(RECIPE, other) if change.is_portable} == {
        Change("env", "changed", '{"A":"1"}')
    }
    assert not any(change.is_portable for change in changes(other, RECIPE))


def test_the_rung_proposes_what_was_learned_after_what_is_built_in(tmp_path: Path) -> None:
    text = rule('[rule.delta.added]\nrequirements = ["pytest-gauge"]\n', kind="missing-fixture", about='pattern = ".*"')
    file = written(tmp_path, text.replace('"a"', '"learned: fixture"'))
    settings = load_settings(overrides=[f"measure.ladder.learned={file}"], environ={})
    mocker, gauge = (
        Signature(kind="missing-fixture", subject="mocker"),
        Signature(kind="missing-fixture", subject="gauge"),
    )
    first = repair(_asked((_attempt(mocker),)), _help(settings, tmp_path))
    assert first is not None
    assert [edit.rule for edit in first.edits] == ["fixture"]
    again = _attempt(mocker).model_copy(update={"recipe": first.recipe, "edits": first.edits, "number": 1})
    second = repair(_asked((_attempt(mocker), again)), _help(settings, tmp_path))
    assert second is not None
    assert [edit.rule for edit in second.edits] == ["learned: fixture"]
    alone = repair(_asked((_attempt(gauge),)), _help(settings, tmp_path))
    assert alone is not None
    assert alone.recipe.requirements == (*RECIPE.requirements, "pytest-gauge")


def _help(settings: object, folder: Path) -> Help:
    shop = Workshop(settings=settings, base=None, blobs=None, owner="x", scratch=folder, base_cache=folder, room=None)
    return Help(shop, Memo(lambda _key: [], lambda _fact: None), Memory(), ())


def _attempt(signature: Signature) -> Attempt:
    return Attempt(
        repository="octo/demo",
        rung="declared",
        number=0,
        recipe=RECIPE,
        cutoff=DAY,
        outcome="ok",
        share=0.2,
        signatures=(signature,),
        steps=("built",),
    )


def _asked(past: tuple[Attempt, ...]) -> Question:
    return Question("octo/demo", Tree({}, ()), RECIPE, DAY, ("tests/test_x.py",), past)


def test_the_rule_of_a_record_is_named_like_it() -> None:
    made = LearnedRule.model_validate(_toml(GOOD))
    assert (made.rule().name, made.rule().why) == (made.name, made.why)
