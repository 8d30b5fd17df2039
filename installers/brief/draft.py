"""A draft of a recipe: what a language model proposes, as a strict schema, and what is made of it once it is checked.

The schema keeps to what strict structured outputs allow (https://platform.openai.com/docs/guides/structured-outputs,
"Supported schemas"): every field required, no other one allowed, no default, no map with free keys, no bound. Bounds
and grammars are checked here. A draft holds no command: names, versions and values only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

from pydantic import ConfigDict, ValidationError

from installers.brief.grammar import Unfit, options, packages, python, requirements, variables
from installers.interface import Refusal
from installers.models.interface import Form
from miner.core.reasons import Reason
from miner.core.records import BuildMode, Recipe, Record

_Field = Literal[
    "python",
    "requirements",
    "constraints",
    "overrides",
    "build_requirements",
    "build_constraints",
    "system_packages",
    "env",
    "build_env",
    "modes",
    "addopts",
]
FIELDS: tuple[str, ...] = get_args(_Field)
"""What of a recipe a draft says, in the order of the schema."""

DEEPEST = 50
"""Levels of lists and objects within each other, far more than a draft has."""

_LONGEST_REPLY = 200_000
_QUOTED = 300
_BOUNDS = ("constraints", "overrides", "build_constraints")
_MOST_BOUNDS = 40
_OPENS = re.compile(r'\{\s*(?:"|\})')
_Mode = Literal["editable", "normal", "compiled", "none"]


class Variable(Record):
    """One variable of an environment."""

    name: str
    value: str


class Why(Record):
    """Why a field was changed."""

    field: _Field
    reason: str


class Draft(Record):
    """What a model proposes; fields as in `Recipe`, complete lists, beside `addopts`.

    Attributes:
        addopts: options for pytest that are added to the declared ones.
        give_up: why there is no way to install the project; None where there may be one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    python: str
    requirements: tuple[str, ...]
    constraints: tuple[str, ...]
    overrides: tuple[str, ...]
    build_requirements: tuple[str, ...]
    build_constraints: tuple[str, ...]
    system_packages: tuple[str, ...]
    env: tuple[Variable, ...]
    build_env: tuple[Variable, ...]
    modes: tuple[_Mode, ...]
    addopts: tuple[str, ...]
    reasons: tuple[Why, ...]
    give_up: str | None


def definition(pythons: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of a draft, strict; `write_recipe` takes the same as its arguments.

    Args:
        pythons: versions that may be chosen.
    """
    texts = {"type": "array", "items": {"type": "string"}}
    variables = {"type": "array", "items": _object(name={"type": "string"}, value={"type": "string"})}
    modes = {"type": "array", "items": {"type": "string", "enum": [mode.value for mode in BuildMode]}}
    return _object(
        python={"type": "string", "enum": list(pythons)},
        requirements=texts | {"description": "PEP 508, the complete list: run time and tests"},
        constraints=texts | {"description": "PEP 508 bounds on versions of what the requirements lead to"},
        overrides=texts | {"description": "PEP 508, win over what any distribution asks for"},
        build_requirements=texts | {"description": "PEP 508, the complete list: what builds the project"},
        build_constraints=texts | {"description": "PEP 508 bounds on versions in all builds"},
        system_packages=texts | {"description": "names of Debian packages"},
        env=variables | {"description": "for the tests"},
        build_env=variables | {"description": "for builds"},
        modes=modes | {"description": "ways to install the project, the first that works is taken"},
        addopts=texts | {"description": "words to add to pytest's declared options"},
        reasons={
            "type": "array",
            "description": "one short reason for each field that differs from the recipe you were shown",
            "items": _object(field={"type": "string", "enum": list(FIELDS)}, reason={"type": "string"}),
        },
        give_up={"type": ["string", "null"], "description": "null, or why no recipe can work"},
    )


def form(pythons: Sequence[str]) -> Form:
    """Return the form of a reply that is a draft."""
    return Form(name="recipe", definition=definition(pythons))


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_draft(text: str) -> Draft | Refusal:
    """Return the draft in a reply: its one JSON object, whatever prose or code fence stands around it.

    A reply with two objects, or with the beginning of one that does not end, is ambiguous and refused.
    """
    if len(text) > _LONGEST_REPLY:
        return unusable(f"the reply is longer than {_LONGEST_REPLY} characters", text)
    try:
        found = _objects(text)
    except (ValueError, RecursionError) as error:
        return unusable(f"the reply is no valid JSON: {str(error)[:_QUOTED]}", text)
    if len(found) != 1:
        said = "the reply holds no JSON object" if not found else f"the reply holds {len(found)} JSON objects"
        return unusable(f"{said}, one is expected", text)
    if is_too_deep(found[0]):
        return unusable(f"the reply is nested more than {DEEPEST} levels deep", text)
    try:
        return Draft.model_validate_json(json.dumps(found[0]), strict=True)
    except ValidationError as error:
        return unusable(f"the reply is not of the schema: {_faults(error)}", text)


def unusable(said: str, text: str) -> Refusal:
    """Return the refusal of a reply, with the beginning of it."""
    shown = " ".join(text[: 4 * _QUOTED].split())[:_QUOTED]
    return Refusal(reason=Reason.MODEL_REPLY_UNUSABLE, detail=f"{said}; it begins: {shown!r}" if shown else said)


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the outermost JSON objects of a text.

    Raises:
        ValueError: something begins like an object and is none.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
    found, place = [], 0
    while (opened := _OPENS.search(text, place)) is not None:
        value, place = decoder.raw_decode(text, opened.start())
        found.append(value)
    return found


def is_too_deep(value: Any) -> bool:
    """Whether lists and objects of JSON stand within each other more than `DEEPEST` times."""
    level = [value]
    for _ in range(DEEPEST):
        nested = [one for one in level if isinstance(one, dict | list)]
        level = [item for one in nested for item in (one.values() if isinstance(one, dict) else one)]
    return any(isinstance(one, dict | list) for one in level)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _faults(error: ValidationError) -> str:
    found = [f"{'.'.join(map(str, item['loc'])) or 'the object'}: {item['msg']}" for item in error.errors()]
    return "; ".join(found[:5])[:_QUOTED]


def kept(declared: Recipe) -> dict[str, int]:
    """Return the bounds that are too many to be told again, and how many there are: they stay, a draft adds to them."""
    counts = {name: len(getattr(declared, name)) for name in _BOUNDS}
    return {name: count for name, count in counts.items() if count > _MOST_BOUNDS}


def recipe_of(draft: Draft, declared: Recipe, pythons: Sequence[str]) -> Recipe | Refusal:
    """Return the recipe that a draft amounts to, or why there is none.

    Args:
        draft: what the model proposes.
        declared: the recipe that it was shown: what a draft does not say comes from there, and what stands there is
            taken as it stands.
        pythons: versions that the project admits; the one that was shown may stay.
    """
    if draft.give_up is not None and draft.give_up.strip():
        said = " ".join(draft.give_up.split())[:_QUOTED]
        return Refusal(reason=Reason.MODEL_GAVE_UP, detail=f"the model gives up: {said}")
    try:
        return Recipe.model_validate({**declared.model_dump(), **_fields(draft, declared, pythons)})
    except Unfit as error:
        return Refusal(reason=Reason.MODEL_REPLY_UNUSABLE, detail=f"the recipe cannot be taken: {error}")


def _fields(draft: Draft, declared: Recipe, pythons: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a recipe that a draft says, checked.

    Raises:
        Unfit: one is not of its grammar.
    """
    found: dict[str, Any] = {
        name: requirements(name, getattr(draft, name), getattr(declared, name), own=declared.distribution)
        for name in ("requirements", "build_requirements", *_BOUNDS)
    }
    for name in kept(declared):
        stay: tuple[str, ...] = getattr(declared, name)
        found[name] = (*stay, *(text for text in found[name] if text not in stay))
    for name in ("env", "build_env"):
        pairs = [(one.name, one.value) for one in getattr(draft, name)]
        found[name] = variables(name, pairs, getattr(declared, name))
    modes = tuple(dict.fromkeys(BuildMode(mode) for mode in draft.modes))
    if not modes:
        raise Unfit("modes: the project has to be installed in one way at least")
    return {
        **found,
        "python": python(draft.python, tuple(dict.fromkeys((*pythons, declared.python)))),
        "system_packages": packages(draft.system_packages, declared.system_packages),
        "modes": modes,
        "addopts": (*declared.addopts, *options(draft.addopts, declared.addopts)),
        "compiled": declared.compiled or BuildMode.COMPILED in modes,
    }
