"""From drafts to proposals, and back: what of a recipe a model is shown, and what its draft changed and why. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from installers.brief.draft import FIELDS, Draft, kept
from installers.interface import Attempt, Edit, Question, Refusal, Signature
from installers.memory import identity
from installers.pythons import Python, admits
from miner.core.reasons import Reason
from miner.core.records import Recipe
from miner.project.facts import read_project

_WHY = 300
_NO_REASON = "the model gives no reason"
_VARIABLES = ("env", "build_env")
_UNTRIED = frozenset({Reason.MODEL_REPLY_UNUSABLE, Reason.MODEL_GAVE_UP, Reason.MODEL_LIMIT, Reason.MODEL_CAP_REACHED})
"""Outcomes of attempts whose recipe is none that was built, nor one that is void."""


def offered(question: Question, pythons: Iterable[Python], start: Recipe) -> tuple[str, ...]:
    """Return the versions of Python that a draft may name: those that the project admits, and that of its start."""
    tree, declared = question.tree, question.declared
    asked = read_project(tree.files, tree.paths, declared.project_dir).requires_python
    found = tuple(one.version for one in pythons if admits(asked, one.version))
    return found if start.python in found else (*found, start.python)


def shown(recipe: Recipe) -> str:
    """Return a recipe in the form in which a model has to answer, a line for each field."""
    draft = {**draft_of(recipe, recipe), "reasons": [], "give_up": None}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in draft.items())
    declared = f"\npytest's declared options, which stay: {json.dumps(recipe.addopts)}" if recipe.addopts else ""
    return f"{{\n{lines}\n}}{declared}"


def draft_of(recipe: Recipe, base: Recipe) -> dict[str, Any]:
    """Return a recipe as a draft has it, without reasons: what a prompt shows.

    Args:
        recipe: what is shown.
        base: whose options for pytest, and lists that are too long (`kept`), are not told again.
    """
    shown: dict[str, Any] = {name: getattr(recipe, name) for name in FIELDS}
    variables = {name: [{"name": key, "value": value} for key, value in shown[name].items()] for name in _VARIABLES}
    texts = {name: list(value) for name, value in shown.items() if isinstance(value, tuple)}
    texts |= {name: [text for text in texts[name] if text not in getattr(base, name)] for name in kept(base)}
    added = recipe.addopts[len(base.addopts) :] if recipe.addopts[: len(base.addopts)] == base.addopts else ()
    return {**shown, **texts, **variables, "modes": [mode.value for mode in recipe.modes], "addopts": list(added)}


def edits_of(
    draft: Draft, before: Recipe, after: Recipe, *, rule: str, signature: Signature | None = None
) -> tuple[Edit, ...]:
    """Return one edit for each field that a draft changed, with the model's reason for it.

    Args:
        draft: what the model said.
        before: the recipe that it was to better.
        after: what was made of the draft.
        rule: name of the rung.
        signature: the failure that it was asked to answer.
    """
    said: dict[str, str] = {}
    for why in draft.reasons:
        said.setdefault(why.field, " ".join(why.reason.split()))
    return tuple(
        Edit(rule=rule, signature=signature, why=f"{name}: {said.get(name) or _NO_REASON}"[:_WHY])
        for name in FIELDS
        if getattr(before, name) != getattr(after, name)
    )


def tried_before(recipe: Recipe, past: Iterable[Attempt]) -> Refusal | None:
    """Return why a recipe is not tried again; None where it is new."""
    wanted = identity(recipe)
    for attempt in past:
        if attempt.outcome not in _UNTRIED and identity(attempt.recipe) == wanted:
            said = f"the recipe was tried before: attempt {attempt.number} ({attempt.rung}), {attempt.outcome}"
            return Refusal(reason=Reason.MODEL_REPLY_UNUSABLE, detail=said)
    return None
