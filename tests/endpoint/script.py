"""Scripts: behaviours one after another, by name in a file too.

A file, TOML or JSON, is a list `reply` of tables: the name of a behaviour, its options, and how often it is taken:

    [[reply]]
    behaviour = "rate_limited"
    retry_after = 1
    times = 2

    [[reply]]
    behaviour = "fitting"
    modes = ["editable"]
"""

from __future__ import annotations

import inspect
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from endpoint import faults, hostile, malformed, replies
from endpoint.exchange import Answer, Asked, Behaviour

MODULES = (replies, faults, malformed, hostile)


def constructors() -> dict[str, Callable[..., Behaviour]]:
    """Return every behaviour that can be made, by its name."""
    return {name: made for module in MODULES for name, made in _made_in(module).items()}


def _made_in(module: ModuleType) -> dict[str, Callable[..., Behaviour]]:
    return {
        name: made
        for name, made in inspect.getmembers(module, inspect.isfunction)
        if made.__module__ == module.__name__ and not name.startswith("_") and _makes(made)
    }


def _makes(made: Callable[..., Any]) -> bool:
    return bool(inspect.signature(made).return_annotation == "Behaviour")


def repeated(behaviour: Behaviour, times: int, then: Behaviour) -> list[Behaviour]:
    """Return a script: the same so many times, and then something else."""
    return [*[behaviour] * times, then]


def load_script(file: Path) -> list[Behaviour]:
    """Read a script.

    Raises:
        ValueError: it names a behaviour that there is not, or an option that one has not.
    """
    read = file.read_text(encoding="utf-8")
    value = json.loads(read) if file.suffix == ".json" else tomllib.loads(read)
    return [one for row in value["reply"] for one in _row(dict(row))]


def _row(row: dict[str, Any]) -> list[Behaviour]:
    times, name = row.pop("times", 1), row.pop("behaviour")
    known = constructors()
    if name not in known:
        raise ValueError(f"no behaviour {name!r}; there are: {', '.join(sorted(known))}")
    parameters = inspect.signature(known[name]).parameters.values()
    many = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), None)
    given = [tuple(item) if isinstance(item, list) else item for item in row.pop(many, ())] if many else []
    try:
        return [known[name](*given, **row)] * times
    except TypeError as wrong:
        raise ValueError(f"{name}: {wrong}") from wrong


def last_again(script: list[Behaviour]) -> Callable[[Asked], Answer]:
    """Return a script that repeats its last behaviour for ever."""
    return lambda asked: script[min(asked.number, len(script) - 1)](asked)
