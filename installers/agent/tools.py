"""The four tools of a session: what they take, and how a call is read. A call has exactly one argument.

A call is taken as it stands or refused as a whole: nothing is guessed, mended or half executed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from installers.agent.endings import Unclear
from installers.brief.draft import DEEPEST, definition, is_too_deep
from installers.models.interface import Tool, ToolCall

ARGUMENTS = {"run": "command", "read": "path", "write_recipe": "recipe", "give_up": "reason"}
"""Tool -> the name of its argument."""

_MEANINGS = {
    "run": ("run a bash command in the container and see what it prints", "a bash command"),
    "read": ("see the beginning of a text file in the container", "an absolute path, or one below /testbed"),
    "give_up": ("end the session: no recipe can work", "one sentence that says why"),
}
_RECIPE = "end the session with a recipe: it is built from scratch and the tests are run in what comes of it"
_LONGEST = {"run": 20_000, "read": 1_000, "write_recipe": 100_000, "give_up": 2_000}


@dataclass(frozen=True)
class Call:
    """One call that is to be done.

    Attributes:
        argument: of the tool; of `write_recipe` as JSON text.
    """

    tool: str
    argument: str


def tools(pythons: Sequence[str]) -> tuple[Tool, ...]:
    """Return the tools as an endpoint is told of them.

    Args:
        pythons: versions that a recipe may name.
    """
    texts = (_tool(name, said, {"type": "string", "description": what}) for name, (said, what) in _MEANINGS.items())
    return (*texts, _tool("write_recipe", _RECIPE, definition(pythons)))


def _tool(name: str, said: str, argument: dict[str, Any]) -> Tool:
    parameters = {
        "type": "object",
        "properties": {ARGUMENTS[name]: argument},
        "required": [ARGUMENTS[name]],
        "additionalProperties": False,
    }
    return Tool(name=name, description=said, parameters=parameters)


def call_of(asked: ToolCall) -> Call:
    """Return the call in the form in which endpoints give it: a name, and arguments as JSON text.

    Raises:
        Unclear: it is no tool, or its arguments are not what it takes.
    """
    name = _known(asked.name)
    arguments = _object(asked)
    wanted = ARGUMENTS[name]
    if set(arguments) != {wanted}:
        raise Unclear(f"{name} takes one argument, {wanted!r}; it was given {_listed(arguments)}")
    value = arguments[wanted]
    kind = dict if name == "write_recipe" else str
    if not isinstance(value, kind):
        expected = "an object" if kind is dict else "text"
        raise Unclear(f"the argument {wanted!r} of {name} has to be {expected}, not {type(value).__name__}")
    return call(name, value if isinstance(value, str) else json.dumps(value))


def call(name: str, argument: str) -> Call:
    """Return a call with an argument that can be used.

    Raises:
        Unclear: it is no tool, or its argument is empty, too long, or no text.
    """
    tool, wanted = _known(name), ARGUMENTS[name]
    if not argument.strip():
        raise Unclear(f"the argument {wanted!r} of {tool} is empty")
    if len(argument) > _LONGEST[tool]:
        raise Unclear(f"the argument {wanted!r} of {tool} is longer than {_LONGEST[tool]} characters")
    if "\0" in argument or not _is_text(argument):
        raise Unclear(f"the argument {wanted!r} of {tool} holds characters that no text has")
    if tool == "read" and "\n" in argument.strip():
        raise Unclear("read takes one path")
    return Call(tool, argument.strip() if tool == "read" else argument)


def _known(name: str) -> str:
    if name not in ARGUMENTS:
        raise Unclear(f"there is no tool {name[:60]!r}; there are {', '.join(ARGUMENTS)}")
    return name


def _object(asked: ToolCall) -> dict[str, Any]:
    try:
        value = json.loads(asked.arguments, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise Unclear(f"the arguments of {asked.name} are no valid JSON: {str(error)[:200]}") from error
    if not isinstance(value, dict):
        raise Unclear(f"the arguments of {asked.name} have to be a JSON object")
    if is_too_deep(value):
        raise Unclear(f"the arguments of {asked.name} are nested more than {DEEPEST} levels deep")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return dict(pairs)


def _listed(arguments: dict[str, Any]) -> str:
    return ", ".join(repr(name[:40]) for name in list(arguments)[:5]) or "none"


def _is_text(argument: str) -> bool:
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True
