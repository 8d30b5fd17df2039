"""Prompts from the templates in `configs/prompts`: sandboxed, strict, and with a version that changes with their text.

Nothing of a repository is ever a template: it only comes in as a value, between fences where it is text.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from installers.distrust.fence import fence
from installers.models.interface import Prompt
from miner.core.hashing import hash_of
from miner.core.settings import configs_dir

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
"""Names of distributions (https://packaging.python.org/specifications/name-normalization/)."""
_REPOSITORY = re.compile(r"[\w-]+/[\w.-]+", re.ASCII)
_LONGEST_NAME = 80


def title(distribution: str, repository: str) -> str:
    """Return how a prompt calls a project: nothing that its author could have written a sentence into.

    Args:
        distribution: the name that it declares.
        repository: the one that the forge has.
    """
    for name, plain in ((distribution, _NAME), (repository, _REPOSITORY)):
        if len(name) <= _LONGEST_NAME and plain.fullmatch(name):
            return name
    return "the project"


def render(name: str, /, **values: Any) -> Prompt:
    """Return a prompt from the template `configs/prompts/NAME.j2`.

    Args:
        name: of the template, without its ending.
        values: what it asks for; one that it asks for and does not get is an error.

    Raises:
        TemplateError: the template is missing or wrong, or a value is.
    """
    text = _environment().get_template(f"{name}.j2").render(**values)
    return Prompt(name=name, version=_version(f"{name}.j2"), text=f"{text.strip()}\n")


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    templates = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(configs_dir() / "prompts"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["fence"] = _fenced
    templates.globals["fence"] = fence
    return templates


def _fenced(text: str, label: str) -> str:
    """Return `fence` as a filter has it: the text first."""
    return fence(label, text)


@cache
def _version(name: str) -> str:
    """Return the hash of a template's own text and of all that it includes, however deep."""
    found: dict[str, str] = {}
    wanted = [name]
    while wanted:
        known = wanted.pop()
        if known not in found:
            found[known] = _source(known)
            wanted += _included(known, found[known])
    return hash_of(found)


def _source(name: str) -> str:
    loader = _environment().loader
    if loader is None:
        raise ValueError("templates have no loader")
    return loader.get_source(_environment(), name)[0]


def _included(name: str, source: str) -> list[str]:
    names = meta.find_referenced_templates(_environment().parse(source))
    return [_known(name, one) for one in names]


def _known(name: str, included: str | None) -> str:
    if included is None:
        raise ValueError(f"{name} includes a template whose name is computed: its version would not be known")
    return included
